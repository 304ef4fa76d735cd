"""Whichever lines of control make calls, and however these overlap: every request comes back as it was."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.cassette import frame
from stepfork.cassette.check import faults_of
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.values import IMPORTED
from stepfork.cassette.writer import Writer
from stepfork.core.canonical import canonical_text
from stepfork.core.lines import Line, Scope
from stepfork.core.model import Incoming
from stepfork.core.redaction import Redactor
from stepfork.session.recorder import Recorder
from stepfork.session.ticket import Ticket

PROMPTS = ["You write. " * 40, "You find faults. " * 80, "Go on."]
SECRET = "hunter2hunter2"


class Program:
    """Makes calls at random, in several lines and inside of tools, and knows what it asked."""

    def __init__(self, path: Path, choose: random.Random) -> None:
        self.choose = choose
        self.scope = Scope()
        self.recorder = Recorder(Writer(path, frame.Header("x")), Redactor(), self.scope, IMPORTED)
        self.lines: list[tuple[Line, Ticket | None]] = [(self.scope.main, None)]
        self.histories: dict[Line, list[Any]] = {}
        self.open: list[Ticket] = []
        self.asked: dict[int, Any] = {}
        self.ended: set[int] = set()

    def step(self) -> None:
        act = self.choose.random()
        line, parent = self.choose.choice(self.lines)
        if act < 0.1:
            self.lines.append((line.fork(), parent))
        elif act < 0.15:
            self.lines.append((self.scope.stranger(), None))
        elif act < 0.25:
            self._begin(Incoming("tool", "t", {"n": self.choose.randrange(3)}), line, parent)
        elif act < 0.7:
            history = self.histories.setdefault(line, [self.choose.choice(PROMPTS)])
            if self.choose.random() < 0.1:
                del history[self.choose.randrange(len(history)) :]
            history.append(self.choose.choice([*PROMPTS, "More.", f"It is {SECRET}."]))
            args = {"model": "m", "messages": list(history)}
            if self.choose.random() < 0.1:
                args["n"] = self.choose.randrange(2)
            self._begin(Incoming("llm", "responses", args), line, parent)
        elif act < 0.72:
            self._begin(Incoming("tool", "log_in", {"password": SECRET}), line, parent)
        elif self.open:
            ticket = self.open.pop(self.choose.randrange(len(self.open)))
            answer = "response" if ticket.call.kind == "llm" else "result"
            self.recorder.finish(ticket, {answer: {"n": ticket.start, "text": self.choose.choice(PROMPTS)}})
            self.ended.add(ticket.start)

    def _begin(self, call: Incoming, line: Line, parent: Ticket | None) -> None:
        ticket = Ticket(call, parent, line)
        self.recorder.begin(ticket)
        self.open.append(ticket)
        self.asked[ticket.start] = call.args
        if call.kind == "tool":
            self.lines.append((ticket.scope.main, ticket))


def check(path: Path, program: Program, *, redacted: bool) -> int:
    """Every call that ended has the request it was made with; gives how many did."""
    count = 0
    for recorded in StoredCassette(path).all_recorded():
        if recorded.unfinished:
            continue
        count += 1
        answer: Any = recorded.outcome.get("response") or recorded.outcome["result"]
        asked, found = canonical_text(program.asked[answer["n"]]), canonical_text(recorded.call.args)
        assert found.replace("<secret:password:1>", SECRET) == asked
        assert not redacted or SECRET not in found
    return count


@examples(100)
@given(st.integers(0, 10**9), st.integers(1, 60))
def test_every_request_comes_back(seed: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, partial = Path(folder, "run.yaml"), Path(folder, "run.partial.yaml")
        program = Program(path, random.Random(seed))
        for at in range(steps):
            program.step()
            if at % 7 == 0:
                check(partial, program, redacted=False)
        known = program.recorder._redactor.count > 0
        program.recorder.close(frame.End("completed"))
        assert check(path, program, redacted=known) == len(program.ended)
        assert (SECRET in path.read_text("utf-8")) <= (not known)
        cassette, faults = faults_of(path)
        assert (cassette is not None, faults) == (True, [])


@pytest.mark.parametrize("seed", range(5))
def test_the_same_program_gives_the_same_file(tmp_path: Path, seed: int) -> None:
    texts = []
    for name in ("a", "b"):
        program = Program(tmp_path / f"{name}.yaml", random.Random(seed))
        for _ in range(150):
            program.step()
        program.recorder.close(frame.End("completed"))
        texts.append((tmp_path / f"{name}.yaml").read_text("utf-8"))
    assert texts[0] == texts[1]
    assert "extends: 1" in texts[0]
    assert "!shared" in texts[0]
