"""A request as what it changes of an earlier one, and back. Knows plain values; knows no call and no file.

An agent sends its whole history with every request. What a request adds is a fraction of it, and the only
part that a reader has not seen yet.

The places in it are paths: ``messages``, ``config.stop``, and ``["odd key"]`` for a key that is no word. What
is removed of a list is a slice of it: ``messages[-2:]`` (its last two), ``messages[1:3]``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from stepfork.cassette.scalars import MAX_DEPTH
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

Request: TypeAlias = dict[str, Plain]

_WORD: Final = re.compile(r"[A-Za-z_][\w-]*\Z")
_STEP: Final = re.compile(r'(?:\A|(?<!\A)\.)([A-Za-z_][\w-]*)|\[("(?:[^"\\]|\\.)*")\]')
_SLICE: Final = re.compile(r"\[(?:(-[1-9][0-9]{0,8}):|([0-9]{1,9}):([1-9][0-9]{0,8}))\]\Z")
_WORTH: Final = 0.75  # a part is told as what it changes if that takes no more than this share of it
_CONTAINERS: Final = frozenset((dict, list, Tagged))


class Misfit(ValueError):
    """An extension that does not fit what it extends: `field` is the place in its document."""

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


@dataclass(frozen=True, slots=True)
class Extension:
    """What a request changes of an earlier one; made in this order.

    Attributes:
        back: which one: the how-manieth LLM call before it in its line of control.
        remove: the keys and parts of lists that are gone.
        changed: the keys that are new or have another value, by path.
        append: what follows at the end of lists, by path.
    """

    back: int = 1
    remove: list[str] = field(default_factory=list)
    changed: dict[str, Plain] = field(default_factory=dict)
    append: dict[str, list[Plain]] = field(default_factory=dict)

    @property
    def only_adds(self) -> bool:
        """Whether nothing that was there is gone or another."""
        return not self.remove and not self.changed

    @property
    def size(self) -> int:
        """About how many characters it takes in a file."""
        return len(canonical_text([list(self.remove), self.changed, dict(self.append)]))


def extend(base: Request, request: Request, back: int = 1) -> Extension:
    """What a request changes of another one; the order of keys does not count.

    >>> extend({"model": "m", "messages": [1, 2]}, {"model": "m", "messages": [1, 2, 3], "n": 1})
    Extension(back=1, remove=[], changed={'n': 1}, append={'messages': [3]})
    >>> extend({"messages": [1] * 99}, {"messages": [1] * 90 + [2]}).remove
    ['messages[-9:]']
    """
    found = Extension(back)
    _compare_mappings(base, request, "", found)
    return found


def same(old: Plain, new: Plain) -> bool:
    """Whether two plain values are equal: ``1``, ``True`` and ``1.0`` differ, and so do ``-0.0`` and ``0.0``.

    NaN differs even from itself, so it is written again.
    """
    return old is new or (type(old) is type(new) and old == new and _same_kinds(old, new))


def _same_kinds(old: Any, new: Any) -> bool:
    """Whether values that `==` calls equal have the same types all through."""
    kind = type(old)
    if kind is dict:
        for key, value in old.items():
            other = new[key]
            if value is not other and not _same_kinds_at(value, other):
                return False
        return True
    if kind is list:
        for value, other in zip(old, new, strict=True):
            if value is not other and not _same_kinds_at(value, other):
                return False
        return True
    if kind is Tagged:
        return _same_kinds_at(old.value, new.value)
    return kind is not float or float.hex(old) == float.hex(new)


def _same_kinds_at(old: Any, new: Any) -> bool:
    kind = type(old)
    return kind is str or (kind is type(new) and _same_kinds(old, new))


def _compare_mappings(base: Request, request: Request, above: str, found: Extension) -> None:
    found.remove.extend(_join(above, key) for key in base if key not in request)
    for key, new in request.items():
        path = _join(above, key)
        if key not in base:
            found.changed[path] = new
        elif not same(base[key], new):
            _compare(base[key], new, path, found)


def _compare(old: Plain, new: Plain, path: str, found: Extension) -> None:
    """Adds what a value changes of another one, or the value as a whole where that says no less."""
    part = Extension()
    if type(old) is dict and type(new) is dict:
        _compare_mappings(old, new, path, part)
    elif type(old) is list and type(new) is list:
        _compare_lists(old, new, path, part)
    else:
        part.changed[path] = new
    adds = part.only_adds and part.append
    if path not in part.changed and not adds and part.size > _WORTH * len(canonical_text(new)):
        part = Extension(changed={path: new})
    found.remove.extend(part.remove)
    found.changed.update(part.changed)
    found.append.update(part.append)


def _compare_lists(old: list[Plain], new: list[Plain], path: str, found: Extension) -> None:
    kept = alike(old, new)
    if kept < len(old):
        gap = _gap(old, new, kept)
        if gap:
            found.remove.append(f"{path}[{kept}:{kept + gap}]")
            kept = len(old) - gap
        elif kept:
            found.remove.append(f"{path}[{kept - len(old)}:]")
        else:
            found.changed[path] = new
            return
    elif not old:
        found.changed[path] = new
        return
    if len(new) > kept:
        found.append[path] = new[kept:]


def alike(old: list[Plain], new: list[Plain]) -> int:
    """How many items at the start of both are the same."""
    whole = new[: len(old)]
    if len(whole) == len(old) and same(old, whole):
        return len(old)
    for at, (before, after) in enumerate(zip(old, new)):  # noqa: B905 - the shorter one ends it
        if not same(before, after):
            return at
    return min(len(old), len(new))


def _gap(old: list[Plain], new: list[Plain], start: int) -> int:
    """How many items have to go at `start` so that all behind them go on in the new list; 0 if none help."""
    if start >= len(new):
        return 0
    for gap in range(1, len(old) - start):
        rest = old[start + gap :]
        if same(rest[0], new[start]) and same(rest, new[start : start + len(rest)]):
            return gap
    return 0


class Draft:
    """A request in the making: an earlier one, and what later ones change of it, one after another.

    What is not changed is shared with the earlier one, which stays as it is.

    >>> draft = Draft({"model": "m", "messages": [1]})
    >>> draft.apply(Extension(append={"messages": [2]}))
    >>> draft.apply(Extension(remove=["model"], append={"messages": [3]}))
    >>> draft.request
    {'messages': [1, 2, 3]}
    """

    def __init__(self, base: Request) -> None:
        self.request: Request = dict(base)
        self._own: dict[tuple[str, ...], Any] = {(): self.request}  # what may be changed in place
        self._below: dict[tuple[str, ...], set[tuple[str, ...]]] = {}  # of those, what stands right in them

    def apply(self, extension: Extension) -> None:
        """Makes the changes of one request.

        Raises:
            Misfit: naming the field.
        """
        for at, path in enumerate(extension.remove):
            self._remove(path, f"remove[{at}]")
        for path, value in extension.changed.items():
            where = f"request.{path}"
            *above, key = _steps(path, where)
            self._mapping(tuple(above), where)[key] = value
            self._forget((*above, key))
        for path, tail in extension.append.items():
            where = f"append.{path}"
            self._list(_steps(path, where), where).extend(tail)

    def _remove(self, path: str, where: str) -> None:
        part = _SLICE.search(path)
        if part is None:
            *above, key = _steps(path, where)
            mapping = self._mapping(tuple(above), where)
            if key not in mapping:
                raise Misfit(where, f"what it extends has no {path}")
            del mapping[key]
            self._forget((*above, key))
            return
        items = self._list(_steps(path[: part.start()], where), where)
        start = int(part[2] or part[1])
        end = int(part[3]) if part[3] else len(items)
        if not -len(items) <= start < end <= len(items):
            raise Misfit(where, f"what it extends has {len(items)} items there")
        del items[start:end]

    def _mapping(self, keys: tuple[str, ...], where: str) -> Request:
        found = self._at(keys, where)
        if type(found) is not dict:
            raise Misfit(where, "what it extends has no mapping there")
        return found

    def _list(self, keys: tuple[str, ...], where: str) -> list[Plain]:
        found = self._at(keys, where)
        if type(found) is not list:
            raise Misfit(where, "what it extends has no list there")
        return found

    def _at(self, keys: tuple[str, ...], where: str) -> Any:
        """The container at a place, as one that may be changed: it is copied the first time."""
        found = self._own.get(keys)
        if found is None:
            above = self._mapping(keys[:-1], where)
            if keys[-1] not in above:
                raise Misfit(where, f"what it extends has no {_path(keys)}")
            found = above[keys[-1]]
            if type(found) is dict or type(found) is list:
                found = self._own[keys] = above[keys[-1]] = found.copy()
                self._below.setdefault(keys[:-1], set()).add(keys)
        return found

    def _forget(self, keys: tuple[str, ...]) -> None:
        """What stands there now is somebody else's, and may not be changed in place."""
        self._below.get(keys[:-1], set()).discard(keys)
        gone = [keys]
        while gone:
            self._own.pop(gone[-1], None)
            gone += self._below.pop(gone.pop(), ())


def apply(base: Request, extension: Extension) -> Request:
    """The request that an extension makes of another one, which stays as it is.

    Raises:
        Misfit: naming the field.

    >>> apply({"model": "m", "messages": [1]}, Extension(append={"messages": [2]}))
    {'model': 'm', 'messages': [1, 2]}
    """
    draft = Draft(base)
    draft.apply(extension)
    return draft.request


def step_to(key: str) -> str:
    """What a key adds to a path.

    >>> step_to("stop"), step_to("odd key")
    ('.stop', '["odd key"]')
    """
    return f".{key}" if _WORD.match(key) else f"[{json.dumps(key)}]"


def _join(above: str, key: str) -> str:
    return f"{above}{step_to(key)}".removeprefix(".")


def _path(keys: tuple[str, ...]) -> str:
    path = ""
    for key in keys:
        path = _join(path, key)
    return path


def _steps(path: str, where: str) -> tuple[str, ...]:
    """The keys of a path."""
    keys: list[str] = []
    at = 0
    while at < len(path) or not keys:
        step = _STEP.match(path, at)
        if step is None:
            raise Misfit(where, f'{path!r} is no path: keys with dots between them, odd ones as ["..."]')
        try:
            keys.append(step[1] if step[1] is not None else json.loads(step[2]))
        except ValueError:
            raise Misfit(where, f"{path!r} is no path: {step[2]} is no text") from None
        at = step.end()
    if len(keys) > MAX_DEPTH:
        raise Misfit(where, f"a path of more than {MAX_DEPTH} keys")
    return tuple(keys)
