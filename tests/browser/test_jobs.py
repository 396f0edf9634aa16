"""The pages of the jobs, in a browser: how they look, and what is done on them with mouse, keyboard, or no script."""

import datetime as dt
import json
from collections.abc import Iterator

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone
from selenium.webdriver.common.keys import Keys

from django_jobs.admin import job_actions
from django_jobs.models import Job, Stat, Worker
from testproject.demo.data import fill_history, fill_present
from tests.browser.driving import DESKTOP, PHONE, Browser
from tests.workload import jobs

pytestmark = pytest.mark.django_db(transaction=True)

ROOM = "/admin/django_jobs/job/"
HOUR = dt.timedelta(hours=1)
STATES = ("pending", "scheduled", "available", "running", "completed", "failed", "cancelled")
HOSTILE = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>\"'>{{ 7*7 }}"


@pytest.fixture
def shop(transactional_db) -> None:
    now = timezone.now()
    fill_history(now)
    fill_present(now)


def make(state: str, count: int = 1, **columns) -> list[int]:
    """Jobs in a state."""
    now = timezone.now()
    ids = [row.id for row in jobs.fail.enqueue_many([("x",)] * count)]
    values = {
        "state": state,
        "queue_name": "files",
        "run_after": now + (HOUR if state == "scheduled" else -HOUR),
    }
    if state in ("completed", "failed", "cancelled"):
        values.update(finalized_at=now, attempted_at=now, attempt=1)
    if state == "running":
        worker = Worker.objects.create(
            host="web-1", pid=7, started_at=now, heartbeat_at=now, expires_at=now + HOUR
        )
        values.update(worker=worker, attempted_at=now, attempt=1)
    if state == "failed":
        values.update(error_class="builtins.ValueError", errors=[ERROR])
        minute = now.replace(second=0, microsecond=0)
        name = columns.get("name", "tests.workload.jobs.fail")
        Stat.objects.get_or_create(
            minute=minute, queue_name="files", name=name, outcome="failed", error_class="builtins.ValueError",
            defaults={"count": count},
        )  # fmt: skip
    Job.objects.filter(pk__in=ids).update(**{**values, **columns})
    return ids


ERROR = {
    "number": 1,
    "attempt": 1,
    "at": "2026-05-06T07:08:12.500000+00:00",
    "attempted_at": "2026-05-06T07:08:09+00:00",
    "worker": 7,
    "class": "builtins.ValueError",
    "message": "no such file",
    "traceback": "Traceback (most recent call last):\n"
    '  File "/x/site-packages/lib/a.py", line 5, in a\n    b()\n'
    '  File "/srv/shop/jobs.py", line 3, in ship\n    raise ValueError\nValueError: no such file\n',
}


def told(browser: Browser) -> str:
    return browser.text(".messagelist")


def states() -> set[str]:
    return set(Job.objects.values_list("state", flat=True))


# -- how they look -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_they_fit_the_screen_and_load_nothing_strange(
    shop: None, browser: Browser, size: tuple[int, int]
) -> None:
    browser.size(size)
    pages = {f"jobs-{state}": f"?state={state}" for state in STATES}
    pages |= {
        "jobs": "",
        "failures": "failures/",
        "jobs-filtered": "?state=failed&queue=mail&since=24h&q=receipt",
    }
    for state in ("failed", "running", "scheduled", "completed"):
        newest = Job.objects.filter(state=state).latest("id").pk
        pages[f"job-{state}"] = f"{newest}/change/"
    pages["job-edit"] = f"{make('scheduled')[0]}/edit/"
    for name, path in pages.items():
        browser.open(ROOM + path)
        browser.check_layout(f"{name}-{'phone' if size is PHONE else 'desktop'}")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_hostile_rows(browser: Browser, size: tuple[int, int]) -> None:
    browser.size(size)
    odd = [HOSTILE, {HOSTILE: [HOSTILE]}, "W" * 5000, "\u202e" * 20]
    columns = {
        "name": HOSTILE, "queue_name": HOSTILE[:100], "unique_key": HOSTILE, "tags": odd[:1], "error_class": HOSTILE,
        "args": odd, "kwargs": {HOSTILE: HOSTILE, "W" * 300: "W" * 3000}, "result": odd,
        "errors": [{**ERROR, "class": HOSTILE, "message": HOSTILE * 20, "traceback": HOSTILE * 20}],
        "metadata": {HOSTILE: odd, "schedule": HOSTILE, "progress": {"done": 1, "total": 3, "note": HOSTILE}},
    }  # fmt: skip
    failed, running, waiting = (
        make("failed", **columns),
        make("running", **columns),
        make("scheduled", **columns),
    )
    make("available", name="W" * 200, queue_name="W" * 100)
    for path in (
        "", "?state=failed", "?state=running", "?state=available", "failures/", f"{failed[0]}/change/",
        f"{running[0]}/change/", f"{waiting[0]}/edit/", f"?q={'%3Cscript%3E'}&queue=%22%3E%3Cb%3E",
    ):  # fmt: skip
        browser.open(ROOM + path)
        assert browser.overflow() == 0, path
        assert browser.js("return window.pwned") is None, path
    browser.open(f"{ROOM}?state=failed")
    browser.one("tbody input[type=checkbox]").click()
    browser.click(browser.button("Delete"))
    assert browser.overflow() == 0
    assert browser.js("return window.pwned") is None
    assert HOSTILE in browser.text("#dj-page")


# -- the list ----------------------------------------------------------------------------------------------------------


def test_select_all_and_retry(browser: Browser) -> None:
    ids = make("failed", 3)
    browser.open(f"{ROOM}?state=failed")
    browser.one("[data-dj-all]").click()
    assert len(browser.all("tbody input:checked")) == 3
    browser.one(f"tbody input[value='{ids[0]}']").click()

    browser.click(browser.button("Retry"))

    assert told(browser) == "2 jobs will run again."
    assert browser.path == f"{ROOM}?state=failed"
    assert Job.objects.filter(state="available").count() == 2
    assert LogEntry.objects.count() == 2


def test_nothing_selected(browser: Browser) -> None:
    make("failed")
    browser.open(f"{ROOM}?state=failed")
    browser.click(browser.button("Retry"))
    assert "Select the jobs first" in told(browser)


def test_all_that_match_are_asked_for(browser: Browser) -> None:
    make("failed", 3)
    make("failed", 2, queue_name="mail")
    browser.open(f"{ROOM}?state=failed&queue=mail")
    browser.js("document.querySelector('[name=scope]').value = 'all'")

    browser.click(browser.button("Delete"))
    assert "state failed, queue mail" in browser.text("#dj-page")
    assert "2 jobs at present" in browser.text("#dj-page")
    browser.click(browser.link("No, go back"))
    assert Job.objects.count() == 5
    assert browser.path == f"{ROOM}?state=failed&queue=mail"
    browser.js("document.querySelector('[name=scope]').value = 'all'")
    browser.click(browser.button("Delete"))
    browser.click(browser.button("Yes: Delete"))

    assert told(browser) == "2 jobs deleted."
    assert Job.objects.count() == 3


@pytest.mark.parametrize(
    ("state", "button", "after"),
    [("pending", "Release", "available"), ("scheduled", "Run now", "available")],
)
def test_release_and_run_now(browser: Browser, state: str, button: str, after: str) -> None:
    make(state, 2)
    browser.open(f"{ROOM}?state={state}")
    browser.one("[data-dj-all]").click()
    browser.click(browser.button(button))
    assert states() == {after}


def test_cancel_those_that_run(browser: Browser) -> None:
    make("running")
    browser.open(f"{ROOM}?state=running")
    browser.one("[data-dj-all]").click()
    browser.click(browser.button("Cancel"))
    browser.click(browser.button("Yes: Cancel"))
    assert "1 job cancelled, or asked to stop." in told(browser)
    assert browser.text("tbody .dj-badge") == "cancelling"


def test_change_queue_and_priority(browser: Browser) -> None:
    make("available", 2)
    browser.open(f"{ROOM}?state=available")
    browser.one("[data-dj-all]").click()
    browser.one(".dj-change summary").click()
    browser.one("[name=to_queue]").send_keys("mail")
    browser.one("[name=to_priority]").send_keys("-7")
    browser.click(browser.one(".dj-change button"))
    assert told(browser) == "2 jobs changed."
    assert set(Job.objects.values_list("queue_name", "priority")) == {("mail", -7)}


def test_what_is_too_much_for_one_answer_goes_on_by_itself(browser: Browser, monkeypatch) -> None:
    monkeypatch.setattr(job_actions, "STEPS", 1)
    make("failed", 30, finalized_at=timezone.now() - HOUR)
    select = type(job_actions.django_store("default")).select

    def select_few(self, *args, **options):
        return select(self, *args, **{"look": 12, "most": 12, **options})

    monkeypatch.setattr(type(job_actions.django_store("default")), "select", select_few)
    browser.open(f"{ROOM}?state=failed")
    browser.js("document.querySelector('[name=scope]').value = 'all'")
    browser.click(browser.button("Retry"))
    browser.click(browser.button("Yes: Retry"))
    browser.wait(lambda: browser.path == f"{ROOM}?state=failed")
    assert states() == {"available"}
    assert told(browser) == "30 jobs will run again."


def test_filter_search_and_pages(browser: Browser) -> None:
    make("completed", 60, queue_name="mail", args=["ann"])
    (other,) = make("completed", args=["bob"])
    browser.open(ROOM)
    browser.one(".dj-more-filters summary").click()
    browser.one("[name=queue]").send_keys("mail")
    browser.click(browser.button("Show"))
    assert len(browser.all(".dj-jobs tbody tr")) == 50
    first = browser.text(".dj-jobs tbody .dj-id")
    browser.click(browser.one("[rel=next]"))
    assert len(browser.all(".dj-jobs tbody tr")) == 10
    browser.click(browser.one("[rel=prev]"))
    assert browser.text(".dj-jobs tbody .dj-id") == first
    browser.click(browser.link("Clear"))
    browser.one("[name=q]").send_keys("bob", Keys.ENTER)
    browser.wait(lambda: browser.path.endswith("?q=bob&in=&name=&queue=&worker=&priority=&since="))
    browser.click(browser.link("Search “bob” in arguments"))
    assert [each.text for each in browser.all("tbody .dj-id")] == [str(other)]
    assert "Searched in the arguments of 61 jobs" in browser.text("#dj-page")


@pytest.fixture
def restless(browser: Browser) -> Iterator[Browser]:
    """Pages refresh themselves, ten times a second."""
    browser.live()
    script = (
        "const later = window.setTimeout;"
        "window.setTimeout = (call, delay, ...more) => later(call, delay === 5000 ? 100 : delay, ...more);"
    )
    added = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    yield browser
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_a_selection_is_not_taken_away_by_a_refresh(restless: Browser) -> None:
    browser = restless

    def click(selector: str) -> bool:
        browser.one(selector).click()  # it may be gone by now: then another one is looked for
        return True

    make("failed", 2)
    browser.open(f"{ROOM}?state=failed")
    browser.wait(lambda: click("tbody input[type=checkbox]"))
    browser.wait(lambda: browser.text("[data-dj-live-state]") == "Waiting for your selection")
    assert browser.one("tbody input[type=checkbox]").is_selected()
    browser.one("tbody input[type=checkbox]").click()
    browser.js("document.activeElement.blur()")
    make("failed")
    browser.wait(lambda: len(browser.all(".dj-jobs tbody tr")) == 3)
    browser.wait(lambda: click("[name=scope] option[value=all]"))
    browser.js("document.activeElement.blur()")
    browser.wait(lambda: browser.text("[data-dj-live-state]") == "Waiting for your selection")
    assert browser.one("[name=scope]").get_attribute("value") == "all"


def test_with_the_keyboard(browser: Browser) -> None:
    ids = make("failed", 2)
    browser.open(f"{ROOM}?state=failed")
    browser.press(Keys.TAB)
    browser.press(Keys.ENTER)  # to the content, past the sidebar
    browser.tab_to(lambda element: element.accessible_name == f"Select job {ids[0]}")
    browser.press(Keys.SPACE)
    button = browser.button("Retry")
    browser.js("arguments[0].focus()", browser.one("[name=scope]"))
    browser.tab_to(lambda element: element == button)
    before = browser.one("html")
    browser.press(Keys.ENTER)
    browser.wait(lambda: before != browser.one("html") and browser.all(".messagelist"))
    assert Job.objects.get(pk=ids[0]).state == "available"
    assert Job.objects.get(pk=ids[1]).state == "failed"


# -- the page of a job -------------------------------------------------------------------------------------------------


def test_errors_fold_and_unfold(browser: Browser) -> None:
    (id_,) = make("failed", errors=[ERROR, {**ERROR, "number": 2, "attempt": 2}])
    browser.open(f"{ROOM}{id_}/change/")
    newest, oldest = browser.all(".dj-error")
    assert "1 frame of a library" in newest.text
    assert "site-packages" not in newest.text
    newest.find_element("css selector", ".dj-error .dj-fold > summary").click()
    assert "/x/site-packages/lib/a.py" in newest.text
    assert "no such file" not in oldest.text
    oldest.find_element("css selector", "summary").click()
    assert "no such file" in oldest.text


def test_its_buttons(browser: Browser) -> None:
    (id_,) = make("failed")
    browser.open(f"{ROOM}{id_}/change/")
    browser.click(browser.button("Retry"))
    assert told(browser) == "1 job will run again."
    assert browser.path == f"{ROOM}{id_}/change/"
    browser.click(browser.button("Cancel"))
    browser.click(browser.button("Yes: Cancel"))
    assert browser.text("#dj-page .dj-badge") == "cancelled"
    browser.click(browser.link("What operators did to it"))
    assert "Retried." in browser.text("#change-history")
    browser.open(f"{ROOM}{id_}/change/")
    browser.click(browser.button("Delete"))
    browser.click(browser.button("Yes: Delete"))
    assert browser.path == ROOM
    assert not Job.objects.exists()


@pytest.mark.parametrize(("state", "button"), [("pending", "Release"), ("scheduled", "Run now")])
def test_its_buttons_while_it_waits(browser: Browser, state: str, button: str) -> None:
    (id_,) = make(state)
    browser.open(f"{ROOM}{id_}/change/")
    browser.click(browser.button(button))
    assert browser.path == f"{ROOM}{id_}/change/"
    assert browser.text("#dj-page .dj-badge") == "available"


def test_edit(browser: Browser) -> None:
    (id_,) = make("scheduled", attempt=0)
    browser.open(f"{ROOM}{id_}/change/")
    browser.click(browser.link("Edit"))
    args = browser.one("[name=args]")
    args.clear()
    args.send_keys("[1,")
    browser.click(browser.button("Save"))
    assert "This is no JSON" in browser.text("#dj-page")
    args = browser.one("[name=args]")
    args.clear()
    args.send_keys(json.dumps([str(2**70)]))
    priority = browser.one("[name=priority]")
    priority.clear()
    priority.send_keys("9")
    browser.click(browser.button("Save"))
    assert told(browser) == f"Job {id_} was changed."
    job = Job.objects.get(pk=id_)
    assert (job.args, job.priority, job.state) == ([str(2**70)], 9, "scheduled")


def test_retry_a_group_of_failures(browser: Browser) -> None:
    make("failed", 3)
    make("failed", 2, name="tests.workload.jobs.nothing")
    browser.open(f"{ROOM}failures/")
    browser.click(browser.button("Retry: tests.workload.jobs.fail, ValueError"))
    assert "3 jobs at present" in browser.text("#dj-page")
    browser.click(browser.button("Yes: Retry"))
    assert told(browser) == "3 jobs will run again."
    assert browser.path == f"{ROOM}failures/"
    browser.click(browser.one("td[data-label='1 hour'] a"))
    assert len(browser.all(".dj-jobs tbody tr")) == 2
    browser.open(f"{ROOM}failures/")
    browser.click(browser.button("Delete: tests.workload.jobs.nothing, ValueError"))
    browser.click(browser.button("Yes: Delete"))
    assert told(browser) == "2 jobs deleted."
    assert set(Job.objects.values_list("name", flat=True)) == {"tests.workload.jobs.fail"}


# -- who, and how ------------------------------------------------------------------------------------------------------


def test_who_may_only_look_has_no_button(reader: Browser) -> None:
    for state in STATES:
        (id_,) = make(state)
        reader.open(f"{ROOM}{id_}/change/")
        assert [each.text for each in reader.all("#dj-page button, #dj-page a.dj-button")] == []
        reader.open(f"{ROOM}?state={state}")
        assert [each.text for each in reader.all("#dj-live button, #dj-live input")] == []
    reader.open(f"{ROOM}failures/")
    assert reader.all("#dj-page button") == []


def test_without_a_script_all_works(without_script: Browser) -> None:
    browser = without_script
    ids = make("failed", 2)
    browser.open(f"{ROOM}?state=failed")
    assert not browser.one("[data-dj-all]").is_displayed()
    browser.one(f"input[value='{ids[0]}']").click()
    browser.button("Retry").click()
    browser.wait(lambda: told(browser) == "1 job will run again.")
    browser.one("[name=scope] option[value=all]").click()
    browser.button("Delete").click()
    browser.wait(lambda: "Yes: Delete" in browser.text("#dj-page"))
    browser.button("Yes: Delete").click()
    browser.wait(lambda: told(browser) == "1 job deleted.")
    browser.open(f"{ROOM}{ids[0]}/edit/")
    browser.one("[name=priority]").clear()
    browser.one("[name=priority]").send_keys("7")
    browser.button("Save").click()
    browser.wait(lambda: "was changed" in told(browser))
    assert list(Job.objects.values_list("pk", "state", "priority")) == [(ids[0], "available", 7)]


def test_controls_have_names_and_tables_heads(browser: Browser) -> None:
    failed, scheduled = make("failed"), make("scheduled")
    for path in ("", "?state=failed", "failures/", f"{failed[0]}/change/", f"{scheduled[0]}/edit/"):
        browser.open(ROOM + path)
        assert not browser.all("#dj-page th:not([scope])")
        for region in browser.all("#dj-page section, #dj-page nav"):
            assert region.accessible_name, (path, region.get_attribute("outerHTML")[:200])
        selector = "#dj-page button, #dj-page a, #dj-page :is(input, select, textarea):not([type=hidden])"
        for control in browser.all(selector):
            if control.is_displayed():
                assert control.accessible_name, (path, control.get_attribute("outerHTML")[:200])
