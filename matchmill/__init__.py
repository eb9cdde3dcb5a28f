"""matchmill: for each event, all stored subscriptions that it satisfies.

import matchmill as mm

engine = mm.Engine()
engine.subscribe("u42", "origin = 'JFK' and dep_delay > 60")
engine.match({"origin": "JFK", "dep_delay": 75})        # {'u42'}
"""

from typing import TYPE_CHECKING, Any

from matchmill.encoding.events.json_lines import read_json_lines
from matchmill.engine.engine import Engine, EngineStats, Refused, SubscribeReport
from matchmill.engine.matches import Matches
from matchmill.errors import (
    BackgroundError,
    DuplicateIdError,
    EventError,
    ExpressionError,
    FileFormatError,
    FolderError,
    FolderInUseError,
    InputError,
    LimitError,
    MatchmillError,
    MissingDependencyError,
    QuotaError,
    ReadOnlyError,
    ServiceError,
    StoreError,
    UnknownIdError,
)
from matchmill.language.builder import attr
from matchmill.language.evaluate import evaluate
from matchmill.language.explain import Explanation, explain
from matchmill.language.expression import Expression
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.parser import parse
from matchmill.operators import builtin as builtin  # registers the operators that come with us
from matchmill.operators.registry import Free, Operator, operator, operator_names, unregister
from matchmill.operators.stats import OperatorStats
from matchmill.settings import Settings

if TYPE_CHECKING:
    from matchmill.client import Client

__all__ = [
    "BackgroundError",
    "Client",
    "DuplicateIdError",
    "Engine",
    "EngineStats",
    "EventError",
    "Explanation",
    "Expression",
    "ExpressionError",
    "FileFormatError",
    "FolderError",
    "FolderInUseError",
    "Free",
    "InputError",
    "LimitError",
    "Matches",
    "MatchmillError",
    "MissingDependencyError",
    "Operator",
    "OperatorStats",
    "QuotaError",
    "ReadOnlyError",
    "Refused",
    "ServiceError",
    "Settings",
    "StoreError",
    "SubscribeReport",
    "UnknownIdError",
    "__version__",
    "attr",
    "evaluate",
    "explain",
    "operator",
    "operator_names",
    "parse",
    "parse_json_pattern",
    "read_json_lines",
    "unregister",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What not everybody needs is loaded when it is first asked for."""
    if name == "Client":
        from matchmill.client import Client

        return Client
    raise AttributeError(f"module 'matchmill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
