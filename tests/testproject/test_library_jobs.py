"""The demo's own job functions."""

import pytest

from django_jobs import Fail
from testproject.library.jobs import Definitions, definitions, index_file
from testproject.library.models import Document

SOURCE = '''\
"""A module."""


class Shelf:
    async def fetch(self):
        def inner(): ...


def sort(): ...
'''


@pytest.mark.django_db
class TestIndexFile:
    def test_saves_what_a_python_file_holds(self, tmp_path):
        file = tmp_path / "shelf.py"
        file.write_text(SOURCE)

        index_file.call(str(file))

        document = Document.objects.get()
        assert document.path == str(file)
        assert document.kind == "py"
        assert document.bytes == len(SOURCE.encode())
        assert (document.lines, document.words) == (9, 13)
        assert document.definitions == 4
        assert document.definition_names == ["Shelf", "fetch", "inner", "sort"]
        assert document.syntax_error == ""

    def test_looks_for_definitions_in_python_files_only(self, tmp_path):
        file = tmp_path / "notes.txt"
        file.write_text("def of_no_interest(): ...\n")

        index_file.call(str(file))

        document = Document.objects.get()
        assert (document.kind, document.lines, document.words) == ("txt", 1, 3)
        assert document.definitions == 0

    def test_counts_bytes_not_characters(self, tmp_path):
        file = tmp_path / "LICENSE"
        file.write_text("späte Bücher", encoding="utf-8")

        index_file.call(str(file))

        document = Document.objects.get()
        assert (document.kind, document.bytes, document.words) == ("", 14, 2)

    def test_again_saves_the_same_row(self, tmp_path):
        file = tmp_path / "a.txt"
        file.write_text("one")
        index_file.call(str(file))
        file.write_text("one two")

        index_file.call(str(file))

        assert Document.objects.get().words == 2

    def test_keeps_the_measures_of_python_it_cannot_parse(self, tmp_path):
        file = tmp_path / "template.py"
        file.write_text("class {{ name }}:\n    pass\n")

        index_file.call(str(file))

        document = Document.objects.get()
        assert (document.lines, document.words) == (2, 5)
        assert document.definitions == 0
        assert document.syntax_error.startswith("SyntaxError: ")

    def test_fails_for_good_on_what_is_not_text(self, tmp_path):
        file = tmp_path / "django.mo"
        file.write_bytes(b"abc\xde\x12\x04\x95")

        with pytest.raises(Fail, match=r"django\.mo is not UTF-8 text: byte 0xde at offset 3$") as failure:
            index_file.call(str(file))

        assert isinstance(failure.value.__cause__, UnicodeDecodeError)
        assert not Document.objects.exists()

    def test_fails_for_good_when_the_file_is_gone(self, tmp_path):
        with pytest.raises(Fail, match=r"nowhere\.txt is gone$"):
            index_file.call(str(tmp_path / "nowhere.txt"))


class TestDefinitions:
    def test_stand_in_the_order_of_the_source(self):
        assert definitions(SOURCE) == Definitions(names=["Shelf", "fetch", "inner", "sort"])

    @pytest.mark.parametrize("source", ["def broken(:\n", "x = '\0'\n", "(" * 100_000])
    def test_say_why_they_could_not_be_read(self, source):
        found = definitions(source)

        assert found.names == []
        assert 0 < len(found.error) <= 255
