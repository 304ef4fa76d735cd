"""C13: messages whose content is a number or a truth value: what was recorded loads, an edit does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from support import second_reader
from support.agent_loop import client, nobody
from support.chat_server import completion

import stepfork


def refuse(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(400, json={"error": {"message": "content must be a string"}})


def parrot(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=completion(json.loads(request.content)["messages"][-1]["content"]))


def ask(answer: Any, contents: list[Any]) -> list[Any]:
    """One call a content, each with all messages so far."""
    found: list[Any] = []
    messages: list[Any] = []
    with client(answer) as model:
        for content in contents:
            messages.append({"role": "user", "content": content})
            try:
                body = {"model": "m", "messages": messages}
                reply: Any = model.post("/chat/completions", cast_to=object, body=body)
                found.append(reply["choices"][0]["message"]["content"])
            except openai.BadRequestError as error:
                found.append(error.status_code)
    return found


@pytest.mark.parametrize("answer", [refuse, parrot])
def test_C13_contents_that_are_no_texts_are_recorded_and_read(path: Path, answer: Any) -> None:
    contents = ["What is it?", 42, "ok", True, 1.5, False]
    with stepfork.record(path) as run:
        live = ask(answer, contents)
        assert len(run.calls) == len(contents)
    with stepfork.replay(path):
        again = ask(nobody, contents)
    assert list(map(repr, again)) == list(map(repr, live))
    last = stepfork.load(path).calls[-1]
    assert [repr(message["content"]) for message in last.args["messages"]] == list(map(repr, contents))
    assert len(second_reader.read(path)["calls"]) == len(contents)
    command = [sys.executable, "-m", "stepfork", "validate", "--verify-integrity", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    written = path.read_bytes()
    with stepfork.record(path):
        ask(answer, contents)
    assert path.read_bytes() == written


def test_C13_what_a_killed_recorder_left_is_read_as_well(path: Path) -> None:
    left = path.with_name("run.partial.yaml")
    with stepfork.record(path):
        ask(refuse, [42])
        torn = left.read_bytes()
    left.write_bytes(torn)
    (call,) = stepfork.load(left).calls
    assert call.args["messages"] == [{"role": "user", "content": 42}]


def test_C13_an_edit_beside_such_a_message_is_read_and_one_without_it_is_not(path: Path) -> None:
    with stepfork.record(path):
        ask(refuse, ["Say 12.", 42])
    text = path.read_text("utf-8")
    assert text.count("content: Say 12.") == 1
    assert text.count("odd_contents: true") == 1
    path.write_text(text.replace("content: Say 12.", "content: Say 13."), "utf-8")
    with pytest.warns(UserWarning, match="was changed since it was recorded"), stepfork.replay(path):
        assert ask(nobody, ["Say 13.", 42]) == [400, 400]
    path.write_text(text.replace("content: Say 12.", "content: 12"), "utf-8")
    with pytest.raises(stepfork.CassetteError, match="text expected, found a number; add quotes") as caught:
        stepfork.load(path)
    assert caught.value.field == "request.messages[0].content"


def test_C13_a_secret_told_later_leaves_such_a_call_readable(path: Path, make_module: Any) -> None:
    tools = make_module("def log_in(password):\n    return 'in'\n")
    with stepfork.record(path, tools=[tools.__name__]):
        ask(refuse, ["correct horse battery", 42])
        tools.log_in(password="correct horse battery")
    assert "correct horse" not in path.read_text("utf-8")
    with stepfork.replay(path):
        assert ask(nobody, ["correct horse battery", 42]) == [400, 400]
        tools.log_in(password="correct horse battery")
