"""The benchmarks of what a worker gets done, at tiny sizes: that they run, and that their figures make sense."""

import pytest


def test_limit(run):
    result = run("limit", "--jobs", "500", "--batch", "100", "--rounds", "2")

    [row] = result["rows"]
    assert row["slowest"] <= row["jobs_per_second"] <= row["fastest"]
    assert row["insert_per_second"] > 0
    assert row["client_us"] > 0


def test_drain(run):
    result = run("drain", "--jobs", "400", "--rounds", "1", "--batch", "100")

    [row] = result["rows"]
    assert row["jobs"] == 400
    assert row["ratio"] == pytest.approx(row["jobs_per_second"] / row["limit_per_second"])
    assert row["client_us"] >= 0
    assert row["memory_mb"] > 10
    # Claims and finishes by batches, and not much more than that.
    assert 2 / 400 <= row["statements"] < 0.5
    assert 2 / 400 <= row["commits"] < 0.5
    assert row["connections"] >= 1
    assert row["sessions"] >= 1
    assert row["resets"] == 0
    assert row["job_reads"] == 0


@pytest.mark.postgresql
def test_drain_with_one_writer_and_two_far_away(run):
    result = run("drain", "--jobs", "400", "--rounds", "1", "--writers", "1,2", "--latency", "1")

    one, two = result["rows"]
    assert (one["writers"], two["writers"]) == ("1", "2")
    assert {one["latency_ms"], two["latency_ms"]} == {1.0}


def test_drain_while_inserting_in_two_processes(run):
    result = run("drain", "--duration", "0.5", "--rounds", "1", "--processes", "2")

    [row] = result["rows"]
    assert row["jobs"] > 0
    assert row["processes"] == 2
    assert row.get("ratio") is None  # the one that inserts sets the pace
    assert row["inserted_per_second"] > 0
