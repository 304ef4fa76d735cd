"""Odd values in every field of a cassette, and odd depths: commands say one clear sentence, no traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from stepfork import cli
from stepfork.cassette import integrity

HEAD = "stepfork: 1\nname: x\nentrypoint: canary:run\n"
END = "end: completed\n"
CALLS = {
    "tool": {"tool": "t", "args": "{a: [1]}", "result": "1"},
    "generator": {"tool": "t", "args": "{a: [1]}", "yields": "[1, 2]", "steps": "[{step: 2, sent: 1}]"},
    "llm": {
        "llm": "chat.completions",
        "request": "{model: m, messages: [{role: user, content: hi}]}",
        "response": "{choices: [{message: {content: a}}]}",
    },
    "stream": {"llm": "a", "request": "{}", "stream": "{text: a, wire: {events: '[$text]'}}"},
}
PLACE = ("depth", "lane", "started", "after", "cancelled", "late", "unfinished", "shared")
WHILE_RECORDING = ("start", "parent", "line", "lines")
FIELDS = {
    "tool": ("tool", "args", "result", "error", "changed", "kept", "replaced", "left", "written", *PLACE),
    "generator": ("yields", "steps", "closed", *WHILE_RECORDING),
    "llm": (
        *("llm", "method", "path", "query", "content_type", "request", "extends", "remove", "append"),
        *("status", "response", "json", "text", "body", "headers", "error", "attempts"),
    ),
    "stream": ("stream",),
}
ODD = {
    "huge": "9" * 500,
    "more digits than Python spells": "0x1" + "0" * 9000,
    "negative": "-1",
    "large": "100000000000",
    "true": "true",
    "a float": "1.5",
    "nan": ".nan",
    "null": "null",
    "a list": "[null, true, [1], {a: [1]}]",
    "a mapping": "{messages: [1, {content: [1]}], choices: [{message: {tool_calls: [1], content: {}}}]}",
    "levels": "[" * 200 + "]" * 200,
    "205 tuples": "!tuple [" * 205 + "]" * 205,
    "a tag": "!model {class: 'a:B', fields: 3}",
    "a long text": "x" * 200_000,
    "controls": '"\\0\\x1b[31m"',
}
COMMANDS = (
    ("inspect",),
    ("inspect", "--json"),
    ("inspect", "--call", "1"),
    ("validate",),
    ("replay",),
    ("export", "--pytest", "--output", "test_x.py", "--overwrite"),
    ("seal",),
    ("adopt",),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "canary.py").write_text("def run():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "canary", None)  # whatever is imported is forgotten at the end
    del sys.modules["canary"]
    return tmp_path


def run_command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def document(fields: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def assert_all_say_it(
    folder: Path, name: str, text: str, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    for command, *options in COMMANDS:
        (folder / "x.yaml").unlink(missing_ok=True)
        (folder / name).write_text(text, "utf-8")
        status = run_command(command, name, *options)
        shown = capsys.readouterr()
        assert status in (0, 1, 2, 3), (what, command)
        assert "Traceback" not in shown.err, (what, command)
        assert len(shown.err) < 6_000, (what, command)
        if status == 2 and "holds calls" not in shown.err and "no failed recording" not in shown.err:
            assert f"{name}:" in shown.err, (what, command, shown.err[:300])


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in FIELDS for field in FIELDS[kind]])
def test_C90_C94_an_odd_value_in_any_field_is_one_clear_sentence(
    folder: Path, kind: str, field: str, sealed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, odd in ODD.items():
        fields = {**CALLS[kind], field: odd}
        if field in ("error", "text", "body"):
            fields.pop("result", fields.pop("response", None))
        text = f"{HEAD}---\n{document(fields)}---\n"
        if field in (*WHILE_RECORDING, "depth"):
            assert_all_say_it(folder, "x.partial.yaml", text, capsys, f"{what} partial")
        text += END
        assert_all_say_it(folder, "x.failed.yaml", integrity.sealed(text) if sealed else text, capsys, what)


def calls(*documents: str) -> str:
    return "\n---\n".join((HEAD.rstrip(), *documents)) + "\n---\n"


@pytest.mark.parametrize("what", ODD)
def test_C90_C94_an_odd_output_is_one_clear_sentence(
    folder: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = calls(document(CALLS["tool"]).rstrip()) + f"end: completed\noutput: {ODD[what]}\n"
    assert_all_say_it(folder, "x.failed.yaml", integrity.sealed(text), capsys, what)
    exported = folder / "test_x.py"
    if exported.exists():
        compile(exported.read_text("utf-8"), "exported", "exec")


JUMPS = {
    "over one level": ("tool: t\nresult: 1", "depth: 2\ntool: u\nresult: 2"),
    "over many": ("tool: t\nresult: 1", "depth: 100000000000\ntool: u\nresult: 2"),
    "at the first": ("depth: 1\ntool: u\nresult: 2",),
    "back and over": (
        "tool: t\nresult: 1",
        "depth: 1\ntool: u\nresult: 2",
        "tool: t\nresult: 1",
        "depth: 2\ntool: u\nresult: 2",
    ),
}


@pytest.mark.parametrize("command", [("inspect",), ("inspect", "--json"), ("validate",)])
@pytest.mark.parametrize("what", JUMPS)
def test_C94_a_depth_that_skips_levels_is_an_error_with_its_line(
    folder: Path, what: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    text = calls(*JUMPS[what])
    line = text[: text.rindex("depth: ")].count("\n") + 1
    (folder / "x.yaml").write_text(integrity.sealed(text + END))
    if what == "at the first" and command[0] == "inspect":
        return  # then it lists no call at all, as the first bytes of each say
    assert run_command(command[0], "x.yaml", *command[1:]) == 2
    assert f"x.yaml:{line}: depth: at most" in capsys.readouterr().err


def test_calls_nested_deeper_than_any_page_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """3,000 calls inside of each other: in a finished file and in one that was cut off."""
    deep = [f"depth: {at}\ntool: t\nresult: {at}" for at in range(1, 3000)]
    (folder / "x.yaml").write_text(integrity.sealed(calls("tool: t\nresult: 0", *deep) + END))
    started = [f"start: {at}\nparent: {at - 1}\ndepth: {at}\ntool: t\nresult: 1" for at in range(2999, 0, -1)]
    (folder / "y.partial.yaml").write_text(calls(*started, "start: 0\ntool: t\nresult: 0"))
    lines = [
        f"start: {at}\nline: {at}\nlines: [[{at}, {at - 1 if at else 'null'}, 0, 0, []]]\ntool: t\nresult: 1"
        for at in range(3000)
    ]
    (folder / "z.partial.yaml").write_text(calls(*lines))
    for name in ("x.yaml", "y.partial.yaml", "z.partial.yaml"):
        assert run_command("inspect", name) == 0
        assert capsys.readouterr().out.count("\n") > 6_000
        assert run_command("inspect", name, "--json") == 0
        assert json.loads(capsys.readouterr().out)["calls_total"] >= 1
        assert run_command("validate", name) == 0
        capsys.readouterr()


def test_C90_export_writes_no_test_of_calls_that_cannot_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.yaml").write_text(integrity.sealed(calls("tool: t\nresult: !date never") + END))
    assert run_command("export", "x.yaml", "--pytest", "--output", "test_x.py") == 2
    assert "x.yaml:6: result: !date" in capsys.readouterr().err
    assert not (folder / "test_x.py").exists()
