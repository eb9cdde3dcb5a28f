"""What every store does, whatever database it is in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from matchmill.errors import DuplicateIdError, QuotaError, StoreError, UnknownIdError
from matchmill.service.database.rows import (
    MINUTE,
    SECOND,
    Key,
    NewSubscription,
    Publication,
    Published,
    Retention,
)
from matchmill.service.database.store import Store

NOW = 1_000_000 * MINUTE
MANY = 1_000_000


def tenant_of(store: Store, name: str = "acme") -> int:
    with store.writing() as writing:
        return writing.add_tenant(name)


def subscribe(store: Store, tenant: int, identifier: str = "a", **more: object) -> int:
    now = NOW
    new = NewSubscription(identifier, "x > 3", f"ticket {identifier} {more}".encode(), NOW + SECOND)
    new = new._replace(**more)  # type: ignore[arg-type]
    with store.writing() as writing:
        return writing.subscribe(tenant, new, now, MANY)


def publish(
    store: Store,
    tenant: int,
    *events: tuple[str, Sequence[int]],
    now: int = NOW,
    mailbox_limit: int = MANY,
) -> list[Published]:
    publications = [Publication(name, f'{{"e":"{name}"}}', numbers) for name, numbers in events]
    with store.writing() as writing:
        return writing.publish(tenant, publications, now, mailbox_limit)


def seqs(store: Store, number: int, after: int = 0, now: int = NOW) -> list[int]:
    with store.reading() as reading:
        page = reading.page(number, after, 100, now)
    assert page is not None
    return [entry.seq for entry in page.entries]


# -- subscriptions --------------------------------------------------------------------------------


def test_a_subscription_is_found_by_id_and_by_ticket(store: Store) -> None:
    tenant = tenant_of(store)
    number = subscribe(store, tenant, ticket_hash=b"t", expression="name = 'a\0é😀'")
    with store.reading() as reading:
        found = reading.subscription(tenant, "a", NOW)
        assert found is not None
        assert found == reading.by_ticket("a", b"t", NOW)
        assert (found.number, found.id, found.expression) == (number, "a", "name = 'a\0é😀'")
        assert reading.subscription(tenant + 1, "a", NOW) is None
        assert reading.by_ticket("a", b"u", NOW) is None
        assert reading.by_ticket("b", b"t", NOW) is None


def test_a_ticket_finds_its_own_among_equal_ids(store: Store) -> None:
    first = tenant_of(store)
    with store.writing() as writing:
        second = writing.add_tenant("another")
    numbers = [
        subscribe(store, tenant, ticket_hash=ticket)
        for tenant, ticket in ((first, b"t"), (second, b"u"))
    ]
    with store.reading() as reading:
        found = [reading.by_ticket("a", ticket, NOW) for ticket in (b"t", b"u")]
    assert [one and (one.number, one.tenant) for one in found] == [
        (numbers[0], first),
        (numbers[1], second),
    ]


def test_an_id_is_taken_once_and_free_again_after_its_end(store: Store) -> None:
    tenant, other = tenant_of(store), tenant_of(store, "other")
    first = subscribe(store, tenant)
    subscribe(store, other, ticket_hash=b"of the other")
    with pytest.raises(DuplicateIdError):
        subscribe(store, tenant, ticket_hash=b"2")
    with store.writing() as writing:
        assert writing.unsubscribe(first)
        assert not writing.unsubscribe(first)
    second = subscribe(store, tenant, ticket_hash=b"3", expires_at=NOW - 1)  # expired already
    third = subscribe(store, tenant, ticket_hash=b"4")
    assert first < second < third
    with store.reading() as reading:
        changes = reading.changes(tenant, 0, 100)
    assert changes is not None
    told = [(change.number, change.is_new, change.expression) for change in changes]
    assert told == [
        (first, True, None),
        (first, False, None),
        (second, True, None),
        (second, False, None),
        (third, True, "x > 3"),
    ]


def test_a_replaced_one_keeps_its_number_and_its_matches(store: Store) -> None:
    tenant = tenant_of(store)
    number = subscribe(store, tenant, ticket_hash=b"t")
    publish(store, tenant, ("e", [number]))
    new = NewSubscription("a", "x > 4", b"u", NOW + 9, 7, "http://h/", b"n")
    with store.writing() as writing:
        writing.replace(number, new, NOW)
    with store.reading() as reading:
        found = reading.subscription(tenant, "a", NOW)
        assert found is not None
        assert found == reading.by_ticket("a", b"u", NOW)
        assert reading.by_ticket("a", b"t", NOW) is None
        assert (found.number, found.n_pending, found.created_at) == (number, 1, NOW)
        assert (found.expression, found.expires_at, found.max_per_minute) == ("x > 4", NOW + 9, 7)
        assert (found.webhook_url, bytes(found.webhook_nonce or b"")) == ("http://h/", b"n")
        assert [due.number for due in reading.due_webhooks(NOW, 10, 9)] == [number]
        changes = reading.changes(tenant, number, 9)
    assert changes is not None
    assert [(one.number, one.is_new, one.is_end, one.expression) for one in changes] == [
        (number, False, False, "x > 4")
    ]
    with store.writing() as writing:
        writing.replace(number, new._replace(webhook_url=None), NOW)
        assert writing.due_webhooks(NOW, 10, 9) == []


def test_there_may_be_so_many_subscriptions(store: Store) -> None:
    tenant = tenant_of(store)

    def add(identifier: str, expires_at: int = NOW + 1) -> int:
        new = NewSubscription(identifier, "x", identifier.encode(), expires_at)
        with store.writing() as writing:
            return writing.subscribe(tenant, new, NOW, 2)

    add("a", expires_at=NOW - 1)
    add("b")
    add("c")  # in place of the one that has expired
    with pytest.raises(QuotaError):
        add("d")
    with store.reading() as reading:
        assert [row.id for row in reading.subscriptions(tenant, "", 10, NOW)] == ["b", "c"]
        assert [row.id for row in reading.subscriptions(tenant, "b", 10, NOW)] == ["c"]


def test_what_has_expired_is_gone_from_its_moment_on(store: Store) -> None:
    tenant = tenant_of(store)
    number = subscribe(store, tenant, ticket_hash=b"t", expires_at=NOW + 10)
    publish(store, tenant, ("e1", [number]), now=NOW + 9)
    with store.reading() as reading:
        assert reading.page(number, 0, 10, NOW + 9) is not None
        assert reading.page(number, 0, 10, NOW + 10) is None
        assert reading.subscription(tenant, "a", NOW + 10) is None
        assert reading.by_ticket("a", b"t", NOW + 10) is None
        assert reading.live(tenant, [number], NOW + 9) != []
        assert reading.live(tenant, [number], NOW + 10) == []
        assert reading.subscriptions(tenant, "", 10, NOW + 10) == []
    (late,) = publish(store, tenant, ("e2", [number]), now=NOW + 10)
    assert late.n_matches == 0
    with store.writing() as writing:
        with pytest.raises(UnknownIdError):
            writing.replace(number, renewed(NOW + 100), NOW + 10)
        assert writing.remove_expired(NOW + 9, 10) == []
        assert writing.remove_expired(NOW + 10, 10) == [number]


def renewed(expires_at: int) -> NewSubscription:
    return NewSubscription("a", "x > 3", None, expires_at)


def test_a_renewed_one_lasts(store: Store) -> None:
    tenant = tenant_of(store)
    number = subscribe(store, tenant, expires_at=NOW + 10)
    with store.writing() as writing:
        before = writing.last_change()
        writing.replace(number, renewed(NOW + 100), NOW)
        assert writing.last_change() == before  # the engine has nothing to learn
    (late,) = publish(store, tenant, ("e", [number]), now=NOW + 99)
    assert late.n_matches == 1


# -- events and mailboxes -------------------------------------------------------------------------


def test_an_event_goes_to_mailboxes_in_order(store: Store) -> None:
    tenant = tenant_of(store)
    a, b = subscribe(store, tenant, "a"), subscribe(store, tenant, "b")
    results = publish(store, tenant, ("e1", [a, b]), ("e2", [a]), ("e3", []))
    assert [result.n_matches for result in results] == [2, 1, 0]
    assert sorted(one.id for one in results[0].receivers) == ["a", "b"]
    assert seqs(store, a) == [results[0].seq, results[1].seq]
    assert seqs(store, a, after=results[0].seq) == [results[1].seq]
    assert seqs(store, b) == [results[0].seq]
    with store.reading() as reading:
        page = reading.page(a, 0, 1, NOW)
        assert page is not None
        (entry,) = page.entries
        assert (entry.event_id, entry.body, entry.matched_at) == ("e1", '{"e":"e1"}', NOW)
        events = reading.recent_events(tenant, 2)
        assert [event.event_id for event in events] == ["e2", "e3"]


def test_a_repeated_event_gets_the_first_answer(store: Store) -> None:
    tenant, other = tenant_of(store), tenant_of(store, "other")
    a = subscribe(store, tenant)
    (first,) = publish(store, tenant, ("e", [a]))
    again, new, new_again = publish(store, tenant, ("e", []), ("n", [a]), ("n", []))
    assert (again.seq, again.n_matches, again.is_repeated) == (first.seq, 1, True)
    assert again.receivers == []
    assert (new.n_matches, new.is_repeated, new_again.n_matches) == (1, False, 1)
    assert new_again.is_repeated
    assert seqs(store, a) == [first.seq, new.seq]
    (elsewhere,) = publish(store, other, ("e", []))
    assert not elsewhere.is_repeated


def test_cancelled_ones_and_those_of_others_get_nothing(store: Store) -> None:
    tenant, other = tenant_of(store), tenant_of(store, "other")
    gone, theirs = subscribe(store, tenant), subscribe(store, other, "theirs")
    with store.writing() as writing:
        writing.unsubscribe(gone)
    (result,) = publish(store, tenant, ("e", [gone, theirs, 10**9]))
    assert (result.n_matches, result.receivers) == (0, [])
    assert seqs(store, theirs) == []


def test_acknowledged_entries_never_come_again(store: Store) -> None:
    tenant = tenant_of(store)
    a = subscribe(store, tenant)
    first, second, third = publish(store, tenant, *((f"e{n}", [a]) for n in range(3)))
    with store.writing() as writing:
        assert writing.acknowledge(a, second.seq) == 2
        assert writing.acknowledge(a, second.seq) == 0
    assert seqs(store, a) == [third.seq]
    with store.reading() as reading:
        found = reading.subscription(tenant, "a", NOW)
    assert found is not None
    assert (found.n_pending, found.n_dropped, first.seq) == (1, 0, 1)


def test_a_full_mailbox_drops_the_oldest_and_counts(store: Store) -> None:
    tenant = tenant_of(store)
    a = subscribe(store, tenant)
    events = [(f"e{n}", [a]) for n in range(5)]
    published = publish(store, tenant, *events, mailbox_limit=3)
    assert seqs(store, a) == [one.seq for one in published[2:]]
    publish(store, tenant, ("e5", [a]), mailbox_limit=3)
    with store.reading() as reading:
        page = reading.page(a, 0, 10, NOW)
        found = reading.subscription(tenant, "a", NOW)
    assert page is not None
    assert found is not None
    assert (page.n_dropped, found.n_pending, found.n_dropped) == (3, 3, 3)


def test_beyond_the_most_a_minute_there_is_one_digest(store: Store) -> None:
    tenant = tenant_of(store)
    a = subscribe(store, tenant, max_per_minute=2, expires_at=NOW + 10 * MINUTE)
    for n in range(5):
        publish(store, tenant, (f"e{n}", [a]), now=NOW + n)
    with store.reading() as reading:
        page = reading.page(a, 0, 10, NOW + 30 * SECOND)
        assert page is not None
        assert [entry.event_id for entry in page.entries] == ["e0", "e1"]
        assert page.next_digest_at == NOW + MINUTE
        later = reading.page(a, page.entries[-1].seq, 10, NOW + MINUTE)
    assert later is not None
    (digest,) = later.entries
    assert (digest.digest_count, digest.matched_at, digest.digest_last_at) == (3, NOW + 2, NOW + 4)
    publish(store, tenant, ("next", [a]), now=NOW + MINUTE)
    with store.reading() as reading:
        last = reading.page(a, digest.seq, 10, NOW + MINUTE)
    assert last is not None
    assert [entry.event_id for entry in last.entries] == ["next"]


def test_old_events_are_forgotten_with_their_entries(store: Store) -> None:
    tenant = tenant_of(store)
    a = subscribe(store, tenant, expires_at=NOW + 10 * MINUTE)
    publish(store, tenant, ("old", [a]), now=NOW)
    publish(store, tenant, ("e1", [a]), ("e2", [a]), ("e3", [a]), now=NOW + MINUTE)
    by_age, by_count = Retention(100, MANY, MINUTE), Retention(2, MANY, MINUTE)
    with store.writing() as writing:
        assert writing.forgettable(tenant, by_age, None, 9).steps == []
        assert writing.forgettable(tenant, by_age, NOW + MINUTE, 0).steps == []
        assert writing.forgettable(tenant, by_age, NOW + MINUTE, 9) == ([1], 1, True)
        assert writing.forgettable(tenant, by_count, NOW + MINUTE, 9) == ([1, 2], 0, True)
        assert writing.holders(tenant, 2, "", 1) == ([a], "a")
        assert writing.holders(tenant, 2, "a", 1) == ([], None)
        writing.drop_matches([a], 2)
        assert writing.holders(tenant, 2, "", 9) == ([], None)
        assert (writing.delete_events(tenant, 2), writing.delete_events(tenant, 2)) == (2, 0)
        assert writing.forgettable(tenant, by_count, NOW + MINUTE, 9) == ([], 0, False)
    with store.reading() as reading:
        page = reading.page(a, 0, 10, NOW + MINUTE)
        assert [event.event_id for event in reading.recent_events(tenant, 10)] == ["e2", "e3"]
    assert page is not None
    assert ([entry.event_id for entry in page.entries], page.n_dropped) == (["e2", "e3"], 2)


def test_events_that_are_too_large_together_are_forgotten(store: Store) -> None:
    tenant = tenant_of(store)
    bodies = [f'"{"ä" * n}"' for n in (100, 10, 10, 10)]
    with store.writing() as writing:
        given = [Publication(f"e{n}", body, []) for n, body in enumerate(bodies)]
        writing.publish(tenant, given, NOW, MANY)
        for most, expected in ((138, []), (137, [1]), (36, [1]), (35, [1, 2]), (0, [1, 3, 4])):
            retention = Retention(100, most, MINUTE)
            assert writing.forgettable(tenant, retention, None, 9) == (expected, 0, False)
        assert writing.delete_events(tenant, 1) == 1
        assert writing.forgettable(tenant, Retention(100, 36, MINUTE), None, 9).steps == []
        assert writing.forgettable(tenant, Retention(100, 35, MINUTE), None, 9).steps == [2]


def test_a_log_that_is_too_short_says_so(store: Store) -> None:
    tenant = tenant_of(store)
    numbers = [subscribe(store, tenant, f"s{n}") for n in range(5)]
    with store.writing() as writing:
        assert [writing.delete_changes(2, 2) for _ in range(3)] == [2, 1, 0]
    with store.reading() as reading:
        assert reading.changes(tenant, 0, 10) is None
        assert reading.changes(tenant, numbers[1], 10) is None
        kept = reading.changes(tenant, numbers[2], 10)
        assert kept is not None
        assert [change.number for change in kept] == numbers[3:]
        assert sorted(reading.expressions(tenant)) == [(number, "x > 3") for number in numbers]


# -- keys, webhooks -------------------------------------------------------------------------------


def test_keys(store: Store) -> None:
    tenant = tenant_of(store)
    assert tenant_of(store) == tenant
    key = Key("k1", tenant, "acme", "for tests", frozenset({"read", "publish"}), NOW)
    with store.writing() as writing:
        writing.add_key(key, b"hash")
    with store.reading() as reading:
        assert reading.key(b"hash") == key
        assert reading.key(b"other") is None
        assert reading.keys(tenant) == [key]
    with store.writing() as writing:
        assert not writing.revoke_key(tenant + 1, "k1")
        assert writing.revoke_key(tenant, "k1")
        assert writing.key(b"hash") is None


def test_a_webhook_is_due_when_there_is_something(store: Store) -> None:
    tenant = tenant_of(store)
    a = subscribe(store, tenant, webhook_url="http://h/", webhook_nonce=b"n")
    with store.reading() as reading:
        assert reading.due_webhooks(NOW, 10, 10) == []
    one, two = publish(store, tenant, ("e1", [a]), ("e2", [a]))
    with store.reading() as reading:
        (due,) = reading.due_webhooks(NOW, 10, 10)
    assert (due.number, due.id, due.url, due.nonce, due.n_attempts) == (
        a,
        "a",
        "http://h/",
        b"n",
        0,
    )
    with store.writing() as writing:
        assert writing.claim_webhook(a, NOW, NOW + 100)
        assert not writing.claim_webhook(a, NOW, NOW + 100)
        assert writing.due_webhooks(NOW, 10, 10) == []
        assert writing.due_webhooks(NOW + 100, 10, 10) != []  # whoever had it may be dead
        writing.webhook_later(a, 1, NOW + 50)
        assert writing.due_webhooks(NOW + 50, 10, 10)[0].n_attempts == 1
        writing.webhook_delivered(a, [one.seq], NOW)
        assert writing.due_webhooks(NOW, 10, 10)[0].n_attempts == 0
        writing.bury(a, [two.seq], 8, "no answer", NOW + 7)
        assert writing.due_webhooks(NOW + 10**9, 10, 10) == []
    with store.writing() as writing:
        (letter,) = writing.dead_letters(a, 10)
        assert (letter.entry.event_id, letter.n_attempts, letter.reason) == ("e2", 8, "no answer")
        assert (letter.failed_at, writing.n_dead_letters(a)) == (NOW + 7, 1)
        assert writing.retry_dead_letters(a, NOW) == 1
        assert writing.n_dead_letters(a) == 0
        assert writing.due_webhooks(NOW, 10, 10) != []
    assert seqs(store, a) == [two.seq]


# -- the store as a whole -------------------------------------------------------------------------


def test_what_is_committed_is_there_again(reopen: Callable[[], Store]) -> None:
    store = reopen()
    tenant = tenant_of(store)
    a = subscribe(store, tenant)
    publish(store, tenant, ("e", [a]))
    store.close()
    again = reopen()
    assert again.identity == store.identity
    assert seqs(again, a) == [1]


def test_a_transaction_that_fails_changes_nothing(store: Store) -> None:
    tenant = tenant_of(store)

    def failing() -> None:
        with store.writing() as writing:
            new = NewSubscription("a", "x", b"t", NOW + 1)
            number = writing.subscribe(tenant, new, NOW, MANY)
            writing.publish(tenant, [Publication("e", "{}", [number])], NOW, MANY)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    with store.reading() as reading:
        assert reading.subscription(tenant, "a", NOW) is None
        assert reading.recent_events(tenant, 1) == []
        assert reading.last_change() == 0
    subscribe(store, tenant)


def test_another_secret_key_is_noticed(store: Store) -> None:
    store.check_secret("one")
    store.check_secret("one")
    with pytest.raises(StoreError, match="another secret key"):
        store.check_secret("two")


def test_numbers_become_visible_in_order(reopen: Callable[[], Store]) -> None:
    """Four writers, and a reader who must never see a number that is below one it has seen."""
    stores = [reopen() for _ in range(4)]
    tenant = tenant_of(stores[0])

    def write(k: int) -> None:
        for n in range(15):
            subscribe(stores[k], tenant, f"{k}-{n}")

    writers = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for writer in writers:
        writer.start()
    seen: list[int] = []
    reader = reopen()
    while len(seen) < 60:
        with reader.reading() as reading:
            changes = reading.changes(tenant, seen[-1] if seen else 0, 100)
        assert changes is not None
        seen += [change.seq for change in changes]
    for writer in writers:
        writer.join()
    assert seen == list(range(1, 61))


def test_others_are_told(reopen: Callable[[], Store]) -> None:
    """In a store that processes share, one hears of what another one changed."""
    here, there = reopen(), reopen()
    if not here.is_shared:
        here.listen(lambda numbers: None)()
        return
    tenant = tenant_of(there)
    a = subscribe(there, tenant)
    heard: list[int] = []
    listening, changed = threading.Event(), threading.Event()

    def hear(numbers: list[int]) -> None:
        heard.extend(numbers)
        (changed if numbers else listening).set()

    stop = here.listen(hear)
    assert listening.wait(30)
    publish(there, tenant, ("e", [a]))
    assert changed.wait(30)
    stop()
    assert heard == [a]
