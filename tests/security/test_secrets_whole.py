"""A secret in a log line goes whole, whatever characters it holds, or stays whole: no piece of it is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepfork
from stepfork.core.redaction import Redactor

SPECIAL = "'\"<>\\` (){}[],;&|=:!äß"
PIECES = ("Zq8Rf2", "Lw9Xk", "4Tn7Hh")


def as_logged(secret: str) -> dict[str, str]:
    """Texts that a tool might return with a secret in them, by how it stands there."""
    one = json.dumps({"user": "bob", "password": secret})
    return {
        "json in prose": f"log: {one} went",
        "json in json in prose": f"log: {json.dumps({'m': f'got {one} in'})} .",
        "two levels further": f"log {json.dumps(json.dumps(json.dumps(one)))}.",
        "doubly encoded": json.dumps(one),
        "a text encoded": json.dumps(f"see {one}"),
        "a repr": f"log: { ({'password': secret})!r} end",
        "a call": f"auth = dict(password={secret!r})",
        "another key": f"log: {json.dumps({'db_password': secret}, ensure_ascii=False)}",
    }


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module("TEXT = ['']\ndef reads():\n    return TEXT[0]\ndef takes(text):\n    return text\n")


@pytest.mark.parametrize("character", SPECIAL)
def test_C112_a_secret_goes_whole_whatever_it_holds(tools: Any, tmp_path: Path, character: str) -> None:
    secret = character.join(PIECES)
    texts = as_logged(secret)
    if character != " ":
        texts["an environment"] = f"A=1\nDB_PASSWORD={secret}\nB=2"
    for name, text in texts.items():
        path = tmp_path / f"{name}.yaml"
        tools.TEXT[0] = text
        with stepfork.record(path, tools=[tools.__name__]):
            assert tools.reads() == text, "the live run sees real values"
            tools.takes(f"it was {secret}!")
        written = path.read_text("utf-8")
        assert not [piece for piece in PIECES if piece in written], written
        assert "password:2>" not in written, "one secret, one placeholder"
        with stepfork.replay(path):
            answer = tools.reads()
            assert "password:1>" in answer
            placeholder = answer[answer.index("<secret:") : answer.index(":1>") + 3]
            assert tools.takes(f"it was {placeholder}!") == f"it was {placeholder}!"


@pytest.mark.parametrize(
    "text",
    [
        'log: {"password": "Zq8Rf2Lw9\\"Xk4Tn7Hh2"}',
        json.dumps(json.dumps({"password": 'q"Zq8Rf2Lw9Xk4'})),
        'log: {"db_password": "ab\\"cd7Rf2Lw9Xk4Tn"}',
        "log: " + json.dumps({"api_key": "äö7Rf2Lw9Xk4Tn99"}),
        "DB_PASSWORD=Zq8Rf2(Lw9)Xk4Tn7",
        'log: {"password": "correct horse battery"} and on',
        'cut off: {"password": "Zq8Rf2Lw9\\"Xk4Tn',
    ],
)
def test_C112_nothing_of_it_is_left(text: str) -> None:
    redacted = Redactor().redact_text(text)
    assert not [piece for piece in ("Rf2", "Lw9", "Xk4", "Tn7", "horse", "ab") if piece in redacted], redacted
    assert Redactor().redact_text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        'the key: "value" pairs of password: "must have 8 characters, see the page"',
        "PASSWORD=get_password(user)\nTOKEN=tokens2[at].value",
        "PASSWORD=decode64(raw, key)",
        "PASSWORD=${DB_PASSWORD:-none}",
        'log: {"password": "<your password>", "token": null}',
        '"quoted" he said: "token: yes"',
    ],
)
def test_C114_code_and_prose_stay(text: str) -> None:
    assert Redactor().redact_text(text) == text
