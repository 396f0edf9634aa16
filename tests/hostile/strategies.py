"""What nobody means to send: texts, values and objects of every shape, for hypothesis."""

import datetime as dt
import decimal
import enum
import uuid
from typing import Any

from hypothesis import strategies as st

#: Lengths about which the checks differ.
LIMITS = (19, 20, 100, 101, 200, 201, 222, 223, 224, 255, 256)

ODD_TEXTS = [
    "", " ", "\0", "a\0b", "\ud800", "a\udfffb", "\ud83d\ude00", "\U0001f600", "\u202eabc", "\u200b", "\u200d",
    "e\u0301",
    "\ufeff", "\ufffe", "\x1b[31m", "\r\n", "\n", "\t", "\x7f", "\x85", "\u2028", "İ", "ß", "ﬀ", "\u0345", "\u0600",
    "0", "-1", "+5", "٣", "²", "1e5", "1_0", "NaN", "Infinity", "-0", "null", "true", "[]", "{}", "[1", "{", "}",
    "{0}", "{first}",
    "%", "%s", "%(a)s", "%%", "_", "*", ",", ":", ";", "'", '"', "\\", "\\u0000", "\\x00", "$1", "?", "??", "--",
    "/*", "'; DROP TABLE x; --",
    "<script>alert(1)</script>", "{{ 7|add:7 }}", "{% now %}", "&amp;", "]]>", "<!--",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 40, "1" * 5000,
    "../../etc/passwd", "//evil.example", "/\\evil.example", "javascript:alert(1)", "http://evil.example/",
    "django_jobs.backoff", "os.system", "__class__", "__import__('os')", "tests.workload.jobs.nothing",
    *("x" * length for length in LIMITS), *("\U0001f600" * length for length in LIMITS),
    *("e\u0301" * length for length in LIMITS),
]  # fmt: skip
#: Any text that Python can have, halves of characters and all.
texts = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.text(st.characters(), max_size=30),
)
names = st.one_of(
    texts, st.text(st.characters(codec="utf-8"), max_size=300), st.from_regex(r"\A[\w.-]{1,60}\Z")
)


class Contrary:
    """Raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Halves:
    """Its representation can't be written anywhere."""

    def __repr__(self) -> str:
        return "\ud800\0"


class Word(str, enum.Enum):  # noqa: UP042 - the kind that StrEnum replaced, and formatted otherwise
    YES = "yes"


def deep(levels: int, kind: type = list) -> Any:
    """``levels`` lists, or dicts, in each other."""
    value: Any = kind()
    for _ in range(levels - 1):
        value = [value] if kind is list else {"a": value}
    return value


def endless() -> Any:
    """A list that contains itself."""
    value: list[Any] = []
    value.append(value)
    return value


#: Objects that no option and no argument can be.
WILD = [
    None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 1j, b"", b"\xff", bytearray(b"x"), (), (1, 2), set(),
    frozenset({1}),
    [], [None], {}, {"a": 1}, {1: 2}, {None: 1}, {"\0": 1}, {"\ud800": 1}, range(3), object, object(), Contrary(),
    Halves(), Word.YES,
    dt.date(2031, 1, 1), dt.time(1), dt.timedelta(1), dt.datetime(2031, 1, 1, tzinfo=dt.UTC), decimal.Decimal("NaN"),
    uuid.UUID(int=1), len, lambda *_: "", lambda *_, **__: "\0",
    10**4299, 10**4301, 2**70, 1e308, 5e-324, -0.0,
    deep(199), deep(200), deep(201), deep(202, dict), deep(100_000), endless(), "x" * 1_100_000,
]  # fmt: skip
wild = st.sampled_from(WILD)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.sampled_from([10**400, 1e22, -0.0, 5e-324]),
)
values = st.one_of(
    scalars,
    st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
        max_leaves=8,
    ),
    wild,
)
