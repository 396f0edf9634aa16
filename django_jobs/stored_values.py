"""Values of columns as their kind is, whatever somebody's SQL has written there: SQLite takes anything."""

from __future__ import annotations

import math
from typing import Any


def whole(value: Any) -> int:
    """A whole number, 0 for what is none."""
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return value if isinstance(value, int) else 0


def real(value: Any) -> float:
    """A finite number, 0 for what is none."""
    return value if isinstance(value, int | float) and math.isfinite(value) else 0.0


def text(value: Any) -> str:
    """A text, also of bytes and numbers."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if isinstance(value, str) else str(value)
