"""The page of a job: what it says in each state, whatever its row holds, and what it costs."""

import datetime as dt
import json

import pytest
from django.test import Client
from django.utils import timezone

from django_jobs.models import Job
from tests.admin.conftest import STATES, text_of, told, url, user_with
from tests.store.builders import write

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def page(client, id_, **headers):
    response = client.get(url("job_change", id_), headers=headers)
    assert response.status_code == 200
    return text_of(response)


def error(number, attempt=1, **more):
    return {
        "number": number,
        "attempt": attempt,
        "at": "2026-05-06T07:08:12.500000+00:00",
        "attempted_at": "2026-05-06T07:08:09+00:00",
        "worker": 7,
        "class": "app.errors.Odd",
        "message": "it is <b>odd</b>",
        "traceback": "Traceback (most recent call last):\n"
        '  File "/x/site-packages/lib/a.py", line 5, in a\n    b()\n'
        '  File "/srv/shop/jobs.py", line 3, in ship\n    raise Odd\nOdd\n',
        **more,
    }


@pytest.mark.parametrize("state", STATES)
def test_each_state(admin, each, state):
    text = page(admin, each[state])
    assert f"Job {each[state]}" in text
    assert f"dj-badge dj-{state}" in text
    assert ("data-dj-live-control" in text) is (state not in ("completed", "failed", "cancelled"))


def test_nobody_else_sees_it(client, each):
    client.force_login(user_with("retry_job", "view_worker"))
    assert client.get(url("job_change", each["failed"])).status_code == 403
    assert client.get(url("job_json", each["failed"], "args")).status_code == 403


def test_a_job_that_is_gone(admin):
    response = admin.get(url("job_change", 987654321), follow=True)
    assert response.redirect_chain[-1][0] == url("job_changelist")
    assert "There is no job 987654321" in told(response)[0]
    for odd in ("x", "-5", "9" * 30, "5.0"):
        assert admin.get(url("job_changelist") + f"{odd}/change/").status_code == 404


def test_arguments_go_by_the_names_of_their_parameters(admin, define):
    definition = define(lambda user, *rest, note=None: None)
    id_ = definition.enqueue({"id": 2**70, "ratio": 1e22}, "b", "c", note=None).id
    text = page(admin, id_)
    for name in ("user", "*rest[0]", "*rest[1]", "note"):
        assert f"<dt>{name}</dt>" in text
    assert str(2**70) in text
    assert "1e+22" in text
    Job.objects.filter(pk=id_).update(name="tests.unknown")
    text = page(admin, id_)
    assert "<dt>0</dt>" in text
    assert "No function of this name is registered" in text


def test_secrets_are_hidden_everywhere(admin, make, greet):
    id_ = greet.using(unique_key="greet:hunter22", tags=["for:hunter22"]).enqueue("ann", "hunter22").id
    Job.objects.filter(pk=id_).update(
        state="failed",
        finalized_at=timezone.now(),
        errors=[error(1, message="no hunter22", traceback="x hunter22")],
        result={"token": "hunter22", "of": "hunter22-x"},
        metadata={"api_key": "k", "schedule": "s"},
    )
    text = page(admin, id_)
    for part in ("args", "kwargs", "errors", "metadata"):
        text += text_of(admin.get(url("job_json", id_, part)))
    assert "[hidden]" in text
    shown = text.replace("hunter22-x", "")
    assert "hunter22" not in shown, "nor in the address of a list"


class TestErrors:
    def test_the_last_one_first_and_the_traceback_in_short(self, admin, make):
        (id_,) = make("failed", errors=[error(1), error(2, 2, message="again")], attempt=2)
        text = page(admin, id_)
        section = text.partition('id="dj-errors-title"')[2]
        assert section.index("again") < section.index("it is &lt;b&gt;odd")
        assert "<b>odd" not in text
        assert text.count("1 frame of a library") == 2
        assert text.count("Whole traceback") == 2
        assert text.count("/x/site-packages/lib/a.py") == 2
        assert text.count("/srv/shop/jobs.py") == 4
        assert "3.5 s" in text
        assert f'href="{url("worker_change", 7)}"' in text

    @pytest.mark.parametrize(
        "errors",
        [
            [{}],
            [error(None, None, at=5, attempted_at="yesterday", worker="w", message=None, traceback=None)],
            [error(1, -1, worker=-1, at="9999-99-99", message=["m"], traceback={"a": 1})],
            ["text", 5, None, error(1)],
            {"a": 1},
            "text",
            5,
            [error(True, 2**80, worker=2**80)],
            [[[[[error(1)]]]]],
        ],
    )
    def test_errors_that_no_worker_wrote(self, admin, make, errors):
        (id_,) = make("failed", errors=errors)
        assert "Attempts that failed" in page(admin, id_)


class TestTimeline:
    def titles(self, client, id_):
        response = client.get(url("job_change", id_))
        return [
            f"{step.title} {step.attempt}" if step.attempt is not None else str(step.title)
            for step in response.context["view"].timeline
        ]

    def test_by_state(self, admin, each):
        assert {state: self.titles(admin, id_) for state, id_ in each.items()} == {
            "pending": ["Enqueued", "Waits to be released"],
            "scheduled": ["Enqueued", "Due"],
            "available": ["Enqueued", "Waits for a worker"],
            "running": ["Enqueued", "Attempt 1"],
            "completed": ["Enqueued", "Attempt 1", "Completed"],
            "failed": ["Enqueued", "Attempt 1", "Failed for good"],
            "cancelled": ["Enqueued", "Attempt 1", "Cancelled"],
        }

    def test_of_a_job_that_was_tried_again(self, admin, make):
        began = dt.datetime(2026, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
        (id_,) = make(
            "completed",
            created_at=began - dt.timedelta(seconds=2),
            run_after=began + dt.timedelta(seconds=60),
            errors=[error(1), error(4, 4)],
            attempt=5,
            attempted_at=began + dt.timedelta(seconds=61),
            finalized_at=began + dt.timedelta(seconds=90),
        )
        assert self.titles(admin, id_) == [
            "Enqueued",
            "Attempt 1",
            "Earlier attempts, of which no more is kept",
            "Attempt 4",
            "Due again",
            "Attempt 5",
            "Completed",
        ]
        steps = admin.get(url("job_change", id_)).context["view"].timeline
        assert [step.gap for step in steps] == [None, 2.0, None, None, 56.5, 1.0, None]
        assert [step.took for step in steps] == [None, 3.5, None, 3.5, None, 29.0, None]

    def test_the_last_attempt_is_told_once(self, admin, make):
        began = dt.datetime(2026, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
        (id_,) = make("failed", errors=[error(1)], attempted_at=began)
        assert self.titles(admin, id_) == ["Enqueued", "Attempt 1", "Failed for good"]

    def test_a_cancel_request(self, admin, make):
        (id_,) = make("running", cancel_requested_at=timezone.now())
        assert self.titles(admin, id_) == ["Enqueued", "Attempt 1", "Asked to cancel"]

    def test_later_and_retrying(self, admin, make):
        (id_,) = make("completed", run_after=timezone.now() + HOUR)
        assert self.titles(admin, id_)[:2] == ["Enqueued", "Due"]
        (id_,) = make("scheduled", run_after=timezone.now() + HOUR, attempt=1, errors=[error(1)])
        assert self.titles(admin, id_) == ["Enqueued", "Attempt 1", "Next attempt"]


class TestParts:
    def test_progress(self, admin, make):
        (id_,) = make("running", metadata={"progress": {"done": 1, "total": 3, "note": "<i>x"}, "more": 1})
        text = page(admin, id_)
        assert 'value="0.3333"' in text
        assert "<strong>33 %</strong> 1 / 3" in text
        assert "&lt;i&gt;x" in text
        assert "<dt>more</dt>" in text
        assert "<dt>progress</dt>" not in text

    @pytest.mark.parametrize(
        "progress",
        [
            {"done": "x"}, {"done": 1, "total": 0}, {"done": -5, "total": 2}, {"done": 9, "total": 2}, [1],
            {"done": 1e308, "total": 1}, {"done": True}, {"done": 5, "note": {"a": 1}}, {"done": 2**900, "total": 3},
        ],
    )  # fmt: skip
    def test_odd_progress(self, admin, make, progress):
        (id_,) = make("running", metadata={"progress": progress})
        page(admin, id_)
        assert admin.get(url("job_changelist"), {"state": "running"}).status_code == 200

    def test_the_worker_while_it_is_known(self, admin, make, worker):
        (id_,) = make("running")
        link = f'<a href="{url("worker_change", worker.pk)}">web1:7'
        assert link in page(admin, id_)
        worker.delete()
        assert "(no longer known)" in page(admin, id_)

    def test_relatives(self, admin, make):
        first, second = make("completed", unique_key="order:7"), make("failed", unique_key="order:7")
        other = make("failed", unique_key="order:8")
        scheduled = make("completed", 2, metadata={"schedule": "nightly", "tick": None}, name="tests.nightly")
        make("completed", metadata={"schedule": "other"}, name="tests.nightly")
        response = admin.get(url("job_change", first[0]))
        assert [line.job.id for line in response.context["view"].same_key] == second
        assert f"/job/{other[0]}/change/" not in text_of(response)
        response = admin.get(url("job_change", scheduled[0]))
        assert [line.job.id for line in response.context["view"].same_schedule] == [scheduled[1]]
        assert "nightly" in text_of(response)

    def test_as_files(self, admin, make):
        (id_,) = make("completed", result={"n": 2**70, "x": 1e22, "s": "☃"})
        response = admin.get(url("job_json", id_, "result"))
        assert response["Content-Type"] == "application/json; charset=utf-8"
        assert response["X-Content-Type-Options"] == "nosniff"
        assert f"{2**70}" in text_of(response)
        assert json.loads(text_of(admin.get(url("job_json", id_, "args")))) == ["ann"]
        assert admin.get(url("job_json", id_, "password")).status_code == 404
        assert admin.get(url("job_json", 987654321, "args")).status_code == 404
        assert admin.post(url("job_json", id_, "args")).status_code == 405

    def test_columns_that_somebody_elses_sql_wrote(self, admin, make, database_name):
        (id_,) = make("failed")
        row = Job.objects.get(pk=id_)
        odd = {
            "args": '{"a":1}',
            "kwargs": "[1]",
            "tags": '{"a":[1]}',
            "errors": '"x"',
            "metadata": "5",
            "result": "[" * 300 + "]" * 300,
        }
        if database_name == "sqlite":
            odd.update(args="[1,", kwargs="{", metadata="<script>", created_at="yesterday", attempted_at="5")
        for column, text in odd.items():
            write(row, column, text)
        assert "Attempts that failed" in page(admin, id_)
        for query in ({}, {"state": "failed"}, {"q": str(id_)}):
            assert admin.get(url("job_changelist"), query).status_code == 200
        for part in ("args", "kwargs", "result", "metadata", "errors"):
            assert admin.get(url("job_json", id_, part)).status_code == 200


def test_halves_of_characters_that_only_an_escape_can_write(admin, make):
    (id_,) = make("failed")
    row = Job.objects.get(pk=id_)
    half = r'"\ud800"'
    for column, text in {
        "args": f"[{half}]",
        "kwargs": f"{{{half}:{half}}}",
        "tags": f"[{half}]",
        "errors": f'[{{"class":{half},"message":{half},"traceback":{half}}}]',
        "metadata": f'{{"schedule":{half},"progress":{{"done":1,"note":{half}}},{half}:1}}',
        "result": half,
    }.items():
        write(row, column, text)
    assert r"\ud800" in page(admin, id_)
    assert admin.get(url("job_changelist")).status_code == 200
    for part in ("args", "kwargs", "result", "metadata", "errors"):
        assert admin.get(url("job_json", id_, part)).status_code == 200


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "{{ 7|add:7 }}", "\u202e"]
)
def test_hostile_data_in_every_field(admin, make, hostile):
    (id_,) = make(
        "failed",
        name=hostile[:200], queue_name=hostile[:100], unique_key=hostile, tags=[hostile], error_class=hostile,
        args=[hostile, {hostile: hostile}], kwargs={hostile: [hostile]}, result={hostile: [hostile * 200]},
        errors=[{**error(1), **dict.fromkeys(("class", "message", "traceback", "at", "worker"), hostile)}],
        metadata={hostile: hostile, "schedule": hostile, "progress": {"done": 1, "note": hostile}},
    )  # fmt: skip
    text = page(admin, id_)
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "{{ 7|add:7 }}" in text or "add:7" not in hostile


class TestButtons:
    def test_by_state(self, admin, each):
        found = {
            state: [action.name for action in admin.get(url("job_change", id_)).context["actions"]]
            for state, id_ in each.items()
        }
        assert found == {
            "pending": ["release", "cancel", "delete"],
            "scheduled": ["run_now", "cancel", "delete"],
            "available": ["cancel", "delete"],
            "running": ["cancel"],
            "completed": ["retry", "delete"],
            "failed": ["retry", "delete"],
            "cancelled": ["retry", "delete"],
        }
        assert ">Edit<" in page(admin, each["scheduled"])
        assert ">Edit<" not in page(admin, each["running"])

    def test_who_may_only_look_sees_none(self, reader, each):
        for id_ in each.values():
            text = page(reader, id_).partition('id="dj-page"')[2]
            assert "<form" not in text
            assert "<button" not in text
            assert ">Edit<" not in text

    def test_back_to_the_page_but_to_the_list_from_a_deleted_one(self, admin, make):
        (id_,) = make("failed")
        home = url("job_change", id_)
        assert f'name="next" value="{home}"' in page(admin, id_)
        response = admin.post(url("job_act"), {"action": "retry", "job": id_, "next": home}, follow=True)
        assert response.redirect_chain[-1][0] == home
        assert "1 job will run again." in text_of(response)
        response = admin.post(
            url("job_act"),
            {"action": "delete", "job": id_, "next": url("job_changelist"), "confirmed": "yes"},
        )
        assert response.url == url("job_changelist")

    def test_nothing_is_changed_by_sending_to_it(self, admin, each):
        assert admin.post(url("job_change", each["failed"]), {"state": "completed"}).status_code == 403


def test_what_it_costs(admin, make, django_assert_num_queries):
    session_and_user = 2
    (plain,) = make("completed", worker=None)
    with django_assert_num_queries(1 + session_and_user):
        page(admin, plain)
    make("completed", 30, unique_key="k", metadata={"schedule": "s"}, name="tests.nightly")
    (full,) = make(
        "failed", unique_key="k", metadata={"schedule": "s"}, name="tests.nightly", worker=None,
        errors=[error(n) for n in range(20)],
    )  # fmt: skip
    Job.objects.filter(pk=full).update(worker=5)
    # The job, its worker, and for either kind of relatives a search and their rows.
    with django_assert_num_queries(6 + session_and_user):
        page(admin, full)


def test_to_who_lacks_other_permissions_nothing_else_is_shown(make):
    (id_,) = make("failed")
    client = Client()
    client.force_login(user_with("view_job", "retry_job"))
    text = page(client, id_)
    assert ">Retry<" in text
    assert ">Delete<" not in text
