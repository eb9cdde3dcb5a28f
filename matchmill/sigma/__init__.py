"""Sigma rules as subscriptions: all rules over all events in one pass.

    rules = mm.sigma.load("rules", pipelines=["windows"])
    engine = mm.Engine(rules)
    hits = rules.hits(engine.match_many("events.jsonl"))

It needs pySigma: ``pip install 'matchmill[sigma]'``.
"""

from __future__ import annotations

from matchmill.errors import MissingDependencyError

try:
    import sigma.rule  # noqa: F401
except ImportError:
    raise MissingDependencyError(
        "Sigma rules need pySigma: pip install 'matchmill[sigma]'"
    ) from None

from matchmill.sigma.backend import MatchmillBackend
from matchmill.sigma.pipelines import windows
from matchmill.sigma.rules import ConvertedRule, SigmaRules, convert, load

__all__ = ["ConvertedRule", "MatchmillBackend", "SigmaRules", "convert", "load", "windows"]
