"""JSON for people: whole, escaped and bounded."""

import re

from django.utils import translation

from django_jobs.admin.json_display import MOST, one_line, printable, render
from django_jobs.redaction import TOO_DEEP
from django_jobs.serialization import Undecodable


def shown(value: object) -> str:
    return str(render(value))


def words(value: object) -> str:
    """The text of it."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", shown(value)))


def test_every_digit_is_there() -> None:
    for number in (2**63 + 1, 10**40 + 7, -0.0, 1e22, 0.1):
        assert one_line(number) in shown([{"number": number, "more": "x" * 100}])


def test_what_is_short_stands_in_one_line_and_what_is_long_can_be_folded() -> None:
    assert "<details" not in shown([1, 2, 3])
    assert "<details" in shown({"rows": {str(number): "x" * 20 for number in range(9)}})
    assert "<summary>9 keys</summary>" in shown({"rows": {str(number): "x" * 20 for number in range(9)}})
    assert "500 characters" in shown("y" * 500)


def test_hostile_values_and_keys_are_escaped() -> None:
    script = "<script>alert(1)</script>"
    for value in (
        script,
        {script: script},
        [script],
        {"a": {script: [script, "x" * 100]}},
        Undecodable(script),
    ):
        html = shown(value)
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_what_no_page_can_show_is_written_out() -> None:
    assert printable("a\x00b\ud800c\u202ed\n") == "a\\x00b\\ud800c\\u202ed\n"
    assert "\\ud800" in shown({"key\ud800": "\ud800" * 3})


def test_a_large_document_is_cut_and_says_so() -> None:
    html = shown({"numbers": list(range(1_000_000)), "after": 1})

    assert len(html) < 200 * MOST
    assert "more entries" in words({"numbers": list(range(1_000_000))})


def test_a_deep_document_is_shown_as_far_as_it_goes() -> None:
    value: object = "x" * 100
    for _level in range(900):
        value = [value, "x" * 100]

    assert len(shown(value)) < 300_000


def test_what_is_no_json_is_shown_as_it_is_stored() -> None:
    assert "This is no JSON" in shown(Undecodable("{broken"))
    assert "{broken" in shown(Undecodable("{broken"))


def test_nothing_is_something_too() -> None:
    assert [words(value).strip() for value in (None, True, {}, [], "")] == [
        "null",
        "true",
        "{}",
        "[]",
        "&quot;&quot;",
    ]


def test_the_mark_of_what_is_nested_too_deeply_is_in_the_language_of_the_page() -> None:
    assert TOO_DEEP in shown({"a": TOO_DEEP})
    with translation.override("de"):
        assert "[zu tief geschachtelt, um gezeigt zu werden]" in shown({"a": TOO_DEEP})
