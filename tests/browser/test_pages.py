"""The pages as people see them, with a shop's week of jobs: wide and narrow, light and dark, with a hostile one's."""

import datetime as dt
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.utils import timezone

from django_jobs.models import Job, Queue, Schedule, Stat, Worker
from testproject.demo.data import fill_history, fill_present
from tests.browser.driving import DESKTOP, PHONE, Browser

pytestmark = pytest.mark.django_db(transaction=True)

ROOM = "/admin/django_jobs/"
PAGES = {
    "overview": "job/overview/",
    "overview-day": "job/overview/?period=day",
    "overview-week": "job/overview/?period=week",
    "list": "job/",
    "dead-letters": "job/failures/",
    "queues": "queue/",
    "queue": "queue/mail/change/",
    "purge": "queue/purge/?queue=mail",
    "workers": "worker/",
    "schedules": "schedule/",
}


@pytest.fixture
def shop(transactional_db) -> None:
    now = timezone.now()
    fill_history(now)
    fill_present(now)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_they_fit_the_screen_and_load_nothing_strange(
    shop: None, browser: Browser, size: tuple[int, int]
) -> None:
    browser.size(size)
    browser.live()
    worker, schedule = Worker.objects.get(leads=True), Schedule.objects.get(key="nightly report")
    single = {
        "worker": f"worker/{worker.pk}/change/",
        "worker-stop": f"worker/{worker.pk}/stop/",
        "schedule": f"schedule/{schedule.pk}/change/",
    }
    for name, path in {**PAGES, **single}.items():
        browser.open(ROOM + path)
        browser.check_layout(f"{name}-{'phone' if size is PHONE else 'desktop'}")


def test_dark_is_dark(shop: None, browser: Browser) -> None:
    def brightness(selector: str) -> float:
        color = browser.one(selector).value_of_css_property("background-color")
        numbers = [float(number) for number in color[color.index("(") + 1 : -1].split(",")[:3]]
        return sum(numbers) / 3

    browser.open(f"{ROOM}job/overview/")
    light = {
        selector: brightness(selector) for selector in ("body", ".dj-card", ".dj-chart", ".dj-problems li")
    }
    assert min(light.values()) > 180
    browser.prefer("dark")
    browser.wait(lambda: max(brightness(selector) for selector in light) < 100)


# It ends an attribute before anything else, and has markup behind its last dot, which is all that some names show.
HOSTILE = "\"'><script>pwned=1</script>{{ 7*7 }}.<img src=x onerror=pwned=1>"
ENDLESS = "W" * 90


@pytest.fixture
def hostile(transactional_db) -> dict[str, int]:
    """Rows with markup, and with names without end, wherever a text can be."""
    now = timezone.now()
    ids = {}
    for number, text in enumerate((HOSTILE, ENDLESS)):
        worker = Worker.objects.create(
            host=text, pid=number, queues=[text, f"{text},*"], version=text[:32], concurrency=3, running=2,
            started_at=now, heartbeat_at=now, expires_at=now + dt.timedelta(hours=1), skew=90, memory=10**13,
        )  # fmt: skip
        common: dict[str, Any] = {"name": text, "queue_name": text, "created_at": now - dt.timedelta(hours=2)}
        Job.objects.create(**common, run_after=now - dt.timedelta(hours=2))
        Job.objects.create(
            **common, run_after=now, state="running", worker=worker, attempt=1, attempted_at=now
        )
        dead = Job.objects.create(
            **common, run_after=now, state="failed", attempt=1, error_class=text, finalized_at=now,
            errors=[{"number": 1, "attempt": 1, "class": text, "message": text, "traceback": text}],
        )  # fmt: skip
        Queue.objects.create(
            name=text, paused_at=now, metadata={text: [text, {text: text}]}, created_at=now, updated_at=now
        )
        schedule = Schedule.objects.create(
            key=text, name=text, expression=text, timezone=text[:64], args=[text], kwargs={text: text},
            options={text: text}, last_error=text, last_job_id=dead.pk, owed_after=now, created_at=now, updated_at=now,
        )  # fmt: skip
        Stat.objects.create(
            minute=now, queue_name=text, name=text, outcome="failed", error_class=text, count=10**9
        )
        ids |= {f"worker {number}": worker.pk, f"schedule {number}": schedule.pk}
    return ids


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_hostile_rows_run_nothing_and_break_no_layout(
    hostile: dict[str, int], browser: Browser, size: tuple[int, int]
) -> None:
    browser.size(size)
    paths = ["job/overview/", "queue/", "worker/", "schedule/"]
    for text in (HOSTILE, ENDLESS):
        paths.append(f"queue/{quote(text)}/change/")
    paths += [f"{name.partition(' ')[0]}/{id_}/change/" for name, id_ in hostile.items()]
    paths += [f"worker/{id_}/stop/" for name, id_ in hostile.items() if name.startswith("worker")]
    for number, path in enumerate(paths):
        browser.open(ROOM + path)
        browser.shot(f"hostile-{number}-{'phone' if size is PHONE else 'desktop'}")
        assert browser.js("return window.pwned") is None
        assert not browser.all("#dj-page img, #dj-page script")
        assert browser.overflow() == 0, path
        assert "{{ 7*7 }}" in browser.text() or HOSTILE[:8] not in browser.text(), (
            "no template is read from a row"
        )


def test_in_another_language(shop: None, browser: Browser, settings: Any) -> None:
    """What Django itself has words for comes in that language, numbers are written as there, and nothing breaks."""
    browser.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {"Accept-Language": "de"}})
    settings.LANGUAGE_CODE = "de"
    try:
        for path in PAGES.values():
            browser.open(ROOM + path)
            assert browser.overflow() == 0
    finally:
        browser.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {}})
    assert User.objects.count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_told_from_what_they_stand_on(shop: None, browser: Browser, scheme: str) -> None:
    """The contrast that WCAG asks of text (AA), 4.5 to 1, of all words of the room, on the colours behind them."""
    browser.prefer(scheme)
    poor = {}
    failed, waiting = (Job.objects.filter(state=state).latest("id").pk for state in ("failed", "available"))
    worker, schedule = Worker.objects.get(leads=True).pk, Schedule.objects.get(key="nightly report").pk
    single = (
        f"job/{failed}/change/",
        f"job/{waiting}/edit/",
        f"worker/{worker}/stop/",
        f"schedule/{schedule}/change/",
    )
    for path in (*PAGES.values(), "job/?state=failed&q=receipt", *single):
        browser.open(ROOM + path)
        browser.wait(lambda: not browser.js("return document.getAnimations().length"))
        for words, ratio in browser.js(
            CONTRAST,
            "#dj-page :is(.dj-badge, a, p, td, th, dt, dd, li, span, time, summary, code, pre, label, h2, button)",
        ):
            if ratio < 4.5:
                poor[words] = round(ratio, 2)
    assert poor == {}


def test_what_scrolls_can_be_reached_and_moved_by_keyboard(shop: None, browser: Browser) -> None:
    browser.size(PHONE)
    failed = Job.objects.filter(state="failed").latest("id").pk
    for path in ("job/overview/", f"job/{failed}/change/"):
        browser.open(ROOM + path)
        browser.js("document.querySelectorAll('#dj-page details').forEach(each => { each.open = true; })")
        assert browser.js(SCROLLING), path
        browser.wait(lambda: all(index == 0 for index in browser.js(SCROLLING)), path)


# The tabIndex of each box that has more in it than it shows.
SCROLLING = """
    return [...document.querySelectorAll(".dj-scroll, .dj-pre, .dj-chart-table")]
        .filter(each => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight)
        .map(each => each.tabIndex);
"""
CONTRAST = """
    const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4);
    const parse = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    function ground(element) {
        for (; element; element = element.parentElement) {
            const color = parse(getComputedStyle(element).backgroundColor);
            if (color.length < 4 || color[3] > 0) {
                return color;
            }
        }
        return [255, 255, 255];
    }
    return [...document.querySelectorAll(arguments[0])]
        .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()))
        .filter(each => each.checkVisibility())
        .map(each => {
            const [one, two] = [light(parse(getComputedStyle(each).color)), light(ground(each))];
            const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
            return [each.className + ": " + each.textContent.trim().slice(0, 40), ratio];
        });
"""
