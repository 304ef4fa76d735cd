"""Which functions a pattern takes from a module. The modules are real files, imported."""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap

import pytest

from stepfork.errors import ConfigError
from stepfork.instrument.code_swap import swap
from stepfork.instrument.discovery import Found, tools_of
from stepfork.instrument.tool_patterns import parse_pattern

numbers = itertools.count()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(source, name=None):
        name = name or f"discovered_{next(numbers)}"
        *packages, _ = name.split(".")
        for depth in range(len(packages)):
            folder = tmp_path.joinpath(*packages[: depth + 1])
            folder.mkdir(exist_ok=True)
            (folder / "__init__.py").touch()
        (tmp_path / (name.replace(".", "/") + ".py")).write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        made.append(name)
        return importlib.import_module(name)

    yield make
    for name in made:
        sys.modules.pop(name, None)


def names(module, *patterns, exclude=()):
    return [found.name for found in find(module, *patterns, exclude=exclude)]


def find(module, *patterns, exclude=()):
    """Patterns beginning with ":" are of this module."""

    def parse(text):
        return parse_pattern(module.__name__ + text if text.startswith(":") or not text else text)

    return tools_of(module, map(parse, patterns or ("",)), map(parse, exclude))


# Whole modules.


def test_public_functions_defined_there(module):
    found = find(
        module(
            """
            from json import dumps
            from os.path import join
            import json, math
            from math import sqrt
            from dataclasses import dataclass
            from enum import Enum

            def lookup(service): ...
            async def fetch(url): ...
            def pages(): yield 1
            async def apages(): yield 1
            shout = lambda text: text.upper()
            def _private(): ...
            def __getattr__(name): raise AttributeError(name)
            limit, table = 3, {"a": 1}

            class Client:
                def search(self): ...
            @dataclass
            class Data:
                a: int
                def total(self): ...
            class Colour(Enum):
                RED = 1
                def shade(self): ...
            class Broken(Exception):
                def explain(self): ...
            client = Client()
            """
        )
    )
    assert [(each.name, each.kind, each.is_method) for each in found] == [
        ("lookup", "sync", False),
        ("fetch", "async", False),
        ("pages", "generator", False),
        ("apages", "async_generator", False),
        ("shout", "sync", False),
    ]
    assert len({each.module for each in found}) == 1


def test_other_modules_are_left_alone(module):
    made = module("def f(): ...")
    assert names(made, "some.other", made.__name__ + ".*", "some.other:f") == []
    assert names(made, exclude=["some.other"]) == ["f"]


def test_an_alias_is_the_same_tool(module):
    made = module(
        "def lookup(): ...\nfind = lookup\ndef _hidden(): ...\nseen = _hidden\none = two = lambda: 1"
    )
    assert names(made) == ["lookup", "seen", "one"]


def test_decorators_are_looked_through(module):
    module(
        """
        import functools
        def wrapping(f):
            @functools.wraps(f)
            def outer(*args, **kwargs): return f(*args, **kwargs)
            return outer
        def bare(f):
            def outer(*args, **kwargs): return f(*args, **kwargs)
            return outer
        def configured(n):
            def decorate(f):
                def outer(a): return f(a)
                return outer
            return decorate
        class Cached:
            def __init__(self, f): self.f = f
            def __call__(self, *args): return self.f(*args)
        class Tool:
            def __init__(self, f): self.name, self.run = f.__name__, f
        """,
        "discovered_decorators",
    )
    made = module(
        """
        import contextlib, functools, wrapt
        from discovered_decorators import *

        @wrapping
        def a(q): ...
        @bare
        def b(q): ...
        @configured(3)
        def c(q): ...
        @Cached
        def d(q): ...
        @functools.lru_cache
        def e(q): ...
        @functools.cache
        @wrapping
        @bare
        def f(q): ...
        @wrapt.decorator
        def proxy(wrapped, instance, args, kwargs): return wrapped(*args, **kwargs)
        @proxy
        def g(q): ...
        @Tool
        def h(q): ...
        @contextlib.contextmanager
        def i(q): yield
        @functools.singledispatch
        def j(q): ...
        @staticmethod
        def k(q): ...
        """
    )
    found = {each.name: each for each in find(made, exclude=[":proxy"])}
    assert "".join(found) == "abcdefghijk"
    assert {each.function.__code__.co_varnames[0] for each in found.values()} == {"q"}
    assert {name: each.function.__name__ for name, each in found.items()} == {name: name for name in found}


def test_every_overload_of_a_single_dispatch(module):
    made = module(
        """
        import functools
        @functools.singledispatch
        def show(value): return "object"
        @show.register
        def _(value: int): return "int"
        @show.register
        def _(value: list): return "list"
        """
    )
    found = find(made)
    assert [(each.name, each.function(None)) for each in found] == [
        ("show", "object"),
        ("show", "int"),
        ("show", "list"),
    ]


def test_a_decorator_of_the_module_itself(module):
    made = module(
        """
        import functools
        def _logged(f):
            @functools.wraps(f)
            def outer(*args, **kwargs): return f(*args, **kwargs)
            return outer
        def _bare(f):
            def outer(*args, **kwargs): return f(*args, **kwargs)
            return outer
        def _making(f):
            def outer(topic): return f(topic) + 1
            return outer
        @_logged
        def a(q): ...
        @_bare
        def b(q): ...
        @_making
        def c(q): ...
        """
    )
    # a wrapper that has parameters of its own is a function of its own
    assert [(each.name, each.function.__code__.co_varnames[0]) for each in find(made)] == [
        ("a", "q"),
        ("b", "q"),
        ("c", "topic"),
    ]


def test_a_wrapper_around_something_foreign_is_the_tool(module):
    made = module(
        """
        import functools, json
        def _logged(f):
            @functools.wraps(f)
            def outer(*args, **kwargs): return f(*args, **kwargs)
            return outer
        encode = _logged(json.dumps)
        decode = functools.partial(json.loads)
        load = json.load
        """
    )
    (found,) = find(made)
    assert (found.name, found.function) == ("encode", made.encode)


def test_partials_and_bound_methods(module):
    made = module(
        """
        import functools, random
        def _fetch(kind, q): return kind, q
        news = functools.partial(_fetch, "news")
        class Client:
            def search(self, q): return q
            @classmethod
            def make(cls): return cls()
            @staticmethod
            def ping(): ...
        _client = Client()
        search, make, ping = _client.search, Client.make, _client.ping
        choice = random.Random(1).choice
        """
    )
    found = find(made)
    assert [(each.name, each.function, each.is_method) for each in found] == [
        ("news", made._fetch, False),
        ("search", made.Client.search, True),
        ("make", made.Client.make.__func__, True),
        ("ping", made.Client.ping, False),
    ]


def test_one_function_behind_several_partials_has_its_own_name(module):
    made = module(
        "from functools import partial\ndef _fetch(kind): ...\n"
        "news, mail = partial(_fetch, 'news'), partial(_fetch, 'mail')\n"
    )
    assert names(made) == ["_fetch"]


def test_registries(module):
    made = module(
        """
        import json
        from types import MappingProxyType
        def public(q): ...
        def _hidden(q): ...
        def _make(word):
            def say(to): return word + to
            return say
        TOOLS = {
            "echo": lambda text: text, "known": public, "hidden": _hidden, "hello": _make("hello "),
            "bye": _make("bye "), "foreign": json.dumps, "length": len, "number": 3, 5: lambda: 5,
        }
        NESTED = {"deep": {"function": lambda: 1, "description": "d"}}
        LIST = [public, _make("list "), lambda: "in list"]
        PAIRS = (("paired", lambda: "in tuple"),)
        FROZEN = MappingProxyType({"frozen": lambda: 1})
        SET = {_make("set ")}
        _PRIVATE = {"no": lambda: 1}
        """
    )
    found = find(made)
    assert [each.name for each in found] == [
        "public", "echo", "hidden", "hello", "bye", "TOOLS[8]", "deep", "say", "LIST[2]", "PAIRS[0][1]",
        "frozen", "SET[0]",
    ]  # fmt: skip
    assert len({id(each.function) for each in found}) == len(found)
    by_name = {each.name: each.function for each in found}
    assert by_name["hello"]("x") == "hello x"
    assert by_name["hello"].__code__ is by_name["bye"].__code__


def test_registries_that_hold_themselves_or_are_data(module):
    made = module(
        """
        LOOP = {}
        LOOP["self"] = LOOP
        LOOP["f"] = lambda: 1
        ROWS = [lambda: 1] * 2000
        """
    )
    assert names(made) == ["f"]


def test_registry_entries_with_one_name_are_told_apart_by_place(module):
    made = module("A = {'run': lambda: 1}\nB = {'run': lambda: 2}\ndef stop(): ...\nC = {'stop': lambda: 3}")
    assert names(made) == ["stop", "run", "B.run", "C.stop"]


def test_objects_that_answer_everything_are_not_asked(module):
    made = module(
        """
        class Proxy:
            woken = []
            def __getattr__(self, name):
                self.woken.append(name)
                raise RuntimeError("not ready")
            @property
            def __class__(self):
                self.woken.append("__class__")
                raise RuntimeError("not ready")
        class Unbound:
            @property
            def __wrapped__(self): raise RuntimeError("unbound")
        class Slots:
            __slots__ = ("a",)
            def __call__(self): ...
        from unittest.mock import MagicMock
        proxy, unbound, slots, mock = Proxy(), Unbound(), Slots(), MagicMock()
        def f(): ...
        """
    )
    assert names(made) == ["f"]
    assert type(made.proxy).woken == []


def test_objects_that_merely_hold_functions_are_no_tools(module):
    made = module(
        """
        import logging, threading
        def _loop(): ...
        class Settings:
            def __init__(self, on_error): self.on_error = on_error
        worker = threading.Thread(target=_loop, name="worker")
        settings = Settings(_loop)
        log = logging.getLogger(__name__)
        """
    )
    assert names(made) == []


def test_wrappers_in_great_numbers_are_looked_at_once(module):
    made = module(
        """
        class Node:
            def __init__(self, *others): self.__dict__.update((f"n{i}", o) for i, o in enumerate(others))
            def __call__(self): ...
        def _leaf(): ...
        node = Node(_leaf)
        for _ in range(10):
            node = Node(*[node] * 50, lambda: 1)
        node.back = node
        """
    )
    assert len(find(made)) == 11


def test_an_empty_cell_and_a_circle(module):
    made = module(
        """
        import functools
        def _make():
            def outer(*args, **kwargs): return late(*args, **kwargs)
            return outer
            late = None
        empty = _make()
        def _circle():
            def outer(*args, **kwargs): return outer
            return outer
        circle = _circle()
        def me(): ...
        me.__wrapped__ = me
        """
    )
    assert names(made) == ["empty", "circle", "me"]


def test_swapped_functions_are_found_again(module):
    made = module("def f(a): return a\nasync def g(a): return a\nTOOLS = {'h': lambda: 1}")

    class Handler:
        def call(self, arguments, invoke):
            return "swapped"

        acall = gcall = agcall = call

    before = find(made)
    swaps = [swap(found.function, Handler()) for found in before]
    assert find(made) == before
    assert made.f(1) == made.TOOLS["h"]() == "swapped"
    assert all(each.undo() for each in swaps)


# Named objects.


def test_named_functions(module):
    made = module(
        """
        from json import dumps
        def lookup(): ...
        def _private(): ...
        def other(): ...
        """
    )
    found = find(made, ":lookup", ":_private", ":dumps", ":lookup")
    assert [each.name for each in found] == ["lookup", "_private", "dumps"]
    assert found[2].function is made.dumps
    assert found[2].module == made.__name__
    assert names(made, "", ":_private") == ["_private", "lookup", "other"]


def test_named_classes(module):
    made = module(
        """
        import functools
        class Base:
            def inherited(self): ...
            def overridden(self): ...
        class Index(Base, dict):
            def lookup(self, q): ...
            async def fetch(self, q): ...
            def pages(self): yield
            @staticmethod
            def ping(q): ...
            @classmethod
            def make(cls): ...
            @functools.lru_cache
            def cached(self): ...
            preset = functools.partialmethod(lookup, "q")
            def overridden(self): ...
            def __call__(self, q): ...
            def __init__(self): ...
            def _private(self): ...
            @property
            def size(self): ...
            class Nested:
                def inside(self): ...
            foreign = functools.reduce
            wraps = staticmethod(functools.wraps)
            short = lambda self: 1
        """
    )
    found = find(made, ":Index")
    assert [(each.name, each.kind, each.is_method) for each in found] == [
        ("Index.lookup", "sync", True),
        ("Index.fetch", "async", True),
        ("Index.pages", "generator", True),
        ("Index.ping", "sync", False),
        ("Index.make", "sync", True),
        ("Index.cached", "sync", True),
        ("Index.overridden", "sync", True),
        ("Index.__call__", "sync", True),
        ("Index.short", "sync", True),
        ("Index.inherited", "sync", True),
    ]
    assert found[-1].function is made.Base.inherited
    assert found[-4].function is made.Index.overridden


def test_methods_inherited_from_other_packages_are_not_taken(module):
    module("class Base:\n    def shared(self): ...\n    def hook(self): ...", "discovered_pkg.base")
    module("class Base:\n    def foreign(self): ...\n    def hook(self): ...", "discovered_elsewhere")
    made = module(
        """
        import discovered_elsewhere, discovered_pkg.base
        class Mine(discovered_elsewhere.Base, discovered_pkg.base.Base): ...
        """,
        "discovered_pkg.tools",
    )
    # Mine().hook is the foreign one; the one of our package is never run
    assert names(made, ":Mine") == ["Mine.shared"]


def test_models_and_the_like_only_when_named(module):
    made = module(
        """
        from dataclasses import dataclass
        @dataclass
        class Order:
            a: int
            def total(self): ...
        """
    )
    assert names(made) == []
    assert names(made, ":Order") == ["Order.total"]


def test_named_methods(module):
    made = module(
        """
        import functools
        class Base:
            def inherited(self): ...
        class Index(Base):
            def lookup(self): ...
            def _private(self): ...
            @staticmethod
            def ping(): ...
            fixed = functools.partial(lambda q: q, 1)
            class Inner:
                def deep(self): ...
        """
    )
    patterns = [":Index.lookup", ":Index._private", ":Index.ping", ":Index.inherited", ":Index.Inner.deep"]
    assert [(each.name, each.is_method) for each in find(made, *patterns)] == [
        ("Index.lookup", True),
        ("Index._private", True),
        ("Index.ping", False),
        ("Index.inherited", True),
        ("Index.Inner.deep", True),
    ]
    if sys.version_info < (3, 14):  # from then on a partial is a method
        assert [each.is_method for each in find(made, ":Index.fixed")] == [False]


def test_named_instances_and_registries(module):
    made = module(
        """
        class Ask:
            def __call__(self, q): ...
            def search(self, q): ...
        ask = Ask()
        ask.direct = lambda q: q
        TOOLS = {"a": lambda: 1, "b": len}
        """
    )
    assert [(each.name, each.is_method) for each in find(made, ":ask.search", ":ask.direct")] == [
        ("ask.search", True),
        ("ask.direct", False),
    ]
    assert [each.name for each in find(made, ":TOOLS")] == ["a"]


def test_named_instance_of_a_class_with_call(module):
    made = module("class Ask:\n    def __call__(self, q): ...\nask = Ask()")
    assert find(made, ":ask") == [Found(made.Ask.__call__, "ask", made.__name__, True, "sync")]


def test_names_made_on_demand(module):
    made = module(
        """
        def _real(): ...
        def __getattr__(name):
            if name == "lazy": return _real
            raise AttributeError(name)
        """
    )
    assert [each.function for each in find(made, ":lazy")] == [made._real]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("lokup", "'{m}:lokup': module '{m}' has no 'lokup'; did you mean 'lookup'?"),
        ("zzz", "'{m}:zzz': module '{m}' has no 'zzz'"),
        ("Index.serch", "'{m}:Index.serch': 'Index' has no 'serch'; did you mean 'search'?"),
        ("client.zzz", "'{m}:client.zzz': 'Index' has no 'zzz'"),
        (
            "sqrt",
            "'{m}:sqrt' is not written in Python (builtin_function_or_method) and cannot be patched; "
            "call it from a function of your own and name that",
        ),
        ("limit", "'{m}:limit' is of type 'int' and leads to no Python function"),
        ("Index.size", "'{m}:Index.size' is of type 'property' and leads to no Python function"),
        (
            "half",
            "'{m}:half' is not written in Python (partial) and cannot be patched; "
            "call it from a function of your own and name that",
        ),
        ("Empty", "'{m}:Empty': class 'Empty' has no public method written in Python"),
        ("CTOOLS", "'{m}:CTOOLS' is of type 'dict' and leads to no Python function"),
        ("Decimal", "'{m}:Decimal': class 'Decimal' has no public method written in Python"),
        ("math", "'{m}:math' is of type 'module' and leads to no Python function"),
    ],
)
def test_clear_errors(module, target, message):
    made = module(
        """
        import math
        from decimal import Decimal
        from functools import partial
        from math import sqrt
        def lookup(): ...
        class Index:
            def search(self): ...
            @property
            def size(self): ...
        class Empty: ...
        client, limit, half, CTOOLS = Index(), 3, partial(sqrt, 2), {"s": sqrt}
        """
    )
    with pytest.raises(ConfigError) as raised:
        find(made, f":{target}")
    assert str(raised.value) == f"tools: {message}".replace("{m}", made.__name__)


def test_a_name_need_not_exist_in_every_module_of_a_wildcard(module):
    a = module("def lookup(): ...\ndef other(): ...", "discovered_wild.a")
    b = module("def other(): ...", "discovered_wild.b")
    assert names(a, "discovered_wild.*:lookup") == ["lookup"]
    assert names(b, "discovered_wild.*:lookup") == []
    b.lookup = 3
    assert names(b, "discovered_wild.*:lookup") == []
    assert names(b, "discovered_wild.*", exclude=["discovered_wild.*:lookup"]) == ["other"]


# Exclude.


def test_exclude(module):
    made = module(
        """
        from functools import partial
        limit = 3
        def lookup(): ...
        def other(): ...
        alias = partial(other)
        class Index:
            def search(self): ...
            def _hidden(self): ...
            def fetch(self): ...
        """
    )
    everything = ["", ":Index", ":Index._hidden"]
    assert names(made, exclude=[""]) == []
    assert names(made, ":lookup", exclude=[made.__name__.replace("covered", "*")]) == []
    assert names(made, exclude=[":lookup"]) == ["other"]
    assert names(made, exclude=[":alias", ":limit"]) == ["lookup"]
    assert names(made, *everything, exclude=[":Index.fetch"]) == [
        "Index.search",
        "Index._hidden",
        "lookup",
        "other",
    ]
    assert names(made, *everything, exclude=[":Index"]) == ["lookup", "other"]


def test_exclude_of_a_name_that_does_not_exist(module):
    made = module("def lookup(): ...")
    with pytest.raises(ConfigError, match="has no 'lokup'; did you mean 'lookup'"):
        find(made, exclude=[":lokup"])


def test_exclude_by_the_place_of_definition(module):
    module("class Base:\n    def one(self): ...\n    def two(self): ...", "discovered_origin.base")
    made = module(
        "from discovered_origin.base import Base\nclass Sub(Base):\n    def three(self): ...",
        "discovered_origin.sub",
    )
    assert names(made, ":Sub") == ["Sub.three", "Sub.one", "Sub.two"]
    assert names(made, ":Sub", exclude=["discovered_origin.base:Base.one"]) == ["Sub.three", "Sub.two"]
    assert names(made, ":Sub", exclude=["discovered_origin.base"]) == ["Sub.three"]
