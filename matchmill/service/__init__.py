"""The service: subscribe, publish and receive matches over HTTP.

`matchmill serve` runs it. To run it inside another ASGI application, or with other settings of the
server, make the application yourself:

    from matchmill.service import Service, ServiceSettings, make_app

    app = make_app(Service("alerts", ServiceSettings(max_mailbox=1_000)))

It needs the extra `service`: pip install 'matchmill[service]'.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matchmill.errors import MissingDependencyError

if TYPE_CHECKING:
    from matchmill.service.app import make_app as make_app
    from matchmill.service.server import serve as serve
    from matchmill.service.service import Service as Service
    from matchmill.service.settings import ServiceSettings as ServiceSettings

__all__ = ["Service", "ServiceSettings", "make_app", "serve"]

_MODULES = {
    "Service": "service",
    "ServiceSettings": "settings",
    "make_app": "app",
    "serve": "server",
}
_EXTRA = {"prometheus_client", "starlette", "uvicorn"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise MissingDependencyError(
            f"the service needs {error.name}: pip install 'matchmill[service]'"
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
