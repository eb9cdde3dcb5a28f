"""The chains of all subscriptions that have been looked at, by row.

    row          a subscription's row in the engine; its alternatives become chains
    chain        which row it belongs to, what to check before, its conditions in the subscription's
                 own variables, its constraints
    condition    (predicate, wanted), numbered; conditions that are equal share a number

Chains are made when a row first comes up as a candidate, so opening, replaying and merging need not
know of them. Rows that are not current any more are dropped in a sweep, when there may be many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from matchmill.kernels.uninterrupted import uninterrupted
from matchmill.language.compiled import Judgement, compiled
from matchmill.language.expression import And, Expression
from matchmill.language.normal_form import normalize
from matchmill.language.operator_calls import Restriction, has_calls
from matchmill.operators.alternatives import Alternative, alternatives
from matchmill.operators.bindings import PredicateKey, predicate_key
from matchmill.operators.orders import Strategy

__all__ = ["Bound", "Chain", "Chains", "Condition"]

Condition: TypeAlias = tuple[PredicateKey, bool]

_SWEEP_AT_LEAST = 1024
_UNLIMITED = 2**60


class Bound(NamedTuple):
    """A predicate that binds variables, as one subscription calls them."""

    key: PredicateKey
    variables: tuple[str, ...]


class Chain(NamedTuple):
    """One alternative of a subscription."""

    row: int
    plain: tuple[Expression, ...]  # what the index has not answered for good
    numbers: tuple[int, ...]  # of its conditions
    bound: tuple[Bound, ...]
    constraints: tuple[Restriction, ...]


class Chains:
    """All chains, by row."""

    def __init__(self, strategy: Strategy) -> None:
        self.chains: dict[int, Chain] = {}
        self.conditions: dict[int, Condition] = {}
        self._numbers: dict[Condition, int] = {}
        self._n_users: dict[int, int] = {}
        self._of_row: dict[int, tuple[int, ...]] = {}
        # Rows without operators, so as not to look again, with the functions that judge events.
        self._plain: dict[int, Judgement] = {}
        self.strategy = strategy
        self._next_chain = self._next_condition = 0
        self._sweep_at = _SWEEP_AT_LEAST
        self._lock = threading.Lock()

    def of_row(self, row: int, expression: Callable[[int], Expression]) -> tuple[int, ...] | None:
        """Return the chains of a row, made if need be; None if it has no operators."""
        found = self._of_row.get(row)
        if found is None and row not in self._plain:
            found = uninterrupted(self._made, row, expression)
        return found

    def judgement(self, row: int) -> Judgement | None:
        """Return the function that judges events for a row without operators, once it is known."""
        return self._plain.get(row)

    def _made(self, row: int, expression: Callable[[int], Expression]) -> tuple[int, ...] | None:
        with self._lock:
            found = self._of_row.get(row)
            if found is None:
                found = self._make(row, expression(row))
            return found

    def _make(self, row: int, expression: Expression) -> tuple[int, ...] | None:
        if not has_calls(expression):
            self._plain[row] = compiled(expression)
            return None
        found = alternatives(expression, _UNLIMITED)
        made = tuple(self._add(row, alternative, len(found) == 1) for alternative in found)
        self._of_row[row] = made
        return made

    def _add(self, row: int, alternative: Alternative, is_only: bool) -> int:
        plain = alternative.plain
        if is_only and plain and _is_one_clause(plain):
            plain = ()  # the index has answered it
        keys = [(predicate_key(call), call, wanted) for call, wanted in alternative.conditions]
        numbers = tuple(dict.fromkeys(self._number((key, wanted)) for key, _, wanted in keys))
        bound = tuple(Bound(key, call.variables) for key, call, _ in keys if call.variables)
        chain = self._next_chain
        self._next_chain += 1
        self.chains[chain] = Chain(row, plain, numbers, bound, alternative.constraints)
        for number in numbers:
            self._n_users[number] = self._n_users.get(number, 0) + 1
        self.strategy.add(chain, numbers)
        return chain

    def _number(self, condition: Condition) -> int:
        number = self._numbers.get(condition)
        if number is None:
            number = self._numbers[condition] = self._next_condition
            self._next_condition += 1
            self.conditions[number] = condition
        return number

    # -- forgetting

    @property
    def is_sweep_due(self) -> bool:
        """Whether there may be many rows that are not current any more."""
        return len(self._of_row) + len(self._plain) >= self._sweep_at

    def sweep(self, is_current: Callable[[int], bool]) -> list[PredicateKey]:
        """Drop rows that are not current any more, if there may be many.

        Returns the predicates that no chain needs any more.
        """
        if not self.is_sweep_due:
            return []
        with self._lock:
            self._plain = {row: own for row, own in self._plain.items() if is_current(row)}
            gone = [row for row in self._of_row if not is_current(row)]
            unused = self._drop(gone)
            n_rows = len(self._of_row) + len(self._plain)
            self._sweep_at = max(_SWEEP_AT_LEAST, 2 * n_rows)
        return unused

    def _drop(self, rows: Iterable[int]) -> list[PredicateKey]:
        unused = []
        for row in rows:
            for chain in self._of_row.pop(row):
                for number in self.chains.pop(chain).numbers:
                    self._n_users[number] -= 1
                    if not self._n_users[number]:
                        del self._n_users[number]
                        condition = self.conditions.pop(number)
                        del self._numbers[condition]
                        unused.append(condition[0])
                self.strategy.remove(chain)
        return unused


def _is_one_clause(plain: tuple[Expression, ...]) -> bool:
    """Tell whether the index holds these conditions exactly, whatever its limit was."""
    return normalize(And(plain) if len(plain) > 1 else plain[0], 1).exact
