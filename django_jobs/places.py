"""Where functions are defined."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a function is defined: by it two functions that want one name are told from one that is defined again."""

    path: str
    file: str
    line: int
    #: What a module is executed by: a reload makes a new one. None for a module of no file, such as a shell.
    execution: Any

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Place:
        """The place of ``function``, as far as it is known."""
        code = getattr(inspect.unwrap(function), "__code__", None)
        module = sys.modules.get(function.__module__)
        return cls(
            f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}",
            getattr(code, "co_filename", ""),
            getattr(code, "co_firstlineno", 0),
            getattr(module, "__spec__", None),
        )

    def is_again(self, other: Place) -> bool:
        """Whether ``other`` is this place executed again: the same lines, or a module that was reloaded."""
        if self.path != other.path:
            return False
        executed_once = self.execution is other.execution and self.execution is not None
        return not executed_once or self[1:3] == other[1:3]

    def __str__(self) -> str:
        return f"{self.path} ({self.file}:{self.line})" if self.file else self.path
