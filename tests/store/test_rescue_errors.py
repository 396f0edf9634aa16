"""The history of errors that a rescue writes on: bounded, numbered, and never a reason to leave others behind."""

import pytest
from django.db import connection

from tests.store.builders import errors, update, write


def rescued_with(store, make, clock, text, **options):
    worker = make.worker()
    job = make.running(worker)
    write(job, "errors", text)
    (rescued,) = store.rescue(worker_id=worker, now=clock.now, **options)
    return rescued


@pytest.mark.parametrize(
    ("before", "most", "after"),
    [
        ([], 4, [1]),
        ([1], 4, [1, 2]),
        ([1, 2, 3], 4, [1, 2, 3, 4]),
        ([1, 2, 3, 4], 4, [1, 3, 4, 5]),
        ([1, 8, 9, 10], 4, [1, 9, 10, 11]),
        ([1, 9], 2, [1, 10]),
        ([1, 299], 20, [1, 299, 300]),
    ],
)
def test_the_first_and_the_newest_errors_are_kept_and_numbers_run_on(store, make, clock, before, most, after):
    job = rescued_with(store, make, clock, errors(*before), most_errors=most)

    assert [error["number"] for error in job.errors] == after


def test_earlier_errors_are_kept_to_the_letter(store, make, clock):
    text = (
        '[{"number":1,"message":"caf\\u00e9 \\"x\\" \\\\ \U0001f4a9",'
        '"big":1e22,"zero":-0.0,"long":1180591620717411303424}]'
    )

    job = rescued_with(store, make, clock, text)

    assert len(job.errors) == 2
    assert repr(job.errors[0]) == repr(
        {"number": 1, "message": 'café "x" \\ \U0001f4a9', "big": 1e22, "zero": -0.0, "long": 2**70}
    )


ODD = [
    "null", "{}", '"x"', "5", "true", "[]", "[1]", "[null]", "[[]]", '["x"]', '[{"number": "seven"}]',
    '[{"number": "7"}]', '[{"number": {}}]', '[{"number": null}]', '[{"number": -3}]', '[{"number": 1e300}]',
    '[{"number": 99999999999999999999}]', '[{"number": 1, "number": 2}]', '{"number": 4}',
    '[{"number": 1, "message": "\\u0000"}]', '[{"number": "\\u0000"}]', '[{"message": "\\ud800"}]',
    '[{"\\u0000": "\\udc00"}, {"number": 3}]',
]  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_odd_errors_do_not_stop_the_rescue_of_others(store, make, clock, text):
    check_that_a_neighbour_is_rescued(store, make, clock, lambda job: write(job, "errors", text))


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no JSON",
        b"[",
        b"[1,]",
        b"{'a': 1}",
        b"\xff\xfe",
        b'["\xff"]',
        b'[{"number": 1, "message": "\xc3"}]',
    ],
)
@pytest.mark.parametrize("kind", ["TEXT", "BLOB"])
def test_bytes_that_are_no_text_do_not_stop_the_rescue_of_others(store, make, clock, data, kind):
    def damage(job):
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE django_jobs_job SET errors = CAST(x'{data.hex()}' AS {kind}) WHERE id = {job.id}"
            )

    check_that_a_neighbour_is_rescued(store, make, clock, damage)


def check_that_a_neighbour_is_rescued(store, make, clock, damage):
    worker = make.worker()
    odd, neighbour = make.claimed(worker, count=2)
    damage(odd)

    first, second = store.rescue(worker_id=worker, now=clock.now)

    assert (first.id, first.state, first.error_class) == (odd.id, "scheduled", "django_jobs.WorkerLost")
    assert (second.id, second.state, len(second.errors)) == (neighbour.id, "scheduled", 1)
    assert store.rescue(worker_id=worker, now=clock.now) == []
    for job in store.get([odd.id, neighbour.id]):
        assert job.state == "scheduled"


@pytest.mark.parametrize("text", ODD[:19])
def test_after_odd_errors_the_history_goes_on(store, make, clock, text):
    job = rescued_with(store, make, clock, text)

    assert isinstance(job.errors, list)
    assert job.errors[-1]["message"] == "The worker's lease ran out."
    assert job.errors[-1]["number"] >= 1 or "-3" in text


def test_the_history_stays_bounded_over_many_losses(store, make, clock):
    worker = make.worker()
    job = make.one(max_attempts=1000)
    for _ in range(30):
        store.claim(worker, "default", 1, now=clock.now)
        store.rescue(worker_id=worker, spread=0.0, most_errors=5, now=clock.now)

    history = make.again(job).errors
    assert [error["number"] for error in history] == [1, 27, 28, 29, 30]
    assert [error["attempt"] for error in history] == [1, 27, 28, 29, 30]


def test_a_running_job_without_a_start_can_be_rescued(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    update([job.id], attempted_at=None)

    (rescued,) = store.rescue(worker_id=worker, now=clock.now)

    assert rescued.errors[0]["attempted_at"] is None
