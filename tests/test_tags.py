"""Tags: strings and model instances, stored as a list of strings."""

import uuid

import pytest
from django.contrib.auth.models import Group, User
from django.test.utils import isolate_apps

from django_jobs import InvalidJob, job
from django_jobs.models import Job
from django_jobs.tags import tag_of


@job
def send(user_id=0): ...


def test_strings_and_instances_are_stored_as_strings(db):
    user = User.objects.create(username="ada")

    row = send.using(tags=["spring sale", user, "é,\"\\'"]).enqueue(1)

    assert row.tags == ["spring sale", f"auth.user:{user.pk}", "é,\"\\'"]
    assert Job.objects.get().tags == row.tags


def test_of_many_jobs(db):
    rows = send.using(tags=("a", "b")).enqueue_many([(1,), (2,)])

    assert [row.tags for row in rows] == [["a", "b"]] * 2
    assert {tuple(stored.tags) for stored in Job.objects.all()} == {("a", "b")}


def test_with_a_key_and_pending(db):
    row = send.using(tags=["a"], unique=True, pending=True).enqueue(1)

    assert (row.tags, row.state, row.holds_key) == (["a"], "pending", True)


def test_each_once_in_the_order_given():
    user = User(pk=3)

    assert send.using(tags=["b", "a", user, "b", "auth.user:3"]).options.tags == ("b", "a", "auth.user:3")


def test_a_job_without_tags_stores_none(db):
    assert send.using(tags=[]).enqueue().tags == []
    assert Job.objects.get().tags is None


@isolate_apps("django.contrib.auth")  # else makemigrations would find the proxy
def test_an_instance_of_a_proxy_is_the_same_row():
    class Crew(Group):
        class Meta:
            proxy = True
            app_label = "auth"

    assert tag_of(Crew(pk=5)) == tag_of(Group(pk=5)) == "auth.group:5"


def test_a_key_of_any_type():
    key = uuid.uuid4()

    assert tag_of(User(pk=key)) == f"auth.user:{key}"


def test_the_bounds():
    assert len(send.using(tags=[str(number) for number in range(20)]).options.tags) == 20
    assert tag_of("é" * 255) == "é" * 255


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("spring", "is 'spring'; it must be a list of strings and model instances."),
        (5, "is 5; it must be a list"),
        ([5], "The tag 5 must be a string or a model instance."),
        ([""], "The tag '' has 0 characters; it must have at least 1 and at most 255."),
        (["t" * 256], "has 256 characters; it must have at least 1 and at most 255."),
        (["a\0"], "has a NUL character"),
        (["\ud800"], "has a lone surrogate"),
        ([User()], "is an instance without a primary key; save it first."),
        ([User], "must be a string or a model instance."),
        (list("abcdefghijklmnopqrstu"), "are 21; a job has 20 at most."),
    ],
)
def test_what_is_refused(tags, message):
    with pytest.raises(InvalidJob) as refusal:
        send.using(tags=tags)
    assert str(refusal.value).startswith(f"tags of {send.name}")
    assert message in str(refusal.value)
