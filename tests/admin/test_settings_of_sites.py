"""The jobs' pages under settings that sites have: naive times, other languages and zones, another admin site."""

import pytest
from django.contrib.admin import AdminSite, site as admin_site
from django.test import override_settings
from django.urls import path
from django.utils import timezone

from django_jobs.admin import JobAdmin
from django_jobs.models import Job, Worker
from tests.admin.conftest import text_of, url

pytestmark = pytest.mark.django_db

other_site = AdminSite(name="other")
other_site.register(Job, JobAdmin)
urlpatterns = [path("other/", other_site.urls), path("admin/", admin_site.urls)]


def pages(each):
    yield url("job_changelist")
    yield url("job_failures")
    for state, id_ in each.items():
        yield url("job_changelist") + f"?state={state}&since=1h"
        yield url("job_change", id_)
    yield url("job_edit", each["scheduled"])


def test_naive_times(admin, each, settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "America/New_York"
    Job.objects.filter(pk=each["running"]).update(cancel_requested_at=timezone.now())
    for address in pages(each):
        response = admin.get(address)
        assert response.status_code == 200, address
        if "since" in address:
            assert len(response.context["lines"]) == 1, address
    form = admin.get(url("job_edit", each["scheduled"])).context["form"]
    data = {name: form[name].value() for name in form.fields}
    before = Job.objects.get(pk=each["scheduled"]).run_after
    moment = form["run_after"].value().strftime("%Y-%m-%dT%H:%M:%S")
    admin.post(url("job_edit", each["scheduled"]), {**data, "run_after": moment, "priority": "4"})
    job = Job.objects.get(pk=each["scheduled"])
    assert (job.priority, job.run_after) == (4, before)


@pytest.mark.parametrize("language", ["de", "ar", "ja"])
def test_other_languages(admin, each, settings, language):
    settings.LANGUAGE_CODE = language
    settings.TIME_ZONE = "Asia/Kolkata"
    settings.USE_THOUSAND_SEPARATOR = True
    Job.objects.filter(pk=each["failed"]).update(attempt=1234, max_attempts=2000)
    big = Job.objects.get(pk=each["completed"])
    big.pk = 1_234_567
    big.save(force_insert=True)
    assert "/job/1234567/change/" in text_of(admin.get(url("job_changelist")))
    assert admin.get(url("job_change", 1234567)).status_code == 200
    Worker.objects.update(pid=1_234_567, queues=["*"])  # its id is a number, and no quantity
    for page in ("worker_changelist", "queue_changelist"):
        assert "web1:1234567<" in text_of(admin.get(url(page)))
    for address in pages(each):
        assert admin.get(address).status_code == 200, address


@override_settings(ROOT_URLCONF="tests.admin.test_settings_of_sites")
def test_on_an_admin_site_of_another_name(admin, each):
    for address in (
        "",
        "failures/",
        "?state=failed",
        f"{each['failed']}/change/",
        f"{each['scheduled']}/edit/",
    ):
        response = admin.get("/other/django_jobs/job/" + address)
        assert response.status_code == 200
        assert (
            'action="/other/django_jobs/job/act/"' in text_of(response)
            or "edit" in address
            or "failures" in address
        )
    response = admin.post("/other/django_jobs/job/act/", {"action": "retry", "job": each["failed"]})
    assert response.url.startswith("/other/django_jobs/job/")
