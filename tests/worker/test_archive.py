"""Old statistics: by the hour after two days, gone after their retention; done by the keeper, in bounded pieces."""

import datetime as dt

import pytest

from django_jobs.models import Stat
from django_jobs.store.statistics import StatRow
from django_jobs.worker import archive as module
from django_jobs.worker.archive import Archive
from django_jobs.worker.keeper import Keeper


@pytest.fixture
def write(store):
    """Statistics of a minute, so many hours ago; each time at another minute of its hour."""

    def write(*hours):
        now = dt.datetime.now(dt.UTC).replace(minute=30)
        for place, hour in enumerate(hours):
            moment = now - dt.timedelta(hours=hour) + dt.timedelta(minutes=place % 7)
            store.record_stats([StatRow("q", "n", "completed", number=1)], now=moment)

    return write


def ages():
    """Of each row, in whole hours."""
    now = dt.datetime.now(dt.UTC).replace(minute=30)
    return [
        round((now - moment).total_seconds() / 3600)
        for moment in Stat.objects.values_list("minute", flat=True)
    ]


def test_some_hours_are_kept_by_the_minute_two_days_by_ten_and_older_ones_by_the_hour(store, write):
    write(1, 1, 46, 46, 51, 51, 51, 700, 700)

    assert Archive().keep(store) is False

    counts = Stat.objects.order_by("-minute").values_list("count", flat=True)
    assert list(counts) == [1, 1, 2, 3, 2]
    minutes = [moment.minute for moment in Stat.objects.order_by("minute").values_list("minute", flat=True)]
    assert minutes == [0, 0, 30, 30, 31]


def test_past_their_retention_they_go(store, write, settings):
    settings.DJANGO_JOBS = {"STATISTICS_RETENTION": dt.timedelta(hours=10)}
    write(1, 9, 11, 700)
    Archive().keep(store)

    assert sorted(ages()) == [1, 9]


def test_for_ever(store, write, settings):
    settings.DJANGO_JOBS = {"STATISTICS_RETENTION": None}
    write(1, 20_000)
    Archive().keep(store)

    assert Stat.objects.count() == 2


def test_with_no_statistics_what_is_there_goes_too(store, write, settings):
    settings.DJANGO_JOBS = {"STATISTICS_RETENTION": 0}
    write(1, 2)
    Archive().keep(store)

    assert Stat.objects.count() == 0


def test_a_round_is_bounded_and_the_next_goes_on(store, write, monkeypatch, settings):
    settings.DJANGO_JOBS = {"STATISTICS_RETENTION": 100 * 3600}
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(module, "MOST", 2)
    write(*[200 + hour for hour in range(5)], *[60 + hour for hour in range(5)])
    archive = Archive()

    def whole():
        return sum(moment.minute == 0 for moment in Stat.objects.values_list("minute", flat=True))

    assert archive.keep(store) is True
    assert (Stat.objects.count(), whole()) == (6, 2)
    assert archive.keep(store) is True
    assert (Stat.objects.count(), whole()) == (5, 3)
    assert archive.keep(store) is False
    assert Stat.objects.count() == 5
    assert all(moment.minute == 0 for moment in Stat.objects.values_list("minute", flat=True))


def test_it_looks_now_and_then(store, write):
    archive = Archive()
    archive.keep(store)
    write(60)
    before = store.session.statements

    assert archive.keep(store) is False
    assert store.session.statements == before


def test_a_stop_ends_it(store, write):
    write(60, 61)
    before = store.session.statements

    assert Archive().keep(store, lambda: True) is False
    assert store.session.statements == before


def test_what_was_folded_is_not_looked_at_again(store, write, monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    write(60, 61, 5)
    archive = Archive()
    archive.keep(store)
    asked = []
    monkeypatch.setattr(store, "unfolded_stats", lambda fold, after: asked.append(after) or [])
    archive.keep(store)

    assert asked == list(Stat.objects.order_by("minute").values_list("minute", flat=True)[1:])


def test_the_keeper_does_it(open_store, write):
    write(60, 60)
    keeper = Keeper(open_store, 1.0, lambda: 0.0, lambda name: None)
    try:
        assert keeper.purge() is False
    finally:
        keeper.close()

    assert Stat.objects.get().count == 2
