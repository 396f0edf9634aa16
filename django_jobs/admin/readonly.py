"""What the pages have in common: nothing is added, changed or deleted by hand, and no page counts a history."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils.functional import cached_property

# A list counts no further; who wants older rows filters.
MOST_COUNTED = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to a bound: ``COUNT(*)`` over millions of rows takes seconds."""

    @cached_property
    def count(self) -> int:
        """The number of rows, or the bound if there are more."""
        return len(self.object_list.order_by()[:MOST_COUNTED].values_list("pk"))  # type: ignore[attr-defined]


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A page to look at."""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows come from code."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Raw edits would go round the state machine."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Raw deletes would, too."""
        return False
