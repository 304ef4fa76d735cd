"""What a run's calls should have been: each rule holds, or says which call broke it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chat_server import ChatServer
from support.examples import examples

import stepfork
from stepfork.core.model import Call
from stepfork.session.expected_trajectory import ExpectedTrajectory


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        """
        def search(q, limit=10):
            return [q]
        def book(flight, seat=None):
            return {"booked": flight}
        def delete(what):
            return None
        """
    )


@pytest.fixture
def run(tools: Any, tmp_path: Path, server: ChatServer) -> Any:
    """A replayed run: llm, search(rust), search(go), llm, book(7)."""
    from openai import OpenAI

    def agent() -> None:
        client = OpenAI(base_url=server.url, api_key="none")
        for model in ("small", "large"):
            client.chat.completions.create(model=model, messages=[{"role": "user", "content": model}])
            if model == "small":
                tools.search("rust")
                tools.search("go", limit=3)
        tools.book(7, seat={"row": 3, "side": "left"})

    path = tmp_path / "trip.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        agent()
    with stepfork.replay(path) as run:
        agent()
    return run


HOLDS: dict[str, Any] = {
    "called": ["search", "llm", "llm:small", "llm:chat.completions", "chat.completions", "tool:book"],
    "not_called": ["delete", "llm:medium", "http", "http:GET example.org/"],
    "counts": {"search": 2, "llm": 2, "llm:large": 1, "delete": 0},
    "arguments": [
        {"name": "search", "arguments": {"q": "rust", "limit": 10}},
        {"name": "search", "occurrence": 2, "arguments": {"limit": 3}},
        {"name": "book", "arguments": {"seat": {"row": 3}}},
        {"name": "llm", "occurrence": 2, "arguments": {"messages": [{"content": "large"}]}},
    ],
    "order": ["search", "llm:large", "book"],
    "sequence": ["search", "book"],
    "strict_sequence": ["search", "search", "book"],
    "max_steps": 5,
}


@pytest.mark.parametrize("rule", HOLDS)
def test_a_rule_that_holds(run: Any, rule: str) -> None:
    run.expect_trajectory(**{rule: HOLDS[rule]})


def test_all_rules_at_once_and_other_spellings(run: Any) -> None:
    run.expect_trajectory(**HOLDS)
    run.expect_trajectory(arguments={"search": {"q": "rust"}, "book": {"flight": 7}})
    run.expect_trajectory(sequence=["llm", "search", "search", "llm", "book"], order=["search", "search"])
    run.expect_trajectory(strict_sequence=["llm:small", "llm:large"], sequence=[])


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"called": ["delete", "book"]}, "called: 'delete' was never called"),
        ({"called": ["llm:medium"]}, "called: 'llm:medium' was never called"),
        ({"not_called": ["book"]}, "not_called: 'book' was called, by call #5"),
        ({"counts": {"search": 1}}, "counts: 'search' was called 2 times, expected once"),
        ({"counts": {"delete": 2}}, "counts: 'delete' was called 0 times, expected 2 times"),
        (
            {"arguments": {"search": {"q": "go"}}},
            "arguments: call #2 ('search') at 'q': expected \"go\", got \"rust\"",
        ),
        (
            {"arguments": {"search": {"query": "go"}}},
            "arguments: call #2 ('search') at 'query': expected \"go\", got nothing",
        ),
        (
            {"arguments": [{"name": "book", "occurrence": 2, "arguments": {}}]},
            "arguments: 'book' was called once, so there is no call 2 of it",
        ),
        ({"order": ["book", "search"]}, "order: 'search' was not called after 'book' (call #5)"),
        ({"order": ["delete"]}, "order: 'delete' was not called"),
        (
            {"sequence": ["search", "search", "delete"]},
            'sequence: ["search", "search", "delete"] was not called in a row: after \'search\' came book '
            "(call #5), expected 'delete'",
        ),
        ({"sequence": ["book", "search"]}, 'sequence: ["book", "search"] was not called in a row'),
        (
            {"strict_sequence": ["search", "book"]},
            "strict_sequence: expected 'book', got search (call #3)",
        ),
        (
            {"strict_sequence": ["search", "search"]},
            "strict_sequence: expected no more after 2 calls, but call #5 is book",
        ),
        (
            {"strict_sequence": ["llm", "llm", "llm"]},
            "strict_sequence: expected 'llm', but there were no more calls",
        ),
        (
            {"strict_sequence": []},
            "strict_sequence: expected no more after 0 calls, but call #1 is llm:chat.completions",
        ),
        ({"max_steps": 4}, "max_steps: 5 calls were made, expected at most 4"),
    ],
)
def test_a_rule_that_does_not_hold(run: Any, rules: dict[str, Any], says: str) -> None:
    with pytest.raises(AssertionError) as caught:
        run.expect_trajectory(**rules)
    first, *others = str(caught.value).splitlines()
    assert first == f"trajectory mismatch: {says}"
    assert others == ["  calls made: llm:chat.completions, search, search, llm:chat.completions, book"]
    assert not isinstance(caught.value, stepfork.StepforkError)


def test_every_broken_rule_is_named(run: Any) -> None:
    with pytest.raises(AssertionError) as caught:
        run.expect_trajectory(max_steps=1, called=["delete"], not_called=["book", "search"])
    assert [line.strip().partition(":")[0] for line in str(caught.value).splitlines()] == [
        "trajectory mismatch",
        "not_called",
        "not_called",
        "max_steps",
        "calls made",
    ]


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({}, "expected an object with some of called, not_called, counts"),
        ({"call": ["a"]}, "unknown key 'call'; the keys are called, not_called"),
        ({"called": "search"}, "called must be a list of names, not 'search'"),
        ({"called": None}, "called must be a list of names, not null"),
        ({"called": [3]}, "called must hold names of calls, found int"),
        ({"order": [""]}, "order must hold names of calls, found ''"),
        ({"counts": ["search"]}, "counts must be an object of names and numbers, not list"),
        ({"counts": {"search": -1}}, "counts.search must be a whole number from 0 on, not int"),
        ({"counts": {"search": True}}, "counts.search must be a whole number from 0 on, not bool"),
        ({"max_steps": 2.0}, "max_steps must be a whole number from 0 on, not float"),
        ({"arguments": "search"}, "arguments must be a list of objects, not 'search'"),
        ({"arguments": ["search"]}, "arguments[0] must be an object with name, arguments and occurrence"),
        ({"arguments": [{"tool": "a"}]}, "arguments[0]: unknown key 'tool'"),
        ({"arguments": [{"name": "a"}]}, "arguments[0].arguments must be an object, not null"),
        ({"arguments": [{"arguments": {}}]}, "arguments[0].name must hold names of calls, found null"),
        (
            {"arguments": [{"name": "a", "arguments": {}, "occurrence": 0}]},
            "arguments[0].occurrence must be a whole number from 1 on",
        ),
    ],
)
def test_a_rule_that_makes_no_sense(run: Any, rules: dict[str, Any], says: str) -> None:
    with pytest.raises(stepfork.ConfigError) as caught:
        run.expect_trajectory(**rules)
    assert f"run.expect_trajectory(): {says}" in str(caught.value)


def test_only_calls_that_were_reached_count(tools: Any, tmp_path: Path) -> None:
    """A run that broke off checks what it made, not what the cassette holds."""
    path = tmp_path / "short.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.search("rust")
        tools.book(7)
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path) as run:
        tools.search("rust")
    run.expect_trajectory(called=["search"], not_called=["book"], max_steps=1)


NAMES = st.sampled_from(["a", "b", "c"])


@examples(100)
@given(made=st.lists(NAMES, max_size=8), expected=st.lists(NAMES, max_size=4))
def test_sequences_are_what_they_say(made: list[str], expected: list[str]) -> None:
    calls = [Call("tool", name, {}) for name in made]

    def holds(rule: str) -> bool:
        return not ExpectedTrajectory.of({rule: expected}, "here").faults(calls)

    rest = iter(made)
    assert holds("order") == all(name in rest for name in expected)
    rows = [made[at : at + len(expected)] for at in range(len(made) + 1)]
    assert holds("sequence") == (expected in rows)
    assert holds("strict_sequence") == (made == expected)
    assert holds("called") == set(expected).issubset(made)
    assert holds("not_called") == set(expected).isdisjoint(made)
