"""What the pages say is marked for translation, all of it: in a language in which every marked string is bracketed,
nothing stands outside of brackets but what comes from rows, and what is Django's."""

import re
from html.parser import HTMLParser
from pathlib import Path

import polib
import pytest
from django.utils import timezone

import django_jobs
from django_jobs import operations
from django_jobs.models import Job, Queue, Schedule, Stat, Worker
from django_jobs.states import State, state_text
from django_jobs.texts import text
from testproject.demo import data

WORD = re.compile(r"[A-Za-z]{2,}")
# Units and names that no language changes.
KNOWN = {"JSON", "MB", "UTC"}
ATTRIBUTES = ("title", "aria-label", "placeholder", "alt")


class Texts(HTMLParser):
    """The texts of a page that people see, or hear: not what is in scripts, code and times."""

    def __init__(self):
        super().__init__()
        self.texts = []
        self.attributes = []
        self.within = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in ("time", "a", "option"):
            self.attributes += [value for name, value in attrs if name in ATTRIBUTES and value]
        if tag == "input" and given.get("type") in ("submit", "button"):
            self.attributes.append(given.get("value", ""))
        if tag not in ("input", "img", "br", "link", "meta", "hr", "path", "rect"):
            self.within.append(tag)

    def handle_endtag(self, tag):
        while self.within and self.within.pop() != tag:
            pass

    def handle_data(self, text):
        if not {"script", "style", "code", "time", "pre"} & {*self.within}:
            self.texts.append(text)


@pytest.fixture
def bracketed(tmp_path, settings):
    """German in which each string of ours is the English one in brackets."""
    catalogue = polib.pofile(str(Path(django_jobs.__file__).parent / "locale/de/LC_MESSAGES/django.po"))
    for entry in catalogue:
        if entry.msgid_plural:
            entry.msgstr_plural = {0: f"⟦{entry.msgid}⟧", 1: f"⟦{entry.msgid_plural}⟧"}
        else:
            entry.msgstr = f"⟦{entry.msgid}⟧"
    folder = tmp_path / "de/LC_MESSAGES"
    folder.mkdir(parents=True)
    catalogue.save_as_mofile(str(folder / "django.mo"))
    settings.LOCALE_PATHS = [tmp_path]
    settings.LANGUAGE_CODE = "de"


def outside(html):
    """The words of a page's content that are in no brackets."""
    parser = Texts()
    parser.feed(html[html.index('<div id="content') :])
    for text in [*parser.attributes, " ".join(parser.texts)]:
        before = None
        while before != text:
            before, text = text, re.sub(r"⟦[^⟦⟧]*⟧", " ", text)
        yield from WORD.findall(text)


def words_of_rows():
    """The words that come from rows, and may stand anywhere."""
    rows = [row for model in (Job, Queue, Schedule, Stat, Worker) for row in model.objects.values()]
    values = [str(value) for row in rows for value in row.values()]
    return {*WORD.findall(" ".join(values))}


@pytest.mark.django_db
def test_all_is_marked(admin, bracketed):
    now = timezone.now()
    data.fill_history(now)
    data.fill_present(now)
    jobs = [Job.objects.filter(state=state).first() for state in State.values]
    waiting = Job.objects.filter(state="scheduled").first()
    pages = [
        *(f"job/{job.pk}/change/" for job in jobs if job is not None),
        f"job/{waiting.pk}/edit/",
        "job/overview/",
        "job/failures/",
        *("job/", "job/?q=%23&in=arguments", "job/?state=nonsense"),
        *("queue/", "queue/mail/change/", "queue/purge/?queue=mail"),
        *("worker/", f"worker/{Worker.objects.first().pk}/change/"),
        *("schedule/", f"schedule/{Schedule.objects.first().pk}/change/"),
    ]
    known = words_of_rows() | KNOWN
    found = {}
    for page in pages:
        reply = admin.get(f"/admin/django_jobs/{page}", follow=True)
        assert reply.status_code == 200, page
        assert "⟦" in reply.text
        if words := {*outside(reply.text)} - known:
            found[page] = words

    assert found == {}


@pytest.mark.django_db
def test_what_is_said_of_states_and_reasons_is_marked(admin, make, bracketed, monkeypatch):
    (running,) = make("running")
    reply = admin.get(f"/admin/django_jobs/job/{running}/edit/", follow=True)
    assert "this one is ⟦running⟧" in reply.text
    asked = {"action": "delete", "scope": "all", "query": "?state=failed"}
    assert "⟦state ⟦failed⟧⟧" in admin.post("/admin/django_jobs/job/act/", asked).text
    asked["query"] = "?"
    assert "⟦completed⟧, ⟦failed⟧, ⟦cancelled⟧" in admin.post("/admin/django_jobs/job/act/", asked).text
    left = operations.Result()
    left.skip(running, text("it is %(state)s", state=state_text("running")))
    monkeypatch.setattr(operations, "delete", lambda *_, **__: left)
    purged = {"queue": "mail", "state": ["available"]}
    reply = admin.post("/admin/django_jobs/queue/purge/", purged, follow=True)
    assert "⟦it is ⟦running⟧⟧" in reply.text
