"""The settings of the tests, with the jobs of this folder. SIGUSR1 has a process say where its threads are."""

import faulthandler
import signal
import sys

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos"]
DEBUG = False  # else Django keeps every statement

faulthandler.register(signal.SIGUSR1, file=sys.__stderr__, all_threads=True)
