"""Secrets that a later call, an answer or other settings give away: how replay knows them (C112, C120)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork import ReplayMismatchError

ONE, TWO, THREE = "q7ZxT4mWv9KcP2hJ8rLd", "Zk9qP2vTr8LmX4wY7sBn", "Hj3kL9pQ2wEr7tYu5iOa"
OTHER = "Mn4bV6cX8zAs0dFg2hJk"


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        "ANSWER = [None]\ndef takes(value):\n    return 'ok'\ndef asks(value):\n    return ANSWER[0]\n"
    )


def record(path: Path, tools: Any, agent: Callable[[], Any], **rules: Any) -> str:
    with stepfork.record(path, tools=[tools.__name__], **rules):
        agent()
    return path.read_text("utf-8")


def mismatch(path: Path, agent: Callable[[], Any], **rules: Any) -> ReplayMismatchError:
    with pytest.raises(ReplayMismatchError) as caught, stepfork.replay(path, **rules):
        agent()
    assert not [text for text in (ONE, TWO, THREE, OTHER) if text in str(caught.value)]
    assert not [text for text in (ONE, TWO, THREE, OTHER) if text in repr(caught.value.actual)]
    return caught.value


# -- side by side ---------------------------------------------------------------------------------------


def test_C112_secrets_side_by_side_are_told_apart_when_one_of_them_comes(tools: Any, path: Path) -> None:
    def agent(first: str, second: str, then: str = "", last: str = "") -> None:
        tools.takes(f"use {first}{second} now")
        tools.takes(f"use {first}{second} now, once more")
        tools.takes({"password": then or first})
        tools.takes({"token": last or second, "q": f"{first}{second}"})

    text = record(path, tools, lambda: agent(ONE, TWO))
    assert "use <secret:password:1><secret:token:1> now" in text
    for first, second in ((ONE, TWO), ("dummy-one-1", "dummy-two-22")):
        with stepfork.replay(path):
            agent(first, second)
    assert mismatch(path, lambda: agent(ONE, TWO, OTHER)).index == 3
    assert mismatch(path, lambda: agent(ONE, TWO, ONE, OTHER)).index == 4
    assert mismatch(path, lambda: agent("short", "s")).index == 1


@examples(30)
@given(
    st.permutations([ONE, TWO, THREE]),
    st.permutations(["password", "token", "api_key"]),
    st.lists(st.booleans(), min_size=2, max_size=2),
)
def test_C112_several_side_by_side_in_any_order(
    tools: Any, path: Path, values: list[str], keys: list[str], apart: list[bool]
) -> None:
    shown = "".join(value + (" " if gap else "") for value, gap in zip(values, [*apart, False], strict=True))
    by_key = dict(zip(keys, sorted(values), strict=True))

    def agent(values: dict[str, str]) -> None:
        tools.takes(shown)
        for key, value in values.items():
            tools.takes({key: value})

    record(path, tools, lambda: agent(by_key))
    with stepfork.replay(path):
        agent(by_key)
    first, second, _ = by_key
    mismatch(path, lambda: agent({**by_key, first: OTHER}))
    mismatch(path, lambda: agent({**by_key, first: by_key[second], second: by_key[first]}))


# -- what an answer shows -------------------------------------------------------------------------------

TOLD: dict[str, Any] = {
    "under its key": {"password": ONE},
    "JSON text": json.dumps({"password": ONE}),
    "JSON in JSON": json.dumps({"said": json.dumps({"password": ONE})}),
    "prose": f"your password={ONE} is new",
    "a header in text": f"Authorization: Bearer {ONE}",
    "a repr": repr({"api_key": ONE}),
    "a URL": f"https://bob:{ONE}@host/",
    "a cookie in text": f"Set-Cookie: sid={ONE}; Path=/",
    "a cookie": {"Set-Cookie": f"sid={ONE}; Path=/"},
    "Basic": {"Authorization": "Basic " + base64.b64encode(f"bob:{ONE}".encode()).decode()},
    "an environment": f"A=1\nDB_PASSWORD={ONE}\n",
}


@pytest.mark.parametrize("how", TOLD)
def test_C112_what_only_a_later_answer_shows_is_taken(tools: Any, path: Path, how: str) -> None:
    tools.ANSWER[0] = TOLD[how]

    def agent(secret: str) -> None:
        tools.takes(f"log in with {secret}")
        tools.asks("and?")

    assert ONE not in record(path, tools, lambda: agent(ONE))
    for value in (ONE, OTHER):
        with stepfork.replay(path):
            agent(value)
    assert mismatch(path, lambda: agent("x")).index == 1


def test_C112_an_answer_that_only_says_it_again_shows_nothing(tools: Any, path: Path) -> None:
    """Its own form gave it away in the question: no other text serves, although the answer has it too."""
    key = "gh" + "p_" + ONE + "aaaa"
    tools.ANSWER[0] = f"you said {key}"
    record(path, tools, lambda: tools.asks(f"log in with {key}"))
    with stepfork.replay(path):
        tools.asks(f"log in with {key}")
    mismatch(path, lambda: tools.asks(f"log in with {OTHER}"))


# -- blanks around it -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "dummy"),
    [
        ({"api_key": f" {ONE} "}, {"api_key": "x"}),
        ({"api_key": f"{ONE}\n"}, {"api_key": "dummy-key"}),
        ({"Authorization": f"Bearer {ONE}\n"}, {"Authorization": "Bearer x"}),
        ({"api_key": f"{ONE}\n".encode()}, {"api_key": b"x"}),
        ({"Cookie": f" sid={ONE} "}, {"Cookie": "sid=x"}),
        ({"X-Api-Key": [f"{ONE} "]}, {"X-Api-Key": ["x"]}),
        ({"name": "API_KEY", "value": f"{ONE}\n"}, {"name": "API_KEY", "value": "x"}),
        (json.dumps({"api_key": f"{ONE} "}), json.dumps({"api_key": "dummy"})),
    ],
)
def test_C112_blanks_around_a_secret_do_not_count(tools: Any, path: Path, recorded: Any, dummy: Any) -> None:
    assert ONE not in record(path, tools, lambda: tools.takes(recorded))
    for value in (recorded, dummy):
        with stepfork.replay(path):
            tools.takes(value)


# -- other settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "value", "said"),
    [
        ({"redact_keys": ["customer"]}, {"customer": ONE}, "what stands under 'customer'"),
        ({"redact_keys": ["customer"]}, {"n": {"customer": ONE}, "q": f"say {ONE}"}, "under 'customer'"),
        ({"redact_keys": ["customer"]}, json.dumps({"customer": ONE}), "under 'customer'"),
        ({"redact_keys": ["customer"]}, {"customer": ONE.encode()}, "under 'customer'"),
        ({"redact_keys": ["customer"]}, {ONE: 1, "z": {"customer": ONE}}, "under 'customer'"),
        ({"redact_patterns": ["badge (\\w+)"]}, {"q": [f"the badge {ONE} is"]}, "what a pattern found"),
    ],
)
def test_C120_a_replay_without_the_rules_of_the_recording_says_so_and_shows_nothing(
    tools: Any, path: Path, rules: Any, value: Any, said: str
) -> None:
    record(path, tools, lambda: tools.takes(value), **rules)
    with stepfork.replay(path, **rules):
        tools.takes(value)
    for agent in (
        lambda: tools.takes(value),
        lambda: tools.takes([value]),
        lambda: tools.asks(value),
    ):
        error = str(mismatch(path, agent))
        assert said in error
        assert "redact_keys, redact_patterns and redact_allow" in error
    with pytest.raises(ReplayMismatchError) as caught, stepfork.replay(path, **rules):
        tools.takes("something else")
    assert "redact_" not in str(caught.value)


def test_C120_a_call_more_without_the_rules_of_the_recording(tools: Any, path: Path) -> None:
    record(path, tools, lambda: [tools.asks(1), tools.takes({"customer": ONE})], redact_keys=["customer"])
    error = mismatch(path, lambda: [tools.takes({"customer": OTHER}), tools.asks(1)])
    assert "what stands under 'customer'" in str(error)
