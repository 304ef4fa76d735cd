"""What users declare to be another text in every run: the rules of ``normalize``, checked and found in texts.

Knows rules and texts; compares nothing (see `likeness`) and knows no directory.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from stepfork.errors import ConfigError

PATHS: Final = "paths"
"""The rule that is on by default: home, temp and working directories, see `directories`."""

_HEX: Final = "[0-9a-fA-F]"
_BUILT_IN: Final[dict[str, tuple[str, str | None]]] = {
    "uuid": (
        rf"(?<!{_HEX})(?:{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
        rf"|{_HEX}{{12}}[1-8]{_HEX}{{3}}[89abAB]{_HEX}{{15}})(?!{_HEX})",
        None,
    ),
    "date": (r"(?<!\d)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)", "<date>"),
    "time": (
        r"(?<![\d:])(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?(?![\d:])",
        "<time>",
    ),
}
NAMES: Final = (PATHS, *_BUILT_IN)

Given: TypeAlias = tuple[tuple[str, bool | str], ...]
"""Rules as users spell them: a built-in name or a regular expression, and True, False or a text."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Without a `text`, what it finds is told apart: each value stands for one other, always."""

    name: str
    pattern: re.Pattern[str]
    text: str | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What a rule found in a text. `text` is what counts of it; None where its `value` is told apart.

    `key` is the same for a value in all its spellings (of a UUID: its 32 digits), `form` tells these apart.
    """

    rule: int
    value: str
    text: str | None
    key: str
    form: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a session; `paths` says whether directories are replaced.

    >>> rules = Rules.compile((("date", True), (r"run-[0-9]+", "<run>")))
    >>> rules.blur("run-17 of 2026-11-29")
    '<run> of <date>'
    """

    rules: tuple[Rule, ...] = ()
    paths: bool = True

    @classmethod
    def compile(cls, given: Given) -> Rules:
        """Checked rules.

        Raises:
            ConfigError: for a name that is none, and for a bad regular expression.
        """
        paths = True
        rules: list[Rule] = []
        for name, value in given:
            if name == PATHS:
                if not isinstance(value, bool):
                    raise ConfigError(f"normalize: {PATHS!r} must be true or false, not {value!r}")
                paths = value
            elif value is not False:
                rules.append(_rule(name, value))
        return cls(tuple(rules), paths)

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def tell_apart(self) -> bool:
        """Whether any rule tells what it finds apart."""
        return any(rule.text is None for rule in self.rules)

    def cut(self, text: str) -> tuple[list[str], list[Piece]]:
        """The text without what the rules find in it, and what that is: one more part than pieces.

        >>> rules = Rules.compile((("date", True), (r"run-\\w+", "<run>")))
        >>> rules.cut("run-2026-11-29 of run-7")[0]  # the date is longer than run-2026
        ['run-', ' of ', '']
        """
        found = [
            _Found(match.start(), match.end(), number, match)
            for number, rule in enumerate(self.rules)
            for match in rule.pattern.finditer(text)
            if match[0]
        ]
        parts: list[str] = []
        pieces: list[Piece] = []
        done = 0
        for start, end, number, match in _longest(found):
            parts.append(text[done:start])
            kept = self.rules[number].text
            key, form = match[0], ""
            if self.rules[number].name == "uuid":
                key = match[0].replace("-", "").lower()
                form = f"{len(match[0])}{match[0].isupper()}"
            pieces.append(Piece(number, match[0], None if kept is None else match.expand(kept), key, form))
            done = end
        return [*parts, text[done:]], pieces

    def blur(self, text: str) -> str:
        """The text with what the rules find replaced: equal for texts that may count as equal."""
        parts, pieces = self.cut(text)
        shown = [f"<{self.rules[piece.rule].name}>" if piece.text is None else piece.text for piece in pieces]
        return "".join(part for pair in zip(parts, [*shown, ""], strict=True) for part in pair)


class _Found(NamedTuple):
    """What a rule found in a text."""

    start: int
    end: int
    rule: int
    match: re.Match[str]


def _longest(found: list[_Found]) -> list[_Found]:
    """Of what overlaps the longest, of equally long the first, of the same place that of the first rule."""
    kept: list[_Found] = []
    together: list[_Found] = []  # what hangs together
    end = 0
    for one in sorted(found, key=lambda one: one[:3]):
        if one.start >= end:
            kept += _apart(together)
            together = []
        together.append(one)
        end = max(end, one.end)
    return kept + _apart(together)


def _apart(together: list[_Found]) -> list[_Found]:
    if len(together) < 2:
        return together
    kept: list[_Found] = []
    for one in sorted(together, key=lambda one: (one.start - one.end, one.start, one.rule)):
        at = bisect.bisect(kept, one.start, key=lambda other: other.start)
        free_before = at == 0 or kept[at - 1].end <= one.start
        if free_before and (at == len(kept) or kept[at].start >= one.end):
            kept.insert(at, one)
    return kept


def _rule(name: str, value: bool | str) -> Rule:
    pattern, text = _BUILT_IN.get(name, (name, None))
    if name not in _BUILT_IN and value is True and name.isidentifier():
        raise ConfigError(
            f"normalize: there is no rule {name!r}; the built-in ones are {', '.join(NAMES)}, any other is a "
            "regular expression"
        )
    text = value if isinstance(value, str) else text
    try:
        compiled = re.compile(pattern)
        if compiled.match(""):
            raise ConfigError(f"normalize: {name!r} fits the empty text, so it would fit everywhere")
        if text is not None:
            re.compile(f"{pattern}|").match("").expand(text)  # type: ignore[union-attr]
    except (re.error, IndexError, OverflowError, RecursionError) as error:
        raise ConfigError(f"normalize: {name!r} is not a rule: {error}") from None
    return Rule(name, compiled, text)


def read(value: Any) -> Given:
    """Rules as they were given: a mapping, or texts (``uuid``, ``paths=false``, ``run-[0-9]+=><run>``).

    Raises:
        ConfigError: for what is neither.

    >>> read({"uuid": True, "run-[0-9]+": "<run>"})
    (('uuid', True), ('run-[0-9]+', '<run>'))
    >>> read(["date", "paths=false", "run-[0-9]+=><run>"])
    (('date', True), ('paths', False), ('run-[0-9]+', '<run>'))
    """
    if isinstance(value, str):
        value = (value,)
    if value is None or isinstance(value, bytes) or not isinstance(value, Iterable):
        raise ConfigError(
            f"normalize must be a table of rules, not {'null' if value is None else repr(value)}; "
            "to turn the built-in one off: normalize = {paths = false}"
        )
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        pairs += value.items()
    else:
        pairs += [_spoken(item) if isinstance(item, str) else (item, True) for item in value]
    for name, what in pairs:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"normalize must name built-in rules or regular expressions, found {name!r} as one"
            )
        if not isinstance(what, bool | str):
            raise ConfigError(f"normalize: {name!r} must be true, false or a text, not {what!r}")
    return tuple(pairs)


def _spoken(item: str) -> tuple[str, bool | str]:
    pattern, arrow, text = item.rpartition("=>")
    if arrow:
        return pattern.strip(), text.strip()
    name, equals, switch = (part.strip() for part in item.partition("="))
    if not equals or name not in NAMES:
        return item, True
    if switch not in ("true", "false"):
        raise ConfigError(
            f"normalize: {item!r} is no rule; a built-in one is on as {name!r} and off as '{name}=false'"
        )
    return name, switch == "true"


def spelled(given: Given) -> list[str]:
    """The rules as `read` takes texts.

    >>> spelled(read({"paths": False, "date": True, "[0-9]+": "<n>"}))
    ['paths=false', 'date', '[0-9]+=><n>']
    """
    return [
        f"{name}=>{value}" if isinstance(value, str) else name if value else f"{name}=false"
        for name, value in given
    ]
