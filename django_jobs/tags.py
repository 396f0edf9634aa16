"""Tags: what a job is about, to find it by. Strings, or model instances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Model

from django_jobs import limits
from django_jobs.exceptions import InvalidJob
from django_jobs.serialization import find_problem, shown


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
            raise InvalidJob(f"The tag {shown(value)} is an instance without a primary key; save it first.")
        tag = f"{label}:{value.pk}"
    else:
        raise InvalidJob(f"The tag {shown(value)} must be a string or a model instance.")
    if not tag or len(tag) > limits.TAG_LENGTH:
        raise InvalidJob(
            f"The tag {shown(tag)} has {len(tag)} characters; it must have at least 1 and at most {limits.TAG_LENGTH}."
        )
    problem = find_problem(tag, f"The tag {shown(tag)}")
    if problem is not None:
        raise InvalidJob(problem)
    return tag


def check(tags: Any, name: str) -> tuple[str, ...]:
    """Tags as they are stored, each once, in the order given. Raises InvalidJob, naming the job function."""
    if isinstance(tags, str | Model) or not isinstance(tags, Iterable):
        raise InvalidJob(
            f"tags of {name} is {shown(tags)}; it must be a list of strings and model instances."
        )
    try:
        plain = tuple(dict.fromkeys(tag_of(tag) for tag in tags))
    except InvalidJob as error:
        raise InvalidJob(f"tags of {name}: {error}") from None
    if len(plain) > limits.MOST_TAGS:
        raise InvalidJob(f"tags of {name} are {len(plain)}; a job has {limits.MOST_TAGS} at most.")
    return plain
