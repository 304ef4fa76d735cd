"""Replaces secrets in nested plain values: which keys, fields and items say that a text is one.

Knows plain values; what stands for a secret, and which texts hold one by themselves, is decided in
`text_redaction`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from stepfork.core.canonical import canonical_text
from stepfork.core.changed_texts import BYTES
from stepfork.core.model import OPAQUE, Plain, Tagged
from stepfork.core.secret_names import COOKIES
from stepfork.core.secret_search import is_credible
from stepfork.core.secret_shapes import RUN, is_reference
from stepfork.core.text_redaction import NAMED, TextRedactor

_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")
_CLASS: Final = re.compile(r"[\w.]+:[\w.<>]+\Z")
_CLASSES: Final = frozenset({"class", "enum"})
"""Tags of which the text is a name."""
_NOT_OBJECTS: Final = frozenset({"map", "tuple", "set", "frozenset", "deque", "counter", "namespace"})
_SEVERAL: Final = frozenset({"tuple", "set", "frozenset"})
_LOOKED_AT: Final = frozenset({str, dict, list, Tagged})


class Keys(Enum):
    """Which rules for keys hold in a value.

    In texts inside of an `ANSWER` (JSON that a model wrote) and under ``arguments`` all of them do; a `WIRE`
    is the answer itself as text.
    """

    ALL = 1
    ANSWER = 2
    WIRE = 3

    def below(self, key: str) -> Keys:
        """The rules that hold for what stands under a key."""
        return _BELOW.get(key, self) if self is Keys.ANSWER else self


_ENUMERATED: Final = frozenset({"role", "object", "type", "finish_reason", "status", "model"})
_CONSTANT: Final = re.compile(r"[a-z][a-z0-9]{0,15}(?:[._/:-][a-z0-9]{1,15}){0,7}\Z")
_BELOW: Final = {"arguments": Keys.ALL, "wire": Keys.WIRE}


def _said(value: Tagged) -> str:
    """What bytes say, if it is a name."""
    try:
        return base64.b64decode(str(value.value), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""


def _is_name(key: str, text: str, fields: dict[str, Plain], keys: Keys) -> bool:
    """Whether a text names the class of an error, or is one of the constants of an SDK's answer."""
    if key == "class":
        return ("args" in fields or "init" in fields) and _CLASS.match(text) is not None
    if keys is not Keys.ANSWER or key not in _ENUMERATED:
        return False
    return _CONSTANT.match(text) is not None and RUN.search(text) is None


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
            known = len(texts.known), len(texts.placeholders.brought)
            redacted = self._walk(value, keys)
            if (len(texts.known), len(texts.placeholders.brought)) == known:
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
        option of a command (``["--password", "..."]``). They have to look like one.
        """
        labels = {}
        for at in range(1, len(items)):
            name, value = items[at - 1], items[at]
            if not isinstance(name, str) or not isinstance(value, str):
                continue
            label = self._texts.label(name) if len(items) == 2 or name.startswith("--") else ""
            if label and (is_credible(value) or (label in COOKIES and "=" in value)):
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
            elif isinstance(item, Tagged) and item.tag not in OPAQUE:
                if item.tag in BYTES or item.tag == "map":
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
                if isinstance(old, str) and _is_name(key, old, value, keys):
                    mapping[name] = old
                    continue
                own = label if key == named else self._texts.label(key, keys is Keys.ALL)
                new = self._item(own, old, keys.below(key))
                changed = changed or new is not old or name is not key
                mapping[name] = new
            return mapping if changed else value
        if isinstance(value, list):
            labels = self._labels_in(value) if keys is Keys.ALL else {}
            items = [self._item(labels.get(at, ""), item, keys) for at, item in enumerate(value)]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if isinstance(value, Tagged):
            return self._tagged(value, keys)
        return value

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
            if isinstance(value, dict) and isinstance(value.get("value"), str) and "type" not in value:
                rest: Any = self._walk({**value, "value": ""}, keys)
                return {**rest, "value": self._texts.keyed(label, str(value["value"]))}
        return self._walk(value, keys)

    def _under(self, label: str, item: Plain, keys: Keys) -> Plain:
        """One of several values under a secret key: a header's, or a cookie with its name."""
        if isinstance(item, str) and is_reference(item) and item.strip("xX"):  # a dummy is
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
        if isinstance(inner, dict) and isinstance(value.value, dict) and value.tag not in _NOT_OBJECTS:
            inner |= {key: value.value[key] for key in ("class", "of") if key in value.value}
        if inner is value.value:
            return value
        if value.tag in ("set", "frozenset") and isinstance(inner, list):
            inner = sorted(inner, key=canonical_text)
        return Tagged(value.tag, inner)

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
