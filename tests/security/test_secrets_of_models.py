"""What a model writes, what a provider answers, and the client's own key: none of it reaches a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import ChatServer, completion, event, json_answer

import stepfork

K = "Zk9" + "qP2vTr8LmX4wY7sBn3"
HEX = "f3a91c0d5e7b4826" + "9a0b1c2d3e4f5a6b"
"""No shape tells a key of hexadecimal digits."""
ASKED: Any = [{"role": "user", "content": "log in"}]
LOGIN = json.dumps({"user": "bob", "password": K})
CALL = {"id": "call_1", "type": "function", "function": {"name": "login", "arguments": LOGIN}}


def chunks(*deltas: dict[str, Any]) -> Any:
    whole = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [
        event({**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas
    ]
    return 200, {"content-type": "text/event-stream"}, b"".join(events) + b"data: [DONE]\n\n"


def message(**fields: Any) -> Any:
    answer = completion("")
    answer["choices"][0]["message"].update(fields)
    return json_answer(answer)


RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "login",
            "arguments": LOGIN,
            "status": "completed",
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
PIECES = (LOGIN[:22], LOGIN[22:31], LOGIN[31:])


def said(client: openai.OpenAI, how: str) -> str:
    if how == "responses":
        (item,) = client.responses.create(model="m", input="log in").output
        return item.arguments  # type: ignore[union-attr]
    if how == "responses streamed":
        found = client.responses.create(model="m", input="log in", stream=True)
        return "".join(step.delta for step in found if step.type == "response.function_call_arguments.delta")
    if how.endswith("streamed"):
        stream = client.chat.completions.create(model="m", messages=ASKED, stream=True)
        deltas = [chunk.choices[0].delta for chunk in stream]
        if how == "content streamed":
            return "".join(delta.content or "" for delta in deltas)
        return "".join(delta.tool_calls[0].function.arguments for delta in deltas)  # type: ignore[index, union-attr, misc]
    told = client.chat.completions.create(model="m", messages=ASKED).choices[0].message
    return told.content if how == "content" else told.tool_calls[0].function.arguments  # type: ignore[index, union-attr, return-value]


ANSWERS = {
    "content": message(content=LOGIN),
    "call": message(content=None, tool_calls=[CALL]),
    "content streamed": chunks(*({"content": piece} for piece in PIECES)),
    "call streamed": chunks(
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "login", "arguments": ""},
                }
            ]
        },
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in PIECES),
    ),
    "responses": json_answer(RESPONSE),
    "responses streamed": (
        200,
        {"content-type": "text/event-stream"},
        b"".join(
            event(
                {
                    "type": "response.function_call_arguments.delta",
                    "item_id": "fc_1",
                    "output_index": 0,
                    "delta": piece,
                    "sequence_number": at,
                },
                "response.function_call_arguments.delta",
            )
            for at, piece in enumerate(PIECES)
        ),
    ),
}


@pytest.mark.parametrize("how", ANSWERS)
def test_C112_keys_count_in_the_json_that_a_model_writes(
    server: ChatServer, make_module: Any, tmp_path: Path, how: str
) -> None:
    bank = make_module("def login(user, code):\n    return 1\n")
    path = tmp_path / "run.yaml"
    server.answer = lambda _: ANSWERS[how]
    seen: list[str] = []

    def agent(client: openai.OpenAI) -> None:
        given = json.loads(said(client, how))
        seen.append(given["password"])
        bank.login(given["user"], code=given["password"])
        partial = tmp_path / "run.partial.yaml"
        assert not partial.exists() or K not in partial.read_text(), "it may be killed at any time"

    with stepfork.record(path, tools=[bank.__name__]), openai.OpenAI(base_url=server.url, api_key="k") as one:
        agent(one)
    assert K not in path.read_text()
    with stepfork.replay(path, tools=[bank.__name__]), openai.OpenAI() as another:
        agent(another)
    assert seen == [K, "<secret:password:1>"], "the live run sees the real value"


@pytest.mark.parametrize(
    "answer",
    [
        {"client_secret": K, "expires_at": 1},
        {"client_secret": {"value": K, "expires_at": 1}},
        {"value": "ek_" + "68af296e8e408191a1120ab6383263c2", "expires_at": 1},
        {"sub": {"accessToken": K}, "refresh_token": K, "id_token": K, "password": K, "API-Key": K},
    ],
)
def test_C112_an_answer_that_brings_a_secret_under_a_plain_name(
    server: ChatServer, tmp_path: Path, answer: dict[str, Any]
) -> None:
    path = tmp_path / "run.yaml"
    server.answer = lambda _: json_answer(answer)
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        assert client.post("/realtime/client_secrets", cast_to=object, body={}) == answer
    assert K not in path.read_text()
    assert "68af29" not in path.read_text()
    with stepfork.replay(path), openai.OpenAI() as client:
        assert "<secret:" in str(client.post("/realtime/client_secrets", cast_to=object, body={}))


@pytest.mark.parametrize("form", ["usual", "odd", "streamed"])
def test_C114_tokens_of_text_and_counts_of_them_are_no_secrets(
    server: ChatServer, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "run.yaml"
    spoken = {"content": [{"token": "hello1234", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
    answer = completion("hello1234", usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})
    answer["choices"][0]["logprobs"] = spoken
    text = json.dumps(answer).replace("-0.5", "-5e-1" if form == "odd" else "-0.5")
    streamed = b"".join(
        event(
            {
                "id": "c1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [
                    {"index": 0, "delta": {"content": "hello1234"}, "finish_reason": None, "logprobs": spoken}
                ],
            }
        )
        for _ in range(2)
    )
    server.answer = lambda _: (
        (200, {"content-type": "text/event-stream"}, streamed + b"data: [DONE]\n\n")
        if form == "streamed"
        else (200, {"content-type": "application/json"}, text.encode())
    )

    def agent(client: openai.OpenAI) -> list[str]:
        if form == "streamed":
            chunks = client.chat.completions.create(model="m", messages=ASKED, stream=True, logprobs=True)
            return [chunk.choices[0].logprobs.content[0].token for chunk in chunks]  # type: ignore[index, union-attr]
        told = client.chat.completions.create(model="m", messages=ASKED, logprobs=True).choices[0]
        return [told.logprobs.content[0].token]  # type: ignore[index, union-attr]

    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        live = agent(client)
    assert "<secret:" not in path.read_text()
    with stepfork.replay(path), openai.OpenAI() as client:
        assert agent(client) == live == ["hello1234"] * len(live)


def clients(url: str, key: str | None) -> dict[str, Any]:
    """How a client gets its key."""
    given = key or "x"
    return {
        "key": lambda: openai.OpenAI(base_url=url, api_key=key, max_retries=0),
        "azure": lambda: openai.AzureOpenAI(
            base_url=url, api_key=key, api_version="2024-10-21", max_retries=0
        ),
        "header": lambda: openai.OpenAI(
            base_url=url, api_key="x", default_headers={"X-Api-Key": given}, max_retries=0
        ),
        "cookie": lambda: openai.OpenAI(
            base_url=url, api_key="x", default_headers={"Cookie": f"theme=dark; sid={given}"}, max_retries=0
        ),
    }


@pytest.mark.parametrize("replayed_with", ["the same", "a dummy", "none"])
@pytest.mark.parametrize("how", ["key", "azure", "header", "cookie"])
def test_C112_the_clients_own_key_is_a_secret(
    server: ChatServer, tmp_path: Path, how: str, replayed_with: str
) -> None:
    path = tmp_path / "run.yaml"
    refusal = {"error": {"message": f"Incorrect API key provided: {HEX}", "code": "invalid_api_key"}}
    server.answer = lambda _: json_answer(refusal, 401)

    def agent(client: openai.OpenAI) -> str:
        with pytest.raises(openai.AuthenticationError) as caught:
            client.chat.completions.create(model="m", messages=ASKED)
        return str(caught.value)

    with stepfork.record(path), clients(server.url, HEX)[how]() as client:
        assert HEX in agent(client), "the live run sees the real value"
    assert HEX not in path.read_text()
    key = {"the same": HEX, "a dummy": "x", "none": None}[replayed_with]
    with stepfork.replay(path), clients(server.url, key)[how]() as client:
        assert "<secret:" in agent(client)


def test_C112_a_prompt_that_quotes_the_clients_key(server: ChatServer, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    def agent(key: str) -> None:
        with openai.OpenAI(base_url=server.url, api_key=key) as client:
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": f"is {key} my key?"}]
            )

    with stepfork.record(path):
        agent(HEX)
    assert HEX not in path.read_text()
    for key in (HEX, HEX[::-1]):
        with stepfork.replay(path):
            agent(key)


def test_C114_a_word_as_the_clients_key_is_a_word(server: ChatServer, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    def agent(key: str | None) -> None:
        with openai.OpenAI(base_url=server.url, api_key=key) as client:
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "what is lm-studio?"}]
            )

    with stepfork.record(path):
        agent("lm-studio")
    assert "what is lm-studio?" in path.read_text()
    with stepfork.replay(path):
        agent(None)


NAMES = """
import enum
from dataclasses import dataclass

class Research(Exception):
    pass

class Colour(enum.Enum):
    RED = "red"

@dataclass
class Q7Zx4mW9K2v:
    text: str

def say(value):
    return value

def fails():
    raise KeyError("x") from Research("y")

def gives():
    return [Colour.RED, Q7Zx4mW9K2v("ok"), int]
"""


@pytest.mark.parametrize(
    "token", ["KeyError", "sub_research", "research", "builtins", "Q7Zx4mW9K2v", "gives_1a2b", "Colour.RED"]
)
def test_C114_names_of_classes_stay_whatever_a_secret_is_called(
    make_module: Any, tmp_path: Path, token: str
) -> None:
    tools = make_module(NAMES, "sub_research")
    path = tmp_path / "run.yaml"

    def agent() -> Any:
        given = tools.gives()
        with pytest.raises(KeyError) as caught:
            tools.fails()
        assert type(caught.value.__cause__) is tools.Research
        tools.say({"token": token})
        with pytest.raises(KeyError):
            tools.fails()
        assert tools.gives() == given
        return given

    with stepfork.record(path, tools=["sub_research"]):
        live = agent()
    assert "builtins:KeyError" in path.read_text()
    with stepfork.replay(path, tools=["sub_research"]):
        assert agent() == live


@pytest.mark.parametrize("token", ["assistant", "gpt-4o-mini", "chat.completion", "stop"])
def test_C114_the_constants_of_an_answer_stay(
    server: ChatServer, make_module: Any, tmp_path: Path, token: str
) -> None:
    tools = make_module("def say(value):\n    return 1\n")
    path = tmp_path / "run.yaml"
    server.answer = lambda _: json_answer(completion("hi", model="gpt-4o-mini"))

    def agent(client: openai.OpenAI, token: str) -> Any:
        before = client.chat.completions.create(model="gpt-4o-mini", messages=ASKED)
        tools.say({"token": token})
        after = client.chat.completions.create(model="gpt-4o-mini", messages=ASKED)
        assert before.model_dump() == after.model_dump()
        return after.model_dump()

    with stepfork.record(path, tools=[tools.__name__]):
        live = agent(openai.OpenAI(base_url=server.url, api_key="k"), token)
    assert path.read_text().count("<secret:") == 1
    for given in (token, "a-dummy"):
        with stepfork.replay(path, tools=[tools.__name__]):
            assert agent(openai.OpenAI(), given) == live
