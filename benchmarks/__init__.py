"""Benchmarks of django_jobs: ``python -m benchmarks`` lists them. Each is a command that prints one table."""
