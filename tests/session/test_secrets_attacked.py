"""What an attack on secrets and their replay found: which secret is which, and what is said of them."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import openai
import pytest
from support import second_reader
from support.chat_server import ChatServer, completion, json_answer, stream_answer

import stepfork

ALICE, BOB = "Zk9" + "qP2vTr8LmX4wY7sBn3", "Qw7" + "eRt5yUi1oPa9sDf4gHj"
ALICE_JWT, BOB_JWT = ("eyJhbGciOiJIUzI1NiJ9" + f".eyJzdWIiOiIxMjM0In0.{end}" for end in (ALICE, BOB))
UUIDS = [str(uuid.UUID(int=n | 4 << 76 | 8 << 60 | 0xABC << 90)) for n in (1, 2, 3)]

TOOLS = """
TOKENS = {}

def login(user):
    return {"session_token": TOKENS[user]}

def say(what):
    return "said"

def echo(what):
    return {"said": what}

def quoted(what=None):
    return ANSWER

async def aecho(what):
    return {"said": what}
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    made = make_module(TOOLS)
    made.TOKENS |= {"alice": ALICE, "bob": BOB, "alice-jwt": ALICE_JWT, "bob-jwt": BOB_JWT}
    return made


def recorded(path: Path, tools: Any, agent: Callable[[], Any], **settings: Any) -> str:
    with stepfork.record(path, tools=[tools.__name__], **settings):
        agent()
    text = path.read_text("utf-8")
    assert not [token for token in (ALICE, BOB) if token in text]
    return text


def replays(path: Path, agent: Callable[[], Any], **settings: Any) -> None:
    with stepfork.replay(path, **settings):
        agent()


def refused(path: Path, agent: Callable[[], Any], **settings: Any) -> stepfork.ReplayMismatchError:
    """The mismatch, in which neither token is to be read."""
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path, **settings):
        agent()
    shown = f"{caught.value}{vars(caught.value)}"
    assert not [token for token in (ALICE, BOB) if token in shown], shown
    return caught.value


HANDED: dict[str, Callable[[str], Any]] = {
    "header": lambda token: {"Authorization": f"Bearer {token}"},
    "token": lambda token: {"token": token},
    "own key": lambda token: {"session_token": token},
    "json": lambda token: json.dumps({"Authorization": token}),
    "text": lambda token: f"use {token} now",
    "url": lambda token: f"https://h/?q={quote(token, safe='')}",
    "set": lambda token: {token},
    "path": lambda token: Path("/x") / token.replace("/", "_"),
    "base64": lambda token: base64.b64encode(f"user:{token}".encode()).decode(),
    "bytes": str.encode,
    "key": lambda token: {token: 1},
}


@pytest.mark.parametrize("kind", ["", "-jwt"])
@pytest.mark.parametrize("handed", HANDED)
def test_a_token_that_an_answer_brought_is_that_one_only(
    tools: Any, path: Path, handed: str, kind: str
) -> None:
    def agent(who: str) -> None:
        tokens = {user: tools.login(user + kind)["session_token"] for user in ("alice", "bob")}
        tools.say(HANDED[handed](tokens[who]))

    recorded(path, tools, lambda: agent("alice"))
    replays(path, lambda: agent("alice"))
    assert refused(path, lambda: agent("bob")).index == 3


@pytest.mark.parametrize("handed", ["header", "token", "own key", "text"])
def test_what_an_answer_brought_is_no_other_value(tools: Any, path: Path, handed: str) -> None:
    """A dummy is right only where the program had the secret by itself."""

    def agent(token: str = "") -> None:
        brought = tools.login("alice")["session_token"]
        tools.say(HANDED[handed](token or brought))

    recorded(path, tools, agent)
    replays(path, agent)
    refused(path, lambda: agent(BOB))


@pytest.mark.parametrize("dummy", [ALICE, "another-dummy-1", "none"])
def test_a_known_value_keeps_its_placeholder_and_a_dummy_follows_it(
    tools: Any, path: Path, dummy: str
) -> None:
    def agent(key: str, other: str) -> None:
        tools.say({"api_key": key})
        tools.say({"Authorization": f"Bearer {other}", "password": other})

    text = recorded(path, tools, lambda: agent(ALICE, ALICE))
    assert text.count("<secret:api_key:1>") == 3
    replays(path, lambda: agent(dummy, dummy))
    refused(path, lambda: agent(dummy, BOB))
    refused(path, lambda: agent(BOB, dummy))


def test_two_secrets_are_not_one(tools: Any, path: Path) -> None:
    def agent(key: str, password: str) -> None:
        tools.say({"api_key": key})
        tools.say({"password": password})

    recorded(path, tools, lambda: agent(ALICE, BOB))
    replays(path, lambda: agent(BOB, ALICE))
    replays(path, lambda: agent("none", "none"))  # a short dummy serves for all keys
    refused(path, lambda: agent(ALICE, ALICE))


def test_keys_of_one_value_in_either_order(tools: Any, path: Path) -> None:
    recorded(path, tools, lambda: tools.say({"api_key": ALICE, "password": ALICE}))
    replays(path, lambda: tools.say({"password": BOB, "api_key": BOB}))


@pytest.mark.parametrize("first", [False, True])
def test_C114_one_key_under_two_names_in_either_order(tools: Any, path: Path, first: bool) -> None:
    """Siblings that use one key of the environment under two names: whichever comes first."""

    def agent(key: str, delays: tuple[float, float]) -> None:
        async def one(name: str, delay: float) -> None:
            await asyncio.sleep(delay)
            await tools.aecho({name: key})

        async def both() -> None:
            await asyncio.gather(one("api_key", delays[0]), one("password", delays[1]))

        asyncio.run(both())

    recorded(path, tools, lambda: agent(ALICE, (0.02, 0.0) if first else (0.0, 0.02)))
    for delays in ((0.02, 0.0), (0.0, 0.02)):
        for key in (ALICE, BOB, "none"):
            replays(path, lambda key=key, delays=delays: agent(key, delays))


@pytest.mark.parametrize("known", ["in the call", "before"])
@pytest.mark.parametrize("handed", ["base64", "bytes", "key", "set", "text", "json"])
def test_placeholders_compare_by_what_they_are_in_any_legal_order(
    tools: Any, path: Path, handed: str, known: str
) -> None:
    def agent(delays: tuple[float, float], keys: tuple[str, str] = (ALICE, BOB)) -> None:
        async def one(user: str, key: str, delay: float) -> None:
            await asyncio.sleep(delay)
            if known == "before":
                await tools.aecho({"u": user, "token": key})
                await asyncio.sleep(delay)
                await tools.aecho(HANDED[handed](key))
            else:
                await tools.aecho({"token": key, "u": user, "as": HANDED[handed](key)})

        async def both() -> None:
            await asyncio.gather(one("a", keys[0], delays[0]), one("b", keys[1], delays[1]))

        asyncio.run(both())

    recorded(path, tools, lambda: agent((0.01, 0.04)))
    for delays in ((0.04, 0.01), (0.01, 0.04)):
        replays(path, lambda delays=delays: agent(delays))
        replays(path, lambda delays=delays: agent(delays, ("dummy-of-a-1", "dummy-of-b-2")))


LATER: dict[str, Callable[[str], Any]] = {
    "key": lambda key: {"password": key},
    "url": lambda key: f"https://bob:{key}@h/",
    "text": lambda key: f"password={key}",
    "json": lambda key: json.dumps({"password": key}),
    "bytes": lambda key: {"password": key.encode()},
    "name and value": lambda key: {"name": "API_KEY", "value": key},
}


@pytest.mark.parametrize("later", LATER)
def test_a_secret_that_a_later_call_shows(tools: Any, path: Path, later: str) -> None:
    def agent(first: str, then: str) -> None:
        tools.say("log in with " + first)
        tools.say(LATER[later](then))

    recorded(path, tools, lambda: agent(ALICE, ALICE))
    replays(path, lambda: agent(ALICE, ALICE))
    replays(path, lambda: agent(BOB, BOB))
    refused(path, lambda: agent(ALICE, BOB))


def test_a_secret_that_only_an_answer_or_the_output_shows(tools: Any, path: Path) -> None:
    def agent() -> None:
        tools.say(f"use {ALICE}")
        tools.login("alice")

    recorded(path, tools, agent)
    replays(path, agent)
    with stepfork.record(path, tools=[tools.__name__]) as run:
        tools.say(f"use {ALICE}")
        run.set_output({"token": ALICE})
    assert ALICE not in path.read_text("utf-8")
    replays(path, lambda: tools.say(f"use {ALICE}"))


@pytest.mark.parametrize("drift", ["please log in with {}", "log in with {} please", "login {}", "{}"])
def test_C120_no_text_at_the_place_of_a_secret_is_shown(tools: Any, path: Path, drift: str) -> None:
    def agent(text: str) -> None:
        tools.say({"q": [text.format(ALICE)], "raw": text.format(ALICE).encode()})
        tools.say({"password": ALICE})

    recorded(path, tools, lambda: agent("log in with {}"))
    replays(path, lambda: agent("log in with {}"))
    refused(path, lambda: agent(drift))
    refused(path, lambda: tools.say({"q": {"log in": ALICE}, "raw": b""}))


def test_secrets_in_the_arguments_of_tool_calls(server: ChatServer, path: Path) -> None:
    client = openai.OpenAI(base_url=server.url, api_key="x")

    def ask(key: str) -> None:
        server.answer = lambda body: json_answer(completion("done"))
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "f", "arguments": json.dumps({"api_key": key})},
        }
        messages: Any = [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ]
        client.chat.completions.create(model="m", messages=messages)

    def agent(*keys: str) -> None:
        for key in keys:
            ask(key)

    with stepfork.record(path):
        agent(ALICE, BOB)
    replays(path, lambda: agent(ALICE, BOB))
    replays(path, lambda: agent(BOB, ALICE))
    refused(path, lambda: agent(ALICE, ALICE))


def test_a_secret_in_the_query_and_in_the_body(server: ChatServer, path: Path) -> None:
    client = openai.OpenAI(base_url=server.url, api_key="x")

    def agent(query: str, body: str) -> None:
        server.answer = lambda body: json_answer(completion("ok"))
        messages: Any = [{"role": "user", "content": "my key " + body}]
        client.chat.completions.create(model="m", messages=messages, extra_query={"api_key": query})

    with stepfork.record(path):
        agent(ALICE, ALICE)
    assert ALICE not in path.read_text("utf-8")
    replays(path, lambda: agent(ALICE, ALICE))
    replays(path, lambda: agent(BOB, BOB))
    refused(path, lambda: agent(ALICE, BOB))


def test_C120_another_secret_is_called_one(tools: Any, path: Path) -> None:
    def agent(*keys: str) -> None:
        for key in keys:
            tools.say({"api_key": key})

    recorded(path, tools, lambda: agent(ALICE, BOB, ALICE))
    found = refused(path, lambda: agent("dummy-of-a-1", "dummy-of-b-2", "dummy-of-b-2"))
    assert (found.expected, found.actual) == ("<secret:api_key:1>", "<secret:api_key:2>")
    found = refused(path, lambda: agent("dummy-of-a-1", "dummy-of-b-2", "dummy-of-c-3"))
    assert (found.expected, found.actual) == ("<secret:api_key:1>", "<secret:api_key:other-3>")


TYPED = "<secret:api_key:1>"


def test_a_text_that_looks_like_a_placeholder_is_itself(tools: Any, path: Path) -> None:
    tools.ANSWER = {"text": f"see {TYPED} or <={TYPED[1:]}", "raw": TYPED.encode(), TYPED: 1}

    def agent(text: str = TYPED) -> Any:
        return tools.quoted({"q": f"what is {text}", "raw": text.encode(), text: 1})

    text = recorded(path, tools, agent)
    assert "what is <=secret:api_key:1>" in text
    assert TYPED not in text
    with stepfork.replay(path):
        assert agent() == tools.ANSWER
    for other in ("<secret:api_key:2>", "<=secret:api_key:1>", "<secret:api_key:other-1>"):
        refused(path, lambda other=other: agent(other))
    raw = base64.b64encode(TYPED.encode()).decode()
    (read,) = second_reader.read(path)["calls"]
    said = second_reader.as_it_was(read["outcome"]["result"])
    assert said == {**tools.ANSWER, "raw": {"\0bytes": raw}}
    (call,) = stepfork.load(path).calls
    assert (call.args["what"]["q"], call.result) == (f"what is {TYPED}", tools.ANSWER)


def test_what_looks_like_a_placeholder_is_no_secret_and_the_other_way_round(tools: Any, path: Path) -> None:
    def agent(text: str) -> None:
        tools.say({"api_key": ALICE})
        tools.say(f"use {text}")

    for then, now in ((TYPED, ALICE), (ALICE, TYPED)):
        recorded(path, tools, lambda then=then: agent(then))
        replays(path, lambda then=then: agent(then))
        refused(path, lambda now=now: agent(now))


def test_what_an_answer_quotes_may_be_handed_on_where_it_brought_the_secret_too(
    tools: Any, path: Path
) -> None:
    tools.ANSWER = {"token": ALICE, "help": "write <secret:token:1>"}

    def agent() -> None:
        answer = tools.quoted()
        tools.say({"Authorization": answer["token"], "help": answer["help"]})

    recorded(path, tools, agent)
    replays(path, agent)


def test_a_stream_that_says_what_looks_like_a_placeholder(server: ChatServer, path: Path) -> None:
    client = openai.OpenAI(base_url=server.url, api_key="x")

    def agent() -> str:
        server.answer = lambda body: stream_answer("see <sec", "ret:api_key", ":1> and ", TYPED, " now")
        chunks = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "help"}], stream=True
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    with stepfork.record(path):
        live = agent()
    assert TYPED in live
    with stepfork.replay(path):
        assert agent() == live


@pytest.mark.parametrize("brought", [str, str.encode, uuid.UUID])
@pytest.mark.parametrize(
    "spelled", [str, str.upper, lambda text: uuid.UUID(text).hex, lambda text: uuid.UUID(text).hex.upper()]
)
def test_an_id_that_an_answer_brought_in_another_spelling(
    tools: Any, path: Path, spelled: Callable[[str], str], brought: Callable[[str], Any]
) -> None:
    tools.ANSWER = [brought(text) for text in UUIDS]

    def agent(number: int) -> None:
        found = tools.quoted()[number]
        tools.say(spelled(found.decode() if isinstance(found, bytes) else str(found)))

    rules: Any = {"normalize": {"uuid": True}}
    recorded(path, tools, lambda: agent(0), **rules)
    replays(path, lambda: agent(0), **rules)
    refused(path, lambda: agent(1), **rules)


def test_an_id_of_the_program_is_one_in_every_spelling(tools: Any, path: Path) -> None:
    def agent(first: str, then: str) -> None:
        tools.say(first)
        tools.say(uuid.UUID(then).hex)

    rules: Any = {"normalize": {"uuid": True}}
    recorded(path, tools, lambda: agent(UUIDS[0], UUIDS[0]), **rules)
    replays(path, lambda: agent(UUIDS[1], UUIDS[1]), **rules)
    refused(path, lambda: agent(UUIDS[1], UUIDS[2]), **rules)
