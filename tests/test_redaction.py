"""Secrets are hidden by the names they go by, wherever they come up."""

import json

import pytest

from django_jobs import InvalidJob, job, registry
from django_jobs.models import Job
from django_jobs.redaction import HIDDEN, TOO_DEEP, Redactor, Shown, names
from django_jobs.serialization import Undecodable
from django_jobs.store.rows import JOB_COLUMNS, JobRow


@pytest.fixture
def define():
    """Define job functions that are forgotten when the test ends."""
    made = []

    def define(function, **options):
        made.append(job(name=f"tests.redaction.{len(made)}", **options)(function))
        return made[-1]

    yield define
    for definition in made:
        registry.remove(definition)


def row(**columns):
    """A job as a statement returns it; JSON columns are given decoded, or as texts."""
    values = dict.fromkeys(JOB_COLUMNS)
    values.update(id=1, name="unknown", args="[]", kwargs="{}", state="failed", attempt=1, max_attempts=5)
    values.update(
        {
            name: json.dumps(value) if isinstance(value, dict | list) else value
            for name, value in columns.items()
        }
    )
    return JobRow(tuple(values.values()))


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "user_password", "userPassword", "newpassword", "password2", "Password-Hash",
        "passwords", "token", "access_token", "accessToken", "accesstoken", "csrfmiddlewaretoken", "token_id",
        "secret", "clientSecret", "AWS_SECRET_ACCESS_KEY", "api_key", "apikey", "X-API-Key", "APIKey", "stripeApiKey",
        "Authorization", "Proxy-Authorization", "auth", "basic_auth", "cookie", "Set-Cookie", "sessionid", "pin",
        "cardNumber",
    ],
)  # fmt: skip
def test_names_that_are_hidden(name):
    assert Redactor(names()).hides(name)


@pytest.mark.parametrize(
    "name",
    ["author", "authors", "max_tokens", "tokenizer", "secretary", "pinned", "spin", "opinion", "passing", "key",
     "user_id", "", "cookiecutter", "oauthor", "é", "密码"],
)  # fmt: skip
def test_names_that_are_not(name):
    assert not Redactor(names()).hides(name)


def test_by_keys_at_any_depth_and_only_where_there_is_something():
    value = {
        "user": {"name": "ann", "password": "hunter22", "old": [{"api_key": ["a", "b"]}]},
        "token": None,
        "secret": "",
        "n": 2**70,
    }
    assert Redactor(names()).value(value) == {
        "user": {"name": "ann", "password": HIDDEN, "old": [{"api_key": HIDDEN}]},
        "token": None,
        "secret": "",
        "n": 2**70,
    }


def test_positional_arguments_by_their_parameters(define):
    def login(context, user, password, *tokens, note=None):
        pass

    definition = define(login, takes_context=True)
    shown = Shown(row(name=definition.name, args=["ann", "hunter22", {"pin": 1234}], kwargs={"note": "x"}))
    assert shown.args == ["ann", HIDDEN, {"pin": HIDDEN}]
    assert shown.kwargs == {"note": "x"}

    def rest(*secret):
        pass

    assert Shown(row(name=define(rest).name, args=["a", "b"])).args == [HIDDEN, HIDDEN]


def test_by_what_the_function_says(define):
    definition = define(lambda iban_of, note: None, redact=["iban_of", "inner"])
    shown = Shown(row(name=definition.name, args=["DE02", {"inner": 1, "outer": 2}]))
    assert shown.args == [HIDDEN, {"inner": HIDDEN, "outer": 2}]
    assert Shown(row(args=["DE02", {"inner": 1}])).args == ["DE02", {"inner": 1}]


def test_everything_of_a_function_that_says_so(define):
    definition = define(lambda *args, **kwargs: None, redact=True)
    shown = Shown(
        row(
            name=definition.name,
            args=[1, "two"],
            kwargs={"a": None},
            result="three",
            metadata={"progress": 1},
        )
    )
    assert (shown.args, shown.kwargs, shown.result) == ([HIDDEN, HIDDEN], {"a": HIDDEN}, HIDDEN)
    assert shown.metadata == {"progress": 1}
    assert Shown(row(name=definition.name)).result is None
    assert Shown(row(name=definition.name, args="[1,")).args == HIDDEN


def test_a_hidden_value_does_not_come_again_in_errors_tags_or_key():
    secret, number = "hunter'22", 123456789
    shown = Shown(
        row(
            kwargs={"password": secret, "pin": number, "otp": "22"},
            errors=[
                {
                    "message": f"bad {secret} {secret!r} or {number}, in 22 s",
                    "traceback": f"x\n{secret}\n",
                    "attempt": 1,
                }
            ],
            tags=[f"of:{secret}", "plain"],
            unique_key=f"login:{secret}",
        )
    )
    error = shown.errors[0]
    assert secret not in json.dumps(shown.errors)
    assert f"{number}" not in error["message"]
    assert error["message"].endswith("in 22 s"), "what is short stands in many places"
    assert error["attempt"] == 1
    assert shown.tags == [f"of:{HIDDEN}", "plain"]
    assert shown.unique_key == f"login:{HIDDEN}"


def test_with_very_many_hidden_values_texts_are_hidden_whole():
    shown = Shown(
        row(kwargs={"tokens_of": {"token": [f"secret {n}" for n in range(5000)]}}, unique_key="key")
    )
    assert shown.unique_key == HIDDEN


def test_what_does_not_decode_is_hidden_if_it_names_what_is():
    assert Shown(row(kwargs='{"user_password": "hunter')).kwargs == HIDDEN
    assert Shown(row(kwargs='{"user": "ann')).kwargs == Undecodable('{"user": "ann')


def test_depth_that_only_foreign_sql_can_write():
    text = "[" * 600 + "1" + "]" * 600
    shown = Shown(row(metadata=text, unique_key="key"))
    value = shown.metadata
    while isinstance(value, list):
        value = value[0]
    assert value in (TOO_DEEP, text)
    assert shown.unique_key == "key"


class TestSetting:
    def test_adds_to_the_usual_names_and_takes_out_of_them(self, settings):
        settings.DJANGO_JOBS = {"REDACT": ["shoe_size", "-pin", "-api-key"]}
        redactor = Redactor.of("unknown")
        assert redactor.value({"shoeSize": 44, "pin": 1, "api_key": "k", "token": "t"}) == {
            "shoeSize": HIDDEN,
            "pin": 1,
            "api_key": "k",
            "token": HIDDEN,
        }

    def test_none_hides_nothing_but_what_functions_say(self, settings, define):
        settings.DJANGO_JOBS = {"REDACT": None}
        definition = define(lambda a: None, redact=["a"])
        assert Redactor.of("unknown").value({"password": "x"}) == {"password": "x"}
        assert Shown(row(name=definition.name, args=[1])).args == [HIDDEN]

    def test_must_be_a_list(self, settings):
        settings.DJANGO_JOBS = {"REDACT": "password"}
        with pytest.raises(Exception, match="a list of names"):
            names()


@pytest.mark.parametrize("redact", ["password", 5, [""], [5], ["--"], None])
def test_an_option_that_can_not_be_meant(redact):
    with pytest.raises(InvalidJob, match="redact of tests"):
        job(name="tests.redaction.bad", redact=redact)(lambda: None)
    assert "tests.redaction.bad" not in registry


@pytest.mark.django_db
def test_the_command_hides_too(define, capsys):
    from django.core.management import call_command

    definition = define(lambda user, password: None)
    made = definition.enqueue("ann", "hunter22")
    Job.objects.filter(pk=made.id).update(errors=[{"message": "bad hunter22", "number": 1}])
    for options in ([], ["--json"]):
        call_command("jobs", "show", str(made.id), *options)
        printed = capsys.readouterr().out
        assert "ann" in printed
        assert HIDDEN in printed
        assert "hunter22" not in printed
    assert Job.objects.get(pk=made.id).args == ["ann", "hunter22"]
