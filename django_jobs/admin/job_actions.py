"""Doing something to jobs from a page: to those selected, or to all that match; asked for first where it destroys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, gettext_noop, ngettext
from django.views.decorators.http import require_POST

from django_jobs import operations
from django_jobs.admin.actions import ACTIONS, Action
from django_jobs.admin.job_query import JobQuery
from django_jobs.admin.log import numbers_of, record, record_many
from django_jobs.admin.room import RoomAdmin, may
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob
from django_jobs.models import Job
from django_jobs.operations import Count, Filter, InvalidFilter, Result
from django_jobs.operations.searching import WINDOW, count_matching
from django_jobs.serialization import decode
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow
from django_jobs.templatetags.django_jobs_admin import state_word
from django_jobs.texts import Text, joined, number_text, of_recipe, translated

ALL, SELECTED = "all", "selected"
MOST_SELECTED = 500
NAMED = 20  # jobs that a question names
LINKED = 5  # jobs that a message links to
MOST_ASKED = 1000  # jobs that a search in arguments looks for before it is asked whether
STEPS = 20  # of an operation in one request: 20,000 jobs at most


class Refused(Exception):
    """A form that can't be meant; the message is for the user."""


class Target(NamedTuple):
    """What an action is about.

    :param wanted: the jobs.
    :param description: of all that match; empty for those selected.
    :param jobs: those selected, as they are.
    :param is_cut: whether there are more than were looked for to ask.
    """

    wanted: Filter
    description: str = ""
    jobs: Sequence[JobRow] = ()
    is_cut: bool = False


class ActionsPage(RoomAdmin):
    """The view that all forms with actions on jobs are sent to."""

    def get_urls(self) -> list[URLPattern]:
        """Its own, before what the class behind has."""
        view = self.admin_site.admin_view(require_POST(self.act_view))
        return [path("act/", view, name="django_jobs_job_act"), *super().get_urls()]

    def actions_for(self, request: HttpRequest, *states: str) -> list[Action]:
        """What this user may do to jobs in any of the states; "" is any."""
        return [
            action
            for action in ACTIONS.values()
            if may(request, action.permission) and ("" in states or set(states) & set(action.states))
        ]

    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Ask, do it, and say what was done and why some was not."""
        self.must(request, "django_jobs.view_job")
        query = JobQuery(_query_dict(request.POST.get("query", "")))
        default = self.url("django_jobs_job_changelist") + query.address()
        action = ACTIONS.get(request.POST.get("action", ""))
        if action is None:
            messages.error(request, gettext("No action was chosen."))
            return self.back(request, default)
        self.must(request, action.permission)
        try:
            values = _values(request.POST, action)
            is_confirmed = request.POST.get("confirmed") == "yes"
            target = self.target(request, action, query, WINDOW if is_confirmed else MOST_ASKED)
            if not is_confirmed and (action.destroys or target.description):
                return self.ask(request, action, target, values, default)
            after = request.POST.get("after") or None
            result = action.do(target.wanted, values, steps=STEPS, after=after)
        except (Refused, InvalidFilter, InvalidJob) as error:
            messages.error(request, translated(error))
            return self.back(request, default)
        self.log(request, action, target, values, result)
        add_earlier(result, request.POST)
        if result.next is not None:
            return self.go_on(request, action, target, result, default)
        self.tell(request, action, result)
        return self.back(request, default)

    # -- what it is about ------------------------------------------------------------------------------------------

    def target(self, request: HttpRequest, action: Action, query: JobQuery, most: int) -> Target:
        """The jobs that a form is about. Raises Refused.

        :param most: how many are looked for by their arguments.
        """
        if request.POST.get("scope") != ALL:
            ids = _ids(request.POST.getlist("job"))
            rows = django_store(jobs_database()).get(ids)
            return Target(Filter(ids=ids), "", rows)
        if not query.is_valid:
            raise Refused(" ".join(query.errors))
        wanted = query.filter
        description = query.describe()
        if query.searches_arguments:
            found = operations.search_arguments(
                wanted.within(*self.states(action, wanted)), query.search, limit=most, reads=most, whole=False
            )
            ids = [job.id for job in found.jobs]
            if not ids and not found.cut:
                raise Refused(gettext("No such job was found."))
            words = ngettext("the %(count)s found", "those %(count)s found", len(ids))
            if found.cut:
                words = gettext("the first %(count)s found, and those behind them")
            which = words % {"count": number_text(len(ids))}
            return Target(Filter(ids=ids), f"{description}; {which}", (), found.cut)
        if wanted.ids is not None:
            return Target(wanted, description)
        states = self.states(action, wanted)
        if not wanted.states:
            described = ", ".join(str(state_word(state)) for state in states)
            all_of = description if query.is_filtered else ""
            description = ", ".join(
                part for part in (gettext("state %(value)s") % {"value": described}, all_of) if part
            )
        return Target(wanted.within(*states), description)

    def states(self, action: Action, wanted: Filter) -> tuple[str, ...]:
        """The states of the jobs that an action on all that match is done to. Raises Refused."""
        if not wanted.states:
            return action.all_states
        states = tuple(state for state in wanted.states if state in action.states)
        if not states:
            raise Refused(gettext("This can't be done to jobs in the state they are in."))
        return states

    # -- asking ----------------------------------------------------------------------------------------------------

    def ask(
        self,
        request: HttpRequest,
        action: Action,
        target: Target,
        values: dict[str, Any],
        default: str,
    ) -> HttpResponse:
        """The question whether it is to be done."""
        context = {
            "question": action.question,
            "consequences": [text for text in (action.consequence, _values_text(values)) if text],
            "which": target.description,
            "count": None if not target.description else _count(target),
            "jobs": target.jobs[:NAMED],
            "more": max(0, len(target.jobs) - NAMED),
            "hidden": _again(request.POST),
            "button": action.label,
            "destroys": action.destroys,
            "cancel_url": self.back(request, default).url,
        }
        if not target.description and not target.jobs:
            raise Refused(gettext("Those jobs are gone."))
        return self.page(request, "admin/django_jobs/job_confirm.html", action.label, context, trail=True)

    def go_on(
        self, request: HttpRequest, action: Action, target: Target, result: Result, default: str
    ) -> HttpResponse:
        """The page between two steps of what is too much for one answer."""
        hidden = [pair for pair in _again(request.POST) if pair[0] not in ("after", "done", "left")]
        left = [
            [why.recipe if isinstance(why, Text) else why, count, result.skipped_ids[why][: LINKED + 1]]
            for why, count in result.skipped.items()
        ]
        context = {
            "which": target.description,
            "total": result.done,
            "hidden": [
                *hidden,
                ("after", result.next),
                ("done", result.done),
                ("left", json.dumps(left)),
                ("confirmed", "yes"),
            ],
            "cancel_url": self.back(request, default).url,
        }
        return self.page(request, "admin/django_jobs/job_go_on.html", action.label, context, trail=True)

    # -- telling ---------------------------------------------------------------------------------------------------

    def tell(self, request: HttpRequest, action: Action, result: Result) -> None:
        """Say what was done, and why some was not."""
        if result.done:
            messages.success(request, action.done_text(result.done))
        elif not result.skipped and result.next is None:
            messages.warning(request, gettext("There was no job to do that to."))
        for why, count in result.skipped.items():
            text = ngettext(
                "%(count)s job was left as it is: %(why)s.",
                "%(count)s jobs were left as they are: %(why)s.",
                count,
            ) % {"count": number_text(count), "why": translated(why)}
            messages.warning(request, format_html("{} {}", text, self.links(result.skipped_ids[why], count)))

    def links(self, ids: Sequence[int], count: int) -> SafeString:
        """Links to the first of some jobs."""
        shown = format_html_join(
            ", ",
            '<a href="{}">{}</a>',
            ((self.url("django_jobs_job_change", id_), id_) for id_ in ids[:LINKED]),
        )
        return format_html("({}{})", shown, ", …" if count > LINKED else "")

    def log(
        self, request: HttpRequest, action: Action, target: Target, values: dict[str, Any], result: Result
    ) -> None:
        """Write to the admin's log: an entry for each job that was selected, one for all that match."""
        if not result.done:
            return
        message = Text(action.entry)
        fields = action.fields
        if values:
            changed = {_FIELDS[name]: value for name, value in values.items()}
            fields = tuple(changed)
            told = (
                Text("%(field)s: %(value)s", {"field": Text(field), "value": value})
                for field, value in changed.items()
            )
            message = joined(message, joined(*told, by=", "))
        if target.description:
            message = joined(message, numbers_of(result))
            record(request, Job, None, target.description, message, fields, action.flag)
            return
        done = set(result.done_ids)
        named = [(job.id, f"{job.name} ({job.id})") for job in target.jobs if job.id in done]
        if named:
            record_many(request, Job, named, message, fields, action.flag)
        if result.done > len(named):
            count = number_text(result.done)
            called = ngettext("%(count)s job", "%(count)s jobs", result.done) % {"count": count}
            record(request, Job, None, called, message, fields, action.flag)


# What an action can change, as the model calls it.
_FIELDS = {"queue_name": gettext_noop("queue"), "priority": gettext_noop("priority")}


def _ids(texts: Iterable[str]) -> list[int]:
    ids = []
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise Refused(gettext("“%(value)s” is no id of a job.") % {"value": text[:50]})
        ids.append(int(text))
    if not ids:
        raise Refused(gettext("Select the jobs first, or choose all that match."))
    if len(ids) > MOST_SELECTED:
        raise Refused(
            gettext("Select %(most)d jobs at most, or choose all that match.") % {"most": MOST_SELECTED}
        )
    return ids


def _values(data: QueryDict, action: Action) -> dict[str, Any]:
    """What a form has for an action beside the jobs. Raises Refused."""
    if action.name != "update":
        return {}
    values: dict[str, Any] = {}
    if queue_name := data.get("to_queue", "").strip():
        values["queue_name"] = queue_name
    if priority := data.get("to_priority", "").strip():
        digits = priority[1:] if priority[0] in "+-" else priority
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
            raise Refused(gettext("“%(value)s” is no whole number (priority).") % {"value": priority[:50]})
        values["priority"] = int(priority)
    if not values:
        raise Refused(gettext("Give a queue or a priority to change the jobs to."))
    return values


def _values_text(values: dict[str, Any]) -> str:
    words = {"queue_name": _("to the queue %(value)s"), "priority": _("to the priority %(value)s")}
    return ", ".join(str(words[name]) % {"value": value} for name, value in values.items())


def _count(target: Target) -> Any:
    if target.wanted.ids is None:
        return count_matching(target.wanted)
    return Count(len(target.wanted.id_list or ()), target.is_cut)


def _again(data: QueryDict) -> list[tuple[str, str]]:
    """What was sent, to be sent again."""
    return [
        (name, value)
        for name, values in data.lists()
        if name not in ("csrfmiddlewaretoken", "confirmed")
        for value in values
    ]


def add_earlier(result: Result, data: QueryDict) -> None:
    """Add what the steps before did, as the form that goes on tells it. It is told to people, and nothing more."""
    text = data.get("done", "")
    if text.isascii() and text.isdigit() and len(text) < 13:
        result.done += int(text)
    try:
        for recipe, count, ids in decode(data.get("left", "")):
            why = recipe if isinstance(recipe, str) else of_recipe(recipe)
            if why is None or not isinstance(count, int) or not all(isinstance(id_, int) for id_ in ids):
                continue
            if 0 < count < 10**12:
                result.skipped[why] += count
                result.skipped_ids[why] = [*ids, *result.skipped_ids.get(why, [])]
    except (ValueError, TypeError, AttributeError):
        return


def _query_dict(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text.removeprefix("?"), max_num_fields=50))
    except ValueError:
        return {}
