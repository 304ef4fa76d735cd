"""What would steer a terminal, or turn a line around, is shown as its number wherever a cassette is shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import stepfork
from stepfork import cli
from stepfork.cassette import integrity

UNSEEN = [
    "\x1b",
    "\x07",
    "\x08",
    "\x7f",
    "\x85",
    "\x9b",
    "\x9f",
    *map(chr, range(0x202A, 0x202F)),
    "\u2066",
    "\u2069",
]
BAD = "a" + "".join(UNSEEN) + "b"
TEXT = json.dumps(BAD)
LLM = (
    f"llm: chat.completions\nrequest: {{model: {TEXT}, messages: [{{role: {TEXT}, content: {TEXT}}}]}}\n"
    f"response: {{choices: [{{message: {{content: {TEXT}, tool_calls: "
    f"[{{function: {{name: {TEXT}, arguments: {TEXT}}}}}]}}}}]}}"
)
CALLS = {
    "a value": f"tool: look\nargs: {{x: {TEXT}}}\nresult: {{a: {TEXT}}}",
    "lines": f"tool: look\nargs: {{x: {TEXT[:-1]}\\nc{TEXT[1:]}}}\nresult: 1",
    "a key": f"tool: look\nargs: {{x: {{{TEXT}: 1}}}}\nresult: {{{TEXT}: {TEXT}}}",
    "a name": f"tool: {TEXT}\nargs: {{x: 1}}\nresult: 1",
    "an argument": f"tool: look\nargs: {{{TEXT}: 1}}\nresult: 1",
    "an error": f"tool: look\nargs: {{x: 1}}\nerror: {{class: 'builtins:ValueError', args: [{TEXT}]}}",
    "a field": f"tool: look\nargs: {{x: 1}}\n{TEXT}: 1\nresult: 1",
    "a field of a tag": f"tool: look\nargs: {{x: 1}}\nresult: !deque {{maxlen: 1, {TEXT}: 1, items: []}}",
    "a class": f"tool: look\nargs: {{x: 1}}\nresult: !enum {TEXT}",
    "an llm call": LLM,
}
HEAD = f"stepfork: 1\nname: {TEXT}\nentrypoint: unseen_tools:run\nargs: {{x: {TEXT}}}\n---\n"
END = f"---\nend: completed\noutput: {TEXT}\n"
COMMANDS = (
    ("inspect", "x.yaml"),
    ("inspect", "x.yaml", "--call", "1"),
    ("inspect", "x.yaml", "--json"),
    ("validate", "x.yaml"),
    ("replay", "x.yaml"),
    ("replay", "x.yaml", "--json"),
    ("seal", "x.yaml"),
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "unseen_tools.py").write_text(
        "def look(x):\n    return 1\n\ndef run(x):\n    return look(x + 'other')\n"
    )
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "unseen_tools", raising=False)
    return tmp_path


def assert_seen(shown: str) -> None:
    assert [character for character in UNSEEN if character in shown] == []


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("sealed", [True, False])
def test_no_command_prints_what_steers_a_terminal(
    project: Path, what: str, sealed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{HEAD}{CALLS[what]}\n{END}"
    for command in COMMANDS:
        (project / "x.yaml").write_text(integrity.sealed(text) if sealed else text, "utf-8")
        with pytest.raises(SystemExit) as ended:
            cli.main(list(command))
        shown = capsys.readouterr()
        assert_seen(shown.out)
        assert_seen(shown.err)
        if "--json" in command and shown.out:
            told = json.loads(shown.out)
            assert command[0] == "replay" or told["name"] == BAD
        if command[0] == "replay":
            assert ended.value.code in (1, 2)
            assert what != "a value" or "\\u009b" in shown.out + shown.err


def test_a_mismatch_shows_both_sides_without_them(project: Path) -> None:
    import unseen_tools  # type: ignore[import-not-found]

    (project / "x.yaml").write_text(integrity.sealed(f"{HEAD}{CALLS['a value']}\n{END}"), "utf-8")
    with (
        pytest.raises(stepfork.ReplayMismatchError) as fault,
        stepfork.replay("x.yaml", tools=["unseen_tools"]),
    ):
        unseen_tools.look("\x9b31m\u202e")
    assert_seen(str(fault.value))
    assert '"\\u009b31m\\u202e"' in str(fault.value)
    assert fault.value.actual == "\x9b31m\u202e"
