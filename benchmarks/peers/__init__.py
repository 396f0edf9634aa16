"""Other queues, on the same PostgreSQL in the same run."""

from benchmarks.peers.command import BENCHMARK

__all__ = ["BENCHMARK"]
