"""The pages as people see them, with a shop's week of jobs: in a browser, wide and narrow, light and dark."""

import pytest
from django.utils import timezone

from testproject.demo.data import fill_history, fill_present
from tests.browser.driving import DESKTOP, PHONE, Browser

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = {
    "overview": "job/overview/",
    "overview-day": "job/overview/?period=day",
    "overview-week": "job/overview/?period=week",
    "queues": "queue/",
    "queue": "queue/mail/change/",
    "workers": "worker/",
    "schedules": "schedule/",
}


@pytest.fixture
def shop(transactional_db) -> None:
    now = timezone.now()
    fill_history(now)
    fill_present(now)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_they_look(shop: None, browser: Browser, size: tuple[int, int], scheme: str) -> None:
    browser.size(size)
    browser.prefer(scheme)
    for name, path in PAGES.items():
        browser.open(f"/admin/django_jobs/{path}")
        browser.wait(lambda: not browser.all("[data-dj-toggle][hidden]"))
        browser.shot(f"{name}-{'phone' if size is PHONE else 'desktop'}-{scheme}")
        assert browser.overflow() == 0, name
