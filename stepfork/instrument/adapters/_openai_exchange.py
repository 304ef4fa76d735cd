"""One logical call of the OpenAI SDK, from its request to what answered it. Knows no patch.

Recording takes down the request that the SDK built and the response it is about to parse. Replay builds the
request as the SDK would and has the SDK parse the recorded response.
"""

from __future__ import annotations

import base64
import functools
import inspect
import json
import struct
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from stepfork.cassette.exceptions import class_name, decode_exception, encode_exception
from stepfork.cassette.values import ClassPolicy, Unsupported, type_name
from stepfork.core.model import Incoming, Kind, Plain, Recorded
from stepfork.errors import ConfigError
from stepfork.instrument import driver
from stepfork.instrument import http_message as message
from stepfork.instrument.adapter import Outcome
from stepfork.instrument.http_stream import Tee
from stepfork.session.control import Frame
from stepfork.session.run import Run, Ticket

_ADDED: Final[tuple[tuple[str | None, str, Plain], ...]] = (
    (None, "stream", False),
    ("embeddings", "encoding_format", "base64"),
)
"""What some versions of the SDK send although nobody asked: endpoint (None: all), key, value.

Base64 is how the SDK fetches embeddings that it gives out as lists of floats; a caller who asked for it sends
the same.
"""


def sdk() -> Any:
    """The SDK's package."""
    return sys.modules["openai"]


class Exchange:
    """A request, and the response that answered it. The driver's target."""

    kind: Kind = "llm"

    def __init__(self, client: Any, run: Run, request: Any = None, where: Frame | None = None) -> None:
        self.client = client
        self.request = request
        self.run = run
        self._response: Any = None
        self._where = where
        self._at_work = ExitStack()
        self._live: driver.Live | None = None
        self._attempts: list[Plain] = []  # how the attempts before the last one ended
        self._built = 0
        self._tee: Tee | None = None

    # -- the driver's target ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """``chat.completions``, ``files.content``."""
        return message.name_of(self._path())

    def incoming(self) -> Incoming:
        """The question, without what some versions of the SDK add to it.

        The client's key is no part of it; but a prompt or an answer may quote it.
        """
        key = getattr(self.client, "api_key", None)
        headers = self.request.headers.items()
        self.run.redactor.learn_headers([("api_key", key), *headers] if isinstance(key, str) else headers)
        asked = message.question(self.request, self._path())
        if isinstance(asked.args, dict):
            for name, key, value in _ADDED:
                if name in (None, asked.name) and asked.args.get(key) == value:
                    del asked.args[key]
        return asked

    def begins(self, ticket: Ticket, where: Frame) -> None:
        """Nothing."""

    def seen(self) -> Outcome:
        """Nothing: the SDK changes no argument."""
        return {}

    def again(self, recorded: Recorded) -> None:
        """Nothing."""

    def returned(self, value: Any) -> Outcome | None:
        """The response's content; nothing yet while a stream is being read."""
        tee = self._tee
        if tee is None:
            return self._with_attempts(message.outcome(self._response, self._response.content))
        if not tee.ended:
            return None
        content, end = tee.content(), tee.end()
        if end or message.is_stream(self._response):
            return self._with_attempts(message.stream_outcome(self._response, content, end))
        return self._with_attempts(message.outcome(self._response, content))

    def raised(self, error: BaseException) -> Outcome:
        """The response that the error came out of, or the error where there was none."""
        if self._tee is not None:
            self._tee.stop()
            return self._with_attempts(message.outcome(self._response, self._tee.content()))
        if self._response is not None:
            return self._with_attempts(message.outcome(self._response, self._response.content))
        if isinstance(error, sdk().APIConnectionError):
            form: dict[str, Plain] = {"class": class_name(type(error)), "args": [str(error)]}
            return self._with_attempts({"error": form})
        return self._with_attempts({"error": encode_exception(error, classes=self.run.classes)})

    def _path(self) -> str:
        return message.path_below(str(self.client.base_url), str(self.request.url))

    def _with_attempts(self, outcome: Outcome) -> Outcome:
        attempts: list[Plain] = self._attempts[: self._built - 1]
        return {"attempts": attempts, **outcome} if attempts else outcome

    # -- at work: what is called or started meanwhile is inside of the call -----------------------------

    def __enter__(self) -> None:
        self._at_work.__enter__()
        if self._live is not None:
            self._at_work.enter_context(self._live.inside())

    def __exit__(self, *_: object) -> None:
        self._at_work.close()

    # -- what the patches tell while recording ------------------------------------------------------

    def built(self, request: Any) -> None:
        """The first attempt's request is the question, unless that was asked before; others are retries."""
        if len(self._attempts) < self._built:
            self._attempts.append("no answer")
        self._built += 1
        if self.request is None:
            self.request = request
            step = driver.enter(self, self._where)
            if isinstance(step, driver.Live):
                self.goes_live(step)
                self._at_work.enter_context(step.inside())

    def goes_live(self, step: driver.Live) -> None:
        """The question was asked, and the call is to be made."""
        self._live = step

    @property
    def was_built(self) -> bool:
        """Whether the SDK has got as far as making a request."""
        return self.request is not None

    def retried(self, response: Any) -> None:
        """The SDK asks whether this response is worth another attempt."""
        self._attempts.append(response.status_code)

    def answered(self, response: Any) -> None:
        """This is the response the SDK will parse."""
        self._response = response
        if self._live is not None and not response.is_stream_consumed and not hasattr(response, "_content"):
            tee = self._tee = Tee(response, self._stream_ended, self._live.inside)
            self._live.at_close(tee.close)

    def refused(self, response: Any) -> None:
        """This is the response the SDK will make an error of."""
        self._response = response

    def done(self, value: Any) -> Any:
        """``request()`` returned."""
        if self._live is not None:
            self._live.returned(value)
        elif self.request is None:
            unseen = Unsupported("request", type_name(self.client), "(it sends in a way stepfork cannot see)")
            self.run.refuse(self.kind, "request", unseen)
        return value

    def failed(self, error: BaseException) -> None:
        """``request()`` raised."""
        if self._live is not None:
            self._live.raised(error)

    def _stream_ended(self) -> None:
        assert self._live is not None
        self._live.returned(self._response)


@dataclass(slots=True)
class Asked:
    """The arguments of ``request()``."""

    client: Any
    cast_to: Any
    options: Any
    stream: bool
    stream_cls: Any


def asked(
    client: Any,
    cast_to: Any,
    options: Any,
    remaining_retries: Any = None,
    *,
    stream: bool = False,
    stream_cls: Any = None,
) -> Asked:
    """What the SDK makes of the arguments of ``request()`` first of all."""
    from openai._compat import model_copy

    cast_to = client._maybe_override_cast_to(cast_to, options)
    return Asked(client, cast_to, model_copy(options), stream, stream_cls)


class Replay:
    """One call on replay: the request as the SDK builds it, the recorded response as the SDK parses it."""

    def __init__(self, asked: Asked, options: Any, run: Run) -> None:
        self._asked = asked
        self._options = options
        self._run = run
        self._recorded: Recorded
        self._exchange = Exchange(asked.client, run, asked.client._build_request(options))

    def live(self) -> Exchange | None:
        """Asks the session; gives the exchange of a call that is to be made live.

        Raises:
            StepforkError: a mismatch and its kind.
        """
        __tracebackhide__ = True
        step = driver.enter(self._exchange)
        if isinstance(step, driver.Live):
            self._exchange.goes_live(step)
            return self._exchange
        if not isinstance(step, Recorded):
            raise ConfigError("the session ended while a call was being answered")
        self._recorded = step
        return None

    def answer(self) -> Any:
        """What ``request()`` returns, after `live` gave none."""
        __tracebackhide__ = True
        return driver.answered(self._exchange, self._recorded, self._parsed)

    async def async_answer(self) -> Any:
        """The same of an async client."""
        __tracebackhide__ = True
        return await driver.aanswered(self._exchange, self._recorded, self._parsed)

    def _parsed(self, recorded: Recorded) -> Any:
        """What ``request()`` returns; an awaitable of it for an async client."""
        asked = self._asked
        return asked.client._process_response(
            cast_to=asked.cast_to,
            options=self._options,
            response=self._response(recorded),
            stream=asked.stream,
            stream_cls=asked.stream_cls,
            **_retries(asked.client, recorded),
        )

    def _response(self, recorded: Recorded) -> Any:
        """The recorded response as the SDK's HTTP library would give it; raises the recorded error."""
        client, request = self._asked.client, self._exchange.request
        error = recorded.outcome.get("error")
        if error is not None:
            raise _connection_error(error, request, self._run.classes)
        unread = self._asked.stream or client._should_stream_response_body(request=request)
        read_further = functools.partial(self._run.read_further, recorded)
        outcome = recorded.outcome
        if self._exchange.name == "embeddings":
            outcome = _as_asked(outcome, request)
        response = message.response(request, outcome, unread, read_further)
        if not response.is_success:
            response.read()
            raise client._make_status_error_from_response(response) from None
        return response


def _as_asked(outcome: Outcome, request: Any) -> Outcome:
    """Embeddings in floats for an SDK that asked for no base64, as old ones do where numpy is missing."""
    response = outcome.get("response")
    data = response.get("data") if isinstance(response, dict) else None
    if not isinstance(data, list) or json.loads(request.read()).get("encoding_format") == "base64":
        return outcome
    floats = [{**item, "embedding": _floats(item.get("embedding"))} for item in data]  # type: ignore[dict-item, union-attr]
    return {**outcome, "response": {**response, "data": floats}}  # type: ignore[dict-item]


def _floats(embedding: Plain) -> Plain:
    if not isinstance(embedding, str):
        return embedding
    raw = base64.b64decode(embedding)
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def _retries(client: Any, recorded: Recorded) -> dict[str, int]:
    """How many retries the answer took, for SDKs whose responses say so."""
    attempts = recorded.outcome.get("attempts")
    if isinstance(attempts, list) and _says_retries(type(client)._process_response):
        return {"retries_taken": len(attempts)}
    return {}


@functools.cache
def _says_retries(process_response: Callable[..., Any]) -> bool:
    return "retries_taken" in inspect.signature(process_response).parameters


def _connection_error(error: Plain, request: Any, classes: ClassPolicy) -> BaseException:
    openai = sdk()
    assert isinstance(error, dict)
    kind = getattr(openai, str(error["class"]).rpartition(":")[2], None)
    if not (isinstance(kind, type) and issubclass(kind, openai.APIConnectionError)):
        return decode_exception(error, classes)
    if issubclass(kind, openai.APITimeoutError):
        timeout: BaseException = kind(request=request)
        return timeout
    args = error.get("args")
    text = str(args[0]) if isinstance(args, list) and args else "Connection error."
    lost: BaseException = kind(message=text, request=request)
    return lost
