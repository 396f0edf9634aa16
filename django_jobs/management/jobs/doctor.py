"""``doctor``."""

from __future__ import annotations

from typing import Any

from django_jobs import doctor
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.output import Output, clean


class Doctor(Subcommand):
    """What is wrong with the set-up."""

    name = "doctor"
    help = "examine the set-up on the running database; exit code 1 if there is an error"

    def run(self, out: Output, using: str, options: dict[str, Any]) -> int:
        """Print each finding as it is made, and how many there are."""
        findings = []
        styles = {
            doctor.OK: out.style.SUCCESS,
            doctor.WARNING: out.style.WARNING,
            doctor.ERROR: out.style.ERROR,
        }
        for finding in doctor.examine(using):
            findings.append(finding)
            if out.as_json:
                out.record(finding._asdict())
                continue
            out.line(
                f"{styles[finding.level](f'{finding.level:<7}')}  {finding.name}: {clean(finding.message)}"
            )
            if finding.hint:
                out.line(f"         {clean(finding.hint)}")
        out.line(doctor.summary(findings))
        return 1 if any(finding.level == doctor.ERROR for finding in findings) else 0
