"""Editing a job that waits: where it waits and for what, and its arguments, checked as an enqueue checks them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone, translation
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext, gettext_lazy as _, gettext_noop, ngettext

from django_jobs import limits, operations, python_words
from django_jobs.admin.actions import EDIT
from django_jobs.admin.job_page import JobPage
from django_jobs.admin.log import record
from django_jobs.exceptions import InvalidJob
from django_jobs.models import Job
from django_jobs.operations.editing import checked_arguments, editable_by
from django_jobs.options import check_queue_name, check_run_after
from django_jobs.redaction import HIDDEN, Shown
from django_jobs.serialization import Undecodable, decode
from django_jobs.states import WAITING
from django_jobs.store.rows import ARGS, KWARGS, JobRow
from django_jobs.templatetags.django_jobs_admin import state_word
from django_jobs.texts import Text, joined, translated

MOMENT = "%Y-%m-%dT%H:%M:%S"
# A browser sends a text of more than this back slowly, and nobody edits it by hand.
MOST_TEXT = 200_000


class JSONText(forms.CharField):
    """JSON in a text area, with every digit of its numbers; the value is what it decodes to."""

    def __init__(self, *, kind: type, wrong: Any, **options: Any) -> None:
        widget = forms.Textarea(attrs={"spellcheck": "false", "class": "dj-code dj-json-text"})
        super().__init__(required=False, strip=False, widget=widget, **options)
        self.kind = kind
        self.wrong = wrong

    def to_python(self, value: Any) -> Any:
        """The decoded value. Raises ValidationError."""
        text = (super().to_python(value) or "").strip()
        if not text:
            return self.kind()
        try:
            decoded = decode(text)
        except ValueError as error:
            words = translated(python_words.of_json(error))
            message = gettext("This is no JSON: %(error)s.") % {"error": words.rstrip(".")}
            raise forms.ValidationError(message) from None
        if not isinstance(decoded, self.kind):
            raise forms.ValidationError(self.wrong)
        return decoded

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether it is another text; how its lines end does not matter."""
        return _plain(initial) != _plain(data)


def _plain(text: Any) -> str:
    return str(text or "").replace("\r\n", "\n").strip()


class EditForm(forms.Form):
    """The form.

    :param job: as it is now.
    """

    queue_name = forms.CharField(label=_("Queue"), max_length=limits.QUEUE_LENGTH)
    priority = forms.IntegerField(
        label=_("Priority"),
        min_value=limits.PRIORITY_LOWEST,
        max_value=limits.PRIORITY_HIGHEST,
        help_text=_("From -100 to 100; higher runs first."),
    )
    run_after = forms.DateTimeField(
        label=_("Run after"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format=MOMENT),
        input_formats=[MOMENT, "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"],
    )
    max_attempts = forms.IntegerField(label=_("Most attempts"), max_value=limits.MAX_ATTEMPTS_HIGHEST)
    args = JSONText(label=_("Positional arguments"), kind=list, wrong=_('Write a list: [1, "two"].'))
    kwargs = JSONText(label=_("Arguments by name"), kind=dict, wrong=_('Write an object: {"name": "value"}.'))
    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, job: JobRow, data: Any = None) -> None:
        self.job = job
        shown = Shown(job)
        self.why_not = _why_arguments_stay(job, shown)
        initial = {
            "queue_name": job.queue_name,
            "priority": job.priority,
            "run_after": _whole_seconds(job),
            "max_attempts": job.max_attempts,
            "seen": digest(job),
        }
        if not self.why_not:
            initial.update(args=_text(shown.args), kwargs=_text(shown.kwargs))
        super().__init__(data, initial=initial)
        fields = self.fields
        # Not the field's own: the widget is checked in the browser, and -100 to 100 is for all jobs.
        fields["max_attempts"].min_value = job.attempt + 1  # type: ignore[attr-defined]
        fields["max_attempts"].widget.attrs["min"] = job.attempt + 1
        fields["run_after"].help_text = gettext("In the time zone %(zone)s.") % {
            "zone": timezone.get_current_timezone_name()
        }
        if self.why_not:
            del fields["args"], fields["kwargs"]
        else:
            for name in ("args", "kwargs"):
                fields[name].widget.attrs["rows"] = min(20, max(3, str(initial[name]).count("\n") + 2))

    @property
    def hides(self) -> bool:
        """Whether something in the arguments is hidden."""
        return not self.why_not and HIDDEN in f"{self.initial['args']}{self.initial['kwargs']}"

    def clean_queue_name(self) -> str:
        """A name that a queue can have."""
        name: str = self.cleaned_data["queue_name"]
        self._checked(lambda: check_queue_name(name, self.job.name))
        return name

    def clean_run_after(self) -> dt.datetime:
        """A moment that both databases can hold."""
        moment: dt.datetime = self.cleaned_data["run_after"]
        self._checked(lambda: check_run_after(moment, self.job.name))
        return moment

    def clean_max_attempts(self) -> int:
        """One attempt is left at least."""
        value: int = self.cleaned_data["max_attempts"]
        if value <= self.job.attempt:
            raise forms.ValidationError(
                ngettext(
                    "It has spent %(count)d attempt already.",
                    "It has spent %(count)d attempts already.",
                    self.job.attempt,
                )
                % {"count": self.job.attempt}
            )
        return value

    def clean(self) -> dict[str, Any]:
        """The arguments together, with what is hidden as it was; and whether somebody else was here meanwhile."""
        cleaned = super().clean() or self.cleaned_data
        if not constant_time_compare(cleaned.get("seen", ""), digest(self.job)):
            # The next time it is sent, it is about the job as it is shown now.
            self.data = {**dict(self.data.items()), "seen": digest(self.job)}
            raise forms.ValidationError(
                gettext("The job has changed since this page was made. Look again, and send it once more.")
            )
        if not self.errors and {"args", "kwargs"} & set(self.changed_data):
            try:
                for name in ("args", "kwargs"):
                    shown = decode(self.initial[name])
                    cleaned[name] = restored(cleaned[name], shown, getattr(self.job, name))
                checked_arguments(self.job, cleaned["args"], cleaned["kwargs"])
            except (InvalidJob, Moved) as error:
                raise forms.ValidationError(translated(error)) from None
        return cleaned

    def changes(self) -> dict[str, Any]:
        """What :func:`operations.edit` is to be given."""
        names = {name for name in self.changed_data if name != "seen"}
        if names & {"args", "kwargs"}:
            names |= {"args", "kwargs"}
        return {name: self.cleaned_data[name] for name in self.fields if name in names}

    def _checked(self, check: Callable[[], None]) -> None:
        try:
            check()
        except InvalidJob as error:
            raise forms.ValidationError(error.translated) from None


class Moved(ValueError):
    """The mark of a hidden value stands where none was."""


def restored(value: Any, shown: Any, stored: Any) -> Any:
    """A value that was edited, with the hidden ones in it as they are stored. Raises Moved."""
    if value == HIDDEN:
        if shown == HIDDEN:
            return stored
        raise Moved(
            gettext(
                "“%(mark)s” stands for a hidden value, which can't be moved: leave it in its place, or write another "
                "value there."
            )
            % {"mark": HIDDEN}
        )
    if isinstance(value, dict):
        return {
            key: restored(each, shown.get(key) if isinstance(shown, dict) else None, _at(stored, key))
            for key, each in value.items()
        }
    if isinstance(value, list):
        known = shown if isinstance(shown, list) else []
        return [
            restored(each, known[place] if place < len(known) else None, _at(stored, place))
            for place, each in enumerate(value)
        ]
    return value


def _at(value: Any, place: Any) -> Any:
    try:
        return value[place]
    except (KeyError, IndexError, TypeError):
        return None


def digest(job: JobRow) -> str:
    """What tells whether the job is still as it was: it says nothing of the arguments to who does not know them."""
    seen = [
        job.values[ARGS],
        job.values[KWARGS],
        job.queue_name,
        job.priority,
        str(job.run_after),
        job.max_attempts,
    ]
    text = json.dumps([job.id, job.claims, *map(str, seen)])
    return salted_hmac("django_jobs.edit", text, algorithm="sha256").hexdigest()


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # Half a character, which only an escape can write: it stays one.
    return text.encode("utf-8", "backslashreplace").decode()


def _whole_seconds(job: JobRow) -> dt.datetime:
    """When it is due, as the form has it; who does not touch the field does not change the time by a fraction."""
    moment = timezone.localtime(job.run_after).replace(microsecond=0)
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def _fields(names: Iterable[str]) -> list[str]:
    """Fields as the model calls them in English, as Django's own entries of the log have them."""
    with translation.override(None):
        fields: dict[str, Any] = {field.name: field for field in Job._meta.fields}
        return [str(fields[name].verbose_name) for name in names]


def _why_arguments_stay(job: JobRow, shown: Shown) -> str:
    """Why the arguments can't be edited; empty if they can."""
    try:
        editable_by(job)
    except InvalidJob:
        return gettext(
            "The arguments can't be edited here: no function of this name is registered in this process, so nothing "
            "could check them."
        )
    if isinstance(shown.args, Undecodable) or isinstance(shown.kwargs, Undecodable):
        return gettext("The arguments are no JSON, and can't be edited here.")
    if not isinstance(shown.args, list) or not isinstance(shown.kwargs, dict):
        return gettext("The arguments are hidden, or not a list and an object, and can't be edited here.")
    if len(job.values[ARGS]) + len(job.values[KWARGS]) > MOST_TEXT:
        return gettext("The arguments are too large to be edited here.")
    return ""


class EditPage(JobPage):
    """The page with the form, as a view of the admin of jobs."""

    def get_urls(self) -> list[URLPattern]:
        """Its own, before what the class behind has."""
        view = self.admin_site.admin_view(self.edit_view)
        return [path("<int:job_id>/edit/", view, name="django_jobs_job_edit"), *super().get_urls()]

    def edit_view(self, request: HttpRequest, job_id: int) -> HttpResponse:
        """Show the form, or do what it says."""
        self.must(request, "django_jobs.view_job")
        self.must(request, EDIT)
        job = operations.get(job_id) if job_id < 2**63 else None
        if job is None:
            return self.gone(request, str(job_id))
        home = self.url("django_jobs_job_change", job_id)
        if job.state not in WAITING:
            messages.warning(
                request,
                gettext("Only a job that waits can be edited; this one is %(state)s.")
                % {"state": state_word(job.state)},
            )
            return HttpResponseRedirect(home)
        form = EditForm(job, request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            changes = form.changes()
            if not changes:
                messages.info(request, gettext("Nothing was changed."))
                return HttpResponseRedirect(home)
            edited = operations.edit(job, **changes)
            if edited is None:
                messages.error(
                    request,
                    gettext("Nothing was changed: a worker has claimed the job, or somebody has edited it."),
                )
            else:
                fields = _fields(changes)
                entry = Text(
                    gettext_noop("Edited: %(fields)s."), {"fields": joined(*map(Text, fields), by=", ")}
                )
                record(request, Job, job_id, f"{job.name} ({job_id})", entry, fields)
                messages.success(request, gettext("Job %(id)d was changed.") % {"id": job_id})
            return HttpResponseRedirect(home)
        context = {"form": form, "job": job, "home": home}
        title = gettext("Edit job %(id)d") % {"id": job_id}
        trail = [(gettext("Job %(id)d") % {"id": job_id}, home)]
        return self.page(request, "admin/django_jobs/job_edit.html", title, context, trail=trail)
