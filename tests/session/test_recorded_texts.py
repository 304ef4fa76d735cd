"""Texts of tools and models, recorded and replayed: equal for every reader of the file; edits by hand."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import second_reader
from support.agent_loop import client, nobody
from support.chat_server import completion
from support.examples import examples
from support.texts import SURROGATE_TEXT, TEXT

import stepfork
from stepfork.core.redaction import Redactor

numbers = itertools.count()
SOME = examples(40)
TEXTS = {
    "C02": [
        "a\x85b",
        "a\u2028b\nc",
        "\u2029",
        "\x0b\x0c",
        "\x7f",
        "a\rb",
        "a\r\nb\r\n",
        "\ufeffa",
        "a\x00b",
        "\x1b[0m",
    ],
    "C04": ["#️⃣ 1️⃣ 👩‍👩‍👧 😀", "#️⃣", "e\u0301 \u1112\u1161", "\u200d", "\u202etext"],
    "C08": ["  lead\nline \n\ttab\n\n\n", "\n", " ", "\t", "", "a\n", "a\n\n\n\n", " a ", "\n a", "\ta\n"],
    "C11": ["695e0514", "1.10", "012", "0o17", "0x1F", "1_000", "12:30:45", "1e3", ".nan", "no", "~", "null"],
    "more": [
        "---",
        "--- a\nb",
        "...",
        "%YAML 1.2\n---\n",
        "# a",
        "2024-01-01",
        "12:30",
        "<<",
        "=",
        "- a",
        "a: b",
        "{}",
    ],
    "long": ["word " * 40, "\t" * 200, "line\n" * 40],
    "conflict": ["<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"],
}


def harmless(text: str) -> bool:
    """Whether a text is no secret, and no key of one: those come back as placeholders."""
    return Redactor().redact({text: text}) == {text: text}


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module("bodies = []\ndef echo(value):\n    bodies.append(1)\n    return value\n")


def agent(tools: Any, texts: list[str], answer: Any = None) -> list[Any]:
    """Passes the texts through a tool as value, item and key, and through a model's question and answer."""
    found: list[Any] = [tools.echo({"text": text, "in": [text, {text: text}]}) for text in texts]
    with client(answer) as ask:
        for text in texts:
            messages: Any = [
                {"role": "system", "content": "Say it again."},
                {"role": "user", "content": text},
            ]
            reply = ask.chat.completions.create(model="m", messages=messages)
            found.append(reply.choices[0].message.content)
    return found


def parrot(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=completion(json.loads(request.content)["messages"][-1]["content"]))


def comes_back(tools: Any, path: Path, texts: list[str]) -> None:
    expected: list[Any] = [{"text": text, "in": [text, {text: text}]} for text in texts]
    with stepfork.record(path, tools=[tools.__name__]):
        assert agent(tools, texts, parrot) == [*expected, *texts]
    tools.bodies.clear()
    with stepfork.replay(path):
        assert agent(tools, texts, nobody) == [*expected, *texts]
    assert tools.bodies == []
    written = path.read_text("utf-8")
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        documents = list(yaml.load_all(written, Loader=loader))
        assert [document["result"] for document in documents[1 : len(texts) + 1]] == expected
    assert [call["outcome"]["result"] for call in second_reader.read(path)["calls"][: len(texts)]] == expected


@pytest.mark.parametrize("row", TEXTS)
def test_C02_C04_C08_C11_text_comes_back_for_every_reader(tools: Any, path: Path, row: str) -> None:
    comes_back(tools, path, TEXTS[row])


@SOME
@given(st.lists(TEXT.filter(harmless), min_size=1, max_size=4))
def test_any_text_comes_back_for_every_reader(tools: Any, tmp_path: Path, texts: list[str]) -> None:
    path = tmp_path / f"{next(numbers)}.yaml"
    comes_back(tools, path, texts)
    path.unlink()


@SOME
@given(st.lists(SURROGATE_TEXT.filter(harmless), min_size=1, max_size=4))
def test_any_text_with_lone_surrogates_comes_back(tools: Any, tmp_path: Path, texts: list[str]) -> None:
    path = tmp_path / f"{next(numbers)}.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        live = [tools.echo({text: [text]}) for text in texts]
    with stepfork.replay(path):
        assert [tools.echo({text: [text]}) for text in texts] == live
    assert [call["outcome"]["result"] for call in second_reader.read(path)["calls"]] == live
    path.unlink()


def test_C02_C11_a_python_without_libyaml_reads_the_same(tools: Any, path: Path) -> None:
    texts = [text for row in TEXTS.values() for text in row] + ["\ud83d", "a\\\udc80\n"]
    with stepfork.record(path, tools=[tools.__name__]):
        tools.echo(texts)
    program = (
        "import sys; sys.modules['yaml._yaml'] = sys.modules['_yaml'] = None\n"
        "import stepfork, yaml\n"
        "assert not yaml.__with_libyaml__\n"
        "print(ascii(stepfork.load(sys.argv[1]).calls[0].result))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ascii(texts)


def test_C04_emoji_stand_in_the_file_as_themselves(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        for text in TEXTS["C04"][:2]:
            tools.echo(text)
    written = path.read_text("utf-8")
    assert all(text in written for text in TEXTS["C04"][:2])
    assert "\\U" not in written


def test_C08_text_of_several_lines_is_a_block(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.echo("  lead\nline \n\ttab\n\n\n")
    assert "result: |2+\n    lead\n  line \n  \ttab\n\n\n---\n" in path.read_text("utf-8")


def test_C06_recording_again_writes_LF_and_git_keeps_it(tools: Any, path: Path) -> None:
    def record() -> None:
        with stepfork.record(path, tools=[tools.__name__]):
            tools.echo("a\nb\n")

    record()
    good = path.read_bytes()
    crlf = good.replace(b"\n", b"\r\n")
    path.write_bytes(crlf)
    with stepfork.replay(path):
        assert tools.echo("a\nb\n") == "a\nb\n"
    record()
    assert path.read_bytes() == crlf, "nothing changed but line ends: the file is left alone"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.echo("c\nd\n")
    assert b"\r" not in path.read_bytes()

    def git(*words: str) -> None:
        head = [
            "git",
            "-c",
            "core.autocrlf=true",
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.c",
            "-C",
            str(path.parent),
        ]
        subprocess.run([*head, *words], check=True, capture_output=True, timeout=60)

    path.write_bytes(good)
    path.with_name(".gitattributes").write_text("*.yaml text eol=lf\n")
    git("init", "-q")
    git("add", ".gitattributes", "run.yaml")
    git("commit", "-qm", "x")
    path.unlink()
    git("checkout", "-q", "--", "run.yaml")
    assert path.read_bytes() == good


SAID = "request.messages[0].content"
SAYS = """\
stepfork: 1
name: x
---
llm: chat.completions
request:
  model: m
  messages:
  - role: user
    content: hi
response:
  model: m
  choices:
  - index: 0
    message: {role: assistant, content: hello}
---
end: completed
"""


EDITS = [
    ("content: hi", "content: no", 9, SAID, "ambiguous unquoted value 'no': add quotes"),
    ("content: hi", "content: 1.10", 9, SAID, "'1.10': add quotes"),
    ("content: hi", "content: 2024-01-01", 9, SAID, "'2024-01-01': add quotes"),
    ("content: hi", "content: 12", 9, SAID, "text expected, found a number; add quotes"),
    ("content: hi", "content: true", 9, SAID, "found true or false; add quotes"),
    ("content: hello", "content: off", 14, "response.choices[0].message.content", "'off': add quotes"),
    ("name: x", "name: 1", 2, "name", "text expected, found a number; add quotes"),
    ("  model: m\n  choices", "  model:\n  choices", 11, "response.model", "add quotes, or write null"),
    ("response:", "response: {a: 1}\nresponse:", 11, "response", "duplicate key 'response'"),
    ("    content: hi", "    content: hi\n    content: ho", 10, SAID, "duplicate key"),
    ("  model: m\n  mess", "<<<<<<< HEAD\n  model: m\n=======\n  model: n\n>>>>>>> b\n  mess", 6, "",
     "merge conflict marker '<<<<<<<': resolve the conflict"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "field", "said"), EDITS)
def test_C13_C15_an_edit_that_means_something_else_names_line_and_field(
    path: Path, old: str, new: str, line: int, field: str, said: str
) -> None:
    assert SAYS.count(old) == 1
    path.write_text(SAYS.replace(old, new), "utf-8")
    written = path.read_bytes()
    for read in (lambda: stepfork.load(path), lambda: stepfork.replay(path).__enter__()):
        with pytest.raises(stepfork.CassetteError) as caught:
            read()
        assert said in caught.value.problem
        assert (caught.value.file, caught.value.line) == (path, line)
        assert not field or caught.value.field == field
    assert path.read_bytes() == written


def test_C13_C15_the_command_line_names_line_and_field_of_every_such_edit(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.yaml" for number in range(len(EDITS))]
    for path, (old, new, *_) in zip(paths, EDITS, strict=True):
        path.write_text(SAYS.replace(old, new), "utf-8")
    before = [path.read_bytes() for path in paths]
    command = [sys.executable, "-m", "stepfork", "validate", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    for path, (_, _, line, field, said) in zip(paths, EDITS, strict=True):
        (told,) = [one for one in done.stderr.splitlines() if f"{path.name}:{line}: " in one and said in one]
        assert field in told
    assert "Traceback" not in done.stderr
    assert [path.read_bytes() for path in paths] == before
