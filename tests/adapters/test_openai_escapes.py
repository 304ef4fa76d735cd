"""Nothing escapes: every public method of every resource is answered from the cassette, or refused.

The methods are those of the installed SDK, found by walking a client of it. Its HTTP client has a transport
that ends the test.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from adapters.openai_methods import NOTHING_SENT, WEBSOCKETS, arguments, methods
from adapters.openai_rows import http_library
from adapters.openai_table import ROWS, Kind, record

import stepfork


class Escaped(BaseException):
    """A request reached the transport. No ``except Exception`` of the SDK sees it."""


def sealed_client(kind: Kind) -> Any:
    """A client that cannot send."""
    made = openai.AsyncOpenAI if kind == "async" else openai.OpenAI
    module = http_library(made(api_key="k"))

    class Sealed(module.BaseTransport, module.AsyncBaseTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            raise Escaped(f"{request.method} {request.url}")

        async def handle_async_request(self, request: Any) -> Any:
            raise Escaped(f"{request.method} {request.url}")

    own = module.AsyncClient if kind == "async" else module.Client
    return made(api_key="k", http_client=own(transport=Sealed()), max_retries=3)


async def use(name: str, method: Callable[..., Any]) -> Any:
    """Calls a method; enters what it gives, awaits it, begins to read it."""
    value = method(**arguments(name, method))
    if inspect.isawaitable(value):
        value = await value
    if hasattr(value, "__aenter__"):
        value = await value.__aenter__()
    elif hasattr(value, "__enter__"):
        value = value.__enter__()
    if hasattr(value, "__anext__"):
        await anext(value)
    elif hasattr(value, "__next__"):
        next(value)
    return value


async def found(path: Path, name: str, method: Callable[..., Any]) -> str:
    """What became of a method that was called while replaying: what the session raised in the end."""
    told = ""
    try:
        with stepfork.replay(path):
            try:
                told = f"gave {type(await use(name, method)).__name__}"
            except Exception as error:  # some helpers make an error of their own of every failure
                told = f"{type(error).__name__}: {error}"
                raise
    except (stepfork.ReplayMismatchError, stepfork.UnsupportedCallError) as error:
        if "never made" not in str(error):  # the recorded call was not made, because nothing was sent
            return f"{type(error).__name__}: {error}"
    except (Exception, Escaped) as error:
        return f"{type(error).__name__}: {error}"
    return told


@pytest.fixture(scope="module")
def cassette(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("escapes") / "run.yaml"
    record(ROWS[0], "sync", path)
    return path


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_C62_every_method_of_every_resource_is_refused(kind: Kind, cassette: Path) -> None:
    stepfork.autopatch()
    client = sealed_client(kind)

    async def everything() -> dict[str, str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return {name: await found(cassette, name, method) for name, method in methods(client)}

    became = asyncio.run(everything())
    refused = {name for name, what in became.items() if what.startswith("ReplayMismatchError")}
    unsupported = {name for name, what in became.items() if what.startswith("UnsupportedCallError")}
    rest = {name: what for name, what in became.items() if name not in refused | unsupported | NOTHING_SENT}
    assert rest == {}
    assert unsupported <= WEBSOCKETS
    assert unsupported == WEBSOCKETS & became.keys()
    assert len(refused) > 50
    print(f"{len(refused)} methods refused, {len(unsupported)} websockets, {kind}")
