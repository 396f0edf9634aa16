"""The catalogue of guards is of this code."""

import pytest

from tests.guards.catalogue import GUARDS
from tests.guards.guard import ROOT

TESTS = ROOT / "tests"


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
