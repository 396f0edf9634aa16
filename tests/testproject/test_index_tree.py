"""``manage.py index_tree``, in the process and as a real command."""

import io
import os
import re
import signal

import pytest
from django.core.management import CommandError, call_command

from django_jobs.models import Job
from testproject.library.jobs import index_file
from testproject.library.models import Document


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "__pycache__").mkdir(parents=True)
    (root / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"\xff")
    (root / "sub").mkdir()
    (root / "a.py").write_text("def a(): ...\n")
    (root / "sub" / "b.txt").write_text("two words\n")
    (root / "sub" / "c.mo").write_bytes(b"\xde\x12\x04\x95")
    return root


def index_tree(*args):
    stdout = io.StringIO()
    call_command("index_tree", *map(str, args), stdout=stdout)
    return stdout.getvalue()


@pytest.mark.django_db(transaction=True)
class TestIndexTree:
    def test_indexes_every_file_and_reports(self, tree):
        output = index_tree(tree)

        assert sorted(Document.objects.values_list("path", flat=True)) == [
            str(tree / "a.py"),
            str(tree / "sub" / "b.txt"),
        ]
        assert "Enqueued 3 jobs" in output
        assert re.search(r"completed +2$", output, re.MULTILINE)
        assert re.search(r"failed +1$", output, re.MULTILINE)
        assert f"{tree}/sub/c.mo is not UTF-8 text: byte 0xde at offset 0" in output
        assert "100%  3 of 3" in output
        assert re.search(r"[\d.]+ statements per job by the worker, [\d.]+ with the jobs' own", output)

    def test_runs_again(self, tree):
        index_tree(tree)
        (tree / "a.py").write_text("def a(): ...\ndef b(): ...\n")

        output = index_tree(tree)

        assert "Enqueued 3 jobs" in output
        assert re.search(r"completed +2$", output, re.MULTILINE), "this run's jobs only"
        assert Document.objects.get(path=str(tree / "a.py")).definitions == 2
        assert Document.objects.count() == 2

    def test_finishes_what_an_earlier_run_left(self, tree):
        index_file.enqueue_many([(str(tree / "a.py"),), (str(tree / "sub" / "b.txt"),)])

        output = index_tree(tree)

        assert "An earlier run left 2 jobs unfinished" in output
        assert "Enqueued" not in output
        assert Job.objects.filter(state="completed").count() == 2

    def test_refuses_what_is_not_a_folder_with_files(self, tmp_path):
        with pytest.raises(CommandError, match="is not a folder"):
            index_tree(tmp_path / "nowhere")
        with pytest.raises(CommandError, match="holds no files"):
            index_tree(tmp_path)

    @pytest.mark.timeout(60)  # opening the pipe waits for the job, however long
    def test_ctrl_c_stops_in_order_and_the_next_run_finishes(self, tree, run_manage):
        os.mkfifo(tree / "0")  # the first job's file: reading it takes as long as the test wants
        first = run_manage("index_tree", str(tree), "--threads", "1")
        with (tree / "0").open("w") as writer:  # opens once the job has opened it
            first.send_signal(signal.SIGINT)
            first.wait_for_output(r"^Stopping")
            writer.write("words")

        assert first.wait() == 130
        assert "Interrupted: 3 jobs are left." in first.output
        assert list(Document.objects.values_list("path", "words")) == [(str(tree / "0"), 1)]
        assert sorted(Job.objects.values_list("state", flat=True)) == ["available"] * 3 + ["completed"]

        second = run_manage("index_tree", str(tree))

        assert second.wait() == 0
        assert "An earlier run left 3 jobs unfinished" in second.output
        assert Document.objects.count() == 3
        assert sorted(Job.objects.values_list("state", flat=True)) == ["completed"] * 3 + ["failed"]
