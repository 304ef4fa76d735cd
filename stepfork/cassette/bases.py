"""Which earlier request a request is told by. Knows the requests of one line of control; knows no document.

A line of control is what `core/lanes.py` calls a lane, within one scope. What is kept of it are its last LLM
calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from stepfork.cassette.extension import Extension, Request, alike, apply, extend, same
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain

REACH: Final = 8
"""How many LLM calls back a request looks for one to be told by."""

_GAIN: Final = 200  # characters that must be saved
_GAIN_OF_ADDING: Final = 40  # the same where the request only adds
_LINKS: Final = 32  # so many extensions of extensions are always fine
_CHAIN: Final = 16  # how many times its own size must be read for a request


@dataclass(slots=True, eq=False)
class Asked:
    """The question of an LLM call, told by an earlier one where that is shorter.

    Attributes:
        request: in full, sharing what it has in common with the earlier one; None if it is no mapping.
        extension: what it changes of the earlier one; None if it stands in full.
        before: the calls it was chosen from, the latest first.
        weight: about how many characters it takes in full.
        links: how many extensions lead to it.
        chain: characters that these take.
    """

    request: Request | None
    extension: Extension | None = None
    before: tuple[Asked, ...] = ()
    weight: int = 0
    links: int = 0
    chain: int = 0

    def same_choice(self, before: Iterable[Asked]) -> bool:
        """Whether it was chosen from these very calls."""
        other = tuple(before)
        return len(other) == len(self.before) and all(
            one is two for one, two in zip(other, self.before, strict=True)
        )


def ask(request: Plain, before: Iterable[Asked]) -> Asked:
    """The question of a call, told by one of those before it (the latest first) if one makes it short enough.

    >>> first = ask({"model": "m", "messages": ["Say in one word what you think of this question."]}, [])
    >>> then = ask({**first.request, "messages": [*first.request["messages"], "Why?"]}, [first])
    >>> then.extension
    Extension(back=1, remove=[], changed={}, append={'messages': ['Why?']})
    """
    known = tuple(before)
    if type(request) is not dict:
        return Asked(None, None, known)
    best: Extension | None = None
    base: Asked | None = None
    size = 0
    common: dict[str, int] = {}
    for back, other in enumerate(known, start=1):
        if other.request is None or (best is not None and not _has_more(other.request, request, common)):
            continue
        found = extend(other.request, request, back)
        taken = found.size
        if best is None or taken < size:
            best, base, size = found, other, taken
            common = _common(other.request, request, found)
    if best is None or base is None or base.request is None:
        return Asked(request, None, known, _weight(request))
    weight = base.weight + size if best.only_adds else _weight(request)
    too_little = weight - size <= (_GAIN_OF_ADDING if best.only_adds else _GAIN)
    too_far = base.links >= _LINKS and weight * _CHAIN <= base.chain
    if too_little or too_far:
        return Asked(request, None, known, weight)
    return Asked(apply(base.request, best), best, known, weight, base.links + 1, base.chain + size)


def _common(base: Request, request: Request, extension: Extension) -> dict[str, int]:
    """What a request has of the one it extends, by key: all of it (-1), or so many items of a list."""
    paths = (*extension.remove, *extension.changed, *extension.append)
    found: dict[str, int] = {}
    for key in request.keys() & base.keys():
        if not any(path.startswith(key) for path in paths):
            found[key] = -1
            continue
        old, new = base[key], request[key]
        if type(old) is list and type(new) is list:
            found[key] = len(old) if extension.only_adds and key in extension.append else alike(old, new)
    return found


def _has_more(other: Request, request: Request, common: dict[str, int]) -> bool:
    """Whether a request has more of this one than what it has in `common` with another one, told cheaply."""
    for key, new in request.items():
        kept = common.get(key, 0)
        if kept < 0 or key not in other:
            continue
        old = other[key]
        if type(old) is list and type(new) is list:
            if kept < min(len(old), len(new)) and same(old[kept], new[kept]):
                return True
        elif same(old, new):
            return True
    return False


def _weight(request: Request) -> int:
    return len(canonical_text(request))


class Recent:
    """The last LLM calls of each line of control, while the calls of a finished recording go by in order.

    >>> recent = Recent()
    >>> recent.line(0, "").append(1), recent.line(0, "a").append(2), list(recent.line(0, ""))
    (None, None, [1])
    >>> list(recent.line(0, "a"))  # a call of the main line ended that lane
    []
    """

    def __init__(self) -> None:
        self._scopes: list[dict[str, deque[Asked]]] = []

    def line(self, depth: int, lane: str) -> deque[Asked]:
        """Those of the line that makes the next call, the latest first; a new one is added in front."""
        del self._scopes[depth + 1 :]
        while len(self._scopes) <= depth:
            self._scopes.append({})
        scope = self._scopes[depth]
        for name in [name for name in scope if name != lane and not is_below(lane, name)]:
            del scope[name]
        return scope.setdefault(lane, deque(maxlen=REACH))


def is_below(lane: str, other: str) -> bool:
    """Whether a lane was started by another, or by one that it started.

    >>> is_below("b.a", "b"), is_below("b", ""), is_below("b", "a"), is_below("b", "b")
    (True, True, False, False)
    """
    return lane != other and (not other or lane.startswith(f"{other}."))
