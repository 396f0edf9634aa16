"""``make serve``: a site, a worker and a login come up, and end together."""

import re
import signal
import urllib.request
from collections.abc import Callable

from django_jobs.models import Job, Worker
from tests.conftest import ManageProcess
from tests.waiting import eventually


def test_it_says_where_it_works_and_it_ends(run_manage: Callable[..., ManageProcess]) -> None:
    process = run_manage(
        "serve", "--port", "0", env={"DEMO": "1", "DJANGO_SETTINGS_MODULE": "testproject.settings"}
    )
    address = re.search(r"http://\S+/", process.wait_for_output("http://"))
    assert address is not None
    process.wait_for_output("login demo, password demo")
    eventually(lambda: Job.objects.filter(name="testproject.demo.jobs.visitors_come", state="completed"), 60)

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    eventually(lambda: "id_username" in answer(opener, address[0]))

    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    worker = Worker.objects.get()
    assert worker.stopped_at is not None


def answer(opener: urllib.request.OpenerDirector, address: str) -> str:
    """What the site says; nothing while it does not listen yet."""
    try:
        with opener.open(address, timeout=10) as response:
            return str(response.read().decode())
    except OSError:
        return ""
