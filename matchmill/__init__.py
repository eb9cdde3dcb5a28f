"""matchmill: find all stored subscriptions that an event satisfies.

>>> import matchmill as mm
>>> engine = mm.Engine()
>>> engine.subscribe("u42", "origin = 'JFK' and dep_delay > 60")
>>> engine.match({"origin": "JFK", "dep_delay": 75})
{'u42'}

Names are loaded when they are first used, so that `import matchmill` is quick.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matchmill import sigma as sigma
    from matchmill import spark as spark
    from matchmill.client import AsyncClient as AsyncClient
    from matchmill.client import Client as Client
    from matchmill.engine.engine import Engine as Engine
    from matchmill.engine.functions import check as check
    from matchmill.engine.functions import evaluate as evaluate
    from matchmill.engine.functions import explain as explain
    from matchmill.engine.functions import match as match
    from matchmill.engine.functions import parse as parse
    from matchmill.engine.matches import Matches as Matches
    from matchmill.engine.stats import EngineStats as EngineStats
    from matchmill.engine.warm import warm as warm
    from matchmill.errors import BackgroundError as BackgroundError
    from matchmill.errors import DuplicateIdError as DuplicateIdError
    from matchmill.errors import EventError as EventError
    from matchmill.errors import ExpressionError as ExpressionError
    from matchmill.errors import FileFormatError as FileFormatError
    from matchmill.errors import FolderError as FolderError
    from matchmill.errors import FolderInUseError as FolderInUseError
    from matchmill.errors import InputError as InputError
    from matchmill.errors import LimitError as LimitError
    from matchmill.errors import MatchmillError as MatchmillError
    from matchmill.errors import MissingDependencyError as MissingDependencyError
    from matchmill.errors import QuotaError as QuotaError
    from matchmill.errors import ReadOnlyError as ReadOnlyError
    from matchmill.errors import ServiceError as ServiceError
    from matchmill.errors import StoreError as StoreError
    from matchmill.errors import UnknownIdError as UnknownIdError
    from matchmill.io.event_sources import read_events as read_events
    from matchmill.io.reports import CheckReport as CheckReport
    from matchmill.io.reports import Finding as Finding
    from matchmill.io.reports import Rejected as Rejected
    from matchmill.io.reports import SubscribeReport as SubscribeReport
    from matchmill.io.subscription import Subscription as Subscription
    from matchmill.language.builder import any_attribute as any_attribute
    from matchmill.language.builder import attr as attr
    from matchmill.language.builder_calls import call as call
    from matchmill.language.builder_calls import var as var
    from matchmill.language.explain import Explanation as Explanation
    from matchmill.language.expression import Expression as Expression
    from matchmill.language.term_functions import function as function
    from matchmill.language.term_functions import function_names as function_names
    from matchmill.language.term_functions import unregister_function as unregister_function
    from matchmill.operators.registry import Operator as Operator
    from matchmill.operators.registry import Variable as Variable
    from matchmill.operators.registry import operator as operator
    from matchmill.operators.registry import operator_names as operator_names
    from matchmill.operators.registry import unregister_operator as unregister_operator
    from matchmill.operators.stats import OperatorStats as OperatorStats
    from matchmill.settings import Settings as Settings

__version__ = "0.1.0"

# Where each public name lives: module → names.
_MODULES = {
    "client": ["AsyncClient", "Client"],
    "engine.engine": ["Engine"],
    "engine.functions": ["check", "evaluate", "explain", "match", "parse"],
    "engine.matches": ["Matches"],
    "engine.stats": ["EngineStats"],
    "engine.warm": ["warm"],
    "errors": [
        "BackgroundError",
        "DuplicateIdError",
        "EventError",
        "ExpressionError",
        "FileFormatError",
        "FolderError",
        "FolderInUseError",
        "InputError",
        "LimitError",
        "MatchmillError",
        "MissingDependencyError",
        "QuotaError",
        "ReadOnlyError",
        "ServiceError",
        "StoreError",
        "UnknownIdError",
    ],
    "io.event_sources": ["read_events"],
    "io.reports": ["CheckReport", "Finding", "Rejected", "SubscribeReport"],
    "io.subscription": ["Subscription"],
    "language.builder": ["any_attribute", "attr"],
    "language.builder_calls": ["call", "var"],
    "language.explain": ["Explanation"],
    "language.expression": ["Expression"],
    "language.term_functions": ["function", "function_names", "unregister_function"],
    "operators.registry": [
        "Operator",
        "Variable",
        "operator",
        "operator_names",
        "unregister_operator",
    ],
    "operators.stats": ["OperatorStats"],
    "settings": ["Settings"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncClient",
    "BackgroundError",
    "CheckReport",
    "Client",
    "DuplicateIdError",
    "Engine",
    "EngineStats",
    "EventError",
    "Explanation",
    "Expression",
    "ExpressionError",
    "FileFormatError",
    "Finding",
    "FolderError",
    "FolderInUseError",
    "InputError",
    "LimitError",
    "Matches",
    "MatchmillError",
    "MissingDependencyError",
    "Operator",
    "OperatorStats",
    "QuotaError",
    "ReadOnlyError",
    "Rejected",
    "ServiceError",
    "Settings",
    "StoreError",
    "SubscribeReport",
    "Subscription",
    "UnknownIdError",
    "Variable",
    "__version__",
    "any_attribute",
    "attr",
    "call",
    "check",
    "evaluate",
    "explain",
    "function",
    "function_names",
    "match",
    "operator",
    "operator_names",
    "parse",
    "read_events",
    "unregister_function",
    "unregister_operator",
    "var",
    "warm",
]


def __getattr__(name: str) -> Any:
    if name in ("sigma", "spark"):
        return import_module(f"matchmill.{name}")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'matchmill' has no attribute {name!r}")
    value = getattr(_imported(f"matchmill.{module}"), name)
    globals()[name] = value
    return value


def _imported(module: str) -> ModuleType:
    """Import a module where no signal handler runs: Numba does not survive half an import."""
    from matchmill.kernels.uninterrupted import uninterrupted

    return uninterrupted(import_module, module)


def __dir__() -> list[str]:
    return sorted([*__all__, "sigma", "spark"])
