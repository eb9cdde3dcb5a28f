"""Operators through the engine: meaning, sharing, updates, files; a brute-force solver as judge."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.language.constraint_truth import holds
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import And, Expression, Not, Or
from matchmill.language.operator_calls import Call, Restriction, Variable
from matchmill.operators.orders import ORDERS

# -- the paper's subscriptions --------------------------------------------------------------------

PAPERS = {
    "S1": "locIn('Bronx') and chasePattern('policeCar', 'anyCar')",
    "S2": "locIn('Bronx') and mobPattern(?people) and ?people > 50",
    "S3": "locWithin('TimesSquare', 5000) and trafficPattern('congestion')"
    " and pedestrianCount(?ped) and ?ped > 250",
    "S4": "locIn('Bronx') and trafficPattern('congestion') and trafficPattern('accident')"
    " and policeCarCount(?pol) and ?pol < 2",
    "S5": "distanceFrom('StatueOfLiberty', ?x) and ?x < 1000 and tourBoatCount(?y)"
    " and coastGuardBoatCount(?z) and ?y > 2 * ?z",
}


@pytest.fixture
def asked() -> list[str]:
    """The operators of section 2.1 on events that say all; which were called."""
    calls: list[str] = []

    def register(name: str, function: Callable[..., Any]) -> None:
        def counted(event: Any, *arguments: Any) -> Any:
            calls.append(name)
            return function(event, *arguments)

        mm.operator(name=name)(counted)

    register("locIn", lambda event, area: event.get("area") == area)
    register("chasePattern", lambda event, a, b: f"{a} {b}" in event.get("chases", ()))
    register("locWithin", lambda event, place, m: event[f"to_{place}"] <= m)
    register("trafficPattern", lambda event, kind: kind in event.get("traffic", ()))
    register("distanceFrom", lambda event, place, x: event[f"to_{place}"])
    for name in ("mobPattern", "pedestrianCount", "policeCarCount"):
        register(name, lambda event, n, name=name: event.get(name))
    for name in ("tourBoatCount", "coastGuardBoatCount"):
        register(name, lambda event, n, name=name: event.get(name, ()))
    return calls


@pytest.fixture
def city(asked: list[str]) -> mm.Engine:
    engine = mm.Engine()
    engine.subscribe_many(PAPERS)
    return engine


BRONX = {
    "area": "Bronx",
    "chases": ["policeCar anyCar"],
    "mobPattern": 60,
    "traffic": ["congestion", "accident"],
    "policeCarCount": 1,
    "pedestrianCount": 300,
    "to_TimesSquare": 9000,
    "to_StatueOfLiberty": 900,
    "tourBoatCount": [1, 7],
    "coastGuardBoatCount": [3, 9],
}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, {"S1", "S2", "S4", "S5"}),
        ({"to_TimesSquare": 5000}, {"S1", "S2", "S3", "S4", "S5"}),
        ({"mobPattern": 50}, {"S1", "S4", "S5"}),
        ({"policeCarCount": 2}, {"S1", "S2", "S5"}),
        ({"traffic": ["congestion"], "to_TimesSquare": 1}, {"S1", "S2", "S3", "S5"}),
        ({"tourBoatCount": [6]}, {"S1", "S2", "S4"}),
        ({"tourBoatCount": []}, {"S1", "S2", "S4"}),
        ({"area": "Queens"}, {"S5"}),
    ],
)
def test_the_papers_subscriptions(
    city: mm.Engine, changes: Mapping[str, Any], found: set[str]
) -> None:
    event = {**BRONX, **changes}
    assert city.match(event) == found
    assert city.match_many([event, {}, event])[2] == found


def test_a_predicate_is_evaluated_once_an_event(city: mm.Engine, asked: list[str]) -> None:
    city.match(BRONX)
    assert asked.count("locIn") == 1
    assert asked.count("trafficPattern") == 2
    asked.clear()
    for _ in range(20):
        city.match({**BRONX, "area": "Queens", "to_StatueOfLiberty": 900, "to_TimesSquare": 9000})
    # Once it is known how often it is false, it is asked before what it decides.
    assert asked.count("chasePattern") < 20


# -- meaning --------------------------------------------------------------------------------------


@pytest.fixture
def simple() -> None:
    mm.operator(name="yes")(lambda event: True)
    mm.operator(name="no")(lambda event: False)
    mm.operator(name="unsure")(lambda event: None)
    mm.operator(name="fails")(lambda event: 1 / 0)
    mm.operator(name="each")(lambda event, name, value: event[name])
    mm.operator(name="pair")(lambda event, a, b: [(1, 2), (3, 3), (2, 1)])


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("yes()", True),
        ("no()", False),
        ("not no()", True),
        ("unsure()", False),
        ("not unsure()", False),
        ("fails()", False),
        ("not fails()", False),
        ("fails() or price < 5", True),
        ("fails() and price < 5", False),
        ("yes() and price < 5", True),
        ("yes() and price > 5", False),
        ("yes() and missing > 5", False),
        ("not (no() or price > 5)", True),
        ("not (no() or price < 5)", False),
        ("not (yes() and price > 5)", True),
        ("not (yes() and missing > 5)", False),
        ("true or no()", True),
        ("false and yes()", False),
        ("each('list', ?x)", True),
        ("each('list', ?x) and ?x > 2", True),
        ("each('list', ?x) and ?x > 3", False),
        ("each('list', ?x) and not ?x <= 2", True),
        ("each('list', ?x) and ?x > 2 and ?x < 2", False),
        ("each('list', ?x) and each('list', ?y) and ?x + ?y = 6", True),
        ("each('list', ?x) and each('list', ?y) and ?x + ?y = 7", False),
        ("each('list', ?x) and each('empty', ?y)", False),
        ("pair(?x, ?y) and ?x > ?y", True),
        ("pair(?x, ?x)", True),
        ("pair(?x, ?x) and ?x = 1", False),
        ("pair(?x, ?y) and each('list', ?y) and ?x = 2", True),
        ("pair(?x, ?y) and pair(?y, ?x) and ?x != ?y", True),
        ("(each('list', ?x) and ?x > 5) or (each('list', ?x) and ?x < 2)", True),
        ("each('list', ?x) and (?x > 5 or ?x < 2)", True),
        ("each('list', ?x) and (?x > 5 or price > 5)", False),
        ("each('list', ?x) and ?x < price", True),
        ("each('list', ?x) and ?x > price", False),
        ("each('list', ?x) and ?x > missing", False),
        ("each('list', ?x) and not ?x > missing", False),
        ("each('list', ?x) and missing + ?x is null", True),
        ("each('list', ?x) and ?x in (7, price)", True),
        ("each('list', ?x) and ?x not in (1, 2, 3)", False),
        ("each('list', ?x) and not ?x between 2 and price", True),
        ("each('list', ?x) and ?x % 2 = 0 and ?x like '2'", False),
        ("each('words', ?w) and lower(?w) like 'a%' and length(?w) = price", True),
        ("each('words', ?w) and ?w ilike 'A%' and ?w not like 'A%'", True),
        ("each('words', ?w) and ?w in ('x', name)", True),
        ("each('list', ?x) and length(list) = ?x", True),
        ("each('list', ?x) and photo = ?x", False),
    ],
)
@pytest.mark.parametrize("order", ORDERS)
def test_meaning(text: str, matches: bool, order: str) -> None:
    engine = mm.Engine(settings=mm.Settings(operator_order=order))
    engine.subscribe("s", text)
    event = {"price": 3, "list": [1, 2, 3], "empty": [], "words": ["abc", "De"], "name": "De"}
    event["photo"] = b"x"
    assert (engine.match(event) == {"s"}) is matches
    assert (engine.match_many([event])[0] == {"s"}) is matches
    assert (mm.evaluate(text, event) is True) is matches
    assert mm.explain(text, event).matched is matches


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(
    ("text", "words", "position"),
    [
        ("price < 5 and nope('a')", "there is no operator 'nope'", 14),
        ("YES()", "did you mean yes?", 0),
        ("price = 1 and yes('a')", "cannot be called with 1 argument", 14),
        ("each('a', ?x) and each('a')", "it is called as each(name, value)", 18),
        ("not each('a', ?x)", "`not` before `each('a', ?x)`", 4),
        ("yes() and not (no() or each('a', ?x))", "which binds ?x", 23),
        ("yes() and ?x > 5", "nothing binds ?x", 10),
        ("each('a', ?x) or ?x > 5", "nothing binds ?x", 17),
        ("(each('a', ?x) or yes()) and ?x > 5", "the same side of every `or`", 29),
    ],
)
def test_what_has_no_meaning_is_refused_with_its_place(
    text: str, words: str, position: int
) -> None:
    engine = mm.Engine()
    with pytest.raises(mm.ExpressionError) as caught:
        engine.subscribe("s", text)
    assert words in str(caught.value)
    assert caught.value.position == position
    report = engine.subscribe_many({"s": text, "good": "yes()"})
    assert report.n_accepted == 1
    assert words in report.rejected[0].reason


@pytest.mark.usefixtures("simple")
def test_too_many_alternatives_are_refused() -> None:
    text = " and ".join(["(yes() or no())"] * 7)
    with pytest.raises(mm.LimitError, match="more than 64 alternatives"):
        mm.Engine().subscribe("s", text)
    mm.Engine(settings=mm.Settings(max_clauses=128)).subscribe("s", text)


@pytest.mark.usefixtures("simple")
def test_where_operators_are_not_asked() -> None:
    engine = mm.Engine()
    engine.subscribe("with operators", "price < 5 and yes()")
    engine.subscribe("plain", "price < 5")
    with pytest.raises(mm.InputError, match="'with operators' has operators"):
        engine.match_expression("price between 1 and 10")
    assert engine.match_expression("price > 7") == set()
    with pytest.raises(mm.EventError, match="cannot call operators"):
        engine.match_expression("price < 5 and yes()")
    with pytest.raises(mm.ExpressionError, match="calls an operator"):
        evaluate(mm.parse("yes()"), {})


# -- a solver that tries everything ---------------------------------------------------------------

VALUES = (0, 1, 2)
FACTS: dict[str, list[tuple[int, ...]]] = {}


def fact(name: str) -> None:
    """An operator that looks its answers up, bound or free."""

    def look_up(event: Any, *arguments: Any) -> Any:
        rows = [row for row in FACTS[name] if _fits(row, arguments)]
        free = [i for i, a in enumerate(arguments) if isinstance(a, mm.Variable)]
        if not free:
            return bool(rows)
        return [tuple(row[i] for i in free) for row in rows]

    mm.operator(name=name)(look_up)


def _fits(row: tuple[int, ...], arguments: tuple[Any, ...]) -> bool:
    return all(isinstance(a, mm.Variable) or a == v for a, v in zip(arguments, row, strict=True))


def solve(expression: Expression, event: Mapping[str, Any]) -> bool:
    """Whether any values of the variables make the expression true."""
    names = sorted(_names(expression))
    return any(
        _true(expression, event, dict(zip(names, chosen, strict=True)))
        for chosen in itertools.product(VALUES, repeat=len(names))
    )


def _names(expression: Expression) -> set[str]:
    if isinstance(expression, (Call, Restriction)):
        return set(expression.variables)
    return {name for part in expression.parts for name in _names(part)}


def _true(expression: Expression, event: Mapping[str, Any], values: Mapping[str, int]) -> bool:
    """Two-valued: events of these tests have all attributes, and operators always know.

    A constraint that is unknown, such as `1 / 0 = 1`, only stands where it must be true.
    """
    if isinstance(expression, Not):
        return not _true(expression.operand, event, values)
    if isinstance(expression, (And, Or)):
        every = all if isinstance(expression, And) else any
        return every(_true(part, event, values) for part in expression.parts)
    if isinstance(expression, Restriction):
        return holds(expression.for_event(event.get), values)
    if isinstance(expression, Call):
        arguments = tuple(
            values[a.name] if isinstance(a, Variable) else a for a in expression.arguments
        )
        return arguments in FACTS[expression.name]
    return evaluate(expression, event) is True


arguments = st.sampled_from(["?x", "?y", "?z", "0", "1", "2"])
positive = st.one_of(
    st.builds("p({})".format, arguments), st.builds("r({}, {})".format, arguments, arguments)
)
negative = st.builds("not q({})".format, st.sampled_from(VALUES))
plain = st.sampled_from(["price < 5", "price > 5", "not stock = 1", "stock in (1, 2)"])
limits = st.sampled_from(
    [
        *("?x < ?y", "?x + ?y = 2", "not ?x = 0", "2 * ?z > ?x", "(?x - 1) * 2 >= ?z", "?y != ?z"),
        *("?x in (?y, 2)", "not ?z in (0, stock)", "?x between ?y and 2", "stock = ?y + ?z"),
        *("?y not between ?x and stock", "(?x + ?y) % 2 = 0", "price > 3 * ?x", "?x / ?y is null"),
        *("abs(?x - ?z) = 1", "least(?x, stock) < ?y", "not ?x / ?z is null", "?z <= price % 3"),
    ]
)
conjunctions = st.lists(st.one_of(positive, negative, plain, limits), min_size=1, max_size=5)
texts = st.lists(conjunctions, min_size=1, max_size=2).map(
    lambda parts: " or ".join("(" + " and ".join(part) + ")" for part in parts)
)


@pytest.mark.parametrize("order", ORDERS)
@given(
    st.lists(texts, min_size=1, max_size=8),
    st.sets(st.sampled_from(VALUES)),
    st.sets(st.sampled_from(VALUES)),
    st.sets(st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES))),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=3),
)
def test_matches_are_those_of_a_solver_that_tries_everything(
    order: str,
    subscriptions: list[str],
    p: set[int],
    q: set[int],
    r: set[tuple[int, int]],
    events: list[tuple[int, int]],
) -> None:
    FACTS.update(p=[(v,) for v in sorted(p)], q=[(v,) for v in sorted(q)], r=sorted(r))
    for name in {"p", "q", "r"}.difference(mm.operator_names()):
        fact(name)
    engine = mm.Engine(index="scan", settings=mm.Settings(operator_order=order, background=False))
    report = engine.subscribe_many(list(enumerate(subscriptions)))
    assert all("nothing binds" in refused.reason for refused in report.rejected)
    dicts = [{"price": price, "stock": stock} for price, stock in events]
    accepted = {n: mm.parse(subscriptions[n]) for n in engine if isinstance(n, int)}
    expected = [{n for n, e in accepted.items() if solve(e, event)} for event in dicts]
    assert list(engine.match_many(dicts)) == expected
    assert [engine.match(event) for event in dicts] == expected


# -- sharing the work -----------------------------------------------------------------------------


def test_only_candidates_reach_the_operators() -> None:
    asked = []
    mm.operator(name="dear")(lambda event, n: asked.append(n) or True)
    engine = mm.Engine()
    engine.subscribe_many({n: f"price = {n} and dear({n})" for n in range(500)})
    assert engine.match({"price": 77}) == {77}
    assert asked == [77]


def test_batches_go_to_an_operator_at_once() -> None:
    sizes = []

    @mm.operator
    def above(event: Any, least: int) -> bool:
        raise AssertionError("batches only")

    @above.batch
    def above_batch(events: Any, least: int) -> list[bool]:
        sizes.append(len(events))
        return [event["n"] > least for event in events]

    engine = mm.Engine()
    engine.subscribe_many({"a": "above(3) and above(5)", "b": "above(5) or n = 0", "c": "n > 8"})
    found = engine.match_many([{"n": n} for n in range(10)])
    expected = [
        {name for name, ok in (("a", n > 5), ("b", n > 5 or n == 0), ("c", n > 8)) if ok}
        for n in range(10)
    ]
    assert list(found) == expected
    assert max(sizes) >= 9
    assert len(sizes) <= 3


def test_other_subscriptions_go_on() -> None:
    """One raises, one hangs, one returns nonsense, one tries to change the event."""

    @mm.operator(timeout=0.05)
    def hangs(event: Any) -> bool:
        return threading.Event().wait(0.5)

    def changes(event: Any) -> bool:
        event["price"] = 0
        return True

    mm.operator(name="raises")(lambda event: 1 / 0)
    mm.operator(name="nonsense")(lambda event: "perhaps")
    mm.operator(name="changes")(changes)
    mm.operator(name="fine")(lambda event: event["price"] == 3)
    engine = mm.Engine()
    bad = ("hangs", "raises", "nonsense", "changes")
    engine.subscribe_many({name: f"{name}()" for name in (*bad, "fine")})
    engine.subscribe("both", "fine() and raises()")
    engine.subscribe("either", "fine() or raises()")
    event = {"price": 3}
    assert engine.match(event) == {"fine", "either"}
    assert event == {"price": 3}
    assert list(engine.match_many([event] * 3)) == [{"fine", "either"}] * 3
    stats = {one.name: one for one in engine.stats().operators}
    assert {name: stats[name].n_errors for name in (*bad, "fine")} == {
        **dict.fromkeys(bad, 4),
        "fine": 0,
    }
    assert "ZeroDivisionError" in stats["raises"].last_error
    assert "more than 0.05 s" in stats["hangs"].last_error
    assert (stats["fine"].n_calls, stats["fine"].n_true) == (4, 4)


@pytest.mark.parametrize("order", ORDERS)
def test_orders_with_a_class_of_events(order: str) -> None:
    """Two kinds of events, for which opposite operators fail: the right one is asked."""
    asked: list[str] = []
    for name in ("left", "right"):
        mm.operator(name=name)(
            lambda event, n, name=name: asked.append(name) or event["kind"] == name
        )
    settings = mm.Settings(operator_order=order, event_class="kind")
    engine = mm.Engine(settings=settings)
    engine.subscribe_many({n: f"left({n}) and right({n})" for n in range(3)})
    for _ in range(40):
        for kind in ("left", "right"):
            asked.clear()
            assert engine.match({"kind": kind}) == set()
    if order == "adaptive":
        assert asked == ["left"] * 3  # of the last event, of kind right


# -- updates and files ----------------------------------------------------------------------------


def test_subscriptions_come_and_go() -> None:
    mm.operator(name="is_n")(lambda event, n: event["n"] == n)
    engine = mm.Engine(settings=mm.Settings(background=False))
    randoms = random.Random(3)
    current: dict[int, int] = {}
    for step in range(3000):
        name, n = randoms.randrange(200), randoms.randrange(5)
        if name in current and randoms.random() < 0.4:
            engine.unsubscribe(name)
            del current[name]
        else:
            engine.subscribe(name, f"is_n({n})", replace=True)
            current[name] = n
        if step % 100 == 0:
            assert engine.match({"n": 2}) == {name for name, n in current.items() if n == 2}
        if step % 1000 == 500:
            engine.compact()
    chains = engine._operators._chains
    engine.match({"n": 2})
    assert len(chains.chains) < 3000


def test_chains_of_rows_that_are_gone_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchmill.operators.chains._SWEEP_AT_LEAST", 10)
    mm.operator(name="is_n")(lambda event, n: event["n"] == n)
    engine = mm.Engine(settings=mm.Settings(background=False, operator_order="sub_order"))
    for n in range(60):
        engine.subscribe("s", f"is_n({n}) and is_n(0)", replace=True)
        engine.match({"n": n})
    chains = engine._operators._chains
    assert len(chains.chains) <= 21
    assert len(chains.conditions) <= 22
    assert len(engine._operators._learned._predicates) <= 61


def test_saved_engines_find_their_operators_by_name(tmp_path: Path) -> None:
    def register() -> None:
        mm.operator(name="above")(lambda event, least: event["n"] > least)
        mm.operator(name="gone")(lambda event: True)

    register()
    folder = tmp_path / "alerts.mill"
    with mm.Engine.open(folder, create=True) as engine:
        engine.subscribe("a", "n < 10 and above(3)")
        engine.subscribe("b", "gone()")
        engine.unsubscribe("b")
        engine.save()
        engine.subscribe("c", "above(5)")  # in the log only
    mm.unregister_operator("gone")
    with mm.Engine.open(folder) as engine:  # nobody asks for it any more
        assert engine.match({"n": 4}) == {"a"}
        assert engine.match({"n": 6}) == {"a", "c"}
        assert engine["c"].expression == "above(5)"
    mm.unregister_operator("above")
    for read_only in (True, False):
        with pytest.raises(mm.FolderError, match=r"not registered: above; import the module"):
            mm.Engine.open(folder, read_only=read_only)
    register()
    assert mm.Engine.open(folder, read_only=True).match({"n": 6}) == {"a", "c"}


def test_a_log_says_which_operator_is_missing(tmp_path: Path) -> None:
    mm.operator(name="above")(lambda event, least: event["n"] > least)
    folder = tmp_path / "alerts.mill"
    with mm.Engine.open(folder, create=True) as engine:
        engine.subscribe("c", "above(5)")
    mm.unregister_operator("above")
    with pytest.raises(mm.FolderError, match=r"the log has .* not registered: above"):
        mm.Engine.open(folder)


def test_an_operator_that_goes_away_counts_errors() -> None:
    mm.operator(name="above")(lambda event, least: event["n"] > least)
    engine = mm.Engine()
    engine.subscribe("a", "above(3)")
    assert engine.match({"n": 4}) == {"a"}
    mm.unregister_operator("above")
    assert engine.match({"n": 4}) == set()
    assert engine.stats().operators[0].last_error == "it is not registered"


def test_many_threads_match_while_one_subscribes() -> None:
    mm.operator(name="is_n")(lambda event, n: event["n"] % 7 == n)
    for order in ORDERS:
        engine = mm.Engine(settings=mm.Settings(operator_order=order))
        engine.subscribe_many({n: f"is_n({n % 7}) and is_n({n % 5})" for n in range(100)})
        wrong: list[object] = []

        def match(engine: mm.Engine = engine, wrong: list[object] = wrong) -> None:
            for n in range(30):
                found = {i for i in engine.match({"n": n}) if isinstance(i, int) and i < 100}
                if found != {i for i in range(100) if n % 7 == i % 7 == i % 5}:
                    wrong.append((n, found))

        threads = [threading.Thread(target=match) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(100, 200):
            engine.subscribe(n, f"is_n({n % 7}) and is_n({n % 3})")
        for thread in threads:
            thread.join()
        assert wrong == []


# -- forms of events ------------------------------------------------------------------------------


def test_operators_see_whole_events_in_every_form() -> None:
    """Also attributes that no plain predicate names; nested objects are flat, lists tuples."""
    seen: list[Mapping[str, Any]] = []

    @mm.operator
    def near(event: Mapping[str, Any], km: float) -> bool:
        seen.append(dict(event))
        return bool(event["place.km"] <= km)

    engine = mm.Engine()
    engine.subscribe("s", "price < 5 and near(3)")
    events = [{"price": 4, "place": {"km": 2}, "tags": ["a"]}, {"price": 4, "place": {"km": 9}}]
    lines = '{"price": 4, "place": {"km": 2}, "tags": ["a"]}\n{"price": 4, "place": {"km": 9}}\n'
    for form in (events, pa.Table.from_pylist(events), mm.read_events(lines)):
        seen.clear()
        assert list(engine.match_many(form)) == [{"s"}, set()]
        assert seen[0] == {"price": 4, "place.km": 2, "tags": ("a",)}
        assert seen[1].keys() == {"price", "place.km"}
    assert engine.match(events[0]) == {"s"}


def test_a_bad_event_is_rejected_and_asks_nobody() -> None:
    asked: list[object] = []
    mm.operator(name="any_event")(lambda event: asked.append(event) or True)
    engine = mm.Engine(settings=mm.Settings(max_event_values=3))
    engine.subscribe("s", "any_event() and price < 5")
    matches = engine.match_many([{"price": 4}, {"price": [1, 2, 3]}])
    assert list(matches) == [{"s"}, set()]
    assert [one.row for one in matches.rejected] == [1]
    assert len(asked) == 1


def test_an_event_that_no_operator_can_be_given_is_rejected() -> None:
    """Its values under names that nobody asks for are too many: others are matched."""
    asked: list[object] = []
    mm.operator(name="any_event")(lambda event: asked.append(event) or True)
    subscriptions = {"s": "any_event() and price < 5", "plain": "price < 5"}
    engine = mm.Engine(subscriptions, settings=mm.Settings(max_event_values=3))
    large = {"price": 4, "a": [1, 2, 3], "b": 4}
    matches = engine.match_many([{"price": 4}, large, {"price": 3}, {"price": 9}])
    assert list(matches) == [{"s", "plain"}, set(), {"s", "plain"}, set()]
    assert [one.row for one in matches.rejected] == [1]
    assert len(asked) == 2


# -- joins that are too large ---------------------------------------------------------------------


def lists_of(n: int) -> dict[str, list[int]]:
    return {"l": list(range(n)), "m": [n - 1]}


THREE = "attribute('l', ?x) and attribute('l', ?y) and attribute('l', ?z) and "


def test_joins_that_only_enumeration_could_solve_are_given_up_and_counted() -> None:
    engine = mm.Engine(settings=mm.Settings(max_join_steps=5_000))
    engine.subscribe("sum", THREE + "?x + ?y + ?z = -1")
    engine.subscribe("order", THREE + "?x < ?y and ?y < ?z and ?z = 99")
    engine.subscribe("none", THREE + "?x < ?y and ?y < ?z and ?z < ?x")
    assert engine.match(lists_of(100)) == {"order"}
    assert engine.stats().n_joins_given_up == 2
    assert engine.match_many([lists_of(100)] * 3)[2] == {"order"}
    assert engine.stats().n_joins_given_up == 8
    explanation = engine.explain("sum", lists_of(100))
    assert not explanation.matched
    assert "max_join_steps" in str(explanation)
    roomy = mm.Engine({"none": engine["none"].expression})
    assert roomy.match(lists_of(100)) == set()
    assert roomy.stats().n_joins_given_up == 0


def test_many_large_joins_share_the_steps_of_an_event() -> None:
    """When they are used up, a small join still has its own."""
    engine = mm.Engine(settings=mm.Settings(max_join_steps=5_000))
    for n in range(30):
        engine.subscribe(f"large{n}", THREE + f"?x + ?y + ?z = {-1 - n}")
        engine.subscribe(
            f"small{n}", f"attribute('m', ?x) and attribute('m', ?y) and ?x + ?y > {n}"
        )
    assert engine.match(lists_of(100)) == {f"small{n}" for n in range(30)}
    assert engine.stats().n_joins_given_up == 30


# -- functions of terms ---------------------------------------------------------------------------


def test_functions_come_back_with_a_saved_engine(tmp_path: Path) -> None:
    mm.function(name="twice")(lambda x: 2 * x)
    engine = mm.Engine.open(tmp_path / "e", create=True)
    engine.subscribe("a", "attribute('l', ?x) and twice(?x) > price")
    engine.save()
    engine.subscribe("b", "attribute('l', ?x) and twice(?x) = price")
    engine.close()
    with mm.Engine.open(tmp_path / "e") as engine:
        assert engine.match({"l": [2, 3], "price": 4}) == {"a", "b"}
    mm.unregister_function("twice")
    with pytest.raises(mm.FolderError, match=r"functions that are not registered: twice\(\)"):
        mm.Engine.open(tmp_path / "e")


def test_one_subscription_does_not_slow_an_event_down() -> None:
    """Three lists of 100 elements: a million combinations, of which 20,000 are tried at most."""
    engine = mm.Engine({"plain": "n = 1"})
    event = {"l": list(range(100)), "n": 1}
    for n, (text, found) in enumerate(
        [("?x + ?y + ?z = 297", True), ("?x + ?y + ?z = 298", False), ("?x * ?y > 9801", False)]
    ):
        engine.subscribe(f"s{n}", THREE + text)
        assert (f"s{n}" in engine.match(event)) is found
    assert engine.stats().n_joins_given_up == 0
    engine.subscribe("hard", THREE + "?x % 7 + ?y % 7 + ?z % 7 > 18")
    assert engine.match(event) == {"plain", "s0"}
    assert engine.stats().n_joins_given_up == 1
