"""Replaces secrets in nested plain values: which keys, fields and items say that a text is one.

Knows plain values; what stands for a secret, and which texts hold one by themselves, is decided in
`text_redaction`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stepfork.core.canonical import canonical_text
from stepfork.core.changed_texts import BYTES
from stepfork.core.log_probabilities import respelled, spelled
from stepfork.core.model import OPAQUE, Plain, Tagged, texts_in
from stepfork.core.placeholder_texts import PLACEHOLDER
from stepfork.core.redaction_keys import Keys, is_name
from stepfork.core.secret_names import COOKIES, SEVERAL
from stepfork.core.secret_shapes import is_credible, is_given, is_reference
from stepfork.core.text_redaction import NAMED, TextRedactor

_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")
_CLASSES: Final = frozenset({"class", "enum"})
"""Tags of which the text is a name."""
_NOT_OBJECTS: Final = frozenset({"map", "tuple", "set", "frozenset", "deque", "counter", "namespace"})
_FRAMES: Final = frozenset({"dataframe", "series"})
_WITH_NAMES: Final = _FRAMES | {"map"}
"""Tags in which names stand elsewhere than as keys of a mapping."""
_TEXTS_OF_ARRAY: Final = re.compile(r"([<>])U\d+\Z")
_SEVERAL: Final = frozenset({"tuple", "set", "frozenset"})
_LOOKED_AT: Final = frozenset({str, dict, list, Tagged})


def _values(form: Plain) -> list[Plain]:
    """The values of a column, an index or an array."""
    values = form.get("values") if isinstance(form, dict) else None
    if isinstance(values, Tagged):
        return _values(values.value)
    return values if isinstance(values, list) else []


def _wide_enough(array: dict[str, Plain]) -> dict[str, Plain]:
    """An array; of texts of a fixed width with one that any placeholder fits in, the run's own too."""
    order = _TEXTS_OF_ARRAY.match(str(array.get("dtype")))
    if order is None:
        return array
    longest = max(map(len, texts_in(array.get("values"))), default=0)
    return {**array, "dtype": f"{order[1]}U{max(128, 1 << longest.bit_length())}"}


def _is_dummy(value: str) -> bool:
    """Whether a value that stands for no secret by its looks serves as a dummy all the same: ``xxx``."""
    return not value.strip("xX") or PLACEHOLDER.fullmatch(value) is not None


def _said(value: Tagged) -> str:
    """What bytes say, if it is a name."""
    try:
        return base64.b64decode(str(value.value), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""


class ValueRedactor:
    """Replaces the secrets in values; `texts` does so in texts. Not safe to use from several threads.

    >>> from stepfork.core.redaction_rules import Rules
    >>> ValueRedactor(TextRedactor(Rules())).redact({"api_key": ["correct horse"]}, Keys.ALL)
    {'api_key': ['<secret:api_key:1>']}
    """

    def __init__(self, texts: TextRedactor) -> None:
        self._texts = texts

    def redact(self, value: Plain, keys: Keys) -> Plain:
        """The value with its secrets replaced, itself unchanged; the same object if there are none."""
        texts = self._texts
        if self._is_clean(value, keys):
            return value
        while True:  # from the start each time: what is found later may be more than a part
            known = len(texts.known), len(texts.dummies)
            redacted = self._walk(value, keys)
            if (len(texts.known), len(texts.dummies)) == known:
                return redacted

    def _named_by(self, fields: Mapping[str, object]) -> tuple[str, str] | None:
        """The field that a ``{"name": "API_KEY", "value": "..."}`` holds its secret in, and its label."""
        for key, content in NAMED:
            if key in fields and content in fields:
                name = fields[key]
                label = self._texts.label(name) if isinstance(name, str) else ""
                if label:
                    return content, label
        return None

    def _labels_in(self, items: Sequence[object]) -> dict[int, str]:
        """Which items of a list are secrets, for what stands before them: ``["X-Api-Key", "..."]`` or an
        option of a command (``["--password", "..."]``). A word or a name is none.
        """
        labels = {}
        for at in range(1, len(items)):
            name, value = items[at - 1], items[at]
            if not isinstance(name, str) or not isinstance(value, str):
                continue
            label = self._texts.label(name) if len(items) == 2 or name.startswith("--") else ""
            if name in ("-u", "--user") and ":" in value and str(items[0]).endswith("curl"):
                label = "authorization"
            if label and (is_given(value) or (label in COOKIES and "=" in value)):
                labels[at] = label
        return labels

    def _is_clean(self, value: Plain, keys: Keys) -> bool:
        """Whether there is nothing to replace: all texts not seen before are looked at in one go."""
        texts = self._texts
        wire = keys is Keys.WIRE
        seen = texts.results(wire)
        clean = True
        fresh: list[str] = []
        stack: list[Any] = [value]
        others: list[tuple[Any, Keys]] = []
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                if len(item) >= texts.shortest:
                    result = seen.get(item)
                    if result is None:
                        fresh.append(item)
                    elif result != item:
                        clean = False
            elif isinstance(item, dict):
                if keys is Keys.ALL and self._named_by(item):
                    clean = False
                for key, content in item.items():
                    if key not in texts.words:
                        if content and content.__class__ in _LOOKED_AT and texts.label(key, keys is Keys.ALL):
                            clean = False
                        if texts.is_odd(key):
                            stack.append(key)
                    if content.__class__ in _LOOKED_AT:
                        below = keys.below(key)
                        if below is keys:
                            stack.append(content)
                        else:
                            others.append((content, below))
            elif isinstance(item, list):
                stack.extend(item)
                if keys is Keys.ALL and self._labels_in(item):
                    clean = False
                if whole := spelled(item):
                    stack.append(whole)
            elif isinstance(item, Tagged) and item.tag not in OPAQUE:
                if item.tag in BYTES or item.tag in _WITH_NAMES:
                    clean = False
                if item.tag not in BYTES:
                    stack.append(item.value)
        text = "\n".join(fresh)
        texts.placeholders.reserve(text)
        clean = clean and texts.are_clean(fresh, text, wire)
        return all([clean, *(self._is_clean(content, below) for content, below in others)])

    def _walk(self, value: Plain, keys: Keys) -> Plain:
        if isinstance(value, str):
            return self._texts.redact(value, keys is Keys.WIRE)
        if isinstance(value, dict):
            mapping: dict[str, Plain] = {}
            changed = False
            named, label = (self._named_by(value) if keys is Keys.ALL else None) or ("", "")
            for key, old in value.items():
                name = self._texts.redact_key(key)
                if isinstance(old, str) and is_name(key, old, value, keys):
                    mapping[name] = old
                    continue
                own = label if key == named else self._texts.label(key, keys is Keys.ALL)
                new = self._item(own, old, keys.below(key))
                changed = changed or new is not old or name is not key
                mapping[name] = new
            return mapping if changed else value
        if isinstance(value, list):
            if whole := spelled(value):
                return self._spelled(value, whole, keys)
            labels = self._labels_in(value) if keys is Keys.ALL else {}
            items = [self._item(labels.get(at, ""), item, keys) for at, item in enumerate(value)]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if isinstance(value, Tagged):
            return self._tagged(value, keys)
        return value

    def _spelled(self, entries: list[Plain], whole: str, keys: Keys) -> Plain:
        """Tokens with their log probabilities: what they spell together may be a secret, none of them is."""
        shown = self._texts.redact(whole)
        items = entries if shown == whole else respelled(entries, shown)
        new = [
            was if was is not now else self._walk(was, Keys.ANSWER)
            for was, now in zip(items, entries, strict=True)
        ]
        return new if any(now is not was for now, was in zip(new, entries, strict=True)) else entries

    def _item(self, label: str, value: Plain, keys: Keys) -> Plain:
        """What stands under a key with this label."""
        if label and value:
            if isinstance(value, str):
                return self._texts.keyed(label, value)
            if isinstance(value, Tagged) and value.tag in BYTES:
                return self._bytes(value, label, keys)
            if isinstance(value, list):
                items = [self._under(label, item, keys) for item in value]
                return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
            if isinstance(value, Tagged) and value.tag in _SEVERAL:
                inner = self._item(label, value.value, keys)
                return value if inner is value.value else Tagged(value.tag, inner)
            if label in COOKIES and isinstance(value, dict) and not {"name", "value", "type"} & value.keys():
                jar = {key: self._item(label, item, keys) for key, item in value.items()}
                return (
                    jar
                    if any(new is not old for new, old in zip(jar.values(), value.values(), strict=True))
                    else value
                )
            if label in SEVERAL and isinstance(value, dict) and "type" not in value:
                held = {
                    key: self._item(label if isinstance(item, str) and is_credible(item) else "", item, keys)
                    for key, item in value.items()
                }
                same = all(new is old for new, old in zip(held.values(), value.values(), strict=True))
                return value if same else held
            if isinstance(value, dict) and isinstance(value.get("value"), str) and "type" not in value:
                rest: Any = self._walk({**value, "value": ""}, keys)
                return {**rest, "value": self._texts.keyed(label, str(value["value"]))}
        return self._walk(value, keys)

    def _under(self, label: str, item: Plain, keys: Keys) -> Plain:
        """One of several values under a secret key: a header's, or a cookie with its name."""
        if isinstance(item, str) and is_reference(item) and not _is_dummy(item):
            return self._walk(item, keys)
        return self._item(label, item, keys) if isinstance(item, str | dict) else self._walk(item, keys)

    def _tagged(self, value: Tagged, keys: Keys) -> Plain:
        if value.tag in OPAQUE or value.tag in _CLASSES:
            return value
        if value.tag in BYTES:
            return self._bytes(value, "", keys)
        if value.tag == "map" and isinstance(value.value, list):
            pairs = [self._pair(pair, keys) for pair in value.value]
            if all(new is old for new, old in zip(pairs, value.value, strict=True)):
                return value
            return Tagged(value.tag, pairs)
        inner = self._walk(value.value, keys)
        if value.tag in _FRAMES and isinstance(inner, dict) and isinstance(value.value, dict):
            inner = self._frame(value.value, inner)
        elif isinstance(inner, dict) and isinstance(value.value, dict) and value.tag not in _NOT_OBJECTS:
            inner |= {key: value.value[key] for key in ("class", "of") if key in value.value}
        if inner is value.value:
            return value
        if value.tag == "array" and isinstance(inner, dict):
            inner = _wide_enough(inner)
        if value.tag in ("set", "frozenset") and isinstance(inner, list):
            inner = sorted(inner, key=canonical_text)
        return Tagged(value.tag, inner)

    def _frame(self, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        """A data frame or series, the cells replaced whose column or row has the name of a secret."""
        index = old.get("index")
        rows = [self._texts.label(name) if isinstance(name, str) else "" for name in _values(index)]
        if "columns" in old:
            pairs = zip(old["columns"], new["columns"], strict=True)
            new = {**new, "columns": [self._column(was, now, rows) for was, now in pairs]}
        else:
            new = self._column(old, new, rows)
        if isinstance(index, dict):
            new = {**new, "index": self._column(index, new["index"], [])}
        return old if new == old else new

    def _column(self, old: dict[str, Any], new: dict[str, Any], rows: list[str]) -> dict[str, Any]:
        name = old.get("name")
        if isinstance(name, Tagged) and isinstance(name.value, list) and name.value:
            name = name.value[-1]  # the last level of several
        label = self._texts.label(name) if isinstance(name, str) else ""
        if not label and not any(rows):
            return new
        shown = {"values": self._cells(old.get("values"), new.get("values"), label, rows)}
        shown["categories"] = self._cells(old.get("categories"), new.get("categories"), label, [])
        return {key: shown.get(key, item) for key, item in new.items()}

    def _cells(self, old: Plain, new: Plain, label: str, rows: list[str]) -> Plain:
        if isinstance(old, Tagged) and isinstance(new, Tagged) and isinstance(new.value, dict):
            return Tagged(
                new.tag,
                {**new.value, "values": self._cells(_values(old.value), _values(new.value), label, rows)},
            )
        if not isinstance(old, list) or not isinstance(new, list):
            return new
        labels = [label or row for row in rows] or [label] * len(old)
        cells = zip(old, new, labels, strict=True)
        return [
            self._texts.keyed(own, was) if own and was and isinstance(was, str) else now
            for was, now, own in cells
        ]

    def _pair(self, pair: Plain, keys: Keys) -> Plain:
        """A key and its value, of a mapping whose keys are not all texts."""
        if not isinstance(pair, list) or len(pair) != 2:
            return self._walk(pair, keys)
        name, old = pair
        if isinstance(name, Tagged) and name.tag in BYTES:
            shown_bytes, label = self._walk(name, keys), self._texts.label(_said(name), keys is Keys.ALL)
            return [shown_bytes, self._item(label, old, keys)]
        if not isinstance(name, str):
            return self._walk(pair, keys)
        shown = self._texts.redact_key(name)
        new = self._item(self._texts.label(name, keys is Keys.ALL), old, keys)
        return pair if new is old and shown is name else [shown, new]

    def _bytes(self, value: Tagged, label: str, keys: Keys) -> Tagged:
        """Bytes in base64: what they say is redacted as text; in a binary file only known values are."""
        try:
            raw = base64.b64decode(str(value.value), validate=True)
        except (binascii.Error, ValueError):
            return value
        text = raw.decode("utf-8", "surrogateescape")
        if label and text:
            new = self._texts.keyed(label, text)
        elif _ESCAPED_BYTE.search(text):
            new = self._texts.redact_known(text)
        else:
            new = self._texts.redact(text, keys is Keys.WIRE)
        if new == text:
            return value
        return Tagged(value.tag, base64.b64encode(new.encode("utf-8", "surrogateescape")).decode())
