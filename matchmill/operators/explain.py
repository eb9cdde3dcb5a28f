"""Why an expression with operators matches or does not.

    ✗ locIn('Bronx') and mobPattern(?people) and ?people > 50
      ✓ locIn('Bronx')
      ✓ mobPattern(?people): ?people is 12
      ✗ ?people > 50: for no values of ?people

Every operator is called, whatever the others return. A constraint is true if some values of its own
variables satisfy it. If no values satisfy everything at once, the first line says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matchmill.language.evaluate import Truth, evaluate_flat
from matchmill.language.explain import Explanation, explain
from matchmill.language.expression import Expression, literal_text
from matchmill.language.flatten import flatten_record
from matchmill.language.operator_calls import Call, Restriction, calls_of, has_calls
from matchmill.language.pattern_cost import check_pattern_work, has_patterns
from matchmill.operators.alternatives import Alternative, alternatives
from matchmill.operators.bindings import (
    JoinBudget,
    JoinTooLarge,
    PredicateKey,
    Relation,
    arguments_of_key,
    find_solution,
    predicate_key,
)
from matchmill.operators.outcome import Outcome, failed
from matchmill.operators.registry import find_operator
from matchmill.operators.safe_call import ask, attribute_of, frozen_event
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["explain_with_operators"]

_MOST_SHOWN = 3
_LONGEST_NOTE = 120
_UNLIMITED = 2**60


def explain_with_operators(
    expression: Expression, event: Mapping[str, Any], settings: Settings = DEFAULT_SETTINGS
) -> Explanation:
    """Return the truth of every condition of an expression for one event.

    EventError if its patterns would take longer than the setting `max_pattern_work` allows.
    """
    flat = flatten_record(event, settings)
    if has_patterns(expression):
        check_pattern_work(expression, flat, settings.max_pattern_work)
    if not has_calls(expression):
        return explain(expression, flat)
    asked = _Asked(expression, flat, settings.max_join_steps)
    tree = explain(expression, flat, asked.judge)
    truth = asked.is_true()
    if truth == (tree.truth is True):
        return tree
    note = asked.given_up or "but no values of the variables satisfy all of it at once"
    return replace(tree, truth=truth or None, note=note)


class _Asked:
    """All operators of an expression, called for one event."""

    def __init__(
        self, expression: Expression, flat: Mapping[str, Any], max_join_steps: int
    ) -> None:
        self.given_up = ""
        self._max_join_steps = max_join_steps
        self._expression = expression
        self._flat = flat
        event = frozen_event(flat)
        self._calls = list(calls_of(expression))
        self._outcomes: dict[PredicateKey, Outcome] = {}
        for key in map(predicate_key, self._calls):
            operator = find_operator(key[0])
            if operator is None:
                self._outcomes[key] = failed("it is not registered")
            else:
                self._outcomes[key] = ask(operator, event, arguments_of_key(key)).outcome

    def judge(self, node: Expression) -> tuple[Truth, str]:
        """Return the truth of a call or a constraint, and a note."""
        if isinstance(node, Call):
            outcome = self._outcomes[predicate_key(node)]
            return outcome.truth, _note(node, outcome)
        assert isinstance(node, Restriction)
        self.given_up = ""
        if self._agree([c for c in self._calls if {*c.variables} & {*node.variables}], (node,)):
            return True, ""
        names = ", ".join(f"?{name}" for name in node.variables)
        return False, self.given_up or f"for no values of {names}"

    def is_true(self) -> bool:
        """Tell whether some alternative holds."""
        return any(map(self._holds, alternatives(self._expression, _UNLIMITED)))

    def _holds(self, alternative: Alternative) -> bool:
        conditions = alternative.conditions
        return (
            all(evaluate_flat(part, self._flat) is True for part in alternative.plain)
            and all(self._outcomes[predicate_key(c)].truth is wanted for c, wanted in conditions)
            and self._agree([c for c, _ in conditions if c.variables], alternative.constraints)
        )

    def _agree(self, calls: list[Call], constraints: tuple[Restriction, ...]) -> bool:
        relations = [
            Relation(call.variables, self._outcomes[predicate_key(call)].bindings) for call in calls
        ]
        try:
            budget = JoinBudget(self._max_join_steps)
            judged = [c.for_event(attribute_of(self._flat)) for c in constraints]
            return find_solution(relations, judged, budget) is not None
        except JoinTooLarge as error:
            self.given_up = str(error)
            return False


def _note(call: Call, outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error[:_LONGEST_NOTE]
    shown = []
    for values in outcome.bindings[:_MOST_SHOWN]:
        pairs = zip(call.variables, values, strict=True)
        shown.append(", ".join(f"?{name} is {literal_text(value)}" for name, value in pairs))
    if len(outcome.bindings) > _MOST_SHOWN:
        shown.append(f"… ({len(outcome.bindings)} bindings)")
    note = "; or ".join(shown)
    return note if len(note) <= _LONGEST_NOTE else note[: _LONGEST_NOTE - 1] + "…"
