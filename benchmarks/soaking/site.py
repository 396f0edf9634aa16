"""The app of the site that is under load."""

from __future__ import annotations

from django.apps import AppConfig


class SoakingConfig(AppConfig):
    """Its jobs are in ``benchmarks.soaking.jobs``."""

    name = "benchmarks.soaking"
    label = "soaking"
