"""The admin's pages show what there is, escaped, and change nothing."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_jobs.models import Job
from tests.factories import AdminFactory, JobFactory
from tests.workload import jobs

pytestmark = pytest.mark.django_db

PAGES = ["job", "worker", "queue", "schedule"]


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(AdminFactory())
    return client


@pytest.mark.parametrize("page", PAGES)
def test_the_list_and_nothing_to_add(admin: Client, page: str) -> None:
    assert admin.get(reverse(f"admin:django_jobs_{page}_changelist")).status_code == 200
    assert admin.get(reverse(f"admin:django_jobs_{page}_add")).status_code == 403


def test_a_job_is_shown_and_what_it_carries_is_escaped(admin: Client) -> None:
    row = jobs.fail.enqueue("<script>alert(1)</script>")
    pages = [
        admin.get(reverse("admin:django_jobs_job_changelist")),
        admin.get(reverse("admin:django_jobs_job_changelist"), {"q": str(row.id), "state": "available"}),
        admin.get(reverse("admin:django_jobs_job_change", args=[row.id])),
    ]
    for page in pages:
        assert page.status_code == 200
        text = page.content.decode()
        assert "tests.workload.jobs.fail" in text
        assert "&lt;script&gt;alert(1)" in text
        assert "<script>alert" not in text


def test_dead_letters_are_shown_with_their_errors_escaped(admin: Client) -> None:
    waiting, dead = JobFactory(), JobFactory(failed=True)
    listed = admin.get(reverse("admin:django_jobs_job_changelist"), {"state": "failed"}).content.decode()
    assert f"/job/{dead.id}/change/" in listed
    assert f"/job/{waiting.id}/change/" not in listed
    shown = admin.get(reverse("admin:django_jobs_job_change", args=[dead.id])).content.decode()
    assert "ValueError" in shown
    assert "&lt;b&gt;no&lt;/b&gt;" in shown
    assert "<b>no</b>" not in shown


def test_a_job_can_be_neither_changed_nor_deleted(admin: Client) -> None:
    row = jobs.nothing.enqueue()
    assert (
        admin.post(reverse("admin:django_jobs_job_change", args=[row.id]), {"state": "completed"}).status_code
        == 403
    )
    assert (
        admin.post(reverse("admin:django_jobs_job_delete", args=[row.id]), {"post": "yes"}).status_code == 403
    )
    assert Job.objects.get(pk=row.id).state == "available"


def test_who_may_not_view_jobs_sees_none(client: Client) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert client.get(reverse("admin:django_jobs_job_changelist")).status_code == 403
