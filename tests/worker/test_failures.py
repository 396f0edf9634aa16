"""What is recorded of a failed attempt: readable, bounded, and always storable."""

import datetime as dt
import json

import pytest

from django_jobs.serialization import Undecodable
from django_jobs.worker.failures import class_name, cut_middle, message_of, traceback_of, with_error
from tests.worker.fakes import NOW, WORKER, row

LIMIT = 10_000  # MAX_TRACEBACK_BYTES


class Unreadable(Exception):
    """Its text can't be had."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def __str__(self):
        raise self.error

    __repr__ = __str__


def raised(error, cause=None):
    """The exception with a traceback."""
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def storable(text):
    text.encode()  # no lone surrogate
    assert "\0" not in text
    return text


# -- names ------------------------------------------------------------------------------------------------------------


def test_an_exception_is_told_by_its_dotted_name_and_a_builtin_one_by_its_bare_name():
    class Local(Exception):
        pass

    assert class_name(ValueError("x")) == "ValueError"
    assert class_name(SystemExit) == "SystemExit"
    assert class_name(json.JSONDecodeError("x", "", 0)) == "json.decoder.JSONDecodeError"
    assert class_name(Local()).endswith("test_failures.test_an_exception_is_told_by_its_dotted_name_and_"
                                        "a_builtin_one_by_its_bare_name.<locals>.Local")  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        type("N" * 5000, (Exception,), {}),
        type("Odd", (Exception,), {"__module__": None}),
        type("Odd", (Exception,), {"__module__": 5}),
        type("Odd", (Exception,), {"__qualname__": "nul \0 surrogate \ud800"}),
    ],
)
def test_a_strange_name_is_storable_and_fits_the_column(kind):
    assert 0 < len(storable(class_name(kind()))) <= 200


def test_a_class_that_can_not_be_named_says_so():
    class Meta(type):
        @property
        def __module__(cls):
            raise SystemExit("gotcha")

    class Strange(Exception, metaclass=Meta):
        pass

    assert class_name(Strange()) == "(an exception whose class can't be named)"


# -- messages ---------------------------------------------------------------------------------------------------------


def test_a_message_is_kept():
    assert message_of(ValueError("über\n日本")) == "über\n日本"


@pytest.mark.parametrize(
    "error", [ValueError("second"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), None]
)
def test_a_message_that_can_not_be_read_says_so(error):
    text = message_of(Unreadable(error) if error else Unreadable(None))

    assert text.startswith("(its message can't be read: ")


def test_a_message_that_no_database_can_hold_is_escaped():
    assert storable(message_of(ValueError("a\0b\ud800c"))) == "a\\x00b\\ud800c"


@pytest.mark.parametrize("character", ["x", "é", "日", "😀", "\0", "\ud800"])
def test_a_long_message_is_cut_in_the_middle(character):
    text = message_of(ValueError("begin" + character * 10_000_000 + "end"))

    assert len(storable(text).encode()) <= 2000
    assert text.startswith("begin")
    assert text.endswith("end")
    assert " bytes cut ..." in text


def test_what_fits_is_not_cut():
    assert cut_middle("é" * 1000, 2000) == "é" * 1000
    assert "cut" in cut_middle("é" * 1001, 2000)


# -- tracebacks -------------------------------------------------------------------------------------------------------


def test_a_traceback_shows_the_line_and_the_cause():
    text = traceback_of(raised(ValueError("outer"), cause=raised(KeyError("inner"))))

    assert "raise error from cause" in text
    assert "KeyError: 'inner'" in text
    assert "The above exception was the direct cause" in text
    assert text.endswith("ValueError: outer\n")


def test_the_outermost_frames_can_be_left_out():
    def outer():
        inner()

    def inner():
        raise ValueError("x")

    with pytest.raises(ValueError, match="x") as caught:
        outer()
    assert "in outer" in traceback_of(caught.value, ours=False), "only the worker's own frames are left out"
    assert "in inner" in traceback_of(caught.value, ours=False)


def test_causes_in_a_circle_end():
    first, second = raised(ValueError("first")), raised(ValueError("second"))
    first.__cause__, second.__cause__ = second, first

    assert "ValueError: first" in traceback_of(first)


def test_a_chain_of_thousands_of_causes_is_cut():
    error = raised(ValueError("0"))
    for number in range(5000):
        error = raised(ValueError(str(number)), cause=error)

    text = traceback_of(error)

    assert len(text.encode()) <= LIMIT
    assert text.endswith("ValueError: 4999\n")


def test_groups_deep_in_groups_are_recorded():
    error = raised(ValueError("innermost"))
    for _ in range(3000):
        error = ExceptionGroup("group", [error])

    assert 0 < len(storable(traceback_of(error)).encode()) <= LIMIT


def test_endless_recursion_is_recorded():
    def endless(number):
        return endless(number + 1)

    with pytest.raises(RecursionError) as caught:
        endless(0)
    text = traceback_of(caught.value)

    assert len(text.encode()) <= LIMIT
    assert "RecursionError" in text


@pytest.mark.parametrize("character", ["x", "日", "\0", "\ud800"])
def test_a_traceback_of_ten_megabytes_is_cut_to_the_setting(character, settings):
    settings.DJANGO_JOBS = {"MAX_TRACEBACK_BYTES": 700}

    text = traceback_of(raised(ValueError("begin" + character * 10_000_000 + "end")))

    assert len(storable(text).encode()) <= 700
    assert text.startswith("Traceback (most recent call last)")
    assert text.endswith("end\n")


@pytest.mark.parametrize("error", [ValueError("second"), SystemExit(3), KeyboardInterrupt()])
def test_an_unreadable_exception_has_a_traceback_all_the_same(error):
    assert "Unreadable" in traceback_of(raised(Unreadable(error)))


# -- the list of errors -----------------------------------------------------------------------------------------------


def entries(text):
    return json.loads(storable(text))


def numbers(text):
    return [entry["number"] for entry in entries(text)]


def test_the_first_error_of_a_job():
    (entry,) = entries(with_error(row(3, attempt=2), "ValueError", "no", "Traceback ...", NOW))

    assert entry == {
        "number": 1,
        "attempt": 2,
        "at": NOW.isoformat(timespec="microseconds"),
        "attempted_at": "2031-05-06T07:08:10+00:00",
        "worker": WORKER,
        "class": "ValueError",
        "message": "no",
        "traceback": "Traceback ...",
    }


def test_errors_are_numbered_on_and_earlier_ones_stay_as_they_are():
    first = with_error(row(), "ValueError", "no")
    second = with_error(row(errors=first), "KeyError", "neither")

    assert numbers(second) == [1, 2]
    assert entries(second)[0] == entries(first)[0]


@pytest.mark.parametrize("most", [2, 3, 5])
def test_the_first_and_the_newest_are_kept(settings, most):
    settings.DJANGO_JOBS = {"MAX_ERRORS": most}
    errors = None
    for _ in range(10):
        errors = with_error(row(errors=errors), "ValueError", "no")

    assert numbers(errors) == [1, *range(12 - most, 11)]


def test_ten_thousand_errors_that_were_there_are_brought_down_to_the_bound(settings):
    settings.DJANGO_JOBS = {"MAX_ERRORS": 4}
    before = json.dumps([{"number": number} for number in range(1, 10_001)])

    assert numbers(with_error(row(errors=before), "ValueError", "no")) == [1, 9_999, 10_000, 10_001]


@pytest.mark.parametrize(
    "before",
    [
        "{}", '{"a": 1}', "[]", "null", "5", '"text"', "true", "[1, null, [2]]", "no JSON", "[NaN]",
        Undecodable("[\\xff"), "[" * 3000, b"[]", b"\xff",
    ],
)  # fmt: skip
def test_what_somebody_else_wrote_there_does_not_keep_an_error_from_being_recorded(before):
    assert numbers(with_error(row(errors=before), "ValueError", "no")) == [1]


@pytest.mark.parametrize(
    ("number", "after"),
    [("null", 2), ('"7"', 2), ("1.5", 2), ("true", 2), ("-5", 2), ("9" * 4299, 2), ("[]", 2), ("7", 8)],
)
def test_a_strange_number_is_not_counted_on(number, after):
    text = with_error(row(errors=f'[{{"number": {number}}}]'), "ValueError", "no")

    assert numbers(text)[-1] == after


def test_escapes_in_earlier_errors_that_are_no_text_stay_storable():
    before = '[{"number": 1, "message": "nul \\u0000 surrogate \\ud800"}]'

    first, second = entries(with_error(row(errors=before), "ValueError", "no"))

    assert first["message"] == "nul \0 surrogate \ud800"
    assert second["number"] == 2


def test_an_error_is_recorded_where_the_time_of_the_attempt_can_not_be_read():
    for broken in ("soon", 5, b"\xff"):
        (entry,) = entries(with_error(row(attempted_at=broken), "ValueError", "no"))
        assert entry["attempted_at"] is None


def test_the_time_of_an_error_is_now_by_default():
    (entry,) = entries(with_error(row(attempted_at=None), "ValueError", "no"))

    assert dt.datetime.fromisoformat(entry["at"]).tzinfo is not None
    assert entry["attempted_at"] is None


@pytest.mark.parametrize("large", ["traceback", "message"])
def test_all_errors_together_are_bounded_in_bytes(large, settings):
    settings.DJANGO_JOBS = {"MAX_ERRORS": 1000, "MAX_TRACEBACK_BYTES": 1_000_000}
    before = [
        {"number": number, "message": "", "traceback": "", large: "é" * 10_000} for number in range(1, 500)
    ]

    text = with_error(row(errors=json.dumps(before)), "ValueError", "new", "x" * 1_000_000)

    assert len(text.encode()) <= 2_000_000
    errors = json.loads(text)
    assert (errors[0]["number"], errors[-1]["number"]) == (1, 500)
    assert len(errors[-1]["traceback"]) == 1_000_000, "the new one is kept whole"
