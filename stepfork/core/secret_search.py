"""Finds the secrets in a text, by their form or by what stands before them. Knows no session and no setting.

Everything here takes time linear in the text. Where a form alone decides (``ghp_...``) there is a row in
`secret_shapes`; where only the context does (``password=...``) the value must look like a credential, so
that prose and code stay what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Final

from stepfork.core.secret_fields import below_names, ends_of, fields, may_hold_table
from stepfork.core.secret_names import COOKIES, LONGEST_NAME, Names
from stepfork.core.secret_parts import basic_password
from stepfork.core.secret_shapes import (
    IN_CONTEXT,
    RUN,
    Span,
    is_credible,
    is_phrase,
    is_reference,
    looks_secret,
    shaped,
)

_IN_NAME: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_AFTER_NAME: Final = frozenset("\"'`\\] \t=:0123456789")
_SEPARATOR: Final = re.compile(
    r"""(?P<close>\\{0,8}["'`]?)\]?(?:[ ]is(?=:))?"""
    r"""[ \t]{0,3}(?:=>|:=|=(?!=)|:(?!:)(?:\*\*)?)[ \t]{0,3}(?P<quote>\\{0,8}["'`])?"""
)
# Few `=`, `:` and `?` inside a value: so no text is scanned again from each of many names.
_BARE: Final = re.compile(r"[^\s\"'`<>\\,;&(){}\[\]|:=]++(?:[:=]++[^\s\"'`<>\\,;&(){}\[\]|:=]++){0,3}+={0,2}")
_IN_QUERY: Final = re.compile(r"[^\s\"'`<>\\;&#?]++(?:\?[^\s\"'`<>\\;&#?]++){0,2}+")
_SET: Final = re.compile(
    r"""(?:[^\s"'`<>\\;&|]
      | ["'`>](?=[A-Za-z0-9])       # no quote that ends a text around it
      | \\(?![nrtu"'\\])
      | <(?!/|[a-z]+\s*/?>)         # no tag
      | [;|](?![\s;|]|\Z|[A-Za-z_][\w ]*=|[a-z]+\s)
      | &(?![\s&]|\Z|\w+=)
    )++""",
    re.VERBOSE,
)
"""What a variable of the environment is set to: anything up to a blank, or to where a shell's word ends."""
_IN_BRACKETS: Final = re.compile(r"[^(\[]*+[(\[](?!.*[)\]}][A-Za-z0-9])", re.DOTALL)
"""A call or an item: nothing that a word could be goes on after its bracket."""
_COOKIE: Final = re.compile(r"[\w!#$%&'*+.^|~-]{1,128}+=([^\s\"'<>\\`;,]++)(?:;[ \t]*)?")
_SCHEME_VALUE: Final = re.compile(r"[ \t]{1,3}([A-Za-z0-9._~+/=-]{8,}+)")
_TWO_WORDS: Final = re.compile(
    r"(?i)\b(api|access|secret|auth|private|client|refresh|bearer) (key|token|secret)\Z"
)
_PLAIN_COOKIE: Final = re.compile(r"[a-z]{1,15}\Z")
_NUMBERED_WORD: Final = re.compile(r"[A-Za-z][a-z]{3,18}\d{0,2}\Z")
_LONGEST_VALUE: Final = 4096
_ESCAPED: Final = re.compile(r"\\([\"'`\\])")
_TYPE: Final = re.compile(r"[\w.]*(?:Key|Token|Password|Secret|Credential)(?:s|Types?)?\Z")


def find(text: str, names: Names) -> tuple[list[Span], bool]:
    """The secrets in a text, and whether it should be read as JSON, if it is JSON, to find more.

    >>> spans, _ = find("password=" + "hunter2" * 2, Names())
    >>> [(span.start, span.label) for span in spans]
    [(9, 'password')]
    """
    spans = list(shaped(text))
    named = False
    assigns = "=" in text or ":" in text
    if assigns or " " in text or "\n" in text:
        lower = _lower(text)
        spans += _credentials(text, lower)
        ends = [places for word in names.words if (places := ends_of(lower, word))]
        if assigns:
            found, named = _assignments(text, ends, names)
            spans += found
            named = named or ":\\" in text
        if "\n" in text:
            spans += below_names(text, chain.from_iterable(ends), names)
        named = named or may_hold_table(text, chain.from_iterable(ends))
    found, told = fields(text, names)
    spans += found
    named = named or told
    return spans, named


def _lower(text: str) -> str:
    """The text in lower case, character by character, so that offsets stay what they are."""
    return text.replace("\u0130", "i").lower()  # the only one that two characters come of


def _credentials(text: str, lower: str) -> Iterator[Span]:
    """``Bearer TOKEN``, less the word, and ``Basic BASE64``, which is taken apart later."""
    for scheme in ("bearer", "basic", *(("token", "apikey", "bot") if "authorization" in lower else ())):
        for end in ends_of(lower, scheme):
            match = _SCHEME_VALUE.match(text, end)
            if match is None:
                continue
            value = match[1].rstrip(".")
            if scheme == "basic":
                secret = basic_password(value) is not None
            elif "authorization" in lower[max(0, end - 40) : end]:
                secret = not is_reference(value)
            elif scheme != "bearer":
                secret = False
            else:
                secret = is_credible(value) and RUN.search(value[:300]) is not None
                secret = secret and not _NUMBERED_WORD.match(value)
            if secret:
                start = end - len(scheme) if scheme == "basic" else match.start(1)
                yield Span(start, IN_CONTEXT, match.start(1) + len(value), "authorization")


def _assignments(text: str, ends: list[list[int]], names: Names) -> tuple[list[Span], bool]:
    """``api_key=...``, ``"password": "..."``, ``?token=...``, ``Cookie: a=...``; `ends` of each word."""
    spans: list[Span] = []
    named = False
    for places in ends:
        done = 0
        for end in places:
            if text[end : end + 1] not in _AFTER_NAME:
                continue
            while text[end : end + 1].isdecimal():
                end += 1
            separator = _SEPARATOR.match(text, end) if end >= done else None
            if separator is None:
                continue
            named = True
            head = text[max(0, end - LONGEST_NAME) : end]
            key = head[len(head.rstrip(_IN_NAME)) :]
            if first := _TWO_WORDS.search(head):
                key = f"{first[1]}_{first[2]}"
            label = names.label(key) or names.label_in_text(key, in_query=_in_query(text, end - len(key)))
            if label in COOKIES:
                found, done = _cookies(text, separator.end(), label)
                spans += found
            elif label and (place := _value(text, end - len(key), key, separator, label in names.extra)):
                spans.append(Span(place[0], IN_CONTEXT, place[1], label))
                done = place[1]
    return spans, named


def _in_query(text: str, start: int) -> bool:
    """Whether the name that starts there is one of a URL's query or of a form."""
    before = text[max(0, start - 5) : start]
    return before.endswith(("?", "#", "&amp;")) or (before.endswith("&") and before[-2:] != "&&")


def _cookies(text: str, at: int, label: str) -> tuple[list[Span], int]:
    """The values in ``a=1; b=2`` and where they end; of a ``Set-Cookie`` only the first."""
    spans: list[Span] = []
    while match := _COOKIE.match(text, at):
        at = match.end()
        if not is_reference(match[1]) and not _PLAIN_COOKIE.match(match[1]):
            spans.append(Span(match.start(1), IN_CONTEXT, match.end(1), label))
        if label == "set_cookie":
            break
    return spans, at


def _value(text: str, start: int, key: str, separator: re.Match[str], own: bool) -> tuple[int, int] | None:
    """Where the value assigned to `key` stands, if it looks like a secret. `own`: a key of the user's."""
    at = separator.end()
    tight = separator[0] == "="
    before = text[max(0, start - 5) : start]
    if tight and _in_query(text, start):
        match = _IN_QUERY.match(text, at)
        return match.span() if match and not is_reference(match[0]) else None
    if before.endswith(":") and not tight and before.lower() != "$env:":
        return None  # arn:aws:...:secret:NAME
    if separator["quote"]:
        return _quoted(text, separator)
    match = _BARE.match(text, at)
    if match is None or match.end() - at > _LONGEST_VALUE:
        return None
    value, after = match[0], text[match.end() : match.end() + 2]
    sure = tight and key.isupper() and before[-1:] in ("", " ", "\n", "\t", '"', "'", "`", ";")
    if sure and after and not after[:1].isspace():
        value = _set_to(text, at)
    elif after[:1] in ("(", "["):
        return None  # a call or an item
    elif not tight and _TYPE.match(value):
        return None  # an annotation
    elif tight and after[:1] == "&" and after != "&&":
        return None if is_reference(value) else match.span()
    value = value.rstrip(".:?*")
    likely = sure or looks_secret(value) or is_phrase(value) or (own and any(map(str.isdigit, value)))
    if len(value) < 8 or not likely or is_reference(value):
        return None
    return at, at + len(value)


def _set_to(text: str, at: int) -> str:
    """What a variable of the environment is set to, special characters and all; "" for a call or an item."""
    match = _SET.match(text, at, at + _LONGEST_VALUE)
    value = match[0] if match else ""
    if value.startswith(("${", "$(")):
        return ""
    whole = value[-1:].isalnum() and text[at + len(value) : at + len(value) + 1] in ("", "\r", "\n")
    value = value.rstrip(",.:?*")
    for opening, closing in ("()", "[]", "{}"):
        if value.endswith(closing) and value.count(closing) > value.count(opening):
            value = value.rstrip(closing + ",.:?*")
    is_code = _IN_BRACKETS.match(value) and not (whole and ")" not in value and "]" not in value)
    return "" if is_code else value


@lru_cache
def _between(quote: str) -> re.Pattern[str]:
    """What stands between two quotes, the first of which is spelled so. JSON in JSON spells them ``\\"``,
    then ``\\\\\\"``: the same count of backslashes ends it, one escaped once more is a part of it.
    """
    count, char = len(quote) - 1, quote[-1]
    unit = count + 1  # how many backslashes stand for one
    pairs = rf"(?:\\{{{2 * unit}}})*+"
    inner = rf"[^{char}\\\n]++|\\++(?![{char}\\])|{pairs}\\{{{unit + count}}}{char}"
    return re.compile(rf"(?P<value>(?:{inner})*+{pairs})(?:\\{{{count}}}{char}|\Z)")


def _quoted(text: str, separator: re.Match[str]) -> tuple[int, int] | None:
    """Where the value in quotes stands: all of it, whatever characters it holds."""
    at = separator.end()
    match = _between(separator["quote"]).match(text, at, at + _LONGEST_VALUE)
    if match is None:
        return None
    value = match["value"]
    words = value.split()
    if match.end() == match.end("value") and (match.end() < len(text) or len(words) > 1):
        return None  # it does not end
    sure = bool(separator["close"]) or is_phrase(value)
    mixed = sum(map(looks_secret, words))
    if len(value) < 8 or not (sure or mixed * 2 >= len(words)) or is_reference(value):
        return None
    return match.span("value")


def spelled_out(text: str, start: int, end: int) -> str:
    """The value that a text spells at a place: what stands between quotes is read as its language does.

    >>> spelled_out('say "a\\\\"b"', 5, 9)
    'a"b'
    """
    value = text[start:end]
    quote = text[start - 1 : start] if start else ""
    if "\\" not in value or quote not in ("'", '"', "`"):
        return value
    head = text[max(0, start - 9) : start - 1]
    unit = len(head) - len(head.rstrip("\\")) + 1
    for _ in range(unit.bit_length()):
        try:
            value = json.loads(f'"{value}"', strict=False)
        except ValueError:
            value = _ESCAPED.sub(r"\1", value)
    return value
