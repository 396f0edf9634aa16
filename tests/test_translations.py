"""The catalogues: each has every string that the code marks, translated, and what is compiled is what is written.

The strings are looked for in the code itself, by Python alone; ``make messages`` writes the catalogues with gettext.
"""

import ast
import gettext
import re
from pathlib import Path

import polib
import pytest
from django.utils import translation
from django.utils.translation.template import templatize

import django_jobs
from django_jobs.doctor import summary
from django_jobs.doctor.findings import ERROR, WARNING, Finding
from django_jobs.models import Job
from django_jobs.operations import Count

PACKAGE = Path(django_jobs.__file__).parent
LANGUAGES = ("de", "es")
CALLS = {
    # name: the arguments that are the context, the string and its plural
    "gettext": (None, 0, None),
    "gettext_lazy": (None, 0, None),
    "gettext_noop": (None, 0, None),
    "ngettext": (None, 0, 1),
    "ngettext_lazy": (None, 0, 1),
    "pgettext": (0, 1, None),
    "pgettext_lazy": (0, 1, None),
    "npgettext": (0, 1, 2),
    "npgettext_lazy": (0, 1, 2),
}
# What is shown in English, too (django_jobs.texts), and as what gettext looks for it.
OURS = {"text": "gettext", "ntext": "ngettext"}
# As templatize() writes what a template marks: as calls, in what is no Python otherwise.
IN_TEMPLATE = re.compile(r"\b(_|n?p?gettext)\(")
PLACES = re.compile(r"%(?:\(\w+\))?[a-z]|<[^>]+>")


def catalogue(language):
    return polib.pofile(str(PACKAGE / f"locale/{language}/LC_MESSAGES/django.po"))


def in_python(source):
    """The strings that Python code marks: context, string, plural."""
    tree = ast.parse(source)
    names = {name: name for name in CALLS}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in (
            "django.utils.translation",
            "django_jobs.texts",
        ):
            names |= {alias.asname: OURS.get(alias.name, alias.name) for alias in node.names if alias.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            places = CALLS.get(names.get(node.func.id, ""))
            if places is None:
                continue
            given = [each.value if isinstance(each, ast.Constant) else None for each in node.args]
            texts = tuple(None if place is None else given[place] for place in places)
            if texts[1] is not None:  # else it is a variable, whose strings are marked elsewhere
                yield texts


def in_template(source):
    """The strings that a template marks."""
    text = templatize(source)
    for match in IN_TEMPLATE.finditer(text):
        name = match[1]
        end = _end_of_call(text, match.end())
        yield from in_python(f"{'gettext' if name == '_' else name}({text[match.end() : end]})")


def _end_of_call(text, start):
    """Where the parenthesis closes that was opened before ``start``: the first one at which it is Python."""
    for match in re.compile(r"\)").finditer(text, start):
        try:
            ast.parse(f"f({text[start : match.start()]})")
        except SyntaxError:
            continue
        return match.start()
    raise AssertionError(text[start : start + 80])


def marked():
    """All that is marked in the package."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if "migrations" not in path.parts:
            found.update(in_python(path.read_text()))
    for path in PACKAGE.rglob("*.html"):
        found.update(in_template(path.read_text()))
    return found


def key(entry):
    return entry.msgctxt, entry.msgid, entry.msgid_plural or None


def texts_of(entry):
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


class TestWhatIsMarked:
    """The way the strings are found, on what there is to find."""

    def test_in_python(self):
        source = """
from django.utils.translation import gettext_lazy as _, ngettext, pgettext
_("one"), ngettext("%d job", "%d jobs", 2), pgettext("verb", "two"), _(name), other("no"), _("a" "b")
"""
        assert {*in_python(source)} == {
            (None, "one", None),
            (None, "%d job", "%d jobs"),
            ("verb", "two", None),
            (None, "ab", None),
        }

    def test_in_templates(self):
        source = """{% load i18n %}{% translate "one (1)" %}{% translate "two" context "verb" %}
<p title="{% translate 'it is' %}">{% blocktranslate count n=jobs|length trimmed %}
  {{ n }} job{% plural %}{{ n }} jobs{% endblocktranslate %}{{ _("three") }}{{ value|default:_("four") }}"""
        assert {*in_template(source)} == {
            (None, "one (1)", None),
            ("verb", "two", None),
            (None, "it is", None),
            (None, "%(n)s job", "%(n)s jobs"),
            (None, "three", None),
            (None, "four", None),
        }

    def test_in_texts_of_errors(self):
        source = """
from django_jobs.texts import ntext as ngettext, text as _
_("%(name)s is wrong", name=name), ngettext("%(count)d job", "%(count)d jobs", 2, why=why)
"""
        assert {*in_python(source)} == {
            (None, "%(name)s is wrong", None),
            (None, "%(count)d job", "%(count)d jobs"),
        }

    def test_gettext_finds_what_marks_texts_of_errors(self):
        """It knows the names ``_`` and ``ngettext``, and no others."""
        for path in PACKAGE.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "django_jobs.texts":
                    marks = {each.name: each.asname for each in node.names if each.name in OURS}
                    assert marks.items() <= {"text": "_", "ntext": "ngettext"}.items(), path

    def test_there_is_much(self):
        assert len(marked()) > 500


def test_commands_are_in_english():
    """As Django's own are, whatever the language of the site is: so scripts can read what they say."""
    for folder in ("management", "doctor"):
        for path in (PACKAGE / folder).rglob("*.py"):
            source = path.read_text()
            assert "django.utils.translation" not in source, path
            assert ".translated" not in source, path
    with translation.override("de"):
        findings = [Finding(ERROR, "", ""), Finding(WARNING, "", ""), Finding(WARNING, "", "")]
        assert summary(findings) == "1 error, 2 warnings."
        assert str(Count(12_345, capped=True)) == "12,345+"


@pytest.mark.parametrize("language", LANGUAGES)
class TestCatalogues:
    def test_has_what_the_code_marks_and_nothing_else(self, language):
        entries = catalogue(language)
        there = {key(entry) for entry in entries if not entry.obsolete}

        assert marked() - there == set(), "run make messages, and translate"
        assert there - marked() == set(), "run make messages"
        assert not entries.obsolete_entries()

    def test_is_translated(self, language):
        entries = catalogue(language)

        assert [entry.msgid for entry in entries if entry.fuzzy or not all(texts_of(entry))] == []
        plurals = int(re.search(r"nplurals=(\d)", entries.metadata["Plural-Forms"])[1])
        assert {len(texts_of(entry)) for entry in entries if entry.msgid_plural} == {plurals}

    def test_keeps_what_is_filled_in(self, language):
        for entry in catalogue(language):
            expected = sorted(PLACES.findall(entry.msgid))
            for text in texts_of(entry):
                assert sorted(PLACES.findall(text)) == expected, entry.msgid

    def test_begins_and_ends_as_the_original(self, language):
        """A full stop, a question mark or a capital, where the original has one."""
        for entry in catalogue(language):
            for text in texts_of(entry):
                assert (entry.msgid[-1] in ".?:") == (text[-1] in ".?:"), entry.msgid

    def test_is_compiled(self, language):
        """A wheel is built without gettext: what it carries is in the repository."""
        with (PACKAGE / f"locale/{language}/LC_MESSAGES/django.mo").open("rb") as file:
            compiled = gettext.GNUTranslations(file)

        for entry in catalogue(language):
            for number, text in entry.msgstr_plural.items() if entry.msgid_plural else [(None, entry.msgstr)]:
                name = f"{entry.msgctxt}\x04{entry.msgid}" if entry.msgctxt else entry.msgid
                assert compiled._catalog[name if number is None else (name, number)] == text, "make messages"

    def test_contradicts_no_catalogue_of_django(self, language):
        """The catalogues of all apps are one: a word of ours that Django has too would change the pages of Django's."""
        import django

        ours = {(entry.msgctxt, entry.msgid): entry.msgstr for entry in catalogue(language)}
        for app in ("conf", "contrib/admin", "contrib/auth"):
            path = Path(django.__file__).parent / app / f"locale/{language}/LC_MESSAGES/django.po"
            for entry in polib.pofile(str(path)):
                ours_here = ours.get((entry.msgctxt, entry.msgid), entry.msgstr)
                assert ours_here == entry.msgstr or not entry.msgstr, (app, entry.msgid)

    def test_is_used(self, language):
        with translation.override(language):
            (queue,) = {str(Job._meta.get_field("queue_name").verbose_name)}

        assert queue == {"de": "Warteschlange", "es": "cola"}[language]
