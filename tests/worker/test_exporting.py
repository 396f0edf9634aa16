"""``runjobs`` with probes and metrics, as a process."""

import os
import re
import signal
import socket
import urllib.request

import pytest

from django_jobs.models import Job
from tests.waiting import eventually
from tests.workload import jobs


def page(line):
    """What is at the address in a line of output."""
    address = re.search(r"http://(\S+)", line)[1]
    port = address.rpartition(":")[2].partition("/")[0]
    path = "/" + address.partition("/")[2]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
        return response.read().decode()


def value(text, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else None


COMPLETED = 'django_jobs_worker_attempts_total{name="tests.workload.jobs.nothing",outcome="completed",queue="default"}'


def test_one_process_shows_itself(run_manage, tmp_path):
    systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    systemd.bind(str(tmp_path / "s"))
    systemd.settimeout(30)
    file = tmp_path / "alive"
    jobs.nothing.enqueue_many([()] * 5)

    process = run_manage(
        "runjobs", "--health-file", str(file), "--health-port", "127.0.0.1:0", "--metrics-port", "127.0.0.1:0",
        env={"NOTIFY_SOCKET": str(tmp_path / "s"), "WATCHDOG_USEC": "400000"},
    )  # fmt: skip
    metrics = process.wait_for_output("Metrics at")
    assert page(process.wait_for_output("Health at")) == "ok\n"
    assert systemd.recv(1000).startswith(b"READY=1")
    eventually(lambda: value(page(metrics), COMPLETED) == 5.0)
    text = page(metrics)
    assert value(text, "django_jobs_worker_processes") == 1.0
    assert "process_cpu_seconds_total" in text  # what is in prometheus-client's own registry
    eventually(lambda: systemd.recv(1000) == b"WATCHDOG=1")
    os.utime(file, (1, 1))
    eventually(lambda: file.stat().st_mtime > 1)

    process.send_signal(signal.SIGTERM)
    eventually(lambda: systemd.recv(1000) == b"STOPPING=1")
    assert process.wait() == 0
    assert not file.exists()
    systemd.close()


def test_a_supervisor_shows_its_children(run_manage, tmp_path):
    file = tmp_path / "alive"
    jobs.nothing.enqueue_many([()] * 20)
    process = run_manage(
        "runjobs", "--processes", "2", "--health-file", str(file), "--health-port", "127.0.0.1:0",
        "--metrics-port", "127.0.0.1:0",
        env={"DJANGO_JOBS": '{"HEARTBEAT_INTERVAL": 0.1}'},
    )  # fmt: skip
    metrics = process.wait_for_output("Metrics at")
    health = process.wait_for_output("Health at")
    eventually(lambda: value(page(metrics), COMPLETED) == 20.0)
    eventually(lambda: value(page(metrics), "django_jobs_worker_processes") == 2.0)
    assert page(health) == "ok\n"
    assert file.exists()

    # A child that dies is replaced, and what it has counted stays.
    (victim, *_) = [int(pid) for pid in re.findall(r"Started a worker, process (\d+)", process.output)]
    os.kill(victim, signal.SIGKILL)
    process.wait_for_output(rf"Process {victim} was killed")
    eventually(lambda: value(page(metrics), "django_jobs_worker_processes") == 2.0)
    assert value(page(metrics), COMPLETED) == 20.0

    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert Job.objects.filter(state="completed").count() == 20


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--health-file", "/no/such/folder/alive"], "--health-file /no/such/folder/alive: "),
        (["--health-port", "x"], "'x' is no port"),
        (["--metrics-port", "70000"], "'70000' is no port"),
    ],
)
def test_what_can_not_be_opened_is_told_at_the_start(run_manage, arguments, words):
    process = run_manage("runjobs", *arguments)

    assert process.wait() != 0
    assert words in process.output


def test_a_port_that_is_taken_is_told_at_the_start(run_manage):
    with socket.create_server(("127.0.0.1", 0)) as other:
        process = run_manage("runjobs", "--health-port", f"127.0.0.1:{other.getsockname()[1]}")
        assert process.wait() == 1
    assert "Address already in use" in process.output
