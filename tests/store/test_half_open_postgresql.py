"""A connection whose other side is silent, as behind a proxy or a firewall that has forgotten it."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connections

from django_jobs.store import own_store

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True), pytest.mark.timeout(40)]


class Relay:
    """Between a client and the server. Silent, it takes what is sent, and passes nothing on."""

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.silent: set[int] = set()
        self.accepted = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                self.accepted += 1
                threading.Thread(target=self.relay, args=(client, self.accepted), daemon=True).start()

    def relay(self, client: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(self.server) as server:
            while True:
                for side in select.select([client, server], [], [])[0]:
                    data = side.recv(65536)
                    if not data:
                        return
                    if number not in self.silent:
                        (server if side is client else client).sendall(data)

    def silence(self) -> None:
        """All connections that there are; later ones are served."""
        self.silent = set(range(self.accepted + 1))


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    settings = connections.settings["default"]
    relay = Relay(settings["HOST"], int(settings["PORT"]))
    monkeypatch.setitem(settings, "HOST", "127.0.0.1")
    monkeypatch.setitem(settings, "PORT", str(relay.port))
    yield relay
    relay.listening.close()


def test_a_query_ends_at_its_deadline_and_the_next_has_another_connection(relay: Relay) -> None:
    store = own_store("default", timeout=0.5)
    assert store.get([1]) == []
    relay.silence()

    with pytest.raises(DatabaseError):
        store.get([1])

    assert store.get([1]) == []
    assert relay.accepted == 2
    store.close()
