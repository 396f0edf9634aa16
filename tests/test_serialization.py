"""JSON and time as they are stored, and what can be said about a value in a message."""

import datetime as dt
import json
import math
import re

import pytest
from hypothesis import given, strategies as st

from django_jobs.serialization import (
    NotStorable,
    array_literal,
    decode,
    encode,
    encode_plain,
    encode_storable,
    find_problem,
    parse_timestamp,
    printable,
    shown,
    text_array_literal,
    timestamp_text,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4)
        | st.tuples(inner)
    ),
    max_leaves=8,
)


class TestEncode:
    @given(ANYTHING)
    def test_what_is_encoded_comes_back_and_everything_else_is_explained(self, value):
        problem = find_problem(value, "it")
        if problem is not None:
            assert "it" in problem
            assert encode_plain(value) is None
            with pytest.raises(NotStorable, match=f"^{re.escape(problem)}$"):
                encode_storable(value, "it")
        else:
            text = encode_storable(value, "it")
            assert repr(decode(text)) == repr(value)
            assert "\0" not in text
            assert text.encode().decode() == text

    @pytest.mark.parametrize("value", [{1}, object(), 1j])
    def test_never_guesses(self, value):
        with pytest.raises(TypeError):
            encode(value)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_never_writes_what_is_not_json(self, value):
        with pytest.raises(ValueError, match="Out of range float"):
            encode(value)

    def test_what_only_the_encoder_finds(self, monkeypatch):
        def refuse(value):
            raise RecursionError("maximum recursion depth exceeded")

        monkeypatch.setattr("django_jobs.serialization.encode", refuse)
        monkeypatch.setattr("django_jobs.serialization._encode_bounded", refuse)

        with pytest.raises(
            NotStorable, match=r"^the result can't be written as JSON: maximum recursion depth"
        ):
            encode_storable([1], "the result")


class TestDecode:
    def test_keeps_numbers_as_they_are_written(self):
        numbers = [1, 1.0, -0.0, 1e22, 10**30, 5e-324]

        assert repr(decode(json.dumps(numbers))) == repr(numbers)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "nul",
            "'a'",
            "[1,]",
            "NaN",
            "[Infinity]",
            '{"a": -Infinity}',
            "1" * 4301,
            "[" * 100_000,
            "\0",
        ],
        ids=lambda text: text[:12],
    )
    def test_what_is_not_json(self, text):
        with pytest.raises(ValueError):  # noqa: PT011 - whatever its message, it is never another error
            decode(text)


class TestTimestamps:
    @pytest.mark.parametrize(
        ("moment", "text"),
        [
            (dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC), "2031-05-06 07:08:09.000000"),
            (dt.datetime(2031, 5, 6, 7, 8, 9, 5, tzinfo=dt.UTC), "2031-05-06 07:08:09.000005"),
            (
                dt.datetime(2031, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
                "2030-12-31 23:00:00.000000",
            ),
        ],
    )
    def test_are_utc_with_six_digits(self, moment, text):
        assert timestamp_text(moment) == text
        assert parse_timestamp(text) == moment

    @given(st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(8999, 1, 1), timezones=st.timezones()))
    def test_come_back(self, moment):
        assert parse_timestamp(timestamp_text(moment)) == moment.astimezone(dt.UTC)

    @given(*[st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(8999, 1, 1), timezones=st.just(dt.UTC))] * 2)
    def test_sort_as_texts_as_they_do_as_times(self, one, other):
        assert (timestamp_text(one) < timestamp_text(other)) == (one < other)

    @pytest.mark.parametrize(
        ("value", "moment"),
        [
            (None, None),
            ("2031-05-06 07:08:09+00", dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC)),
            ("2031-05-06 07:08:09.5+00", dt.datetime(2031, 5, 6, 7, 8, 9, 500_000, tzinfo=dt.UTC)),
            ("2031-05-06 12:53:09.123456+05:45", dt.datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=dt.UTC)),
            (dt.datetime(2031, 5, 6, 7), dt.datetime(2031, 5, 6, 7, tzinfo=dt.UTC)),
        ],
    )
    def test_as_either_database_returns_them(self, value, moment):
        assert parse_timestamp(value) == moment

    def test_are_in_utc(self):
        moment = parse_timestamp("2031-05-06 07:08:09+05:45")

        assert moment is not None
        assert moment.tzinfo is dt.UTC


class TestPrintable:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("plain", "plain"),
            ("ä😀\n\t\x01", "ä😀\n\t\x01"),
            ("a\0b\0", "a\\x00b\\x00"),
            ("a\ud800b", "a\\ud800b"),
            ("ä\udcff\0", "ä\\udcff\\x00"),
        ],
    )
    def test_shows_what_a_database_can_not_hold(self, text, expected):
        assert printable(text) == expected

    @given(st.text())
    def test_is_always_storable(self, text):
        assert find_problem(printable(text), "it") is None


class TestShown:
    def test_is_the_representation(self):
        assert shown("a'b") == '"a\'b"'
        assert shown([1, None]) == "[1, None]"

    def test_is_not_longer_than_a_line(self):
        assert shown("x" * 1000) == f"'{'x' * 96}..."
        assert len(shown(list(range(1000)))) == 100

    @pytest.mark.parametrize("error", [RuntimeError, RecursionError, ValueError])
    def test_raises_nothing(self, error):
        class Contrary:
            def __repr__(self):
                raise error

        assert shown(Contrary()) == "<Contrary>"
        assert shown(10**5000) == "<int>"


class TestArrays:
    def test_of_numbers(self):
        assert array_literal([]) == "{}"
        assert array_literal([1, None, -2.5]) == "{1,NULL,-2.5}"

    def test_of_texts(self):
        assert text_array_literal([]) == "{}"
        assert text_array_literal(["a", None, 'b"\\,{}', "", "NULL"]) == r'{"a",NULL,"b\"\\,{}","","NULL"}'
