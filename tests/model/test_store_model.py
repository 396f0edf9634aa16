"""The store against a model of it: any operations in any order leave what the contract says.

``DJANGO_JOBS_TEST_EXAMPLES`` is how many sequences are tried (100 by default), ``DJANGO_JOBS_TEST_STEPS`` how long each
is (60): a thousand of a hundred steps take about half an hour.
"""

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from django_jobs.store import Store
from tests.model.machine import StoreMachine

EXAMPLES = int(os.environ.get("DJANGO_JOBS_TEST_EXAMPLES", "100"))
STEPS = int(os.environ.get("DJANGO_JOBS_TEST_STEPS", "60"))


@pytest.mark.timeout(max(120, EXAMPLES * STEPS))
def test_any_operations_in_any_order(open_store: Callable[..., Store], shared: Store) -> None:
    stores = [open_store(), open_store()]
    run_state_machine_as_test(
        lambda: StoreMachine(stores, shared),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )
