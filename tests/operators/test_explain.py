"""Explanations of expressions with operators."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import matchmill as mm

Explained = Callable[[str], mm.Explanation]


@pytest.fixture
def explained() -> Explained:
    mm.operator(name="locIn")(lambda event, area: event["area"] == area)
    mm.operator(name="mob")(lambda event, n: event["people"])
    mm.operator(name="fails")(lambda event: 1 / 0)

    def explain(text: str) -> mm.Explanation:
        engine = mm.Engine()
        engine.subscribe("s", text)
        event = {"area": "Bronx", "people": [12, 60], "price": 3}
        explanation = engine.explain("s", event)
        assert (explanation.truth is True) == (engine.match(event) == {"s"})
        return explanation

    return explain


def test_notes(explained: Explained) -> None:
    assert str(explained("locIn('Queens') and mob(?n) and ?n > 90 and price < 5")) == (
        "✗ locIn('Queens') and mob(?n) and ?n > 90 and price < 5\n"
        "  ✗ locIn('Queens')\n"
        "  ✓ mob(?n): ?n is 12; or ?n is 60\n"
        "  ✗ ?n > 90: for no values of ?n\n"
        "  ✓ price < 5: price is 3"
    )
    assert str(explained("fails() or not locIn('Queens')")) == (
        "✓ fails() or not locIn('Queens')\n"
        "  ? fails(): ZeroDivisionError: division by zero\n"
        "  ✓ not locIn('Queens')\n"
        "    ✗ locIn('Queens')"
    )


def test_values_that_do_not_go_together(explained: Explained) -> None:
    explanation = explained("mob(?n) and ?n > 50 and ?n < 50")
    assert explanation.truth is None
    assert "at once" in explanation.note
    assert [part.truth for part in explanation.parts] == [True, True, True]


def test_joins(explained: Explained) -> None:
    assert explained("mob(?n) and mob(?m) and ?n + ?m = 72").truth is True
    assert explained("mob(?n) and mob(?m) and ?n + ?m = 73").truth is False
    assert explained("(mob(?n) and ?n > 70) or locIn('Bronx')").truth is True


def test_an_unknown_operator_is_an_error_with_a_hint() -> None:
    for function in (mm.explain, mm.evaluate):
        for expression in ("unheard_of(1)", mm.parse("unheard_of(1)")):
            with pytest.raises(mm.ExpressionError, match="no operator 'unheard_of'"):
                function(expression, {})
