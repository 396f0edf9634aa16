"""The page of the results: ``docs/benchmarks.md``, with plots."""

from benchmarks.report.command import BENCHMARK

__all__ = ["BENCHMARK"]
