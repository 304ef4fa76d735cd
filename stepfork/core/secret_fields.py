"""Finds the secrets that stand in a text as the field of a form: XML, options, tables. Knows no session.

Something else than ``=`` or ``:`` tells a name and its value apart there. Takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from stepfork.core.secret_names import Names
from stepfork.core.secret_shapes import IN_CONTEXT, Span, is_phrase, is_reference, looks_secret
from stepfork.core.secret_tables import cells_below

_AFTER_HEAD: Final = frozenset(",;|\t\r\n\"'`* 0123456789")
_AFTER_HEAD_IN_JSON: Final = frozenset(",;|\\")
_HEAD: Final = re.compile(r"[\w.-]{1,64}(?: [\w.-]{1,64}){0,2}\Z")
"""The name of a column: no sentence, no code."""
_FORMS: Final = (
    ("</", re.compile(r"<(?:\w{1,32}:)?(?P<name>[A-Za-z][\w.-]{0,63})>(?P<value>[^<>\s]{8,4096})</")),
    (
        "form-data",
        re.compile(
            r"name=\"(?P<name>[^\"\r\n]{1,64})\"(?:\r?\n[^\r\n]+){0,3}(?:\r?\n){2}(?P<value>\S{8,4096})"
        ),
    ),
    (
        "value",
        re.compile(
            r"(?:name|key)\\{0,3}[\"']?[ \t]{0,3}:[ \t]{0,3}\\{0,3}[\"']?"
            r"(?P<name>[A-Za-z_][\w.-]{0,63})\\{0,3}[\"']?"
            r"(?:,\s{0,40}|\s{1,40})\\{0,3}[\"']?value\\{0,3}[\"']?[ \t]{0,3}:[ \t]{0,3}\\{0,3}[\"']?"
            r"(?P<value>[^\s\"'\\,}]{8,4096})"
        ),
    ),
    (
        "ENV ",
        re.compile(r"ENV (?<!\wENV )(?P<name>[A-Z][A-Z0-9_]{0,63})[ \t]{1,3}(?P<value>[^\s\"']{8,4096})"),
    ),
    (
        "--",
        re.compile(
            r"--(?<![\w-]--)(?P<name>[A-Za-z][\w-]{0,63})[ \t]{1,3}[\"']?"
            r"(?P<value>[^\s\"'\\-][^\s\"'\\]{7,4095})"
        ),
    ),
    (
        "<input",
        re.compile(
            r"name=[\"'](?P<name>[\w.-]{1,64})[\"'][^<>]{0,100}?value=[\"'](?P<value>[^\"'<>\s]{8,4096})"
        ),
    ),
)
"""Forms in which a name and its value are told apart by something else than ``=`` or ``:``."""


def below_names(text: str, ends: Iterable[int], names: Names) -> Iterator[Span]:
    """What stands below the name of a secret in a table; `ends` is where words end that names end with."""
    heads = [end for end in ends if text[end : end + 1] in _AFTER_HEAD]
    if not heads:
        return
    for start, end, label in cells_below(
        text, heads, lambda name: names.label(name if _HEAD.match(name) else "")
    ):
        value = text[start:end]
        if len(value) >= 8 and not is_reference(value) and (looks_secret(value) or label in names.extra):
            yield Span(start, IN_CONTEXT, end, label)


def may_hold_table(text: str, ends: Iterable[int]) -> bool:
    """Whether a text in JSON may spell a table with the name of a secret in its head."""
    return "\\n" in text and any(text[end : end + 1] in _AFTER_HEAD_IN_JSON for end in ends)


def fields(text: str, names: Names) -> tuple[list[Span], bool]:
    """The values that stand as a field under the name of a secret, and whether the text has any such form.

    >>> [span.label for span in fields("<password>" + "hunter2" * 2 + "</password>", Names())[0]]
    ['password']
    """
    here = [pattern for hint, pattern in _FORMS if hint in text]
    return [span for pattern in here for span in _of_form(text, pattern, names)], bool(here)


def _of_form(text: str, pattern: re.Pattern[str], names: Names) -> Iterator[Span]:
    """``<password>...</password>`` and its kind: a name and a value in a form of their own."""
    for match in pattern.finditer(text):
        label, value = names.label(match["name"]), match["value"]
        if label and not is_reference(value) and (looks_secret(value) or is_phrase(value)):
            yield Span(match.start("value"), IN_CONTEXT, match.end("value"), label)


def ends_of(lower: str, word: str) -> list[int]:
    """Where a word ends in a text.

    >>> ends_of("a key, no keyhole", "key")
    [5, 13]
    """
    ends: list[int] = []
    at = lower.find(word)
    while at >= 0:
        at += len(word)
        ends.append(at)
        at = lower.find(word, at)
    return ends
