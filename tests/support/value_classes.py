"""Classes of the kinds that programs pass about, for the tests of values and exceptions."""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, v1

T = TypeVar("T")
constructed: list[str] = []
"""What ran a constructor, by class."""


class Color(enum.Enum):
    RED = 1
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"


class Perm(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Point(NamedTuple):
    x: Any
    y: Any = 0


@dataclass
class Plain:
    a: Any
    b: Any = None

    def __post_init__(self) -> None:
        constructed.append("Plain")


@dataclass(frozen=True, slots=True)
class Frozen:
    a: Any
    b: Any = None


@dataclass
class Box(Generic[T]):
    content: T
    more: list[Any] = field(default_factory=list)

    @cached_property
    def worked_out(self) -> object:
        return object()


@dataclass
class Locked:
    name: str
    lock: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        constructed.append("Locked")
        self.lock = threading.Lock()


@dataclass
class Finalised:
    """What its ``__del__`` does goes by what it holds."""

    path: str

    def __del__(self) -> None:
        constructed.append(f"deleted {self.path}")


@dataclass
class Odd:
    """Its constructor does not make again what it holds."""

    name: str
    lock: Any = field(init=False)

    def __post_init__(self) -> None:
        self.name += "!"
        self.lock = threading.Lock()


class Answer(BaseModel):
    title: Any
    score: Any = 0.5
    inner: Answer | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1
    _seen: int = PrivateAttr(default=0)


class Old(v1.BaseModel):
    a: Any = 1
    b: int = 2
    _seen: int = v1.PrivateAttr(default=0)


class WithLock(BaseModel):
    a: int = 1
    _lock: Any = PrivateAttr(default_factory=threading.Lock)


class Outer:
    class Inner(enum.Enum):
        A = "a"


class Headers(dict[str, str]):
    """A mapping of a library's: its own methods must not be asked while it is written."""

    def items(self) -> Any:
        raise AssertionError("asked")

    __iter__ = items  # type: ignore[assignment]


class Text(str):
    def __str__(self) -> str:
        raise AssertionError("asked")


class Money:
    """Nothing stepfork knows; the tests register a codec for it."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    __hash__ = None  # type: ignore[assignment]


class ToolDown(Exception):
    """Its constructor takes something else than its args."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        constructed.append("ToolDown")
        super().__init__(f"down: {message}")
        self.retry_after = retry_after


class Slotted(Exception):
    __slots__ = ("code", "never")

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Made(Exception):
    def __new__(cls, *args: Any) -> Made:
        constructed.append("Made")
        return super().__new__(cls, "changed")


class Renamed(OSError):
    pass


class Group(ExceptionGroup[Exception]):
    pass


class Handle(Exception):
    """It holds what cannot be written, and its constructor makes it."""

    def __init__(self, host: str) -> None:
        constructed.append("Handle")
        super().__init__(host)
        self.lock = threading.Lock()
        self.host = host
