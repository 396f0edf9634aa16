"""How far a long command is: a bar on a terminal, a line now and then where the output is kept."""

import time

from django.core.management.base import OutputWrapper

WIDTH = 40
STEPS = 10  # lines from start to end where there is no terminal


class Progress:
    def __init__(self, stdout: OutputWrapper, total: int) -> None:
        self.stdout = stdout
        self.total = total
        self.terminal = stdout.isatty()
        self.started = time.monotonic()
        self.next_step = 1

    def show(self, done: int) -> None:
        if self.terminal:
            self.stdout.write(f"\r{self.line(done)}\x1b[K", ending="")
            self.stdout.flush()
        elif self.fraction(done) * STEPS >= self.next_step:
            self.next_step = int(self.fraction(done) * STEPS) + 1
            self.stdout.write(self.line(done))
            self.stdout.flush()

    def close(self, done: int) -> None:
        """The last state, and the end of the line."""
        self.show(done)
        if self.terminal:
            self.stdout.write("")

    def note(self, text: str) -> None:
        """A line of its own; on a terminal the bar goes on below it."""
        self.stdout.write(f"\r{text}\x1b[K" if self.terminal else text)
        self.stdout.flush()

    def fraction(self, done: int) -> float:
        return min(done / self.total, 1.0)

    def line(self, done: int) -> str:
        fraction = self.fraction(done)
        rate = done / max(time.monotonic() - self.started, 0.001)
        figures = f"{fraction:4.0%}  {min(done, self.total):,} of {self.total:,}  {rate:,.0f}/s"
        if not self.terminal:
            return figures
        filled = int(fraction * WIDTH)
        return f"  [{'#' * filled}{'.' * (WIDTH - filled)}] {figures}"
