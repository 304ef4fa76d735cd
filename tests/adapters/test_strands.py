"""Which strand a task, a thread or a work item is: each adapter of them, at the level of `control.py`.

A line is shown as the list of its calls, with the lines it started as lists at their places.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import contextlib
import contextvars
import gc
import inspect
import multiprocessing.context
import multiprocessing.pool
import operator
import subprocess
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.pool import ThreadPool
from types import SimpleNamespace
from typing import Any

import anyio
import anyio._backends._asyncio
import anyio.from_thread
import anyio.to_thread
import pytest

from stepfork.core.lines import Line, Scope
from stepfork.instrument.adapters import (
    anyio_workers,
    event_loops,
    multiprocessing_pool,
    processes,
    thread_pools,
    threads,
    uvloop_event_loops,
)
from stepfork.instrument.wrapping import Wrappings
from stepfork.session import active, control

ADAPTERS = (threads, thread_pools, multiprocessing_pool, event_loops, anyio_workers, processes)
EAGER = sys.version_info >= (3, 12)


class Session:
    """As much of a run as control.py asks of it."""

    is_open = True

    def __init__(self) -> None:
        self.scope = Scope()
        self.lock = threading.RLock()
        self.started = 0
        self.ended = 0

    def line_started(self, frame: control.Frame, *, inline: bool) -> Line:
        with self.lock:
            self.started += 1
            return frame.line if inline else frame.line.fork()

    def line_joined(self, line: Line, by: Line) -> None:
        with self.lock:
            if line.parent is by:
                line.join()

    def line_ended(self, line: Line | None, *, cancelled: bool) -> None:
        with self.lock:
            self.ended += 1
            if line is not None:
                line.end(cancelled=cancelled)

    def lines(self) -> list[Line]:
        found = [self.scope.main]
        for line in found:
            found += line.children.values()
        return found[1:]

    @property
    def shape(self) -> list[Any]:
        return _shape(self.scope.main)


def _shape(line: Line) -> list[Any]:
    shape: list[Any] = []
    for place in range(len(line.calls) + 1):
        shape += [_shape(line.children[born]) for born in sorted(line.children) if born[0] == place]
        shape += line.calls[place : place + 1]
    return shape


def call(what: str) -> str:
    frame = control.here().top()
    assert frame is not None, "a call from nowhere"
    frame.line.add(what)
    return what


async def acall(what: str) -> str:
    call(what)
    await asyncio.sleep(0)
    return what


def unknown() -> bool:
    return control.here().top() is None


@pytest.fixture(autouse=True)
def patched() -> Iterator[None]:
    wrappings = Wrappings([module.ADAPTER for module in ADAPTERS])
    for module in ADAPTERS:
        wrappings.install(sys.modules[module.ADAPTER.module])
    yield
    wrappings.undo()


@pytest.fixture
def session(patched: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(active, "idle", lambda: False)
    session = Session()
    with opened(session):
        yield session
    gc.collect()
    control.end_dropped()
    assert session.started == session.ended, "a strand was not ended"
    assert not [line for line in session.lines() if line.alive]


@contextlib.contextmanager
def opened(session: Session) -> Iterator[None]:
    frame = control.Frame(session, None, session.scope.main)  # type: ignore[arg-type]
    strand = control.push(frame)
    try:
        yield
    finally:
        control.pop(strand, frame)


def in_thread(target: Callable[[], Any]) -> None:
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()


# -- tasks ------------------------------------------------------------------------------------------


def test_the_main_coroutine_is_its_thread(session: Session) -> None:
    call("before")
    asyncio.run(acall("one"))
    asyncio.run(acall("two"))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(acall("three"))
    loop.close()
    call("after")
    assert session.shape == ["before", "one", "two", "three", "after"]


def test_a_loop_that_started_before_the_session(patched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()

    async def main() -> None:
        assert active.idle()
        with monkeypatch.context() as patch, opened(session):
            patch.setattr(active, "idle", lambda: False)
            call("before")
            await asyncio.gather(acall("a"), acall("b"))
            call("after")

    asyncio.run(main())
    assert session.shape == ["before", ["a"], ["b"], "after"]


def test_gather(session: Session) -> None:
    async def worker(name: str) -> str:
        await acall(f"{name}1")
        return await acall(f"{name}2")

    async def main() -> None:
        call("before")
        assert await asyncio.gather(worker("a"), worker("b")) == ["a2", "b2"]
        call("after")
        await asyncio.gather(acall("c"))

    asyncio.run(main())
    assert session.shape == ["before", ["a1", "a2"], ["b1", "b2"], "after", ["c"]]


def test_a_line_has_ended_when_its_waiter_goes_on(session: Session) -> None:
    async def main() -> None:
        await asyncio.create_task(acall("a"))
        await asyncio.create_task(acall("b"))

    asyncio.run(main())
    first, second = session.lines()
    assert second.after == (first,)


def test_task_group(session: Session) -> None:
    async def fails() -> None:
        call("fails")
        raise KeyError("x")

    async def waits() -> None:
        call("waits")
        await asyncio.Event().wait()

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(waits())
                group.create_task(fails())
        assert [type(error) for error in caught.value.exceptions] == [KeyError]
        call("after")

    asyncio.run(main())
    assert session.shape == [["waits"], ["fails"], "after"]
    assert [line.cancelled for line in session.lines()] == [True, False]


def test_timeouts_stay_on_the_line(session: Session) -> None:
    async def hangs() -> None:
        call("hangs")
        await asyncio.Event().wait()

    async def main() -> None:
        assert await asyncio.wait_for(acall("waited for"), 60) == "waited for"
        assert await asyncio.wait_for(acall("without end"), None) == "without end"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hangs(), 0.001)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(acall("never"), 0)
        async with asyncio.timeout(60):
            await acall("timed")

    asyncio.run(main())
    assert session.shape == ["waited for", "without end", "hangs", "timed"]


def test_a_task_started_inside_of_wait_for_is_a_line(session: Session) -> None:
    async def starts() -> None:
        await asyncio.ensure_future(acall("started"))
        await asyncio.create_task(acall("too"))

    async def main() -> None:
        await asyncio.wait_for(starts(), None)
        await asyncio.wait_for(starts(), 60)

    asyncio.run(main())
    assert session.shape == [["started"], ["too"], ["started"], ["too"]]


def test_nested_tasks_and_cancelling(session: Session) -> None:
    async def inner() -> None:
        call("inner")
        await asyncio.Event().wait()

    async def outer() -> None:
        call("outer")
        await asyncio.gather(inner(), acall("sibling"))

    async def main() -> None:
        task = asyncio.create_task(outer())
        while len(session.lines()) < 3 or session.lines()[2].alive:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert session.shape == [["outer", ["inner"], ["sibling"]]]
    assert [line.cancelled for line in session.lines()] == [True, True, False]


def test_what_a_callback_starts_belongs_to_who_had_it_called(session: Session) -> None:
    async def task() -> None:
        done = asyncio.Event()

        async def started() -> None:
            call("from the callback")
            done.set()

        tasks: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: tasks.append(loop.create_task(started())))
        await done.wait()
        await tasks[0]
        call("task")

    async def main() -> None:
        await asyncio.gather(task(), acall("other"))

    asyncio.run(main())
    assert session.shape == [[["from the callback"], "task"], ["other"]]


def test_a_context_does_not_say_who_runs(session: Session) -> None:
    async def task() -> None:
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            loop.run_in_executor(None, context.run, call, "a"),
            loop.create_task(acall("b"), context=contextvars.copy_context()),
        )

    async def main() -> None:
        contextvars.copy_context().run(call, "main")
        await asyncio.create_task(task())

    asyncio.run(main())
    assert session.shape == ["main", [["a"], ["b"]]]


def test_a_context_argument_is_the_users(session: Session) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")

    async def sets() -> None:
        variable.set("set")

    async def main() -> None:
        context = contextvars.copy_context()
        task = asyncio.create_task(sets(), name="mine", context=context)
        assert task.get_name() == "mine"
        await task
        assert context[variable] == "set"
        assert variable.get() == ""

    asyncio.run(main())


def test_eager_tasks(session: Session) -> None:
    async def main() -> None:
        if EAGER:
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        task = asyncio.create_task(at_once())
        assert task.done() is EAGER
        call("started")
        await task
        await asyncio.gather(acall("a"), acall("b"))

    async def at_once() -> None:
        call("at once")
        asyncio.create_task(nothing())  # noqa: RUF006

    async def nothing() -> None:
        call("nothing")

    asyncio.run(main())
    assert session.shape == [["at once", ["nothing"]], "started", ["a"], ["b"]]


def test_a_task_that_is_collected_has_ended(session: Session) -> None:
    async def forgotten() -> None:
        call("forgotten")
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        problems: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: problems.append(what["message"]))
        asyncio.create_task(forgotten())  # noqa: RUF006
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (line,) = session.lines()
        assert line.alive
        gc.collect()
        control.end_dropped()
        assert not line.alive
        assert line.cancelled
        assert problems == ["Task was destroyed but it is pending!"]

    asyncio.run(main())


def test_a_task_that_cannot_be_made(session: Session) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        error = OSError("no task today")

        def factory(loop: Any, coro: Any, **kwargs: Any) -> Any:
            raise error

        loop.set_task_factory(factory)
        coroutine = acall("never")
        with pytest.raises(OSError, match="no task today") as caught:
            loop.create_task(coroutine)  # noqa: RUF006
        assert caught.value is error
        assert not session.lines()[0].alive
        del caught
        error.__traceback__ = None
        loop.set_task_factory(None)
        with pytest.warns(RuntimeWarning, match="never awaited"):
            del coroutine

    asyncio.run(main())
    loop = asyncio.new_event_loop()
    loop.close()
    coroutine = acall("never")
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        loop.create_task(coroutine)  # noqa: RUF006
    coroutine.close()
    with pytest.raises(TypeError, match="coroutine was expected"):
        loop_of_its_own(lambda loop: loop.create_task(5))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'coro'"):
        loop_of_its_own(lambda loop: loop.create_task())


def loop_of_its_own(act: Callable[[Any], Any]) -> None:
    loop = asyncio.new_event_loop()
    try:
        act(loop)
    finally:
        loop.close()


def test_a_loop_in_a_thread(session: Session) -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    allowed = threading.Event()

    async def task(name: str) -> str:
        await asyncio.to_thread(allowed.wait)
        return await acall(name)

    future = asyncio.run_coroutine_threadsafe(task("a"), loop)
    call("meanwhile")
    allowed.set()
    assert future.result() == "a"
    in_thread(lambda: asyncio.run_coroutine_threadsafe(task("b"), loop).result())
    with pytest.raises(TypeError, match="coroutine object is required"):
        asyncio.run_coroutine_threadsafe(5, loop)  # type: ignore[arg-type]

    async def end() -> None:
        await loop.shutdown_default_executor()

    asyncio.run_coroutine_threadsafe(end(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    shape = [line for line in session.shape if line]
    assert shape == [["a"], "meanwhile", [["b"]]]


def test_what_runs_after_a_hand_over_is_no_part_of_it(session: Session) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def from_thread() -> None:
            future = asyncio.run_coroutine_threadsafe(acall("task"), loop)
            future.add_done_callback(lambda _: in_thread(lambda: call("after")))
            future.add_done_callback(lambda _: ended.set())

        await asyncio.to_thread(from_thread)
        await ended.wait()

    asyncio.run(main())
    assert sorted(map(str, session.shape)) == ["['task']", "[['after']]", "[]"]


def test_other_event_loops(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("uvloop")
    monkeypatch.setitem(sys.modules, "uvloop", module)

    class Loop(asyncio.SelectorEventLoop):
        def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
            return asyncio.Task(coro, loop=self, name=name, context=context)

        def run_until_complete(self, future: Any) -> Any:
            task = asyncio.ensure_future(future, loop=self)
            return asyncio.SelectorEventLoop.run_until_complete(self, task)

    module.Loop = Loop  # type: ignore[attr-defined]
    wrappings = Wrappings([uvloop_event_loops.ADAPTER])
    wrappings.install(module)

    async def main() -> None:
        call("main")
        await asyncio.gather(acall("a"), acall("b"))

    loop = Loop()
    loop.run_until_complete(main())
    loop.close()
    wrappings.undo()
    assert session.shape == ["main", ["a"], ["b"]]


# -- threads ----------------------------------------------------------------------------------------


def test_threads(session: Session) -> None:
    call("before")
    allowed = threading.Event()
    thread = threading.Thread(target=lambda: (allowed.wait(), call("thread")))
    thread.start()
    call("meanwhile")
    in_thread(lambda: in_thread(lambda: call("nested")))
    allowed.set()
    thread.join()
    assert session.shape == ["before", ["thread"], "meanwhile", [["nested"]]]
    assert "run" not in vars(thread)


def test_kinds_of_threads(session: Session) -> None:
    class Mine(threading.Thread):
        def run(self) -> None:
            call(self.name)

    for thread in (
        Mine(name="subclass"),
        threading.Timer(0, call, ["timer"]),
        threading.Thread(target=call, args=("target",), daemon=True),
    ):
        thread.start()
        thread.join()
        assert "run" not in vars(thread)
    cancelled = threading.Timer(60, call, ["never"])
    cancelled.start()
    cancelled.cancel()
    cancelled.join()
    assert session.shape == [["subclass"], ["timer"], ["target"], []]


def test_threads_of_the_standard_librarys_own_belong_to_nobody(session: Session) -> None:
    queue = multiprocessing.Queue()
    queue.put("fed by a thread")
    assert queue.get() == "fed by a thread"
    queue.close()
    queue.join_thread()
    asyncio.run(asyncio.to_thread(int))  # whose executor is shut down by a thread
    assert session.shape == []


def test_a_run_method_of_the_instance_comes_back(session: Session) -> None:
    thread = threading.Thread()
    thread.run = run = lambda: call("mine")  # type: ignore[method-assign,assignment]
    thread.start()
    thread.join()
    assert vars(thread)["run"] is run
    assert session.shape == [["mine"]]


def test_a_thread_that_does_not_start(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = threading.Thread(target=call, args=("once",))
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        thread.start()
    unready = threading.Thread.__new__(threading.Thread)
    unready._initialized = False  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match=r"thread.__init__\(\) not called"):
        unready.start()
    assert vars(unready) == {"_initialized": False}
    assert session.shape == [["once"], [], []]


def test_an_error_in_a_thread(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    caught: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", caught.append)

    def fails() -> None:
        raise KeyError("x")

    in_thread(fails)
    (problem,) = caught
    assert problem.exc_type is KeyError
    assert traceback.extract_tb(problem.exc_traceback)[-1].name == "fails"
    caught.clear()


# -- thread pools -----------------------------------------------------------------------------------


def test_submit_and_map(session: Session) -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(call, "a"), pool.submit(call, what="b")]
        assert [future.result() for future in futures] == ["a", "b"]
        call("between")
        assert list(pool.map(call, ["c", "d", "e"])) == ["c", "d", "e"]
    assert session.shape == [["a"], ["b"], "between", ["c"], ["d"], ["e"]]


def test_workers_belong_to_nobody(session: Session) -> None:
    initialised: list[bool] = []
    pool = concurrent.futures.ThreadPoolExecutor(1, initializer=lambda: initialised.append(unknown()))
    pool.submit(call, "main").result()

    async def task(name: str) -> None:
        await asyncio.get_running_loop().run_in_executor(pool, call, name)

    async def main() -> None:
        await asyncio.gather(task("a"), task("b"))

    asyncio.run(main())
    in_thread(lambda: pool.submit(call, "thread").result())
    assert initialised == [True]
    pool.shutdown()
    assert session.shape == [["main"], [["a"]], [["b"]], [["thread"]]]


def test_nested_pools(session: Session) -> None:
    def outer(name: str) -> None:
        call(name)
        with concurrent.futures.ThreadPoolExecutor(2) as inner:
            list(inner.map(call, [f"{name}1", f"{name}2"]))
            in_thread(lambda: inner.submit(call, f"{name}3").result())

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(outer, "ab"))
    assert session.shape == [["a", ["a1"], ["a2"], [["a3"]]], ["b", ["b1"], ["b2"], [["b3"]]]]


def test_cancelled_work(session: Session) -> None:
    allowed = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(allowed.wait)
        second = pool.submit(call, "never")
        third = pool.submit(call, "neither")
        assert second.cancel()
        cancelled = session.lines()[1]
        assert not cancelled.alive
        assert cancelled.cancelled
        pool.shutdown(wait=False, cancel_futures=True)
        assert third.cancelled()
        allowed.set()
        assert first.result()
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(call, "too late")
    assert [line.cancelled for line in session.lines()] == [False, True, True, False]


def test_errors_in_a_pool(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        raise KeyError("x")

    def refuses() -> None:
        raise OSError("broken")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(fails).exception()
        assert isinstance(error, KeyError)
        assert [entry.name for entry in traceback.extract_tb(error.__traceback__)] == [
            "run",
            "run_in",
            "fails",
        ]
        assert error.__context__ is None
        with pytest.raises(TypeError, match="not callable"):
            pool.submit(5).result()  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'fn'"):
            pool.submit()  # type: ignore[call-arg]
        del error
    with concurrent.futures.ThreadPoolExecutor(1, initializer=refuses) as pool:
        with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
            pool.submit(call, "never").result()
        with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
            pool.submit(call, "neither")
    assert "Exception in initializer" in caplog.text


def test_executors_of_a_loop(session: Session) -> None:
    async def main() -> None:
        call("before")
        assert await asyncio.to_thread(call, "inline") == "inline"
        await asyncio.get_running_loop().run_in_executor(None, call, "item")
        with pytest.raises(KeyError):
            await asyncio.to_thread({}.__getitem__, "x")
        await asyncio.gather(asyncio.to_thread(call, "a"), asyncio.to_thread(call, "b"))

    asyncio.run(main())
    assert session.shape == ["before", "inline", ["item"], ["a"], ["b"]]


def test_a_pool_of_interpreters_gets_its_work_unchanged(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    class InterpreterPoolExecutor(concurrent.futures.ThreadPoolExecutor):
        pass

    module = types.ModuleType("concurrent.futures.interpreter")
    module.InterpreterPoolExecutor = InterpreterPoolExecutor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with InterpreterPoolExecutor(1) as pool:
        assert pool.submit(abs, -1).result() == 1
    assert session.shape == [[]]  # its worker


# -- multiprocessing --------------------------------------------------------------------------------


def test_the_thread_pool_of_multiprocessing(session: Session) -> None:
    initialised: list[bool] = []
    with ThreadPool(2, lambda: initialised.append(unknown())) as pool:
        assert pool.apply(call, ("apply",)) == "apply"
        assert pool.apply_async(func=call, kwds={"what": "async"}).get() == "async"
        call("between")
        assert pool.map(call, ["a", "b", "c"]) == ["a", "b", "c"]
        assert pool.map(call, iter("de"), chunksize=2) == ["d", "e"]
        assert pool.map_async(call, []).get() == []
        call("starmap")
        assert pool.starmap(operator.call, [(call, "f"), (call, "g")]) == ["f", "g"]
    assert initialised == [True, True]
    assert session.shape == [
        *(["apply"], ["async"], "between", ["a"], ["b"], ["c"], ["d"], ["e"]),
        *("starmap", ["f"], ["g"]),
    ]


def test_lazy_maps(session: Session) -> None:
    def items() -> Iterator[str]:
        call("first")
        yield "a"
        yield "b"
        call("last")

    with ThreadPool(2) as pool:
        assert list(pool.imap(call, items())) == ["a", "b"]
        call("between")
        assert sorted(pool.imap_unordered(call, iterable="abc", chunksize=2)) == ["a", "b", "c"]
        assert list(pool.imap(call, [])) == []
    assert session.shape == [
        ["first", ["a"], ["b"], "last"],
        *("between", [["a"], ["b"], ["c"]], []),
    ]


def test_errors_in_the_thread_pool_of_multiprocessing(session: Session) -> None:
    def fails(what: str) -> str:
        call(what)
        if what == "b":
            raise KeyError(what)
        return what

    def broken() -> Iterator[str]:
        yield "x"
        raise OSError("no more")

    with ThreadPool(1) as pool:
        with pytest.raises(KeyError):
            pool.apply(fails, "b")
        with pytest.raises(KeyError):
            pool.map(fails, "abc", chunksize=3)
        given_up = session.lines()[-1]
        assert (given_up.calls, given_up.alive, given_up.cancelled) == ([], False, True)
        for chunksize in (1, 2):
            results = pool.imap(fails, broken(), chunksize)
            with pytest.raises(OSError, match="no more"):
                list(results)
        with pytest.raises(TypeError, match="not iterable"):
            list(pool.imap(fails, 5))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not iterable"):
            pool.map(fails, 5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not iterable"):
            pool.starmap(fails, [5])  # type: ignore[list-item]
        with pytest.raises(ValueError, match="Chunksize must be 1"):
            pool.imap(fails, "a", 0)
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'func'"):
            pool.apply_async()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="multiple values"):
            pool.apply_async(fails, func=fails)  # type: ignore[misc]
    for act in (pool.apply_async, pool.map, pool.imap):
        with pytest.raises(ValueError, match="Pool not running"):
            act(fails, "a")


def test_work_that_a_pool_drops_has_ended(session: Session) -> None:
    began, allowed = threading.Event(), threading.Event()
    pool = ThreadPool(1)
    pool.apply_async(lambda: (began.set(), allowed.wait()))
    pool.apply_async(call, ("never",))
    began.wait()
    pool.terminate()
    allowed.set()
    pool.join()
    del pool
    gc.collect()
    control.end_dropped()
    assert [(line.alive, line.cancelled) for line in session.lines()] == [(False, False), (False, True)]


def test_pools_of_processes_are_left_alone() -> None:
    own = vars(multiprocessing.pool.Pool)
    for name in ("apply_async", "_map_async", "imap", "imap_unordered"):
        assert isinstance(own[name], types.FunctionType)


class Stub(SimpleNamespace):
    sentinel = None

    def poll(self) -> int:
        return 0


class Spawned(multiprocessing.context.SpawnProcess):
    @staticmethod
    def _Popen(process: Any) -> Any:
        return Stub()


class Forked(multiprocessing.context.ForkProcess):
    @staticmethod
    def _Popen(process: Any) -> Any:
        return Stub()


class Usual(multiprocessing.Process):
    @staticmethod
    def _Popen(process: Any) -> Any:
        return Stub()


def test_a_child_that_is_not_forked_is_warned_of_once(session: Session) -> None:
    Forked().start()
    with pytest.warns(RuntimeWarning, match="neither recorded nor replayed") as warned:
        Spawned().start()
    Spawned().start()
    assert [warning.filename for warning in warned] == [__file__]
    with opened(Session()), pytest.warns(RuntimeWarning, match="use threads"):
        Spawned().start()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_start_method_in_force_counts(
    session: Session, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda: method)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        Usual().start()
    assert len(warned) == (method != "fork")


def test_a_child_outside_of_every_session_is_not_warned_of() -> None:
    Spawned().start()


# -- anyio ------------------------------------------------------------------------------------------


def test_task_groups_of_anyio(session: Session) -> None:
    async def started(*, task_status: Any) -> None:
        call("started")
        task_status.started("up")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(acall, "a")
            group.start_soon(acall, "b")
            assert await group.start(started) == "up"
        call("after")

    anyio.run(main)
    assert session.shape == [["a"], ["b"], ["started"], "after"]


def test_workers_of_anyio(session: Session) -> None:
    async def main() -> None:
        call("before")
        assert await anyio.to_thread.run_sync(call, "inline") == "inline"
        with pytest.raises(KeyError):
            await anyio.to_thread.run_sync({}.__getitem__, "x")
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, call, "a")
            group.start_soon(anyio.to_thread.run_sync, call, "b")
        await anyio.to_thread.run_sync(call, "abandoned", abandon_on_cancel=True)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.to_thread.run_sync(call, "never")

    anyio.run(main)
    assert session.shape == ["before", "inline", ["a"], ["b"], ["abandoned"]]


def test_a_worker_of_anyio_that_is_left_behind(session: Session) -> None:
    allowed = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with anyio.CancelScope() as scope:

            def late() -> None:
                loop.call_soon_threadsafe(scope.cancel)
                allowed.wait()
                call("late")

            await anyio.to_thread.run_sync(late, abandon_on_cancel=True)
        call("went on")
        allowed.set()
        while session.lines()[0].alive:
            await asyncio.sleep(0)

    anyio.run(main)
    assert session.shape == [["late"], "went on"]


def test_from_a_worker_of_anyio_into_the_loop(session: Session) -> None:
    async def task(name: str) -> str:
        call(name)
        await asyncio.gather(acall(f"{name}1"))
        return name

    def starts() -> str:
        asyncio.get_running_loop().create_task(acall("soon"))
        return call("sync")

    def work() -> None:
        call("worker")
        assert anyio.from_thread.run(task, "async") == "async"
        assert anyio.from_thread.run_sync(starts) == "sync"
        with pytest.raises(KeyError):
            anyio.from_thread.run_sync({}.__getitem__, "x")
        call("back")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, work)
            group.start_soon(acall, "other")
        call("after")

    anyio.run(main)
    assert session.shape == [["worker", "async", ["async1"], ["soon"], "sync", "back"], ["other"], "after"]


def test_the_portal_of_anyio(session: Session) -> None:
    with anyio.from_thread.start_blocking_portal() as portal:
        call("before")
        assert portal.call(acall, "a") == "a"
        future = portal.start_task_soon(acall, "b")
        call("meanwhile")
        assert future.result() == "b"
        in_thread(lambda: portal.call(acall, "c"))
    assert [line for line in session.shape if line] == ["before", ["a"], ["b"], "meanwhile", [["c"]]]


# -- transparent ------------------------------------------------------------------------------------


def test_nothing_is_told_while_no_session_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    with opened(session):
        assert active.idle()

        async def main() -> None:
            await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(int))
            await asyncio.wait_for(asyncio.sleep(0), 60)
            await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(asyncio.sleep, 0))
            await anyio.to_thread.run_sync(lambda: anyio.from_thread.run_sync(int))
            async with anyio.create_task_group() as group:
                group.start_soon(asyncio.sleep, 0)

        asyncio.run(main())
        in_thread(int)
        with ThreadPool(1) as pool:
            assert pool.map(abs, [-1]) == list(pool.imap(abs, [-1])) == [pool.apply(abs, (-1,))]
    assert session.started == 0


def test_nothing_is_told_where_no_session_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active, "idle", lambda: False)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(int))
        await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result())
        await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(asyncio.sleep, 0))
        await anyio.to_thread.run_sync(lambda: anyio.from_thread.run_sync(int))

    asyncio.run(main())
    in_thread(int)
    Spawned().start()
    with ThreadPool(1) as pool:
        assert pool.map(abs, [-1]) == list(pool.imap(abs, [-1])) == [pool.apply(abs, (-1,))]


def test_patches_look_alike_and_are_undone() -> None:
    owners = {
        threading.Thread: ["start"],
        concurrent.futures.ThreadPoolExecutor: ["submit"],
        multiprocessing.pool.Pool: ["__init__"],
        ThreadPool: ["apply_async", "_map_async", "imap", "imap_unordered"],
        asyncio.BaseEventLoop: ["create_task"],
        asyncio: ["run_coroutine_threadsafe"],
        anyio._backends._asyncio.AsyncIOBackend: [
            "run_sync_in_worker_thread",
            "run_async_from_thread",
            "run_sync_from_thread",
        ],
        multiprocessing.process.BaseProcess: ["start"],
    }
    wrappings = Wrappings([module.ADAPTER for module in ADAPTERS])
    before = {owner: dict(vars(owner)) for owner in owners}
    signatures = {(o, n): inspect.signature(getattr(o, n)) for o, names in owners.items() for n in names}
    for module in ADAPTERS:
        wrappings.install(sys.modules[module.ADAPTER.module])
    for (owner, name), signature in signatures.items():
        assert vars(owner)[name] is not before[owner].get(name)
        assert inspect.signature(getattr(owner, name)) == signature
        assert getattr(owner, name).__name__ == name
    wrappings.undo()
    for owner, attributes in before.items():
        assert dict(vars(owner)) == attributes
        assert all(vars(owner)[name] is value for name, value in attributes.items())


def test_the_adapters_import_nothing_they_patch() -> None:
    names = [f"stepfork.instrument.adapters.{module.__name__.rpartition('.')[2]}" for module in ADAPTERS]
    patched = ["asyncio", "multiprocessing", "concurrent.futures", "anyio", "uvloop"]
    code = f"import {', '.join(names)}, sys; sys.exit(' '.join({{*{patched}}} & {{*sys.modules}}) or None)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
