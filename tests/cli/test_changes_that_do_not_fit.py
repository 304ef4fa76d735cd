"""C13, C90: what a cassette says a tool did to its arguments must fit them, in every mode and command."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import stepfork
from stepfork import cli
from stepfork.cassette import integrity

HEAD = "stepfork: 1\nname: x\nentrypoint: given_tools:run\n---\n"
END = "---\nend: completed\n"
MODULE = """
from dataclasses import dataclass

@dataclass
class Cart:
    items: list
    owner: str = "me"

@dataclass
class Basket:
    items: list

def touch(x):
    return None

def walk(x):
    yield 1
    yield 2

def grow(rows, more):
    next(rows)
    more.append(9)
    more.append(9)

def write(stream):
    stream.write(b"abc")

def tell(rows, names, stream, key):
    rows[0]["key"] = key
    names[1] = key
    stream.write(key)
    stream.seek(0)

def write_twice(stream):
    stream.write("abc")
    yield 1
    stream.seek(1)
    yield 2

def run():
    return 1
"""
BASKET = "!dataclass {class: 'given_tools:Basket', fields: {items: [1]}}"
CART = "!dataclass {class: 'given_tools:Cart', fields: {items: [1], owner: me}}"
ARRAY = "!array {dtype: int64, values: [1, 2]}"
LISTS = "args: {x: [[1], [2]]}\nchanged: {x: [[1, 3], [2]]}\n"

WRONG = {
    # what is left
    "closed iterator": ("args: {x: [1, 2]}\nleft: {x: closed}", "left.x", "cannot be closed"),
    "more than there is": ("args: {x: [1, 2]}\nleft: {x: 5}", "left.x", "at most 2"),
    "far more": ("args: {x: [1, 2]}\nleft: {x: 99999999999}", "left.x", "at most 2"),
    "text": ("args: {x: [1, 2]}\nleft: {x: all}", "left.x", "count or 'closed'"),
    "of a number": ("args: {x: 1}\nleft: {x: 0}", "left.x", "no iterator"),
    "of a mapping": ("args: {x: {a: 1}}\nleft: {x: 0}", "left.x", "no iterator"),
    "of nobody": ("args: {x: [1]}\nleft: {z: 0}", "left.z", "no argument"),
    "of an item of no tuple": ("args: {x: [[1]]}\nleft: {'x[0]': 0}", "left.x[0]", "no argument"),
    "of an item that is none": ("args: {x: !tuple [[1]]}\nleft: {'x[1]': 0}", "left.x[1]", "no argument"),
    "of an item with less": ("args: {x: !tuple [[1]]}\nleft: {'x[0]': 2}", "left.x[0]", "at most 1"),
    # what was written
    "bytes to text": (
        "args: {x: abc}\nleft: {x: 0}\nwritten: {x: !bytes aaaa}",
        "written.x",
        "text expected",
    ),
    "text to bytes": (
        "args: {x: !bytes aaaa}\nleft: {x: 0}\nwritten: {x: abc}",
        "written.x",
        "bytes expected",
    ),
    "a sequence": ("args: {x: abc}\nleft: {x: 0}\nwritten: {x: [1]}", "written.x", "text expected"),
    "to an iterator": ("args: {x: [1]}\nleft: {x: 0}\nwritten: {x: [1]}", "written.x", "no buffer"),
    "no base64": ("args: {x: !bytes aaaa}\nleft: {x: 0}\nwritten: {x: !bytes '*'}", "written.x", "!bytes"),
    "left more than written": ("args: {x: ''}\nleft: {x: 9}\nwritten: {x: abc}", "left.x", "at most 3"),
    "left more bytes": (
        "args: {x: !bytes ''}\nleft: {x: 9}\nwritten: {x: !bytes aaaa}",
        "left.x",
        "at most 3",
    ),
    "written and closed": ("args: {x: ''}\nleft: {x: closed}\nwritten: {x: a}", "left.x", "count expected"),
    # what changed
    "a mapping for a list": ("args: {x: [1]}\nchanged: {x: {a: 1}}", "changed.x", "makes a mapping"),
    "a tuple for a list": ("args: {x: [1]}\nchanged: {x: !tuple [1]}", "changed.x", "!tuple"),
    "a text for a list": ("args: {x: [1]}\nchanged: {x: a}", "changed.x", "makes text"),
    "a text": ("args: {x: a}\nchanged: {x: b}", "changed.x", "no call can change"),
    "a longer tuple": ("args: {x: !tuple [1]}\nchanged: {x: !tuple [1, 2]}", "changed.x", "stays as it is"),
    "an item of a tuple": ("args: {x: !tuple [1]}\nchanged: {x: !tuple [2]}", "changed.x[0]", "no call"),
    "a frozenset": ("args: {x: !frozenset [1]}\nchanged: {x: !frozenset [2]}", "changed.x", "stays"),
    "an item of another name": ("args: {x: [1]}\nchanged: {'x[0]': [1]}", "changed.x[0]", "no argument"),
    "another shape": (
        f"args: {{x: {ARRAY}}}\nchanged: {{x: {ARRAY[:-1].replace('2', '2, 3')}}}}}",
        "changed.x",
        "in place",
    ),
    "another dtype": (
        f"args: {{x: {ARRAY}}}\nchanged: {{x: {ARRAY.replace('64', '32')}}}",
        "changed.x",
        "in place",
    ),
    "another class": (
        f"args: {{x: {CART}}}\nchanged: {{x: {BASKET}}}",
        "changed.x",
        "of another class",
    ),
    "a field less": (
        f"args: {{x: {CART}}}\nchanged: {{x: {CART.replace(', owner: me', '')}}}",
        "changed.x",
        "'owner' is missing",
    ),
    "a field more": (
        f"args: {{x: {CART}}}\nchanged: {{x: {CART.replace('me', 'me, b: 1')}}}",
        "changed.x",
        "no field 'b'",
    ),
    "a tag that does not fit": (f"args: {{x: {CART}}}\nchanged: {{x: !dataclass 3}}", "changed.x", "mapping"),
    # which of them stands where
    "kept at no place": (f"{LISTS}kept: {{'x[99999999]': x}}", "kept.x[99999999]", "is at"),
    "kept of no place": (f"{LISTS}kept: {{'x[0]': 'x[5]'}}", "kept.x[0]", '"x[5]" in the arguments'),
    "kept of a scalar": (f"{LISTS}kept: {{'x[0]': 'x[1][0]'}}", "kept.x[0]", "in the arguments"),
    "kept at an attribute": (f"{LISTS}kept: {{x.__class__: x}}", "kept.x.__class__", "is at"),
    "kept at nothing": (f"{LISTS}kept: {{'': ''}}", "kept.", "is at"),
    "replaced at no place": (f"{LISTS}replaced: ['x[7]']", "replaced[0]", "is at"),
}


def as_step(text: str) -> str:
    """The same as what the first step of a generator did."""
    args, _, rest = text.partition("\n")
    return f"tool: walk\n{args}\nyields: [1, 2]\nsteps:\n- step: 1\n  " + rest.replace("\n", "\n  ")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "given_tools.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "given_tools", raising=False)
    import given_tools  # type: ignore[import-not-found]

    return given_tools


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("form", ["function", "generator"])
def test_C13_C90_what_does_not_fit_the_argument_is_an_error_with_its_field(
    tools: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, form: str
) -> None:
    text, field, said = WRONG[what]
    call = f"tool: touch\n{text}\nresult: null" if form == "function" else as_step(text)
    field = field if form == "function" else f"steps[0].{field}"
    path = tmp_path / "x.yaml"
    data = f"{HEAD}{call}\n{END}"
    for written in (data, integrity.sealed(data)):
        path.write_text(written)
        for name in ("validate", "seal", "replay"):
            assert command(name, "x.yaml") == 2, name
            shown = capsys.readouterr()
            told = shown.err + shown.out
            assert "Traceback" not in told
            assert field in told, (name, told)
            assert said in told, (name, told)
            assert path.read_text() == written, name
        for mode in ("replay", "auto", "hybrid"):
            live = {"live": "llm"} if mode == "hybrid" else {}
            with (
                pytest.raises(stepfork.CassetteError) as fault,
                stepfork.use_cassette(path, mode=mode, tools=["given_tools"], **live),
            ):
                tools.touch([1, 2])
            assert said in str(fault.value)
            assert fault.value.field == field


# -- what only the caller's object can tell ---------------------------------------------------------


def replayed(path: Path, tools: Any, text: str, agent: Any) -> stepfork.CassetteError:
    path.write_text(integrity.sealed(f"{HEAD}{text}\n{END}"))
    with (
        pytest.raises(stepfork.CassetteError) as fault,
        stepfork.replay(path, tools=["given_tools"]) as run,
    ):
        agent()
    assert run.counts.live == 0
    assert path.name in str(fault.value)
    return fault.value


def test_C90_more_left_of_a_stream_than_it_has(tools: Any, tmp_path: Path) -> None:
    stream = io.StringIO("abc")
    text = "tool: touch\nargs: {x: abc}\nleft: {x: 99999999999}\nresult: null"
    fault = replayed(tmp_path / "x.yaml", tools, text, lambda: tools.touch(stream))
    assert "cannot be left unread: it has 3" in str(fault)
    assert stream.tell() == 0


def test_C90_a_file_is_not_written_where_the_recording_had_a_buffer(tools: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("abc")
    text = "tool: touch\nargs: {x: abc}\nleft: {x: 0}\nwritten: {x: gone}\nresult: null"
    with file.open("r+") as stream:
        fault = replayed(tmp_path / "x.yaml", tools, text, lambda: tools.touch(stream))
    assert "a buffer in memory" in str(fault)
    assert file.read_text() == "abc"


def test_C90_a_stream_that_was_closed_before(tools: Any, tmp_path: Path) -> None:
    text = "tool: walk\nargs: {x: abc}\nyields: [1, 2]\nsteps:\n"
    text += "- {step: 1, left: {x: closed}}\n- {step: 2, left: {x: 0}}"
    fault = replayed(tmp_path / "x.yaml", tools, text, lambda: list(tools.walk(io.StringIO("abc"))))
    assert "was closed before" in str(fault)


def test_C90_a_field_that_is_missing_deep_inside_deletes_nothing(tools: Any, tmp_path: Path) -> None:
    cart = tools.Cart([1])
    less = CART.replace("[1], owner: me", "[2]")
    text = f"tool: touch\nargs: {{x: [{CART}]}}\nchanged: {{x: [{less}]}}\nresult: null"
    fault = replayed(tmp_path / "x.yaml", tools, text, lambda: tools.touch([cart]))
    assert "'owner' is missing" in str(fault)
    assert vars(cart) == {"items": [1], "owner": "me"}


def test_C90_a_later_step_that_names_no_place(tools: Any, tmp_path: Path) -> None:
    text = "tool: walk\nargs: {x: [[1], [2]]}\nyields: [1, 2]\nsteps:\n"
    text += "- {step: 2, changed: {x: [[3], [2]]}, kept: {'x[0]': 'x[5]'}}"
    fault = replayed(tmp_path / "x.yaml", tools, text, lambda: list(tools.walk([[1], [2]])))
    assert "there is no such place" in str(fault)


# -- what is recorded fits --------------------------------------------------------------------------


def both(path: Path, agent: Any) -> Any:
    with stepfork.record(path, tools=["given_tools"]):
        live = agent()
    assert command("validate", "--verify-integrity", str(path)) == 0
    with stepfork.replay(path, tools=["given_tools"]):
        assert agent() == live
    return live


def test_an_iterator_over_a_list_that_the_tool_makes_longer(tools: Any, tmp_path: Path) -> None:
    def agent() -> Any:
        rows = [1]
        read = iter(rows)
        tools.grow(read, rows)
        return list(read)

    assert both(tmp_path / "x.yaml", agent) == [9, 9]


def test_a_buffer_written_in_one_step_and_moved_in_the_next(tools: Any, tmp_path: Path) -> None:
    def agent() -> Any:
        stream = io.StringIO()
        for _ in tools.write_twice(stream):
            pass
        return [stream.getvalue(), stream.tell()]

    assert both(tmp_path / "x.yaml", agent) == ["abc", 1]


def test_C112_a_secret_written_into_what_was_given_is_no_fault_of_the_file(
    tools: Any, tmp_path: Path
) -> None:
    """The placeholder has another length: arrays get a wider type in the file, buffers less to be read."""
    path, secret = tmp_path / "x.yaml", "sk-proj-" + "aB3xK9" * 11
    rows, names, stream = [{"key": ""}], numpy.array(["a" * 99, "b"]), io.StringIO("a")
    with stepfork.record(path, tools=["given_tools"]):
        tools.tell(rows, names, stream, secret)
    assert (rows[0]["key"], names[1], stream.read()) == (secret, secret, secret)
    assert secret not in path.read_text()
    assert command("validate", "--verify-integrity", str(path)) == 0
    rows, names, stream = [{"key": ""}], numpy.array(["a" * 99, "b"]), io.StringIO("a")
    with stepfork.replay(path, tools=["given_tools"]) as run:
        tools.tell(rows, names, stream, secret)
    assert run.counts.substituted == 1
    assert stream.tell() == 0


def test_a_file_that_the_tool_writes_to_is_refused_while_recording(tools: Any, tmp_path: Path) -> None:
    with (
        (tmp_path / "out.bin").open("w+b") as stream,
        pytest.raises(stepfork.RecordingError, match="left behind its end; pass its path"),
        stepfork.record(tmp_path / "x.yaml", tools=["given_tools"]),
    ):
        tools.write(stream)
    assert (tmp_path / "out.bin").read_bytes() == b"abc"
