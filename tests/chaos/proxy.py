"""A TCP proxy whose lines go bad when told to: the network between a process and its server."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Literal

How = Literal["well", "slow", "cut", "deaf", "held", "silent"]


class Line:
    """One connection: two streams, and what is to become of them."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.passing = asyncio.Event()
        self.passing.set()
        self.forgotten = False  # the client's end stays open, and nobody is behind it any more

    def abort(self) -> None:
        for writer in (self.client, self.server):
            writer.transport.abort()

    def forget(self) -> None:
        self.forgotten = True
        self.server.transport.abort()


class Proxy:
    """In front of one address, with a thread of its own.

    How its lines are: ``well``; ``slow``: each piece is held for :attr:`delay` seconds; ``cut``: all are reset, and new
    ones too; ``deaf``: questions arrive, answers are lost; ``silent``: half-open, nothing passes either way and nobody
    is told; ``held``: the same, but new lines are well, so that what was said on the old ones comes after all else.
    """

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.port = 0
        self.delay = 0.0
        self.how: How = "well"
        self.lines: set[Line] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server = self._call(self._listen())
        self.port = self._listener.sockets[0].getsockname()[1]

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _listen(self) -> asyncio.Server:
        self._passing = asyncio.Event()
        self._passing.set()
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    # -- what is done to it ----------------------------------------------------------------------------------------

    def turn(self, how: How, delay: float = 0.0) -> None:
        """From now on its lines are like that."""
        self._call(self._turn(how, delay))

    async def _turn(self, how: How, delay: float) -> None:
        self.how, self.delay = how, delay
        if how == "silent":
            self._passing.clear()
        else:
            self._passing.set()
        if how == "cut":
            self._each(Line.abort)
        for line in self.lines:
            if how == "held":
                line.passing.clear()
            else:
                line.passing.set()

    def heal(self, forget: bool = False) -> None:
        """New lines are well. Those that there are: what was lost on deaf ones stays lost, so they are reset; silent
        ones go on with all that was held, or (``forget``) stay silent for ever."""
        self._call(self._heal(forget))

    async def _heal(self, forget: bool) -> None:
        if self.how == "deaf":
            self._each(Line.abort)
        elif self.how == "silent" and forget:
            self._each(Line.forget)
        await self._turn("well", 0.0)

    def _each(self, do: Callable[[Line], None]) -> None:
        for line in list(self.lines):
            do(line)

    def close(self) -> None:
        """Reset all lines, and listen no more."""

        async def end() -> None:
            self._listener.close()
            self._each(Line.abort)
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)  # what was reset is closed in the loop's next round

        self._call(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # -- its lines -------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(
                asyncio.CancelledError
            ):  # by close(); asyncio would tell of it at length
                await self._serve(reader, client)
        finally:
            client.transport.abort()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self.how == "cut":
            client.transport.abort()
            return
        await self._passing.wait()
        try:
            answers, server = await asyncio.open_connection(*self.target)
        except OSError:
            client.transport.abort()
            return
        line = Line(client, server)
        self.lines.add(line)
        try:
            await asyncio.gather(
                self._pass(line, reader, server, answers=False),
                self._pass(line, answers, client, answers=True),
            )
            if line.forgotten:
                await asyncio.Event().wait()  # the client's end is kept until all ends
        finally:
            self.lines.discard(line)
            line.abort()

    async def _pass(
        self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while not line.forgotten:
                data = await reader.read(65536)
                await self._passing.wait()
                await line.passing.wait()
                if line.forgotten:
                    return
                if not data:
                    break
                if self.how == "slow":
                    await asyncio.sleep(self.delay)
                if not (answers and self.how == "deaf"):
                    writer.write(data)
                    await writer.drain()
        if not line.forgotten:
            line.abort()  # as when a process dies; nobody here closes one direction alone
