"""What belongs to one tenant is not there for another; asked at every endpoint there is."""

from __future__ import annotations

from typing import Any

import pytest

from matchmill.service.endpoint import Endpoint
from matchmill.service.endpoints import endpoints
from matchmill.service.schemas import Forms
from matchmill.service.settings import ServiceSettings
from tests.support.running_service import Caller, Local

TABLE = endpoints(Forms(ServiceSettings()))
# PUT creates what is not there, so it has a test of its own.
OF_ONE = [one for one in TABLE if "{" in one.path and one.method != "PUT"]
BODIES: dict[str, Any] = {
    "/v1/subscriptions/{subscription_id}": {"ttl_seconds": 1},
    "/v1/subscriptions/{subscription_id}/acknowledge": {"up_to": 10**15},
}


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def path_of(endpoint: Endpoint, identifier: str) -> str:
    return endpoint.path.replace("{subscription_id}", identifier).replace("{key_id}", identifier)


@pytest.fixture
def ours(local: Local) -> Caller:
    return local.caller("ours")


@pytest.fixture
def theirs(local: Local) -> Caller:
    return local.caller("theirs")


def test_ids_of_others_are_not_found(ours: Caller, theirs: Caller) -> None:
    """With our key, and with the ticket of a subscription of ours."""
    their_ticket = theirs.subscribe("secret", "x = 1")
    our_ticket = ours.subscribe("mine", "x = 1")
    their_key = theirs.get("/v1/keys").json()["keys"][0]["key_id"]
    theirs.publish({"x": 1})
    before = theirs.get("/v1/subscriptions/secret").json()
    for endpoint in OF_ONE:
        for identifier in ("secret", their_key, "unheard-of"):
            path = endpoint.path.replace("{subscription_id}", identifier).replace(
                "{key_id}", identifier
            )
            for headers in (ours.headers, {"Matchmill-Ticket": our_ticket}):
                answer = ours.client.request(
                    endpoint.method, path, json=BODIES.get(endpoint.path), headers=headers
                )
                is_known_sender = endpoint.scopes if headers is ours.headers else endpoint.by_ticket
                assert answer.status_code == (404 if is_known_sender else 401), name(endpoint)
                assert "secret" not in answer.text
    assert theirs.get("/v1/subscriptions/secret").json() == before
    assert len(theirs.matches("secret", their_ticket)) == 1


def test_the_answer_is_as_if_it_were_not_there(ours: Caller, theirs: Caller) -> None:
    theirs.subscribe("there", "x = 1")
    there, nowhere = (ours.get(f"/v1/subscriptions/{one}") for one in ("there", "nowhere"))
    assert (there.status_code, there.text) == (nowhere.status_code, nowhere.text)
    body = {"event": {"x": 1}}
    there, nowhere = (
        ours.post("/v1/explain", body | {"subscription_id": one}) for one in ("there", "nowhere")
    )
    assert (there.status_code, there.text) == (nowhere.status_code, nowhere.text)


def test_nothing_of_others_shows_in_lists_and_matches(ours: Caller, theirs: Caller) -> None:
    ticket = ours.subscribe("same-id", "x = 1")
    other_ticket = theirs.subscribe("same-id", "x = 1")
    assert theirs.publish({"x": 1, "who": "they"}, event_id="same-event") == 1
    assert ours.matches("same-id", ticket) == []
    assert ours.publish({"x": 1, "who": "we"}, event_id="same-event") == 1
    assert [match["event"]["who"] for match in ours.matches("same-id", ticket)] == ["we"]
    assert [match["event"]["who"] for match in theirs.matches("same-id", other_ticket)] == ["they"]
    assert ours.post("/v1/backtest", {"expression": "x = 1"}).json()["n_events"] == 1
    assert len(ours.get("/v1/subscriptions").json()["subscriptions"]) == 1
    assert ours.get("/v1/stats").json()["n_subscriptions"] == 1
    theirs_shown = {key["key_id"] for key in theirs.get("/v1/keys").json()["keys"]}
    assert not theirs_shown & {key["key_id"] for key in ours.get("/v1/keys").json()["keys"]}
    found = ours.post("/v1/match", {"event": {"x": 1}}).json()
    assert found == {"matches": [{"subscription_id": "same-id"}]}


def test_put_makes_our_own_and_leaves_theirs(ours: Caller, theirs: Caller) -> None:
    their_ticket = theirs.subscribe("same-id", "x = 1")
    made = ours.put("/v1/subscriptions/same-id", {"expression": "x = 2"})
    assert made.status_code == 201
    assert (theirs.publish({"x": 1}), theirs.publish({"x": 2})) == (1, 0)
    assert (ours.publish({"x": 1}), ours.publish({"x": 2})) == (0, 1)
    assert len(theirs.matches("same-id", their_ticket)) == 1
    assert len(ours.matches("same-id", made.json()["ticket"])) == 1


def test_the_numbers_of_matches_tell_nothing_of_others(ours: Caller, theirs: Caller) -> None:
    for _ in range(5):
        theirs.publish({"x": 1})
    ticket = ours.subscribe("a", "x = 1")
    ours.publish({"x": 1})
    assert [match["seq"] for match in ours.matches("a", ticket)] == [1]


def test_every_endpoint_wants_to_know_who_asks(local: Local) -> None:
    for endpoint in TABLE:
        path = path_of(endpoint, "a")
        for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic x"}):
            answer = local.client.request(endpoint.method, path, json={}, headers=headers)
            assert answer.status_code == 401, name(endpoint)
            assert answer.headers["www-authenticate"] == "Bearer"
