"""Arguments that change, that are read, that are shared: replay does to them what the live call did."""

from __future__ import annotations

import asyncio
import collections
import copy
import functools
import io
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.chat_server import ChatServer
from support.examples import examples

import stepfork

TOOLS = """
    import asyncio
    bodies = []
    def add(items, item):
        bodies.append("add")
        items.append(item)
        return len(items)
    def tidy(state):
        bodies.append("tidy")
        state["log"].append("tidied")
        state["items"] = sorted(state["items"])
        state.pop("junk", None)
        state["seen"] = {"n": len(state["items"])}
    def mark(seen, names):
        seen.add(names[0])
        seen.discard(0)
    def fill(buffer):
        buffer[1:2] = b"xyz"
    def rotate(rows):
        rows.append(rows.pop(0))
        rows[0]["first"] = True
    def drop(rows):
        row = rows.pop()
        row["dropped"] = True
    def inside(pair):
        pair[0].append(pair[1])
    def swap(holder):
        holder[0] = (holder[0][0], 2)
    def fails(items):
        items.append("half")
        raise OSError(28, "No space left on device")
    async def slowly(items):
        items.append("begun")
        await asyncio.sleep(30)
    def pile(items):
        items.append(items)
    def odd(items):
        items.append(object())
    def collect(*args, **options):
        return [list(arg) for arg in args]
    def total(rows):
        bodies.append("total")
        return sum(rows)
    def take(rows, count):
        bodies.append("take")
        return [next(rows) for _ in range(count)]
    async def atotal(rows):
        bodies.append("atotal")
        return sum([row async for row in rows])
    async def apages(rows):
        async for row in rows:
            yield row * 2
    def read(stream, size=-1):
        bodies.append("read")
        return stream.read(size)
    def picture(data):
        return b"\\x89PNG\\r\\n\\x1a\\n\\x00\\xff" + data.read()
    def lines(stream):
        for line in stream:
            yield line.strip()
    def report(out):
        out.write("line 1")
        out.seek(2)
    def shut(stream):
        stream.close()
    def write():
        bodies.append("write")
        if bodies.count("write") == 1:
            raise ConnectionError("down")
        return "written"
    def read_back():
        return ["a"]
    def edit(box, program):
        for step in program:
            apply(box, step)
    def apply(box, step):
        found = [box]
        def walk(value):
            for item in value.values() if isinstance(value, dict) else value:
                if isinstance(item, (list, dict)):
                    found.append(item)
                    walk(item)
        walk(box)
        op, at, to = step
        target, other = found[at % len(found)], found[to % len(found)]
        if isinstance(target, list):
            if op == "append":
                target.append(to)
            elif op == "new":
                target.append([to])
            elif op == "pop" and target:
                target.pop(to % len(target))
            elif op == "rotate" and target:
                target.append(target.pop(0))
            elif op == "copy" and target:
                target[to % len(target)] = [at]
        else:
            if op == "append":
                target[str(to)] = at
            elif op == "new":
                target[str(to)] = {"at": at}
            elif op == "pop" and target:
                target.pop(list(target)[to % len(target)])
            elif op == "rotate" and target:
                key = list(target)[0]
                target[key] = target.pop(key)
            elif op == "copy" and target:
                key = list(target)[to % len(target)]
                target[key] = type(target[key])() if isinstance(target[key], (list, dict)) else -1
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def both(tools: Any, path: Path) -> Callable[[Callable[[], Any]], Any]:
    """Runs an agent as it is, records and replays it: the same each time, and no body runs on replay."""

    def run(agent: Callable[[], Any]) -> Any:
        plain = agent()
        with stepfork.record(path, tools=[tools.__name__]):
            assert agent() == plain
        tools.bodies.clear()
        for _ in range(2):
            with stepfork.replay(path):
                assert agent() == plain
        assert tools.bodies == []
        return plain

    return run


def documents(path: Path) -> list[str]:
    return path.read_text("utf-8").split("---\n")[1:-1]


def refused(path: Path, tools: Any, agent: Callable[[], Any]) -> str:
    """Why an agent cannot be recorded; it does what it does all the same."""
    plain = agent()
    with pytest.raises(stepfork.RecordingError) as caught, stepfork.record(path, tools=[tools.__name__]):
        assert agent() == plain
    return str(caught.value)


# -- arguments that change --------------------------------------------------------------------------


def test_a_list_that_grows(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        items: list[Any] = [{"n": 1}]
        first = items[0]
        second = {"n": 2}
        tools.add(items, second)
        first["n"], second["n"] = 5, 6
        return [items, tools.add(items, 3)]

    both(agent)
    assert documents(path)[0] == (
        'tool: add\nargs:\n  items: [{"n": 1}]\n  item: {"n": 2}\n'
        'changed:\n  items: [{"n": 1}, {"n": 2}]\nkept: {"items[1]": item}\nresult: 2\n'
    )


def test_what_does_not_change_is_not_written(tools: Any, path: Path, both: Any) -> None:
    both(lambda: tools.total([1, 2]))
    assert "changed" not in documents(path)[0]


def test_nested_containers_keep_their_identity(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        items, log = [2, 1], ["begin"]
        state = {"items": items, "log": log, "junk": 1}
        tools.tidy(state)
        return [state, list(state), items, log, state["log"] is log, state["items"] is items]

    assert both(agent)[2:] == [[2, 1], ["begin", "tidied"], True, False]
    assert "replaced: [state.items]\n" in documents(path)[0]


def test_a_list_that_is_only_equal_afterwards(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        items = [1, 2]
        state = {"items": items, "log": []}
        tools.tidy(state)
        return [state, items]

    both(agent)


def test_what_moves_to_another_place_is_the_same_object(make_module: Any, path: Path) -> None:
    module = make_module(
        """
        def finish(board):
            board["done"].append(board["todo"].pop())
            board["last"] = board["done"][-1]
        """
    )

    def agent() -> list[Any]:
        task = {"title": "write"}
        board: dict[str, Any] = {"todo": [task], "done": []}
        module.finish(board)
        board["last"]["title"] = "edited"
        return [board, task]

    with stepfork.record(path, tools=[module.__name__]):
        live = agent()
    assert live[1] == {"title": "edited"}
    assert 'kept: {"board.done[0]": "board.todo[0]", board.last: "board.todo[0]"}\n' in documents(path)[0]
    with stepfork.replay(path):
        assert agent() == live


@pytest.mark.parametrize(
    "kind",
    [dict, collections.OrderedDict, collections.Counter, functools.partial(collections.defaultdict, list)],
)
def test_subclasses_of_dict(tools: Any, both: Any, kind: Any) -> None:
    def agent() -> Any:
        state = kind({"items": [2, 1], "log": []})
        tools.tidy(state)
        return [state, type(state)]

    both(agent)


def test_sets_and_bytearrays(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        seen, buffer = {0, 7}, bytearray(b"abc")
        tools.mark(seen, ("a",))
        tools.fill(buffer)
        return [seen, buffer]

    assert both(agent) == [{7, "a"}, bytearray(b"axyzc")]


def test_rows_that_move_and_change(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        a, b = {"n": 1}, {"n": 2}
        rows = [a, b]
        tools.rotate(rows)
        return [rows, a, b, rows[0] is b, rows[1] is a]

    assert both(agent)[3:] == [True, True]


def test_the_list_inside_a_tuple(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        items: list[Any] = []
        tools.inside((items, 3))
        return items

    assert both(agent) == [3]


def test_a_tuple_that_another_takes_the_place_of(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        items = ["a"]
        holder: list[Any] = [(items, 1)]
        tools.swap(holder)
        items.append("b")
        return holder

    assert both(agent) == [(["a", "b"], 2)]


def test_what_a_tool_changed_before_it_failed(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        items: list[Any] = []
        with pytest.raises(OSError, match="No space"):
            tools.fails(items)
        return items

    assert both(agent) == ["half"]


def test_what_a_tool_changed_before_it_was_cancelled(tools: Any, both: Any) -> None:
    async def agent() -> list[Any]:
        items: list[Any] = []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tools.slowly(items), 0.1)
        return items

    assert both(lambda: asyncio.run(agent())) == ["begun"]


def test_changes_that_cannot_be_made_again(tools: Any, path: Path) -> None:
    def drop() -> list[Any]:
        row = {"n": 1}
        tools.drop([row])
        return [row]

    told = refused(path, tools, drop)
    assert "tool 'drop'" in told
    assert "argument 'rows' is of type dict that the tool changed in a way that cannot be done again" in told
    assert "return what it changes" in told


@pytest.mark.parametrize("name", ["pile", "odd"])
def test_values_that_have_no_plain_form(tools: Any, path: Path, name: str) -> None:
    told = refused(path, tools, lambda: getattr(tools, name)([]) or True)
    assert f"tool {name!r}" in told
    assert "argument 'items'" in told


def test_a_secret_that_did_not_change_stays_the_callers(tools: Any, path: Path) -> None:
    def agent(key: str) -> dict[str, Any]:
        state = {"api_key": key, "items": [2, 1], "log": []}
        tools.tidy(state)
        return state

    with stepfork.record(path, tools=[tools.__name__]):
        agent("sk-live-0123456789abcdef")
    assert "sk-live" not in path.read_text("utf-8")
    with stepfork.replay(path):
        assert agent("a dummy key") == {
            "api_key": "a dummy key",
            "items": [1, 2],
            "log": ["tidied"],
            "seen": {"n": 2},
        }


TREES = st.recursive(
    st.integers(0, 3),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
BOXES = st.one_of(st.lists(TREES, max_size=3), st.dictionaries(st.sampled_from("abc"), TREES, max_size=3))
PROGRAMS = st.lists(
    st.tuples(
        st.sampled_from(["append", "new", "pop", "rotate", "copy"]), st.integers(0, 5), st.integers(0, 5)
    ).map(list),
    max_size=4,
)


def containers(value: Any) -> list[Any]:
    if not isinstance(value, list | dict):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for item in inner for found in containers(item))]


@examples(150)
@given(box=BOXES, program=PROGRAMS)
@example(box=[{"a": 0}, {"a": 0}], program=[["pop", 0, 0], ["append", 1, 3]])
@example(box=[[], {"a": []}], program=[["copy", 2, 0], ["pop", 0, 1]])
def test_any_change_replays_or_is_refused(tools: Any, path: Path, box: Any, program: Any) -> None:
    """The argument, and every container in it that the caller may hold on to, are what they are live."""

    def agent() -> list[Any]:
        mine = copy.deepcopy(box)
        held = containers(mine)
        tools.edit(mine, program)
        held += [item for item in containers(mine) if not any(item is known for known in held)]
        for at, item in enumerate(held):  # from now on each of them says where it stands
            item.append(f"mark {at}") if isinstance(item, list) else item.update(mark=at)
        return [list(item.items()) if isinstance(item, dict) else item for item in held]

    plain = agent()
    try:
        with stepfork.record(path, tools=[f"{tools.__name__}:edit"]):
            assert agent() == plain
    except stepfork.RecordingError:
        assume(False)
    with stepfork.replay(path):
        assert agent() == plain


# -- iterators --------------------------------------------------------------------------------------


def test_C156_a_generator_as_an_argument(tools: Any, path: Path, both: Any) -> None:
    assert both(lambda: tools.total(x for x in range(3))) == 3
    assert "args: {rows: [0, 1, 2]}" in documents(path)[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: map(abs, [-1, 2]),
        lambda: filter(None, [0, 3]),
        lambda: iter([1, 2]),
        lambda: iter((1, 2)),
        lambda: iter({1: 2}),
        lambda: iter({4}),
        lambda: reversed([1, 2]),
        lambda: itertools.chain([1], [2]),
        lambda: itertools.islice(itertools.count(), 4),
        lambda: range(4),
        lambda: {1: 2}.keys(),
        lambda: {1: 2}.values(),
        lambda: iter(b"ab"),
    ],
)
def test_every_kind_of_iterator(tools: Any, path: Path, both: Any, make: Callable[[], Any]) -> None:
    both(lambda: tools.total(make()))
    assert f"rows: {list(make())}" in documents(path)[0]


def test_the_rest_of_an_iterator_over_a_list_is_the_callers(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        rows = iter(["head", 1, 2])
        return [tools.take(rows, 1), list(rows)]

    assert both(agent) == [["head"], [1, 2]]
    assert "left: {rows: 2}\n" in documents(path)[0]


def test_a_generator_that_is_not_read_to_its_end(tools: Any, path: Path) -> None:
    told = refused(path, tools, lambda: tools.take((x for x in range(3)), 1))
    assert "argument 'rows' is of type generator and the tool left 2 of its 3 items unread" in told
    assert "pass a list" in told


def test_several_in_one_call(tools: Any, both: Any) -> None:
    assert both(lambda: tools.collect((x for x in "ab"), [1], iter([2]))) == [["a", "b"], [1], [2]]


def test_an_iterator_without_an_end(tools: Any, path: Path) -> None:
    told = refused(path, tools, lambda: tools.take(itertools.count(), 3))
    assert "more than 10000 items" in told


def test_an_iterator_that_raises(tools: Any, path: Path) -> None:
    def rows() -> Iterator[int]:
        yield 1
        raise KeyError("row 2")

    def agent() -> bool:
        with pytest.raises(KeyError, match="row 2"):
            tools.total(rows())
        return True

    assert "that raised KeyError; pass a list" in refused(path, tools, agent)


def test_iterators_that_are_live(tools: Any, path: Path) -> None:
    class Feed:
        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Feed:
            return self

        def __next__(self) -> int:
            self.at += 1
            return self.at

    assert "cannot be read without using it up" in refused(path, tools, lambda: tools.take(Feed(), 2))
    told = refused(path, tools, lambda: tools.take(iter(lambda: 1, 2), 2))
    assert "whose items are made while they are read; pass a list" in told


def test_another_iterator_is_a_mismatch(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.total(x for x in range(3))
    with pytest.raises(stepfork.ReplayMismatchError, match=r"rows\[2\]"), stepfork.replay(path):
        tools.total(x for x in (0, 1, 3))


async def counted(count: int) -> AsyncIterator[int]:
    for at in range(count):
        await asyncio.sleep(0)
        yield at


def test_async_generators(tools: Any, path: Path, both: Any) -> None:
    async def agent() -> list[Any]:
        return [await tools.atotal(counted(3)), [x async for x in tools.apages(counted(2))]]

    assert both(lambda: asyncio.run(agent())) == [3, [0, 2]]
    assert "rows: [0, 1, 2]" in documents(path)[0]


def test_an_async_generator_for_a_function_that_cannot_wait(tools: Any, path: Path) -> None:
    def agent() -> bool:
        with pytest.raises(TypeError):
            tools.total(counted(1))
        return True

    assert "of type async_generator" in refused(path, tools, agent)


# -- streams ----------------------------------------------------------------------------------------


def test_C19_a_stream_of_bytes(tools: Any, path: Path, both: Any) -> None:
    assert both(lambda: tools.picture(io.BytesIO(b"abc"))) == b"\x89PNG\r\n\x1a\n\x00\xffabc"
    assert "args: {data: !bytes YWJj}" in documents(path)[0]


def test_a_stream_is_read_as_far_as_the_tool_read_it(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        stream = io.StringIO("heading\nbody")
        stream.read(2)
        return [tools.read(stream, 5), stream.read()]

    assert both(agent) == ["ading", "\nbody"]
    assert "left: {stream: 5}\n" in documents(path)[0]


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_open_files(tools: Any, tmp_path: Path, both: Any, mode: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("zwölf\r\nü\nende\n", "utf-8", newline="")

    def agent() -> list[Any]:
        with file.open(mode, encoding="utf-8" if mode == "r" else None) as stream:
            found = [tools.read(stream, 3)]
            for line in tools.lines(stream):
                found += [line, stream.read()]
            return found

    both(agent)


def test_a_buffer_that_the_tool_writes_to(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        out = io.StringIO()
        tools.report(out)
        return [out.getvalue(), out.tell()]

    assert both(agent) == ["line 1", 2]


def test_a_stream_that_the_tool_closes(tools: Any, both: Any) -> None:
    def agent() -> bool:
        stream = io.BytesIO(b"abc")
        tools.shut(stream)
        return stream.closed

    assert both(agent) is True


def test_streams_that_cannot_be_read_twice(tools: Any, path: Path, tmp_path: Path) -> None:
    def agent() -> bool:
        with (tmp_path / "out.txt").open("w") as stream, pytest.raises(OSError, match="readable"):
            tools.read(stream)
        return True

    assert "that cannot be read twice; pass its path or its content" in refused(path, tools, agent)


# -- sharing ----------------------------------------------------------------------------------------


def test_C154_results_are_fresh_each_time(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]) as run:
        first = tools.read_back()
        first.append("mine")
        assert run.calls[0].result == ["a"]
        tools.read_back()
    before = path.read_bytes()
    for _ in range(2):
        with stepfork.replay(path) as run:
            for _ in range(2):
                result = tools.read_back()
                assert result == ["a"]
                result.append("x")
            run.calls[0].result.append("y")
            assert [call.result for call in run.calls] == [["a"], ["a"]]
    assert path.read_bytes() == before


def test_C154_the_live_result_is_the_identical_object(make_module: Any, path: Path) -> None:
    module = make_module("held = {'a': [1]}\ndef get():\n    return held\n")
    with stepfork.record(path, tools=[module.__name__]):
        assert module.get() is module.held
        module.held["a"].append(2)
        assert module.get() is module.held
    assert [call.result for call in stepfork.load(path).calls] == [{"a": [1]}, {"a": [1, 2]}]


def test_arguments_of_earlier_calls_stay(tools: Any, path: Path) -> None:
    messages: list[Any] = []
    with stepfork.record(path, tools=[tools.__name__]) as run:
        for at in range(3):
            messages.append(at)
            tools.total(messages)
        run.calls[0].args["rows"].append("mine")
        assert [call.args["rows"] for call in run.calls] == [[0], [0, 1], [0, 1, 2]]


def test_C48_a_failure_is_no_lasting_answer(tools: Any, path: Path) -> None:
    def agent() -> list[Any]:
        found: list[Any] = []
        for call in (tools.write, tools.read_back, tools.write):
            try:
                found.append(call())
            except ConnectionError as error:
                found.append(str(error))
        return found

    with stepfork.record(path, tools=[tools.__name__]):
        assert agent() == ["down", ["a"], "written"]
    with stepfork.replay(path):
        assert agent() == ["down", ["a"], "written"]


@pytest.mark.parametrize("make", [iter, lambda messages: (message for message in messages), tuple])
def test_C156_messages_as_an_iterator(server: ChatServer, path: Path, make: Any) -> None:
    messages = [{"role": "user", "content": "hi"}]

    def agent() -> Any:
        client = openai.OpenAI(base_url=server.url, api_key="none")
        answer = client.chat.completions.create(model="m", messages=make(messages))
        return answer.choices[0].message.content

    with stepfork.record(path):
        live = agent()
    assert live == "you said:\nhi"
    assert stepfork.load(path).calls[0].args["messages"] == messages
    with stepfork.replay(path):
        assert agent() == live
    assert server.hits == 1
