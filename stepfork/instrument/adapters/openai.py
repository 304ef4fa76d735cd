"""The OpenAI SDK: one logical call at ``request()``, whatever resource or client it came from.

Recording lets the SDK work and takes down the request it built and the response it is about to parse.
Replay builds the request as the SDK would and has the SDK parse the recorded response, so that every
object, stream and error is the SDK's own. Nothing is sent; no key is asked for.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from stepfork.cassette.exceptions import class_name, decode_exception, encode_exception
from stepfork.core.model import Incoming, Kind, Plain, Recorded
from stepfork.errors import ConfigError, UnsupportedCallError
from stepfork.instrument import driver
from stepfork.instrument import http_message as message
from stepfork.instrument.adapter import Outcome, Patch
from stepfork.session import active
from stepfork.session.run import Run

PLACEHOLDER: Final = "stepfork-replay-needs-no-key"
"""The key of a client that was made without one while replaying; it is never sent."""


@dataclass(slots=True)
class _Asked:
    """The arguments of ``request()``."""

    client: Any
    cast_to: Any
    options: Any
    stream: bool
    stream_cls: Any


def _asked(
    client: Any,
    cast_to: Any,
    options: Any,
    remaining_retries: Any = None,
    *,
    stream: bool = False,
    stream_cls: Any = None,
) -> _Asked:
    from openai._compat import model_copy

    cast_to = client._maybe_override_cast_to(cast_to, options)
    return _Asked(client, cast_to, model_copy(options), stream, stream_cls)


class _Exchange:
    """One logical call: its request, and the response that answered it. The driver's target."""

    kind: Kind = "llm"

    def __init__(self, client: Any, request: Any = None) -> None:
        self.client = client
        self.request = request
        self.response: Any = None
        self.live: driver.Live | None = None
        self._attempts: list[Plain] = []  # how the attempts before the last one ended
        self._built = 0
        self._tee: message.Tee | None = None

    @property
    def name(self) -> str:
        return message.name_of(self._path())

    def _path(self) -> str:
        return message.path_below(str(self.client.base_url), str(self.request.url))

    def incoming(self) -> Incoming:
        path = self._path()
        return message.question(self.request, path)

    def built(self, request: Any, run: Run) -> None:
        """While recording: the first attempt's request is the question, each further one a retry."""
        if len(self._attempts) < self._built:
            self._attempts.append("no answer")
        self._built += 1
        if self.request is None:
            self.request = request
            step = driver.enter(self)
            self.live = step if isinstance(step, driver.Live) else None

    def answered(self, response: Any) -> None:
        """While recording: this is the response the SDK will parse or turn into an error."""
        self.response = response
        if self.live is not None and not response.is_stream_consumed and not hasattr(response, "_content"):
            tee = self._tee = message.tee(response, self._finish_stream)
            self.live.at_close(lambda: tee.ended("closed"))

    def retried(self, response: Any) -> None:
        """While recording: the SDK asks whether this response is worth another attempt."""
        self._attempts.append(response.status_code)

    def _finish_stream(self, outcome: Outcome) -> None:
        assert self.live is not None
        self.live.end(self._with_attempts(outcome))

    def _with_attempts(self, outcome: Outcome) -> Outcome:
        attempts: list[Plain] = self._attempts[: self._built - 1]
        return {"attempts": attempts, **outcome} if attempts else outcome

    def done(self, value: Any) -> Any:
        """While recording: ``request()`` returned."""
        if self.live is not None:
            self.live.returned(value)
        return value

    def returned(self, value: Any) -> Outcome | None:
        if self._tee is not None:
            return None
        return self._with_attempts(message.outcome(self.response))

    def raised(self, error: BaseException) -> Outcome:
        if self._tee is not None:
            self._tee.stop()
        if self.response is not None:
            # the error came out of this response, and will again: a status, or content that does not parse
            return self._with_attempts(message.outcome(self.response))
        if isinstance(error, _openai().APIConnectionError):
            form: dict[str, Plain] = {"class": class_name(type(error)), "args": [str(error)]}
            return self._with_attempts({"error": form})
        return self._with_attempts({"error": encode_exception(error)})


_exchange: ContextVar[_Exchange | None] = ContextVar("stepfork_openai_exchange", default=None)


def _openai() -> Any:
    return sys.modules["openai"]


def _request(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    __tracebackhide__ = True
    run = _session(client)
    if run is None:
        return wrapped(*args, **kwargs)
    if run.action == "replay":
        asked = _asked(client, *args, **kwargs)
        return _Replay(asked, client._prepare_options(asked.options)).answer()
    with _recording(client) as exchange:
        value = wrapped(*args, **kwargs)
    return exchange.done(value)


async def _async_request(wrapped: Callable[..., Awaitable[Any]], client: Any, args: Any, kwargs: Any) -> Any:
    __tracebackhide__ = True
    run = _session(client)
    if run is None:
        return await wrapped(*args, **kwargs)
    if run.action == "replay":
        asked = _asked(client, *args, **kwargs)
        return await _Replay(asked, await client._prepare_options(asked.options)).async_answer()
    with _recording(client) as exchange:
        value = await wrapped(*args, **kwargs)
    return exchange.done(value)


@contextmanager
def _recording(client: Any) -> Iterator[_Exchange]:
    """Has the patches below ``request()`` know the call they work for."""
    exchange = _Exchange(client)
    token = _exchange.set(exchange)
    try:
        yield exchange
    except BaseException as error:
        if exchange.live is not None:
            exchange.live.raised(error)
        raise
    finally:
        _exchange.reset(token)


def _session(client: Any) -> Run | None:
    run = None if active.idle() else driver.session()
    if (run is None or run.action != "replay") and client.__dict__.get("api_key") == PLACEHOLDER:
        raise ConfigError(
            "this OpenAI client was made without a key while replaying, so it cannot send anything; "
            "set OPENAI_API_KEY before the client is made"
        )
    return run


class _Replay:
    """One call on replay: the request as the SDK builds it, the recorded response as the SDK parses it."""

    def __init__(self, asked: _Asked, options: Any) -> None:
        self._asked = asked
        self._options = options
        self._exchange = _Exchange(asked.client, asked.client._build_request(options))

    def answer(self) -> Any:
        __tracebackhide__ = True
        return driver.call(self._exchange, _never, self._parsed)

    async def async_answer(self) -> Any:
        __tracebackhide__ = True
        return await driver.acall(self._exchange, _never, self._parsed)

    def _parsed(self, recorded: Recorded) -> Any:
        """What ``request()`` returns; an awaitable of it for an async client."""
        asked = self._asked
        return asked.client._process_response(
            cast_to=asked.cast_to,
            options=self._options,
            response=_response(self._exchange, recorded),
            stream=asked.stream,
            stream_cls=asked.stream_cls,
            **_retries(asked.client, recorded),
        )


def _retries(client: Any, recorded: Recorded) -> dict[str, int]:
    """How many retries the answer took, for SDKs whose responses say so."""
    attempts = recorded.outcome.get("attempts")
    if isinstance(attempts, list) and _says_retries(type(client)._process_response):
        return {"retries_taken": len(attempts)}
    return {}


@functools.cache
def _says_retries(process_response: Callable[..., Any]) -> bool:
    return "retries_taken" in inspect.signature(process_response).parameters


def _never() -> Any:
    raise ConfigError("the session ended while a call was being answered")


def _response(exchange: _Exchange, recorded: Recorded) -> Any:
    """The recorded response as the SDK's HTTP library would give it; raises the error that was recorded."""
    error = recorded.outcome.get("error")
    if error is not None:
        raise _rebuilt(exchange, error)
    response = message.response(exchange.request, recorded.outcome)
    if response.is_error:
        if not response.is_closed and not hasattr(response, "_content"):
            response.read()
        raise exchange.client._make_status_error_from_response(response) from None
    return response


def _rebuilt(exchange: _Exchange, error: Plain) -> BaseException:
    openai = _openai()
    assert isinstance(error, dict)
    kind = getattr(openai, str(error["class"]).rpartition(":")[2], None)
    if not (isinstance(kind, type) and issubclass(kind, openai.APIConnectionError)):
        return decode_exception(error)
    if issubclass(kind, openai.APITimeoutError):
        timeout: BaseException = kind(request=exchange.request)
        return timeout
    args = error.get("args")
    text = str(args[0]) if isinstance(args, list) and args else "Connection error."
    lost: BaseException = kind(message=text, request=exchange.request)
    return lost


def _build_request(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    request = wrapped(*args, **kwargs)
    exchange = _exchange.get()
    if exchange is not None and exchange.client is client:
        run = driver.session()
        if run is not None:
            exchange.built(request, run)
    return request


def _process_response(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    exchange = _exchange.get()
    if exchange is not None and exchange.client is client:
        exchange.answered(kwargs["response"])
    return wrapped(*args, **kwargs)


def _should_retry(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    exchange = _exchange.get()
    if exchange is not None and exchange.client is client:
        exchange.retried(args[0] if args else kwargs["response"])
    return wrapped(*args, **kwargs)


def _status_error(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    exchange = _exchange.get()
    if exchange is not None and exchange.client is client:
        exchange.response = args[0] if args else kwargs["response"]
    return wrapped(*args, **kwargs)


def _init(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> None:
    if not active.expects_replay() or kwargs.get("api_key") is not None:
        wrapped(*args, **kwargs)
        return
    try:
        wrapped(*args, **kwargs)
    except _openai().OpenAIError:
        # raised for a missing key before anything else was set up, so a second try is safe; what the
        # placeholder does not mend (a missing endpoint) raises again
        wrapped(*args, **{**kwargs, "api_key": PLACEHOLDER})


def _no_token(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    """On replay no provider is asked for a token or key."""
    run = None if active.idle() else driver.session()
    return wrapped(*args, **kwargs) if run is None or run.action != "replay" else PLACEHOLDER


async def _async_no_token(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    run = None if active.idle() else driver.session()
    return await wrapped(*args, **kwargs) if run is None or run.action != "replay" else PLACEHOLDER


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


def _no_validation(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    run = None if active.idle() else driver.session()
    return wrapped(*args, **kwargs) if run is None or run.action != "replay" else None


class OpenAIAdapter:
    """The rows for the OpenAI SDK, 1.40 and later."""

    module = "openai"

    def patches(self) -> Sequence[Patch]:
        """The rows, from the seam outwards: requests, then what asks for keys and tokens."""
        base = "openai._base_client"
        azure = "openai.lib.azure"
        return (
            Patch(f"{base}:SyncAPIClient.request", _request),
            Patch(f"{base}:AsyncAPIClient.request", _async_request),
            Patch(f"{base}:BaseClient._build_request", _build_request),
            Patch(f"{base}:BaseClient._should_retry", _should_retry, optional=True),
            Patch(f"{base}:BaseClient._make_status_error_from_response", _status_error),
            Patch(f"{base}:SyncAPIClient._process_response", _process_response),
            Patch(f"{base}:AsyncAPIClient._process_response", _process_response),
            Patch(f"{base}:BaseClient._validate_headers", _no_validation),
            Patch("openai:OpenAI.__init__", _init),
            Patch("openai:AsyncOpenAI.__init__", _init),
            Patch("openai:OpenAI._refresh_api_key", _no_token, optional=True),
            Patch("openai:AsyncOpenAI._refresh_api_key", _async_no_token, optional=True),
            Patch(f"{azure}:AzureOpenAI.__init__", _init),
            Patch(f"{azure}:AsyncAzureOpenAI.__init__", _init),
            Patch(f"{azure}:AzureOpenAI._get_azure_ad_token", _no_token, optional=True),
            Patch(f"{azure}:AsyncAzureOpenAI._get_azure_ad_token", _async_no_token, optional=True),
            Patch("openai.resources.*:*ConnectionManager.__enter__", _no_websocket),
            Patch("openai.resources.*:*ConnectionManager.__aenter__", _no_websocket),
            Patch("openai.resources.*:*ConnectionManager.enter", _no_websocket),
        )


ADAPTER = OpenAIAdapter()
