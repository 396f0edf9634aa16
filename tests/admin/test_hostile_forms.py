"""Addresses and forms that nobody's browser sends: never an error page, never a broken transaction, never all jobs."""

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings, strategies as st

from django_jobs.admin.actions import ACTIONS
from django_jobs.admin.job_query import FILTERS, JobQuery
from django_jobs.models import Job
from tests.admin.conftest import url

pytestmark = pytest.mark.django_db

ODD = [
    "", " ", "0", "-1", "+5", "1" * 40, "9223372036854775807", "9223372036854775808", "1e5", "NaN", "\0", "\u202e",
    "a" * 300, "%", "_", "'; --", '"', "<b>", "1h", "99999d", "2031-01-01", "0000-00-00", "9999-12-31T23:59:59+14:00",
    "²", "٣", "-", "#1", "a=b", "=", "[1", "null", "failed", "available", "0_0_5__", "0_0_5_2031-01-01T00:00:00_",
    "6_1000_1__x", "1!2!3", "arguments", "//evil.example", "/\\evil.example",
]  # fmt: skip
texts = st.one_of(st.sampled_from(ODD), st.text(max_size=40))
queries = st.dictionaries(
    st.sampled_from(["state", "q", "in", "after", "trail", *FILTERS]), texts, max_size=5
)
slow = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@slow
@given(query=queries)
def test_any_address_of_the_list(admin: Client, each, query) -> None:
    response = admin.get(url("job_changelist"), query)
    assert response.status_code == 200
    assert Job.objects.count() == 7, "the transaction goes on"
    again = JobQuery(dict(pair for pair in JobQuery(query).pairs()))
    assert again.pairs() == JobQuery(query).pairs(), "an address that a page writes is read alike"


@slow
@given(
    action=st.one_of(st.sampled_from(list(ACTIONS)), texts),
    scope=st.sampled_from(["all", "selected", "x", ""]),
    jobs=st.lists(texts, max_size=3),
    more=st.dictionaries(
        st.sampled_from(["to_queue", "to_priority", "after", "done", "left", "next", "confirmed"]),
        texts,
        max_size=4,
    ),
    query=texts,
)
def test_any_form_with_an_action(admin: Client, each, action, scope, jobs, more, query) -> None:
    data = {"action": action, "scope": scope, "job": jobs, "query": query, **more}
    response = admin.post(url("job_act"), data)
    assert response.status_code in (200, 302)
    if response.status_code == 302:
        assert response.url.startswith(("/", "http://testserver/"))
        assert not response.url.startswith("//")
    assert Job.objects.count() == 7, "nothing is deleted that was not confirmed, and the transaction goes on"


@slow
@given(
    data=st.dictionaries(
        st.sampled_from(["queue_name", "priority", "run_after", "max_attempts", "args", "kwargs", "seen"]),
        texts,
        max_size=7,
    )
)
def test_any_form_of_a_job(admin: Client, each, data) -> None:
    id_ = each["available"]
    response = admin.post(url("job_edit", id_), data)
    assert response.status_code in (200, 302)
    job = Job.objects.get(pk=id_)
    assert job.args == ["ann"], "what was not seen is not changed"


@slow
@given(path=st.lists(st.text("0123456789abc/-._%", max_size=25), max_size=3))
def test_any_address_below(admin: Client, path) -> None:
    response = admin.get(url("job_changelist") + "/".join(path))
    assert response.status_code in (200, 301, 302, 403, 404, 405)
