"""Confirm the candidates of events by calling operators.

    event ─► index ─► candidate rows ─► plain parts ─► chains ─► walk ─► calls ─► joins ─► rows

Each event is a run: a walk over its chains, which stops wherever it needs a predicate that nobody
has evaluated for the event. Runs of one batch go on side by side. Predicates of an operator that
takes several events at once wait until no run can go on without one; then the one that most runs
wait for is evaluated for all of them in one call.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from matchmill.kernels.forks import renewed_after_fork
from matchmill.kernels.uninterrupted import uninterrupted
from matchmill.language.compiled import compiled
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.expression import Expression
from matchmill.language.values import Region, region_of
from matchmill.operators.bindings import (
    JoinBudget,
    JoinTooLarge,
    PredicateKey,
    Relation,
    arguments_of_key,
    find_solution,
)
from matchmill.operators.chains import Chain, Chains, Condition
from matchmill.operators.learning import Learned
from matchmill.operators.orders import order_class
from matchmill.operators.outcome import Outcome, failed
from matchmill.operators.registry import find_operator
from matchmill.operators.safe_call import Answer, ask, ask_batch, attribute_of, frozen_event
from matchmill.operators.stats import Figures, OperatorStats
from matchmill.settings import Settings

__all__ = ["OperatorMatcher", "Rows"]

_RUNS_AT_ONCE = 256
_JOINS_PER_EVENT = 10  # that may be as large as the settings allow; then all have to be small
_SMALL_JOIN = 100  # … by this factor
_GONE: Condition = (("", ()), True)


class Rows(Protocol):
    """Where rows come from: the subscriptions of an engine."""

    @property
    def expression_of_row(self) -> Callable[[int], Expression]:
        """A function that returns the expression of a row."""
        ...

    def is_current(self, row: int) -> bool:
        """Tell whether a row is the latest version of its subscription."""
        ...


class OperatorMatcher:
    """Evaluates operators for an engine. Any number of threads may call it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rows: weakref.ref[Any] | None = None  # whose chains these are
        self._chains = self._no_chains()
        # Calls that are using them. One that is interrupted is not counted for ever.
        self._active: weakref.WeakSet[_Using] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._learned = Learned()
        self._figures = Figures()
        renewed_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child: what other threads of the parent were using is made again."""
        self._lock = threading.Lock()
        self._chains, self._rows = self._no_chains(), None
        self._active = weakref.WeakSet()

    def _no_chains(self) -> Chains:
        return Chains(order_class(self._settings.operator_order)())

    def stats(self) -> list[OperatorStats]:
        """Return what each operator did."""
        return self._figures.stats()

    @property
    def n_joins_given_up(self) -> int:
        """How often variables had too many values to try them all."""
        return self._figures.n_joins_given_up

    def confirmed(
        self, rows: Rows, candidates: Iterable[tuple[Mapping[str, Any], Sequence[int]]]
    ) -> list[set[int]]:
        """Return, per event, those of its candidate rows that it satisfies."""
        using = _Using()
        chains = self._chains_for(rows, using)
        work = _Work(rows, chains, self._learned, self._figures, self._settings)
        found: list[set[int]] = []
        runs: list[_Run] = []
        for flat, candidate_rows in candidates:
            accepted: set[int] = set()
            found.append(accepted)
            priced = work.accept_plain(flat, candidate_rows, accepted)
            if priced:
                runs.append(_Run(work, flat, priced, accepted))
            if len(runs) == _RUNS_AT_ONCE:
                work.finish(runs)
                runs = []
        work.finish(runs)
        self._active.discard(using)
        return found

    def _chains_for(self, rows: Rows, using: _Using) -> Chains:
        """Return the chains of these rows; removed ones are dropped while no other call runs."""
        self._active.add(using)
        if self._is_of_others(rows) or self._chains.is_sweep_due:
            return uninterrupted(self._swept, rows, using)
        return self._chains

    def _is_of_others(self, rows: Rows) -> bool:
        return self._rows is None or self._rows() is not rows.expression_of_row

    def _swept(self, rows: Rows, using: _Using) -> Chains:
        with self._lock:
            if self._is_of_others(rows):  # rows have new numbers
                self._chains = self._no_chains()
                self._rows = weakref.ref(rows.expression_of_row)
            chains = self._chains
            # A call that begins now gets others, for this one time.
            self._chains = self._no_chains()
            if not any(other is not using for other in list(self._active)):
                for key in chains.sweep(rows.is_current):
                    self._learned.forget(key)
            self._chains = chains
            return chains


class _Using:
    """One call that uses chains, as long as it runs."""


class _Work:
    """What the runs of one call share."""

    def __init__(
        self,
        rows: Rows,
        chains: Chains,
        learned: Learned,
        figures: Figures,
        settings: Settings,
    ) -> None:
        self.rows = rows
        self.chains = chains
        self.learned = learned
        self.figures = figures
        self.class_attribute = settings.event_class
        self.max_join_steps = settings.max_join_steps

    def accept_plain(
        self, flat: Mapping[str, Any], candidate_rows: Sequence[int], accepted: set[int]
    ) -> dict[int, tuple[int, ...]]:
        """Judge rows without operators; the chains of the others, by row."""
        priced = {}
        expression_of_row = self.rows.expression_of_row
        for row in candidate_rows:
            chains = self.chains.of_row(row, expression_of_row)
            if chains is not None:
                priced[row] = chains
                continue
            judge = self.chains.judgement(row) or compiled(expression_of_row(row))
            if judge(flat) is True:
                accepted.add(row)
        return priced

    def finish(self, runs: Sequence[_Run]) -> None:
        """Let all runs come to their end."""
        ready = list(reversed(runs))
        waiting: dict[PredicateKey, list[_Run]] = {}
        while ready or waiting:
            while ready:
                run = ready.pop()
                key = run.next_predicate()
                if key is None:
                    continue
                operator = find_operator(key[0])
                if operator is not None and operator.batch_function and len(runs) > 1:
                    waiting.setdefault(key, []).append(run)
                else:
                    self._settle(run, key, self._ask(run, key))
                    ready.append(run)
            if waiting:
                key = max(waiting, key=lambda key: len(waiting[key]))
                ready = waiting.pop(key)
                self._ask_together(ready, key)

    def _ask(self, run: _Run, key: PredicateKey) -> Answer:
        operator = find_operator(key[0])
        if operator is None:
            return Answer(failed("it is not registered"), 0.0)
        return ask(operator, run.event, arguments_of_key(key))

    def _ask_together(self, runs: Sequence[_Run], key: PredicateKey) -> None:
        operator = find_operator(key[0])
        if operator is None:
            answers = [self._ask(run, key) for run in runs]
        else:
            events = [run.event for run in runs]
            answers = ask_batch(operator, events, arguments_of_key(key))
        for run, answer in zip(runs, answers, strict=True):
            self._settle(run, key, answer)

    def _settle(self, run: _Run, key: PredicateKey, answer: Answer) -> None:
        run.settle(key, answer.outcome)
        self.figures.add(key[0], answer)
        is_true = answer.outcome.truth is True
        self.learned.add(key, is_true, answer.milliseconds, run.event_class)


def _class_of(value: Any) -> Any:
    """Return the class of an event; an object is none."""
    if isinstance(value, list):
        return None if any(_class_of(one) is None for one in value) else tuple(value)
    return None if region_of(value) == Region.OBJECT else value


class _Run:
    """One event on its way through its chains."""

    def __init__(
        self,
        work: _Work,
        flat: Mapping[str, Any],
        chains_of_row: Mapping[int, tuple[int, ...]],
        accepted: set[int],
    ) -> None:
        self.event = frozen_event(flat)
        self._flat = flat
        self.event_class = _class_of(flat.get(work.class_attribute))
        self.outcomes: dict[PredicateKey, Outcome] = {}
        self._work = work
        self._chains_of_row = chains_of_row
        self._accepted = accepted
        self._known: dict[int, bool] = {}
        self._waits_for = -1
        self._join_steps = _JOINS_PER_EVENT * work.max_join_steps  # left for this event
        chains = work.chains
        self._chains: dict[int, Chain] = {}
        for numbers in chains_of_row.values():
            for number in numbers:
                chain = chains.chains[number]
                if all(evaluate_flat(part, flat) is True for part in chain.plain):
                    self._chains[number] = chain
        self._conditions = {
            number: chains.conditions[number]
            for chain in self._chains.values()
            for number in chain.numbers
        }
        self._walk = chains.strategy.walk(
            list(self._chains), self._known, self._complete, self._estimate
        )

    def next_predicate(self) -> PredicateKey | None:
        """Go on as far as possible; the predicate that is needed then, or None at the end."""
        for condition in self._walk:
            key, wanted = self._conditions[condition]
            outcome = self.outcomes.get(key)
            if outcome is None:
                self._waits_for = condition
                return key
            self._known[condition] = outcome.truth is wanted
        return None

    def settle(self, key: PredicateKey, outcome: Outcome) -> None:
        """Take the outcome of the predicate that was needed."""
        self.outcomes[key] = outcome
        self._known[self._waits_for] = outcome.truth is self._conditions[self._waits_for][1]

    def _complete(self, number: int) -> Sequence[int]:
        chain = self._chains[number]
        if chain.bound and not self._variables_agree(chain):
            return ()
        self._accepted.add(chain.row)
        return self._chains_of_row[chain.row]

    def _variables_agree(self, chain: Chain) -> bool:
        relations = [Relation(b.variables, self.outcomes[b.key].bindings) for b in chain.bound]
        most = self._work.max_join_steps
        budget = JoinBudget(max(min(most, self._join_steps), most // _SMALL_JOIN))
        try:
            constraints = [c.for_event(attribute_of(self._flat)) for c in chain.constraints]
            return find_solution(relations, constraints, budget) is not None
        except JoinTooLarge as error:
            self._work.figures.add_join_given_up(str(error))
            return False
        finally:
            self._join_steps -= budget.spent

    def _estimate(self, condition: int) -> tuple[float, float]:
        # An order may ask about any condition it knows, also one that was swept away just now.
        key, wanted = self._work.chains.conditions.get(condition, _GONE)
        operator = find_operator(key[0])
        cost = self._work.learned.cost(key, operator.cost_ms if operator is not None else 1.0)
        chance = self._work.learned.selectivity(key, self.event_class)
        return (chance if wanted else 1 - chance), cost
