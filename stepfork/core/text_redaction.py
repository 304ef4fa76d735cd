"""Replaces the secrets in one text after another. Knows texts; knows no nested value, no file and no SDK.

A `TextRedactor` remembers what it found: a value of eight characters and more that was a secret once is one
wherever it stands.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from stepfork.core.base64_texts import BASE64, in_base64, told_in_base64
from stepfork.core.json_texts import JSONISH, is_blob, is_json, strings
from stepfork.core.known_values import KnownValues
from stepfork.core.placeholder_texts import (
    MARK,
    PLACEHOLDER,
    SHORTEST,
    escaped,
    in_plain,
    is_spelled,
    looks_like_one,
)
from stepfork.core.placeholders import Placeholders
from stepfork.core.redaction_rules import Rules
from stepfork.core.secret_names import Names, normalise
from stepfork.core.secret_parts import Part, parts_of
from stepfork.core.secret_search import find, spelled_out
from stepfork.core.secret_shapes import LABELS, is_credible

NAMED: Final = (("name", "value"), ("key", "value"), ("name", "text"))
"""How a name and its value stand as fields: variables, headers, cookies, parts of a form."""
OWN_PATTERN: Final = "pattern"
"""The label of what a pattern of the user's finds."""
_PASSES: Final = 10
_MEMO_CHARACTERS: Final = 16_000_000

_Place: TypeAlias = tuple[int, int, int, str, str]
"""Start, end (negative), rank, label and value of a secret in a text. Of two that overlap the first in this
order counts: the one that starts earlier, else the longer one, else the one of lower rank."""


class TextRedactor:
    """Replaces the secrets in texts. Not safe to use from several threads.

    Attributes:
        names: which keys hold secrets.
        known: the values that are replaced wherever they stand.
        placeholders: what stands for them.
        dummies: texts of the program that look like placeholders and serve as secrets, and what stands for
            them.
        heard: short texts that an answer had in clear: if they do not spread, they are no secrets later.
        shortest: no text of fewer characters is looked at.
        raw: whether texts come from the program as they are, so that what only looks like a placeholder in
            them is escaped.
        words: keys that are known to be plain words; they hold no secret and no secret stands under them.
    """

    def __init__(self, rules: Rules) -> None:
        self.names = Names(
            frozenset(map(normalise, rules.keys)), frozenset(normalise(key) for key in rules.allow)
        )
        self.known = KnownValues()
        self.placeholders = Placeholders()
        self.dummies: dict[str, str] = {}
        self.heard: set[str] = set()
        self._patterns = tuple(re.compile(pattern) for pattern in rules.patterns)
        self._allowed = tuple(re.compile(pattern) for pattern in rules.allow)
        self.shortest = 0 if self._patterns else SHORTEST
        self.words: set[str] = set()
        self.raw = False
        self._memo: dict[tuple[bool, bool], dict[str, str]] = {}  # by `wire` and `raw`
        self._forget()

    def label(self, key: str, every: bool = True) -> str:
        """The label of a key that holds a secret, else ""; if not `every`, of one that does in answers."""
        if MARK in key:
            return ""  # a secret itself, and no name of one
        return self.names.label(key) if every else self.names.label_in_answer(key)

    def has_rule(self, label: str) -> bool:
        """Whether anything is replaced under a label here: by a shape, a pattern of the user's, or a key."""
        return label in LABELS or self.names.gives(label) or (label == OWN_PATTERN and bool(self._patterns))

    def also_keys(self, keys: Iterable[str]) -> None:
        """From now on what stands under these keys is a secret too."""
        self.names = Names(self.names.extra.union(map(normalise, keys)), self.names.allowed)
        self.words.clear()
        self._forget()

    def results(self, wire: bool = False) -> Mapping[str, str]:
        """The texts looked at so far, and what they became."""
        return self._memo[wire, self.raw]

    def are_clean(self, texts: Sequence[str], text: str, wire: bool = False) -> bool:
        """Whether there is no secret in `texts`, looked at in one go; `text` is all of them, one a line."""
        if texts and self._may_hold_secret(text, texts):
            return False
        for item in texts:
            self._remember(item, item, wire)
        return True

    def is_odd(self, key: str) -> bool:
        """Whether a key is more than a word: only then may it hold a secret. A field's name is none."""
        if key.isidentifier() and not any(map(str.isdigit, key)):
            if not self.names.label(key) and len(self.words) < 10_000:
                self.words.add(key)
            return False
        return True

    def redact(self, text: str, wire: bool = False) -> str:
        """The text with its secrets replaced; `wire`: whether it is what an SDK was answered, in JSON."""
        if len(text) < self.shortest:
            return text
        result = self._memo[wire, self.raw].get(text)
        if result is None:
            raw, self.raw = self.raw, False
            result = self._marked(text) if raw else in_plain(text)
            self.placeholders.reserve(result)
            for _ in range(_PASSES):
                step = self._pass(result, wire)
                if step == result:
                    break
                result = step
            self.raw = raw
            self._remember(text, result, wire)
        return text if result == text else result

    def redact_key(self, key: str) -> str:
        """A key with its secrets replaced, whatever stands under it."""
        return self.redact(key) if self.is_odd(key) else key

    def redact_known(self, text: str) -> str:
        """The text with nothing replaced but the values known so far."""
        text = self._reencoded(text)
        return self._replace(text, self._known(text))

    def keyed(self, label: str, value: str) -> str:
        """What stands for the value of a secret key: for all of it, so that any dummy value matches.

        A placeholder stays: on replay the agent hands on what it was given.
        """
        secret = value.strip()
        if len(secret) < SHORTEST:
            secret = value
        parts = parts_of(label, secret)
        if any(map(self._is_allowed, (value, secret, *(part.text for part in parts if len(parts) == 1)))):
            return self.redact(value)
        shown = self._joined(parts)
        return value if shown == value else shown

    def _joined(self, parts: Sequence[Part]) -> str:
        """What stands for a value that is put together of these parts."""
        return "".join(self._part(part) if part.label and part.text else part.text for part in parts)

    def _part(self, part: Part) -> str:
        """What stands for a part; a secret of an answer that it holds keeps its own placeholder in there."""
        text, label = part.text, part.label
        if PLACEHOLDER.fullmatch(text):
            return self._dummy(text, label) if self._is_dummy(text) else text
        shown: list[str] = []
        done = 0
        for at, end, placeholder in sorted(self._of_answers(text)):
            if at >= done:
                shown += (self._rest(label, text[done:at]), placeholder)
                done = end
        if shown and not self.placeholders.given(text):
            return "".join((*shown, self._rest(label, text[done:])))
        if part.spreads:
            self.learn(text, label)
        if text in self.heard and text not in self.known and not self.placeholders.answering:
            return text
        return self.placeholder(label, text)

    def _is_dummy(self, lookalike: str) -> bool:
        """Whether what looks like a placeholder is a text of the program's own."""
        return self.raw and lookalike not in self.placeholders.brought

    def _dummy(self, lookalike: str, label: str) -> str:
        """What stands for a text that looks like a placeholder under the key of a secret: a value like any
        other, which is followed wherever it stands.
        """
        placeholder = self.placeholders.of(label, lookalike, spreads=True)
        if self.dummies.get(lookalike) != placeholder:
            self.dummies[lookalike] = placeholder
            self._forget()
        return placeholder

    def _rest(self, label: str, text: str) -> str:
        """What stands for a piece of a secret beside one that an answer brought."""
        if not any(map(str.isalnum, text)):
            return text
        self.learn(text, label)
        return self.placeholder(label, text)

    def _of_answers(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where a text holds secrets that an answer brought, and what stands for them."""
        of_answers = self.placeholders.answers
        if not of_answers or self.placeholders.answering:
            return
        for found in self.known.find(text):
            placeholder = self.placeholders.given(found.value)
            if placeholder in of_answers and not found.is_base64:
                yield found.start, found.end, placeholder
        for there in PLACEHOLDER.finditer(text) if MARK in text else ():
            if there[0] in of_answers and (not self.raw or self.placeholders.replays):
                yield there.start(), there.end(), there[0]

    def placeholder(self, label: str, value: str) -> str:
        """What stands for a value under a label, once it is learned."""
        return self.placeholders.of(label, value, spreads=value in self.known)

    def bring(self, placeholders: Iterable[str]) -> None:
        """From now on the program of a replay has these placeholders of the recording."""
        brought = self.placeholders.brought
        known = len(brought)
        brought.update(placeholders)
        if len(brought) > known:
            self._forget()

    def bind(self, placeholder: str, recorded: str) -> None:
        """From now on `recorded` stands for what a placeholder of this replay stood for."""
        self.placeholders.bind(placeholder, recorded)
        for lookalike, shown in self.dummies.items():
            if shown == placeholder:
                self.dummies[lookalike] = recorded
        self._forget()

    def _marked(self, text: str) -> str:
        """A text of the program: of what looks like a placeholder only those that it was given are."""
        brought = self.placeholders.brought
        return escaped(in_plain(text, brought), brought, self.dummies)

    def learn_parts(self, label: str, value: str) -> None:
        """From now on what a header holds is secret, each part by itself, if it looks like a credential."""
        for part in parts_of(label, value.strip()):
            if part.label and part.spreads and is_credible(part.text):
                self.learn(part.text, part.label)

    def learn(self, value: str, label: str) -> None:
        """From now on the value is replaced wherever it stands, unless it is too short or too plain."""
        sure = label in self.names.extra or label == OWN_PATTERN
        if not self._is_allowed(value) and self.known.add(value, label, sure):
            self._forget()

    def _may_hold_secret(self, text: str, parts: Sequence[str]) -> bool:
        if (
            is_spelled(text)
            or (self.raw and looks_like_one(text))
            or any(True for _ in self.known.find(text))
        ):
            return True
        spans, named = find(text, self.names)
        if spans or (named and any(JSONISH.match(part) for part in parts)):
            return True
        if any(pattern.search(part) for pattern in self._patterns for part in parts):
            return True
        return any(self._may_hold_secret(told.said, [told.said]) for told in told_in_base64(text))

    def _pass(self, text: str, wire: bool) -> str:
        text = self._reencoded(text)
        places = self._known(text)
        spans, named = find(text, self.names)
        if wire:
            spans = [span for span in spans if span.label != "token"]  # of text, in log probabilities
        if (spans or named) and is_json(text):
            text = self._json(text, wire)
            places = self._known(text)
        elif spans and not is_blob(text):
            places += [(at, -end, rank, label, spelled_out(text, at, end)) for at, rank, end, label in spans]
        text = self._replace(text, places)
        for pattern in self._patterns:
            own = [found for match in pattern.finditer(text) if (found := _own(match))[0] < found[1]]
            text = self._replace(text, [(at, -end, 0, OWN_PATTERN, text[at:end]) for at, end in own])
        return self._retold(text)

    def _known(self, text: str) -> list[_Place]:
        """Where values stand that are known to be secret."""
        return [
            (at, -end, -1, label, value)
            for at, end, value, label, is_base64 in self.known.find(text)
            if not is_base64
        ]

    def _reencoded(self, text: str) -> str:
        """The text with known values replaced in what its pieces of base64 say: they can still be decoded."""
        parts: list[str] = []
        done = 0
        for at in sorted(found.start for found in self.known.find(text) if found.is_base64):
            if at >= done and (run := BASE64.match(text, at)):
                parts += (text[done:at], in_base64(run[0], self.redact_known))
                done = run.end()
        return "".join((*parts, text[done:]))

    def _retold(self, text: str) -> str:
        """The text with secrets replaced that its pieces of base64 tell: in one line each, if any is."""
        parts: list[str] = []
        done = 0
        for told in told_in_base64(text):
            if self.redact(told.said) != told.said:
                parts += (text[done : told.start], in_base64(told.piece, self.redact))
                done = told.end
        return "".join((*parts, text[done:]))

    def _replace(self, text: str, places: list[_Place]) -> str:
        """The text with placeholders at these places. Placeholders that it holds already stay untouched."""
        if not places:
            return text
        fixed = [match.span() for match in PLACEHOLDER.finditer(text)] if MARK in text else []
        parts: list[str] = []
        done = 0
        for at, minus_end, _, label, value in sorted(places):
            end = -minus_end
            before = bisect.bisect_left(fixed, (end, 0)) - 1
            if at < done or (before >= 0 and fixed[before][1] > at) or self._is_allowed(value):
                continue
            is_header = "authorization" in label
            secret = parts_of(label, value, in_text=True) if is_header else [Part(value, label)]
            parts += (text[done:at], self._joined(secret))
            done = end
        return "".join((*parts, text[done:]))

    def _json(self, text: str, wire: bool) -> str:
        """JSON text: its strings are looked at decoded and replaced in place; no other byte changes."""
        parts: list[str] = []
        done = 0
        key = label = named = ""
        colon = 0
        for string in strings(text):
            old = string.text
            if string.is_key:
                new, pair = self.redact_key(old), (key, old)
                key, colon = old, string.after
                label = self.label(old, not wire) or (named if pair in NAMED and not wire else "")
            else:
                keyed = label and old and not text[colon : string.start].strip()
                new = self.keyed(label, old) if keyed else self.redact(old)
                label, named = "", self.label(old) if key in ("name", "key") else ""
            if new != old:
                spelled = json.dumps(new, ensure_ascii=text[string.start : string.end].isascii())
                parts += (text[done : string.start], spelled)
                done = string.end
        return "".join((*parts, text[done:]))

    def _is_allowed(self, value: str) -> bool:
        return any(pattern.fullmatch(value) for pattern in self._allowed)

    def _remember(self, text: str, result: str, wire: bool) -> None:
        self._memo_size += len(text) + 50
        if self._memo_size > _MEMO_CHARACTERS:
            self._forget()
        self._memo[wire, self.raw][text] = result

    def _forget(self) -> None:
        self._memo = {(wire, raw): {} for wire in (True, False) for raw in (True, False)}
        self._memo_size = 0


def _own(match: re.Match[str]) -> tuple[int, int]:
    """Where the secret stands that a pattern of the user's found: its first group that took part, or all."""
    groups = range(1, match.re.groups + 1)
    return next((match.span(group) for group in groups if match[group] is not None), match.span())
