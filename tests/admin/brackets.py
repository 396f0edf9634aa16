"""A language in which every marked string is bracketed: what stands outside of brackets on a page is not marked, but
for what comes from rows, and what is Django's."""

import re
from html.parser import HTMLParser
from pathlib import Path

import polib
import pytest

import django_jobs
from django_jobs.models import Job, Queue, Schedule, Stat, Worker

WORD = re.compile(r"[A-Za-z]{2,}")
PLACE = re.compile(r"%\(\w+\)[sd]")
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


def bare(text):
    """A text without what is in brackets."""
    return re.sub(r"⟦[^⟦⟧]*⟧", " ", text)


def outside(html):
    """The words of a page's content, and of its messages, that are in no brackets."""
    parser = Texts()
    messages = html.find('<ul class="messagelist')
    parser.feed(html[messages if messages >= 0 else html.index('<div id="content') :])
    for text in [*parser.attributes, " ".join(parser.texts)]:
        yield from WORD.findall(bare(text))


def words_of_rows():
    """The words that come from rows, and may stand anywhere."""
    rows = [row for model in (Job, Queue, Schedule, Stat, Worker) for row in model.objects.values()]
    values = [str(value) for row in rows for value in row.values()]
    return {*WORD.findall(" ".join(values))}


def words_left(reply, given=None, known=""):
    """The words of an answer that are in no brackets, without those of rows, of what was given, and those known."""
    assert reply.status_code == 200
    assert "⟦" in reply.text
    values = " ".join(str(value) for value in (given or {}).values())
    found = {*outside(reply.text)} - words_of_rows() - KNOWN - {*WORD.findall(known)}
    return {word for word in found if word not in values}  # which a message may cut


def in_brackets(text):
    """A string, but for what is filled in, which is to be in brackets of its own."""
    return f"⟦{re.sub(PLACE, lambda place: f'⟧{place[0]}⟦', text)}⟧".replace("⟦⟧", "")


@pytest.fixture(scope="session")
def brackets(tmp_path_factory):
    """A folder with the catalogue of German in which each string of ours is the English one in brackets."""
    catalogue = polib.pofile(str(Path(django_jobs.__file__).parent / "locale/de/LC_MESSAGES/django.po"))
    for entry in catalogue:
        if entry.msgid_plural:
            entry.msgstr_plural = {0: in_brackets(entry.msgid), 1: in_brackets(entry.msgid_plural)}
        else:
            entry.msgstr = in_brackets(entry.msgid)
    folder = tmp_path_factory.mktemp("brackets")
    (folder / "de/LC_MESSAGES").mkdir(parents=True)
    catalogue.save_as_mofile(str(folder / "de/LC_MESSAGES/django.mo"))
    return folder


@pytest.fixture
def bracketed(brackets, settings):
    """German in which each string of ours is the English one in brackets."""
    settings.LOCALE_PATHS = [brackets]
    settings.LANGUAGE_CODE = "de"
