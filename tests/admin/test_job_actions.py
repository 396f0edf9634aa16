"""What can be done to jobs from their list: by selection or to all that match, asked first, told, and logged."""

import datetime as dt
import json

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.test import Client
from django.utils import timezone

from django_jobs import operations
from django_jobs.admin import job_actions
from django_jobs.admin.actions import ACTIONS
from django_jobs.admin.log import message_of
from django_jobs.models import Job
from django_jobs.texts import Text, text
from tests.admin.conftest import entries, state_of, text_of, told, url, user_with

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def act(client, action, jobs=(), **data):
    """Send the form of the list, and follow to where it leads."""
    return client.post(url("job_act"), {"action": action, "job": list(jobs), **data}, follow=True)


class TestSelected:
    def test_retry(self, admin, make):
        failed, completed, waiting = make("failed", 2), make("completed"), make("available")
        response = act(admin, "retry", [*failed, *completed, *waiting, 987654321])
        assert state_of(*failed, *completed) == ["available"] * 3
        done, *left = told(response)
        assert done == "3 jobs will run again."
        assert len(left) == 2
        assert "1 job was left as it is: it has not ended: available." in left[0]
        assert f'<a href="{url("job_change", waiting[0])}">{waiting[0]}</a>' in left[0]
        assert "there is no such job" in left[1]

    def test_run_now(self, admin, make):
        later = timezone.now() + HOUR
        ids = make("scheduled", 2, run_after=later, attempt=1)
        response = act(admin, "run_now", ids)
        assert state_of(*ids) == ["available", "available"]
        assert told(response) == ["2 jobs run as soon as workers are."]

    def test_release(self, admin, make):
        ids = make("pending")
        act(admin, "release", ids)
        assert state_of(*ids) == ["available"]

    def test_change_queue_and_priority(self, admin, make):
        waiting, running = make(), make("running")
        response = act(admin, "update", [*waiting, *running], to_queue="mail", to_priority="-5")
        assert list(Job.objects.filter(pk__in=waiting).values_list("queue_name", "priority")) == [
            ("mail", -5)
        ]
        assert list(Job.objects.filter(pk__in=running).values_list("queue_name", "priority")) == [
            ("default", 0)
        ]
        assert "it does not wait: running" in told(response)[1]
        assert entries()[0][2] == "Changed. queue: mail, priority: -5"

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({}, "Give a queue or a priority"),
            ({"to_priority": "high"}, "“high” is no whole number"),
            ({"to_priority": "101"}, "whole number from -100 to 100"),
            ({"to_queue": "a,b"}, "can't be written"),
            ({"to_queue": "a\0"}, "NUL"),
            ({"to_queue": "q" * 101}, "over the limit"),
        ],
    )
    def test_values_that_can_not_be_meant(self, admin, make, values, message):
        ids = make()
        response = act(admin, "update", ids, **values)
        assert message in told(response)[0]
        assert list(Job.objects.values_list("queue_name", "priority")) == [("default", 0)]
        assert entries() == []

    @pytest.mark.parametrize("action", ["cancel", "delete"])
    def test_what_destroys_is_asked_for_first(self, admin, make, action):
        ids = make("available", 25)
        response = act(admin, action, ids, query="?state=available")
        assert state_of(*ids) == ["available"] * 25
        page = text_of(response)
        assert str(ACTIONS[action].question) in page
        assert "and 5 more" in page
        hidden = response.context["hidden"]
        response = admin.post(url("job_act"), to_data([*hidden, ("confirmed", "yes")]), follow=True)
        assert state_of(*ids) == (["cancelled"] * 25 if action == "cancel" else [None] * 25)

    def test_a_running_job_is_asked_to_stop_and_not_deleted(self, admin, make):
        ids = make("running")
        act(admin, "cancel", ids, confirmed="yes")
        assert Job.objects.get(pk=ids[0]).cancel_requested_at is not None
        response = act(admin, "delete", ids, confirmed="yes")
        assert "it is running" in told(response)[0]
        assert state_of(*ids) == ["running"]

    @pytest.mark.parametrize(
        ("jobs", "message"),
        [
            ([], "Select the jobs first"),
            (["x"], "“x” is no id"),
            (["-1"], "is no id"),
            (["1" * 25], "is no id"),
            (range(1, 502), "500 jobs at most"),
        ],
    )
    def test_a_selection_that_can_not_be_meant(self, admin, jobs, message):
        assert message in told(act(admin, "retry", jobs))[0]

    def test_jobs_that_are_gone(self, admin):
        assert told(act(admin, "delete", [987654321])) == ["Those jobs are gone."]

    def test_no_action(self, admin, make):
        ids = make("failed")
        assert told(act(admin, "drop", ids)) == ["No action was chosen."]
        assert state_of(*ids) == ["failed"]


def to_data(pairs):
    data = {}
    for name, value in pairs:
        data.setdefault(name, []).append(value)
    return data


class TestAllThatMatch:
    def all(self, client, action, query="", confirmed="yes", **data):
        return act(client, action, scope="all", query=query, confirmed=confirmed, **data)

    def test_is_asked_for_first_in_words_and_numbers(self, admin, make):
        make("failed", 3, queue_name="mail")
        make("failed", 2)
        response = self.all(admin, "retry", "?state=failed&queue=mail", confirmed="")
        page = text_of(response)
        assert "All jobs that match: <strong>state failed, queue mail</strong>" in page
        assert "3 jobs at present." in page
        assert not Job.objects.exclude(state="failed").exists()
        response = admin.post(
            url("job_act"), to_data([*response.context["hidden"], ("confirmed", "yes")]), follow=True
        )
        assert told(response) == ["3 jobs will run again."]
        assert Job.objects.filter(state="available", queue_name="mail").count() == 3
        assert Job.objects.filter(state="failed").count() == 2

    def test_without_a_state_only_what_the_action_is_for(self, admin, each):
        response = self.all(admin, "retry", confirmed="")
        assert "state failed</strong>" in text_of(response)
        self.all(admin, "retry")
        assert state_of(each["failed"], each["completed"], each["cancelled"]) == [
            "available",
            "completed",
            "cancelled",
        ]

    @pytest.mark.parametrize(
        ("action", "states"),
        [
            ("release", {"pending": "available"}),
            ("run_now", {"scheduled": "available"}),
            ("delete", {"completed": None, "failed": None, "cancelled": None}),
            ("cancel", {"pending": "cancelled", "scheduled": "cancelled", "available": "cancelled"}),
        ],
    )
    def test_of_any_state(self, admin, each, action, states):
        self.all(admin, action)
        assert {state: state_of(id_)[0] for state, id_ in each.items()} == {
            **{state: state for state in each},
            **states,
        }

    def test_a_state_that_it_can_not_be_done_to(self, admin, each):
        response = self.all(admin, "retry", "?state=running")
        assert told(response) == ["This can't be done to jobs in the state they are in."]

    def test_a_query_that_can_not_be_meant_is_not_everything(self, admin, each):
        before = set(Job.objects.values_list("pk", "state"))
        for query in ("?worker=x", "?state=nonsense", "?since=yesterday", "?queue=" + "q" * 101):
            response = self.all(admin, "delete", query)
            assert len(told(response)) == 1
        assert set(Job.objects.values_list("pk", "state")) == before

    def test_delete_spares_what_holds_its_key(self, admin, make):
        (holds,) = make("completed", unique_key="a", holds_key=True, key_until=timezone.now() + HOUR)
        (other,) = make("completed")
        response = self.all(admin, "delete", "?state=completed")
        assert state_of(holds, other) == ["completed", None]
        assert "it holds its unique key" in told(response)[1]

    def test_of_waiting_jobs_that_are_asked_for_by_state(self, admin, make):
        ids = make("available", 2, queue_name="mail")
        self.all(admin, "delete", "?state=available&queue=mail")
        assert state_of(*ids) == [None, None]

    def test_what_was_found_in_arguments(self, admin, greet):
        ids = [greet.enqueue(name).id for name in ("ann", "bob", "anna")]
        response = self.all(admin, "cancel", "?q=ann&in=arguments", confirmed="")
        assert told(response) == []
        assert "those 2 found" in text_of(response)
        self.all(admin, "cancel", "?q=ann&in=arguments")
        assert state_of(*ids) == ["cancelled", "available", "cancelled"]
        assert told(self.all(admin, "cancel", "?q=nobody&in=arguments")) == ["No such job was found."]

    def test_to_ask_few_are_looked_for_in_arguments_and_all_are_done(self, admin, greet, monkeypatch):
        monkeypatch.setattr(job_actions, "MOST_ASKED", 2)
        ids = [greet.enqueue(f"ann {number}").id for number in range(5)]
        page = text_of(self.all(admin, "cancel", "?q=ann&in=arguments", confirmed=""))
        assert "the first 2 found, and those behind them" in page
        assert "More than 2 jobs as far as they were counted." in page
        self.all(admin, "cancel", "?q=ann&in=arguments")
        assert set(state_of(*ids)) == {"cancelled"}

    def test_by_a_word(self, admin, make):
        ids = [*make(name="shop.ship"), *make(name="shop.bill")]
        self.all(admin, "cancel", "?q=ship")
        assert state_of(*ids) == ["cancelled", "available"]

    def test_in_steps(self, admin, make, monkeypatch):
        monkeypatch.setattr(job_actions, "STEPS", 1)
        monkeypatch.setattr("django_jobs.store.bulk.MOST", 3)
        select = type(operations.acting.django_store("default")).select

        def select_few(self, *args, **options):
            return select(self, *args, **{"look": 3, "most": 3, **options})

        monkeypatch.setattr(type(operations.acting.django_store("default")), "select", select_few)
        make("failed", 8)
        (held,) = make("failed", unique_key="a")
        make("available", unique_key="a", holds_key=True)
        response = self.all(admin, "retry", "?state=failed")
        total = []
        while "total" in (response.context or {}):
            total.append(response.context["total"])
            assert f"{total[-1]} jobs done so far" in text_of(response)
            response = admin.post(url("job_act"), to_data(response.context["hidden"]), follow=True)
        assert total[-1] >= 6
        done, left = told(response)
        assert done == "8 jobs will run again."
        assert "1 job was left as it is: another job holds its unique key." in left
        assert f">{held}</a>" in left
        assert [entry[2] for entry in entries()] == [
            f"Retried. 2 jobs done; not 1: another job holds its unique key ({held}).",
            "Retried. 3 jobs done.",
            "Retried. 3 jobs done.",
        ]
        assert Job.objects.filter(state="available").count() == 9


class TestPermissions:
    @pytest.mark.parametrize(
        ("action", "permission"),
        [
            ("retry", "retry_job"),
            ("cancel", "cancel_job"),
            ("delete", "purge_job"),
            ("run_now", "edit_job"),
            ("release", "edit_job"),
            ("update", "edit_job"),
        ],
    )
    def test_each_needs_its_own(self, each, action, permission):
        others = {"retry_job", "cancel_job", "purge_job", "edit_job"} - {permission}
        client = Client()
        client.force_login(user_with("view_job", *others))
        before = set(Job.objects.values_list("pk", "state"))
        for scope in ("all", "selected"):
            response = act(client, action, each.values(), scope=scope, confirmed="yes", to_priority="5")
            assert response.status_code == 403
        assert set(Job.objects.values_list("pk", "state", flat=False)) == before
        assert not Job.objects.filter(priority=5).exists()
        client.force_login(user_with("view_job", permission))
        assert act(client, action, each.values(), to_priority="5").status_code == 200

    def test_and_that_to_look(self, each):
        client = Client()
        client.force_login(user_with("retry_job"))
        assert act(client, "retry", [each["failed"]]).status_code == 403
        assert state_of(each["failed"]) == ["failed"]

    def test_only_by_post_and_with_a_token(self, admin, each):
        assert admin.get(url("job_act"), {"action": "retry", "job": each["failed"]}).status_code == 405
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(user_with("view_job", "retry_job"))
        data = {"action": "retry", "job": each["failed"]}
        assert strict.post(url("job_act"), data).status_code == 403
        assert state_of(each["failed"]) == ["failed"]

    def test_no_row_is_added_changed_or_deleted_by_hand(self, admin, each):
        id_ = each["available"]
        assert admin.get(url("job_add")).status_code == 403
        assert admin.post(url("job_add"), {"name": "x"}).status_code == 403
        assert admin.get(url("job_delete", id_)).status_code == 403
        assert admin.post(url("job_delete", id_), {"post": "yes"}).status_code == 403
        admin.post(
            url("job_changelist"), {"action": "delete_selected", "_selected_action": id_, "post": "yes"}
        )
        assert state_of(id_) == ["available"]


class TestLog:
    def test_an_entry_for_each_that_was_selected_and_done(self, admin, make):
        ids, waiting = make("failed", 2, name="tests.<b>"), make()
        act(admin, "retry", [*ids, *waiting])
        assert entries() == [(str(id_), f"tests.<b> ({id_})", "Retried.") for id_ in ids]
        assert set(LogEntry.objects.values_list("action_flag", flat=True)) == {CHANGE}
        history = text_of(admin.get(url("job_history", ids[0])))
        assert "Retried." in history

    def test_one_for_all_that_match(self, admin, make):
        make("failed", 3)
        act(admin, "delete", scope="all", query="?state=failed", confirmed="yes")
        (entry,) = LogEntry.objects.all()
        assert (entry.object_id, entry.action_flag) == (None, DELETION)
        assert entry.object_repr == "state failed"
        assert message_of(entry) == "Deleted. 3 jobs done."
        assert admin.get("/admin/").status_code == 200

    def test_nothing_where_nothing_was_done(self, admin, make):
        act(admin, "retry", make())
        assert entries() == []


class TestBack:
    @pytest.mark.parametrize("next_", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
    def test_only_to_this_site(self, admin, make, next_):
        response = admin.post(
            url("job_act"),
            {"action": "retry", "job": make("failed"), "next": next_, "query": "?state=failed"},
        )
        assert response.url == url("job_changelist") + "?state=failed"

    def test_to_the_page_that_it_was_sent_from(self, admin, make):
        where = url("job_changelist") + "?state=failed&after=0_0_5__"
        response = admin.post(url("job_act"), {"action": "retry", "job": make("failed"), "next": where})
        assert response.url == where


@pytest.mark.parametrize(
    "forged",
    [
        {"done": "x", "left": "[1"}, {"left": '[["<b>", 1, [5]]]'}, {"left": '[["a", -1, []]]'}, {"left": '{"a": 5}'},
        {"left": "5"}, {"left": '[["a", 1, ["<b>"]]]'}, {"done": "9" * 50}, {"left": '[[{"text": "<b>"}, 1, [5]]]'},
        {"left": '[[{"text": "%(a)9999999d", "values": {"a": 1}}, 1, [5]]]'}, {"left": '[[{"text": 5}, 1, [5]]]'},
        {"left": '[[{"text": "%(b)s", "values": {"a": 1}}, 1, [5]]]'}, {"left": '[[{"text": ""}, 1, [5]]]'},
    ],
)  # fmt: skip
def test_what_a_form_says_of_earlier_steps_is_told_and_no_more(admin, make, forged):
    ids = make("failed")
    response = act(admin, "retry", ids, **forged)
    assert state_of(*ids) == ["available"]
    assert "1 job will run again." in told(response)
    assert "<b>" not in text_of(response).partition("messagelist")[2].partition("</ul>")[0]


def test_reasons_of_earlier_steps_are_told_in_the_language_of_the_page(admin, make, settings):
    settings.LANGUAGE_CODE = "de"
    left = [
        [text("it has ended: %(state)s", state=Text("failed")).recipe, 1, [5]],
        ["of a site's own", 1, [6]],
    ]
    response = act(admin, "retry", make("failed"), left=json.dumps(left))

    _done, of_ours, of_theirs = told(response)
    assert of_ours.startswith("1 Job blieb, wie er ist: bereits beendet: gescheitert. (<a href")
    assert of_theirs.startswith("1 Job blieb, wie er ist: of a site&#x27;s own. (")
