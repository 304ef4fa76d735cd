"""What of a recording is read, and how much work replaying it is. Counted, never timed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.agent_loop import client, text
from support.sizes import full_size

import stepfork
from stepfork.cassette import integrity, reader
from stepfork.cassette.store import StoredCassette
from stepfork.session import replayer


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The documents that were parsed, in order."""
    found: list[str] = []
    parse = reader.parse_document

    def counting(document: str, **more: Any) -> Any:
        found.append(document)
        return parse(document, **more)

    monkeypatch.setattr(reader, "parse_document", counting)
    return found


def sealed(path: Path, documents: list[str]) -> Path:
    body = "".join(f"{document}---\n" for document in ["stepfork: 1\nname: x\n", *documents])
    path.write_text(integrity.sealed(f"{body}end: completed\n"), "utf-8")
    return path


def test_opening_ten_thousand_calls_reads_what_is_asked_for(tmp_path: Path, parsed: list[str]) -> None:
    one = "llm: responses\nrequest: {{model: m, input: [question {0}]}}\nresponse: {{said: {0}}}\n"
    path = sealed(tmp_path / "run.yaml", [one.format(number) for number in range(10_000)])
    cassette = StoredCassette(path)
    cassette.lanes(cassette.tops)
    assert cassette.recorded(9_999).call.args == {"model": "m", "input": ["question 9999"]}
    assert not cassette.holds_secrets(9_999)
    assert len(parsed) == 3, "the header, the end, the call"


def test_the_last_of_ten_thousand_turns_reads_each_once(tmp_path: Path, parsed: list[str]) -> None:
    first = "llm: responses\nrequest: {model: m, input: [start]}\nresponse: 1\n"
    turn = "llm: responses\nextends: 1\nappend: {{input: [turn {0}]}}\nresponse: 1\n"
    between = "tool: t\nresult: 1\n"
    documents = [first]
    for number in range(1, 10_000):
        documents += [between, turn.format(number)]
    cassette = StoredCassette(sealed(tmp_path / "run.yaml", documents))
    asked = cassette.recorded(len(cassette) - 1).call.args
    assert isinstance(asked, dict)
    assert asked["input"] == ["start", *(f"turn {number}" for number in range(1, 10_000))]
    assert len(parsed) == 10_002, "the header, the end, every turn; not the tools"
    cassette.recorded(5_000)
    assert len(parsed) == 10_002


def test_a_repeated_prompt_makes_no_long_way_to_a_call(tmp_path: Path, parsed: list[str]) -> None:
    path = tmp_path / "run.yaml"
    with client() as ask, stepfork.record(path):
        for number in range(300):
            prompt = {"role": "system", "content": "Be brief, be kind, be right. " * 12}
            question = {"role": "user", "content": text(150, number)}
            ask.chat.completions.create(model="m", messages=[prompt, question])
    del parsed[:]
    cassette = StoredCassette(path)
    cassette.recorded(299)
    assert len(parsed) < 100
    assert path.stat().st_size < 0.75 * full_size(path)


LONG = text(5000, 1)


def work_of_replay(
    path: Path, tools: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int, int]:
    """Documents parsed, matcher calls and calls of any Python function while so many calls are replayed."""
    texts = [f"{number}: {LONG}" for number in range(count)]
    with stepfork.record(path, tools=[tools.__name__]):
        for number in range(count):
            tools.look(number, texts[number])
    parses = matches = calls = 0
    parse, match = reader.parse_document, replayer.match

    def parsing(*args: Any, **more: Any) -> Any:
        nonlocal parses
        parses += 1
        return parse(*args, **more)

    def matching(*args: Any, **more: Any) -> Any:
        nonlocal matches
        matches += 1
        return match(*args, **more)

    def called(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    with monkeypatch.context() as patch, stepfork.replay(path) as run:
        patch.setattr(reader, "parse_document", parsing)
        patch.setattr(replayer, "match", matching)
        sys.setprofile(called)
        try:
            for number in range(count):
                tools.look(number, texts[number])
        finally:
            sys.setprofile(None)
    assert run.counts.substituted == count
    return parses, matches, calls


def test_C128_each_call_parses_one_document_and_is_compared_once(
    tmp_path: Path, make_module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = make_module("def look(number, text):\n    return number\n")
    parses, matches, few = work_of_replay(tmp_path / "few.yaml", tools, 200, monkeypatch)
    assert (parses, matches) == (200, 200)
    parses, matches, many = work_of_replay(tmp_path / "many.yaml", tools, 2000, monkeypatch)
    assert (parses, matches) == (2000, 2000)
    assert many <= 10.5 * few, "ten times as many calls are ten times the work"
