"""The benchmarks of single operations, at tiny sizes: that they run, and that their figures make sense."""

import pytest

ONE_STATEMENT = {
    "insert a job", "insert a pending job", "claim a job", "claim a batch of 50", "complete", "complete a batch of 50",
    "fail and retry later", "merge metadata", "cancel", "retry", "update", "delete", "purge 100", "read 50 jobs",
    "insert a queue", "update a queue", "acquire leadership", "resign leadership", "complete, stale statistics",
    "complete 1,000 in one UPDATE, stale statistics",
}  # fmt: skip
THREADS = {
    "connection used and given back", "thread used a connection, and ends", "thread used a connection, and is left"
}  # fmt: skip


def test_operations(run):
    result = run("operations", "--calls", "6", "--stale", "200")

    rows = {row["operation"]: row for row in result["rows"]}
    assert set(rows) == ONE_STATEMENT | THREADS | {"claim and complete"}
    assert {name for name, row in rows.items() if row["after_statements"] == 1} == ONE_STATEMENT
    assert rows["claim and complete"]["after_statements"] == 2
    assert rows["claim a batch of 50"]["before_statements"] == 53
    assert rows["claim and complete"]["before_statements"] == 8
    for row in rows.values():
        assert row["factor"] == pytest.approx(row["before_us"] / row["after_us"])


def test_parts(run, database_name):
    result = run("parts", "--jobs", "300", "--rounds", "1")

    rows = {row["part"]: row for row in result["rows"]}
    *parts, last = rows
    assert parts == ["claim", "execute", "collect outcomes", "finish", "count what is stored", "sum"]
    assert last == "all at once"
    assert all(row["wall_us"] > 0 for row in rows.values())
    assert rows["sum"]["wall_us"] == pytest.approx(sum(rows[part]["wall_us"] for part in parts[:-1]))
    assert ("server_us" in rows["claim"]) is (database_name == "postgresql")


def test_one_operation(run):
    result = run("operations", "--calls", "3", "--only", "merge")

    assert [row["operation"] for row in result["rows"]] == ["merge metadata"]


def test_latency(run):
    result = run("latency", "--jobs", "10", "--pause", "10", "--idle", "1")

    other, same = result["rows"]
    assert (other["worker"], same["worker"]) == ("other process", "same process")
    for row in (other, same):
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["longest_ms"]
    assert 0 <= other["idle_cpu"] < 1
    assert other["idle_statements"] >= 0


def test_enqueue(run, database_name):
    result = run("enqueue", "--singles", "5", "--transactions", "1", "--many", "300", "--rounds", "2")

    bare = [row["bare"] for row in result["rows"]]
    many = {"sqlite": ["executemany by thousands"], "postgresql": ["unnest, ids back", "COPY"]}
    singles = ["INSERT", "INSERT, 100 in a transaction"]
    # PostgreSQL: and once more, on a connection that prepares its statements.
    assert bare == [*singles * (1 if database_name == "sqlite" else 2), *many[database_name]]
    for row in result["rows"]:
        assert row["us"] == pytest.approx(1e6 / row["jobs_per_second"])
        assert row["ratio"] > 0


def test_steps(run):
    result = run("steps", "--calls", "3", "--rounds", "2")

    assert [row["step"] for row in result["rows"]] == [
        "INSERT into the bare table, by the driver", "the same into the table of jobs", "by Django's cursor",
        "by the store", "enqueue()",
    ]  # fmt: skip
    for row in result["rows"]:
        assert row["us"] > 0
        assert row["ratio"] == pytest.approx(row["us"] / result["rows"][0]["us"])


def test_scale(run):
    result = run("scale", "--rows", "100,300", "--calls", "3", "--pages", "1")

    assert [row["rows"] for row in result["rows"]] == [100, 300]
    for row in result["rows"]:
        assert all(value > 0 for key, value in row.items() if key.endswith("_ms"))


def test_pages(run):
    result = run("pages", "--rows", "3000", "--calls", "1", "--only", "all")

    rows = {row["kind"]: row for row in result["rows"]}
    lists = {
        f"jobs: {kind}"
        for kind in ("tabs", "next page", "page before", "filters", "search", "search in arguments")
    }
    assert set(rows) == {*lists, "failures", "queues", "workers", "schedules", "questions before actions"}
    assert (rows["jobs: tabs"]["pages"], rows["jobs: next page"]["pages"]) == (1, 3)
    for row in rows.values():
        assert 0 < row["ms"] <= row["slowest_ms"]
        assert row["statements"] <= 20
