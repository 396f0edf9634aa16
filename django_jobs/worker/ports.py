"""A small HTTP server for probes and scrapers, in a thread of its own."""

from __future__ import annotations

import logging
import selectors
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

logger = logging.getLogger("django_jobs.worker")

# A client that says nothing for so long is gone.
CLIENT_SECONDS = 10.0


class Answer(NamedTuple):
    """What to send back."""

    status: int
    content_type: str
    body: bytes


# Gets what the client accepts (the header Accept).
Page = Callable[[str], Answer]


class Address(NamedTuple):
    """Where to listen; no host means all of this machine's."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """``9100``, ``127.0.0.1:9100`` or ``[::1]:9100``. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535):
        raise ValueError(f"{text!r} is no port; write 9100, or 127.0.0.1:9100 to listen on one address only")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


class Port:
    """Serves pages at an address, from :meth:`start` until :meth:`close`.

    :param address: where; port 0 takes a free one.
    :raises OSError: when nothing can listen there.
    """

    def __init__(self, address: Address) -> None:
        self.pages: dict[str, Page] = {}
        self._server = _server_class(address)((address.host, address.port), _handler(self.pages))
        self.address = Address(address.host, self._server.server_address[1])
        self._server.timeout = 0  # a client that has gone again since is not waited for
        self._ending, self._end = socket.socketpair()
        self._thread = threading.Thread(
            target=self._serve, name=f"django_jobs-port-{self.address.port}", daemon=True
        )

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._end.close()
        if self._thread.is_alive():
            self._thread.join()
        self._server.server_close()
        self._ending.close()

    def _serve(self) -> None:
        # The library's own loop looks twice a second whether it shall end: a worker that stops would wait for that.
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._ending, selectors.EVENT_READ)
            while all(key.fileobj is self._server for key, _ in selector.select()):
                self._server.handle_request()


def _server_class(address: Address) -> type[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            logger.debug("A request of %s failed: %s", client_address, sys.exception())

    return Server


def _handler(pages: dict[str, Page]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = CLIENT_SECONDS
        server_version = "django_jobs"
        sys_version = ""

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, with_body: bool) -> None:
            path = self.path.partition("?")[0]
            page = pages.get(path if path == "/" else path.rstrip("/"))
            if page is None:
                answer = Answer(404, "text/plain; charset=utf-8", b"There is nothing here.\n")
            else:
                try:
                    answer = page(self.headers.get("Accept", ""))
                except Exception:
                    logger.exception("The page %s of a worker failed", path)
                    answer = Answer(
                        500, "text/plain; charset=utf-8", b"This page failed; the log says why.\n"
                    )
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(answer.body)

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            logger.debug("%s %s: %s", self.address_string(), self.requestline, code)

        def log_error(self, *args: Any) -> None:
            logger.debug("%s: %s", self.address_string(), args)

    return Handler
