"""A finished cassette that is damaged anywhere: the same as before, or an error, or its checksum says so."""

from __future__ import annotations

import datetime
import threading
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chat_server import chat_server
from support.examples import examples

import stepfork
from stepfork.cassette.check import faults_of
from stepfork.cassette.store import StoredCassette
from stepfork.cli import commands

TOOLS = """
import datetime
from decimal import Decimal

BIG = "a text that stands in many places, é and \\U0001f600\\n" * 30
VALUES = [
    (1, 2.5, None, True), {3, 1, 2}, b"bytes", Decimal("1.10"), datetime.date(2026, 11, 29), -0.0,
    10**30,
    [at / 7 for at in range(80)], {1: "one", (2,): "two"}, "no",
    "", "\\x00\\r\\n\\x85", "ends\\n\\n", " - x: y #",
]

def values():
    return VALUES

def big(n):
    return [n, BIG]

def outer(n):
    return [values(), big(n)]

def fails(n):
    raise LookupError("nothing", n)

def items(n):
    yield from range(n)

def login(password):
    return f"hello {password}"
"""


def agent(tools: ModuleType, client: openai.OpenAI) -> list[Any]:
    found: list[Any] = [tools.values(), tools.outer(1), list(tools.items(3)), tools.login("hunter2-and-more")]
    try:
        tools.fails(2)
    except LookupError as error:
        found.append(error.args)
    talk: list[Any] = [{"role": "system", "content": "You help people.\n" * 20}]
    for at in range(4):
        talk.append({"role": "user", "content": f"question {at}"})
        made: Any = client.chat.completions.create(model="m", messages=talk, stream=at == 2)
        said = (
            "".join(part.choices[0].delta.content or "" for part in made)
            if at == 2
            else made.choices[0].message.content
        )
        talk.append({"role": "assistant", "content": said})
        found.append(said)
    threads = [threading.Thread(target=tools.big, args=(n,)) for n in (2, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


class Rich:
    """A cassette with all kinds of documents, and what it says."""

    def __init__(self, path: Path, run: Callable[[], list[Any]]) -> None:
        with stepfork.record(path, name="rich") as session:
            run()
            session.set_output((1, Decimal("2.0"), datetime.date(2026, 1, 1)))
        self.path, self.run = path, run
        self.data = path.read_bytes()
        self.says = said_by(path)
        with stepfork.replay(path):
            self.answers = run()


def said_by(path: Path) -> str:
    """All that a cassette says, to the last bit."""
    cassette = StoredCassette(path)
    return repr((cassette.header, cassette.end, cassette.all_recorded(), cassette.tops))


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("rich")
    (folder / "richtools.py").write_text(TOOLS)
    with pytest.MonkeyPatch.context() as patch, chat_server() as server:
        patch.syspath_prepend(str(folder))
        import richtools  # type: ignore[import-not-found]

        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        stepfork.autopatch(tools=["richtools"])
        made = Rich(folder / "rich.yaml", lambda: agent(richtools, client))
        kinds = (
            b"extends:",
            b"!shared",
            b"wire:",
            b"!tuple",
            b"lane:",
            b"depth:",
            b"yields:",
            b"error:",
            b"!f64",
        )
        assert [kind for kind in (*kinds, b"<secret:", b"append:", b"after") if kind not in made.data] in (
            [],
            [b"after"],
        )
        yield made


def command(*arguments: str) -> int:
    """A command in this process."""
    status = commands.main(list(arguments), prog_name="stepfork", standalone_mode=False)
    return int(status or 0)


def judged(rich: Rich, data: bytes) -> str:
    """What becomes of a file with these bytes: "the same", "refused", or "changed" and known to be so."""
    path = rich.path.with_name("other.yaml")
    path.write_bytes(data)
    fault = None
    try:
        cassette = StoredCassette(path)
    except stepfork.CassetteError as error:
        fault = error
    if fault is not None:
        assert fault.file == path
        assert faults_of(path)[1]
        assert command("validate", str(path)) == 2
        for use in (stepfork.replay(path), stepfork.record(path)):
            with pytest.raises(stepfork.CassetteError), use:
                pass
        with pytest.raises(stepfork.CassetteError):
            stepfork.load(path)
        assert path.read_bytes() == data, "it is never written over"
        return "refused"
    if cassette.verdict == "ok":
        assert said_by(path) == rich.says
        return "the same"
    assert cassette.warnings
    assert list(cassette.problems()) == []
    stepfork.load(path)
    assert (
        command("validate", "--verify-integrity", str(path)) == {"differs": 1, "absent": 3}[cassette.verdict]
    )
    with pytest.raises(stepfork.CassetteError, match="integrity"), stepfork.replay(path, integrity="error"):
        pass
    return "changed"


relaxed = examples(250)


@relaxed
@given(data=st.data())
def test_any_damage_is_harmless_or_found(rich: Rich, data: st.DataObject, capsys: Any) -> None:
    good = rich.data
    at = data.draw(st.integers(0, len(good) - 1), "at")
    kind = data.draw(
        st.sampled_from(["flip", "set", "delete", "insert", "truncate", "repeat", "move", "line"])
    )
    length = data.draw(st.one_of(st.integers(1, 4), st.integers(1, 3000)), "length")
    if kind == "flip":
        damaged = good[:at] + bytes([good[at] ^ 1 << data.draw(st.integers(0, 7))]) + good[at + 1 :]
    elif kind == "set":
        damaged = good[:at] + data.draw(
            st.sampled_from([bytes([at]) for at in b"\n\r\t -:#'\"{}[]&*!|>%@`0\0"])
        )
        damaged += good[at + 1 :]
    elif kind == "delete":
        damaged = good[:at] + good[at + length :]
    elif kind == "insert":
        damaged = good[:at] + data.draw(st.binary(min_size=1, max_size=12)) + good[at:]
    elif kind == "truncate":
        damaged = good[:at]
    elif kind == "repeat":
        damaged = good[: at + length] + good[at:]
    elif kind == "move":
        to = data.draw(st.integers(0, len(good)))
        rest = good[:at] + good[at + length :]
        damaged = rest[:to] + good[at : at + length] + rest[to:]
    else:
        lines = good.splitlines(keepends=True)
        first, second = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.integers(0, len(lines) - 1))
        lines[first], lines[second] = lines[second], lines[first]
        damaged = b"".join(lines)
    if judged(rich, damaged) == "the same":
        assert damaged.replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf") == good


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 1.0])
def test_C90_a_finished_cassette_cut_at_any_of_its_last_bytes_is_refused_or_known(
    rich: Rich, cut: float, capsys: Any
) -> None:
    middle = int(len(rich.data) * cut)
    for at in range(max(0, middle - 60), min(middle, len(rich.data) - 1)):
        verdict = judged(rich, rich.data[:at])
        assert verdict == "refused" or (verdict == "changed" and at > rich.data.rindex(b"\nend:"))


def mixed(data: bytes) -> bytes:
    lines = data.split(b"\n")
    return b"".join(line + (b"\r\n" if at % 3 else b"\n") for at, line in enumerate(lines[:-1]))


WHOLE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "CRLF": (lambda data: data.replace(b"\n", b"\r\n"), "the same"),
    "some lines CRLF": (mixed, "the same"),
    "a byte order mark": (lambda data: b"\xef\xbb\xbf" + data, "the same"),
    "both": (lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"), "the same"),
    "CR only": (lambda data: data.replace(b"\n", b"\r"), "refused"),
    "CR CR LF": (lambda data: data.replace(b"\n", b"\r\r\n"), "changed"),
    "two byte order marks": (lambda data: b"\xef\xbb\xbf" * 2 + data, "changed"),
    "UTF-16": (lambda data: data.decode().encode("utf-16"), "refused"),
    "Latin-1": (lambda data: data.decode().encode("latin-1", "replace"), "refused"),
    "without its last newline": (lambda data: data[:-1], "changed"),
    "with one more newline": (lambda data: data + b"\n", "changed"),
    "with a comment behind": (lambda data: data + b"# more\n", "changed"),
    "with an end mark": (lambda data: data + b"...\n", "changed"),
    "with a start mark": (lambda data: b"---\n" + data, "changed"),
    "with a NUL behind": (lambda data: data + b"\0", "refused"),
    "tabs for blanks": (lambda data: data.replace(b"  ", b"\t"), "refused"),
    "trailing blanks": (lambda data: data.replace(b"name: rich\n", b"name: rich \n"), "changed"),
    "twice in a row": (lambda data: data + data, "refused"),
    "twice with a separator": (lambda data: data + b"---\n" + data, "refused"),
    "the end twice": (lambda data: data + data[data.rindex(b"---\n") :], "refused"),
    "the header twice": (lambda data: data[: data.index(b"---\n") + 4] + data, "refused"),
    "without its header": (lambda data: data[data.index(b"---\n") + 4 :], "refused"),
    "without its end": (lambda data: data[: data.rindex(b"---\n")], "refused"),
    "without its checksum": (lambda data: data[: data.rindex(b"sha256")], "changed"),
    "with the checksum of another": (lambda data: data[:-66] + b"0" * 64 + data[-2:], "changed"),
    "in capitals": (lambda data: data[:-67] + data[-67:].upper(), "changed"),
    "documents the other way round": (
        lambda data: b"---\n".join(reversed(data.split(b"---\n"))),
        "refused",
    ),
}


@pytest.mark.parametrize(("change", "expected"), WHOLE.values(), ids=WHOLE)
def test_C06_what_tools_do_to_whole_files(
    rich: Rich, change: Callable[[bytes], bytes], expected: str, capsys: Any
) -> None:
    """C06: git and editors change line ends, marks and blanks."""
    data = change(rich.data)
    assert judged(rich, data) == expected
    if expected == "refused":
        return
    path = rich.path.with_name("other.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if expected == "changed" else "error")
        with stepfork.replay(path) as run:
            assert rich.run() == rich.answers
    assert run.counts.live == 0
    assert command("seal", str(path)) == 0
    if expected == "changed":
        assert path.read_bytes().count(b"\r") == 0
    assert said_by(path) == rich.says
    assert StoredCassette(path).verdict == "ok"
