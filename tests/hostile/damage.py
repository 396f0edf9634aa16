"""What somebody's SQL can have written into the table of jobs, column by column."""

import contextlib
import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from django_jobs.models import Job
from django_jobs.states import FINISHED
from tests.workload.jobs import nothing

LONG = "1" * 5000
DEEP = "[" * 3000 + "]" * 3000
HUGE = 10**400

JSON: dict[str, list[str]] = {
    "args": [
        "{}", "5", '"x"', "null", "[1,2,3,4]", DEEP, "[1e999]", f"[{LONG}]", f"[{HUGE}]", r'["\u0000"]',
        r'["\ud800"]',
        '[{"a":1,"a":2}]', f"[{','.join('1' for _ in range(2000))}]", " [ 1 ] ", '["<script>alert(1)</script>"]',
    ],
    "kwargs": [
        "[]", "5", "null", '{"1":1}', r'{"\u0000":1}', r'{"\ud800":1}', '{"":1}', '{"self":1}',
        '{"number":1,"number":2}',
        f'{{"number":{DEEP}}}', f'{{"number":{LONG}}}',
    ],
    "tags": ["5", "{}", "null", '[1,null,[],{}]', '"x"', r'["\u0000"]', r'["\ud800"]', DEEP, '{"a":[1]}'],
    "errors": [
        "5", "{}", "null", '[5,null,"x",{},[]]', f"[{DEEP}]", '"x"',
        '[{"number":"x","attempt":[],"at":{},"attempted_at":5,"class":5,"message":{},"traceback":[],"worker":"x"}]',
        f'[{{"number":{HUGE},"attempt":{HUGE},"worker":{HUGE}}}]',
        '[{"number":1e999,"attempt":1e999,"worker":1e999}]',
        '[{"number":1,"attempt":1,"at":"9999-12-31T23:59:59-14:00","attempted_at":"0001-01-01T00:00:00+14:00"}]',
        '[{"number":1,"attempt":1,"at":"2031-01-01T00:00:00","attempted_at":"2031-01-01T00:00:00+00:00"}]',
        r'[{"number":1,"attempt":1,"class":"\u0000\ud800","message":"\u0000\ud800","traceback":"\u0000\ud800"}]',
        '[{"number":-1,"attempt":-1,"worker":-1}]',
    ],
    "result": ["null", DEEP, LONG, "1e999", "-0.0", r'"\u0000"', r'{"\ud800":"\ud800"}'],
    "metadata": [
        "5", "[]", "null", '"x"', DEEP, '{"progress":5}', '{"progress":{"done":1e999,"total":0,"note":5}}',
        f'{{"progress":{{"done":{HUGE},"total":{HUGE}}}}}', '{"progress":{"done":-1,"total":-1}}',
        '{"schedule":{}}', r'{"schedule":"\u0000"}', '{"django_jobs.backoff":{}}', '{"django_jobs.backoff":null}',
        '{"django_jobs.backoff":{"policy":"Fixed","delay":1e999}}', '{"django_jobs.backoff":{"policy":"os.system"}}',
        f'{{"django_jobs.backoff":{HUGE}}}', '{"django_jobs.backoff":[]}', '{"django_jobs.workers":[1e999,"x",null]}',
        '{"django_jobs.workers":5}', r'{"\ud800":"\u0000"}',
    ],
}  # fmt: skip
#: No JSON at all. PostgreSQL refuses it.
NO_JSON = ["", "no JSON", "[1,", "{'a': 1}", "NaN", "[Infinity]", "\x00"]

TEXTS: dict[str, list[str]] = {
    "name": ["", " ", "x" * 200, "\x01\x1b[31m", "a\nb", "\u202e", "\U0001f600" * 200, "os.system",
             "../..", "%s", "{0}"],
    "queue_name": ["", " ", "a,b", "*", "a:b", "a\nb", "\x1b[31m", "..", "/", "\u202e", "\U0001f600" * 100, "%", "_3C"],
    "unique_key": ["", "\x1b", "a\nb", "%", "x" * 255],
    "error_class": ["", "a.b.", ".", "\x1b[31m", "a\nb", "x" * 200],
}  # fmt: skip
NUMBERS: dict[str, list[str]] = {
    "priority": ["-100", "100", "101", "32767"],
    "attempt": ["1", "-1", "5"],
    "max_attempts": ["32767", "1", "0"],
    "claims": ["2147483647", "-1", "-2147483648"],
    "timeout": ["0", "-1", "1e308", "5e-324", "-1e308"],
    "worker_id": ["9223372036854775807", "-1", "0"],
}
TIMES = ["run_after", "created_at", "attempted_at", "finalized_at", "cancel_requested_at", "key_until"]

OF_POSTGRESQL: dict[str, list[str]] = {
    **{
        column: ["'infinity'", "'-infinity'", "'20000-01-01'", "'0044-03-15 BC'", "'294000-01-01'"]
        for column in TIMES
    },
    "timeout": ["'NaN'", "'Infinity'", "'-Infinity'"],
}
OF_SQLITE: dict[str, list[str]] = {
    **{
        column: [
            "'soon'", "''", "'2031-13-01 00:00:00'", "5", "-1.5", "x'ff'", "'0001-01-01 00:00:00+14:00'",
            "'9999-12-31 23:59:59-14:00'", "'2031-01-01'", "CAST(x'ff' AS TEXT)", "'20000-01-01 00:00:00'",
        ]
        for column in TIMES
    },
    "timeout": ["'soon'", "9e999", "-9e999", "x'ff'", "''"],
    "claims": ["'x'", "9223372036854775807", "1.5", "NULL"],
    "attempt": ["'x'", "1.5", "x'00'"],
    "max_attempts": ["9223372036854775807", "'x'", "1e300"],
    "priority": ["0.5", "'x'", "-99.5"],
    "worker_id": ["'x'", "1.5", "x'00'"],
    "name": ["5", "x'ff'", "CAST(x'61ff' AS TEXT)", "CAST(x'6100' AS TEXT)"],
    "queue_name": ["5", "x'ff'", "CAST(x'61ff' AS TEXT)", "CAST(x'6100' AS TEXT)"],
    "unique_key": ["5", "x'ff'", "CAST(x'61ff' AS TEXT)"],
    "error_class": ["5", "x'ff'", "CAST(x'61ff' AS TEXT)"],
    **{
        column: ["5", "1.5", "x'ff'", "CAST(x'5b22ff225d' AS TEXT)", "9e999"]
        for column in JSON
    },
}  # fmt: skip


def quoted(text: str) -> str:
    """A text as SQL has it; with a NUL as only SQLite can."""
    if "\0" in text:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def damages() -> dict[str, list[str]]:
    """What is written into each column, as SQL."""
    found = {column: [*map(quoted, texts)] for kinds in (JSON, TEXTS) for column, texts in kinds.items()}
    found |= {column: list(numbers) for column, numbers in NUMBERS.items()}
    if connection.vendor == "sqlite":
        for column in JSON:
            found[column] += map(quoted, NO_JSON)
    for column, more in (OF_SQLITE if connection.vendor == "sqlite" else OF_POSTGRESQL).items():
        found.setdefault(column, []).extend(more)
    return found


def damage(job_id: int, column: str, sql: str) -> bool:
    """Write that into a row; whether the table let it."""
    return written("django_jobs_job", column, sql, f"id = {job_id}")


def written(table: str, column: str, sql: str, where: str) -> bool:
    """Write that into a column of a row; whether the table let it."""
    with contextlib.suppress(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {sql} WHERE {where}")
        return True
    return False


def damaged_jobs(states: Sequence[str], shift: int = 0) -> dict[int, str]:
    """Jobs that are each damaged in half of their columns, in states in turn, and what was done to them.

    All that is written anywhere is written into two of them: with each of the states by as many shifts.
    """
    columns = damages()
    count = 2 * max(map(len, columns.values()))
    ids = [row.id for row in nothing.enqueue_many([()] * count)]
    now = timezone.now()
    done: dict[int, str] = {}
    refused = 0
    for number, id_ in enumerate(ids):
        state = states[(number + shift) % len(states)]
        values: dict[str, Any] = {"state": state, "attempted_at": now}
        if state in FINISHED:
            values.update(finalized_at=now, attempt=1)
        if state == "running":
            values.update(worker=1, attempt=1)
        if state == "scheduled":
            values.update(run_after=now + dt.timedelta(days=1))
        Job.objects.filter(pk=id_).update(**values)
        chosen = [
            (column, texts[number // 2 % len(texts)])
            for place, (column, texts) in enumerate(columns.items())
            if (number + place) % 2 == 0
        ]
        written = [f"{column} = {sql[:80]}" for column, sql in chosen if damage(id_, column, sql)]
        refused += len(chosen) - len(written)
        done[id_] = f"{state}: {', '.join(written)}"
    assert refused < count * len(columns) / 8, "the tables refuse what they did not refuse before"
    return done
