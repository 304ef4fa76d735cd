"""Which placeholder of a recording stands for which secret of a run. Knows placeholders; finds no secrets.

A dummy value may stand where a real secret did, but the same placeholder always stands for the same one, one
to one. What a run has that the recording was not seen to have yet is ``<secret:LABEL:other-N>``; once a
comparison has shown which placeholder it is, the run's redactor writes that one (see `bindings`), and
equal texts say the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from stepfork.core.placeholder_texts import (
    LOOKALIKE,
    MARK,
    PLACEHOLDER,
    SHORTEST,
    is_other,
    label_of,
    looks_like_one,
    opened_alike,
)


class Bound(Protocol):
    """What is known of a run's secrets by now."""

    def was_brought(self, placeholder: str) -> bool:
        """Whether the program was given a placeholder."""

    def may_be(self, recorded: str, here: str) -> bool:
        """Whether a placeholder or text of the run may be what a recorded one stands for."""

    def is_that_dummy(self, recorded: str, here: str) -> bool:
        """Whether a short dummy of the run is the one that a recorded placeholder stands for already."""

    def is_dummy_for(self, recorded: str, here: str) -> bool:
        """Whether a dummy of the run stands for a recorded value that is put together otherwise."""

    def in_clear(self, here: str) -> str:
        """A text of the run with its short secrets in clear: the recording may have them so."""


class Apart:
    """Nothing is known of the run but that its secrets were numbered independently, or by a replay."""

    def __init__(self, replays: bool = False) -> None:
        self._replays = replays

    def was_brought(self, placeholder: str) -> bool:
        """Nothing is known."""
        return False

    def may_be(self, recorded: str, here: str) -> bool:
        """A placeholder with the same label, of a replay one that is none of the recording's."""
        is_one = PLACEHOLDER.fullmatch(here) is not None and label_of(recorded) == label_of(here)
        return is_one and (not self._replays or is_other(here))

    def is_that_dummy(self, recorded: str, here: str) -> bool:
        """Nothing is known."""
        return False

    def is_dummy_for(self, recorded: str, here: str) -> bool:
        """Nothing is known."""
        return False

    def in_clear(self, here: str) -> str:
        """Nothing is known."""
        return here


class Renaming:
    """The pairs that a comparison has found so far. `fork` it to try a further one.

    Without `bound` two values are compared whose secrets were numbered independently of each other.

    >>> renaming = Renaming()
    >>> renaming.unify("Bearer <secret:token:1>", "Bearer <secret:token:3>")
    True
    >>> renaming.unify("<secret:token:2>", "<secret:token:3>")
    False
    >>> renaming.unify("log in with <secret:password:1>", "log in with hunter2hunter2")
    False
    """

    __slots__ = ("_bound", "_incoming", "_pairs")

    def __init__(self, bound: Bound | None = None) -> None:
        self._bound = bound or Apart()
        self._pairs: dict[str, str] = {}
        self._incoming: dict[str, str] = {}

    @property
    def pairs(self) -> Mapping[str, str]:
        """Each recorded placeholder, and the placeholder or text of the run that it stands for."""
        return self._pairs

    def fork(self) -> Renaming:
        """An independent copy."""
        copy = Renaming(self._bound)
        copy._pairs = self._pairs.copy()
        copy._incoming = self._incoming.copy()
        return copy

    def unify(self, recorded: str, incoming: str) -> bool:
        """Whether two texts are equal up to what the placeholders stand for; if not, nothing is kept."""
        if "=secret:" in recorded:  # the program was given what looks like a placeholder: it may be the one
            recorded = LOOKALIKE.sub(self._given, recorded)
        recorded, incoming = opened_alike(recorded, incoming)
        if MARK not in recorded:
            return recorded in (incoming, self._bound.in_clear(incoming))
        pairs = self._align(recorded, incoming)
        if pairs is None:
            if self._bound.is_dummy_for(recorded, incoming):
                return True
            pairs = self._align(recorded, self._bound.in_clear(incoming))
        if pairs is None:
            return False
        fresh: dict[str, str] = {}
        back: dict[str, str] = {}
        for placeholder, here in pairs:
            if placeholder != here and self._bound.is_that_dummy(placeholder, here):
                continue
            was = self._pairs.get(placeholder) or fresh.setdefault(placeholder, here)
            owner = self._incoming.get(here) or back.setdefault(here, placeholder)
            if was != here or owner != placeholder:
                return False
            if placeholder != here and not self._bound.may_be(placeholder, here):
                return False
        self._pairs |= fresh
        self._incoming |= back
        return True

    def _given(self, found: re.Match[str]) -> str:
        shown = f"<{found[0][2:]}"
        return shown if found[1] == "=" and self._bound.was_brought(shown) else found[0]

    def _align(self, recorded: str, incoming: str) -> list[tuple[str, str]] | None:
        """What each placeholder of `recorded` stands for in `incoming`, read from left to right.

        Of several side by side that a text stands for, nothing tells where one ends: they are one pair.
        """
        pairs: list[tuple[str, str]] = []
        at = start = 0  # in `incoming`, in `recorded`
        for found in PLACEHOLDER.finditer(recorded):
            if found.start() < start:
                continue  # told with the one before
            literal = recorded[start : found.start()]
            if not incoming.startswith(literal, at):
                return None
            at += len(literal)
            there = PLACEHOLDER.match(incoming, at)
            start, text = (found.end(), there[0]) if there else _text_at(incoming, at, found, recorded)
            if not text:
                return None
            pairs.append((recorded[found.start() : start], text))
            at += len(text)
        return pairs if incoming[at:] == recorded[start:] else None


_SEVERAL: Final = re.compile(rf"(?:{PLACEHOLDER.pattern})+")


def _text_at(incoming: str, at: int, found: re.Match[str], recorded: str) -> tuple[int, str]:
    """Where what a text stands for ends in `recorded`, and the text; "" if it cannot be a secret."""
    several = _SEVERAL.match(recorded, found.start())
    assert several is not None
    following = PLACEHOLDER.search(recorded, several.end())
    literal = recorded[several.end() : following.start() if following else len(recorded)]
    after = several.end()
    if following is None:
        end = len(incoming) - len(literal)
    else:
        end = incoming.find(literal, at + SHORTEST)
    mark = incoming.find(MARK, at, max(end, at))
    if mark > at and after > found.end():  # the next one is known
        after, end = found.end(), mark
    count = recorded.count(MARK, found.start(), after)
    text = incoming[at:end] if end >= at + SHORTEST * count else ""
    return after, "" if MARK in text or looks_like_one(text) else text
