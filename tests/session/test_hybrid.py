"""Mode ``hybrid`` through the real SDK: chosen LLM calls are sent, all else is frozen and no tool runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import Answer, ChatServer, chat_server, completion, json_answer, stream_answer

import stepfork

TOOLS = """
    ran = []
    def look_up(topic, limit=3):
        ran.append(topic)
        return f"{topic}: 3 hits"
    def delete(topic):
        ran.append("delete " + topic)
"""


def plan(body: dict[str, Any]) -> Answer:
    """Names as the topic whatever the prompt ends with; a prompt that says ``stream`` is answered so."""
    topic = body["messages"][-1]["content"].split()[-1]
    if body.get("stream"):
        return stream_answer(topic)
    return json_answer(completion(topic, model=body["model"]))


@pytest.fixture
def server() -> Any:
    with chat_server(plan) as running:
        yield running


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


class Agent:
    """Asks which topic, looks it up, and asks for a summary."""

    def __init__(self, server: ChatServer, tools: Any, **client: Any) -> None:
        self.tools = tools
        self.how = {"base_url": server.url, "api_key": "k", "max_retries": 0, **client}

    def ask(self, prompt: str, model: str = "m", **more: Any) -> str:
        with openai.OpenAI(**self.how) as client:
            said = client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": prompt}], **more
            )
        return str(said.choices[0].message.content)

    def run(self, prompt: str = "topic: tea", model: str = "m") -> str:
        found = self.tools.look_up(self.ask(prompt, model))
        return self.ask(f"sum up: {found}", "small")


@pytest.fixture
def agent(server: ChatServer, tools: Any, path: Path) -> Agent:
    made = Agent(server, tools)
    with stepfork.record(path, tools=[tools.__name__]) as run:
        assert made.run() == "hits"
    assert (run.spending.requests, run.spending.tokens) == (2, 14)
    tools.ran.clear()
    server.asked.clear()
    return made


def test_llm_calls_run_live_with_changed_requests_and_tools_stay_frozen(
    agent: Agent, server: ChatServer, path: Path
) -> None:
    before = path.read_bytes()
    with stepfork.replay(path, mode="hybrid", live="llm") as run:
        assert agent.run("I changed the prompt. topic: tea") == "hits"
    assert [body["messages"][0]["content"] for body in server.bodies] == [
        "I changed the prompt. topic: tea",
        "sum up: tea: 3 hits",
    ]
    assert agent.tools.ran == []
    assert path.read_bytes() == before
    assert list(path.parent.glob("*.yaml")) == [path]
    assert run.counts == stepfork_counts(recorded=3, substituted=1, live=2)
    assert run.live_calls == [1, 3]
    assert [(call.kind, call.name) for call in run.calls] == [
        ("llm", "chat.completions"),
        ("tool", "look_up"),
        ("llm", "chat.completions"),
    ]
    assert run.calls[0].args["messages"][0]["content"] == "I changed the prompt. topic: tea"
    assert run.calls[0].result["choices"][0]["message"]["content"] == "tea"
    assert (run.spending.requests, run.spending.tokens, run.tokens) == (2, 14, 0)


def stepfork_counts(**counts: int) -> Any:
    from stepfork.session.run import Counts

    return Counts(**counts)


@pytest.mark.parametrize(
    ("live", "sent"),
    [
        ((), ["m", "small"]),
        ("llm:small", ["small"]),
        (["llm:small", "llm"], ["m", "small"]),
        (["llm:small", "llm:m"], ["m", "small"]),
        ("llm:chat.completions", ["m", "small"]),
    ],
)
def test_selectors(live: Any, sent: list[str], agent: Agent, server: ChatServer, path: Path) -> None:
    with stepfork.replay(path, mode="hybrid", live=live) as run:
        agent.run()
    assert [body["model"] for body in server.bodies] == sent
    assert run.counts.live == len(sent)
    assert run.counts.substituted == 3 - len(sent)


@pytest.mark.parametrize(
    ("live", "hint"),
    [
        ("llm:nothing", "it"),
        ("llm:embeddings", "it"),
        (["llm:small", "llm:nothing"], "it"),
        ("llm:smal", "did you mean 'llm:small'? It"),
        ("llm:SMALL", "did you mean 'llm:small'? It"),
        ("llm:chat.completion", "did you mean 'llm:chat.completions'? It"),
    ],
)
def test_a_selector_that_names_no_call_is_an_error(live: Any, hint: str, agent: Agent, path: Path) -> None:
    with (
        pytest.raises(stepfork.ConfigError) as caught,
        stepfork.replay(path, mode="hybrid", live=live) as run,
    ):
        agent.run()
    named = live if isinstance(live, str) else live[1]
    assert str(caught.value) == (
        f"live: {named!r} names no LLM call that was made, and none in {path}; "
        f"{hint} has 'llm:chat.completions', 'llm:m', 'llm:small'"
    )
    assert run.fault is not None


def test_a_selector_may_name_what_is_only_recorded_or_only_made(
    agent: Agent, server: ChatServer, path: Path
) -> None:
    with stepfork.replay(path, mode="hybrid", live=["llm:m", "llm:n"]) as run:
        agent.run(model="n")
    assert run.live_calls == [1]
    assert [body["model"] for body in server.bodies] == ["n"]


def test_a_recording_without_llm_calls_has_none_that_is_live(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.look_up("tea")
    with (
        pytest.raises(stepfork.ConfigError, match=r"run\.yaml, which has no LLM call$"),
        stepfork.replay(path, mode="hybrid", live="llm"),
    ):
        tools.look_up("tea")
    with stepfork.replay(path, mode="hybrid"):
        tools.look_up("tea")


def test_the_agents_own_failure_comes_first(agent: Agent, path: Path) -> None:
    with pytest.raises(ZeroDivisionError), stepfork.replay(path, mode="hybrid", live="llm:nothing"):
        agent.run()
        1 / 0


def test_a_call_that_is_not_chosen_stays_strict(agent: Agent, server: ChatServer, path: Path) -> None:
    with (
        pytest.raises(stepfork.ReplayMismatchError, match=r"^call #1: .*'messages\[0\].content'"),
        stepfork.replay(path, mode="hybrid", live="llm:small"),
    ):
        agent.run("another prompt: tea")
    assert server.hits == 0


def test_another_model_may_be_asked_at_a_place(agent: Agent, server: ChatServer, path: Path) -> None:
    with stepfork.replay(path, mode="hybrid", live="llm:big") as run:
        agent.run("shorter: tea", model="big")
    assert [body["model"] for body in server.bodies] == ["big"]
    assert run.live_calls == [1]


def test_other_arguments_out_of_a_live_answer_are_refused_before_the_body(agent: Agent, path: Path) -> None:
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path, mode="hybrid"):
        agent.run("topic: coffee")
    text = str(caught.value)
    assert text.startswith("call #2: tool 'look_up' argument 'topic': expected \"tea\", got \"coffee\"\n")
    assert "  what differs is said in the live answer of call #1\n" in text
    assert agent.tools.ran == []


@pytest.mark.parametrize("change", ["new", "reordered", "left out"])
def test_a_changed_sequence_of_tools_is_refused(
    change: str, agent: Agent, server: ChatServer, path: Path
) -> None:
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path, mode="hybrid"):
        if change == "new":
            agent.ask("topic: tea")
            agent.tools.delete("tea")
        elif change == "reordered":
            agent.tools.look_up("tea")
        else:
            agent.ask("topic: tea")
            agent.ask("sum up")
    number = 1 if change == "reordered" else 2
    assert str(caught.value).startswith(f"call #{number}: expected ")
    assert agent.tools.ran == []
    assert server.hits == (0 if change == "reordered" else 1)


def test_one_llm_call_more_is_refused_and_not_sent(agent: Agent, server: ChatServer, path: Path) -> None:
    with (
        pytest.raises(stepfork.ReplayMismatchError, match="the recording ends after call #3") as caught,
        stepfork.replay(path, mode="hybrid"),
    ):
        agent.run()
        agent.ask("one more")
    assert "call #3 was answered live; the difference may come of its answer" in str(caught.value)
    assert server.hits == 2


def test_another_endpoint_at_the_place_is_refused(agent: Agent, server: ChatServer, path: Path) -> None:
    with (
        pytest.raises(stepfork.ReplayMismatchError, match=r"^call #1: expected llm 'chat.completions'"),
        stepfork.replay(path, mode="hybrid"),
        openai.OpenAI(**agent.how) as client,
    ):
        client.embeddings.create(model="m", input="x")
    assert server.hits == 0


def test_a_call_left_out_is_left_over(agent: Agent, path: Path) -> None:
    with (
        pytest.raises(stepfork.ReplayMismatchError, match=r"^call #2: expected tool 'look_up' but the"),
        stepfork.replay(path, mode="hybrid"),
    ):
        agent.ask("topic: tea")


def test_a_frozen_call_that_quotes_a_live_answer_says_so(
    agent: Agent, server: ChatServer, path: Path
) -> None:
    quoted = path.with_name("quoted.yaml")
    with stepfork.record(quoted):
        agent.ask("sum up: " + agent.ask("topic: tea"), "small")
    with (
        pytest.raises(stepfork.ReplayMismatchError) as caught,
        stepfork.replay(quoted, mode="hybrid", live="llm:m"),
    ):
        agent.ask("sum up: " + agent.ask("topic: extraordinary-coffee"), "small")
    assert "what differs is said in the live answer of call #1" in str(caught.value)


# -- how a live call runs -----------------------------------------------------------------------------


def test_retries_are_real_and_counted(agent: Agent, server: ChatServer, path: Path) -> None:
    answers = [json_answer({"error": {"message": "busy"}}, 503, **{"retry-after-ms": "1"})] * 2
    server.respond = lambda asked: answers.pop() if answers else plan(asked.json)
    agent.how["max_retries"] = 3
    with stepfork.replay(path, mode="hybrid") as run:
        agent.run()
    assert server.hits == run.spending.requests == 4
    assert run.counts.live == 2
    assert [headers["x-stainless-retry-count"] for headers in server.headers] == ["0", "1", "2", "0"]


def test_a_live_refusal_is_the_agents_to_see(agent: Agent, server: ChatServer, path: Path) -> None:
    server.respond = lambda asked: json_answer({"error": {"message": "slow down", "code": "rate"}}, 429)
    with stepfork.replay(path, mode="hybrid") as run:
        with pytest.raises(openai.RateLimitError, match="slow down"):
            agent.ask("topic: tea")
        server.respond = lambda asked: plan(asked.json)
        agent.tools.look_up("tea")
        agent.ask("sum up")
    assert run.counts.live == 2
    assert run.live_calls == [1, 3]


def test_a_lost_connection_is_the_agents_to_see(agent: Agent, server: ChatServer, path: Path) -> None:
    server.stop()
    with pytest.raises(openai.APIConnectionError), stepfork.replay(path, mode="hybrid") as run:
        agent.run()
    assert run.spending.requests == 1
    assert run.calls[0].error["class"] == "openai:APIConnectionError"


def test_the_real_key_is_sent_and_none_is_shown(agent: Agent, server: ChatServer, path: Path) -> None:
    key = "sk-" + "a1B2" * 10
    server.respond = lambda asked: json_answer(
        completion(f"your key is {asked.headers['authorization'][7:]}")
    )
    agent.how["api_key"] = key
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path, mode="hybrid") as run:
        agent.run()
    assert server.headers[0]["authorization"] == f"Bearer {key}"
    assert key not in str(caught.value)
    assert key not in repr(run.calls)
    assert "your key is <secret:" in run.calls[0].result["choices"][0]["message"]["content"]


def test_a_client_without_a_key_is_refused_when_it_would_send(
    agent: Agent, server: ChatServer, path: Path
) -> None:
    agent.how["api_key"] = None
    with (
        pytest.raises(stepfork.ConfigError, match=r"made live .* has no key; set OPENAI_API_KEY"),
        stepfork.replay(path, mode="hybrid"),
        contextlib.suppress(Exception),
    ):  # an agent that swallows everything changes nothing
        agent.run()
    assert server.hits == 0
    with (
        pytest.raises(stepfork.ConfigError, match="names no LLM call"),  # at the end: nothing asked for a key
        stepfork.replay(path, mode="hybrid", live="llm:other"),
    ):
        assert agent.run() == "hits"


def test_keys_and_tokens_are_fetched_for_live_calls_only(server: ChatServer, path: Path) -> None:
    fetched: list[str] = []

    def token() -> str:
        fetched.append("token")
        return "t" * 8

    def go(*models: str) -> None:
        base = server.url.removesuffix("/v1")
        with openai.AzureOpenAI(
            azure_endpoint=base, api_version="2024-10-21", azure_ad_token_provider=token, max_retries=0
        ) as client:
            for model in models:
                client.chat.completions.create(model=model, messages=[{"role": "user", "content": "tea"}])

    with stepfork.record(path):
        go("m", "small")
    assert len(fetched) == 2
    with stepfork.replay(path, mode="hybrid", live="llm:small") as run:
        go("m", "small")
    assert len(fetched) == 3
    assert run.live_calls == [2]
    assert server.headers[-1]["authorization"] == "Bearer tttttttt"


@pytest.mark.parametrize("read", ["all", "part", "none"])
def test_streams(read: str, agent: Agent, server: ChatServer, path: Path) -> None:
    def go(prompt: str) -> list[str]:
        with openai.OpenAI(**agent.how) as client:
            stream = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": prompt}], stream=True
            )
            said = []
            if read != "none":
                for chunk in stream:
                    said.append(chunk.choices[0].delta.content)
                    if read == "part":
                        break
            stream.close()
        return said

    with stepfork.record(path):
        go("one tea")
    server.respond = lambda asked: stream_answer("oat", "meal")
    with stepfork.replay(path, mode="hybrid") as run:
        said = go("two oats")
        assert said == {"all": ["oat", "meal"], "part": ["oat"], "none": []}[read]
    assert run.counts.live == 1
    assert run.calls[0].result == "".join(said)


def test_tokens_that_no_answer_says_are_unknown_and_not_none(agent: Agent, path: Path) -> None:
    def go(*models: str, **more: Any) -> None:
        with openai.OpenAI(**agent.how) as client:
            for model in models:
                said = client.chat.completions.create(
                    model=model, messages=[{"role": "user", "content": "tea"}], **more
                )
                list(said)

    with stepfork.record(path):
        go("m", "n", stream=True)
    with stepfork.replay(path, mode="hybrid", live="llm:m") as run:
        go("m", "n", stream=True)
    assert run.spending.text() == "1 request sent, tokens unknown (1 answer does not say them)"
    assert run.spending.tokens_shown == "unknown"
    with stepfork.replay(path, mode="hybrid") as run:
        go("m", stream=True)
        go("n")
    assert run.spending.text() == "2 requests sent, at least 7 tokens spent (1 answer does not say them)"
    assert run.spending.tokens_shown == "at least 7"
    assert run.spending.json()["answers_without_tokens"] == 1


def test_a_stream_says_its_tokens_if_it_was_asked_to(agent: Agent, server: ChatServer, path: Path) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}
    last = json.dumps({**completion(""), "object": "chat.completion.chunk", "choices": [], "usage": usage})
    server.respond = lambda asked: stream_answer("oat", "meal", end=f"data: {last}\n\ndata: [DONE]\n\n")

    def go() -> None:
        with openai.OpenAI(**agent.how) as client:
            list(client.chat.completions.create(model="m", messages=[], stream=True))

    with stepfork.record(path) as recorded:
        go()
    with stepfork.replay(path, mode="hybrid") as run:
        go()
    with stepfork.replay(path) as frozen:
        go()
    assert recorded.spending.tokens == run.spending.tokens == frozen.tokens == 42
    assert frozen.spending.tokens == run.tokens == 0


def test_async_and_parallel_calls_take_the_places_of_their_tasks(
    agent: Agent, server: ChatServer, tools: Any, path: Path
) -> None:
    async def one(client: Any, prompt: str) -> str:
        said = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])
        return str(tools.look_up(said.choices[0].message.content))

    async def go(*prompts: str) -> list[str]:
        async with openai.AsyncOpenAI(**agent.how) as client:
            return await asyncio.gather(*(one(client, prompt) for prompt in prompts))

    topics = ["tea", "rye", "oat", "fig"]
    with stepfork.record(path, tools=[tools.__name__]):
        asyncio.run(go(*topics))
    tools.ran.clear()
    # in another order of tasks too: a live call does not tell them apart, the tool that follows does
    for order in (topics, topics[::-1]):
        server.asked.clear()
        with stepfork.replay(path, mode="hybrid") as run:
            said = asyncio.run(go(*(f"changed: {topic}" for topic in order)))
        assert said == [f"{topic}: 3 hits" for topic in order]
        assert tools.ran == []
        assert (run.counts.live, run.counts.substituted) == (4, 4)
        assert server.hits == 4


def test_a_cancelled_live_call(agent: Agent, server: ChatServer, path: Path) -> None:
    import threading

    hold = threading.Event()

    async def go(timeout: float | None) -> str:
        async with openai.AsyncOpenAI(**agent.how) as client:
            call = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "a tea"}])
            try:
                said = await asyncio.wait_for(call, timeout)
            except TimeoutError:
                return "gave up"
        return str(said.choices[0].message.content)

    with stepfork.record(path):
        asyncio.run(go(None))
    body = json.dumps(completion("late")).encode()
    server.respond = lambda asked: (200, {"content-type": "application/json"}, [body[:1], hold, body[1:]])
    with stepfork.replay(path, mode="hybrid") as run:
        assert asyncio.run(go(0.05)) == "gave up"
    assert run.counts.live == 1
    assert run.calls[0].result is None
    hold.set()


def test_the_responses_api(server: ChatServer, path: Path) -> None:
    def answer(text: str) -> Answer:
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        usage = {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11}
        return json_answer(
            {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [item], "usage": usage}
        )

    def go(question: str) -> str:
        with openai.OpenAI(base_url=server.url, api_key="k") as client:
            return client.responses.create(model="m", input=question).output_text

    server.respond = lambda asked: answer("then")
    with stepfork.record(path):
        go("old")
    server.respond = lambda asked: answer("now")
    with stepfork.replay(path, mode="hybrid") as run:
        assert go("new") == "now"
    assert (run.spending.input_tokens, run.spending.output_tokens) == (5, 6)


def test_only_live_calls_pass_the_network_guard(
    agent: Agent, server: ChatServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    here = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **more: here if host == "model.test" else real(host, *rest, **more),
    )
    agent.how["base_url"] = f"http://model.test:{port}/v1"
    with stepfork.replay(path, mode="hybrid") as run:
        agent.run()
        with pytest.raises(stepfork.BlockedNetworkError, match=r"model\.test"):
            socket.getaddrinfo("model.test", port)
    assert server.hits == 2
    assert list(run.blocked) == [f"model.test:{port}"]


def test_inside_a_body_that_runs_calls_are_live_too(
    agent: Agent, server: ChatServer, path: Path, make_module: Any
) -> None:
    research = make_module(
        """
        ask = None
        def research(topic):
            return ask("about " + topic)
        """
    )
    research.ask = lambda prompt: agent.ask(prompt)
    with stepfork.record(path, tools=[research.__name__]):
        research.research("tea")
    research.ask = lambda prompt: agent.ask("changed: " + prompt)
    server.asked.clear()
    with stepfork.replay(path, mode="hybrid", through="research") as run:
        assert research.research("tea") == "tea"
    assert server.hits == run.spending.requests == 1
    with stepfork.replay(path, mode="hybrid"):
        research.research("tea")
    assert server.hits == 1


# -- settings -----------------------------------------------------------------------------------------


def test_a_missing_cassette_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(stepfork.CassetteNotFoundError),
        stepfork.replay(tmp_path / "none.yaml", mode="hybrid"),
    ):
        pass
    with (
        pytest.raises(stepfork.CassetteNotFoundError),
        stepfork.use_cassette(tmp_path / "none.yaml", mode="hybrid"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("live", ["search", "tool:search", "llm:", "llm: m", "http:GET a/b", "llms"])
def test_what_names_no_llm_call(live: str, path: Path) -> None:
    with pytest.raises(stepfork.ConfigError, match="'llm' means all of them"):
        stepfork.replay(path, mode="hybrid", live=live)


def test_live_is_refused_where_nothing_goes_live(path: Path) -> None:
    with pytest.raises(stepfork.ConfigError, match="it needs mode='hybrid'"):
        stepfork.replay(path, live="llm")
    with pytest.raises(stepfork.ConfigError, match="the modes are replay, hybrid"):
        stepfork.replay(path, mode="record")  # type: ignore[arg-type]
