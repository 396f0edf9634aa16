"""Texts that are English as strings and in the reader's language on pages."""

import copy
import inspect
import json
import pickle

import pytest
from django.utils import translation
from django.utils.translation import gettext_lazy

from django_jobs import InvalidArguments, InvalidJob, InvalidSchedule, job, registry
from django_jobs.operations import Filter, InvalidFilter
from django_jobs.python_words import of_call, of_json
from django_jobs.serialization import NotStorable, decode, encode_storable
from django_jobs.texts import Grouped, Text, joined, ntext, of_recipe, text, translated

STATE = text("it has ended: %(state)s", state=Text("failed"))
SPENT = "it has spent %(count)d attempt already", "it has spent %(count)d attempts already"
TEXTS = [
    Text("Paused."),
    STATE,
    ntext(*SPENT, 1),
    ntext(*SPENT, 3),
    ntext("%(count)s job done", "%(count)s jobs done", Grouped(12_345)),
    joined(Text("Paused."), STATE),
    text("%(option)s of %(name)s", option="100 % (of) %s %(x)s", name="ü\0"),
]


@pytest.fixture
def german():
    with translation.override("de"):
        yield


def test_is_english_whatever_the_language_is(german):
    made = text("it has ended: %(state)s", state=Text("failed"))

    assert str(made) == f"{made}" == made == "it has ended: failed"
    assert type(str(InvalidJob(made))) is str
    assert str(InvalidJob(made)) == "it has ended: failed"


def test_is_translated_when_it_is_shown():
    error = InvalidJob(STATE)
    with translation.override("de"):
        assert error.translated == STATE.translated() == "bereits beendet: gescheitert"
    with translation.override("es"):
        assert error.translated == "ya terminó: fallido"
    with translation.override(None):
        assert error.translated == "it has ended: failed"


def test_forms_of_a_number(german):
    assert [str(ntext(*SPENT, number)) for number in (1, 2)] == [
        "it has spent 1 attempt already",
        "it has spent 2 attempts already",
    ]
    assert [ntext(*SPENT, number).translated() for number in (1, 2)] == [
        "schon 1 Versuch verbraucht",
        "schon 2 Versuche verbraucht",
    ]


def test_thousands_are_told_apart_as_the_language_does_it(german):
    done = ntext("%(count)s job done", "%(count)s jobs done", Grouped(12_345))

    assert (str(done), done.translated()) == ("12,345 jobs done", "12.345 Jobs erledigt")


def test_percents_in_what_is_filled_in_do_no_harm(german):
    made = text("%(option)s of %(name)s", option="100 % %s %(x)s", name="%")

    assert (str(made), made.translated()) == ("100 % %s %(x)s of %", "100 % %s %(x)s von %")
    assert joined("50 %", "%(a)s", by=" % ") == "50 % % %(a)s"
    assert Text("100 %").translated() == "100 %"


def test_an_error_stands_for_its_message(german):
    outer = InvalidArguments(text("tags of %(name)s: %(error)s", name="a", error=InvalidJob(STATE)))

    assert str(outer) == "tags of a: it has ended: failed"
    assert outer.translated == "tags von a: bereits beendet: gescheitert"


def test_a_plain_string_is_what_it_is(german):
    for error in (InvalidJob("no"), InvalidFilter("no"), NotStorable("no"), ValueError("no"), InvalidJob()):
        assert translated(error) == str(error)
    assert InvalidJob(gettext_lazy("failed")).translated == "gescheitert"
    assert InvalidSchedule("It is wrong.", "Mend it.", "x").translated == "It is wrong. Mend it."
    assert translated(5) == "5"


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_can_be_copied(copied, german):
    for each in TEXTS:
        other = copied(each)
        assert (type(other), other, other.translated()) == (Text, each, each.translated())
    error = copied(InvalidJob(STATE))
    assert (type(error), str(error), error.translated) == (InvalidJob, str(STATE), STATE.translated())
    schedule = copied(InvalidSchedule(STATE, Text("Paused."), "x"))
    assert (str(schedule), schedule.translated) == (
        "it has ended: failed Paused.",
        "bereits beendet: gescheitert Angehalten.",
    )
    assert (schedule.message, schedule.hint, schedule.code) == (STATE, "Paused.", "x")


@pytest.mark.parametrize("each", TEXTS)
def test_a_recipe_as_json_makes_it_again(each, german):
    other = of_recipe(json.loads(json.dumps(each.recipe)))

    assert (other, other.translated()) == (each, each.translated())


@pytest.mark.parametrize(
    "recipe",
    [
        None, 5, "text", [], {}, {"text": 5}, {"text": "a", "values": 5}, {"text": "a", "number": "x"},
        {"text": "%(a)s", "values": {"b": 1}}, {"text": "%(a)d", "values": {"a": "x"}}, {"text": "a", "plural": 5},
        {"text": "%(a)s", "values": {"a": None}}, {"text": "%(a)s", "values": {"a": [1]}},
        # It would be as long as somebody likes.
        {"text": "%(a)9999999d", "values": {"a": 1}}, {"text": "%(a)*d", "values": {"a": 1}},
        {"text": "%(a)s", "values": {"a": {"text": "%(a)9999999s", "values": {"a": ""}}}},
        {"text": "%(a)s", "plural": "%(a)9999999d", "values": {"a": 1}, "number": 2},
        {"text": "a" * 10_001}, {"text": "%(a)s", "values": {"a": "a" * 10_000}},
        {"text": "", "plural": "%(a)s" * 1_000, "values": {"a": "a" * 100}},
    ],
)  # fmt: skip
def test_what_is_no_recipe(recipe):
    assert of_recipe(recipe) is None


def test_a_recipe_of_anybody_s_is_formatted_and_no_more(german):
    assert of_recipe({"text": ""}).translated() == ""
    assert of_recipe({"text": "100 % anything"}).translated() == "100 % anything"
    deep = {"text": "x"}
    for _level in range(10_000):
        deep = {"text": "%(a)s", "values": {"a": deep}}
    assert of_recipe(deep) is None


@pytest.mark.parametrize(("levels", "times"), [(11, 1), (7, 10)])
def test_texts_within_texts_have_an_end(levels, times):
    """A few hundred characters could ask for any memory, and a few more for any depth."""
    recipe = {"text": "a"}
    for _level in range(levels - 1):
        recipe = {"text": "%(a)s" * times, "values": {"a": recipe}}

    assert of_recipe(recipe) is None
    assert of_recipe(recipe["values"]["a"]) is not None or times > 1


def test_another_catalogue_s_slip_shows_the_english(german, monkeypatch):
    monkeypatch.setattr("django_jobs.texts.gettext", lambda message: f"{message} %(other)s")

    assert STATE.translated() == "it has ended: failed"


class TestWhatPythonSays:
    """Word for word in English, and known: so that a page translates it."""

    def call(self, *args, **kwargs):
        def function(first, /, second, *, third):
            pass

        with pytest.raises(TypeError) as caught:
            inspect.signature(function).bind(*args, **kwargs)
        return caught.value

    @pytest.mark.parametrize(
        ("args", "kwargs"),
        [((), {}), ((1,), {}), ((1, 2), {}), ((1, 2, 3), {"third": 3}), ((1, 2), {"second": 2, "third": 3}),
         ((1, 2), {"third": 3, "a\nb": 4}), ((), {"first": 1, "second": 2, "third": 3})],
    )  # fmt: skip
    def test_of_a_call(self, args, kwargs, german):
        error = self.call(*args, **kwargs)
        words = of_call(error)

        assert words == str(error)
        assert isinstance(words, Text)
        assert words.translated() != str(words)

    @pytest.mark.parametrize(
        "written",
        [
            "",
            "[1 2]",
            '{"a" 1}',
            "{a: 1}",
            "[1] 2",
            '["a',
            '["\n"]',
            '["\\x"]',
            '["\\u12"]',
            '{"a": 1,}',
            "[1,]",
        ],
    )
    def test_of_json(self, written, german):
        with pytest.raises(json.JSONDecodeError) as caught:
            json.loads(written)
        words = of_json(caught.value)

        assert words == str(caught.value)
        assert "Zeile 1" in words.translated() or "Zeile 2" in words.translated()
        assert caught.value.msg not in words.translated()

    @pytest.mark.parametrize(
        ("written", "english", "german_words"),
        [
            ("[" * 100_000, "the JSON is nested too deeply", "das JSON ist zu tief geschachtelt"),
            ("[NaN]", "NaN is not JSON", "NaN ist kein JSON"),
            ("9" * 5000, "a number has more than 4300 digits", "eine Zahl hat mehr als 4300 Stellen"),
        ],
    )
    def test_and_of_what_the_decoder_refuses(self, written, english, german_words, german):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - Python's own has no other class
            decode(written)
        words = of_json(caught.value)

        assert (str(words), words.translated()) == (english, german_words)


def test_of_later_pythons_stays_as_it_is(german):
    assert of_call(TypeError("something new")) == "something new"
    assert translated(of_json(json.JSONDecodeError("Something new", "", 0))).startswith(
        "Something new: Zeile 1"
    )


@pytest.mark.parametrize(
    ("value", "english", "german_words"),
    [
        ({"a": ["\0"]}, "argument 'x'['a'][0] has a NUL character", "Argument 'x'['a'][0]: NUL-Zeichen"),
        ({"\0": 1}, "the key '\\x00' of argument 'x' has a NUL", "der Schlüssel '\\x00' von Argument 'x': NUL"),
        (float("inf"), "argument 'x' is inf, which JSON", "Argument 'x': inf kann in JSON nicht stehen"),
        (["\ud800"], "argument 'x'[0] has a lone surrogate (U+D800)", "Argument 'x'[0]: einzelnes Surrogat (U+D800)"),
    ],
)  # fmt: skip
def test_what_can_not_be_stored(value, english, german_words, german):
    with pytest.raises(NotStorable) as caught:
        encode_storable(value, text("argument %(name)s", name="'x'"))

    assert str(caught.value).startswith(english)
    assert caught.value.translated.startswith(german_words)


def test_the_whole_way_of_a_refusal(german):
    function = job(name="tests.texts")(lambda user, *, note="": None)
    try:
        with pytest.raises(InvalidArguments) as caught:
            function.enqueue(usr=1)
    finally:
        registry.remove(function)

    assert str(caught.value).startswith(
        "tests.texts: missing a required argument: 'user'; the parameters are ("
    )
    assert caught.value.translated.startswith(
        "tests.texts: ein verlangtes Argument fehlt: 'user'; die Parameter sind ("
    )
    with pytest.raises(InvalidFilter) as refused:
        Filter(priority=101)
    assert refused.value.translated == "priority ist 101; es muss eine ganze Zahl von -100 bis 100 sein."
