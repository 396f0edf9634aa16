from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest

from testproject.library.models import Document

if TYPE_CHECKING:
    DocumentAdminBase = admin.ModelAdmin[Document]
else:
    DocumentAdminBase = admin.ModelAdmin


@admin.register(Document)
class DocumentAdmin(DocumentAdminBase):
    """Read only: a document is written by its job."""

    list_display = ["path", "kind", "bytes", "lines", "words", "definitions", "indexed_at"]
    list_filter = ["kind"]
    search_fields = ["path"]
    readonly_fields = [field.name for field in Document._meta.fields]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
