"""How large a recording is, and what an edit changes of it."""

from __future__ import annotations

import array
import base64
import difflib
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support import agent_loop
from support.agent_loop import SYSTEM, client, loop, nobody, schemas, text
from support.sizes import full_size

import stepfork
from stepfork.cassette import integrity
from stepfork.cassette.check import faults_of
from stepfork.cassette.store import StoredCassette


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(agent_loop.TOOLS_MODULE)


Recorder = Callable[..., Path]


@pytest.fixture
def record(tmp_path: Path, tools: Any) -> Recorder:
    def record(turns: int, name: str = "run", **changes: Any) -> Path:
        path = tmp_path / name / "run.yaml"
        with client() as ask, stepfork.record(path, tools=[tools.__name__]):
            loop(ask, tools.look_up, turns, **changes)
        return path

    return record


def changed_lines(old: Path, new: Path) -> list[str]:
    lines = difflib.ndiff(old.read_text("utf-8").splitlines(), new.read_text("utf-8").splitlines())
    dated = re.compile(r"[-+] (recorded_at|sha256): ")
    return [line for line in lines if line[:2] in ("- ", "+ ") and not dated.match(line)]


def test_C126_a_long_loop_is_as_large_as_what_was_said(record: Recorder, tools: Any) -> None:
    fifty, two_hundred = record(50, "fifty"), record(200, "more")
    assert fifty.stat().st_size <= 0.12 * full_size(fifty)
    assert two_hundred.stat().st_size <= 4.4 * fifty.stat().st_size
    with client(nobody) as ask, stepfork.replay(fifty) as run:
        loop(ask, tools.look_up, 50)
    assert (run.counts.substituted, run.counts.live) == (100, 0)


def test_C126_a_hundred_turns_of_a_kilobyte_take_no_more_than_four_times_their_text(
    tmp_path: Path, tools: Any
) -> None:
    path = tmp_path / "run.yaml"

    def look_up(turn: int) -> str:
        result: str = tools.look_up(turn)
        return result + text(1000 - len(result), turn)

    with client() as ask, stepfork.record(path, tools=[tools.__name__]):
        messages = loop(ask, look_up, 100)
    unique = sum(len(json.dumps(message)) for message in messages)
    assert path.stat().st_size < 4 * unique
    with client(nobody) as ask, stepfork.replay(path):
        assert loop(ask, look_up, 100) == messages


@pytest.mark.parametrize("what", ["message", "schema", "prompt"])
def test_an_edit_of_one_message_or_schema_changes_few_lines(record: Recorder, what: str) -> None:
    tools = schemas()
    tools[2]["function"]["parameters"]["properties"]["topic"]["description"] = "What to look for."
    changes: dict[str, Any] = {
        "message": {"question": "What is wrong with the cart?"},
        "schema": {"tools": tools},
        "prompt": {"system": SYSTEM.replace("deploy", "deployment", 1)},
    }
    lines = changed_lines(record(50, "old"), record(50, "new", **changes[what]))
    assert 2 <= len(lines) <= 6


def test_a_message_edited_by_hand_is_edited_in_every_later_request(record: Recorder, tools: Any) -> None:
    path = record(20)
    old, new = "What is wrong with the checkout?", "What is wrong with the cart?"
    edited = path.read_text("utf-8")
    assert edited.count(old) == 1
    path.write_text(integrity.sealed(edited.replace(old, new)), "utf-8")
    asked = [call.args["messages"][1]["content"] for call in stepfork.load(path).calls if call.kind == "llm"]
    assert asked == [new] * 20
    with client(nobody) as ask, stepfork.replay(path):
        loop(ask, tools.look_up, 20, question=new)


def test_C131_recording_the_same_again_changes_no_byte(record: Recorder) -> None:
    path = record(30)
    before = path.read_bytes(), path.stat().st_mtime_ns
    record(30)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in path.parent.iterdir()] == ["run.yaml"]


def test_C133_a_changed_line_of_text_is_a_changed_line_of_the_file(tmp_path: Path, make_module: Any) -> None:
    tools = make_module("def note(text, about):\n    return text\n")

    def recorded(name: str, line: str) -> Path:
        path = tmp_path / name / "run.yaml"
        said = "\n".join(f"line {number}" for number in range(9)) + f"\n{line}\n"
        with stepfork.record(path, tools=[tools.__name__]):
            tools.note("x", {"region": "north", "said": said, "limits": {"minutes": 60}})
        return path

    old, new = recorded("old", "the end"), recorded("new", "the very end")
    assert changed_lines(old, new) == ["-       the end", "+       the very end"]
    assert "minutes: 60" in old.read_text("utf-8")


def test_mismatches_and_views_show_the_whole_request(record: Recorder, tools: Any) -> None:
    path = record(10)
    messages = stepfork.load(path).calls[18].args["messages"]
    assert (len(messages), messages[0]["content"]) == (20, SYSTEM)
    assert StoredCassette(path).call(18).args["tools"] == schemas()

    def forgetful(turn: int) -> str:
        found: str = tools.look_up(turn)
        return found if turn < 8 else "nothing found"

    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path), client(nobody) as ask:
        loop(ask, forgetful, 10)
    assert caught.value.path == "messages[19].content"
    assert caught.value.actual == "nothing found"


def test_what_the_partial_file_holds_is_whole_after_every_call(tmp_path: Path, tools: Any) -> None:
    path, partial = tmp_path / "run.yaml", tmp_path / "run.partial.yaml"
    seen: list[bytes] = []

    def look_up(turn: int) -> str:
        seen.append(partial.read_bytes())
        result: str = tools.look_up(turn)
        return result

    with client() as ask, stepfork.record(path, tools=[tools.__name__]):
        messages = loop(ask, look_up, 8)
    finished = path.read_bytes()
    for turn, data in enumerate(seen):
        assert finished.startswith(data), "the finished file is the partial one and its end"
        partial.write_bytes(data + b"llm: chat.completions\nextends: 1\nappe")  # and a torn last document
        cassette = StoredCassette(partial)
        assert "cut off" in cassette.warnings[0]
        assert len(cassette) == 2 * turn + 1
        asked = cassette.recorded(2 * turn).call.args
        assert isinstance(asked, dict)
        assert asked["messages"] == messages[: 2 + 2 * turn]


def test_conversations_in_threads_and_tools_are_told_each_by_itself(tmp_path: Path, make_module: Any) -> None:
    tools = make_module(
        """
        from support.agent_loop import client, loop, text
        def delegate(topic):
            with client() as ask:
                return len(loop(ask, lambda turn: text(300, turn + topic), 4, question=f"And topic {topic}?"))
        """
    )
    path = tmp_path / "run.yaml"

    def agent() -> None:
        started = threading.Barrier(4)  # that one ends before another begins would be taken down

        def work(topic: int) -> None:
            started.wait()
            with client() as ask:
                loop(ask, lambda turn: text(300, turn + topic), 5, question=f"Topic {topic}?")
                tools.delegate(topic)

        threads = [threading.Thread(target=work, args=(topic,)) for topic in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def record() -> bytes:
        with stepfork.record(path, tools=[tools.__name__]):
            agent()
        return path.read_bytes()

    first = record()
    assert record() == first
    written = first.decode()
    assert written.count("extends: 1") >= 4 * (4 + 3)
    assert written.count("role: system") == 1, "the prompt stands once for all"
    assert path.stat().st_size < 0.3 * full_size(path)
    for call in stepfork.load(path).calls:
        if call.kind == "llm":
            assert call.args["messages"][0]["content"] == SYSTEM
            assert call.args["tools"] == schemas()
    with stepfork.replay(path) as run:
        agent()
    assert run.counts.live == 0


def test_an_image_that_comes_back_stands_once(tmp_path: Path) -> None:
    image = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 80).decode()
    path = tmp_path / "run.yaml"

    def agent(answer: Any) -> None:
        with client(answer) as ask:
            for question in ("What is it?", "Where is it?"):
                part = {"type": "image_url", "image_url": {"url": image}}
                words = {"type": "text", "text": question}
                ask.chat.completions.create(model="m", messages=[{"role": "user", "content": [words, part]}])

    with stepfork.record(path):
        agent(agent_loop.model)
    assert path.read_text("utf-8").count(image) == 1
    assert len(path.read_text("utf-8").splitlines()) < 80
    with stepfork.replay(path):
        agent(nobody)
    assert list(faults_of(path)[1]) == []


def test_embeddings_and_images_take_a_few_lines_each(tmp_path: Path) -> None:
    vectors = [[(number * 7 + at) % 1000 / 1000 for at in range(1536)] for number in range(3)]
    exact = [array.array("f", vector) for vector in vectors]
    image = base64.b64encode(bytes(range(256)) * 400).decode()

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked = json.loads(request.content)
        if "prompt" in asked:
            return httpx2.Response(200, json={"created": 1, "data": [{"b64_json": image}]})
        floats: list[Any] = [vector.tolist() for vector in exact]
        if asked.get("encoding_format") == "base64":
            floats = [base64.b64encode(vector.tobytes()).decode() for vector in exact]
        data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(floats)]
        return httpx2.Response(200, json={"object": "list", "data": data, "model": "e", "usage": {}})

    def agent(answer: Any) -> list[Any]:
        with client(answer) as ask:
            found: list[Any] = []
            for how in ({}, {"encoding_format": "float"}):
                made = ask.embeddings.create(model="e", input=["a", "b", "c"], **how)
                found.append([one.embedding for one in made.data])
            return [*found, ask.images.generate(prompt="a cat").data[0].b64_json]

    path = tmp_path / "run.yaml"
    with stepfork.record(path):
        live = agent(answer)
    assert live == [[vector.tolist() for vector in exact]] * 2 + [image]
    with stepfork.replay(path):
        assert agent(nobody) == live
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) < 50, "six embeddings and a picture, a line each"
    assert sum(" !f32 " in line for line in lines) == 3


def test_C116_a_secret_in_a_large_result_is_in_no_file(tmp_path: Path, make_module: Any) -> None:
    key = "sk-" + "A1b2C3d4" * 5
    tools = make_module(
        f"""
        def dump():
            return {{"rows": ["row " * 20] * 12_000, "note": "the key is {key}. " + "words " * 300}}
        def log_in(password):
            return {{"log": "words " * 300 + "hunter2hunter2"}}
        """
    )
    path = tmp_path / "files" / "run.yaml"
    with pytest.raises(RuntimeError), stepfork.record(path, tools=[tools.__name__]):
        tools.dump()
        raise RuntimeError
    with stepfork.record(path, tools=[tools.__name__]):
        for _ in range(3):
            tools.dump()
            tools.log_in("nothing yet")
            for file in path.parent.iterdir():
                assert key.encode() not in file.read_bytes()
        tools.log_in("hunter2hunter2")
    for file in path.parent.iterdir():
        assert key.encode() not in file.read_bytes()
        assert b"hunter2hunter2" not in file.read_bytes()
    results = [call.result for call in stepfork.load(path).calls]
    assert results[0] == results[2] == results[4]
    assert len(path.read_bytes()) < 1_300_000, "the result stands once"


def test_a_secret_that_shows_late_is_in_no_later_request(tmp_path: Path, make_module: Any) -> None:
    tools = make_module("def log_in(password):\n    return 'welcome'\n")
    path = tmp_path / "run.yaml"
    with client() as ask, stepfork.record(path, tools=[tools.__name__]):
        history: list[Any] = [{"role": "system", "content": SYSTEM}]
        for said in ("hello", "it is hunter2hunter2", "log in", "and go on", "thanks"):
            history.append({"role": "user", "content": said})
            ask.chat.completions.create(model="m", messages=history)
            if said == "log in":
                tools.log_in(password="hunter2hunter2")
    written = path.read_text("utf-8")
    assert "hunter2" not in written
    assert written.count("extends: 1") == 4
    last = stepfork.load(path).calls[-1].args["messages"]
    assert [message["content"] for message in last[1:4]] == ["hello", "it is <secret:password:1>", "log in"]


def test_a_window_that_slides_tells_what_left_it(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    history = [{"role": "user", "content": text(300, number)} for number in range(60)]
    with client() as ask, stepfork.record(path):
        for end in range(10, 60, 2):
            window = [{"role": "system", "content": SYSTEM}, *history[end - 10 : end]]
            ask.chat.completions.create(model="m", messages=window)
    assert path.read_text("utf-8").count('"messages[1:3]"') == 24
    assert path.stat().st_size < 0.4 * full_size(path)
    calls = stepfork.load(path).calls
    assert calls[-1].args["messages"][1:] == history[48:58]
