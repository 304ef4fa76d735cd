"""Directories in recordings through the user's door: another folder, home, temp directory, same cassette."""

from __future__ import annotations

import difflib
import re
import shutil
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import (
    DONE,
    EVENTS,
    ChatServer,
    chunk,
    completion,
    event,
    json_answer,
    stream_answer,
)
from support.command import Project

import stepfork

TOOLS = """
    import json
    import os
    import pathlib
    import subprocess
    import sys
    import tempfile

    def find(folder):
        assert "REPLAY" not in os.environ
        return os.path.join(folder, "data.txt")

    def read(path, *, mode="r"):
        assert "REPLAY" not in os.environ
        with open(path, mode) as file:
            return file.read()

    def tree(root):
        assert "REPLAY" not in os.environ
        return {root / "a", root / "b"}, {str(root): 1}, f"ls {root}:\\n".encode()

    def steps(path):
        assert "REPLAY" not in os.environ
        got = yield path / "one"
        yield got

    def fill(rows, path):
        assert "REPLAY" not in os.environ
        rows.append(str(path))
        return json.dumps({"home": os.path.expanduser("~"), "tmp": tempfile.gettempdir()})
"""
AGENT = """
    import os
    import pathlib
    import sys
    import tempfile

    import openai
    import tools

    def run(where=None):
        here, home = os.getcwd(), os.path.expanduser("~")
        assert where in (None, here), where
        path = tools.find(here)
        with open(path) as file:  # the recorded path, in the folder of today
            found = file.read()
        assert tools.read(path) == found
        try:
            tools.read(os.path.join(home, "missing"))
        except FileNotFoundError as error:
            assert error.filename == os.path.join(home, "missing"), error.filename
            assert error.filename in str(error)
        root = pathlib.Path(here)
        assert tools.tree(root) == ({root / "a", root / "b"}, {here: 1}, f"ls {here}:\\n".encode())
        generator = tools.steps(root)
        assert next(generator) == root / "one"
        assert generator.send(f"{home}/sent") == f"{home}/sent"
        generator.close()
        rows = []
        told = tools.fill(rows, tempfile.gettempdir() + "/x")
        assert rows == [tempfile.gettempdir() + "/x"]
        client = openai.OpenAI(base_url=os.environ["SERVER"], api_key="none", max_retries=0)
        said = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": f"You are in {here}. {told}"}]
        )
        assert said.choices[0].message.content == f"You are in {here}. {told}"
        stream = client.chat.completions.create(
            model="m", stream=True, messages=[{"role": "user", "content": f"Look into {here}/data.txt"}]
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        assert text == f"Look into {here}/data.txt", text
        return {"path": path, "text": text}
"""


class Machine:
    """A folder with the program, a home and a temp directory of its own."""

    def __init__(self, place: Path, server: str) -> None:
        self.home, self.tmp = place / "home" / "someone", place / "scratch" / "tmp"
        self.home.mkdir(parents=True)
        self.tmp.mkdir(parents=True)
        self.project = Project(self.home / "work")
        self.project.write("tools.py", TOOLS)
        self.project.write("agent.py", AGENT)
        self.project.write("data.txt", "hello")
        self.server = server

    @property
    def folder(self) -> Path:
        return self.project.folder

    def run(self, *arguments: str, **more: str) -> Any:
        return self.project.run(*arguments, **self._variables, **more)

    def pytest(self, *arguments: str, **more: str) -> Any:
        return self.project.pytest(*arguments, **self._variables, **more)

    @property
    def _variables(self) -> dict[str, str]:
        return {"HOME": str(self.home), "TMPDIR": str(self.tmp), "SERVER": self.server}


def answer(body: dict[str, Any]) -> Any:
    """Says the message back; a stream cuts it into pieces of three characters."""
    said = body["messages"][-1]["content"]
    if body.get("stream"):
        return stream_answer(*(said[at : at + 3] for at in range(0, len(said), 3)))
    return json_answer(completion(said))


@pytest.fixture
def machines(tmp_path: Path, server: ChatServer) -> tuple[Machine, Machine]:
    """Two of them; the second has the cassette of the first, which recorded it in its folder."""
    server.answer = answer
    one = Machine(tmp_path / "one", server.url)
    two = Machine(tmp_path / "two" / "deeper", server.url)
    args = f'{{"where": "{one.folder}"}}'
    done = one.run("record", "agent:run", "--tools", "tools", "--args", args, "-o", "run.yaml")
    assert done.status == 0, done.err
    shutil.copy(one.folder / "run.yaml", two.folder / "run.yaml")
    return one, two


def strings(machine: Machine) -> list[str]:
    return [str(machine.folder), str(machine.home), str(machine.tmp)]


def test_a_recording_replays_on_another_machine(
    machines: tuple[Machine, Machine], server: ChatServer
) -> None:
    one, two = machines
    asked = len(server.asked)
    text = (two.folder / "run.yaml").read_text("utf-8")
    assert not any(place in text for place in strings(one)), "the file names the machine"
    assert "\nargs: {where: <cwd>}\n" in text
    assert 'content: "You are in <cwd>. {' in text
    assert "path: <cwd>/data.txt" in text
    done = two.run("replay", "run.yaml", REPLAY="1")
    assert done.status == 0, done.err + done.out
    assert "0 tool bodies executed" in done.out
    assert "equals the recorded output" in done.out
    assert len(server.asked) == asked == 2


def test_it_replays_where_it_was_recorded(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    done = one.run("replay", "run.yaml", REPLAY="1")
    assert done.status == 0, done.err + done.out


def test_recording_again_on_another_machine_changes_no_more_than_where_a_stream_was_cut(
    machines: tuple[Machine, Machine],
) -> None:
    _, two = machines
    before = two.project.read("run.yaml")
    args = f'{{"where": "{two.folder}"}}'
    done = two.run("record", "agent:run", "--tools", "tools", "--args", args, "-o", "run.yaml")
    assert done.status == 0, done.err
    after = two.project.read("run.yaml")
    changed = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    assert changed, "the pieces were cut elsewhere"
    assert all(re.match(r"[+-] +(wire|events|order|cuts|recorded_at|sha256)\b", line) for line in changed)


def test_below_the_directory_a_difference_is_one(machines: tuple[Machine, Machine]) -> None:
    _, two = machines
    source = two.project.read("agent.py").replace('"missing"', '"absent"')
    two.project.write("agent.py", source)
    done = two.run("replay", "run.yaml", "--json", REPLAY="1")
    assert done.status == 1
    assert done.json["mismatch"]["index"] == 3
    assert done.json["mismatch"]["expected"] == f"{two.home}/missing"
    assert done.json["mismatch"]["actual"] == f"{two.home}/absent"


def test_another_directory_in_the_place_of_one_is_a_difference(machines: tuple[Machine, Machine]) -> None:
    _, two = machines
    source = two.project.read("agent.py").replace("tools.find(here)", "tools.find(home)")
    two.project.write("agent.py", source)
    done = two.run("replay", "run.yaml", "--json", REPLAY="1")
    assert done.status == 1
    found = done.json["mismatch"]
    assert (found["expected"], found["actual"]) == (str(two.folder), str(two.home))


def test_turned_off_the_recording_is_of_one_machine(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    off = {"STEPFORK_NORMALIZE": "paths=false"}
    done = one.run("record", "agent:run", "--tools", "tools", "-o", "raw.yaml", **off)
    assert done.status == 0, done.err
    assert str(one.folder) in one.project.read("raw.yaml")
    assert one.run("replay", "raw.yaml", REPLAY="1", **off).status == 0
    shutil.copy(one.folder / "raw.yaml", two.folder / "raw.yaml")
    done = two.run("replay", "raw.yaml", "--normalize", "paths=false", REPLAY="1")
    assert done.status == 1
    assert str(one.folder) in done.err


def test_an_exported_test_runs_on_another_machine(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    done = one.run("export", "run.yaml", "--pytest", "--output", "test_run.py")
    assert done.status == 0, done.err
    source = one.project.read("test_run.py")
    assert not any(place in source for place in (*strings(one), "<cwd>"))
    shutil.copy(one.folder / "test_run.py", two.folder / "test_run.py")
    for machine in (one, two):
        done = machine.pytest("test_run.py", REPLAY="1")
        assert done.status == 0, done.out


def test_what_the_api_shows_is_of_today(tmp_path: Path, make_module: Any, monkeypatch: Any) -> None:
    tools = make_module("def look(path):\n    return {'at': path}\n", "looktools")
    path = tmp_path / "run.yaml"
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with stepfork.record(path, tools=["looktools"]) as run:
        tools.look(f"{Path.cwd()}/x")
        run.set_output([Path.cwd()])
        assert run.calls[0].args == {"path": f"{tmp_path}/here/x"}
    assert "args: {path: <cwd>/x}" in path.read_text()
    monkeypatch.chdir(tmp_path / "there")
    with stepfork.replay(path) as run:
        assert tools.look(f"{Path.cwd()}/x") == {"at": f"{tmp_path}/there/x"}
        assert run.calls[0].args == {"path": f"{tmp_path}/there/x"}
    loaded = stepfork.load(path)
    assert loaded.calls[0].result == {"at": f"{tmp_path}/there/x"}
    assert loaded.output == [tmp_path / "there"]
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.look(f"{tmp_path}/here/x")
    assert (caught.value.expected, caught.value.actual) == (f"{tmp_path}/there/x", f"{tmp_path}/here/x")


def test_a_text_that_looks_like_a_name_is_that_text(tmp_path: Path, make_module: Any) -> None:
    tools = make_module("def look(path):\n    return [path, path.encode()]\n", "looktools")
    path = tmp_path / "run.yaml"
    given = ["<cwd>/x", "<=home>", "<tmp> is <b>", "<cwd:real>", f"{Path.cwd()} <cwd>"]
    with stepfork.record(path, tools=["looktools"]):
        for text in given:
            tools.look(text)
    with stepfork.replay(path):
        for text in given:
            assert tools.look(text) == [text, text.encode()]
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.look(f"{Path.cwd()}/x")


def test_a_link_to_the_folder_makes_no_difference(tmp_path: Path, make_module: Any, monkeypatch: Any) -> None:
    tools = make_module("def look(path):\n    return path\n", "looktools")
    path = tmp_path / "run.yaml"
    (tmp_path / "real" / "home").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path / "real" / "home"))
    with stepfork.record(path, tools=["looktools"]):
        tools.look(f"{tmp_path}/real/home/x")
    monkeypatch.setenv("HOME", str(tmp_path / "link" / "home"))
    with stepfork.replay(path):
        assert tools.look(f"{tmp_path}/link/home/x") == f"{tmp_path}/link/home/x"
    with stepfork.replay(path):
        assert tools.look(f"{tmp_path}/real/home/x") == f"{tmp_path}/link/home/x"


def test_a_directory_in_pieces_of_a_field_that_nobody_knows(
    tmp_path: Path, server: ChatServer, monkeypatch: Any
) -> None:
    for name in ("here", "somewhere-else"):
        (tmp_path / name).mkdir()
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)

    def answer(body: dict[str, Any]) -> Any:
        note = f"thinking about {tmp_path}/here/data and how to go on with it " * 4
        pieces = [note[at : at + 5] for at in range(0, len(note), 5)]
        events = []
        for piece in pieces:
            said = chunk("")
            said["choices"][0]["delta"] = {"content": "x", "musing": piece}
            events.append(event(said))
        return 200, EVENTS, b"".join(events) + DONE

    def ask() -> tuple[str, int]:
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        pieces = [str(getattr(one.choices[0].delta, "musing", "")) for one in stream]
        return "".join(pieces), len(pieces)

    server.answer = answer
    monkeypatch.chdir(tmp_path / "here")
    with stepfork.record(tmp_path / "run.yaml"):
        live, number = ask()
    assert str(tmp_path) not in (tmp_path / "run.yaml").read_text()
    with stepfork.replay(tmp_path / "run.yaml"):
        assert ask() == (live, number)
    monkeypatch.chdir(tmp_path / "somewhere-else")
    with stepfork.replay(tmp_path / "run.yaml"):
        assert ask() == (live.replace("/here/", "/somewhere-else/"), number)


def test_a_secret_that_is_a_path_is_a_secret_everywhere(tmp_path: Path, make_module: Any) -> None:
    tools = make_module("def use(path, password=None):\n    return path\n", "usetools")
    path, secret = tmp_path / "run.yaml", f"{Path.cwd()}/hunter2hunter2"
    with stepfork.record(path, tools=["usetools"]):
        tools.use(f"see {secret}.")
        tools.use("x", password=secret)
    text = path.read_text()
    assert "hunter2" not in text
    assert text.count("<secret:password:1>") == 3


def test_many_calls_without_a_directory_stay_the_very_same(tmp_path: Path, make_module: Any) -> None:
    tools = make_module("def look(path):\n    return path\n", "looktools")
    files = []
    for normalize in ({}, {"normalize": {"paths": False}}):
        path = tmp_path / f"{len(files)}.yaml"
        with stepfork.record(path, name="same", tools=["looktools"], **normalize):
            for at in range(20):
                tools.look(f"a/b {at} https://host/home/x <b>")
        files.append(path.read_text().split("---")[1:-1])
    assert files[0] == files[1]
