"""What an answer brings is handed on: an unchanged program replays, whatever the answer's form (C112)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    "of an error": (f"password={ONE} é".encode(), undecodable),
    "many of them": (
        ("-" * 3000 + f"password={ONE}\n" + "-" * 3000).encode(),
        lambda told: told.decode().strip("-"),
    ),
}


@pytest.mark.parametrize("form", IN_BYTES)
def test_C112_a_secret_that_an_answer_brings_in_bytes_is_handed_on(
    tools: Any, path: Path, form: str
) -> None:
    tools.ANSWER[0], handed = IN_BYTES[form]

    def agent(token: str = "") -> None:
        told = tools.give()
        tools.take(token or handed(told))

    text = record(path, tools, agent)
    assert ONE not in text and base64.b64encode(ONE.encode()).decode()[4:-4] not in text
    replays(path, agent)
    refused(path, lambda: agent(TWO))
