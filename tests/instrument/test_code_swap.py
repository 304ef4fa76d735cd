"""What a swapped function does, for whoever holds it. Knows handlers made here; knows no session."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import pickle
import subprocess
import sys
import timeit
import traceback
import types
import warnings
from types import CodeType, FunctionType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.instrument.code_swap import swap
from stepfork.instrument.function_kind import kind_of


class Spy:
    """Notes the arguments, passes through."""

    def __init__(self):
        self.seen = []

    def call(self, arguments, invoke):
        self.seen.append(dict(arguments))
        return invoke(arguments)

    async def acall(self, arguments, invoke):
        self.seen.append(dict(arguments))
        return await invoke(arguments)

    def gcall(self, arguments, invoke):
        self.seen.append(dict(arguments))
        return invoke(arguments)

    agcall = gcall


class Stub:
    """Answers without running anything."""

    def call(self, arguments, invoke):
        return "stub"

    async def acall(self, arguments, invoke):
        return "stub"

    def gcall(self, arguments, invoke):
        yield "stub"

    async def agcall(self, arguments, invoke):
        yield "stub"


def lookup(service: str, window: int = 60, *rest: int, deep: bool = False, **extra: object) -> tuple:
    """Looks a service up."""
    return service, window, rest, deep, extra


async def alookup(service):
    """Looks it up, later."""
    await asyncio.sleep(0)
    return service


def pages(count=2):
    """Pages."""
    got = []
    for number in range(count):
        try:
            got.append((yield number))
        except KeyError as error:
            got.append(repr(error))
        finally:
            got.append("step")
    return got


async def apages(count=2):
    """Pages, later."""
    for number in range(count):
        try:
            sent = yield number
            if sent is not None:
                yield ("sent", sent)
        except KeyError as error:
            await asyncio.sleep(0)
            yield repr(error)


ALL = [lookup, alookup, pages, apages]


@pytest.fixture
def swapped():
    """Swaps, and undoes at the end."""
    done = []

    def make(function, handler=None):
        done.append(swap(function, handler or Spy()))
        return done[-1]

    yield make
    for each in reversed(done):
        assert each.undo()


def outcome(function):
    """The first thing a function of any kind gives."""
    kind = kind_of(inspect.unwrap(function) if isinstance(function, FunctionType) else function)
    return {
        "sync": lambda: function("x"),
        "async": lambda: asyncio.run(function("x")),
        "generator": lambda: next(function()),
        "async_generator": lambda: asyncio.run(first(function())),
    }[kind]()


async def first(items):
    try:
        return await anext(items)
    finally:
        await items.aclose()


# Whoever holds the function.


class Client:
    def __init__(self, action=None):
        self.action = action

    def fetch(self, query="q"):
        return "original"

    @classmethod
    def make(cls, query="q"):
        return cls


def in_closure(function):
    def outer(*args):
        return function(*args)

    return outer


def in_default(function):
    def outer(*args, f=function):
        return f(*args)

    return outer


HOLDERS = {
    "name": lambda f: f,
    "dict": lambda f: {"lookup": f}["lookup"],
    "list": lambda f: [f],
    "set": lambda f: {f},
    "tuple": lambda f: (f,),
    "closure": in_closure,
    "partial": lambda f: functools.partial(f, "a"),
    "instance attribute": lambda f: Client(f),
    "staticmethod": staticmethod,
    "default argument": in_default,
    "lru_cache": functools.lru_cache,
    "wraps": lambda f: functools.wraps(f)(in_closure(f)),
}


def call(holder, *args):
    if isinstance(holder, list | set | tuple):
        (holder,) = holder
    if isinstance(holder, Client):
        holder = holder.action
    return holder(*args)


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("before", [True, False], ids=["held before", "held after"])
def test_reaches_every_reference(hold, before, swapped):
    holder = hold(lookup) if before else None
    swapped(lookup, Stub())
    holder = holder or hold(lookup)
    assert call(holder, "a") == "stub"


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_undo_reaches_every_reference(hold):
    before = hold(lookup)
    done = swap(lookup, Stub())
    during = hold(lookup)
    assert done.undo()
    args = () if hold is HOLDERS["partial"] else ("a",)
    assert call(before, *args) == call(during, *args) == ("a", 60, (), False, {})


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_reaches_references_of_every_kind_of_function(function, swapped):
    held = {"f": function}
    real = outcome(held["f"])
    done = swapped(function, Stub())
    assert outcome(held["f"]) == outcome(held["f"]) == "stub"
    assert done.undo()
    assert outcome(held["f"]) == real


def test_reaches_bound_methods_and_subclasses(swapped):
    class Sub(Client):
        pass

    bound, inherited = Client().fetch, Sub().fetch
    swapped(Client.fetch, Stub())
    assert bound() == inherited() == Sub().fetch() == Client.fetch(Client()) == "stub"


def test_reaches_imports_and_registrations_of_modules(tmp_path, monkeypatch, swapped):
    (tmp_path / "swap_tools.py").write_text(
        "REGISTRY = {}\n"
        "def register(f):\n    REGISTRY[f.__name__] = f\n    return f\n"
        "@register\ndef search(q):\n    return 'live'\n"
    )
    (tmp_path / "swap_agent.py").write_text(
        "from swap_tools import search\ndef run():\n    return search('q')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    agent, tools = importlib.import_module("swap_agent"), importlib.import_module("swap_tools")
    names = set(vars(tools))
    swapped(tools.search, Stub())
    assert agent.run() == tools.search("q") == tools.REGISTRY["search"]("q") == "stub"
    assert set(vars(tools)) == names  # nothing was put into the user's globals


# What the handler is given.


def test_arguments_are_bound_by_python_in_the_order_of_the_signature(swapped):
    spy = Spy()
    swapped(lookup, spy)
    assert lookup("a", 1, 2, 3, z=4, deep=True) == ("a", 1, (2, 3), True, {"z": 4})
    assert lookup(window=5, service="b") == ("b", 5, (), False, {})
    assert [list(seen.items()) for seen in spy.seen] == [
        [("service", "a"), ("window", 1), ("rest", (2, 3)), ("deep", True), ("extra", {"z": 4})],
        [("service", "b"), ("window", 5), ("rest", ()), ("deep", False), ("extra", {})],
    ]


def test_wrong_arguments_raise_what_they_always_raised(swapped):
    def message(*args, **kwargs):
        with pytest.raises(TypeError) as raised:
            alone(*args, **kwargs)
        return str(raised.value)

    def alone(a, /, b, *, c):
        return a, b, c

    wrong = [((), {}), ((1, 2, 3), {"c": 1}), ((1,), {"b": 1}), ((), {"a": 1, "b": 1, "c": 1})]
    before = [message(*args, **kwargs) for args, kwargs in wrong]
    spy = Spy()
    swapped(alone, spy)
    assert [message(*args, **kwargs) for args, kwargs in wrong] == before
    assert spy.seen == []


def test_a_handler_may_change_arguments_and_result(swapped):
    class Change(Spy):
        def call(self, arguments, invoke):
            return ["changed", invoke(arguments | {"service": "other", "rest": (9,), "extra": {"k": 1}})]

    swapped(lookup, Change())
    assert lookup("a") == ["changed", ("other", 60, (9,), False, {"k": 1})]


def test_positional_only_names_may_come_again_as_keywords(swapped):
    def odd(a, b=2, /, **kw):
        return a, b, kw

    spy = Spy()
    swapped(odd, spy)
    assert odd(1, a=5, b=6) == (1, 2, {"a": 5, "b": 6})
    assert spy.seen == [{"a": 1, "b": 2, "kw": {"a": 5, "b": 6}}]


def test_parameters_with_any_name(swapped):
    def names(_1, _0, original, a, inner, handler, *, invoke, item=0):
        "<switch>"
        return _1, _0, original, a, inner, handler, invoke, item

    class Mangled:
        def method(self, __key, *, __word=2):
            return __key, __word

    spy = Spy()
    for function in (names, Mangled.method):
        swapped(function, spy)
    assert names(1, 2, 3, 4, 5, 6, invoke=7) == (1, 2, 3, 4, 5, 6, 7, 0)
    assert names.__doc__ == names.__code__.co_consts[0] == "<switch>"
    instance = Mangled()
    assert instance.method(1, _Mangled__word=3) == (1, 3)
    assert spy.seen[1] == {"self": instance, "_Mangled__key": 1, "_Mangled__word": 3}


def test_many_parameters_and_free_variables(swapped):
    count = 300
    names = [f"p{i}" for i in range(count)]
    source = (
        f"def outer({', '.join('c' + name for name in names)}):\n"
        f"  def wide({', '.join(names)}):\n"
        f"    return {' + '.join(names)} + {' + '.join('c' + name for name in names)}\n"
        f"  return wide\n"
    )
    wide = function_from(source)(*range(count))
    swapped(wide)
    assert wide(*range(count)) == 2 * sum(range(count))
    assert wide.__code__.co_freevars == tuple(sorted(f"c{name}" for name in names))


def test_defaults_changed_later_count(swapped):
    def f(a=1):
        return a

    swapped(f)
    f.__defaults__ = (5,)
    assert f() == 5


# What stays.


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_what_can_be_seen_from_outside_stays(function, swapped):
    def looks():
        code = function.__code__
        return {
            "signature": inspect.signature(function),
            "source": inspect.getsource(function),
            "doc": (inspect.getdoc(function), FunctionType(code, {}).__doc__),
            "kind": (
                inspect.iscoroutinefunction(function),
                inspect.isgeneratorfunction(function),
                inspect.isasyncgenfunction(function),
            ),
            "names": (function.__name__, function.__qualname__, function.__module__),
            "code": (code.co_name, code.co_qualname, code.co_filename, code.co_firstlineno, code.co_flags),
            "arguments": inspect.getargs(code),
            "spec": inspect.getfullargspec(function),
            "defaults": (function.__defaults__, function.__kwdefaults__, function.__annotations__),
            "hash": hash(function),
        }

    before = looks()
    done = swapped(function)
    assert looks() == before
    assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301
    assert done.undo()
    assert looks() == before


def test_no_docstring_stays_none(swapped):
    def f():
        return "a string that comes first"

    g = lambda: "another"  # noqa: E731
    for function in (f, g):
        swapped(function)
        assert function.__doc__ is None
        assert FunctionType(function.__code__, {}).__doc__ is None


def test_the_original_is_a_full_second_function(swapped):
    def f(a: int = 1, *, b: str = "x") -> None:
        """Doc."""

    f.mark = "m"
    second = swapped(f).original
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__"):
        assert getattr(second, name) == getattr(f, name)
    assert second.__annotations__ == f.__annotations__
    assert second.__globals__ is f.__globals__
    assert second.mark == "m"
    assert inspect.signature(second) == inspect.signature(f)


def test_wraps_and_unwrap(swapped):
    swapped(lookup)
    outer = functools.wraps(lookup)(in_closure(lookup))
    assert inspect.unwrap(outer) is lookup
    assert inspect.signature(outer) == inspect.signature(lookup)


def test_tracebacks_show_the_def_line_without_columns_and_the_line_that_raised(swapped):
    def fails(a):
        b = a
        return b / 0

    swapped(fails)
    with pytest.raises(ZeroDivisionError) as raised:
        fails(1)
    frames = traceback.extract_tb(raised.value.__traceback__)
    lines = [(frame.name, frame.line) for frame in frames if frame.filename == __file__]
    assert lines[1] == ("fails", "def fails(a):")
    assert lines[-1] == ("fails", "return b / 0")
    assert {position[0] for position in fails.__code__.co_positions()} == {fails.__code__.co_firstlineno}
    assert {position[1:] for position in fails.__code__.co_positions() if position[0]} <= {
        (fails.__code__.co_firstlineno, None, None)
    }


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_a_tracer_sees_the_first_line_only(function, swapped):
    swapped(function)
    lines, generated = set(), function.__code__

    def trace(frame, event, arg):
        if frame.f_code is generated and event == "line":
            lines.add(frame.f_lineno)
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        outcome(function)
    finally:
        sys.settrace(old)
    assert lines == {generated.co_firstlineno}


def test_docstrings_under_optimisation():
    program = (
        "from stepfork.instrument.code_swap import swap\n"
        "class H:\n"
        "    def call(self, arguments, invoke): return invoke(arguments) + 1\n"
        "def f(a):\n"
        "    'doc'\n"
        "    return a\n"
        "done = swap(f, H()); print(f(1), f.__doc__, done.undo(), f(1))\n"
    )
    for option, doc in (("-O", "doc"), ("-OO", "None")):
        done = subprocess.run([sys.executable, option, "-c", program], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (f"2 {doc} True 1\n", "")


# Cells, classes, decorators.


def test_super_and_class_cells(swapped):
    class Sub(Client):
        def fetch(self, query="q"):
            return super().fetch(query) + "!", __class__

    spy = Spy()
    swapped(Sub.fetch, spy)
    sub = Sub()
    assert sub.fetch(query="z") == ("original!", Sub)
    assert spy.seen == [{"self": sub, "query": "z"}]


def test_classmethods(swapped):
    class Sub(Client):
        pass

    spy = Spy()
    swapped(Client.make.__func__, spy)
    assert Sub.make() is Sub
    assert spy.seen == [{"cls": Sub, "query": "q"}]


def test_shared_cells_go_on_being_shared(swapped):
    def make():
        total = 0

        def add(n):
            nonlocal total
            total += n
            return [total + m for m in (lambda: (0, n))()]

        return add, lambda: total

    add, get = make()
    done = swapped(add)
    assert add(2) == [2, 4]
    assert get() == 2
    assert done.undo()
    assert add(1) == [3, 4]


def test_an_empty_cell_is_no_trouble(swapped):
    def make():
        def f():
            return late

        done = swapped(f)
        late = "now"
        return f, done

    f, _ = make()
    assert f() == "now"


def test_two_closures_of_one_factory_are_two_functions(swapped):
    def make(word):
        def say(to):
            return f"{word} {to}"

        return say

    hello, bye = make("hello"), make("bye")
    assert hello.__code__ is bye.__code__
    swapped(hello, Stub())
    assert hello("x") == "stub"
    assert bye("x") == "bye x"
    swapped(bye)
    assert (hello("x"), bye("x")) == ("stub", "bye x")


def test_decorated_functions_keep_their_decorators(swapped):
    def twice(function):
        @functools.wraps(function)
        def outer(*args):
            return [function(*args), function(*args)]

        return outer

    @twice
    def one(a):
        return a

    spy = Spy()
    swapped(one.__wrapped__, spy)
    assert one(1) == [1, 1]
    assert spy.seen == [{"a": 1}, {"a": 1}]


def test_recursion_is_a_nested_call(swapped):
    def factorial(n):
        return n * factorial(n - 1) if n else 1

    spy = Spy()
    swapped(factorial, spy)
    assert factorial(3) == 6
    assert [seen["n"] for seen in spy.seen] == [3, 2, 1, 0]


def test_only_python_functions():
    for thing in (len, functools.partial(lookup), Client().fetch, Client):
        with pytest.raises(TypeError, match="only a Python function"):
            swap(thing, Spy())


# Coroutines and generators.


def test_coroutine_raises_and_is_cancelled(swapped):
    done = []

    async def slow(error=None):
        if error:
            raise error
        try:
            await asyncio.sleep(30)
        finally:
            done.append("cleaned")

    swapped(slow)

    async def main():
        with pytest.raises(KeyError):
            await slow(KeyError("x"))
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert done == ["cleaned"]


def test_a_coroutine_does_nothing_before_it_is_awaited(swapped):
    spy = Spy()
    swapped(alookup, spy)
    coroutine = alookup("x")
    assert spy.seen == []
    coroutine.close()
    with pytest.raises(TypeError):
        alookup()


def drive(function):
    """A generator stepped, sent to, thrown at; and one closed early."""
    log = []
    items = function(4)
    log += [next(items), items.send("s"), items.throw(KeyError("k"))]
    log.append(next(items))
    with pytest.raises(StopIteration) as stop:
        next(items)
    log.append(stop.value.value)
    items = function(4)
    next(items)
    items.close()
    with pytest.raises(StopIteration):
        next(items)
    items = function(4)
    next(items)
    with pytest.raises(OSError, match="not caught"):
        items.throw(OSError("not caught"))
    return log, list(function(3))


async def adrive(function):
    log = []
    items = function(5)
    log += [await anext(items), await items.asend("s"), await anext(items)]
    log.append(await items.athrow(KeyError("k")))
    log += [item async for item in items]
    items = function(4)
    await anext(items)
    await items.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(items)
    items = function(4)
    await anext(items)
    with pytest.raises(OSError, match="not caught") as raised:
        await items.athrow(OSError("not caught"))
    assert raised.value.__context__ is None
    items = function(4)
    await anext(items)
    with pytest.raises(RuntimeError, match="async generator raised StopAsyncIteration"):
        await items.athrow(StopAsyncIteration("thrown in"))
    return log, [item async for item in function(3)]


def test_generators_are_delegated_to_in_full(swapped):
    before = drive(pages)
    spy = Spy()
    done = swapped(pages, spy)
    assert drive(pages) == before
    assert spy.seen == [{"count": 4}] * 3 + [{"count": 3}]
    assert done.undo()
    assert drive(pages) == before


def test_async_generators_are_delegated_to_in_full(swapped):
    before = asyncio.run(adrive(apages))
    spy = Spy()
    done = swapped(apages, spy)
    assert asyncio.run(adrive(apages)) == before
    assert spy.seen == [{"count": 5}] + [{"count": 4}] * 3 + [{"count": 3}]
    assert done.undo()
    assert asyncio.run(adrive(apages)) == before


def test_async_generators_clean_up_when_left_early(swapped):
    log = []

    async def items(name):
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            log.append(name)

    held = []

    async def main():
        async for _ in items("left by break"):
            break
        await asyncio.sleep(0.01)
        held.append(items("left open"))
        await anext(held[0])  # the loop closes it

    swapped(items)
    asyncio.run(main())
    assert log == ["left by break", "left open"]


def test_generators_do_nothing_before_their_first_step(swapped):
    spy = Spy()
    for function in (pages, apages):
        swapped(function, spy)
        function(1)
    assert spy.seen == []


def test_generator_based_coroutines(swapped):
    @types.coroutine
    def step():
        got = yield from asyncio.sleep(0, "slept").__await__()
        return got

    swapped(step)
    assert kind_of(step) == "generator"

    async def main():
        return await step()

    assert asyncio.run(main()) == "slept"


# Undo.


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_undo_restores_the_identical_code(function):
    code = function.__code__
    done = swap(function, Spy())
    assert function.__code__ is not code
    assert done.undo()
    assert function.__code__ is code
    assert done.undo()  # again
    assert function.__code__ is code


def test_undo_leaves_the_code_of_others_and_makes_ours_inert():
    def f(a):
        return a

    def theirs(a):
        return "theirs"

    code, done = f.__code__, swap(f, Stub())
    ours = FunctionType(f.__code__, f.__globals__)  # they keep what they found
    assert ours("x") == "stub"
    f.__code__ = theirs.__code__
    assert done.undo() is False
    assert f("x") == "theirs"
    assert ours("x") == "x"
    f.__code__ = ours.__code__  # they undo
    assert done.undo()
    assert f.__code__ is code


def test_two_swaps_undone_in_the_wrong_order():
    def f(a):
        return a

    code, spy, other = f.__code__, Spy(), Spy()
    lower, upper = swap(f, spy), swap(f, other)
    assert f("x") == "x"
    assert len(spy.seen) == len(other.seen) == 1
    assert lower.undo() is False
    assert f("y") == "y"
    assert (len(spy.seen), len(other.seen)) == (1, 2)
    assert upper.undo()
    assert lower.undo()
    assert f.__code__ is code


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_inert_code_of_every_kind_runs_the_original(function):
    done = swap(function, Stub())
    kept = FunctionType(function.__code__, function.__globals__, argdefs=function.__defaults__)
    kept.__kwdefaults__ = function.__kwdefaults__
    assert done.undo()
    assert outcome(kept) == outcome(function)


def test_the_dispatch_is_inert_in_another_process(swapped):
    swapped(lookup, Stub())
    (switch,) = [value for value in lookup.__code__.co_consts if hasattr(value, "call")]
    copy = pickle.loads(pickle.dumps(switch))  # noqa: S301
    assert copy.call({"a": 1}, lambda arguments: arguments) == {"a": 1}


def test_a_call_that_runs_while_it_is_undone_ends_well():
    def f():
        yield 1
        yield 2

    done = swap(f, Spy())
    running = f()
    assert next(running) == 1
    assert done.undo()
    assert list(running) == [2]


# Random signatures.


def function_from(source):
    """The first function of the source, made without running it."""
    code = compile(source, "<random>", "exec")
    return FunctionType(next(value for value in code.co_consts if isinstance(value, CodeType)), {})


NAMES = st.lists(
    st.sampled_from(
        ["a", "b", "self", "_0", "_1", "original", "inner", "item", "kw", "__x", "ä", "args", "k"]
    ),
    unique=True,
    max_size=9,
)


@st.composite
def functions_with_arguments(draw):
    names = draw(NAMES)
    cuts = sorted(draw(st.tuples(*[st.integers(0, len(names))] * 2)))
    only, either, keyword = names[: cuts[0]], names[cuts[0] : cuts[1]], names[cuts[1] :]
    star = "rest" if draw(st.booleans()) else ""
    double = "more" if draw(st.booleans()) else ""
    parameters = [*only, *(["/"] if only else []), *either]
    parameters += ["*" + star] if star or keyword else []
    parameters += keyword + (["**" + double] if double else [])
    doc = draw(st.sampled_from(["", "'a docstring'; "]))
    function = function_from(f"def f({', '.join(parameters)}): {doc}return locals()")
    positional = only + either
    defaults = draw(st.integers(0, len(positional)))
    function.__defaults__ = tuple(f"default {name}" for name in positional[len(positional) - defaults :])
    optional = [name for name in keyword if draw(st.booleans())]
    function.__kwdefaults__ = {name: f"default {name}" for name in optional}

    required = len(positional) - defaults
    by_position = draw(st.integers(min(len(only), required), len(positional)))
    args = [draw(st.integers()) for _ in range(by_position)]
    if star and by_position == len(positional):
        args += draw(st.lists(st.integers(), max_size=3))
    kwargs = {}
    for place, name in enumerate(positional):
        if place >= by_position and name not in only and (place < required or draw(st.booleans())):
            kwargs[name] = draw(st.integers())
    for name in keyword:
        if name not in optional or draw(st.booleans()):
            kwargs[name] = draw(st.integers())
    if double:
        for name in draw(st.lists(st.sampled_from(["z", "rest", "more", *only]), unique=True)):
            kwargs[name] = draw(st.integers())
    return function, args, kwargs


@examples(100)
@given(functions_with_arguments())
def test_any_signature_gives_the_same_result_and_the_bound_arguments(made):
    function, args, kwargs = made
    expected = function(*args, **kwargs)
    # not Signature.bind, which is wrong about names that are positional-only with a default and a keyword
    bound = [(name, expected[name]) for name in inspect.signature(function).parameters]
    spy, code = Spy(), function.__code__
    done = swap(function, spy)
    assert function(*args, **kwargs) == expected
    assert list(spy.seen[0].items()) == bound
    assert function.__code__.co_flags == code.co_flags
    assert done.undo()
    assert function.__code__ is code
    assert function(*args, **kwargs) == expected


# Cost.


def test_overhead_stays_small(swapped):
    def bare(a, b=2):
        return a

    def patched(a, b=2):
        return a

    class PassThrough:
        def call(self, arguments, invoke):
            return invoke(arguments)

    swapped(patched, PassThrough())

    def seconds(function):
        return min(timeit.repeat("f(1, b=3)", globals={"f": function}, number=20_000, repeat=9))

    assert seconds(patched) / seconds(bare) < 25


def test_swapping_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in ALL:
            assert swap(function, SimpleNamespace(call=1, acall=1, gcall=1, agcall=1)).undo()
