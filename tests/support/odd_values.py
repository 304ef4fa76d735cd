"""Classes that a user would attack with: what lies or raises, generics, secrets, classes of attrs."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import attrs
import pydantic
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, RootModel, SecretBytes, SecretStr

T = TypeVar("T")


class Prio(enum.IntEnum):
    LOW = 1


class Access(enum.IntFlag):
    READ = 4
    WRITE = 2
    BOTH = 6


class Keep(enum.Flag, boundary=enum.KEEP):
    A = 1


class Alias(enum.Enum):
    ONE = 1
    UNO = 1  # noqa: PIE796
    LIST = [1]


class LyingText(str):
    def __eq__(self, other: object) -> bool:
        raise AssertionError("asked")

    __hash__ = str.__hash__


class LyingList(list[Any]):
    def __iter__(self) -> Any:
        raise AssertionError("asked")

    __bool__ = __len__ = __iter__


class LyingInt(int):
    def __repr__(self) -> str:
        raise AssertionError("asked")

    __int__ = __index__ = __repr__  # type: ignore[assignment]


class OwnDecimal(decimal.Decimal):
    pass


class OwnMoment(dt.datetime):
    pass


class OwnZone(dt.tzinfo):
    def utcoffset(self, moment: Any) -> dt.timedelta:
        return dt.timedelta(hours=1)


@dataclass
class Base:
    a: int
    b: list[int] = field(default_factory=list)
    c: InitVar[int] = 3
    _: KW_ONLY
    k: int = 5

    def __post_init__(self, c: int) -> None:
        self.b.append(c)


@dataclass
class Below(Base):
    z: int = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked(Generic[T]):
    a: T
    b: Linked[T] | None = None


class Outer:
    @dataclass
    class _Private:
        a: int
        __x: int = 1


@dataclass
class Raising:
    """Whatever it is asked, it raises or lies."""

    a: int

    def __eq__(self, other: object) -> bool:
        raise AssertionError("asked")

    __hash__ = None  # type: ignore[assignment]
    __bool__ = __reduce__ = __getattr__ = __setstate__ = __getstate__ = __eq__  # type: ignore[assignment]


class Validated(BaseModel):
    model_config = ConfigDict(validate_assignment=True, frozen=True)
    x: int = Field(alias="X")

    @pydantic.field_validator("x")
    @classmethod
    def twice(cls, value: int) -> int:
        return value * 2

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def y(self) -> int:
        return self.x + 1


class Numbers(RootModel[list[int]]):
    pass


class Page(BaseModel, Generic[T]):
    items: list[T]
    _seen: int = PrivateAttr(default=0)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Login(BaseModel):
    user: str
    key: SecretStr
    raw: SecretBytes = SecretBytes(b"raw-bytes-9f8e7d")


@pydantic.dataclasses.dataclass
class Checked:
    a: int
    b: SecretStr | None = None


@attrs.define
class Defined:
    x: Any
    _y: list[Any] = attrs.Factory(list)
    z: int = attrs.field(init=False, default=3)

    @cached_property
    def worked_out(self) -> object:
        return object()


@attrs.frozen(cache_hash=True)
class Hashed:
    x: str


@attrs.define(slots=False)
class Derived(Defined):
    w: int = attrs.field(kw_only=True, default=1, converter=lambda value: value + 1)


class Undecorated(Defined):
    pass


class Pair(NamedTuple):
    a: Any
    b: Any = 2


class Named(Pair):
    __slots__ = ()


class Typed(TypedDict):
    a: int
