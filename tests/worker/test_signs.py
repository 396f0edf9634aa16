"""What the worker tells its jobs."""

import pytest

from tests.worker.fakes import WORKER, row


def test_nothing_says_that_a_job_should_stop(signs):
    signs.cancelled = frozenset({2, 3})

    assert not signs.should_stop(row(1))


@pytest.mark.parametrize(
    ("sign", "value"),
    [
        ("stopping", True),
        ("doubtful", True),
        ("cancelled", frozenset({1})),
        ("worker_id", WORKER + 1),
    ],
)
def test_each_sign_says_so(signs, sign, value):
    setattr(signs, sign, value)

    assert signs.should_stop(row(1))
