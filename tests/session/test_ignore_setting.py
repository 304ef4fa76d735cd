"""The setting ``ignore``: places of calls that do not count, and nothing else that does not."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chat_server import ChatServer
from support.examples import examples

import stepfork
from stepfork.core.ignored import Ignored
from stepfork.core.model import Incoming, Tagged


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        """
        class Client:
            def __init__(self, lock):
                self.lock = lock
            def get(self, q):
                return [q]
        def search(q, client=None, options=None):
            return client.get(q) if client else [q]
        async def asearch(q, client=None):
            return client.get(q)
        def pages(q, client):
            yield from client.get(q)
        def note(rows):
            return len(rows)
        """
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def mismatch(agent: Any, path: Path, **settings: Any) -> str:
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path, **settings):
        agent()
    return str(caught.value).splitlines()[0]


def test_a_request_id_in_the_metadata_of_messages(path: Path, server: ChatServer) -> None:
    from openai import OpenAI

    def agent(request_id: str, text: str = "hi", more: dict[str, Any] | None = None) -> None:
        message: Any = {
            "role": "user",
            "content": text,
            "metadata": {"request_id": request_id, **(more or {})},
        }
        OpenAI(base_url=server.url, api_key="none").chat.completions.create(model="m", messages=[message])

    with stepfork.record(path):
        agent("a")
    assert "request_id: a" in path.read_text()
    rule = "llm:messages[*].metadata.request_id"
    for ignore in (
        [rule],
        ["llm:m:messages[0].metadata.request_id"],
        ["llm:chat.completions:messages[*].*.request_id"],
    ):
        with stepfork.replay(path, ignore=ignore) as run:
            agent("b")
        assert run.counts.live == 0
    assert "request 'messages[0].metadata.request_id'" in mismatch(lambda: agent("b"), path)
    for other in (["llm:messages[1].metadata.request_id"], ["llm:other:messages[*].metadata.request_id"]):
        assert "request_id" in mismatch(lambda: agent("b"), path, ignore=other)
    assert "'messages[0].content'" in mismatch(lambda: agent("b", "ho"), path, ignore=[rule])
    assert "'messages[0].metadata.x'" in mismatch(lambda: agent("b", more={"x": 1}), path, ignore=[rule])


def test_a_client_as_an_argument_is_left_out(tools: Any, path: Path) -> None:
    import asyncio

    def agent(lock: Any) -> list[Any]:
        client = tools.Client(lock)
        return [
            tools.search("tea", client),
            asyncio.run(tools.asearch("tea", client=client)),
            list(tools.pages("tea", client)),
        ]

    with (
        pytest.raises(stepfork.RecordingError, match="argument 'client'"),
        stepfork.record(path, tools=[tools.__name__]),
    ):
        agent(threading.Lock())
    path.unlink()
    rules = ["search:client", "tool:asearch:client", "pages:client"]
    with stepfork.record(path, tools=[tools.__name__], ignore=rules):
        live = agent(threading.Lock())
    assert "client" not in path.read_text()
    with stepfork.replay(path, ignore=rules):
        assert agent(object()) == live
    assert "argument 'client'" in mismatch(lambda: agent(None), path)


def test_a_place_in_a_tools_argument(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.search("tea", options={"trace": 1, "deep": [{"id": 1, "n": 2}, {"id": 3, "n": 4}]})
    same: dict[str, Any] = {"deep": [{"n": 2}, {"n": 4, "id": None}], "trace": "other"}
    with stepfork.replay(path, ignore=["search:options.trace", "tool:options.deep[*].id"]):
        assert tools.search("tea", options=same) == ["tea"]
    shorter = {**same, "deep": same["deep"][:1]}
    rules = ["search:options.trace", "search:options.deep[*]"]
    first = mismatch(lambda: tools.search("tea", options=shorter), path, ignore=rules)
    assert first.startswith("call #1: tool 'search' argument 'options.deep[1]'")


def test_parallel_calls_are_told_apart_by_the_rest(tools: Any, path: Path) -> None:
    def agent(order: list[int], salt: str) -> dict[int, Any]:
        found: dict[int, Any] = {}
        started = threading.Barrier(3)  # that one ends before another begins would be taken down

        def work(n: int) -> None:
            started.wait()
            found[n] = tools.search(f"q{n}", options={"id": f"{salt}{n}"})

        threads = [threading.Thread(target=work, args=(n,)) for n in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    with stepfork.record(path, tools=[tools.__name__]):
        live = agent([1, 2, 3], "a")
    with stepfork.replay(path, ignore=["search:options.id"]):
        assert agent([3, 1, 2], "b") == live


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("q", "'q' is no rule; say which calls and where"),
        ("llm:", "'llm:' is no rule"),
        ("llm:a..b", "'..b' is no place"),
        ("llm:messages[x]", "'[x]' is no place"),
        ("search:options[1", "'[1' is no place"),
    ],
)
def test_a_rule_that_is_none(rule: str, says: str, path: Path) -> None:
    with pytest.raises(stepfork.ConfigError) as caught:
        stepfork.replay(path, ignore=[rule])
    assert str(caught.value).startswith("stepfork.replay(): ignore: ")
    assert says in str(caught.value)


KEYS = st.sampled_from(["a", "b", "odd key", "x:y", "[1]", '"'])
VALUES = st.recursive(
    st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def places(value: Any, path: str = "") -> list[str]:
    """Every place of a value, spelled as in a mismatch."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            word = key.isidentifier()
            found += places(item, f"{path}.{key}".lstrip(".") if word else f"{path}[{json.dumps(key)}]")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += places(item, f"{path}[{at}]")
    return found


@examples(100)
@given(value=st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), data=st.data())
def test_what_is_ignored_is_what_is_named(value: dict[str, Any], data: st.DataObject) -> None:
    call = Incoming("tool", "t", value)
    every = places(value)
    path = data.draw(st.sampled_from(every))
    left = Ignored.compile([f"t:{path}"]).without(call)
    inner = [place for place in every if place == path or place.startswith((f"{path}.", f"{path}["))]
    item = path.endswith("]") and path[-2].isdigit() and "[" in path
    gone = set(inner) - ({path} if item and path[path.rindex("[") + 1 : -1].isdigit() else set())
    assert set(places(left.args)) == set(every) - gone
    assert Ignored.compile(["other:a", "llm:a"]).without(call) is call
    assert Ignored.compile(["t:never.there"]).without(call) is call
    assert call.args == value


def test_inside_what_json_lacks() -> None:
    call = Incoming("tool", "t", {"x": Tagged("model", {"class": "m:M", "fields": {"id": 1, "n": 2}})})
    left = Ignored.compile(["t:x.fields.id"]).without(call)
    assert left.args == {"x": Tagged("model", {"class": "m:M", "fields": {"n": 2}})}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("bogus:zzz", "ignore: 'bogus' is no tool"),
        ("tool:saerch:client", "ignore: 'saerch' is no tool"),
        ("no.such:search:client", "ignore: 'no.such:search' is no tool"),
    ],
)
def test_a_rule_for_a_tool_that_is_none_is_an_error(tools: Any, path: Path, rule: str, said: str) -> None:
    meant = "; did you mean 'search'?" if "bogus" not in rule else ""
    with stepfork.record(path, tools=[tools.__name__]):
        tools.search("tea")
    before = path.read_bytes()
    with pytest.raises(stepfork.ConfigError) as caught, stepfork.replay(path, ignore=[rule]):
        tools.search("tea")
    assert str(caught.value) == f"{said}, and {path} has no call of it{meant}"
    with (
        pytest.raises(stepfork.ConfigError) as caught,
        stepfork.record(path, tools=[tools.__name__], ignore=[rule]),
    ):
        tools.search("tea")
    assert str(caught.value) == said + meant
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.glob("*.yaml")] == [path.name]


def test_a_rule_may_name_what_is_recorded_or_not_imported_yet(
    tools: Any, make_module: Any, path: Path
) -> None:
    package = f"{tools.__name__}_more"
    make_module("", name=f"{package}.__init__", load=False)
    make_module("def late(q, client=None):\n    return q\n", name=f"{package}.late", load=False)
    for pattern in (f"{package}.*", f"{package}.late"):
        with stepfork.record(path, tools=[tools.__name__, pattern], ignore=["late:client"]):
            tools.search("tea")
    with stepfork.record(path, tools=[tools.__name__], ignore=[f"{tools.__name__}:search:client"]):
        tools.search("tea")
    with stepfork.replay(path, ignore=["search:client"]):
        tools.search("tea", client=object())


def test_a_rule_for_a_tool_of_a_package_that_is_imported_is_known_to_be_wrong(
    make_module: Any, path: Path
) -> None:
    make_module("", name="pack_of_tools.__init__", load=False)
    late = make_module("def late(q, client=None):\n    return q\n", name="pack_of_tools.late")
    with (
        pytest.raises(stepfork.ConfigError, match=r"'lte' is no tool; did you mean 'late'\?"),
        stepfork.record(path, tools=["pack_of_tools.*"], ignore=["lte:client"]),
    ):
        late.late("tea")


def test_through_shows_the_path_as_it_is_typed(
    tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with stepfork.record("run.yaml", tools=[tools.__name__]):
        tools.search("tea")
    with pytest.raises(stepfork.ConfigError) as caught, stepfork.replay("run.yaml", through=["zzz"]):
        tools.search("tea")
    assert str(caught.value) == "through: 'zzz' is no tool, and run.yaml has no call of it"


def test_a_rule_may_name_a_tool_that_is_decorated_in_a_module_yet_to_come(
    path: Path, make_module: Any
) -> None:
    with stepfork.record(path, ignore=["search:client"]):
        tools = make_module("import stepfork\n@stepfork.tool\ndef search(q, client=None):\n    return q\n")
        tools.search("tea", client=object())
    with stepfork.replay(path, ignore=["search:client"]):
        tools.search("tea")
