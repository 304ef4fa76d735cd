"""What a row of the OpenAI table is, and how one is played. Knows no endpoint.

A row is one async function that works for both sorts of client: what only an async client gives as an
awaitable goes through `Go.wait`. It gives what the agent saw; recording and replay must give the same.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import openai
from support.openai_answers import OpenAIAnswers
from support.scripted_server import ScriptedServer

import stepfork
from stepfork.instrument.http_stream import library

Kind = Literal["sync", "async"]
VERSION: Final = tuple(int(part) for part in openai.__version__.split(".")[:2])
NOWHERE: Final = "http://127.0.0.1:9"
M: Final = [{"role": "user", "content": "hi"}]
LIMIT: Final = 20.0
"""Seconds a row may take before it counts as hanging."""


def say(content: str) -> Any:
    return [{"role": "user", "content": content}]


class Go:
    """What a row gets: clients of one sort, and what makes them look alike."""

    def __init__(self, kind: Kind, url: str, key: str | None) -> None:
        self.kind = kind
        self.url = url
        self.key = key
        self.live = key is not None
        self.is_async = kind == "async"
        self._open: list[Any] = []
        self.early = self.make(api_key="sk-early")  # made before the session: nothing is patched yet
        self.early_create = self.early.chat.completions.create

    @property
    def client(self) -> Any:
        """A client as most rows need it, made at this moment."""
        return self.make()

    def make(self, kind: Any = None, **options: Any) -> Any:
        """A client of `kind` or of the usual class, with the key that there is."""
        kind = kind or (openai.AsyncOpenAI if self.is_async else openai.OpenAI)
        if self.key is not None and not {"azure_ad_token_provider", "api_key"} & options.keys():
            options["api_key"] = self.key
        if "azure_endpoint" not in options:
            options.setdefault("base_url", f"{self.url}/v1")
        elif VERSION < (1, 42):
            options["azure_endpoint"] = str(options["azure_endpoint"])
        made = kind(**{"max_retries": 0, **options})
        self._open.append(made)
        return made

    def pick(self, sync: Any, asynchronous: Any) -> Any:
        """One of two, for what comes in two classes."""
        return asynchronous if self.is_async else sync

    async def wait(self, value: Any) -> Any:
        """What a sync client gives, or what an async client gives once it is awaited."""
        return await value if inspect.isawaitable(value) else value

    async def all(self, items: Any) -> list[Any]:
        """Everything a stream or page gives."""
        return [item async for item in items] if self.is_async else list(items)

    async def next(self, items: Any) -> Any:
        """The next item; `StopAsyncIteration` at the end."""
        if self.is_async:
            return await anext(items)
        for item in items:
            return item
        raise StopAsyncIteration

    async def raised(self, make: Callable[[], Any]) -> Any:
        """What a call raised."""
        try:
            await self.wait(make())
        except Exception as error:
            return seen(error)
        raise AssertionError("nothing was raised")

    @asynccontextmanager
    async def within(self, manager: Any) -> AsyncIterator[Any]:
        """``async with``, for sync context managers too."""
        if self.is_async:
            async with manager as value:
                yield value
        else:
            with manager as value:
                yield value

    async def close(self) -> None:
        for client in self._open:
            await self.wait(client.close())


def forget_module_client() -> None:
    """The module-level client lives in the module, and so does all it was made of."""
    if openai.http_client is not None:
        openai.http_client.close()
    openai.api_key = openai.base_url = openai.http_client = None
    openai._reset_client()


def http_library(client: Any) -> Any:
    """The library that a client sends with: ``httpx`` or ``httpx2``."""
    return library(client._client.build_request("GET", NOWHERE))


def seen(value: Any) -> Any:
    """What can be compared of a value: class, content, request id; of an error what its handlers read."""
    if isinstance(value, BaseException):
        return _seen_error(value)
    if hasattr(value, "model_dump"):
        request_id = getattr(value, "_request_id", None)
        return type(value).__name__, value.model_dump(warnings=False), request_id
    if isinstance(value, list | tuple):
        return [seen(item) for item in value]
    return value


def _seen_error(error: BaseException) -> Any:
    told: list[Any] = [type(error).__name__, str(error)]
    for name in ("status_code", "body", "request_id", "code", "message"):
        told.append(getattr(error, name, None))
    response = getattr(error, "response", None)
    if response is not None:
        told += [headers(response), response.text]
    return told


def headers(response: Any) -> Any:
    """The headers a caller reads."""
    kept = ("x-request-id", "retry-after", "content-type")
    return {
        key: value for key, value in response.headers.items() if key in kept or key.startswith("x-ratelimit-")
    }


Player = Callable[[Go], Coroutine[Any, Any, Any]]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `since` is the first version of the SDK that has it, `needs` a module it needs beside the SDK; `kinds`
    are the sorts of client it means something for. `refused` rows must raise `UnsupportedCallError`.
    """

    group: str
    name: str
    play: Player
    since: tuple[int, int]
    needs: str = ""
    kinds: tuple[Kind, ...] = ("sync", "async")
    refused: bool = False

    @property
    def title(self) -> str:
        return f"{self.group}: {(self.play.__doc__ or self.name).strip()}"

    def is_there(self, version: tuple[int, ...]) -> bool:
        return version >= self.since


ROWS: Final[list[Row]] = []


def row(group: str, since: str = "1.40", **more: Any) -> Callable[[Player], Player]:
    """Adds a row to the table; its docstring is its title there."""

    def add(play: Player) -> Player:
        first, second = since.split(".")
        ROWS.append(Row(group, play.__name__, play, (int(first), int(second)), **more))
        return play

    return add


def here() -> list[tuple[Row, Kind]]:
    """The rows that this version of the SDK has, times the sorts of client."""
    return [(row, kind) for row in ROWS if row.is_there(VERSION) and _has(row.needs) for kind in row.kinds]


def _has(module: str) -> bool:
    return not module or importlib.util.find_spec(module) is not None


def played(row: Row, kind: Kind, url: str, key: str | None, session: Callable[[], Any]) -> Any:
    """What an agent saw that ran this row inside a session."""

    async def run() -> Any:
        go = Go(kind, url, key)
        try:
            with session():
                return await row.play(go)
        finally:
            await go.close()

    if kind == "async":
        return asyncio.run(asyncio.wait_for(run(), LIMIT))
    try:
        run().send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a sync row waited for something")


def record(row: Row, kind: Kind, path: Path) -> Any:
    """Runs a row against the server and records it."""
    server = ScriptedServer(OpenAIAnswers())
    try:
        return played(row, kind, server.url.removesuffix("/v1"), "sk-live", lambda: stepfork.record(path))
    finally:
        server.stop()


def replay(row: Row, kind: Kind, path: Path) -> Any:
    """Runs a row against its cassette: no server, no key, nothing live."""
    runs: list[Any] = []

    def session() -> Any:
        runs.append(stepfork.replay(path))
        return runs[0]

    return played(row, kind, NOWHERE, None, session)


def hybrid(row: Row, kind: Kind, path: Path) -> tuple[Any, Any, int]:
    """Runs a row against the server, at the places of its cassette; gives the run and the requests too."""
    server = ScriptedServer(OpenAIAnswers())
    runs: list[Any] = []

    @contextmanager
    def session() -> Iterator[None]:
        with stepfork.replay(path, mode="hybrid") as run:
            runs.append(run)
            yield

    try:
        saw = played(row, kind, server.url.removesuffix("/v1"), "sk-live", session)
        return saw, runs[0], server.hits
    finally:
        server.stop()
