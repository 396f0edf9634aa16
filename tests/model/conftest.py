"""The store's fixtures, for its model."""

from tests.store.conftest import open_store, shared

__all__ = ["open_store", "shared"]
