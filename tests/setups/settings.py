"""The tests' settings, changed by the environment variable SETUP: JSON, as the set-up under test has them.

What stands under an alias of ``DATABASES`` is what differs there from the tests' own database, or, with ``URL``, from
what that says.
"""

import copy

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, env

SETUP = env.json("SETUP", default={})
DEFAULT = DATABASES["default"]


def database(changes):
    config = copy.deepcopy(DEFAULT)
    if url := changes.pop("URL", None):
        config.update(env.db_url_config(url))
    config["OPTIONS"] = {**config.get("OPTIONS", {}), **changes.pop("OPTIONS", {})}
    return {**config, **changes}


DATABASES = {**DATABASES}
for _alias, _changes in SETUP.pop("DATABASES", {}).items():
    DATABASES[_alias] = database(_changes)
globals().update(SETUP)
