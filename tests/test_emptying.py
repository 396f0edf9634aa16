"""How the database is emptied after tests: each test finds it as ``migrate`` left it, whatever another one left."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import TransactionTestCase

from django_jobs.models import Queue
from tests import emptying
from tests.factories import AdminFactory, JobFactory


@pytest.fixture
def clean_up(transactional_db: None):
    class Case(TransactionTestCase):
        databases = {"default"}

    return lambda: emptying.clean_up(Case())


def rows() -> dict[str, int]:
    """How many there are in each table that has some."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.django_table_names(only_existing=True, include_views=False):
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
            found[table] = cursor.fetchone()[0]
    return {table: number for table, number in found.items() if number}


def test_all_that_a_test_leaves_is_gone(clean_up) -> None:
    before = rows()
    assert set(before) == set(emptying.MADE_BY_MIGRATE)
    user = AdminFactory()
    user.groups.add(Group.objects.create(name="operators"))
    user.user_permissions.set(Permission.objects.all()[:2])
    JobFactory.create_batch(3)
    assert len(rows()) == len(before) + 5

    clean_up()

    assert rows() == before


def test_what_migrate_made_is_made_anew_when_a_test_has_changed_it(clean_up) -> None:
    before = rows()
    model = ContentType.objects.get_for_model(Queue)
    Permission.objects.create(content_type=model, codename="empty_queue", name="Can empty a queue")
    clean_up()
    assert rows() == before
    Permission.objects.filter(content_type__app_label="django_jobs").delete()
    clean_up()
    assert rows() == before
    assert Permission.objects.filter(content_type__app_label="django_jobs").exists()
