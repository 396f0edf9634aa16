"""How long the tests of hostile input try."""

import functools
import os
from collections.abc import Callable
from typing import Any

from django.db import transaction
from hypothesis import HealthCheck, settings

#: How many times as many examples as in CI: ``DJANGO_JOBS_TEST_HOSTILE=50`` tries for some minutes.
TIMES = int(os.environ.get("DJANGO_JOBS_TEST_HOSTILE", "1"))


def longer(examples: int) -> Callable[[Any], Any]:
    """A test by hypothesis with so many examples, or as many times that as the environment says; what each writes is
    undone, so that none meets what another left."""
    wanted = settings(max_examples=examples * TIMES, suppress_health_check=list(HealthCheck))

    def decorate(test: Any) -> Any:
        tried = test.hypothesis.inner_test

        @functools.wraps(tried)
        def undone(*args: Any, **kwargs: Any) -> None:
            with transaction.atomic():
                tried(*args, **kwargs)
                transaction.set_rollback(True)

        test.hypothesis.inner_test = undone
        return wanted(test)

    return decorate
