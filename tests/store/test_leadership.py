"""Electing who does the maintenance: one at a time, for a lease, in terms that never repeat."""

from functools import partial

from django_jobs.models import Leadership
from tests.store.builders import in_threads


def test_the_first_one_leads(store, clock):
    leadership = store.acquire_leadership("keeper", "a", 30.0, now=clock.now)

    assert tuple(leadership) == ("keeper", "a", 1, clock.after(30))


def test_another_one_is_refused_until_the_lease_ends(store, clock):
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)

    assert store.acquire_leadership("keeper", "b", 30.0, now=clock.after(29.999999)) is None
    taken = store.acquire_leadership("keeper", "b", 30.0, now=clock.after(30))
    assert tuple(taken) == ("keeper", "b", 2, clock.after(60))
    assert store.acquire_leadership("keeper", "a", 30.0, now=clock.after(30)) is None


def test_the_leader_renews_its_lease_in_the_same_term(store, clock):
    since = clock.now
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)

    renewed = store.acquire_leadership("keeper", "a", 30.0, now=clock.advance(20))

    assert tuple(renewed) == ("keeper", "a", 1, clock.after(30))
    assert store.acquire_leadership("keeper", "b", 30.0, now=clock.after(15)) is None
    assert Leadership.objects.get().acquired_at == since


def test_a_late_leader_that_nobody_replaced_goes_on_in_its_term(store, clock):
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)

    assert store.acquire_leadership("keeper", "a", 30.0, now=clock.advance(3600)).term == 1


def test_who_resigns_makes_room_at_once(store, clock):
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)

    resigned = store.resign_leadership("keeper", "a", now=clock.advance(1))

    assert (resigned.term, resigned.expires_at) == (1, clock.now)
    assert tuple(store.acquire_leadership("keeper", "b", 30.0, now=clock.now)) == (
        "keeper",
        "b",
        2,
        clock.after(30),
    )


def test_only_the_leader_can_resign(store, clock):
    assert store.resign_leadership("keeper", "a", now=clock.now) is None
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)

    assert store.resign_leadership("keeper", "b", now=clock.now) is None
    assert store.resign_leadership("other", "a", now=clock.now) is None
    assert store.acquire_leadership("keeper", "b", 30.0, now=clock.now) is None


def test_a_late_resignation_does_not_take_it_from_the_next_one(store, clock):
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)
    store.acquire_leadership("keeper", "b", 30.0, now=clock.advance(30))

    assert store.resign_leadership("keeper", "a", now=clock.now) is None
    assert store.acquire_leadership("keeper", "a", 30.0, now=clock.now) is None


def test_resigning_after_the_lease_does_not_move_its_end(store, clock):
    end = store.acquire_leadership("keeper", "a", 30.0, now=clock.now).expires_at

    assert store.resign_leadership("keeper", "a", now=clock.advance(60)).expires_at == end


def test_terms_ascend_and_never_repeat(store, clock):
    terms = []
    for holder in ("a", "b", "a", "a", "c"):
        terms.append(store.acquire_leadership("keeper", holder, 30.0, now=clock.now).term)
        store.resign_leadership("keeper", holder, now=clock.advance(1))

    assert terms == [1, 2, 3, 4, 5]


def test_names_are_led_independently(store, clock):
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)

    assert store.acquire_leadership("other", "b", 30.0, now=clock.now).term == 1


def test_of_many_at_once_one_leads(open_store, clock):
    contenders = [(open_store(), f"worker {number}") for number in range(6)]
    last = ("nobody", 0)
    for _ in range(8):
        answers = in_threads(
            *(
                partial(store.acquire_leadership, "keeper", holder, 30.0, now=clock.now)
                for store, holder in contenders
            )
        )
        (leader,) = [answer for answer in answers if answer is not None]
        assert leader.term == last[1] + (leader.holder != last[0])
        last = (leader.holder, leader.term)
        clock.advance(30)


def test_there_is_a_leader_again_when_the_clock_was_set_back(store, clock):
    """The one before died while it was two hours ahead, and can't resign."""
    store.acquire_leadership("keeper", "a", 30.0, now=clock.after(7200))

    assert store.acquire_leadership("keeper", "b", 30.0, now=clock.now).term == 2
    assert store.acquire_leadership("keeper", "c", 30.0, now=clock.now) is None


def test_a_leader_with_a_longer_lease_leads(store, clock):
    """Workers of other settings: while a deploy is rolled out, too."""
    store.acquire_leadership("keeper", "a", 3600.0, now=clock.now)

    assert store.acquire_leadership("keeper", "a", 3600.0, now=clock.advance(10)).term == 1
    assert store.acquire_leadership("keeper", "b", 3600.0, now=clock.now) is None
