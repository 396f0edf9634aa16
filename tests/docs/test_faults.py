"""The pages of faults and of threats name tests that there are."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
PAGES = TESTS.parent / "docs" / "explanation"


@pytest.mark.parametrize("page", ["faults.md", "security.md"])
def test_every_test_that_the_page_names_is_there(page):
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", (PAGES / page).read_text())

    assert len(named) > 40
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).exists() or f"def {name}(" not in (TESTS / file).read_text()
    ]
    assert not missing
