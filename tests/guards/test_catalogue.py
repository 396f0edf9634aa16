"""The catalogue of guards is of this code, and has an edit for each test that the page of faults names."""

import re

import pytest

from tests.guards.catalogue import EXEMPT, GUARDS
from tests.guards.guard import ROOT

TESTS = ROOT / "tests"


def named_in_page() -> set[str]:
    page = (ROOT / "docs" / "explanation" / "faults.md").read_text()
    return set(re.findall(r"`([\w/]+\.py::test_\w+)`", page))


def guarded() -> set[str]:
    return {re.sub(r"::\w+::", "::", test) for guard in GUARDS for test in guard.tests}


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_can_be_taken_out_and_its_tests_are_there(guard):
    assert guard.edits
    assert guard.tests
    for edit in guard.edits:
        assert (ROOT / "django_jobs" / edit.file).read_text().count(edit.old) == 1, edit
        assert edit.new != edit.old
    for test in guard.tests:
        file, *_, name = test.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(), test


def test_each_guard_has_a_name_of_its_own():
    names = [guard.name for guard in GUARDS]

    assert len(set(names)) == len(names)


def test_each_fault_was_seen_where_its_guard_is_missing():
    named = named_in_page()

    assert len(named) > 40
    assert sorted(named - guarded() - set(EXEMPT)) == []
    assert set(EXEMPT) <= named
    assert not set(EXEMPT) & guarded()
