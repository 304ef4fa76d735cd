"""The calls and secrets of a cassette, numbered and counted for reports. Knows no wording of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stepfork.cassette.store import StoredCassette
from stepfork.core.model import Plain, Recorded, Tagged
from stepfork.core.placeholder_texts import PLACEHOLDER
from stepfork.core.wording import spell


@dataclass(frozen=True, slots=True)
class Numbered:
    """A top-level call with what was called inside it, numbered from 1."""

    number: int
    calls: tuple[Recorded, ...]

    @property
    def failed(self) -> bool:
        """Whether it, or a call inside it, raised, answered with an error status or never ended."""
        return any(map(is_failure, self.calls))


def numbered(cassette: StoredCassette) -> list[Numbered]:
    """The top-level calls of a cassette."""
    ends = [*cassette.tops[1:], len(cassette)]
    return [
        Numbered(at + 1, tuple(cassette.recorded(position) for position in range(start, end)))
        for at, (start, end) in enumerate(zip(cassette.tops, ends, strict=bool(cassette.tops)))
    ]


def hidden_calls(calls: Sequence[Numbered]) -> dict[str, int]:
    """How many LLM calls were made inside tools, by the tool's name; they are answered with it on replay."""
    found: dict[str, int] = {}
    for call in calls:
        number = sum(inner.call.kind == "llm" for inner in call.calls[1:])
        if number and call.calls[0].call.kind == "tool":
            found[call.calls[0].call.name] = found.get(call.calls[0].call.name, 0) + number
    return found


def is_failure(recorded: Recorded) -> bool:
    """Whether a call raised, answered with an error status, was cancelled or never ended."""
    outcome, status = recorded.outcome, recorded.outcome.get("status", 200)
    return (
        recorded.unfinished
        or "error" in outcome
        or bool(outcome.get("cancelled"))
        or (isinstance(status, int) and status >= 400)
    )


def counted(calls: Sequence[Numbered]) -> str:
    """How many calls of which kind: ``6 calls (5 tool, 1 llm)``.

    >>> counted([])
    'no calls'
    """
    if not calls:
        return "no calls"
    kinds: dict[str, int] = {}
    for call in calls:
        kind = call.calls[0].call.kind
        kinds[kind] = kinds.get(kind, 0) + 1
    parts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{len(calls)} call{'s' if len(calls) > 1 else ''} ({parts})"


def error_text(error: Any) -> str:
    """A recorded exception, as a traceback's last line would name it.

    >>> error_text({"class": "agent.errors:SearchDown", "args": ["503"]})
    'agent.errors.SearchDown("503")'
    """
    name = str(error["class"]).removeprefix("builtins:").replace(":", ".")
    said = error.get("init", error.get("args", []))  # what its constructor takes says more than its args
    return f"{name}({', '.join(map(spell, said))})"


@dataclass(frozen=True, slots=True)
class Secret:
    """A placeholder in a cassette: how often it stands there, and where first."""

    placeholder: str
    count: int
    first: str


def secrets_of(cassette: StoredCassette, calls: Sequence[Numbered]) -> list[Secret]:
    """The placeholders that stand in a cassette, in order of their first place.

    What a request has from the one that it extends stands there, and is not counted again.
    """
    found: dict[str, list[str]] = {}
    header, end = cassette.header, cassette.end
    places: list[tuple[str, Any]] = [("args", header.args), ("env", dict(header.env))]
    position = 0
    for call in calls:
        for recorded in call.calls:
            if cassette.holds_secrets(position):
                asked: list[dict[str, Plain]] = [cassette.told(position), recorded.call.target]
                places += [(f"#{call.number}", fields) for fields in (*asked, recorded.outcome)]
            position += 1
    if end is not None:
        places += [("output", end.output), ("error", end.error)]
    for place, value in places:
        for path, text in _texts(value, place):
            for match in PLACEHOLDER.finditer(text):
                found.setdefault(match[0], []).append(path)
    return [Secret(placeholder, len(paths), paths[0]) for placeholder, paths in found.items()]


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            below = f"{path} {key}" if path.startswith("#") and " " not in path else f"{path}.{key}"
            yield below, key
            yield from _texts(item, below)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]")
    elif isinstance(value, Tagged):
        yield from _texts(value.value, path)
