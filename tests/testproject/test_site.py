"""The test project as a site: its admin, and that it needs no migration."""

import io

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from testproject.library.models import Document


@pytest.fixture
def document():
    return Document.objects.create(
        path="/srv/<b>shelf</b>.py", kind="py", bytes=9, lines=1, words=2, indexed_at=timezone.now()
    )


@pytest.mark.django_db
class TestAdmin:
    def test_the_start_page_leads_there(self, client):
        response = client.get("/")

        assert response.status_code == 302
        assert response.url == reverse("admin:index")

    def test_documents_are_listed_and_shown_but_not_added(self, admin_client, document):
        listed = admin_client.get(reverse("admin:library_document_changelist"), {"q": "shelf"})
        shown = admin_client.get(reverse("admin:library_document_change", args=[document.pk]))
        added = admin_client.get(reverse("admin:library_document_add"))

        assert "/srv/&lt;b&gt;shelf&lt;/b&gt;.py" in listed.text
        assert "/srv/&lt;b&gt;shelf&lt;/b&gt;.py" in shown.text
        assert added.status_code == 403


@pytest.mark.django_db
def test_the_migrations_are_those_of_the_models():
    call_command("makemigrations", "--check", "--dry-run", stdout=io.StringIO())


@pytest.mark.django_db
def test_the_system_checks_find_nothing():
    call_command("check", "--fail-level=WARNING", stdout=io.StringIO(), stderr=io.StringIO())
