"""The proxy does to lines what it says."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.chaos.proxy import Proxy
from tests.waiting import eventually


class Echo:
    """A server that says everything back; it notes what came."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.came = b""
        self.ended = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self.listener.accept()
                threading.Thread(target=self.answer, args=(line,), daemon=True).start()

    def answer(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            while data := line.recv(100):
                self.came += data
                line.sendall(data)
        self.ended += 1


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.listener.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    between = Proxy("127.0.0.1", echo.port)
    yield between
    between.close()


@pytest.fixture
def connect(proxy: Proxy):
    with contextlib.ExitStack() as lines:

        def one() -> socket.socket:
            line = lines.enter_context(socket.create_connection(("127.0.0.1", proxy.port), 10))
            line.settimeout(10)
            return line

        yield one


def says(line: socket.socket, text: bytes) -> bytes:
    line.sendall(text)
    return line.recv(100)


def is_dead(line: socket.socket) -> bool:
    try:
        return not says(line, b"there?")
    except ConnectionError:
        return True


def is_silent(line: socket.socket) -> bool:
    line.settimeout(0.05)
    try:
        line.recv(100)
        return False
    except TimeoutError:
        return True
    finally:
        line.settimeout(10)


def test_well_and_slow_lines_pass_all(proxy, connect):
    line = connect()
    assert says(line, b"hello") == b"hello"
    proxy.turn("slow", 0.01)
    assert says(line, b"slow") == b"slow"


def test_cut_lines_are_reset_and_so_are_new_ones_until_it_heals(proxy, connect):
    line = connect()
    assert says(line, b"hello") == b"hello"
    proxy.turn("cut")
    assert is_dead(line)
    assert is_dead(connect())
    proxy.heal()
    assert says(connect(), b"again") == b"again"


def test_on_deaf_lines_questions_arrive_and_answers_are_lost(proxy, connect, echo):
    line = connect()
    assert says(line, b"hello") == b"hello"
    proxy.turn("deaf")
    line.sendall(b"lost")
    eventually(lambda: echo.came == b"hellolost")
    assert is_silent(line)
    proxy.heal()
    assert is_dead(line)


def test_silent_lines_go_on_with_what_was_held(proxy, connect, echo):
    line = connect()
    assert says(line, b"hello") == b"hello"
    proxy.turn("silent")
    line.sendall(b"late")
    new = connect()  # it is accepted, and nobody is there
    new.sendall(b"new")
    assert is_silent(line)
    assert is_silent(new)
    assert echo.came == b"hello"
    proxy.heal()
    assert (line.recv(100), new.recv(100)) == (b"late", b"new")


def test_held_lines_come_after_new_ones(proxy, connect, echo):
    line = connect()
    assert says(line, b"hello") == b"hello"
    proxy.turn("held")
    line.sendall(b"late")
    assert says(connect(), b"new") == b"new"
    assert is_silent(line)
    assert echo.came == b"hellonew"
    proxy.heal()
    assert line.recv(100) == b"late"


def test_forgotten_lines_stay_silent_for_ever_and_new_ones_are_well(proxy, connect, echo):
    line = connect()
    assert says(line, b"hello") == b"hello"
    proxy.turn("silent")
    line.sendall(b"lost")
    proxy.heal(forget=True)
    eventually(lambda: echo.ended == 1)  # the server has given it up
    assert is_silent(line)
    assert says(connect(), b"again") == b"again"
    assert is_silent(line)
    assert echo.came == b"helloagain"


def test_where_nobody_listens_lines_are_reset(proxy, connect, echo):
    echo.listener.shutdown(socket.SHUT_RDWR)
    echo.listener.close()
    assert is_dead(connect())
