"""The table of faults names tests that there are."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parent / "docs" / "explanation" / "faults.md"


def test_every_test_that_the_table_names_is_there():
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", PAGE.read_text())

    assert len(named) > 50
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).exists() or f"def {name}(" not in (TESTS / file).read_text()
    ]
    assert not missing
