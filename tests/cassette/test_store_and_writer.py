"""Cassette files: what is refused, what is kept, and what a killed recording leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork.cassette import integrity
from stepfork.cassette.store import StoredCassette

TOOLS = "def lookup(q):\n    return {'q': q, 'lines': 'one\\ntwo\\n'}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def recorded(path: Path, tools: Any) -> Any:
    with stepfork.record(path, tools=[tools.__name__]) as run:
        for word in ("a", "b", "c"):
            tools.lookup(word)
        run.set_output([1])
    return tools


def agent(tools: Any) -> None:
    for word in ("a", "b", "c"):
        tools.lookup(word)


HEAD = b"stepfork: 1\nname: x\n"
END = b"---\nend: completed\n"
SAYS = b"---\nllm: chat.completions\nrequest: {messages: [{role: user, content: %b}]}\nresponse: 1\n"
TWO = b"---\ntool: t\nresult: 1\nerror: {class: a, args: []}\n"
BOMB = b"---\ntool: t\nresult: {a: &a [1], b: [*a, *a]}\n"
BROKEN = {
    "empty": (b"", "empty"),
    "blank": (b"\n\n", "empty"),
    "no cassette": (b"interactions:\n", "cassette|text expected"),
    "half": (None, "cut off"),
    "not UTF-8": (b"stepfork: 1\nname: \xff\n", "UTF-8"),
    "binary": (bytes(range(256)), "UTF-8"),
    "newer": (b"stepfork: 999\nname: x\n" + END, "999.*reads 1"),
    "not a number": (b"stepfork: one\nname: x\n" + END, "version"),
    "conflict": (HEAD + b"<<<<<<< HEAD\ntools: []\n=======\n>>>>>>> b\n" + END, "conflict"),
    "unknown field": (HEAD + b"naem: y\n" + END, "naem"),
    "wrong type": (HEAD + b"tools: 3\n" + END, "tools"),
    "two outcomes": (HEAD + TWO + END, "outcome"),
    "no outcome": (HEAD + b"---\ntool: t\n" + END, "outcome"),
    "unquoted no": (HEAD + SAYS % b"no" + END, "add quotes"),
    "unquoted number": (HEAD + SAYS % b"12" + END, "add quotes"),
    "duplicate key": (HEAD + b"---\ntool: t\nresult: 1\nresult: 2\n" + END, "duplicate key"),
    "python tag": (HEAD + b"---\ntool: t\nresult: !!python/object:os.system {}\n" + END, "tag"),
    "alias bomb": (HEAD + BOMB + END, "anchor|alias"),
    "orphan child": (HEAD + b"---\ndepth: 1\ntool: t\nresult: 1\n" + END, "depth"),
    "wrong style": (HEAD + b"---\nllm: responses\nresponse: 1\njson: fancy\n" + END, "style"),
    "wrong stream": (HEAD + b"---\nllm: responses\nstream: {rwa: x}\n" + END, "stream.wire"),
    "wrong end": (HEAD + b"---\nend: maybe\n", "completed"),
}


@pytest.mark.parametrize(("data", "said"), BROKEN.values(), ids=BROKEN)
def test_C90_C94_C13_a_broken_file_is_an_error_in_every_mode_and_stays_as_it_is(
    recorded: Any, path: Path, data: bytes | None, said: str
) -> None:
    broken = path.read_bytes()[:200] if data is None else data
    path.write_bytes(broken)
    for opened in (stepfork.replay(path), stepfork.record(path), stepfork.use_cassette(path, mode="auto")):
        with pytest.raises(stepfork.CassetteError, match=said) as caught, opened:
            pass
        assert caught.value.file == path
        assert caught.value.line is not None
    with pytest.raises(stepfork.CassetteError):
        stepfork.load(path)
    assert path.read_bytes() == broken
    assert list(path.parent.glob("run*")) == [path]


def test_C06_line_ends_of_windows_are_no_change(recorded: Any, path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert StoredCassette(path).verdict == "ok"
    with stepfork.replay(path):
        agent(recorded)


def test_an_edited_file_replays_with_a_warning_or_not_at_all(recorded: Any, path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"two", b"2"))
    with pytest.warns(UserWarning, match="was changed since"), stepfork.replay(path):
        agent(recorded)
    with pytest.raises(stepfork.CassetteError, match="checksum"), stepfork.replay(path, integrity="error"):
        pass
    with stepfork.replay(path, integrity="off"):
        agent(recorded)


def test_a_file_without_checksum_counts_as_edited(recorded: Any, path: Path) -> None:
    path.write_text(
        "".join(line for line in path.read_text().splitlines(True) if not line.startswith("sha256"))
    )
    with pytest.warns(UserWarning, match="has no checksum"), stepfork.replay(path):
        agent(recorded)


def test_an_edit_that_breaks_a_later_document_is_found_on_opening(recorded: Any, path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace("q: c", "q: no", 1))
    with pytest.raises(stepfork.CassetteError) as caught, stepfork.replay(path):
        recorded.lookup("a")
    assert caught.value.line == text[: text.index("q: c")].count("\n") + 1


@examples(150)
@given(data=st.data())
def test_a_flipped_byte_never_verifies(recorded: Any, path: Path, data: st.DataObject) -> None:
    good = path.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    flipped = bytearray(good)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    other = path.with_name("flipped.yaml")
    other.write_bytes(flipped)
    try:
        cassette = StoredCassette(other)
    except stepfork.CassetteError:
        return
    assert cassette.verdict != "ok"


@examples(100)
@given(st.integers(0, 10_000))
def test_a_partial_file_cut_anywhere_reads_up_to_the_last_whole_call(
    recorded: Any, path: Path, cut: int
) -> None:
    whole = path.read_bytes()
    end = whole.index(b"end: completed")
    head = whole.index(b"---\n") + 4
    at = head + cut % (end - head + 1)
    partial = path.with_name("cut.partial.yaml")
    partial.write_bytes(whole[:at])
    trajectory = stepfork.load(partial)
    assert trajectory.status == "partial"
    assert len(trajectory.calls) == len(re.findall(rb"\n---(?:\n|\Z)", whole[head:at]))
    assert [call.args["q"] for call in trajectory.calls] == ["a", "b", "c"][: len(trajectory.calls)]


def test_a_killed_recording_leaves_a_readable_partial_and_the_good_cassette(tmp_path: Path) -> None:
    (tmp_path / "slowtools.py").write_text(
        "import time\ndef outer(q):\n    return inner(q)\ndef inner(q):\n    return q\n"
        "def wait():\n    print('waiting', flush=True)\n    time.sleep(60)\n"
    )
    (tmp_path / "program.py").write_text(
        "import stepfork, slowtools\n"
        "with stepfork.record('run.yaml', tools=['slowtools']):\n"
        "    slowtools.outer('a'); slowtools.outer('b'); slowtools.wait()\n"
    )
    path = tmp_path / "run.yaml"
    good = integrity.sealed("stepfork: 1\nname: good\n---\nend: completed\n").encode()
    path.write_bytes(good)
    for number in range(2):
        process = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"waiting\n"
        if number == 0:
            with pytest.raises(stepfork.ConfigError, match="being recorded"), stepfork.record(path):
                pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    trajectory = stepfork.load(tmp_path / "run.partial.yaml")
    assert [(call.name, [child.name for child in call.children]) for call in trajectory.calls] == [
        ("outer", ["inner"]),
        ("outer", ["inner"]),
    ]
    assert trajectory.status == "partial"
    assert (tmp_path / "run.partial.1.yaml").exists(), "a new recording keeps an old partial"
    assert path.read_bytes() == good


def test_concurrent_calls_are_written_the_same_whatever_their_schedule(make_module: Any, path: Path) -> None:
    tools = make_module("import time\ndef slow(n):\n    time.sleep(n)\n    return n\n")
    with stepfork.record(path, tools=[tools.__name__]):
        threads = []
        for seconds in (0.2, 0.1, 0.0):
            threads.append(threading.Thread(target=tools.slow, args=(seconds,)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    assert [call.args["n"] for call in stepfork.load(path).calls] == [0.0, 0.1, 0.2]
    for number, lane in enumerate(("lane: a\nstarted: 3", "lane: b\nstarted: 2", "lane: c\nstarted: 1")):
        assert f"tool: slow\n{lane}\nargs" in path.read_text().split("---\n")[number + 1]
    assert "start:" not in path.read_text()


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(stepfork.CassetteError, match=r"cannot be (written|read)"),
        stepfork.record(tmp_path / "file" / "run.yaml"),
    ):
        pass
    with pytest.raises(stepfork.CassetteError), stepfork.record(tmp_path):
        pass


def test_a_fork_never_writes_the_parents_file(make_module: Any, path: Path) -> None:
    tools = make_module(TOOLS)
    with stepfork.record(path, tools=[tools.__name__]):
        tools.lookup("a")
        child = os.fork()
        if child == 0:
            try:
                tools.lookup("child")
            except stepfork.UnsupportedCallError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        tools.lookup("b")
    assert [call.args["q"] for call in stepfork.load(path).calls] == ["a", "b"]


def test_secrets_reach_no_file_whenever_they_are_found(make_module: Any, path: Path) -> None:
    secret = "sk-" + "z9Y8" * 8
    plain = "hunter2-but-longer"
    tools = make_module(
        f"def first(text):\n    return text\ndef login(password):\n    return {{'token': {secret!r}}}\n"
    )
    with stepfork.record(path, tools=[tools.__name__]) as run:
        tools.first(f"say {plain} and {secret}")
        assert tools.login(plain) == {"token": secret}, "the live run sees real values"
        tools.first(f"again {plain}")
        run.set_output({"said": plain})
    text = path.read_text()
    assert secret not in text
    assert plain not in text, "what was written before it was found to be secret is mended at the end"
    assert "<secret:password:1>" in text
    with stepfork.replay(path) as run:
        tools.first("say dummy-password and " + "sk-" + "q1W2" * 8)
        answer = tools.login("dummy-password")
        tools.first("again dummy-password")
    assert answer["token"].startswith("<secret:")
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.first(f"other {secret}")
    assert secret not in str(caught.value)
