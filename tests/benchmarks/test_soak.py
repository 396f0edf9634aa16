"""The soak: a short run on the database, the rules by which it judges, and a ledger from which something is missing."""

import json
from typing import Any

import pytest

from benchmarks.soaking import verdicts
from benchmarks.soaking.ledger import Ledger
from benchmarks.soaking.mix import KINDS, PROBE, TICK
from benchmarks.soaking.results import is_good, judge, windows
from benchmarks.soaking.watching import Sample, Use
from tests.benchmarks.conftest import benchmarks

MINUTES = 20.0


@pytest.fixture(scope="module")
def soaked(database_name: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    picture = tmp_path_factory.mktemp("soak") / "soak.png"
    done = benchmarks(
        *("soak", "--minutes", "0.05", "--every", "1", "--rate", "200"),
        *("--plot", str(picture), "--database", database_name, "--json"),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert picture.with_name(f"soak-{database_name}.png").read_bytes().startswith(b"\x89PNG")
    found: dict[str, Any] = {}
    for each in json.loads(done.stdout)["rows"]:
        found.setdefault(each["part"], []).append(each)
    return found


def test_each_kind_of_job_is_followed_to_its_end(soaked):
    rows = {each["kind"]: each for each in soaked["jobs"]}

    for kind in [*KINDS, PROBE]:
        row = rows[kind]
        # SQLite gives the id of a job that was rolled back to another one.
        assert row["jobs"] > 0 or kind == "rolled back", kind
        assert (row["as_expected"], row["otherwise"], row["lost"]) == (row["jobs"], 0, 0), kind
    assert rows["unique"]["calls"] > rows["unique"]["jobs"]
    assert rows["ticks of a schedule"]["jobs"] >= 1
    assert rows["not enqueued"]["jobs"] == 0


def test_it_is_looked_at_over_time(soaked, database_name):
    def most(key: str) -> float:
        return max(each.get(key) or 0.0 for each in soaked["window"])

    for key in (
        "enqueued",
        "p50_ms",
        "p99_ms",
        "echo_ms",
        "rows",
        "memory_threads",
        "memory_child 2",
        "memory_enqueuer",
    ):
        assert most(key) > 0, key
    for key in ("table_mb", "indexes_mb") if database_name == "postgresql" else ("file_mb", "wal_mb"):
        assert most(key) > 0, key
    assert soaked["verdict"][0]["word"] == "none"  # is lost
    assert {each["word"] for each in soaked["verdict"][1:]} == {"too short to tell", "to compare with"}


# -- the rules ---------------------------------------------------------------------------------------------------------


def series(value: Any) -> list[tuple[float, float]]:
    """A value of the minute, every 6 seconds."""
    return [(n / 10, float(value(n / 10))) for n in range(int(MINUTES * 10))]


def noise(minute: float) -> float:
    return 0.3 * ((int(minute * 10) * 7) % 5 - 2)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (lambda minute: 50 + noise(minute), "no growth"),
        (lambda minute: 50 + min(minute, 5) * 4, "no growth"),  # all of it while it warms up
        (lambda minute: 50 + (2 if minute > 12 else 0) + noise(minute) / 10, "no growth"),  # one step
        (lambda minute: 50 - 8 * 0.65**minute, "no growth"),  # what fills up
        (lambda minute: 50 + minute * 0.02, "no growth"),  # 20 KB in a minute
        (lambda minute: 50 + minute * 0.05, "grows"),
        (lambda minute: 50 + minute * 0.5 + noise(minute), "grows"),
    ],
)
def test_memory_grows_when_it_goes_on_growing(value, word):
    found = verdicts.memory(series(value), MINUTES)

    assert (found.word, found.good) == (word, word == "no growth")


def test_its_growth_is_told_by_the_minute():
    assert verdicts.memory(series(lambda minute: 50 + minute * 0.25), MINUTES).slope == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (lambda minute: 30 + 10 * (minute % 2), "bounded"),
        (lambda minute: 10 * minute, "grows"),
    ],
)
def test_a_size_is_bounded_when_its_peaks_are(value, word):
    found = verdicts.bounded(series(value), MINUTES)

    assert (found.word, found.good) == (word, word == "bounded")


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (lambda minute: 500 if minute == 15 else 3, "flat"),  # a slow moment
        (lambda minute: 3 + minute, "rises"),
    ],
)
def test_a_time_is_flat_when_its_middle_is(value, word):
    found = verdicts.flat(series(value), MINUTES)

    assert (found.word, found.good) == (word, word == "flat")


def test_of_a_time_that_rises_with_the_machines_own_nothing_is_said():
    rising = verdicts.flat(series(lambda minute: 3 + minute), MINUTES)
    busier = verdicts.flat(series(lambda minute: 0.05 + minute / 100), MINUTES)
    quiet = verdicts.flat(series(lambda minute: 0.05), MINUTES)

    assert verdicts.beside(rising, busier).good is None
    assert verdicts.beside(rising, quiet).good is False


def test_of_a_short_run_nothing_is_said():
    for rule, minutes in ((verdicts.memory, 14), (verdicts.bounded, 6), (verdicts.flat, 6)):
        found = rule(series(lambda minute: minute)[: 10 * minutes], minutes)
        assert (found.word, found.good) == ("too short to tell", None)


# -- from looks to results ---------------------------------------------------------------------------------------------


def sample(minute: float, leak: float = 0.0, table: float = 5.0) -> Sample:
    use = Use(50 + leak * minute, cpu=minute * 6, files=20, threads=10)
    uses = dict.fromkeys(("threads", "child 1", "child 2", "supervisor", "enqueuer"), use)
    return Sample(minute, uses, {"file_mb": table}, [3.0, 4.0], [0.1], int(minute * 600), int(minute * 600))


def test_a_window_is_a_tenth_of_the_run():
    found = windows([sample(minute / 2) for minute in range(41)], MINUTES)

    assert [each["minutes"] for each in found][:2] == ["0.0 to 1.5", "1.5 to 3.5"]
    assert len(found) == 10
    assert found[1]["enqueued"] == pytest.approx(10)
    assert found[1]["cpu_workers"] == pytest.approx(0.4)
    assert found[1]["p50_ms"] == 3.0


@pytest.mark.parametrize(("leak", "growth", "good"), [(0.0, 0.0, True), (0.2, 0.0, False), (0.0, 1.0, False)])
def test_one_bad_verdict_is_enough(leak, growth, good):
    samples = [sample(n / 10, leak, 5 + growth * n / 10) for n in range(200)]

    found = judge(samples, [{"kind": "plain", "lost": 0, "otherwise": 0}], ("file_mb",), MINUTES)

    assert is_good({"part": "verdict", **each} for each in found) is good


def test_a_lost_job_is_a_bad_verdict():
    found = judge([sample(0.0)], [{"kind": "plain", "lost": 1, "otherwise": 2}], (), MINUTES)

    assert found[0]["word"] == "3 LOST"
    assert not is_good({"part": "verdict", **each} for each in found)


# -- the ledger --------------------------------------------------------------------------------------------------------


class Rows:
    """A meter whose database has these rows of ended jobs and effects."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, str, int, str, str]] = []
        self.effects: list[tuple[int]] = []

    def now(self) -> float:
        return 1_000_000.0

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        if sql.startswith("DELETE"):
            taken, self.effects = self.effects, []
            return list(taken)
        return [each for each in self.ended if f"'{each[1]}'" in sql]

    def end(
        self, number: int, state: str = "completed", attempts: int = 1, name: str = "plain", **more: str
    ) -> None:
        self.ended.append((number, state, attempts, f"benchmarks.soaking.jobs.{name}", json.dumps(more)))


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def ledger(rows, tmp_path):
    notes = tmp_path / "notes"
    notes.write_text(
        "job plain 1\njob plain 2\njob plain 3\njob atomic 4\njob atomic 5\njob rolled back 6\njob unique 7\n"
        "job unique 7\nms probe 3.25\nms echo 0.5\njob unkept 8\njob fail"
    )
    ledger = Ledger(rows, notes, postgresql=False)
    yield ledger
    ledger.close()


def numbers(ledger: Ledger, kind: str) -> tuple[int, ...]:
    [found] = [each for each in ledger.tally() if each["kind"] == kind]
    return tuple(found.get(key, 0) for key in ("jobs", "as_expected", "otherwise", "lost"))


def test_what_did_not_end_is_lost_and_what_ended_otherwise_is_told(ledger, rows):
    rows.end(1)
    rows.end(2, "failed")
    rows.end(4)
    rows.end(5)
    rows.effects = [(4,), (5,), (5,), (8,)]
    rows.end(6)
    rows.end(7)

    waits = ledger.look()

    assert waits == {"probe": [3.25], "echo": [0.5]}
    assert numbers(ledger, "plain") == (3, 1, 1, 1)
    assert numbers(ledger, "atomic") == (2, 1, 1, 0)  # one effect twice
    assert numbers(ledger, "rolled back") == (1, 0, 1, 0)
    assert numbers(ledger, "unique") == (1, 1, 0, 0)
    assert numbers(ledger, "unkept") == (1, 1, 0, 0)
    assert ledger.open_jobs() == [3]
    assert numbers(ledger, "not enqueued") == (0, 0, 0, 0)


def test_an_atomic_job_without_its_effect_is_lost(ledger, rows):
    rows.end(4)

    ledger.look()

    assert numbers(ledger, "atomic") == (2, 0, 0, 2)


def test_a_line_that_is_half_written_is_read_later(ledger, rows, tmp_path):
    ledger.look()
    with (tmp_path / "notes").open("a") as notes:
        notes.write("ing 9\n")
    rows.end(9, "failed", 2, "failing")

    ledger.look()

    assert numbers(ledger, "failing") == (1, 1, 0, 0)


def test_what_nobody_enqueued_is_told(ledger, rows):
    rows.end(99)
    rows.effects = [(98,)]

    ledger.look()

    assert numbers(ledger, "not enqueued") == (2, 0, 2, 0)


def test_each_tick_has_one_job(ledger, rows):
    for number, second in enumerate((0, 2, 2, 6), 50):
        rows.end(number, name=TICK, tick=f"2031-01-01T00:00:0{second}+00:00")

    ledger.look()
    ledger.look()

    # Of :00, :02, :04 and :06 the third has none, and the second has two.
    assert numbers(ledger, "ticks of a schedule") == (4, 2, 1, 1)
