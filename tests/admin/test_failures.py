"""Dead letters by job and exception: the numbers, their lists, and what can be done to a group."""

import datetime as dt
import html
import re

import pytest
from django.test import Client
from django.utils import timezone

from django_jobs.models import Job, Stat
from tests.admin.conftest import entries, text_of, told, url, user_with

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def dead(make):
    """Dead letters, and what the statistics say of them."""

    def dead(name, error, ages, count=1):
        ids = []
        for age in ages:
            moment = timezone.now() - age
            ids += make("failed", count, name=name, error_class=error, finalized_at=moment)
            Stat.objects.create(
                minute=moment.replace(second=0, microsecond=0), queue_name="default", name=name, outcome="failed",
                error_class=error, count=count,
            )  # fmt: skip
        return ids

    return dead


@pytest.fixture
def two_groups(dead):
    ship = dead("shop.ship", "app.errors.Odd", [HOUR / 2, 5 * HOUR, 50 * HOUR], 2)
    bill = dead("shop.bill", "builtins.KeyError", [HOUR * 2], 7)
    return ship, bill


def links(client, text):
    """What the numbers of a row lead to."""
    row = text.partition("<tbody>")[2]
    return [html.unescape(link) for link in re.findall(r'<a href="([^"]*)">', row)]


def test_the_numbers_lead_to_their_jobs(admin, two_groups):
    response = admin.get(url("job_failures"))
    groups = response.context["groups"]
    found = [
        (
            g.failures.name,
            g.short_class,
            g.failures.hour,
            g.failures.day,
            g.failures.week,
            int(g.failures.there),
        )
        for g in groups
    ]
    assert found == [("shop.ship", "Odd", 2, 4, 6, 6), ("shop.bill", "KeyError", 0, 7, 7, 7)]
    for group in groups:
        for window in group.windows:
            listed = admin.get(url("job_changelist") + window.query).context["lines"]
            assert len(listed) == window.number
            assert {line.job.name for line in listed} <= {group.failures.name}
    assert all(admin.get(link).status_code == 200 for link in links(admin, text_of(response)))
    cells = re.findall(r"<td data-label=\"(?:First|Last) seen\">(.*?)</td>", text_of(response))
    assert len(cells) == 4
    assert all(cell.startswith('<a href="') for cell in cells)


@pytest.mark.parametrize(
    ("by", "first"),
    [("last", "ship"), ("hour", "ship"), ("day", "bill"), ("week", "bill"), ("there", "bill"), ("x", "ship")],
)
def test_sorted(admin, two_groups, by, first):
    groups = admin.get(url("job_failures"), {"by": by}).context["groups"]
    assert groups[0].failures.name == f"shop.{first}"


def test_a_number_outlives_its_jobs(admin, two_groups):
    Job.objects.all().delete()
    response = admin.get(url("job_failures"))
    assert [int(group.failures.there) for group in response.context["groups"]] == [0, 0]
    text = text_of(response).partition("<tbody>")[2]
    assert ">Retry<" not in text


def test_retry_and_delete_a_whole_group(admin, two_groups):
    ship, bill = two_groups
    group = admin.get(url("job_failures")).context["groups"][0]
    data = {"scope": "all", "query": group.query, "next": url("job_failures"), "action": "retry"}
    response = admin.post(url("job_act"), data)
    assert "state failed, name shop.ship, error app.errors.Odd" in text_of(response)
    assert "6 jobs at present" in text_of(response)
    response = admin.post(url("job_act"), {**data, "confirmed": "yes"}, follow=True)
    assert response.redirect_chain[-1][0] == url("job_failures")
    assert told(response) == ["6 jobs will run again."]
    assert set(Job.objects.filter(pk__in=ship).values_list("state", flat=True)) == {"available"}
    assert set(Job.objects.filter(pk__in=bill).values_list("state", flat=True)) == {"failed"}
    query = admin.get(url("job_failures")).context["groups"][-1].query
    admin.post(url("job_act"), {**data, "query": query, "action": "delete", "confirmed": "yes"})
    assert not Job.objects.filter(pk__in=bill).exists()
    assert len(entries()) == 2


def test_a_group_without_an_exception_is_not_taken_for_the_others(admin, make):
    make("failed", error_class=None)
    make("failed")
    text = text_of(admin.get(url("job_failures"))).partition("<tbody>")[2]
    assert text.count(">Retry<") == 1


def test_who_may_see_and_do_what(reader, two_groups):
    text = text_of(reader.get(url("job_failures"))).partition('id="dj-page"')[2]
    assert "shop.ship" in text
    assert "<form" not in text
    client = Client()
    client.force_login(user_with("view_job", "retry_job"))
    text = text_of(client.get(url("job_failures")))
    assert ">Retry<" in text
    assert ">Delete<" not in text
    client.force_login(user_with("view_queue"))
    assert client.get(url("job_failures")).status_code == 403


def test_none(admin):
    assert "No job has failed for good." in text_of(admin.get(url("job_failures")))


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\"'><img src=x>", "a&b=c#d%", "\u202e"])
def test_hostile_names(admin, dead, hostile):
    dead(hostile, hostile, [HOUR / 2])
    response = admin.get(url("job_failures"))
    assert "<script>alert" not in text_of(response)
    assert "<img src=x" not in text_of(response)
    (group,) = response.context["groups"]
    assert len(admin.get(url("job_changelist") + group.query).context["lines"]) == 1


def test_what_it_costs(admin, two_groups, django_assert_num_queries):
    with django_assert_num_queries(2 + 2):
        admin.get(url("job_failures"))
