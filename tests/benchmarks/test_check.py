"""What the check speaks of, and what it keeps to itself."""

import json
import os

import pytest

from benchmarks.check import BENCHMARK, LEAST, judge, noise, ratios


def test_the_noise_is_what_two_measurements_of_the_same_are_apart():
    assert noise([1.0, 1.0], [1.0, 1.0]) == 0
    assert noise([1.0, 1.0, 1.0], [1.2, 1.2, 1.2]) == pytest.approx(0.2 / 1.1)


def test_the_noise_is_not_small_because_two_medians_agree_by_chance():
    assert noise([0.5, 1.0, 1.5], [0.6, 1.0, 1.4]) == pytest.approx(0.8)


def test_the_noise_of_one_outlier_is_small():
    assert noise([1.0, 1.0, 3.0], [1.0, 1.0, 1.0]) == 0


@pytest.mark.parametrize(
    ("now", "word"),
    [(0.50, "LOST"), (0.80, "LOST"), (0.88, "as recorded"), (1.12, "as recorded"), (1.20, "better")],
)
def test_only_what_exceeds_the_noise_is_spoken_of(now, word):
    verdict = judge({"ratio": 1.0, "noise": 0.15}, [now] * 3, [now] * 3)

    assert verdict.word == word
    assert verdict.change == pytest.approx(now - 1)


def test_the_noise_of_now_counts_too():
    assert judge({"ratio": 1.0, "noise": 0.0}, [0.9] * 3, [0.9] * 3).word == "LOST"
    assert judge({"ratio": 1.0, "noise": 0.0}, [0.7, 0.9, 1.1], [0.7, 0.9, 1.1]).word == "as recorded"


def test_tiny_changes_are_never_spoken_of():
    assert judge({"ratio": 1.0, "noise": 0.0}, [1 - LEAST / 2] * 3, [1 - LEAST / 2] * 3).word == "as recorded"


def test_what_was_never_recorded_is_new():
    verdict = judge({}, [0.4], [0.6])

    assert (verdict.recorded, verdict.now, verdict.word) == (None, 0.5, "new")


def test_each_figure_is_the_ratio_of_a_short_run(database_name):
    found = ratios(database_name, 200, 3, os.environ)

    assert {"drain / limit", "enqueue one by one / INSERT", "complete, ORM / queue"} < set(found)
    assert all(ratio > 0 for ratio in found.values())


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run the check on a file of its own, with samples that the test makes up."""

    def run(samples, *options):
        monkeypatch.setattr("benchmarks.check.measure_pairs", lambda *arguments: samples)
        code = BENCHMARK.run(["--file", str(tmp_path / "recorded.json"), *options])
        return code, capsys.readouterr().out

    return run


def test_a_loss_is_told_by_the_exit_code(check):
    assert check({"sqlite: a": ([1.0], [1.1]), "sqlite: b": ([1.0], [1.0])}, "--record")[0] == 0
    assert check({"sqlite: a": ([0.9], [1.1]), "sqlite: b": ([1.0], [1.0])})[0] == 0

    code, out = check({"sqlite: a": ([0.5], [0.5]), "sqlite: b": ([1.0], [1.0])}, "--json")

    assert code == 1
    assert {row["figure"]: row["verdict"] for row in json.loads(out)["rows"]} == {
        "a": "LOST",
        "b": "as recorded",
    }


def test_without_a_record_it_says_so(check, capsys):
    with pytest.raises(SystemExit) as ended:
        check({"sqlite: a": ([1.0], [1.0])})

    assert ended.value.code == 2
    assert "write it with --record" in capsys.readouterr().err


def test_to_record_one_database_keeps_the_figures_of_the_other(check):
    check({"sqlite: a": ([1.0], [1.0])}, "--record")
    check({"postgresql: a": ([2.0], [2.0])}, "--record")

    assert check({"sqlite: a": ([0.5], [0.5]), "postgresql: a": ([2.0], [2.0])})[0] == 1
