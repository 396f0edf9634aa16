"""Versions beside each other: while a deploy is rolled out, the code of one meets the schema of the other.

What is promised (CONTRIBUTING.md): web processes that enqueue, and workers, of one minor version and of the next run
together, on the schema of either. So each schema since the version before is migrated to, and this code does a round of
everything on it; and the next one, with whatever the rules let it add, must not stop this code.
"""

import datetime as dt
from importlib import import_module

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from django_jobs import current_job, job, operations, periodic, registry
from django_jobs.models import Job
from django_jobs.scheduling import run_schedule_now, synchronise
from django_jobs.store import django_store
from django_jobs.worker import Pool, Worker, WorkerOptions

pytestmark = pytest.mark.django_db(transaction=True)

# The newest migration of the minor version before this one; there is none before the first.
PREVIOUS = "0001_initial"

# What old code does not notice.
ADDITIONS = (
    migrations.CreateModel,
    migrations.AddIndex,
    migrations.RemoveIndex,
    migrations.RenameIndex,
    migrations.AlterModelOptions,
    migrations.RunPython,
    migrations.RunSQL,
)


def names():
    """The migrations in their order."""
    graph = MigrationLoader(None).graph
    (leaf,) = graph.leaf_nodes("django_jobs")
    return [name for app, name in graph.forwards_plan(leaf) if app == "django_jobs"]


def problems(operations):
    """What of a migration could not be lived with by the code of the version before, nor by rows that it writes."""
    for operation in operations:
        if isinstance(operation, migrations.AddField):
            field = operation.field
            if not field.null and field.db_default is models.NOT_PROVIDED:
                yield f"{operation.describe()}: old code writes rows without it. Give it null=True or a db_default."
        elif not isinstance(operation, ADDITIONS):
            yield f"{operation.describe()}: code of the version before may count on how it was."


@pytest.fixture
def functions():
    """A job function that succeeds, which is periodic too, and one that fails."""

    def good():
        current_job().merge_metadata({"seen": True})
        return "done"

    def bad():
        raise ValueError("no")

    good = periodic(every=3600, key="tests.upgrades")(job(name="tests.upgrades.good")(good))
    bad = job(name="tests.upgrades.bad", max_attempts=2, backoff=0)(bad)
    yield good, bad
    registry.remove(good)
    registry.remove(bad)
    from django_jobs.schedules import schedules

    schedules.remove("tests.upgrades")


def do_a_round(functions):
    """All that web processes and workers do of themselves, by our statements; the admin's ORM is not among it."""
    good, bad = functions
    store = django_store("default")
    synchronise(store, "default")
    now = [
        good.enqueue(),
        good.using(unique_key="k", tags=["a"], timeout=60, backoff=5).enqueue(),
        *good.enqueue_many([(), ()]),
        run_schedule_now("tests.upgrades"),
    ]
    failing = bad.enqueue()
    later = good.using(run_after=dt.timedelta(hours=1)).enqueue()
    pending = good.using(pending=True).enqueue()
    operations.pause("tests.paused")
    operations.cancel([later.id])

    Worker(WorkerOptions(using="default", pools=[Pool(("*",), 2)], drain=True)).run()

    assert [each.refresh().state for each in now] == ["completed"] * 5
    assert [(each.result, each.metadata["seen"]) for each in now] == [("done", True)] * 5
    assert (failing.refresh().state, failing.attempt, len(failing.errors)) == ("failed", 2, 2)
    assert later.refresh().state == "cancelled"
    assert [row.name for row in operations.queues() if row.paused_at] == ["tests.paused"]

    operations.retry([failing.id])
    operations.update([pending.id], priority=5)
    operations.release([pending.id])
    worker = store.register_worker("host", 1, "[]", 1, "1", 300.0)
    claimed = store.claim(worker.id, "default", 10)
    assert [each.id for each in claimed] == [pending.id, failing.id]
    store.lose_worker(worker.id)
    assert len(store.rescue(10, spread=0.0)) == 2
    past = store.history(dt.datetime.now(dt.UTC) - dt.timedelta(hours=1), dt.datetime.now(dt.UTC), 3600)
    assert past
    assert operations.purge("completed", older_than=0).done == 5


@pytest.fixture
def migrate():
    """``migrate django_jobs``; at the end all are applied again, for the tests that follow."""

    def run(*target):
        call_command("migrate", "django_jobs", *target, verbosity=0)

    yield run
    run()


@pytest.mark.parametrize("schema", names()[names().index(PREVIOUS) :])
def test_this_code_runs_on_the_schemas_since_the_version_before(schema, migrate, functions):
    migrate(schema)

    do_a_round(functions)


def test_the_migrations_since_then_only_add():
    since = names()[names().index(PREVIOUS) + 1 :]

    found = {name: [*problems(_migration(name).operations)] for name in since}

    assert not {name: each for name, each in found.items() if each}


def _migration(name):
    return import_module(f"django_jobs.migrations.{name}").Migration


# -- the next version's schema ----------------------------------------------------------------------------------------

MODELS = ["job", "queue", "schedule", "worker", "stat", "leadership"]
NEXT = [
    operation
    for model in MODELS
    for operation in (
        migrations.AddField(model, "new_note", models.TextField(null=True)),
        migrations.AddField(model, "new_number", models.IntegerField(db_default=0)),
        migrations.AddIndex(model, models.Index(fields=["new_number"], name=f"django_jobs_{model}_new")),
    )
]
BREAKING = migrations.AddField("job", "new_flag", models.BooleanField(default=False))


@pytest.fixture
def applied():
    """Apply operations that follow the newest migration, until the test ends."""
    done = []

    def apply(operation):
        state = done[-1][2] if done else MigrationLoader(None).project_state()
        after = state.clone()
        operation.state_forwards("django_jobs", after)
        with connection.schema_editor() as editor:
            operation.database_forwards("django_jobs", editor, state, after)
        done.append((operation, state, after))

    yield apply
    Job.objects.all().delete()
    for operation, before, after in reversed(done):
        with connection.schema_editor() as editor:
            operation.database_backwards("django_jobs", editor, after, before)


def test_this_code_runs_on_a_schema_to_which_the_next_version_adds(applied, functions):
    assert not [*problems(NEXT)]
    for operation in NEXT:
        applied(operation)

    do_a_round(functions)


def test_a_column_that_old_code_does_not_fill_stops_it(applied, functions):
    (problem,) = problems([BREAKING])
    applied(BREAKING)

    assert problem.endswith("Give it null=True or a db_default.")
    with pytest.raises(IntegrityError):
        functions[0].enqueue()


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("job", "tags"),
        migrations.RenameField("job", "tags", "labels"),
        migrations.AlterField("job", "name", models.CharField(max_length=100)),
        migrations.DeleteModel("Leadership"),
        migrations.RenameModel("Stat", "Statistic"),
        migrations.AlterModelTable("job", "jobs"),
        migrations.AddConstraint(
            "job", models.CheckConstraint(condition=models.Q(priority__gte=0), name="django_jobs_job_new")
        ),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_what_takes_away_is_told(operation):
    (problem,) = problems([operation])

    assert problem.endswith("code of the version before may count on how it was.")
