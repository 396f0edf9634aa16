"""A process that was forked, as a server's are, begins with nothing of its parent's."""

import subprocess
import sys

CODE = """
import os, threading, warnings
from django_jobs.store.deadlines import Deadline, watchdog

warnings.simplefilter("ignore")
cut = threading.Event()
mine = Deadline(3600, cut.set)
watchdog.watch(mine)
watchdog._lock.acquire()  # as a thread of the parent has it, at this moment
child = os.fork()
if child == 0:
    late = Deadline(0.01, cut.set)
    watchdog.watch(late)
    os._exit(0 if cut.wait(20) and mine not in watchdog._deadlines else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_lock_and_statements_of_the_parent_are_none_of_the_childs():
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60, check=False
    )

    assert result.stdout.strip() == "0", result.stderr
