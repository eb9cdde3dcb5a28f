"""/openapi.json: complete, checked by the service itself, and a source of odd requests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matchmill.service.endpoints import endpoints
from matchmill.service.problems import Problem
from matchmill.service.schemas import Forms
from matchmill.service.settings import ServiceSettings
from matchmill.service.validation import check, unknown_keywords
from tests.support.running_service import Caller, local_service

TABLE = endpoints(Forms(ServiceSettings()))
LEFT_OUT = ("/v1/live",)  # it never ends


def test_every_endpoint_is_described(caller: Caller) -> None:
    response = caller.client.get("/openapi.json").json()
    assert response["openapi"] == "3.1.0"
    for endpoint in TABLE:
        operation = response["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["summary"] == endpoint.summary
        assert str(endpoint.status) in operation["responses"]
        assert operation["security"]
    names = [op["operationId"] for path in response["paths"].values() for op in path.values()]
    assert len(set(names)) == len(names) == len(TABLE)


def test_every_word_of_a_schema_is_checked() -> None:
    for endpoint in TABLE:
        for schema in (endpoint.body, *endpoint.query.values()):
            if schema is not None:
                assert unknown_keywords(schema) == set()


@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_checking_rejects_what_is_not_an_object(value: Any) -> None:
    for endpoint in TABLE:
        if endpoint.body is not None:
            with pytest.raises(Problem):
                check(value, endpoint.body)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Caller, str]]:
    folder = tmp_path_factory.mktemp("fuzzed") / "served"
    rate = {"requests_per_second": 10**6, "request_burst": 10**6}
    with local_service(folder, **rate) as local:
        caller = local.caller()
        yield caller, caller.subscribe("known", "x = 1")


@pytest.mark.slow
@given(content=st.lists(st.binary(max_size=50) | st.just(b'{"event": {}}')).map(b"\n".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_odd_lines_never_break_it(fuzzed: tuple[Caller, str], content: bytes) -> None:
    caller, _ = fuzzed
    headers = caller.headers | {"Content-Type": "application/x-ndjson"}
    answer = caller.client.post("/v1/events", content=content, headers=headers)
    assert answer.status_code == 200
    n_lines = sum(bool(line.strip()) for line in content.split(b"\n"))
    assert len(answer.content.splitlines()) == n_lines


@pytest.mark.slow
@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in TABLE if endpoint.path not in LEFT_OUT],
    ids=lambda endpoint: f"{endpoint.method} {endpoint.path}",
)
def test_odd_requests_never_break_it(fuzzed: tuple[Caller, str], endpoint: Any) -> None:
    """Requests made from the description, good and bad ones; half of them for a known id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that are not ours
        import schemathesis
    caller, ticket = fuzzed
    described = caller.client.get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(described)
    operation = schema[endpoint.path][endpoint.method]

    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), is_known=st.booleans())
    def send(case: Any, is_known: bool) -> None:
        path = case.formatted_path
        if is_known and "{subscription_id}" in endpoint.path:
            path = endpoint.path.replace("{subscription_id}", "known")
            if caller.client.get(path, headers=caller.headers).status_code == 404:
                nonlocal ticket
                ticket = caller.subscribe("known", "x = 1")
        query = dict(case.query or {})
        query.pop("wait", None)  # it would be waited for
        sent = {"headers": caller.headers | {"Matchmill-Ticket": ticket}, "params": query}
        if endpoint.body is not None:
            sent["json"] = case.body
        try:
            answer = caller.client.request(endpoint.method, path, **sent)
        except (ValueError, TypeError, UnicodeError):
            return  # the client does not send it
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert set(answer.json()) >= {"type", "title", "status", "detail", "code", "hint"}
        else:
            many = {200} if endpoint.many else set()
            created = {201} if endpoint.may_create else set()
            assert answer.status_code in {endpoint.status} | many | created

    send()
