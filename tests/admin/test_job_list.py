"""The list of jobs: tabs, filters, search, pages; what each line says; what it costs."""

import datetime as dt
import html
import re

import pytest
from django.test import Client
from django.utils import timezone

from django_jobs.admin import job_list
from django_jobs.models import Job
from django_jobs.operations import searching
from tests.admin.conftest import STATES, text_of, url, user_with

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def listed(client, **query):
    """The ids of the jobs on a page, in their order."""
    response = client.get(url("job_changelist"), query)
    assert response.status_code == 200
    return [line.job.id for line in response.context["lines"]]


def link(response, rel):
    found = re.search(rf'rel="{rel}" href="([^"]*)"', text_of(response))
    return html.unescape(found[1]) if found else None


@pytest.mark.parametrize("state", STATES)
def test_a_tab_for_each_state(admin, each, state):
    assert listed(admin, state=state) == [each[state]]
    response = admin.get(url("job_changelist"), {"state": state})
    current = [tab for tab in response.context["tabs"] if tab["current"]]
    assert [str(tab["title"]).lower() for tab in current] == [state]
    assert [tab["count"] for tab in response.context["tabs"]] == [None, *[1] * 7]


def test_all_of_them_the_newest_first(admin, each):
    assert listed(admin) == sorted(each.values(), reverse=True)


def test_nobody_else_sees_them(client, each):
    assert client.get(url("job_changelist")).status_code == 302
    client.force_login(user_with())
    assert client.get(url("job_changelist")).status_code == 403
    client.force_login(user_with("view_worker", "retry_job"))
    assert client.get(url("job_changelist")).status_code == 403


class TestFilters:
    def test_each(self, admin, make, worker):
        (wanted,) = make(
            "failed", queue_name="mail", name="tests.other", priority=-7, worker=worker, unique_key="a:1",
            tags=["order:1"],
        )  # fmt: skip
        (old,) = make("failed", finalized_at=timezone.now() - 3 * HOUR)
        for query in (
            {"queue": "mail"},
            {"name": "tests.other"},
            {"priority": "-7"},
            {"worker": str(worker.pk)},
            {"key": "a:1"},
            {"tag": "order:1"},
            {"queue": " mail ", "name": "tests.other", "priority": "-7"},
        ):
            assert listed(admin, state="failed", **query) == [wanted], query
            assert listed(admin, **query) == [wanted], query
            assert listed(admin, state="completed", **query) == [], query
        assert listed(admin, state="failed", since="1h") == [wanted]
        assert listed(admin, state="failed", since="4h") == [wanted, old]
        assert listed(admin, state="failed", error="builtins.ValueError") == [wanted, old]
        assert listed(admin, error="builtins.KeyError") == []

    def test_since_is_when_it_was_enqueued_where_it_has_not_ended(self, admin, make):
        (old,) = make(created_at=timezone.now() - 2 * HOUR)
        (new,) = make()
        assert listed(admin, state="available", since="1h") == [new]
        assert listed(admin, since="3h") == [new, old]
        moment = (timezone.now() - HOUR).isoformat()
        assert listed(admin, since=moment) == [new]
        assert listed(admin, since=moment[:19]) == [new]

    @pytest.mark.parametrize(
        "query",
        [
            {"state": "nonsense"}, {"worker": "x"}, {"worker": "1" * 30}, {"priority": "high"}, {"priority": "101"},
            {"since": "yesterday"}, {"since": "36000d"}, {"since": "0001-01-01"}, {"since": "2031-02-30"},
            {"queue": "q" * 101}, {"name": "a\0"}, {"q": "x" * 256}, {"tag": "t" * 256}, {"key": "k" * 256},
            {"error": "e" * 201}, {"after": "nonsense"}, {"after": "0_99999999_1__", "state": "failed"},
            {"q": "\0", "in": "arguments"}, {"q": "x" * 1001, "in": "arguments"},
        ],
    )  # fmt: skip
    def test_what_can_not_be_meant_is_said_and_nothing_is_listed(self, admin, each, query):
        response = admin.get(url("job_changelist"), query)
        assert response.status_code == 200
        assert len(response.context["query"].errors) == 1
        assert response.context["lines"] == []
        assert 'role="alert"' in text_of(response)

    def test_the_form_repeats_them(self, admin, each):
        query = {
            "state": "failed",
            "queue": '"><b>',
            "name": "n",
            "worker": "3",
            "priority": "-4",
            "since": "45m",
            "q": "x",
        }
        page = text_of(admin.get(url("job_changelist"), query))
        assert '"><b>' not in page
        for name in ("queue", "name", "worker", "priority", "q"):
            assert f'name="{name}" value="{html.escape(query[name])}"' in page
        assert "<option selected>45m</option>" in page
        assert '<input type="hidden" name="state" value="failed">' in page


class TestSearch:
    def test_by_id_whatever_the_state(self, admin, each):
        for id_ in each.values():
            assert listed(admin, q=str(id_), state="failed", queue="other") == [id_]
        assert listed(admin, q=f"#{each['failed']}") == [each["failed"]]
        assert listed(admin, q="987654321") == []

    def test_by_a_part_of_the_name_the_key_or_a_tag(self, admin, make):
        (job,) = make(name="shop.orders.ship", unique_key="order:7", tags=["shop.order:7", "vip"])
        make()
        for word in ("orders", "order:7", "vip", "shop.order:7"):
            assert listed(admin, q=word) == listed(admin, q=word, state="available") == [job], word
        for word in ("order:", "vi", "ORDERS", "%"):
            assert listed(admin, q=word) == [], word

    def test_by_an_argument_and_says_among_how_many(self, admin, greet):
        ids = [greet.enqueue(name, note=f"to {name}").id for name in ("ann", "bob", "anna")]
        assert listed(admin, q="ann", **{"in": "arguments"}) == [ids[2], ids[0]]
        assert listed(admin, q="note=to bob", **{"in": "arguments"}) == [ids[1]]
        assert listed(admin, q="ann", state="failed", **{"in": "arguments"}) == []
        response = admin.get(url("job_changelist"), {"q": "bob", "in": "arguments", "state": "available"})
        assert "Searched in the arguments of 3 jobs" in text_of(response)

    def test_by_an_argument_says_why_it_did_not_search_all(self, admin, greet, make, monkeypatch):
        monkeypatch.setattr(searching, "LOOKS", 4)
        monkeypatch.setattr(searching, "STEP", 2)
        greet.using(queue_name="rare").enqueue("ann")
        make(count=9)
        query = {"q": "ann", "in": "arguments", "queue": "rare"}
        assert "jobs; there may be more that match" in text_of(admin.get(url("job_changelist"), query))
        assert "There are more: no more than" not in text_of(admin.get(url("job_changelist"), query))

    def test_what_is_hidden_is_not_found(self, admin, greet):
        greet.enqueue("ann", "hunter22")
        assert listed(admin, q="hunter22", **{"in": "arguments"}) == []
        assert listed(admin, q="hunter", **{"in": "arguments"}) == []

    def test_a_search_leads_on_to_arguments(self, admin, greet):
        job = greet.enqueue(4242).id
        response = admin.get(url("job_changelist"), {"q": "4242", "state": "available"})
        assert response.context["lines"] == []
        assert "in arguments" in text_of(response)
        response = admin.get(url("job_changelist") + response.context["arguments_url"])
        assert [line.job.id for line in response.context["lines"]] == [job]


class TestPages:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        monkeypatch.setattr(job_list, "PAGE", 3)

    @pytest.mark.parametrize("state", ["", "failed", "available", "running", "scheduled", "pending"])
    def test_there_and_back_without_losing_any_of_the_same_moment(self, admin, make, state):
        make(state or "completed", 10)
        if state in ("completed", "failed"):
            Job.objects.update(finalized_at=timezone.now())
        whole = list(listed(admin, state=state)) if state == "" else None
        pages, address = [], f"?state={state}"
        while address:
            response = admin.get(url("job_changelist") + address)
            pages.append((address, [line.job.id for line in response.context["lines"]]))
            address = link(response, "next")
        assert [len(ids) for _, ids in pages] == [3, 3, 3, 1]
        assert sorted(id_ for _, ids in pages for id_ in ids) == sorted(
            Job.objects.values_list("pk", flat=True)
        )
        assert whole is None or whole == pages[0][1]
        for _, ids in reversed(pages[:-1]):
            response = admin.get(url("job_changelist") + link(response, "prev"))
            assert [line.job.id for line in response.context["lines"]] == ids
        assert link(response, "prev") is None

    def test_the_filters_stay(self, admin, make):
        make("failed", 5, queue_name="mail")
        response = admin.get(url("job_changelist"), {"state": "failed", "queue": "mail"})
        address = link(response, "next")
        assert "state=failed&queue=mail&after=" in address
        assert link(admin.get(url("job_changelist") + address), "prev") == "?state=failed&queue=mail"

    def test_a_page_that_looked_at_enough_says_so(self, admin, make, monkeypatch):
        monkeypatch.setattr(job_list, "LOOKS", 110)
        (rare,) = make("completed", queue_name="rare", finalized_at=timezone.now() - HOUR)
        make("completed", 115)
        response = admin.get(url("job_changelist"), {"state": "completed", "queue": "rare"})
        assert response.context["lines"] == []
        assert "None among the 110 jobs looked at so far" in text_of(response)
        assert "Look further" in text_of(response)
        response = admin.get(url("job_changelist") + link(response, "next"))
        assert [line.job.id for line in response.context["lines"]] == [rare]


class TestLines:
    def test_what_they_say(self, admin, each, worker):
        now = timezone.now()
        Job.objects.filter(pk=each["scheduled"]).update(
            attempt=2, error_class="app.errors.Odd", run_after=now + 2 * HOUR, priority=5
        )
        Job.objects.filter(pk=each["running"]).update(
            metadata={"progress": {"done": 30, "total": 120, "note": ""}}, cancel_requested_at=now
        )
        Job.objects.filter(pk=each["failed"]).update(attempt=5)
        scheduled, running, failed = (
            text_of(admin.get(url("job_changelist"), {"state": state}))
            for state in ("scheduled", "running", "failed")
        )
        assert "2 of 5" in scheduled
        assert "retrying" in scheduled
        assert '<span class="dj-bad dj-exception" title="app.errors.Odd">Odd</span>' in scheduled
        assert re.search(r"data-dj-ago>in 1 h 59 min|in 2 h<", scheduled)
        assert '<td class="dj-number" data-label="Priority">5</td>' in scheduled
        assert "cancelling" in running
        assert "30 / 120" in running
        assert 'value="0.2500"' in running
        assert f'href="{url("worker_change", worker.pk)}"' in running
        assert "5 of 5" in failed
        assert "3.0 s" in failed
        assert "ValueError" in failed

    def test_arguments_are_short_and_secrets_hidden(self, admin, greet):
        greet.enqueue("ann", "hunter22", note="n" * 10_000)
        greet.enqueue("bob", note="ab" * 400_000)
        page = text_of(admin.get(url("job_changelist")))
        assert "&quot;ann&quot;, &quot;[hidden]&quot;, note=&quot;nnn" in page
        assert "hunter22" not in page
        assert len(page) < 30_000

    @pytest.mark.parametrize(
        "hostile",
        [
            "<script>alert(1)</script>",
            "\"'><img src=x onerror=alert(1)>",
            "{{ 123456|add:654321 }}{% now %}",
            "\u202e\ufdfa" * 50,
            "a" * 200,
        ],
    )
    def test_hostile_data_in_every_field(self, admin, make, worker, hostile):
        (id_,) = make(
            "failed",
            name=hostile[:200],
            queue_name=hostile[:100],
            args=[hostile, {hostile: hostile}],
            kwargs={hostile: [hostile]},
            unique_key=hostile[:255],
            tags=[hostile],
            error_class=hostile[:200],
            errors=[{hostile: hostile}, hostile],
            result=hostile,
            metadata={"progress": {"done": hostile}, hostile: hostile},
        )
        for query in (
            {},
            {"state": "failed"},
            {"q": hostile[:255]},
            {"queue": hostile[:100]},
            {"q": str(id_)},
        ):
            page = text_of(admin.get(url("job_changelist"), query))
            assert f"/job/{id_}/change/" in page
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "777777" not in page


class TestButtons:
    def labels(self, client, **query):
        return [action.name for action in client.get(url("job_changelist"), query).context["actions"]]

    def test_who_may_only_look_sees_none(self, reader, each):
        for state in ("", *STATES):
            response = reader.get(url("job_changelist"), {"state": state})
            page = text_of(response).partition('id="dj-page"')[2]
            assert response.context["actions"] == []
            assert page.count("<button") == 1, "that of the filter"
            assert 'type="checkbox"' not in page

    def test_by_state(self, admin, each):
        assert self.labels(admin, state="failed") == ["retry", "delete"]
        assert self.labels(admin, state="scheduled") == ["run_now", "update", "cancel", "delete"]
        assert self.labels(admin, state="pending") == ["release", "update", "cancel", "delete"]
        assert self.labels(admin, state="available") == ["update", "cancel", "delete"]
        assert self.labels(admin, state="running") == ["cancel"]
        assert self.labels(admin) == ["retry", "run_now", "release", "update", "cancel", "delete"]

    @pytest.mark.parametrize(
        ("permission", "names"),
        [
            ("retry_job", ["retry"]),
            ("cancel_job", ["cancel"]),
            ("purge_job", ["delete"]),
            ("edit_job", ["run_now", "release", "update"]),
        ],
    )
    def test_by_permission(self, each, permission, names):
        client = Client()
        client.force_login(user_with("view_job", permission))
        assert self.labels(client) == names


class TestCost:
    """Statements of the page, beside two for the session and the user."""

    def cost(self, admin, queries, **query):
        with queries as captured:
            response = admin.get(url("job_changelist"), query)
        assert response.status_code == 200
        return len(captured) - 2

    @pytest.mark.parametrize("state", ["", *STATES])
    def test_of_a_tab(self, admin, make, state, django_assert_max_num_queries):
        for queue_name in ("a", "b", "c"):
            make(state or "available", 40, queue_name=queue_name)
        assert self.cost(admin, django_assert_max_num_queries(99), state=state) == 3

    def test_of_a_filter_that_nothing_matches(self, admin, make, django_assert_max_num_queries, monkeypatch):
        monkeypatch.setattr(job_list, "LOOKS", 400)
        make("completed", 450)
        assert self.cost(admin, django_assert_max_num_queries(99), state="completed", queue="none") <= 5

    def test_of_a_search_in_arguments(self, admin, greet, django_assert_max_num_queries):
        greet.enqueue_many([("ann",)] * 450)
        query = {"q": "ann", "in": "arguments"}
        assert self.cost(admin, django_assert_max_num_queries(99), **query) <= 5
        query["q"] = "bob"
        assert self.cost(admin, django_assert_max_num_queries(99), **query) == 2
