"""Mismatches of long names, keys and paths: below 4 kB, with what differs in sight; and of sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.chat_server import chat_server

import stepfork

LONG_A, LONG_B = "x" * 3000 + "A" + "x" * 3000, "x" * 3000 + "B" + "x" * 3000


def differ(make_module: Any, path: Path, old: Any, new: Any) -> stepfork.ReplayMismatchError:
    tools = make_module("def look(value):\n    return 1\n")
    with stepfork.record(path, tools=[tools.__name__]):
        tools.look(old)
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.look(new)
    assert len(str(caught.value).encode()) < 4_000
    return caught.value


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({LONG_A: 1}, {LONG_A: 2}),
        ({LONG_A: {LONG_B: {LONG_A: 1}}}, {LONG_A: {LONG_B: {LONG_A: 2}}}),
        ({LONG_A: 1}, {LONG_B: 1}),
        ("\U0001f600" * 9000 + "a", "\U0001f600" * 9000 + "b"),
        ({"\U0001f600" * 2000: "\0" * 5000}, {"\U0001f600" * 2000: "\1" * 5000}),
        ([LONG_A] * 50, [LONG_B] * 50),
    ],
    ids=["key", "keys", "key gone", "emoji", "controls", "items"],
)
def test_C81_a_mismatch_is_short_whatever_the_size(make_module: Any, path: Path, old: Any, new: Any) -> None:
    error = differ(make_module, path, old, new)
    assert "call #1: tool 'look' argument 'value" in str(error)


def test_C81_both_sides_are_cut_around_the_difference(make_module: Any, path: Path) -> None:
    lines = str(differ(make_module, path, LONG_A, LONG_B)).splitlines()
    shown = {line.split(":")[0].strip(): line for line in lines}
    assert "xAx" in shown["recorded"]
    assert "xBx" in shown["now"]
    assert "xAx" in lines[0]
    assert "xBx" in lines[0]


def test_C81_long_names_of_tools_are_cut_around_the_difference(make_module: Any, path: Path) -> None:
    names = ["t" * 300 + end for end in ("_old", "_new")]
    tools = make_module("".join(f"def {name}(a):\n    return a\n" for name in names))
    with stepfork.record(path, tools=[tools.__name__]):
        getattr(tools, names[0])(1)
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        getattr(tools, names[1])(1)
    first = str(caught.value).splitlines()[0]
    assert "_old'" in first
    assert "_new'" in first
    assert len(first) < 400


def test_C81_a_long_request_and_a_long_path_too(path: Path) -> None:
    import openai

    with chat_server() as server:
        client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)
        ask = client.chat.completions.create
        with stepfork.record(path):
            ask(model="m", messages=[{"role": "user", "content": "hi"}], metadata={LONG_A[:5000]: "1"})
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        ask(model="m", messages=[{"role": "user", "content": "hi"}], metadata={LONG_A[:5000]: "2"})
    assert len(str(caught.value).encode()) < 4_000
    assert caught.value.path.startswith("metadata")
    assert LONG_A[:5000] in caught.value.path


SETS = {
    "one for another": ({1, 2, 3}, {0, 2, 3}, 1, 0),
    "one more": ({1, 2}, {0, 1, 2}, None, 0),
    "one gone": ({0, 1, 2}, {1, 2}, 0, None),
    "two for two": ({1, 2, 9}, {3, 4, 9}, {1, 2}, {3, 4}),
    "of tuples": ({(1, 2), (5, 6)}, {(1, 3), (5, 6)}, 2, 3),
}


@pytest.mark.parametrize("what", SETS)
@pytest.mark.parametrize("kind", [set, frozenset])
def test_C81_of_two_sets_the_items_that_differ_are_shown(
    make_module: Any, path: Path, what: str, kind: Any
) -> None:
    old, new, expected, actual = SETS[what]
    error = differ(make_module, path, kind(old), kind(new))
    assert error.expected == expected
    assert error.actual == actual


@pytest.mark.parametrize("name", ["looc", "no.such", "module:look"])
def test_through_that_names_no_tool_is_an_error(make_module: Any, path: Path, name: str) -> None:
    tools = make_module("def look(value):\n    return 1\n")
    with stepfork.record(path, tools=[tools.__name__]):
        tools.look(1)
    with (
        pytest.raises(stepfork.ConfigError, match=f"through: '{name}' is no tool"),
        stepfork.replay(path, through=[name]),
    ):
        tools.look(1)
    with stepfork.replay(path, through=["look"]) as run:
        tools.look(1)
    assert run.counts.tool_bodies_executed == 1
    with stepfork.replay(path, through=[f"{tools.__name__}:look"]):
        tools.look(1)
