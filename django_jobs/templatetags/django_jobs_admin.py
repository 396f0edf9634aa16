"""What the operations room's templates show values with."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from django import template
from django.utils import formats, timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_lazy as _, pgettext

from django_jobs.admin import json_display
from django_jobs.admin.words import ago_text, duration_text, duration_units
from django_jobs.states import State
from django_jobs.texts import number_text

register = template.Library()

NONE = "\N{EN DASH}"

RETRYING, CANCELLING = "retrying", "cancelling"
STATE_WORDS = {
    State.PENDING: _("pending"),
    State.SCHEDULED: _("scheduled"),
    RETRYING: _("retrying"),
    State.AVAILABLE: _("available"),
    State.RUNNING: _("running"),
    CANCELLING: _("cancelling"),
    State.COMPLETED: _("completed"),
    State.FAILED: _("failed"),
    State.CANCELLED: _("cancelled"),
}


def state_word(state: str) -> Any:
    """A state in the language of the page."""
    return STATE_WORDS.get(state, state)


@register.simple_tag
def state_badge(job: Any) -> SafeString:
    """A state as a coloured word: of a job (its row or model), or a state's name."""
    if isinstance(job, str):
        return badge(state_word(job), job)
    state = str(job.state)
    if state == State.SCHEDULED and job.attempt:
        state = RETRYING
    elif state == State.RUNNING and job.cancel_requested_at is not None:
        state = CANCELLING
    return badge(state_word(state), state)


@register.simple_tag
def badge(text: Any, kind: str) -> SafeString:
    """A coloured word. ``kind`` is a state, or one of ok, warning, error, quiet."""
    return format_html('<span class="dj-badge dj-{}">{}</span>', _word(kind), text)


@register.simple_tag(takes_context=True)
def ago(context: template.Context, moment: dt.datetime | None) -> SafeString | str:
    """How long ago, or in how long, with the moment itself as its title; a dash for none.

    The script keeps it true while the page stays open.
    """
    if moment is None:
        return NONE
    now = context.get("now") or timezone.now()
    return format_html(
        '<time datetime="{}" title="{}" data-dj-ago>{}</time>',
        iso(moment),
        exact(moment),
        ago_text((aware(now) - aware(moment)).total_seconds()),
    )


@register.simple_tag
def moment(value: dt.datetime | None) -> SafeString | str:
    """A moment to the second, in the site's or the user's time zone; a dash for none."""
    if value is None:
        return NONE
    return format_html('<time datetime="{}">{}</time>', iso(value), exact(value))


@register.filter
def iso(value: dt.datetime) -> str:
    """A moment for the script: with its zone, also where ``USE_TZ`` is off."""
    return aware(value).isoformat()


def aware(value: dt.datetime) -> dt.datetime:
    """A moment with its zone: without one it is in the site's."""
    return timezone.make_aware(value, timezone.get_default_timezone()) if timezone.is_naive(value) else value


def exact(value: dt.datetime) -> str:
    """A moment in words, to the second, with its zone."""
    if timezone.is_naive(value):
        return formats.date_format(value, "Y-m-d H:i:s")
    local = timezone.localtime(value)
    return f"{formats.date_format(local, 'Y-m-d H:i:s')} {local.tzname()}"


@register.simple_tag
def duration(seconds: float | dt.timedelta | None) -> SafeString | str:
    """A span of time in its two largest units; a dash for none."""
    if seconds is None:
        return NONE
    if isinstance(seconds, dt.timedelta):
        seconds = seconds.total_seconds()
    exactly = formats.number_format(round(seconds, 3), decimal_pos=3, use_l10n=True)
    return format_html(
        '<span class="dj-nowrap" title="{} {}">{}</span>',
        exactly,
        duration_units()[1],
        duration_text(seconds),
    )


@register.simple_tag
def duration_words() -> SafeString:
    """The words of durations as data attributes, for the script."""
    return format_html(
        'data-dj-units="{}" data-dj-word-ago="{}" data-dj-word-in="{}" data-dj-word-now="{}"',
        "|".join(duration_units()),
        gettext("%(duration)s ago") % {"duration": "{}"},
        gettext("in %(duration)s") % {"duration": "{}"},
        pgettext("a moment ago", "now"),
    )


@register.filter
def number(value: Any) -> str:
    """A number with its thousands told apart; a capped count with a plus. What is none, as a row may hold, as it is."""
    if value is None:
        return NONE
    count = getattr(value, "number", value)
    if not isinstance(count, int | float) or (isinstance(count, float) and not math.isfinite(count)):
        return json_display.printable(str(count))
    text = number_text(count)
    if getattr(value, "capped", False):
        text += "+"
    return text


@register.filter
def short_name(name: str) -> SafeString:
    """A job's name without its module, which is its title."""
    return format_html('<span title="{}">{}</span>', name, name.rpartition(".")[2] or name)


@register.filter
def breakable(name: str) -> SafeString:
    """A dotted name that a narrow column breaks after a dot or an underscore, rather than anywhere."""
    parts = re.split(r"(?<=[._])", name)
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts if part))


@register.filter
def json_view(value: Any) -> SafeString:
    """A decoded JSON value: foldable, escaped, every digit of its numbers there."""
    return json_display.render(value)


@register.filter
def json_line(value: Any) -> str:
    """A decoded JSON value in one line of text."""
    return json_display.one_line(value)


def _word(kind: str) -> str:
    """A kind as part of a class name, whatever a row holds for it."""
    return (
        "".join(each for each in str(kind) if each.isascii() and (each.isalnum() or each == "-")) or "quiet"
    )
