"""The OpenAI SDK: one logical call at ``request()``, whatever resource or client it came from.

This file knows where the SDK is patched and what makes a client work without a key; what becomes of a call is
`_openai_exchange.py`'s. On replay nothing is sent, nothing sleeps, and nobody is asked for a key or a token,
but for calls that are made live all the same (mode ``hybrid``): those go the way of a recording.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from stepfork.errors import ConfigError, UnsupportedCallError
from stepfork.instrument import driver
from stepfork.instrument.adapter import Patch
from stepfork.instrument.adapters._openai_exchange import Exchange, Replay, asked, sdk
from stepfork.session import active
from stepfork.session.run import Run, Ticket

PLACEHOLDER: Final = "stepfork-replay-needs-no-key"
"""The key of a client that was made without one while replaying; it is never sent."""

_exchange: ContextVar[Exchange | None] = ContextVar("stepfork_openai_exchange", default=None)
_unsent: ContextVar[bool] = ContextVar("stepfork_openai_unsent", default=False)


# -- the seam ---------------------------------------------------------------------------------------


def _request(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    __tracebackhide__ = True
    run = _session(client)
    if run is None:
        return wrapped(*args, **kwargs)
    exchange = None
    if run.action == "replay":
        with _asking():
            what = asked(client, *args, **kwargs)
            replay = Replay(what, client._prepare_options(what.options), run)
        exchange = replay.live()
        if exchange is None:
            return replay.answer()
        _check_key(client, run)
    with _recording(client, run, exchange) as exchange:
        value = wrapped(*args, **kwargs)
    return exchange.done(value)


async def _async_request(wrapped: Callable[..., Awaitable[Any]], client: Any, args: Any, kwargs: Any) -> Any:
    __tracebackhide__ = True
    run = _session(client)
    if run is None:
        return await wrapped(*args, **kwargs)
    exchange = None
    if run.action == "replay":
        with _asking():
            what = asked(client, *args, **kwargs)
            replay = Replay(what, await client._prepare_options(what.options), run)
        exchange = replay.live()
        if exchange is None:
            return await replay.async_answer()
        _check_key(client, run)
    with _recording(client, run, exchange) as exchange:
        try:
            value = await wrapped(*args, **kwargs)
        except BaseException as error:
            if driver.is_cancelled(error) and not exchange.was_built:
                _ask_all_the_same(exchange, asked(client, *args, **kwargs).options)
            raise
    return exchange.done(value)


def _ask_all_the_same(exchange: Exchange, options: Any) -> None:
    """A call that was cancelled before it had a request, while a key was fetched, say: replay will ask."""
    token = _unsent.set(True)
    try:
        exchange.built(exchange.client._build_request(options))
    finally:
        _unsent.reset(token)


@contextmanager
def _asking() -> Iterator[None]:
    """A request is made that is not sent: nobody is asked for a key, and no call is under way."""
    unsent, exchange = _unsent.set(True), _exchange.set(None)
    try:
        yield
    finally:
        _exchange.reset(exchange)
        _unsent.reset(unsent)


def _check_key(client: Any, run: Run) -> None:
    """Refuses a live call of a client that was made without a key; the session ends with it."""
    if getattr(client, "api_key", None) == PLACEHOLDER:
        raise run.latch(
            ConfigError(
                "this LLM call is to be made live (mode 'hybrid'), and its client has no key; "
                "set OPENAI_API_KEY before the client is made, or replay all of it with mode 'replay'"
            )
        )


@contextmanager
def _recording(client: Any, run: Run, exchange: Exchange | None = None) -> Iterator[Exchange]:
    """Has the patches below ``request()`` know the call they work for."""
    where = driver.frame()
    assert where is not None
    exchange = exchange or Exchange(client, run, where=where)
    token = _exchange.set(exchange)
    try:
        with driver.Aside(where), exchange:
            yield exchange
    except BaseException as error:
        exchange.failed(error)
        raise
    finally:
        _exchange.reset(token)


def _session(client: Any) -> Run | None:
    run = None if active.idle() else driver.session()
    replaying = run is not None and run.action == "replay"
    if not replaying and getattr(client, "api_key", None) == PLACEHOLDER:
        raise ConfigError(
            "this OpenAI client was made without a key while replaying, so it cannot send anything; "
            "set OPENAI_API_KEY before the client is made"
        )
    return run


def _at_work(client: Any) -> Exchange | None:
    """The call that is being recorded, if this client makes it."""
    exchange = _exchange.get()
    return exchange if exchange is not None and exchange.client is client else None


def _build_request(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    request = wrapped(*args, **kwargs)
    exchange = None if _unsent.get() else _at_work(client)
    if exchange is not None:
        exchange.built(request)
        exchange.run.sending()
    return request


def _process_response(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    exchange = _at_work(client)
    if exchange is not None:
        exchange.answered(kwargs["response"])
    return wrapped(*args, **kwargs)


def _should_retry(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    exchange = _at_work(client)
    if exchange is not None:
        exchange.retried(args[0] if args else kwargs["response"])
    return wrapped(*args, **kwargs)


def _status_error(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    exchange = _at_work(client)
    if exchange is not None:
        exchange.refused(args[0] if args else kwargs["response"])
    return wrapped(*args, **kwargs)


# -- without a key, without waiting -----------------------------------------------------------------


def _init(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> None:
    if not active.expects_replay():
        wrapped(*args, **kwargs)
        return
    openai = sdk()
    try:
        wrapped(*args, **kwargs)
    except openai.OpenAIError:
        if kwargs.get("api_key"):
            raise
        # raised for a missing key before anything else was set up, so a second try is safe; what the
        # placeholder does not mend (a missing endpoint) raises again
        wrapped(*args, **{**kwargs, "api_key": PLACEHOLDER})
    if isinstance(client, openai._ModuleClient):
        _forget_later(openai)


def _forget_later(openai: Any) -> None:
    """What comes after the session finds the module as it was: without a key and without a client."""

    def forget(_: Run) -> None:
        end()
        if openai.api_key in ("", PLACEHOLDER):  # where the module's own client keeps its key
            openai.api_key = None
            openai._reset_client()

    end = active.on_close(forget)


def _sends_nothing() -> bool:
    """Whether what is done here is done for an answer from a cassette, or for a request that is not sent."""
    if _unsent.get():
        return True
    frame = None if active.idle() else driver.frame()
    return frame is not None and frame.run.action == "replay" and not isinstance(frame.inside, Ticket)


def _replaying(value: Any) -> Callable[..., Any]:
    """A wrapper that gives this value where nothing is sent, and lets the call through otherwise."""

    def wrapper(wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Any) -> Any:
        return value if _sends_nothing() else wrapped(*args, **kwargs)

    return wrapper


def _async_replaying(value: Any) -> Callable[..., Any]:
    async def wrapper(wrapped: Callable[..., Awaitable[Any]], owner: Any, args: Any, kwargs: Any) -> Any:
        return value if _sends_nothing() else await wrapped(*args, **kwargs)

    return wrapper


def _sleeps() -> bool:
    """Whether who polls has to wait: what is asked for may be made live."""
    run = None if active.idle() else driver.session()
    return run is None or run.action != "replay" or run.goes_live


def _sleep(wrapped: Callable[..., Any], resource: Any, args: Any, kwargs: Any) -> Any:
    return wrapped(*args, **kwargs) if _sleeps() else None


async def _async_sleep(wrapped: Callable[..., Awaitable[Any]], resource: Any, args: Any, kwargs: Any) -> Any:
    return await wrapped(*args, **kwargs) if _sleeps() else None


def _no_websocket(wrapped: Callable[..., Any], manager: Any, args: Any, kwargs: Any) -> Any:
    """Websockets do not pass ``request()``: refused while recording and replaying, never silently live."""
    run = None if active.idle() else driver.session()
    if run is None:
        return wrapped(*args, **kwargs)
    name = type(manager).__name__.removeprefix("Async").removesuffix("ConnectionManager").lower()
    raise run.latch(
        UnsupportedCallError(
            f"the agent opened a {name} websocket, which stepfork can neither record nor replay; "
            "use the HTTP calls of the SDK, or leave this test alone with mode 'off'"
        )
    )


# -- the table --------------------------------------------------------------------------------------

_BASE: Final = "openai._base_client"
_AZURE: Final = "openai.lib.azure"
_BEDROCK: Final = "openai.lib.bedrock"
_RESOURCE: Final = "openai._resource"
_WEBSOCKETS: Final = "openai.resources.*:*ConnectionManager"


class OpenAIAdapter:
    """The rows for the OpenAI SDK, 1.40 and later."""

    module = "openai"

    def patches(self) -> Sequence[Patch]:
        """The rows, from the seam outwards: requests, then what asks for keys and tokens, or waits."""
        token, async_token = _replaying(PLACEHOLDER), _async_replaying(PLACEHOLDER)
        valid = _replaying(None)
        return (
            Patch(f"{_BASE}:SyncAPIClient.request", _request),
            Patch(f"{_BASE}:AsyncAPIClient.request", _async_request),
            Patch(f"{_BASE}:BaseClient._build_request", _build_request),
            Patch(f"{_BASE}:BaseClient._should_retry", _should_retry),
            Patch(f"{_BASE}:BaseClient._make_status_error_from_response", _status_error),
            Patch(f"{_BASE}:SyncAPIClient._process_response", _process_response),
            Patch(f"{_BASE}:AsyncAPIClient._process_response", _process_response),
            Patch("openai:OpenAI.__init__", _init),
            Patch("openai:AsyncOpenAI.__init__", _init),
            Patch("openai:OpenAI._validate_headers", valid),
            Patch("openai:AsyncOpenAI._validate_headers", valid),
            Patch("openai:OpenAI._refresh_api_key", token, optional=True),
            Patch("openai:AsyncOpenAI._refresh_api_key", async_token, optional=True),
            Patch(f"{_AZURE}:AzureOpenAI.__init__", _init),
            Patch(f"{_AZURE}:AsyncAzureOpenAI.__init__", _init),
            Patch(f"{_AZURE}:AzureOpenAI._validate_headers", valid),
            Patch(f"{_AZURE}:AsyncAzureOpenAI._validate_headers", valid),
            Patch(f"{_AZURE}:AzureOpenAI._get_azure_ad_token", token),
            Patch(f"{_AZURE}:AsyncAzureOpenAI._get_azure_ad_token", async_token),
            Patch(f"{_BEDROCK}:BedrockOpenAI._refresh_api_key", token, optional=True),
            Patch(f"{_BEDROCK}:AsyncBedrockOpenAI._refresh_api_key", async_token, optional=True),
            Patch(f"{_RESOURCE}:SyncAPIResource._sleep", _sleep),
            Patch(f"{_RESOURCE}:AsyncAPIResource._sleep", _async_sleep),
            Patch(f"{_WEBSOCKETS}.__enter__", _no_websocket),
            Patch(f"{_WEBSOCKETS}.__aenter__", _no_websocket),
            Patch(f"{_WEBSOCKETS}.enter", _no_websocket),
        )


ADAPTER = OpenAIAdapter()
