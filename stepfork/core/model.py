"""What a call, an outcome and a trajectory are. Knows no file, no SDK and no session.

Everything inside stepfork speaks of *plain values*: what JSON has (None, bool, int, float, str, list,
dict with string keys), plus `Tagged` for what JSON lacks. An adapter turns live objects into plain
values; from there to the file and back nothing else travels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from stepfork.core.lanes import Mark

Kind: TypeAlias = Literal["llm", "tool", "http"]
Status: TypeAlias = Literal["completed", "failed", "partial"]


@dataclass(frozen=True, slots=True)
class Tagged:
    """A plain value that JSON lacks: `tag` is the YAML tag without ``!``, `value` its plain content.

    >>> Tagged("tuple", [1, 2])
    Tagged(tag='tuple', value=[1, 2])
    """

    tag: str
    value: Plain


Plain: TypeAlias = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | Tagged | None

OPAQUE: Final = frozenset({"decimal", "datetime", "date", "time", "timedelta", "uuid", "complex"})
"""Tags whose text has a form of its own: it would not be read back with anything else in it."""


def numbers_in(value: Plain) -> Iterator[str]:
    """The whole numbers of a plain value, as texts spell them.

    >>> sorted(numbers_in({"ids": [1, 2], "n": 0.5, "done": True}))
    ['1', '2']
    """
    stack: list[Plain] = [value]
    while stack:
        item = stack.pop()
        if type(item) is int:
            yield str(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, Tagged):
            stack.append(item.value)


def texts_in(value: Plain, said: Callable[[Tagged], str | None] = lambda tagged: None) -> Iterator[str]:
    """All texts of a plain value, keys included, in no order that means anything.

    `said` gives the text that a tagged value counts as, None for one that is looked into.

    >>> sorted(texts_in({"a": ["b", Tagged("path", "c"), 1]}))
    ['a', 'b', 'c']
    """
    stack: list[Plain] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend((*item, *item.values()))
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, Tagged):
            text = said(item)
            if text is None:
                stack.append(item.value)
            else:
                yield text


@dataclass(frozen=True, slots=True)
class Incoming:
    """A call as it arrives: what is asked, in plain values, before anything answers it.

    `args` are a tool's bound arguments by name, or the JSON body of an LLM request. `target` holds what
    of the request line the name does not say already (``method``, ``path``, ``query``); empty for tools.
    `alias` is another name that a recording may know the call by: a tool's ``module:function``, which is
    its name where two tools share one.
    """

    kind: Kind
    name: str
    args: Plain
    target: dict[str, Plain] = field(default_factory=dict)
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call as it stands in a cassette: the question, and how it ended.

    `outcome` is the part of the document that says how the call ended, by field: ``result`` or ``error``
    for a tool, beside what it did to its arguments and what it yielded; ``response`` (with ``status``,
    ``headers``, ``json``), ``stream``, ``body`` or ``error`` for an LLM call. It is empty for an `unfinished`
    call. `depth` counts the calls it was made inside of.
    `mark` says by which lane it was made; None for the main line of the run, or of the call around it.
    """

    call: Incoming
    outcome: dict[str, Plain]
    depth: int = 0
    unfinished: bool = False
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a trajectory, as users see it.

    Attributes:
        kind: ``"llm"``, ``"tool"`` or ``"http"``.
        name: ``lookup_service_health``, ``Class.method``, ``chat.completions``.
        args: a tool's bound arguments by name; an LLM call's JSON body.
        result: what it returned (an LLM call: its JSON answer, or the text of a stream; a generator: the list
            of what it yielded); None if it raised.
        error: ``{"class": ..., "args": ...}`` of what it raised; None if it returned.
        children: the calls made inside this one, in order of their start.

    >>> Call("tool", "lookup", {"service": "checkout"}, result="ok").args["service"]
    'checkout'
    """

    kind: Kind
    name: str
    args: Any
    result: Any = None
    error: Any = None
    children: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The calls of one recorded run, with how the run ended. Read-only.

    Attributes:
        name: the recording's name.
        status: ``"completed"``, ``"failed"`` (the run raised) or ``"partial"`` (it was cut off).
        output: what the run returned or was given with ``set_output``.
        error: ``{"class": ..., "args": ...}`` of what ended a failed run, else None.
        calls: the top-level calls in order of their start.
        header: the cassette's first document.
    """

    name: str
    status: Status
    output: Any = None
    error: Any = None
    calls: tuple[Call, ...] = ()
    header: Mapping[str, Any] = field(default_factory=dict)


def describe(kind: str, name: str) -> str:
    """How a call is named in messages: ``tool 'search'``, ``llm 'chat.completions'``."""
    return f"{kind} {cut(repr(name), 120)}"


def cut(text: str, limit: int) -> str:
    """The beginning and the end of a text that takes more than so many bytes.

    >>> cut("short", 20), cut("a" * 50 + "b" * 50, 20)
    ('short', 'aaaaaaaa…bbbbbbbb')
    """
    size = len(text.encode("utf-8", "surrogatepass")) if len(text) <= limit else 4 * limit + len(text)
    if size <= limit:
        return text
    half = max(1, (limit - 3) // 2)
    while len(text[:half].encode("utf-8", "surrogatepass")) > (limit - 3) // 2:
        half //= 2
    tail = max(1, (limit - 3) // 2)
    while len(text[-tail:].encode("utf-8", "surrogatepass")) > (limit - 3) // 2:
        tail //= 2
    return f"{text[:half]}…{text[-tail:]}"
