"""The parts of ``python -m benchmarks soak``: the site under load, the load, and who watches."""
