"""The walk over a value, there and back. Knows containers, cycles and how rows are found; knows no row.

A *row* is one tag with the values it stands for. The modules beside this one register theirs in `ROWS`.
"""

from __future__ import annotations

import copy
import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, type_name
from stepfork.cassette.values.policy import ClassPolicy, class_name
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

_DEEPEST: Final = 150


@dataclass(frozen=True, slots=True)
class Row:
    """One tag: `encode` gives its plain content, `decode` the value again.

    `takes` is the one type it stands for, or says of a type whether it is of the tag's kind; None for a tag
    that is written elsewhere.
    """

    tag: str
    takes: type | Callable[[type], bool] | None
    encode: Callable[[Any, Encoder, str], Plain]
    decode: Callable[[Any, Decoder], Any]


class Rows:
    """All rows: by exact type, by tag, and in order for what goes by kind of class."""

    def __init__(self) -> None:
        self.by_type: dict[type, Row] = {}
        self.by_tag: dict[str, Row] = {}
        self._kinds: list[Row] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Takes up rows; an earlier kind of class goes before a later one."""
        for row in rows:
            self.by_tag[row.tag] = row
            if isinstance(row.takes, type):
                self.by_type[row.takes] = row
            elif row.takes is not None:
                self._kinds.append(row)

    def of(self, kind: type) -> Row | None:
        """The row of a type."""
        row = self.by_type.get(kind)
        if row is None:
            row = next((row for row in self._kinds if row.takes(kind)), None)  # type: ignore[misc]
        return row


ROWS: Final = Rows()

AS_BASE: Final = Tagged("", None)
"""A row gives this for a value that it does not take after all: it stands as the plain type below it."""


class Encoder:
    """One encoding: remembers the containers it stands in, so that a cycle is an error and no crash."""

    def __init__(self, classes: ClassPolicy) -> None:
        self.classes = classes
        self._inside: set[int] = set()

    def encode(self, value: Any, path: str) -> Plain:
        """The plain form of a value."""
        kind = type(value)
        if kind in (str, int, float, bool) or value is None:
            return value  # type: ignore[no-any-return]
        if kind is dict:
            return self.mapping(value, path)
        if kind is list:
            return self.items(value, path)
        row = ROWS.of(kind)
        if row is not None:
            content = row.encode(value, self, path)
            if content is not AS_BASE:
                return Tagged(row.tag, content)
        return self._base(value, path)

    def _base(self, value: Any, path: str) -> Plain:
        """The plain value that a subclass of a plain type stands for; no method of the subclass runs."""
        if isinstance(value, dict):
            return self.mapping(value, path)
        if isinstance(value, list):
            return self.items(list.__iter__(value), path, value)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return int.__int__(value)
        if isinstance(value, float):
            return float.__float__(value)
        raise Unsupported(path, type_name(value))

    def items(self, values: Iterable[Any], path: str, container: Any = None) -> list[Plain]:
        """The plain forms of some values, which stand in `container` if that is another object."""
        with self.visit(values if container is None else container, path):
            return [self.encode(item, f"{path}[{at}]") for at, item in enumerate(values)]

    def mapping(self, value: dict[Any, Any], path: str) -> Plain:
        """The plain form of a mapping, whatever its keys are."""
        with self.visit(value, path):
            ordered = OrderedDict if isinstance(value, OrderedDict) else dict  # it keeps an order of its own
            if all(type(key) is str for key in dict.keys(value)):
                return {key: self.encode(item, f"{path}.{key}") for key, item in ordered.items(value)}
            pairs: list[Plain] = []
            for key, item in ordered.items(value):
                form = self.encode(key, f"{path} key")
                pairs.append([form, self.encode(item, f"{path}[{_shown(form)}]")])
            self._check_apart([pair[0] for pair in pairs], value, path)  # type: ignore[index]
            return Tagged("map", pairs)

    def apart(self, values: Iterable[Any], container: Any, path: str) -> list[Plain]:
        """The plain forms of the items of a set."""
        forms = self.items(values, path, container)
        self._check_apart(forms, container, path)
        return forms

    def _check_apart(self, forms: list[Plain], container: Any, path: str) -> None:
        """Whether what has the same form (a text, and a text of the user's own kind) stays apart."""
        texts = {canonical_text(form) for form in forms}
        if len(texts) < len(forms) and len(Decoder(self.classes).apart(forms)) < len(forms):
            raise Unsupported(path, type_name(container), "in which two things have the same form")

    def fields(self, values: dict[str, Any], path: str) -> dict[str, Plain]:
        """The plain forms of an object's attributes."""
        return {name: self.encode(item, f"{path}.{name}") for name, item in values.items()}

    def visit(self, value: object, path: str) -> _Visit:
        """For the time the content of a value is encoded."""
        return _Visit(self._inside, value, path)

    def name_of(self, value: object, path: str) -> str:
        """The name of a value's class, under which it will be found again.

        Raises:
            Unsupported: if it will not.
        """
        return self.name_of_class(type(value), path, type_name(value))

    def name_of_class(self, kind: type, path: str, what: str) -> str:
        """The same for a class itself; `what` is the type of the value in the error."""
        name = class_name(kind)
        hint = ""
        try:
            if self.classes.find(name) is kind:
                return name
            why = f"another class stands in its module as {name!r}"
        except BadValue as problem:
            why = str(problem)
            if "<locals>" in name:
                hint = "define the class at the top level of its module"
        raise Unsupported(path, what, f"({why})", hint)


class _Visit:
    def __init__(self, inside: set[int], value: object, path: str) -> None:
        self._inside, self._value, self._path = inside, value, path

    def __enter__(self) -> None:
        if id(self._value) in self._inside:
            raise Unsupported(self._path, type_name(self._value), "that contains itself")
        if len(self._inside) > _DEEPEST:
            path = f"{self._path[:60]}..."
            raise Unsupported(path, type_name(self._value), f"nested more than {_DEEPEST} levels deep")
        self._inside.add(id(self._value))

    def __exit__(self, *_: object) -> None:
        self._inside.discard(id(self._value))


class Decoder:
    """One decoding.

    `classes` is None where only the form is checked and nothing is built of classes. With `lenient` what is
    not at hand (a class that is not imported, say) stays a `Tagged`.

    Attributes:
        messages: the HTTP messages decoded so far, None for one that is not at hand.
    """

    def __init__(self, classes: ClassPolicy | None, *, lenient: bool = False) -> None:
        self.classes = classes
        self.messages: list[Any] = []
        self._lenient = lenient
        self._missed = 0

    def decode(self, value: Plain) -> Any:
        """A fresh Python value."""
        if isinstance(value, dict):
            return {key: self.decode(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, Tagged):
            return value
        row = ROWS.by_tag.get(value.tag)
        if row is None:
            raise BadValue(f"!{value.tag} is not a tag stepfork knows")
        missed = self._missed
        try:
            return row.decode(value.value, self)
        except Missing:
            self._missed += 1
            if not self._lenient:
                raise
        except BadValue:
            raise
        except Exception as error:
            if not self._lenient or self._missed == missed:
                raise BadValue(f"!{value.tag} cannot be read: {error}") from None
        return copy.deepcopy(value)

    def items(self, content: Any) -> list[Any]:
        """The values of a sequence."""
        if not isinstance(content, list):
            raise BadValue(f"a sequence expected, not {_kind(content)}")
        return [self.decode(item) for item in content]

    def fields(self, content: Any) -> dict[str, Any]:
        """The values of an object's attributes."""
        if not isinstance(content, dict):
            raise BadValue(f"a mapping expected, not {_kind(content)}")
        return {name: self.decode(item) for name, item in content.items()}

    def apart(self, forms: list[Plain]) -> dict[Any, None]:
        """Keys, or the items of a set, each of them once."""
        return dict.fromkeys(map(_fresh, map(self.decode, forms)))

    def mapping(self, content: Any) -> dict[Any, Any]:
        """The mapping that `Encoder.mapping` gave."""
        found = self.decode(content)
        if isinstance(found, dict):
            return found
        if isinstance(found, Tagged):
            raise Missing("a key of the mapping is not at hand")
        raise BadValue(f"a mapping expected, not {_kind(content)}")

    def find(self, name: Any, kind: Callable[[type], bool], what: str) -> type:
        """The class of that name, which must be of the tag's kind."""
        if not isinstance(name, str) or not name.partition(":")[2]:
            raise BadValue("a class expected, as in 'module:ClassName'")
        if self.classes is None:
            raise Missing(f"class {name!r} is not looked for")
        found = self.classes.find(name)
        if not kind(found):
            raise Missing(f"{name!r} is no {what} any more; record again")
        return found

    def constructs(self, kind: type) -> None:
        """Says that a constructor is about to run. Raises Missing if it may not."""
        name = class_name(kind)
        if self.classes is None or not self.classes.may_construct(kind):
            raise Missing(f"the constructor of {name!r} may not run: set allow_classes = [{name!r}]")

    def library(self, name: str) -> Any:
        """A library that the program has imported."""
        if self.classes is None:
            raise Missing(f"{name} is not looked for")
        return self.classes.module(name, f"{name}.*")


def is_of(module: str, *names: str) -> Callable[[type], bool]:
    """Whether a type is one of these classes of a library, itself."""

    def is_kind(kind: type) -> bool:
        library = sys.modules.get(module) if kind.__module__.partition(".")[0] == module else None
        return library is not None and any(kind is vars(library).get(name) for name in names)

    return is_kind


def parts(content: Any, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """A tag's content as a mapping of these fields. Raises BadValue for anything else."""
    if not isinstance(content, dict):
        raise BadValue(f"a mapping of {', '.join(required)} expected, not {_kind(content)}")
    for name in required:
        if name not in content:
            raise BadValue(f"{name!r} is missing")
    for name in content:
        if name not in required and name not in optional:
            raise BadValue(f"unknown field {name!r}; known here: {', '.join(required + optional)}")
    return content


def whole(content: Any) -> int:
    """A tag's content as an integer."""
    if type(content) is not int:
        raise BadValue(f"a whole number expected, not {_kind(content)}")
    return content


def text(content: Any) -> str:
    """A tag's content as text."""
    if not isinstance(content, str):
        raise BadValue(f"text expected, not {_kind(content)}")
    return content


def _fresh(item: Any) -> Any:
    """Each NaN is another key, if it is another object."""
    return math.nan * 1 if type(item) is float and math.isnan(item) else item


def _shown(form: Plain) -> str:
    """A key in a path."""
    if isinstance(form, int | float | str | None) and len(spelled := canonical_text(form)) < 60:
        return repr(form) if isinstance(form, str | None) else spelled
    return f"a key of type {_kind(form)}"


def _kind(content: Any) -> str:
    return f"!{content.tag}" if isinstance(content, Tagged) else type(content).__name__
