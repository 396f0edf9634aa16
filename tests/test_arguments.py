"""Whether arguments fit the function, whether they can be stored, and what the error says."""

import collections
import datetime as dt
import decimal
import enum
import uuid
from pathlib import PurePosixPath
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.forms.utils import ErrorList
from django.http import QueryDict
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from django_jobs import InvalidArguments, InvalidJob
from django_jobs.arguments import Arguments
from tests.worker.fakes import row

PLENTY = 1_000_000


def encode(*args, most_bytes=PLENTY, **kwargs):
    return Arguments(lambda a=None, *rest, **named: None).encode(args, kwargs, most_bytes)


def refusal(function, *args, **kwargs):
    with pytest.raises(InvalidArguments) as refused:
        Arguments(function).fit(args, kwargs)
    return str(refused.value)


def problem(*args, **kwargs):
    with pytest.raises(InvalidArguments) as refused:
        encode(*args, **kwargs)
    return str(refused.value)


def as_id(value):
    return value[:30] if type(value) is str and value.isprintable() else type(value).__name__


def nested(levels, inside=list):
    """``levels`` lists, or dicts, in each other."""
    value = inside()
    for _ in range(levels - 1):
        value = [value] if inside is list else {"a": value}
    return value


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Word(enum.StrEnum):
    YES = "yes"


class OldWord(str, enum.Enum):  # noqa: UP042 - the kind that StrEnum replaced, and formatted otherwise
    YES = "yes"


class Point(collections.namedtuple("Point", "x y")):
    __slots__ = ()


class Contrary:
    """Raises whatever is asked of it."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")


class OddInt(int):
    def __repr__(self):
        return "odd"

    __str__ = __repr__


class OddFloat(float):
    """As NumPy's float64: a float with a representation of its own."""

    def __repr__(self):
        return f"np.float64({float(self)})"

    __str__ = __repr__


class OddStr(str):
    __slots__ = ()

    def __repr__(self):
        return "odd"

    __str__ = __repr__


class TestFit:
    @pytest.mark.parametrize(
        ("function", "args", "kwargs"),
        [
            (lambda: 0, [], {}),
            (lambda a, b=1: 0, [1], {}),
            (lambda a, b=1: 0, [1, 2], {}),
            (lambda a, b=1: 0, [], {"a": 1}),
            (lambda a, b=1: 0, [1], {"b": 2}),
            (lambda a, /, b: 0, [1, 2], {}),
            (lambda a, /, b: 0, [1], {"b": 2}),
            (lambda a, /, **named: 0, [1], {"a": 2}),
            (lambda *args: 0, range(500), {}),
            (lambda *, key: 0, [], {"key": 1}),
            (lambda *, key=1: 0, [], {}),
            (lambda **named: 0, [], {"self": 1, "args": 2, "function": 3}),
        ],
    )
    def test_what_the_function_takes(self, function, args, kwargs):
        Arguments(function).fit(args, kwargs)

    @pytest.mark.parametrize(
        ("function", "args", "kwargs", "message"),
        [
            (
                lambda user_id: 0,
                [],
                {},
                "missing a required argument: 'user_id'; the parameters are (user_id)",
            ),
            (lambda a, b=1: 0, [1, 2, 3], {}, "too many positional arguments; the parameters are (a, b=1)"),
            (lambda a: 0, [1], {"a": 1}, "multiple values for argument 'a'; the parameters are (a)"),
            (lambda a: 0, [1], {"x": 1}, "got an unexpected keyword argument 'x'; the parameters are (a)"),
            (
                lambda a: 0,
                [1],
                {"run_after": 5},
                (
                    "got an unexpected keyword argument 'run_after'; the parameters are (a). Options come before: "
                    ".using(run_after=...)"
                ),
            ),
            (lambda *, key: 0, [1], {}, "too many positional arguments; the parameters are (*, key)"),
            (lambda: 0, [1], {}, "too many positional arguments; the parameters are ()"),
        ],
    )
    def test_what_it_does_not_take(self, function, args, kwargs, message):
        assert refusal(function, *args, **kwargs) == message

    def test_what_is_positional_only(self):
        assert "the parameters are (a, /)" in refusal(lambda a, /: 0, a=1)

    def test_a_required_keyword_that_is_missing(self):
        assert "'key'; the parameters are (*, key)" in refusal(lambda *, key: 0)

    def test_is_an_invalid_job_and_a_type_error(self):
        with pytest.raises(InvalidJob):
            Arguments(lambda: 0).fit([1], {})
        with pytest.raises(TypeError):
            Arguments(lambda: 0).fit([1], {})

    def test_the_leading_argument_is_the_workers(self):
        arguments = Arguments(lambda context, a, *, b=1: 0, skip=1)

        arguments.fit([1], {"b": 2})
        assert str(arguments.signature) == "(a, *, b=1)"
        with pytest.raises(InvalidArguments, match="too many positional arguments"):
            arguments.fit([1, 2], {})

    def test_the_leading_argument_cannot_be_given_by_name(self):
        with pytest.raises(InvalidArguments, match="multiple values for argument 'context'"):
            Arguments(lambda context, **named: 0, skip=1).fit([], {"context": 1})
        Arguments(lambda context, /, **named: 0, skip=1).fit([], {"context": 1})

    def test_names_that_are_no_strings(self):
        with pytest.raises(InvalidArguments, match="keywords must be strings"):
            Arguments(lambda **named: 0).fit([], {1: 2})  # type: ignore[dict-item]


class TestEncode:
    def test_is_compact_json(self):
        assert encode(1, "two", key=[None, True, 1.5, {"ä": "😀"}]) == (
            '[1,"two"]',
            '{"key":[null,true,1.5,{"ä":"😀"}]}',
        )
        assert encode() == ("[]", "{}")

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (Number.ONE, "1"),
            (Word.YES, '"yes"'),
            (OldWord.YES, '"yes"'),
            (OddInt(5), "5"),
            (OddFloat(1.5), "1.5"),
            (OddStr("ä"), '"ä"'),
            (mark_safe("<b>"), '"<b>"'),
            (collections.OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
            (collections.defaultdict(list, a=[1]), '{"a":[1]}'),
            (collections.Counter("aab"), '{"a":2,"b":1}'),
            ({Word.YES: OldWord.YES}, '{"yes":"yes"}'),
            ([[Number.ONE]], "[[1]]"),
            (-0.0, "-0.0"),
            (1e22, "1e+22"),
            (2**70, "1180591620717411303424"),
            ("\\u0000 is not NUL", '"\\\\u0000 is not NUL"'),
            ("\x01\x7f\x80\ufffe\uffff", '"\\u0001\x7f\x80\ufffe\uffff"'),
        ],
    )
    def test_what_is_equal_to_a_value_of_json_comes_as_that(self, value, text):
        assert encode(value) == (f"[{text}]", "{}")
        assert encode(key=value) == ("[]", f'{{"key":{text}}}')

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("a\0b", "has a NUL character at position 1, which a database's text can't hold. Remove it."),
            (
                "a\ud800",
                "has a lone surrogate (U+D800) at position 1, which is not text. Decode the bytes it came",
            ),
            (OddStr("a\0"), "has a NUL character at position 1"),
            (OddStr("\udfff"), "has a lone surrogate (U+DFFF) at position 0"),
            ("\ud83d\ude00", "has a lone surrogate (U+D83D) at position 0"),
            (float("nan"), "is nan, which JSON can't hold. Pass None, or a string"),
            (float("inf"), "is inf, which JSON can't hold"),
            (OddFloat("-inf"), "is -inf, which JSON can't hold"),
            (
                10**4300,
                "is an integer of more than 4,300 digits, which Python does not write. Pass it in hexadecimal",
            ),
            ((1, 2), "is of type tuple, which is not JSON. It would come back as a list: pass a list."),
            (Point(1, 2), "is of type Point, which is not JSON. It would come back as a list: pass a list."),
            ({1}, "is of type set, which is not JSON. Pass a sorted list."),
            (frozenset(), "is of type frozenset"),
            (b"x", "is of type bytes, which is not JSON. Pass text, or base64."),
            (
                dt.datetime(2031, 1, 1, tzinfo=dt.UTC),
                "is of type datetime, which is not JSON. Pass .isoformat()",
            ),
            (dt.date(2031, 1, 1), "is of type date"),
            (dt.timedelta(1), "is of type timedelta, which is not JSON. Pass .total_seconds()."),
            (decimal.Decimal(1), "is of type Decimal, which is not JSON. Pass str(value)."),
            (uuid.UUID(int=1), "is of type UUID, which is not JSON. Pass str(value)."),
            (PurePosixPath("a"), "is of type PurePosixPath, which is not JSON. Pass str(value)."),
            (Colour.RED, "is of type Colour, which is not JSON. Pass .value."),
            (
                gettext_lazy("yes"),
                "is of type __proxy__, which is not JSON. It is a lazy string: pass str(value).",
            ),
            (
                Group(pk=1),
                "is of type Group, which is not JSON. It is a model instance: pass its pk and load it",
            ),
            (
                Group.objects.all(),
                "is of type QuerySet, which is not JSON. Pass list(queryset.values_list('pk',",
            ),
            (
                QueryDict("a=1&a=2"),
                "is of type QueryDict, which is not JSON. It has lists of values: pass .dict(), or",
            ),
            (ErrorList(["wrong"]), "is of type ErrorList, which is not JSON. It is read in a way of its own"),
            (
                row(),
                "is of type JobRow, which is not JSON. It is a job: pass its id, and read it with django_jobs.op",
            ),
            ((number for number in [1]), "is of type generator, which is not JSON. Pass list(value)."),
            (
                range(3),
                "is of type range, which is not JSON. Pass what JSON has: text, numbers, booleans, None, lists",
            ),
            (Contrary(), "is of type Contrary, which is not JSON. Pass what JSON has"),
            (print, "is of type builtin_function_or_method, which is not JSON"),
            (
                {1: "a"},
                "has the key 1 of type int; JSON keys are strings, and it would come back as one. Use str keys.",
            ),
            ({None: 1}, "has the key None of type NoneType"),
            ({True: 1}, "has the key True of type bool"),
            ({(1, 2): 1}, "has the key (1, 2) of type tuple"),
            ({Contrary(): 1}, "has the key <Contrary> of type Contrary"),
        ],
        ids=as_id,
    )
    def test_what_can_not_be_stored(self, value, message):
        assert problem(value).startswith(f"argument 'a' {message}")
        assert problem(key=value).startswith(f"argument 'key' {message}")
        assert problem([0, {"x": [value]}]).startswith(f"argument 'a'[1]['x'][0] {message}")

    @pytest.mark.parametrize("key", ["\0", "\ud800", OddStr("\0")])
    def test_keys_that_are_no_text(self, key):
        assert problem({key: 1}).startswith(f"the key {key!r} of argument 'a' has a ")

    def test_a_lazy_object_is_not_evaluated(self):
        def load():
            raise AssertionError("evaluated")

        assert problem(SimpleLazyObject(load)) == (
            "argument 'a' is of type SimpleLazyObject, which is not JSON. It is evaluated when it is used: pass what "
            "it stands for, of a model instance the pk."
        )

    @pytest.mark.parametrize("inside", [list, dict])
    def test_nesting_has_a_limit(self, inside):
        deepest = nested(200, inside)

        assert encode(deepest, key=deepest)
        assert problem(nested(201, inside)) == (
            "argument 'a' is nested more than 200 levels deep, or contains itself. Pass it flat, or as text."
        )
        assert problem(key=nested(201, inside)).startswith(
            "argument 'key' is nested more than 200 levels deep"
        )

    def test_nesting_far_beyond_the_limit(self):
        assert "nested more than 200 levels deep" in problem(nested(100_000))

    @pytest.mark.parametrize("inside", [list, dict])
    def test_what_contains_itself(self, inside):
        value = inside()
        for number in range(3):
            value.append(value) if inside is list else value.update({str(number): value})

        assert "nested more than 200 levels deep, or contains itself" in problem(value)

    def test_the_argument_is_named_as_the_function_names_it(self):
        arguments = Arguments(lambda context, first, *rest: None, skip=1)

        for args, name in (([set()], "'first'"), ([1, set()], "0 of *rest"), ([1, 2, set()], "1 of *rest")):
            with pytest.raises(InvalidArguments) as refused:
                arguments.encode(args, {}, PLENTY)
            assert str(refused.value).startswith(f"argument {name} is of type set")

    @pytest.mark.parametrize("name", ["\0", "a\ud800"])
    def test_the_name_of_an_argument_is_checked_too(self, name):
        assert problem(**{name: 1}).startswith(f"the name {name!r} of an argument has a ")

    def test_what_is_given_is_left_as_it_was(self):
        args: list[Any] = [[1], {"a": Number.ONE}]
        kwargs = {"key": {"b": 2}}

        Arguments(lambda *args, **kwargs: None).encode(args, kwargs, PLENTY)

        assert (args, kwargs) == ([[1], {"a": Number.ONE}], {"key": {"b": 2}})
        assert type(args[1]["a"]) is Number


class TestSize:
    def test_up_to_the_limit(self):
        assert encode("x" * 96, most_bytes=102) == (f'["{"x" * 96}"]', "{}")  # 100 bytes, and 2 for {}

    def test_over_the_limit(self):
        message = problem("x" * 97, most_bytes=102)

        assert message == (
            "the arguments are 103 bytes as JSON, over the limit of 102 (the largest is argument 'a'). Store the data "
            "and pass its key, or raise DJANGO_JOBS['MAX_ARGUMENT_BYTES']."
        )

    def test_is_counted_in_bytes(self):
        assert encode("ä" * 48, most_bytes=102)
        assert "the arguments are 104 bytes" in problem("ä" * 49, most_bytes=102)
        assert "the arguments are 406 bytes" in problem("😀" * 100, most_bytes=405)

    def test_of_all_arguments_together(self):
        assert "the largest is argument 'large'" in problem("x" * 40, most_bytes=100, large="x" * 50)
        assert "the largest is argument 1 of *rest" in problem("x", 2, "x" * 100, most_bytes=100)
