"""Tags: what a job is about, to find it by. Strings, or model instances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Model

from django_jobs import limits
from django_jobs.exceptions import InvalidJob
from django_jobs.serialization import find_problem, shown
from django_jobs.texts import text as _


def tag_of(value: str | Model) -> str:
    """The tag that a string or a saved model instance is stored as: ``"app_label.model:pk"`` for an instance.

    :raises InvalidJob: for what can't be one.
    """
    if isinstance(value, str):
        tag = str.__str__(value)
    elif isinstance(value, Model):
        # Of a proxy or a deferred class the model itself: the same row is the same tag.
        label = value._meta.concrete_model._meta.label_lower  # type: ignore[union-attr]
        if value.pk is None:
            raise InvalidJob(
                _("The tag %(tag)s is an instance without a primary key; save it first.", tag=shown(value))
            )
        tag = f"{label}:{value.pk}"
    else:
        raise InvalidJob(_("The tag %(tag)s must be a string or a model instance.", tag=shown(value)))
    if not tag or len(tag) > limits.TAG_LENGTH:
        raise InvalidJob(
            _(
                "The tag %(tag)s has %(count)d characters; it must have at least 1 and at most %(most)d.",
                tag=shown(tag),
                count=len(tag),
                most=limits.TAG_LENGTH,
            )
        )
    problem = find_problem(tag, _("The tag %(tag)s", tag=shown(tag)))
    if problem is not None:
        raise InvalidJob(problem)
    return tag


def check(tags: Any, name: str) -> tuple[str, ...]:
    """Tags as they are stored, each once, in the order given. Raises InvalidJob, naming the job function."""
    if isinstance(tags, str | Model) or not isinstance(tags, Iterable):
        raise InvalidJob(
            _(
                "tags of %(name)s is %(value)s; it must be a list of strings and model instances.",
                name=name,
                value=shown(tags),
            )
        )
    try:
        plain = tuple(dict.fromkeys(tag_of(tag) for tag in tags))
    except InvalidJob as error:
        raise InvalidJob(_("tags of %(name)s: %(error)s", name=name, error=error)) from None
    if len(plain) > limits.MOST_TAGS:
        raise InvalidJob(
            _(
                "tags of %(name)s are %(count)d; a job has %(most)d at most.",
                name=name,
                count=len(plain),
                most=limits.MOST_TAGS,
            )
        )
    return plain
