"""What an answer brings is handed on: an unchanged program replays, whatever the answer's form (C112)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import ChatServer, completion, json_answer, stream_answer

import stepfork
from stepfork import ReplayMismatchError

ONE, TWO = "Zq81" + "mXp0Lw77uVtR", "Hj3kL9" + "pQ2wEr7tYu5iOa"


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        "ANSWER = [None]\ndef take(x=None, y=None):\n    return 'ok'\ndef give(n=0):\n    return ANSWER[n]\n"
        "def kw(**fields):\n    return 'ok'\n"
    )


def record(path: Path, tools: Any, agent: Callable[[], Any], **settings: Any) -> str:
    with stepfork.record(path, tools=[tools.__name__], **settings):
        agent()
    return path.read_text("utf-8")


def replays(path: Path, agent: Callable[[], Any], **settings: Any) -> None:
    with stepfork.replay(path, **settings):
        agent()


def refused(path: Path, agent: Callable[[], Any], **settings: Any) -> ReplayMismatchError:
    with pytest.raises(ReplayMismatchError) as caught, stepfork.replay(path, **settings):
        agent()
    return caught.value


# -- in bytes ---------------------------------------------------------------------------------------------


def undecodable(told: bytes) -> bytes:
    with pytest.raises(UnicodeDecodeError) as caught:
        told.decode("ascii")
    return caught.value.object


IN_BYTES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "decoded": (f"password={ONE}".encode(), bytes.decode),
    "handed on": ({"password": ONE.encode()}, lambda told: told["password"]),
    "in JSON into a URL": (
        json.dumps({"token": ONE}).encode(),
        lambda told: f"https://h/?q={json.loads(told)['token']}",
    ),
    "its repr": (f"password={ONE}".encode(), repr),
    "in hexadecimal digits": (f"password={ONE}".encode(), bytes.hex),
    "in a file": (io.BytesIO(f"password={ONE}".encode()), lambda told: told.getvalue().decode()),
    "in base64": (
        base64.b64encode(f'{{"password": "{ONE}"}}'.encode()).decode(),
        lambda told: json.loads(base64.b64decode(told))["password"],
    ),
    "in base64 of many lines": (
        {
            "encoding": "base64",
            "content": base64.encodebytes(b"%90d\npassword=%b" % (0, ONE.encode())).decode(),
        },
        lambda told: base64.b64decode(told["content"]).decode().split("=")[1],
    ),
    "in a data URL": (
        "data:text/plain;base64," + base64.b64encode(f"password={ONE}".encode()).decode(),
        lambda told: base64.b64decode(told.partition(",")[2]).decode(),
    ),
    "in base64 in a query, in JSON": (
        json.dumps(
            {"url": "/?state=" + base64.urlsafe_b64encode(b'{"access_token": "%b"}' % ONE.encode()).decode()}
        ),
        lambda told: json.loads(base64.urlsafe_b64decode(json.loads(told)["url"][8:]))["access_token"],
    ),
    "of an error": (f"password={ONE} é".encode(), undecodable),
    "many of them": (
        ("-" * 3000 + f"password={ONE}\n" + "-" * 3000).encode(),
        lambda told: told.decode().strip("-"),
    ),
}


@pytest.mark.parametrize("form", IN_BYTES)
def test_C112_a_secret_that_an_answer_brings_in_bytes_is_handed_on(tools: Any, path: Path, form: str) -> None:
    tools.ANSWER[0], handed = IN_BYTES[form]

    def agent(token: str = "") -> None:
        told = tools.give()
        tools.take(token or handed(told))

    text = record(path, tools, agent)
    assert ONE not in text
    assert base64.b64encode(ONE.encode()).decode()[4:-4] not in text
    replays(path, agent)
    refused(path, lambda: agent(TWO))


# -- what looks like a placeholder ------------------------------------------------------------------------

LIKE_ONE, LIKE_TWO = "<secret:api_key:1>", "<secret:api_key:2>"
UNDER_A_KEY: dict[str, Callable[[str], Any]] = {
    "a field": lambda key: {"api_key": key},
    "a scheme": lambda key: {"Authorization": f"Bearer {key}"},
    "bytes": lambda key: {"api_key": key.encode()},
    "JSON": lambda key: json.dumps({"api_key": key}),
    "several": lambda key: {"api_keys": [key, key]},
    "and a text": lambda key: {"api_key": key, "note": f"not {key}!"},
    "a cookie": lambda key: {"Cookie": f"sid={key}; theme={key}"},
}


@pytest.mark.parametrize("form", UNDER_A_KEY)
@pytest.mark.parametrize("recorded", [ONE, LIKE_ONE, LIKE_TWO, "<secret:api_key:other-1>"])
def test_C112_a_dummy_that_is_written_like_a_placeholder_is_a_dummy(
    tools: Any, path: Path, form: str, recorded: str
) -> None:
    """Alike on recording and replay, as the dummy of a real key, and the other way round."""

    def agent(key: str, other: str = "") -> None:
        tools.take(UNDER_A_KEY[form](key))
        tools.take(f"use {other or key} now")

    record(path, tools, lambda: agent(recorded))
    for value in (recorded, ONE, LIKE_ONE, LIKE_TWO, "<secret:api_key:other-1>", "another-dummy-1"):
        replays(path, lambda value=value: agent(value))  # type: ignore[misc]
        refused(path, lambda value=value: agent(value, TWO))  # type: ignore[misc]


def test_C112_an_answer_that_is_written_like_a_placeholder_is_handed_on(tools: Any, path: Path) -> None:
    tools.ANSWER[:] = [{"api_key": LIKE_ONE}, "see <secret:api_key:7>"]

    def agent(key: str = "") -> None:
        told = tools.give()["api_key"]
        text = tools.give(1)
        tools.take({"api_key": key or told})
        tools.take(f"{key or told} is {text}")
        tools.kw(api_key=text[4:])

    record(path, tools, agent)
    replays(path, agent)
    refused(path, lambda: agent(TWO))


# -- short values and words -------------------------------------------------------------------------------

SHORT: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "digits": ({"token": "493021"}, lambda told: told["token"]),
    "a coin": ({"token": "ETH"}, lambda told: told["token"]),
    "a word": ({"token": "running"}, lambda told: told["token"]),
    "a name": ({"auth_token": "alice"}, lambda told: f"Hello {told['auth_token']}!"),
    "a model": ({"api_key": "GPT4"}, lambda told: [told["api_key"]]),
    "a word of two": ({"password": "hunter2"}, lambda told: told["password"]),
    "a cookie": ({"Cookie": "lang=en"}, lambda told: told["Cookie"].split("=")[1]),
    "JSON in text": ('{"token": "493021"}', lambda told: json.loads(told)["token"]),
    "bytes": ({"token": b"493021"}, lambda told: told["token"]),
    "several": ([{"token": "a1"}, {"token": "b2"}], lambda told: [one["token"] for one in told]),
}


@pytest.mark.parametrize("form", SHORT)
def test_C112_a_short_value_that_an_answer_brings_is_handed_on(tools: Any, path: Path, form: str) -> None:
    tools.ANSWER[0], handed = SHORT[form]

    def agent(other: Any = None) -> Any:
        told = tools.give()
        tools.kw(code=other or handed(told), token="mine")
        return told

    text = record(path, tools, agent)
    assert "mine" not in text
    replays(path, agent)
    refused(path, lambda: agent("no other"))
    tools.take(agent())  # the live run saw what was answered


def test_C112_a_short_value_that_nobody_hands_on_stays_a_secret(tools: Any, path: Path) -> None:
    tools.ANSWER[:] = [{"password": "hunter2", "token": "493021"}, {"Cookie": "lang=en; theme=dark"}]

    def agent() -> None:
        tools.take(tools.give()["token"])
        tools.give(1)

    text = record(path, tools, agent)
    assert text.count("493021") == 2
    assert not [word for word in ("hunter2", "=en", "=dark") if word in text]
    replays(path, agent)


def test_C112_a_short_value_in_clear_is_compared_under_the_key_of_a_secret_too(
    tools: Any, path: Path
) -> None:
    """What an answer says in clear is no secret: another one of them is another call."""
    tools.ANSWER[0] = ["ETH", "BTC"]

    def agent(order: Callable[[list[str]], Any] = list, own: str = "abc") -> None:
        for token in order(tools.give()):
            tools.kw(token=token, amount=1)
        tools.kw(token=own)

    assert "abc" not in record(path, tools, agent)
    replays(path, agent)
    replays(path, lambda: agent(own="xyz"))
    assert refused(path, lambda: agent(reversed)).index == 2


@pytest.mark.parametrize("stream", [False, True])
def test_C112_a_short_value_that_a_model_brings_is_handed_on(
    server: ChatServer, tools: Any, path: Path, stream: bool
) -> None:
    client = openai.OpenAI(base_url=server.url, api_key="x")
    said = '{"token": "493021"}'

    def agent(other: str = "") -> None:
        server.answer = lambda body: (
            stream_answer(*said[:8], said[8:15], said[15:]) if stream else json_answer(completion(said))
        )
        messages: Any = [{"role": "user", "content": "the code?"}]
        for _ in range(2):
            answer: Any = client.chat.completions.create(model="m", messages=messages, stream=stream)
            text = (
                "".join(chunk.choices[0].delta.content or "" for chunk in answer)
                if stream
                else answer.choices[0].message.content
            )
            messages = [*messages, {"role": "assistant", "content": text}]
            tools.kw(code=other or json.loads(text)["token"])

    record(path, tools, agent)
    replays(path, agent)
    refused(path, lambda: agent("493022"))
