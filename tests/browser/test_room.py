"""What people do on the pages: with mouse or keyboard, without a script; and pages that refresh themselves."""

import datetime as dt
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from django_jobs.admin.words import ago_text
from django_jobs.models import Job, Queue, Schedule, Worker
from tests.browser.driving import PHONE, Browser
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db(transaction=True)

ROOM = "/admin/django_jobs/"


@pytest.fixture
def worker(transactional_db) -> Worker:
    now = timezone.now()
    hour = dt.timedelta(hours=1)
    return Worker.objects.create(
        host="web-1", pid=7, queues=["mail"], started_at=now, heartbeat_at=now, expires_at=now + hour
    )


@pytest.fixture
def schedule(transactional_db) -> Schedule:
    now = timezone.now()
    return Schedule.objects.create(
        key="report", name="tests.workload.jobs.nothing", expression="@daily", owed_after=now, created_at=now,
        updated_at=now,
    )  # fmt: skip


def wait_in(queue: str, count: int = 1) -> list[Job]:
    due = timezone.now() - dt.timedelta(seconds=5)
    return JobFactory.create_batch(count, queue_name=queue, created_at=due, run_after=due)


@pytest.fixture
def without_script(browser: Browser) -> Iterator[Browser]:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    yield browser
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


# -- the navigation ----------------------------------------------------------------------------------------------------


IN_SIGHT = """
    const [inner, outer] = [...arguments].map(each => each.getBoundingClientRect());
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
"""


@pytest.mark.parametrize("is_phone", [False, True], ids=["desktop", "phone"])
def test_each_page_leads_to_each_other_one(browser: Browser, is_phone: bool) -> None:
    if is_phone:
        browser.size(PHONE)
    browser.open(f"{ROOM}job/overview/")
    for title in ("Queues", "Workers", "Schedules", "Jobs", "Overview"):
        browser.click(next(link for link in browser.all(".dj-nav a") if link.text == title))
        assert browser.text(".dj-nav [aria-current]") == title
        assert browser.js(IN_SIGHT, browser.one(".dj-nav [aria-current]"), browser.one(".dj-nav ul")), title
    browser.open("/admin/django_jobs/")
    browser.click(browser.link("Overview: how the jobs do"))
    assert browser.path == f"{ROOM}job/overview/"


def test_a_problem_leads_to_where_it_is(browser: Browser) -> None:
    old = timezone.now() - dt.timedelta(minutes=14)
    JobFactory(queue_name="mail", created_at=old, run_after=old)
    browser.open(f"{ROOM}job/overview/")

    browser.click(browser.link("Queue mail has waited 14 min; no worker serves it."))

    assert browser.path == f"{ROOM}queue/mail/change/"


def test_the_table_behind_a_chart(browser: Browser) -> None:
    from django_jobs.models import Stat

    Stat.objects.create(
        minute=timezone.now().replace(second=0, microsecond=0),
        queue_name="a",
        name="b",
        outcome="completed",
        count=12,
    )
    browser.open(f"{ROOM}job/overview/")
    table = browser.one("#dj-data-completed table")
    assert not table.is_displayed()

    browser.one("#dj-data-completed summary").click()

    assert table.is_displayed()
    assert table.text.endswith("12")
    browser.click(browser.link("Last week"))
    assert browser.text(".dj-tabs [aria-current]") == "Last week"


# -- what is done ------------------------------------------------------------------------------------------------------


def test_pause_and_resume_a_queue(browser: Browser, worker: Worker) -> None:
    wait_in("mail")
    browser.open(f"{ROOM}queue/")

    browser.click(browser.button("Pause the queue mail"))

    assert "The queue mail is paused" in browser.text(".messagelist")
    assert Queue.objects.get().paused_at is not None
    browser.click(browser.button("Resume the queue mail"))
    assert Queue.objects.get().paused_at is None


def test_empty_a_queue(browser: Browser, worker: Worker) -> None:
    wait_in("mail", 3)
    browser.open(f"{ROOM}queue/")

    browser.click(browser.button("Delete jobs of the queue mail"))
    browser.click(browser.link("No, go back"))
    assert Job.objects.count() == 3
    browser.click(browser.button("Delete jobs of the queue mail"))
    browser.click(browser.button("Delete them"))

    assert "3 jobs of the queue mail were deleted." in browser.text(".messagelist")
    assert Job.objects.count() == 0


def test_quiet_and_stop_a_worker(browser: Browser, worker: Worker) -> None:
    browser.open(f"{ROOM}worker/")

    browser.click(browser.button(f"Let {worker} claim no more jobs"))
    worker.refresh_from_db()
    assert worker.quiet_requested_at is not None
    browser.click(browser.button(f"Let {worker} claim jobs again"))
    worker.refresh_from_db()
    assert worker.quiet_requested_at is None
    browser.click(browser.button(f"Stop {worker}"))
    browser.click(browser.button("Stop the worker"))

    worker.refresh_from_db()
    assert worker.stop_requested_at is not None
    assert browser.path == f"{ROOM}worker/"
    assert browser.text(".dj-badge") == "stopping"
    browser.click(browser.link("web-1:7"))
    browser.click(browser.link("What operators did to it"))
    assert "Asked to stop." in browser.text("#change-history")


def test_run_pause_and_resume_a_schedule(browser: Browser, schedule: Schedule) -> None:
    browser.open(f"{ROOM}schedule/")

    browser.click(browser.button("Run report now"))
    assert "The schedule report has a job now" in browser.text(".messagelist")
    job = Job.objects.get()
    browser.click(browser.link(str(job.pk)))
    assert browser.path == f"{ROOM}job/{job.pk}/change/"
    browser.open(f"{ROOM}schedule/{schedule.pk}/change/")
    browser.click(browser.button("Pause report"))
    schedule.refresh_from_db()
    assert schedule.paused_at is not None
    browser.click(browser.button("Resume report"))
    schedule.refresh_from_db()
    assert schedule.paused_at is None
    assert LogEntry.objects.count() == 3


def test_without_a_script_all_works(without_script: Browser, worker: Worker, schedule: Schedule) -> None:
    browser = without_script
    wait_in("mail")
    browser.open(f"{ROOM}queue/")
    assert not browser.one("[data-dj-toggle]").is_displayed()
    for path, label in (
        ("queue/", "Pause the queue mail"),
        ("queue/mail/change/", "Resume the queue mail"),
        ("worker/", f"Let {worker} claim no more jobs"),
        ("schedule/", "Run report now"),
        (f"schedule/{schedule.pk}/change/", "Pause report"),
    ):
        browser.open(ROOM + path)
        browser.button(label).click()
        browser.wait(lambda: browser.all(".messagelist .success"), label)
    browser.open(f"{ROOM}queue/purge/?queue=mail")
    browser.button("Delete them").click()
    browser.wait(lambda: not Job.objects.filter(queue_name="mail"))
    wait_in("mail", 7)
    browser.open(f"{ROOM}queue/mail/change/")
    wait_in("mail", 2)
    browser.link("Refresh").click()
    browser.wait(lambda: "9" in [each.text for each in browser.all(".dj-card-number")])


def test_who_may_only_look_has_no_button(reader: Browser, worker: Worker, schedule: Schedule) -> None:
    wait_in("mail")
    for path in ("job/overview/", "queue/", "queue/mail/change/", "worker/", "schedule/"):
        reader.open(ROOM + path)
        assert [each.text for each in reader.all("#dj-page button, #dj-page a.dj-button")] == []


# -- the keyboard ------------------------------------------------------------------------------------------------------


def test_all_can_be_done_with_the_keyboard(browser: Browser, worker: Worker) -> None:
    wait_in("mail", 2)
    browser.open(f"{ROOM}job/overview/")
    browser.press(Keys.TAB)
    browser.press(Keys.ENTER)  # to the content, past the sidebar

    def named(name: str):
        return lambda element: (
            element.accessible_name == name and element.tag_name in ("a", "button", "input")
        )

    browser.tab_to(named("Queues"))
    assert has_outline(browser, browser.driver.switch_to.active_element)
    before = browser.one("html")
    browser.press(Keys.ENTER)
    browser.wait(lambda: before != browser.one("html") and browser.path == f"{ROOM}queue/")
    browser.tab_to(named("Delete jobs of the queue mail"))
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.all(".dj-choices"))
    box = browser.tab_to(lambda element: element.get_attribute("value") == "available")
    assert has_outline(browser, box)
    browser.tab_to(named("Delete them"))
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.all(".messagelist .success"))
    assert Job.objects.count() == 0


def has_outline(browser: Browser, element: WebElement) -> bool:
    """Whether one sees where the focus is."""
    style = browser.js(
        "const style = getComputedStyle(arguments[0]); return [style.outlineStyle, style.outlineWidth];",
        element,
    )
    return style[0] != "none" and style[1] != "0px"


def test_tables_and_regions_have_names_and_heads(
    browser: Browser, worker: Worker, schedule: Schedule
) -> None:
    wait_in("mail")
    for path in ("job/overview/", "queue/", "worker/", "schedule/", "queue/mail/change/"):
        browser.open(ROOM + path)
        assert browser.all("#dj-page table thead th") or "mail" in path
        assert not browser.all("#dj-page th:not([scope])")
        for region in browser.all("#dj-page section, #dj-page nav, .dj-nav, #dj-page figure"):
            assert region.accessible_name, (path, region.get_attribute("outerHTML")[:200])
        assert {each.get_attribute("role") for each in browser.all("[data-dj-live-state]")} <= {"status"}
        for control in browser.all("#dj-page button, #dj-page a, #dj-page input:not([type=hidden])"):
            if control.is_displayed():
                assert control.accessible_name, (path, control.get_attribute("outerHTML")[:200])
        assert len(browser.all("h1")) == (1 if not browser.all("#site-name h1") else 2)


# -- pages that refresh themselves -------------------------------------------------------------------------------------


@pytest.fixture
def quick(browser: Browser) -> Iterator[Browser]:
    """Pages refresh themselves, ten times a second; ``window.asked`` counts how often."""
    browser.live()
    script = browser.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument",
        {
            "source": """
                window.asked = 0;
                const later = window.setTimeout, ask = window.fetch;
                window.setTimeout = (call, delay, ...more) => later(call, delay === 5000 ? 100 : delay, ...more);
                window.fetch = (...all) => { window.asked += 1; return ask(...all); };
            """
        },
    )
    yield browser
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def waiting(browser: Browser) -> str:
    return browser.text("td[data-label=Waiting]")


def asked(browser: Browser) -> int:
    return int(browser.js("return window.asked"))


def test_a_page_shows_what_is_new(quick: Browser, worker: Worker) -> None:
    wait_in("mail")
    quick.open(f"{ROOM}queue/")
    assert waiting(quick) == "1"

    wait_in("mail", 2)

    quick.wait(lambda: quick.js("return document.querySelector('td[data-label=Waiting]').textContent") == "3")
    assert quick.text("[data-dj-live-state]") == "Live"


def test_it_can_be_paused_and_stays_so(quick: Browser, worker: Worker) -> None:
    wait_in("mail")
    quick.open(f"{ROOM}queue/")
    quick.wait(lambda: asked(quick) >= 2)

    quick.button("Pause").click()

    assert quick.text("[data-dj-live-state]") == "Paused"
    quick.wait(lambda: quick.js("return window.before === (window.before = window.asked)"))
    before = asked(quick)
    wait_in("mail")
    quick.one("[data-dj-refresh]").click()  # by hand it may
    quick.wait(lambda: quick.js("return document.querySelector('td[data-label=Waiting]').textContent") == "2")
    assert asked(quick) == before + 1
    quick.open(f"{ROOM}queue/")
    assert quick.text("[data-dj-live-state]") == "Paused", "on the next page, too"
    assert asked(quick) == 0
    quick.button("Resume").click()
    quick.wait(lambda: asked(quick) >= 2)


def test_it_stops_while_nobody_looks(quick: Browser, worker: Worker) -> None:
    quick.open(f"{ROOM}queue/")
    quick.wait(lambda: asked(quick) >= 1)
    with quick.hidden():
        quick.wait(lambda: quick.js("return window.before === (window.before = window.asked)"))
        before = asked(quick)
        wait_in("mail", 4)
        ten_intervals(quick)
        assert asked(quick) == before
    quick.wait(lambda: asked(quick) > before)


def test_the_focus_and_what_is_open_stay_where_they_are(quick: Browser, worker: Worker) -> None:
    Worker.objects.create(
        host="old", pid=1, started_at=timezone.now(), heartbeat_at=timezone.now(), expires_at=timezone.now(),
        stopped_at=timezone.now(),
    )  # fmt: skip
    quick.open(f"{ROOM}worker/")
    # Each in one go: what was found a moment ago may have been put in place anew since.
    quick.js("document.querySelector('#dj-gone summary').click()")
    quick.js("document.querySelector('.dj-actions a.dj-button-danger').focus()")
    seen = asked(quick)
    Worker.objects.filter(pk=worker.pk).update(running=3)

    quick.wait(lambda: asked(quick) >= seen + 2)
    quick.wait(lambda: "3 /" in quick.text("td[data-label=Busy]"))

    assert quick.js("return document.activeElement.getAttribute('aria-label')") == f"Stop {worker}"
    assert quick.js("return document.querySelector('#dj-gone table').checkVisibility()")


def test_marked_text_is_not_taken_away(quick: Browser, worker: Worker) -> None:
    wait_in("mail")
    quick.open(f"{ROOM}queue/")
    quick.js("getSelection().selectAllChildren(document.querySelector('td[data-label=Waiting]'))")
    quick.wait(lambda: quick.text("[data-dj-live-state]") == "Waiting for your selection")
    before = asked(quick)
    wait_in("mail")

    quick.js("getSelection().removeAllRanges()")

    quick.wait(lambda: quick.js("return document.querySelector('td[data-label=Waiting]').textContent") == "2")
    assert asked(quick) > before


def test_who_is_signed_out_is_told(quick: Browser, worker: Worker) -> None:
    from django.contrib.sessions.models import Session

    quick.open(f"{ROOM}queue/")
    Session.objects.all().delete()

    quick.wait(lambda: "You are signed out" in quick.text("[data-dj-live-state]"))


@pytest.mark.parametrize("how", ["paused", "hidden"])
def test_an_answer_that_is_under_way_is_the_last_one(quick: Browser, worker: Worker, how: str) -> None:
    wait_in("mail")
    quick.open(f"{ROOM}queue/")
    quick.js(
        """
        const ask = window.fetch;
        window.answers = 0;
        window.gate = new Promise(open => { window.open_gate = open; });
        window.fetch = async (...all) => {
            const answer = await ask(...all);
            await window.gate;
            window.answers += 1;
            return answer;
        };
        window.asked_before = window.asked;
        """
    )
    quick.wait(lambda: quick.js("return window.asked > window.asked_before"))
    with quick.hidden() if how == "hidden" else nullcontext():
        if how == "paused":
            quick.button("Pause").click()
        before = asked(quick)
        quick.js("document.querySelector('td[data-label=Waiting]').textContent = 'as it was'")
        quick.js("window.open_gate()")
        quick.wait(lambda: quick.js("return window.answers") >= 1)
        ten_intervals(quick)
        assert asked(quick) == before
        shown = quick.js("return document.querySelector('td[data-label=Waiting]').textContent")
        assert shown == ("as it was" if how == "paused" else "1")


def ten_intervals(browser: Browser) -> None:
    """Ten times as long as a page that refreshes itself takes to ask again."""
    browser.driver.execute_async_script("setTimeout(arguments[0], 1000)")


def test_a_form_is_sent_once(browser: Browser, schedule: Schedule) -> None:
    browser.open(f"{ROOM}schedule/")
    stopped = browser.js(
        """
        const stopped = [], button = document.querySelector("form[action$='/run/'] button");
        document.addEventListener("submit", event => stopped.push(event.defaultPrevented));
        button.click(); button.click(); button.click();
        return stopped;
        """
    )
    assert stopped == [False, True, True]
    browser.wait(lambda: browser.all(".messagelist"))
    assert Job.objects.count() == 1


def test_the_script_says_ages_as_the_server_does(browser: Browser, worker: Worker) -> None:
    ages = [-90_061, -3700, -75, -5, 0, 3, 59, 60, 61, 3599, 3600, 7325, 86_399, 273_600]
    frozen = browser.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "Date.now = () => 1000000000000;"}
    )
    browser.open(f"{ROOM}worker/")
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", frozen)
    browser.js(
        """
        const page = document.getElementById("dj-page");
        for (const age of arguments[0]) {
            const time = document.createElement("time");
            time.dateTime = new Date(Date.parse(page.dataset.djNow) - age * 1000).toISOString();
            time.dataset.djAgo = time.className = "test";
            page.append(time);
        }
        """,
        ages,
    )
    browser.wait(
        lambda: all(
            browser.js("return [...document.querySelectorAll('.test')].map(each => each.textContent)")
        )
    )

    told = browser.js("return [...document.querySelectorAll('.test')].map(each => each.textContent)")
    assert told == [ago_text(age) for age in ages]
