"""What operators did: written so that Django and the room's pages each tell it in the language of the reader."""

import json

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils import translation
from django.utils.html import escape

from django_jobs.admin.log import message_of
from django_jobs.models import Job, Queue
from tests.admin.conftest import url
from tests.factories import AdminFactory

pytestmark = pytest.mark.django_db


def written(message, object_id="1", model=Job):
    return LogEntry.objects.create(
        user=AdminFactory(),
        content_type=ContentType.objects.get_for_model(model),
        object_id=object_id,
        object_repr="x",
        action_flag=CHANGE,
        change_message=message,
    )


def act(client, **sent):
    client.post(url("job_act"), sent)
    return LogEntry.objects.latest("pk")


def in_languages(tell, entry):
    found = []
    for language in ("en", "de", "es"):
        with translation.override(language):
            found.append(tell(LogEntry.objects.get(pk=entry.pk)))
    return found


def djangos(entry):
    return entry.get_change_message()


def test_in_the_reader_s_language_whatever_the_actor_s_was(admin, make, settings):
    settings.LANGUAGE_CODE = "es"
    ids = make("failed", 2)
    entry = act(admin, action="retry", job=ids)

    assert in_languages(message_of, entry) == ["Retried.", "Wiederholt.", "Reintentado."]
    assert in_languages(djangos, entry) == ["Changed state.", "Zustand geändert.", "Modificado estado."]
    page = admin.get(url("job_history", ids[0])).text
    assert "Reintentado." in page
    settings.LANGUAGE_CODE = "de"
    assert "<td>Wiederholt.</td>" in admin.get(url("job_history", ids[0])).text


def test_with_what_was_changed(admin, make):
    entry = act(admin, action="update", job=make(), to_queue="100 % mail", to_priority="5")

    assert in_languages(message_of, entry) == [
        "Changed. queue: 100 % mail, priority: 5",
        "Geändert. Warteschlange: 100 % mail, Priorität: 5",
        "Cambiado. cola: 100 % mail, prioridad: 5",
    ]
    assert in_languages(djangos, entry)[:2] == [
        "Changed queue and priority.",
        "Warteschlange und Priorität geändert.",
    ]


def test_with_how_many_there_were_and_why_others_were_left(admin, make):
    make("failed", 2)
    (held,) = make("failed", unique_key="a")
    make("available", unique_key="a", holds_key=True)
    entry = act(admin, action="retry", scope="all", query="?state=failed", confirmed="yes")

    assert in_languages(message_of, entry) == [
        f"Retried. 2 jobs done; not 1: another job holds its unique key ({held}).",
        f"Wiederholt. 2 Jobs erledigt; 1 nicht: ein anderer Job hält den eindeutigen Schlüssel ({held}).",
        f"Reintentado. 2 trabajos hechos; 1 no: otro trabajo tiene su clave única ({held}).",
    ]


def test_what_was_deleted(admin, make):
    (id_,) = make("failed")
    name = Job.objects.get(pk=id_).name
    entry = act(admin, action="delete", job=id_, confirmed="yes")

    assert in_languages(message_of, entry) == ["Deleted.", "Gelöscht.", "Eliminado."]
    assert in_languages(djangos, entry)[:2] == [
        f"Deleted job “{name} ({id_})”.",
        f"Job „{name} ({id_})“ gelöscht.",
    ]


def test_an_entry_of_before_is_shown_as_it_was_written(admin):
    written("Asked to be <b>quiet</b>.", "mail", Queue)
    page = admin.get(url("queue_history", "mail")).text

    assert "Asked to be &lt;b&gt;quiet&lt;/b&gt;." in page


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('[{"changed": {"fields": ["queue"]}}]', "Changed queue."),
        ('[{"changed": {"fields": ["queue"]}, "django_jobs": {"text": 5}}]', "Changed queue."),
        ('[{"changed": {"fields": ["queue"]}, "django_jobs": {"text": "%(a)9999999d", "values": {"a": 1}}}]',
         "Changed queue."),
        ('[{"added": {}}, {"changed": {"fields": ["queue"]}}]', "Added. Changed queue."),
        ("[]", "No fields changed."), ("[1", "[1"), ('{"django_jobs": 1}', '{"django_jobs": 1}'), ("7", "7"),
    ],
)  # fmt: skip
def test_any_entry_is_shown(message, shown):
    with translation.override("en"):
        assert message_of(written(message)) == shown


def test_nothing_of_it_is_html_and_nothing_is_refused_by_a_database(admin, make):
    (id_,) = make("failed", name="<b>\u202e")
    act(admin, action="retry", job=id_)
    entry = act(admin, action="update", job=id_, to_queue="<b>x</b>")
    page = admin.get(url("job_history", id_)).text

    assert escape("Changed. queue: <b>x</b>") in page
    assert "<b>x" not in page
    assert json.loads(entry.change_message)[0]["changed"] == {"fields": ["queue"]}


def test_more_entries_than_a_page_has(admin, make, settings):
    settings.LANGUAGE_CODE = "de"
    (id_,) = make("failed")
    entry = act(admin, action="retry", job=id_)
    for _number in range(100):
        entry.pk = None
        entry.save()
    first, second = (admin.get(url("job_history", id_), {"p": page}).text for page in (1, 2))

    assert (first.count("Wiederholt."), second.count("Wiederholt.")) == (100, 1)
