"""The form of a waiting job: checked as an enqueue is, fenced, and blind to what is hidden."""

import datetime as dt
import json

import pytest
from django.test import Client
from django.utils import timezone

from django_jobs import operations
from django_jobs.admin.job_edit import Moved, restored
from django_jobs.models import Job
from django_jobs.redaction import HIDDEN
from tests.admin.conftest import entries, text_of, told, url, user_with

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def fields(client, id_):
    """The form as it comes, to be sent back."""
    response = client.get(url("job_edit", id_))
    assert response.status_code == 200
    form = response.context["form"]
    return {
        name: form[name].value() if name != "run_after" else shown(form[name].value()) for name in form.fields
    }


def shown(moment):
    """A moment as the form has it."""
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    return local.strftime("%Y-%m-%dT%H:%M:%S")


def send(client, id_, **changes):
    return client.post(url("job_edit", id_), {**fields(client, id_), **changes}, follow=True)


def errors(response):
    return " ".join(str(error) for each in response.context["form"].errors.values() for error in each)


def test_all_of_it(admin, greet):
    id_ = greet.enqueue("ann").id
    moment = (timezone.now() + HOUR).replace(microsecond=0)
    response = send(
        admin, id_, queue_name="mail", priority="-7", run_after=shown(moment), max_attempts="9",
        args=f'["bob", {2**70}]', kwargs='{"note": "☃"}',
    )  # fmt: skip
    assert told(response) == [f"Job {id_} was changed."]
    assert response.redirect_chain[-1][0] == url("job_change", id_)
    row = operations.get(id_)
    assert (row.queue_name, row.priority, row.max_attempts, row.state) == ("mail", -7, 9, "scheduled")
    assert (row.run_after, row.args, row.kwargs) == (moment, ["bob", 2**70], {"note": "☃"})
    assert entries() == [
        (
            str(id_),
            f"{greet.name} ({id_})",
            "Edited: queue, priority, run after, most attempts, positional arguments, keyword arguments.",
        )
    ]


@pytest.mark.parametrize("state", ["pending", "scheduled", "available"])
def test_only_what_was_changed(admin, make, state):
    (id_,) = make(state, run_after=timezone.now() + HOUR)
    before = operations.get(id_)
    assert told(send(admin, id_)) == ["Nothing was changed."]
    assert operations.get(id_) == before
    send(admin, id_, priority="3")
    after = operations.get(id_)
    assert (after.run_after, after.state, after.priority) == (before.run_after, state, 3)
    assert entries()[0][2] == "Edited: priority."


def test_in_the_time_zone_of_the_user(admin, greet):
    id_ = greet.enqueue("ann").id
    response = admin.get(url("job_edit", id_))
    assert "In the time zone UTC." in text_of(response)
    assert 'type="datetime-local"' in text_of(response)


class TestWhoAndWhat:
    def test_needs_the_permission(self, greet):
        id_ = greet.enqueue("ann").id
        client = Client()
        for permissions in (("view_job", "retry_job"), ("edit_job",)):
            client.force_login(user_with(*permissions))
            assert client.get(url("job_edit", id_)).status_code == 403
            assert client.post(url("job_edit", id_), {"priority": 5}).status_code == 403
        assert operations.get(id_).priority == 0
        client.force_login(user_with("view_job", "edit_job"))
        assert client.get(url("job_edit", id_)).status_code == 200
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(user_with("view_job", "edit_job"))
        assert strict.post(url("job_edit", id_), {"priority": 5}).status_code == 403

    @pytest.mark.parametrize("state", ["running", "completed", "failed", "cancelled"])
    def test_only_what_waits(self, admin, make, state):
        (id_,) = make(state)
        response = admin.get(url("job_edit", id_), follow=True)
        assert f"this one is {state}" in told(response)[0]
        response = admin.post(url("job_edit", id_), {"priority": 5}, follow=True)
        assert response.redirect_chain[-1][0] == url("job_change", id_)
        assert operations.get(id_).priority == 0

    def test_a_job_that_is_gone(self, admin):
        assert "There is no job" in told(admin.get(url("job_edit", 987654321), follow=True))[0]
        assert "There is no job" in told(admin.get(url("job_edit", 2**64), follow=True))[0]


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"args": "[1,"}, "This is no JSON"),
            ({"args": '{"a": 1}'}, "Write a list"),
            ({"kwargs": "[1]"}, "Write an object"),
            ({"args": "[NaN]"}, "NaN is not JSON"),
            ({"args": "[" * 3000}, "This is no JSON"),
            ({"args": '["\\ud800"]'}, "lone surrogate"),
            ({"args": '["\\u0000"]'}, "NUL"),
            ({"args": "[]"}, "missing a required argument: 'user'"),
            ({"args": "[1, 2, 3, 4]"}, "too many positional"),
            ({"kwargs": '{"nobody": 1}'}, "unexpected keyword argument 'nobody'"),
            ({"kwargs": '{"user": 1}'}, "multiple values for argument 'user'"),
            ({"args": json.dumps(["x" * 1_000_001])}, "over the limit"),
            ({"priority": "101"}, "less than or equal to 100"),
            ({"priority": "high"}, "whole number"),
            ({"max_attempts": "0"}, "attempts already"),
            ({"max_attempts": "99999"}, "less than or equal"),
            ({"queue_name": ""}, "required"),
            ({"queue_name": "a,b"}, "can't be written"),
            ({"queue_name": "q" * 101}, "at most 100 characters"),
            ({"queue_name": "a\0"}, "Null characters"),
            ({"run_after": "yesterday"}, "valid date/time"),
            ({"run_after": "9999-01-01T00:00:00"}, "between the years 1970 and 9000"),
            ({"run_after": "0001-01-01T00:00"}, "between the years 1970 and 9000"),
        ],
    )
    def test_what_an_enqueue_would_refuse_too(self, admin, greet, changes, message):
        id_ = greet.enqueue("ann").id
        before = operations.get(id_)
        response = send(admin, id_, **changes)
        assert message in errors(response)
        assert operations.get(id_) == before
        assert entries() == []
        assert 'role="alert"' in text_of(response)

    def test_what_was_written_comes_back(self, admin, greet):
        id_ = greet.enqueue("ann").id
        response = send(admin, id_, args='["</textarea><script>alert(1)</script>", 1, 2, 3]')
        assert "&lt;/textarea&gt;&lt;script&gt;" in text_of(response)
        assert "<script>alert" not in text_of(response)

    def test_an_attempt_must_be_left(self, admin, make):
        (id_,) = make("scheduled", attempt=3)
        assert "It has spent 3 attempts already" in errors(send(admin, id_, max_attempts="3"))
        send(admin, id_, max_attempts="4")
        assert operations.get(id_).max_attempts == 4


class TestMeanwhile:
    def test_somebody_else_has_changed_it(self, admin, greet):
        row = greet.enqueue("ann")
        mine = fields(admin, row.id)
        operations.edit(row, priority=9)
        response = admin.post(url("job_edit", row.id), {**mine, "priority": "1"})
        assert "has changed since this page was made" in errors(response)
        assert operations.get(row.id).priority == 9
        again = response.context["form"].data
        admin.post(url("job_edit", row.id), {**again})
        assert operations.get(row.id).priority == 1

    def test_a_worker_has_claimed_it_between_the_look_and_the_write(self, admin, greet, worker, monkeypatch):
        id_ = greet.enqueue("ann").id
        edit = operations.edit

        def claimed_first(job, **changes):
            Job.objects.filter(pk=id_).update(state="running", worker=worker)
            return edit(job, **changes)

        monkeypatch.setattr(operations, "edit", claimed_first)
        response = send(admin, id_, args='["bob"]')
        assert "a worker has claimed the job" in told(response)[0]
        assert operations.get(id_).args == ["ann"]
        assert entries() == []


class TestHidden:
    def test_values_stay_as_they_are(self, admin, greet):
        id_ = greet.enqueue("ann", "hunter22", note={"api_key": "k-123456", "x": 1}).id
        form = fields(admin, id_)
        page = text_of(admin.get(url("job_edit", id_)))
        assert "hunter22" not in page
        assert "k-123456" not in page
        assert "stands for values that are not shown" in page
        args = form["args"].replace("ann", "bob")
        kwargs = form["kwargs"].replace('"x": 1', '"x": 2')
        send(admin, id_, args=args, kwargs=kwargs)
        row = operations.get(id_)
        assert (row.args, row.kwargs) == (["bob", "hunter22"], {"note": {"api_key": "k-123456", "x": 2}})

    def test_others_can_be_written(self, admin, greet):
        id_ = greet.enqueue("ann", "hunter22").id
        send(admin, id_, args='["ann", "hunter23"]')
        assert operations.get(id_).args == ["ann", "hunter23"]

    def test_they_can_not_be_moved(self, admin, greet):
        id_ = greet.enqueue("ann", "hunter22").id
        response = send(admin, id_, args=f'["{HIDDEN}", "x"]')
        assert "can't be moved" in errors(response)
        assert operations.get(id_).args == ["ann", "hunter22"]

    def test_a_function_that_hides_all(self, admin, define):
        id_ = define(lambda a, b=0: None, redact=True).enqueue("x", b=1).id
        send(admin, id_, kwargs='{"b": 2}')
        assert (operations.get(id_).args, operations.get(id_).kwargs) == (["x"], {"b": 2})

    def test_restored(self):
        shown = {"a": [1, HIDDEN], "b": HIDDEN, "c": HIDDEN}
        stored = {"a": [1, "s"], "b": {"x": 1}, "c": HIDDEN}
        assert restored(shown, shown, stored) == stored
        assert restored({"a": [2, HIDDEN, 3]}, shown, stored) == {"a": [2, "s", 3]}
        for moved in ({"a": [HIDDEN]}, {"d": HIDDEN}, {"a": HIDDEN}, [HIDDEN], HIDDEN):
            with pytest.raises(Moved):
                restored(moved, shown, stored)


class TestArgumentsThatStay:
    def sees(self, client, id_, message):
        response = client.get(url("job_edit", id_))
        assert message in text_of(response)
        assert "args" not in response.context["form"].fields
        send(client, id_, priority="5", args='["bob"]')
        assert operations.get(id_).priority == 5

    def test_of_a_function_that_is_not_registered(self, admin, make):
        (id_,) = make(name="tests.gone")
        self.sees(admin, id_, "no function of this name is registered")
        assert operations.get(id_).args == ["ann"]

    def test_that_are_no_list(self, admin, make):
        (id_,) = make(args={"a": 1})
        self.sees(admin, id_, "not a list and an object")

    def test_that_are_too_large(self, admin, make):
        (id_,) = make(args=["x" * 200_001])
        self.sees(admin, id_, "too large")

    def test_that_made_the_unique_key(self, admin, define):
        id_ = define(lambda user: None, unique=True).enqueue("ann").id
        assert "unique key is made of its arguments" in errors(send(admin, id_, args='["bob"]'))


def test_what_it_costs(admin, greet, django_assert_num_queries):
    id_ = greet.enqueue("ann").id
    form = fields(admin, id_)
    with django_assert_num_queries(1 + 2):
        admin.get(url("job_edit", id_))
    admin.post(url("job_edit", id_), {**form, "priority": "1"})  # content types are cached from now on
    form = fields(admin, id_)
    # The job, the edit and the entry in the log.
    with django_assert_num_queries(3 + 2):
        admin.post(url("job_edit", id_), {**form, "priority": "2"})
