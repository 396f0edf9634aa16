"""The page of the results, and the run that makes them."""

import json

import pytest

from benchmarks.all import PARTS
from benchmarks.core.output import conditions
from benchmarks.report.command import BENCHMARK, PAGE, placed, shown
from benchmarks.report.targets import targets
from tests.benchmarks.conftest import benchmarks

DRAIN = {
    "database": "postgresql",
    "mode": "drain",
    "processes": 1,
    "writers": "as declared",
    "latency_ms": 0.0,
    "jobs_per_second": 700.0,
    "limit_per_second": 1000.0,
    "ratio": 0.7,
    "client_us": 10.0,
    "server_us": 20.0,
    "statements": 0.004,
    "resets": 0,
    "job_reads": 0,
}
PEERS = [
    {"peer": name, "jobs_per_second": rate, "factor": 900 / rate, "p50_ms": 2.0, "version": "1"}
    for name, rate in (("django_jobs", 900.0), ("oban", 90.0))
]
SCALE = [
    {
        "database": "sqlite",
        "rows": rows,
        **dict.fromkeys(("claim_ms", "finish_ms", "enqueue_ms"), 1.0),
        **dict.fromkeys(("admin_ms", "failed_ms", "stats_ms"), rows / 10),
    }
    for rows in (10, 100)
]


def result(benchmark, rows, **more):
    return {"benchmark": benchmark, **conditions(), "options": {}, "rows": rows, **more}


@pytest.fixture
def write(tmp_path):
    """Write results; returns the function that makes the page of them, and its text."""
    folder = tmp_path / "results"
    folder.mkdir()
    page = tmp_path / "page.md"

    def report(**results):
        for name, each in results.items():
            (folder / f"{name}.json").write_text(json.dumps(each))
        assert BENCHMARK.run(["--results", str(folder), "--page", str(page)]) == 0
        return page.read_text()

    return report


def test_the_page_has_the_table_and_the_plot_of_each_result(write, tmp_path):
    text = write(
        drain=result("drain", [DRAIN]),
        peers=result("peers", PEERS, skipped=[{"peer": "nobody", "reason": "it is not there\nat all"}]),
        scale=result("scale", SCALE),
    )

    assert "| postgresql | drain |" in text
    assert "| oban " in text
    assert "Skipped: nobody: it is not there\n" in text
    for name in ("drain", "peers", "scale"):
        assert f"](images/benchmarks-{name}.png)" in text
        assert (tmp_path / "images" / f"benchmarks-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_what_people_wrote_on_the_page_stays(write, tmp_path):
    write(drain=result("drain", [DRAIN]))
    page = tmp_path / "page.md"
    page.write_text(page.read_text().replace("## Drain", "## Draining\n\nWritten by hand."))

    text = write(drain=result("drain", [{**DRAIN, "jobs_per_second": 123.0}]))

    assert text.count("## Draining\n\nWritten by hand.") == 1
    assert text.count("<!-- drain: ") == 1
    assert "| 123 |" in text.replace("  ", " ").replace("  ", " ")


def test_every_part_has_its_place_on_the_page():
    text = PAGE.read_text()

    for part in PARTS:
        assert placed(text, part.name, "new").count("new\n<!-- end of ") == 1
        assert f"<!-- {part.name}: made by" in text


def test_targets_say_what_was_reached_and_what_was_not():
    rows = targets({"drain": {"rows": [DRAIN]}, "peers": {"rows": PEERS}, "scale": {"rows": SCALE}})

    verdicts = {row["target"]: row["verdict"] for row in rows}
    assert verdicts["drain, of the limit, PostgreSQL"] == "reached"
    assert verdicts["CPU per job, client and server, PostgreSQL"] == "reached"
    assert verdicts["drain, beside oban"] == "NOT REACHED"
    assert verdicts["claim, 100 rows of history to 10, sqlite"] == "reached"
    assert verdicts["the admin's list, 100 rows of history to 10, sqlite"] == "NOT REACHED"


def test_targets_are_of_both_databases():
    here = {**DRAIN, "database": "sqlite", "server_us": None}
    many = {"way": "enqueue_many of 10", "ratio": 0.3}
    rows = targets(
        {
            "drain": {"rows": [DRAIN, here]},
            "enqueue": {
                "rows": [
                    {**many, "database": "sqlite", "bare": "executemany by thousands"},
                    {**many, "database": "postgresql", "bare": "unnest, ids back"},
                ]
            },
        }
    )

    verdicts = {row["target"]: row["verdict"] for row in rows}
    assert verdicts["CPU per job, client and server, SQLite"] == "reached"
    assert verdicts["enqueue_many of 10, SQLite: of the rate of executemany by thousands"] == "NOT REACHED"
    assert verdicts["enqueue_many of 10, PostgreSQL: of the rate of unnest"] == "NOT REACHED"
    measured_elsewhere = {**DRAIN, "server_us": None}
    assert not [row for row in targets({"drain": {"rows": [measured_elsewhere]}}) if "CPU" in row["target"]]


def test_the_command_is_shown_without_its_defaults():
    options = {
        "jobs": 100_000,
        "rounds": 7,
        "duration": None,
        "processes": [1, 2],
        "writers": [0],
        "latency": [0.0, 1.0],
    }

    assert (
        shown({"benchmark": "drain", "options": options}) == "drain --rounds 7 --processes 1,2 --latency 0,1"
    )


def test_no_results_are_an_error_that_says_what_to_do(tmp_path):
    done = benchmarks("report", "--results", str(tmp_path), "--page", str(tmp_path / "page.md"))

    assert done.returncode == 2
    assert "run: python -m benchmarks all" in done.stderr
    assert not (tmp_path / "page.md").exists()


@pytest.mark.postgresql
def test_all_keeps_the_result_of_each(tmp_path):
    done = benchmarks("all", "--quick", "--only", "limit,enqueue", "--results", str(tmp_path), "--no-report")

    assert done.returncode == 0, done.stderr
    assert {file.name for file in tmp_path.iterdir()} == {"limit.json", "enqueue.json"}
    rows = json.loads((tmp_path / "limit.json").read_text())["rows"]
    assert {row["database"] for row in rows} == {"sqlite", "postgresql"}


@pytest.mark.postgresql
def test_a_benchmark_that_fails_is_named_and_keeps_no_result(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://nobody:x@127.0.0.1:1/nothing")

    done = benchmarks("all", "--quick", "--only", "limit", "--results", str(tmp_path), "--no-report")

    assert done.returncode == 1
    assert "failed: limit" in done.stderr
    assert not list(tmp_path.iterdir())
