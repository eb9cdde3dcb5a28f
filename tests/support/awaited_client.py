"""An `AsyncClient` that is called like a `Client`, so that one suite tests both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

from matchmill.client import AsyncClient

__all__ = ["AwaitedClient"]


class AwaitedClient:
    """Runs what an asynchronous client returns on an event loop of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            self.client = AsyncClient(*arguments, **options)
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> AwaitedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self.client)

    def close(self) -> None:
        """Close the client and the event loop."""
        self._loop.run_until_complete(self.client.close())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)

        def called(*arguments: Any, **options: Any) -> Any:
            result = method(*arguments, **options)
            if inspect.isasyncgen(result):
                return self._iterated(result)
            return self._loop.run_until_complete(result)

        return called

    def _iterated(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(anext(items))
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(items.aclose())  # type: ignore[attr-defined]
