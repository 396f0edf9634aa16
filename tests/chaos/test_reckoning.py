"""The reckoning, and the tally, find what they are there to find. (No database.)"""

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.plan import plan
from tests.chaos.reckoning import Row, Story, reckon
from tests.chaos.storm import tally

NOW = time.time()
ROW = Row(1, "effect", "a", "completed", 1, 1000, 1, NOW)
INTENDED = {"what": "intended", "token": "a", "kind": "effect", "at": NOW - 5}
COMMITTED = {"what": "committed", "token": "a", "id": 1, "duplicate": False, "at": NOW - 5}
BEGAN = {"what": "began", "id": 1, "claims": 1, "attempt": 1, "pid": 9, "at": NOW}
ENDED = {"what": "ended", "id": 1, "claims": 1, "at": NOW}
LINES: list[dict[str, Any]] = [INTENDED, COMMITTED, BEGAN, ENDED]
OTHER = {**INTENDED, "token": "b"}


def duplicate(at: float) -> list[dict[str, Any]]:
    """The enqueue of ``b`` began then, and was told that job 1 is there."""
    return [{**OTHER, "at": at}, {**COMMITTED, "token": "b", "duplicate": True, "at": at}]


def test_nothing_is_found_where_all_is_well():
    assert reckon(Story.told(LINES + duplicate(NOW - 4)), [ROW], [(1, 1)], True) == []


@pytest.mark.parametrize(
    ("lines", "rows", "effects", "finding"),
    [
        (LINES, [], [], "is lost"),
        (LINES, [ROW, replace(ROW, id=2)], [(1, 1), (2, 1)], "is there 2 times"),
        ([*LINES, OTHER], [replace(ROW, token="b")], [(1, 1)], "is not the one"),
        ([BEGAN, ENDED], [ROW], [(1, 1)], "which nobody enqueued"),
        ([*LINES, {"what": "rolled back", "tokens": ["a"]}], [ROW], [(1, 1)], "was rolled back"),
        ([*LINES, BEGAN], [ROW], [(1, 1)], "was run 2 times"),
        ([*LINES, {**BEGAN, "claims": 2}], [ROW], [(1, 1)], "its row has had 1"),
        (LINES, [ROW], [(1, 1), (1, 1)], "are not exact"),
        (LINES, [ROW], [], "are not exact"),
        (LINES, [replace(ROW, claims=2)], [(1, 1)], "are not exact"),
        (LINES, [ROW], [(1, 1), (9, 1)], "jobs that do not exist"),
        (LINES, [replace(ROW, state="running", finalized_at=None)], [], "is stuck"),
        (LINES, [replace(ROW, attempt=2)], [(1, 1)], "has attempt 2"),
        ([*LINES, {**BEGAN, "attempt": 1001}], [ROW], [(1, 1)], "was run as attempts"),
        (LINES[:3], [ROW], [(1, 1)], "never came to its end"),
        (LINES, [replace(ROW, kind="doomed")], [], "which it can't be"),
        (LINES, [replace(ROW, state="failed")], [], "is a dead letter"),
        (LINES, [replace(ROW, kind="doomed", state="failed", max_attempts=2)], [], "after 1 of 2 attempts"),
        (LINES, [replace(ROW, state="cancelled")], [], "nobody cancelled it"),
        (
            [*LINES, {"what": "cancelled", "ids": [1]}],
            [replace(ROW, kind="doomed", state="failed", max_attempts=1)],
            [],
            "was told that it is cancelled",
        ),
        (LINES + duplicate(NOW + 60), [ROW], [(1, 1)], "had ended long before"),
        (LINES, [replace(ROW, holds_key=True)], [(1, 1)], "holds its key"),
        (
            [
                *LINES,
                {"what": "failed", "error": "OperationalError", "sqlstate": "40P01", "message": "deadlock"},
            ],
            [ROW],
            [(1, 1)],
            "a caller met OperationalError 40P01",
        ),
    ],
)
def test_each_kind_of_damage_is_found(lines, rows, effects, finding):
    found = reckon(Story.told(lines), rows, effects, True)
    assert [each for each in found if finding in each], found


@pytest.mark.parametrize(
    ("count", "state", "finding"), [(2, "completed", "2 times"), (1, "cancelled", "cancelled")]
)
def test_a_job_is_completed_once_and_stays_it(count, state, finding):
    story = Story.told([*LINES, {"what": "cancels", "ids": [1]}])
    story.completions[1] = count
    found = reckon(story, [replace(ROW, kind="plain", state=state)], [], True)
    assert len(found) == 1
    assert finding in found[0]


def test_on_a_file_no_error_is_a_caller_s():
    away = {"what": "failed", "error": "OperationalError", "sqlstate": None, "message": "database is locked"}
    assert reckon(Story.told([*LINES, away]), [ROW], [(1, 1)], True) == []
    assert reckon(Story.told([*LINES, away]), [ROW], [(1, 1)], False)


STORM: list[dict[str, Any]] = [
    {"what": "inserted", "ids": [1, 2]},
    {"what": "claimed", "claims": [(1, 1), (1, 2)]},
    {"what": "ended", "claims": [(1, 1), (1, 2)]},
    {"what": "left an effect", "claim": (1, 2)},
    {"what": "deleted", "ids": [2]},
]
TABLE = {1: ("completed", 1, 3, 2)}


def test_the_tally_of_a_storm():
    assert list(tally(STORM, TABLE, [(1, 2)])) == []
    for line in STORM:  # whatever is left out, or done once more, is missed
        assert list(tally([each for each in STORM if each is not line], TABLE, [(1, 2)]))
        assert list(tally([*STORM, line], TABLE, [(1, 2)]))
    for row in (("running", 1, 3, 2), ("completed", 3, 3, 2), ("completed", 4, 3, 4), ("completed", 1, 3, 3)):
        assert list(tally(STORM, {1: row}, [(1, 2)]))
    assert list(tally(STORM, {**TABLE, 2: ("completed", 0, 1, 0)}, [(1, 2)]))
    kept = [line for line in STORM if line["what"] != "deleted"]
    assert list(tally(kept, {**TABLE, 2: ("cancelled", 0, 1, 0)}, [(1, 2)])) == []
    assert list(tally(kept, {**TABLE, 2: ("completed", 0, 1, 0)}, [(1, 2)])), "it never ran"
    assert list(tally([*STORM, {"what": "failed", "act": "claim", "error": "locked"}], TABLE, [(1, 2)]))


@pytest.mark.parametrize(("has_server", "kinds"), [(True, 19), (False, 6)])
def test_a_plan_follows_from_its_seed_and_has_each_kind(has_server, kinds):
    assert plan(7, 10, 1.5, has_server) == plan(7, 10, 1.5, has_server) != plan(8, 10, 1.5, has_server)
    assert len({fault.kind for fault in plan(7, 10, 1.5, has_server)}) == kinds
