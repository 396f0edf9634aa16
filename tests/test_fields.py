"""The fields: the ORM stores and reads what the raw statements do."""

import datetime as dt
import zoneinfo
from typing import Any

import pytest
from django.core import serializers
from django.db import connection
from django.db.models import Count, F, Max, Value
from django.db.models.functions import TruncDay
from django.utils import timezone

from django_jobs import job
from django_jobs.fields import ExactJSONField, TimestampField
from django_jobs.models import Job
from django_jobs.serialization import Undecodable
from django_jobs.store import django_store

pytestmark = pytest.mark.django_db

NOON = dt.datetime(2031, 7, 1, 12, tzinfo=dt.UTC)
EXACT: list[Any] = [1, 1.0, True, None, 1e22, -0.0, 2**70, "ä\x01😀\\u0000", {"b": [], "a": {}}, []]


@job
def work(*args): ...


def make(**fields):
    return Job.objects.create(**{"name": "tests.fields", "run_after": NOON, "created_at": NOON, **fields})


def text_of(column, pk):
    """What the database holds, as text."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT CAST({column} AS text) FROM django_jobs_job WHERE id = %s", [pk])
        return cursor.fetchone()[0]


def write(column, pk, text):
    """What somebody else's SQL could write."""
    cast = "%s::json" if connection.vendor == "postgresql" else "%s"
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE django_jobs_job SET {column} = {cast} WHERE id = %s", [text, pk])


class TestExactJSONField:
    def test_keeps_json_to_the_letter(self):
        made = make(args=EXACT)

        assert text_of("args", made.pk) == (
            '[1,1.0,true,null,1e+22,-0.0,1180591620717411303424,"ä\\u0001😀\\\\u0000",{"b":[],"a":{}},[]]'
        )
        assert repr(Job.objects.get(pk=made.pk).args) == repr(EXACT)

    def test_reads_what_enqueue_wrote_and_writes_the_same(self):
        row = work.enqueue(*EXACT)
        before = text_of("args", row.id)

        stored = Job.objects.get(pk=row.id)
        stored.save()

        assert repr(stored.args) == repr(EXACT)
        assert text_of("args", row.id) == before

    @pytest.mark.parametrize("value", ["text", 5, 1.0, False, "[]", "null", ""])
    def test_any_value_of_json(self, value):
        made = make(result=value)

        assert repr(Job.objects.get(pk=made.pk).result) == repr(value)

    def test_nothing_is_null(self):
        made = make(tags=None)

        assert text_of("tags", made.pk) is None
        assert Job.objects.get(pk=made.pk).tags is None
        assert Job.objects.filter(tags__isnull=True).exists()

    def test_defaults_are_not_shared(self):
        Job().args.append(1)

        assert (Job().args, Job().kwargs) == ([], {})

    def test_in_every_way_to_write_and_read(self):
        Job.objects.bulk_create(
            [Job(name="a", args=[number], run_after=NOON, created_at=NOON) for number in (1.0, 2.0)]
        )
        first, second = Job.objects.order_by("pk")
        assert (repr(first.args), repr(second.args)) == ("[1.0]", "[2.0]")

        Job.objects.filter(pk=first.pk).update(args=[-0.0], result=F("kwargs"))
        assert list(Job.objects.filter(pk=first.pk).values_list("args", "result")) == [([-0.0], {})]
        assert repr(Job.objects.values_list("args", flat=True).get(pk=first.pk)) == "[-0.0]"

        second.args = [1e22]
        Job.objects.bulk_update([second], ["args"])
        second.refresh_from_db()
        assert repr(second.args) == "[1e+22]"

        constant = Job.objects.annotate(constant=Value([1.0], output_field=ExactJSONField())).values(
            "constant"
        )[0]
        assert repr(constant) == "{'constant': [1.0]}"
        assert [job.args for job in Job.objects.defer("args").order_by("pk")] == [[-0.0], [1e22]]

    def test_can_be_searched_as_text(self):
        made = make(args=["needle"])
        make(args=["hay"])

        assert list(Job.objects.filter(args__icontains="NEEDLE")) == [made]

    @pytest.mark.parametrize("value", [{1}, object(), float("nan")])
    def test_what_is_not_json_is_not_written(self, value):
        with pytest.raises((TypeError, ValueError)):
            make(args=[value])

    def test_goes_through_a_dump(self):
        made = make(args=EXACT, result=None)
        (restored,) = serializers.deserialize("json", serializers.serialize("json", [made]))
        restored.save()

        made.refresh_from_db()
        assert repr(made.args) == repr(EXACT)
        assert made.result is None

    def test_what_python_can_not_decode_is_shown_and_kept(self):
        text = f"[{'1' * 5000}]"
        made = make()
        write("args", made.pk, text)

        stored = Job.objects.get(pk=made.pk)
        assert isinstance(stored.args, Undecodable)
        assert str(stored.args) == text
        (row,) = django_store("default").get([made.pk])
        assert isinstance(row.args, Undecodable)
        assert str(row.args) == text
        stored.priority = 5
        stored.save()
        assert text_of("args", made.pk) == text

    @pytest.mark.sqlite
    @pytest.mark.parametrize(
        "text", ["not json", "", "[NaN]", "{'a': 1}", "\ufffd", "[" * 100_000], ids=lambda text: text[:8]
    )
    def test_what_is_no_json_at_all_is_shown_and_kept(self, text):
        made = make()
        write("kwargs", made.pk, text)

        stored = Job.objects.get(pk=made.pk)
        assert isinstance(stored.kwargs, Undecodable)
        assert stored.kwargs == text
        stored.save()
        assert text_of("kwargs", made.pk) == text

    def test_is_known_to_migrations(self):
        name, path, args, kwargs = Job._meta.get_field("args").deconstruct()

        assert (name, path, args) == ("args", "django_jobs.fields.ExactJSONField", [])
        assert kwargs["default"] is list


class TestTimestampField:
    @pytest.mark.parametrize(
        "moment",
        [
            NOON,
            NOON.replace(microsecond=5),
            NOON.replace(microsecond=999_999),
            dt.datetime(2031, 7, 1, 14, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
            dt.datetime(2031, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=-9, minutes=-30))),
        ],
    )
    def test_comes_back(self, moment):
        made = make(run_after=moment)

        stored = Job.objects.get(pk=made.pk).run_after
        assert stored == moment
        assert stored.utcoffset() == dt.timedelta()
        assert django_store("default").get([made.pk])[0].run_after == moment

    @pytest.mark.sqlite
    def test_is_text_with_six_digits_always(self):
        made = make(run_after=NOON, created_at=NOON.replace(microsecond=50))

        assert text_of("run_after", made.pk) == "2031-07-01 12:00:00.000000"
        assert text_of("created_at", made.pk) == "2031-07-01 12:00:00.000050"

    @pytest.mark.parametrize("written_by", ["orm", "enqueue"])
    def test_is_compared_as_time_whoever_wrote_it(self, written_by):
        if written_by == "orm":
            make(run_after=NOON)
        else:
            work.using(run_after=NOON).enqueue()
        tick = dt.timedelta(microseconds=1)

        def count(**lookup):
            return Job.objects.filter(**lookup).count()

        assert count(run_after=NOON) == count(run_after__in=[NOON]) == 1
        assert count(run_after__lte=NOON) == count(run_after__gte=NOON) == 1
        assert count(run_after__lt=NOON) == count(run_after__gt=NOON) == 0
        assert count(run_after__lt=NOON + tick) == count(run_after__gt=NOON - tick) == 1
        assert count(run_after__range=(NOON, NOON)) == 1
        assert count(run_after__year=2031) == count(run_after__year=2031, run_after__hour=12) == 1
        assert count(run_after__date=NOON.date()) == 1
        assert count(run_after=F("run_after")) == 1
        assert Job.objects.aggregate(latest=Max("run_after")) == {"latest": NOON}

    def test_groups_are_ordered_by_it_whether_it_is_selected_or_not(self):
        for hour in (9, 12, 12):
            make(run_after=NOON.replace(hour=hour))

        groups = Job.objects.values("queue_name").annotate(number=Count("id")).order_by("-run_after")
        assert [group["number"] for group in groups] == [2, 1]
        groups = groups.values("run_after", "number")
        assert [(group["run_after"].hour, group["number"]) for group in groups] == [(12, 2), (9, 1)]

    def test_is_updated_by_value_and_by_expression(self):
        made = make(created_at=NOON - dt.timedelta(days=1))

        Job.objects.update(created_at=F("run_after"), finalized_at=None)
        made.refresh_from_db()
        assert made.created_at == NOON
        Job.objects.update(created_at=NOON.replace(microsecond=7))
        made.refresh_from_db()
        assert made.created_at == NOON.replace(microsecond=7)

    def test_truncated_in_another_time_zone(self):
        make(run_after=dt.datetime(2031, 7, 1, 23, tzinfo=dt.UTC))
        berlin = zoneinfo.ZoneInfo("Europe/Berlin")

        day = Job.objects.annotate(day=TruncDay("run_after", tzinfo=berlin)).get().day

        assert day == dt.datetime(2031, 7, 2, tzinfo=berlin)

    def test_where_the_site_has_no_time_zones(self, settings):
        settings.USE_TZ = False
        settings.TIME_ZONE = "Europe/Berlin"
        before = timezone.now()

        row = work.enqueue()
        made = make(run_after=dt.datetime(2031, 7, 1, 14), created_at=dt.datetime(2031, 7, 1, 14))

        enqueued = Job.objects.get(pk=row.id)
        assert enqueued.created_at.tzinfo is None
        assert abs(enqueued.created_at - before) < dt.timedelta(minutes=1)
        assert row.created_at == timezone.make_aware(enqueued.created_at)
        stored = Job.objects.get(pk=made.pk)
        assert stored.run_after == dt.datetime(2031, 7, 1, 14)
        assert django_store("default").get([made.pk])[0].run_after == NOON
        assert Job.objects.filter(run_after=dt.datetime(2031, 7, 1, 14)).get() == stored

    def test_what_no_datetime_can_be_is_an_end_of_the_calendar(self):
        """What somebody's SQL has written; the other rows are as they are."""
        if connection.vendor == "postgresql":
            odd = {"infinity": 9999, "20000-01-01": 9999, "-infinity": 1, "0044-03-15 BC": 1}
        else:
            odd = {
                "soon": 9999, "2031-13-01 00:00:00": 9999, "2031-02-30 00:00:00.5": 9999, "20000-01-01": 9999,
                "2031-01-01 00:00:00.5x": 9999, "": 1, "0000-00-00 00:00:00": 1, "5": 1,
            }  # fmt: skip
        good = make()
        for text in odd:
            made = make(attempted_at=NOON)
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE django_jobs_job SET created_at = %s, attempted_at = %s WHERE id = %s",
                    [text, text, made.pk],
                )
            stored = Job.objects.get(pk=made.pk)
            assert stored.created_at.year == stored.attempted_at.year == odd[text], text
            # Moments that sort so on the page of any time zone.
            assert timezone.localtime(stored.created_at, zoneinfo.ZoneInfo("Pacific/Kiritimati"))
            assert timezone.localtime(stored.created_at, zoneinfo.ZoneInfo("Pacific/Pago_Pago"))
        assert Job.objects.filter(pk=good.pk).values_list("created_at", "attempted_at").get() == (NOON, None)
        assert Job.objects.distinct().order_by("-created_at").values_list("created_at", flat=True).count()

    @pytest.mark.sqlite
    @pytest.mark.parametrize(
        "text",
        [
            "2031-07-01 12:00:00",
            "2031-07-01T12:00:00.0",
            "2031-07-01 12:00:00.000000+00:00",
            "2031-07-01T12:00:00Z",
        ],
    )
    def test_what_others_write_as_a_moment_is_read_as_one(self, text):
        made = make()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_jobs_job SET created_at = %s WHERE id = %s", [text, made.pk])

        assert Job.objects.get(pk=made.pk).created_at == NOON

    def test_is_known_to_migrations(self):
        path = TimestampField().deconstruct()[1]

        assert path == "django_jobs.fields.TimestampField"
