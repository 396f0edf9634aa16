"""How a worker shows that it lives: the file, the port, systemd's socket; and when it does not."""

import os
import socket
import threading
import urllib.error
import urllib.request

import pytest

from django_jobs.worker.notifying import Notifier
from django_jobs.worker.ports import Address, Answer, Port, parse_address
from django_jobs.worker.probes import Probes, Pulse, check_health_file
from tests.waiting import eventually


def get(port, path="/", method="GET", **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:  # it is the response, too
            return error.code, error.read().decode()


@pytest.fixture
def port():
    port = Port(Address("127.0.0.1", 0))
    yield port
    port.close()


class Health:
    """What is wrong, as the test says."""

    def __init__(self):
        self.problem = None
        self.asked = 0

    def __call__(self):
        self.asked += 1
        return self.problem


@pytest.fixture
def health():
    return Health()


@pytest.fixture
def watch(health):
    """Start probes on ``health``; they have ended when the test ends."""
    running = []

    def start(**options):
        probes = Probes(**{"interval": 0.01, **options})
        running.append(probes)
        probes.watch(health, "starts")
        return probes

    yield start
    for probes in running:
        probes.stop()
        assert probes.join(10)


class Systemd:
    """The other end of the socket."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(10)

    def hear(self):
        return self.socket.recv(1000).decode()


@pytest.fixture
def systemd(tmp_path):
    one = Systemd(str(tmp_path / "s"))
    yield one
    one.socket.close()


class TestFile:
    def test_it_is_touched_while_nothing_is_wrong(self, tmp_path, watch, health):
        file = check_health_file(str(tmp_path / "alive"))
        os.utime(file, (1, 1))
        watch(file=file)
        eventually(lambda: file.stat().st_mtime > 1)

        health.problem = "the keeper has died"
        seen = health.asked
        eventually(lambda: health.asked > seen + 2)
        os.utime(file, (1, 1))
        seen = health.asked
        eventually(lambda: health.asked > seen + 2)
        assert file.stat().st_mtime == 1

        health.problem = None
        eventually(lambda: file.stat().st_mtime > 1)

    def test_it_is_gone_at_the_end(self, tmp_path, watch):
        file = check_health_file(str(tmp_path / "alive"))
        probes = watch(file=file)
        probes.stop()
        assert probes.join(10)
        assert not file.exists()

    def test_one_that_somebody_removes_comes_back(self, tmp_path, watch):
        file = check_health_file(str(tmp_path / "alive"))
        watch(file=file)
        file.unlink()
        eventually(file.exists)

    def test_a_path_that_can_not_be_written_is_told_at_once(self, tmp_path):
        with pytest.raises(OSError, match="No such file"):
            check_health_file(str(tmp_path / "no folder" / "alive"))


class TestPort:
    @pytest.mark.parametrize("path", ["/", "/live", "/live/", "/live?x=1", "/healthz"])
    def test_health(self, watch, health, port, path):
        watch(port=port)
        port.start()
        assert get(port.address.port, path) == (200, "ok\n")

        health.problem = "the keeper has died"
        assert get(port.address.port, path) == (503, "the keeper has died\n")

    def test_other_pages_and_methods(self, watch, port):
        watch(port=port)
        port.start()
        number = port.address.port
        assert get(number, "/secrets")[0] == 404
        assert get(number, "/", method="HEAD") == (200, "")
        assert get(number, "/", method="POST")[0] == 501

    def test_a_page_that_fails_is_an_answer_too(self, port, caplog):
        def broken(accept):
            raise ZeroDivisionError

        port.pages["/metrics"] = broken
        port.pages["/"] = lambda accept: Answer(200, "text/plain", accept.encode())
        port.start()
        assert get(port.address.port, "/metrics")[0] == 500
        assert "ZeroDivisionError" in caplog.text
        assert get(port.address.port, "/", Accept="text/html") == (200, "text/html")

    def test_a_silent_client_keeps_nobody_waiting(self, watch, port):
        watch(port=port)
        port.start()
        with socket.create_connection(("127.0.0.1", port.address.port)):
            assert get(port.address.port) == (200, "ok\n")

    def test_a_port_that_is_taken(self, port):
        with pytest.raises(OSError, match="in use"):
            Port(port.address)

    @pytest.mark.parametrize(
        ("text", "host", "port", "shown"),
        [
            ("9100", "", 9100, ":9100"),
            (":9100", "", 9100, ":9100"),
            ("127.0.0.1:9100", "127.0.0.1", 9100, "127.0.0.1:9100"),
            ("[::1]:9100", "::1", 9100, "[::1]:9100"),
        ],
    )
    def test_addresses(self, text, host, port, shown):
        assert parse_address(text) == (host, port)
        assert str(parse_address(text)) == shown

    @pytest.mark.parametrize("text", ["", "x", "65536", "-1", "1.5", "localhost", "localhost:", "٩"])
    def test_what_is_no_address(self, text):
        with pytest.raises(ValueError, match="is no port"):
            parse_address(text)


class TestSystemd:
    def test_a_services_life(self, tmp_path, systemd, watch, health):
        environment = {
            "NOTIFY_SOCKET": str(tmp_path / "s"), "WATCHDOG_USEC": "40000", "WATCHDOG_PID": str(os.getpid()), "X": "1",
        }  # fmt: skip
        notifier = Notifier.from_environment(environment)
        assert environment == {"X": "1"}  # no child speaks for its parent

        probes = watch(notifier=notifier, interval=60.0)
        assert systemd.hear() == "READY=1\nSTATUS=starts"
        assert probes.interval == 0.02
        assert systemd.hear() == systemd.hear() == "WATCHDOG=1"

        health.problem = "the keeper has died"
        seen = health.asked
        eventually(lambda: health.asked > seen + 2)
        probes.tell("something")
        heard = [systemd.hear()]
        while heard[-1] == "WATCHDOG=1":
            heard.append(systemd.hear())
        assert heard[-1] == "STATUS=something"
        probes.stopping()
        assert systemd.hear() == "STOPPING=1"

    @pytest.mark.parametrize(
        "watchdog", [{}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}]
    )
    def test_without_a_watchdog(self, tmp_path, systemd, watch, watchdog, health):
        notifier = Notifier.from_environment({"NOTIFY_SOCKET": str(tmp_path / "s"), **watchdog})
        probes = watch(notifier=notifier)
        assert systemd.hear() == "READY=1\nSTATUS=starts"
        eventually(lambda: health.asked > 3)
        probes.stopping()
        assert systemd.hear() == "STOPPING=1"

    def test_an_abstract_name(self):
        name = f"\0django_jobs-test-{os.getpid()}"
        other = Systemd(name)
        Notifier(f"@{name[1:]}").alive()
        assert other.hear() == "WATCHDOG=1"
        other.socket.close()

    @pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
    def test_without_systemd(self, environment):
        assert Notifier.from_environment(environment) is None

    def test_a_socket_that_is_gone_is_told_once_and_harms_nothing(self, tmp_path, caplog):
        notifier = Notifier(str(tmp_path / "gone"))
        notifier.alive()
        notifier.alive()
        assert caplog.text.count("systemd can't be told") == 1


class TestWorker:
    def test_a_worker_that_works_is_well(self, live):
        worker = live(heartbeat_interval=0.05)
        eventually(lambda: worker._started)
        assert worker.problem() is None

    @pytest.mark.parametrize("part", ["reporter", "keeper", "completer", "listener", "producer"])
    def test_a_part_that_has_died(self, live, part, monkeypatch):
        worker = live()
        eventually(lambda: worker._started)
        one = worker.pools[0].producer if part == "producer" else getattr(worker, part)
        monkeypatch.setattr(one, "is_alive", lambda: False)
        assert worker.problem() == f"the {one.name} has died"
        worker.signs.stopping = True  # then they end, one by one
        assert worker.problem() is None

    def test_a_heartbeat_that_stands_still(self, live):
        worker = live()
        eventually(lambda: worker._started)
        worker.reporter.pulse.at -= worker.reporter.pulse.longest + 5
        assert (
            worker.problem() == f"the heartbeat has stood still for {worker.reporter.pulse.longest + 5:.0f} s"
        )

    def test_an_outage_of_the_database_is_no_problem_of_the_worker(self, live, monkeypatch):
        from django.db import OperationalError

        worker = live(heartbeat_interval=0.02)
        eventually(lambda: worker._started)

        def away(*args, **kwargs):
            raise OperationalError("away")

        monkeypatch.setattr(worker.reporter._store, "heartbeat", away)
        eventually(lambda: worker.reporter.failures >= 3)
        before = worker.reporter.pulse.at
        eventually(lambda: worker.reporter.pulse.at > before)
        assert worker.problem() is None

    @pytest.mark.django_db(transaction=True)
    def test_before_it_can_register_it_lives_too(self, monkeypatch, tmp_path, systemd):
        from django.db import OperationalError

        from django_jobs.worker import Worker, WorkerOptions

        file = check_health_file(str(tmp_path / "alive"))
        os.utime(file, (1, 1))
        notifier = Notifier.from_environment({"NOTIFY_SOCKET": str(tmp_path / "s")})
        worker = Worker(WorkerOptions(), probes=Probes(0.01, file, notifier=notifier))

        def away(*args, **kwargs):
            raise OperationalError("away")

        monkeypatch.setattr(worker.store, "register_worker", away)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        assert systemd.hear() == "READY=1\nSTATUS=Waiting for the database"
        eventually(lambda: file.stat().st_mtime > 1)
        worker.reporter.pulse.at -= 1000.0
        eventually(lambda: worker.problem() is None)
        monkeypatch.undo()
        assert systemd.hear() == f"STATUS=Worker {worker.worker_id} works on *"
        worker.stop()
        assert systemd.hear() == "STOPPING=1"
        thread.join(30)
        assert not file.exists()


def test_a_pulse():
    pulse = Pulse("keeper", 5.0)
    assert pulse.problem() is None
    pulse.at -= 6.0
    assert pulse.problem() == "the keeper has stood still for 6 s"
    pulse.beat()
    assert pulse.problem() is None
