"""The workers' pages in a browser."""

import pytest
from django.utils import timezone
import datetime as dt

from django_jobs.models import Job, Leadership, Worker, Schedule
from tests.browser.driving import PHONE, DESKTOP, Browser

pytestmark = pytest.mark.django_db(transaction=True)


def test_workers(browser: Browser) -> None:
    now = timezone.now()
    for n in range(3):
        w = Worker.objects.create(host="web-%d.example.org" % n, pid=4000 + n, queues=["files", "mail,reports", "*"], concurrency=10, version="0.1.0",
           started_at=now - dt.timedelta(hours=5*n+1), heartbeat_at=now - dt.timedelta(seconds=3), expires_at=now + dt.timedelta(seconds=(27 if n else -10)), running=n*3, completed=12345*n, failed=17, memory=123_456_789, leads=n==1)
        for i in range(n*3):
            Job.objects.create(name="testproject.library.jobs.index_file", queue_name="files", state="running", worker=w, run_after=now, created_at=now, attempted_at=now - dt.timedelta(seconds=61*i), attempt=1, max_attempts=5)
    Worker.objects.create(host="web-9", pid=1, queues=["*"], concurrency=2, version="0.1.0", started_at=now, heartbeat_at=now, expires_at=now, stopped_at=now)
    Leadership.objects.create(name="keeper", holder="x", acquired_at=now, expires_at=now + dt.timedelta(seconds=60))
    for k, e, z in [("nightly report", "30 2 * * MON-FRI", "Europe/Berlin"), ("tests.poll", "every 300 s", "UTC"), ("broken", "0 0 1 1 *", "UTC")]:
        Schedule.objects.create(key=k, name="testproject.library.jobs.index_file", expression=e, timezone=z, owed_after=now, last_tick=now, next_tick=now+dt.timedelta(hours=3), created_at=now, updated_at=now, last_error="No job is registered as 'x'." if k == "broken" else "", last_job_id=1 if k != "broken" else None)
    for size, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        browser.size(size)
        for page in ("worker/", "schedule/", f"worker/{w.pk}/change/", "schedule/1/change/", "job/overview/", f"worker/{w.pk}/stop/"):
            browser.open("/admin/django_jobs/" + page)
            browser.wait(lambda: not browser.all("[data-dj-toggle][hidden]"))
            browser.shot(f"{name}-{page.strip('/').replace('/', '-')}")
            print(page, browser.overflow())
