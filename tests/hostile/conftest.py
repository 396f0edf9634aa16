"""What a test has collected as trouble is its failure, and no error of what comes after it."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    result = yield
    trouble = pyfuncitem.funcargs.get("trouble")
    if trouble is not None:
        trouble.none()
    return result
