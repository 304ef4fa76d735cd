"""Whether a new recording says what the old one says. Knows cassettes; knows no session and writes nothing.

What differs from run to run and that nobody did: the date, what `made_up` knows of providers, what the rules
of `normalize` find, and the marks of concurrency. Which lines had ended before others started may be chance,
and what holds less of it lets more schedules replay: so the old one stays only if it holds no more of it than
the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from stepfork.cassette import frame, reader, shared
from stepfork.cassette.made_up import MadeUp
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.values import TAGS
from stepfork.core.lanes import Lane
from stepfork.core.model import Plain
from stepfork.core.volatile import Rules
from stepfork.errors import CassetteError

_ELSEWHERE: Final = ("lane", "started", "after", shared.FIELD)
"""What documents say of others: it is compared as a whole."""
_OF_ITS_OWN: Final = ("recorded_at", frame.CHECKSUM)

Pair: TypeAlias = tuple[int, int]


def same_behaviour(standing: StoredCassette, text: str, rules: Rules | None = None) -> bool:
    """Whether a cassette tells the same as the text of another one, which is sound.

    `rules` are those of `normalize`.

    >>> from pathlib import Path
    >>> from stepfork.cassette.integrity import sealed
    >>> one = sealed("stepfork: 1\\nname: a\\nrecorded_at: now\\n---\\nend: completed\\n")
    >>> same_behaviour(StoredCassette(Path("a.yaml"), text=one), sealed(one.replace("now", "then")))
    True
    """
    if standing.verdict != "ok":
        return False
    try:
        new = StoredCassette(standing.path, text=text)
        if len(standing) != len(new):
            return False
        old_texts, new_texts = standing.slices, new.slices
        last = len(old_texts) - 1
        if all(old_texts.text(at) == new_texts.text(at) for at in range(1, last)):
            return _same_documents(old_texts, new_texts, [], rules)
        for match in (_in_order, _by_position):
            try:
                pairs = list(_calls(standing, standing.tops, new, new.tops, match))
            except _Differ:
                continue
            if _same_documents(old_texts, new_texts, pairs, rules):
                return True
    except CassetteError:
        return False
    return False


def _same_documents(old: reader.Slices, new: reader.Slices, calls: list[Pair], rules: Rules | None) -> bool:
    last = len(old) - 1
    documents = []
    for one, other in ((0, 0), *((one + 1, other + 1) for one, other in calls), (last, last)):
        if (first := old.text(one)) != (second := new.text(other)):
            documents.append((_read(first), _read(second)))
    made_up = MadeUp(rules)
    asked = [pair for pair in documents if "llm" in pair[0]]
    if not all(made_up.same_answers(*pair) for pair in asked):
        return False
    if not all(made_up.same_rest(*pair) for pair in documents):
        return False
    values = [_shared(old), _shared(new)]
    return all(
        made_up.same_value(values[0].get(one), values[1].get(other))
        for one, other in made_up.references.items()
    )


def _read(text: str) -> dict[str, Plain]:
    document = _parsed(text)
    alone = "end" in document or "stepfork" in document
    leave = _OF_ITS_OWN if alone else _ELSEWHERE
    return {key: value for key, value in document.items() if key not in leave}


def _parsed(text: str) -> dict[str, Plain]:
    return reader.parse_document(text, known_tags=TAGS | {shared.TAG})


def _shared(slices: reader.Slices) -> dict[str, Plain]:
    """All values that the documents share, by name."""
    found: dict[str, Plain] = {}
    for at in range(len(slices)):
        if slices.has(at, b"\nshared:"):
            found |= shared.values_of(_parsed(slices.text(at)))
    return found


# -- which call is which --------------------------------------------------------------------------------


class _Differ(Exception):
    """The lines of the two recordings are others."""


_Match: TypeAlias = Callable[[Lane], list[tuple[Any, Lane]]]


def _calls(
    old: StoredCassette, olds: Sequence[int], new: StoredCassette, news: Sequence[int], match: _Match
) -> Iterator[Pair]:
    """The calls of the run, or inside one call, with those inside of them."""
    if len(olds) != len(news):
        raise _Differ
    first, second = old.lanes(olds), new.lanes(news)
    strangers = zip(first.strangers, second.strangers, strict=False)
    if len(first.strangers) != len(second.strangers):
        raise _Differ
    for left, right in ((first.main, second.main), *strangers):
        for one, other in _line(left, right, match):
            at, there = olds[one], news[other]
            yield at, there
            yield from _calls(old, old.inside(at), new, new.inside(there), match)


def _line(old: Lane, new: Lane, match: _Match) -> Iterator[Pair]:
    """The calls of a line and of those it started."""
    lines, others = match(old), match(new)
    if len(old.calls) != len(new.calls) or [key for key, _ in lines] != [key for key, _ in others]:
        raise _Differ
    keys, other_keys = ({line: key for key, line in each} for each in (lines, others))
    yield from zip(old.calls, new.calls, strict=True)
    for (_, line), (_, other) in zip(lines, others, strict=True):
        if not _waits(line, keys) <= _waits(other, other_keys):
            raise _Differ
        yield from _line(line, other, match)


def _waits(line: Lane, keys: dict[Lane, Any]) -> set[Any]:
    """The lines that had ended before this one was started."""
    return set() if line.place is None else {keys[one] for one in line.place.waited[: line.waits]}


def _in_order(line: Lane) -> list[tuple[Any, Lane]]:
    """The lines that it started, those of one place by what they called, as the file has them."""
    started = sorted(line.children.values(), key=lambda child: child.born[0])
    return [((child.born[0], number), child) for number, child in enumerate(started)]


def _by_position(line: Lane) -> list[tuple[Any, Lane]]:
    """The same, those of one place in the order in which they were started."""
    return [(child.born, child) for child in sorted(line.children.values(), key=lambda child: child.born)]
