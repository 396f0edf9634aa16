"""Which statement is what, by its text."""

from __future__ import annotations

import re

# Anything that a connection is made clean by, or given back with.
_RESETS = re.compile(r"^\s*(DISCARD|RESET|ROLLBACK|ABORT|DEALLOCATE|CLOSE|UNLISTEN)\b", re.IGNORECASE)
# Whole rows of jobs, read: their columns are listed.
_JOB_READ = re.compile(
    r"^\s*SELECT\b.*\bmax_attempts\b.*\bFROM\s+\"?django_jobs_job\b", re.IGNORECASE | re.DOTALL
)


def is_reset(sql: str) -> bool:
    """Whether a statement cleans up a connection."""
    return bool(_RESETS.match(sql))


def is_job_read(sql: str) -> bool:
    """Whether a statement reads jobs again that a statement before had returned: whole rows, and nothing else."""
    return bool(_JOB_READ.match(sql))
