"""Replaces secrets in plain values, consistently within a session. Knows no file, no SDK and no clock.

What is a secret in a text, and what stands for it, is decided in `text_redaction`.
"""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections.abc import Callable
from typing import Any, Final

from stepfork.core.canonical import canonical_text
from stepfork.core.changed_texts import BYTES
from stepfork.core.model import OPAQUE, Plain, Tagged
from stepfork.core.redaction_rules import Rules
from stepfork.core.renaming import PLACEHOLDER, placeholders_in
from stepfork.core.text_redaction import TextRedactor

_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")
_LOOKED_AT: Final = frozenset({str, dict, list, Tagged})


class Redactor:
    """Replaces the secrets of one session. Safe to use from several threads.

    >>> redactor = Redactor()
    >>> redactor.redact({"api_key": "correct horse", "q": "is correct horse right?"})
    {'api_key': '<secret:api_key:1>', 'q': 'is <secret:api_key:1> right?'}
    """

    def __init__(self, rules: Rules | None = None, *, replays: bool = False) -> None:
        self._texts = TextRedactor(rules or Rules())
        self._texts.placeholders.replays = replays
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<Redactor: {len(self._texts.placeholders)} secrets>"

    @property
    def count(self) -> int:
        """How many values are known that are replaced wherever they stand; only ever grows."""
        return len(self._texts.known)

    def mentions(self, text: str, since: int = 0) -> bool:
        """Whether a text may hold a value that became known when `count` was `since` or later.

        It may say yes where there is none (a value that is quoted or folded differently in the text cannot be
        ruled out), never no where there is one.
        """
        with self._lock:
            return self._texts.known.mentions(text, since)

    @property
    def replays(self) -> bool:
        """Whether these are the secrets of a replay, numbered apart until it is known what they are."""
        return self._texts.placeholders.replays

    def redact(self, value: Plain, *, keys: bool = True, raw: bool = False) -> Plain:
        """The value with its secrets replaced; the same object if there are none. It is not changed itself.

        `keys=False` turns the rules for keys off (fields of an SDK's answers); shapes and known values stay
        on. `raw` says that the value comes from the program as it is: what only looks like a placeholder in
        it is escaped.

        >>> Redactor().redact("what is <secret:token:1>?", raw=True)
        'what is <=secret:token:1>?'
        """
        with self._lock:
            self._texts.raw = raw
            try:
                if self._is_clean(value, keys):
                    return value
                while True:  # from the start each time: what is found later may be more than a part
                    known = self.count, len(self._texts.placeholders.brought)
                    redacted = self._walk(value, keys)
                    if (self.count, len(self._texts.placeholders.brought)) == known:
                        return redacted
            finally:
                self._texts.raw = False

    def redact_text(self, text: str) -> str:
        """A text (of an error, a report, a log) with its secrets replaced.

        >>> Redactor().redact_text("GET https://bob:" + "hunter2" + "@host/ failed")
        'GET https://bob:<secret:password:1>@host/ failed'
        """
        redacted = self.redact(text)
        assert isinstance(redacted, str)
        return redacted

    def redact_name(self, name: str) -> str:
        """A file's name with its secrets replaced by ``secret-LABEL``.

        >>> Redactor().redact_name("test_login[" + "sk-" + "a" * 30 + "]")
        'test_login[secret-api_key]'
        """
        return PLACEHOLDER.sub(r"secret-\1", self.redact_text(name))

    def spell_also(self, spelling: Callable[[str], str]) -> None:
        """From now on a value that gets known is looked for in this spelling too."""
        with self._lock:
            self._texts.known.spelling = spelling

    def learn(self, value: str, label: str) -> str:
        """Takes a value for a secret from now on; gives the placeholder that stands for it.

        >>> Redactor().learn("hunter2hunter2", "password")
        '<secret:password:1>'
        """
        with self._lock:
            self._texts.learn(value, label)
            return self._texts.placeholder(label, value)

    def bring(self, value: Plain) -> None:
        """Takes note of the placeholders in a recorded value that the program of a replay is given.

        >>> redactor = Redactor(replays=True)
        >>> redactor.bring({"token": "<secret:token:1>"})
        >>> redactor.redact("<secret:token:1> <secret:token:2>", raw=True)
        '<secret:token:1> <=secret:token:2>'
        """
        with self._lock:
            self._texts.bring(placeholders_in(value))

    def was_brought(self, placeholder: str) -> bool:
        """Whether the program of a replay was given a placeholder."""
        return placeholder in self._texts.placeholders.brought

    def labels(self, placeholder: str) -> set[str]:
        """The labels under which what a placeholder stands for was met."""
        return self._texts.placeholders.labels(placeholder)

    def meant(self, placeholder: str) -> tuple[str, bool]:
        """What a placeholder of this session stands for, and whether that is replaced wherever it stands."""
        return self._texts.placeholders.value(placeholder)

    def bind(self, placeholder: str, recorded: str) -> None:
        """From now on `recorded` stands for what a placeholder of this replay stood for."""
        with self._lock:
            self._texts.bind(placeholder, recorded)

    def _is_clean(self, value: Plain, keys: bool) -> bool:
        """Whether there is nothing to replace: all texts not seen before are looked at in one go."""
        texts = self._texts
        seen = texts.results(keys)
        clean = True
        fresh: list[str] = []
        stack: list[Any] = [value]
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
                if keys and texts.named_by(item):
                    clean = False
                for key, content in item.items():
                    if key not in texts.words:
                        if keys and content and isinstance(content, str | Tagged) and texts.names.label(key):
                            clean = False
                        if texts.is_odd(key):
                            stack.append(key)
                    if content.__class__ in _LOOKED_AT:
                        stack.append(content)
            elif isinstance(item, list):
                stack.extend(item)
            elif isinstance(item, Tagged) and item.tag not in OPAQUE:
                if item.tag in BYTES or item.tag == "map":
                    clean = False
                if item.tag not in BYTES:
                    stack.append(item.value)
        text = "\n".join(fresh)
        texts.placeholders.reserve(text)
        return clean and texts.are_clean(fresh, text, keys)

    def _walk(self, value: Plain, keys: bool) -> Plain:
        if isinstance(value, str):
            return self._texts.redact(value, keys)
        if isinstance(value, dict):
            mapping = {}
            changed = False
            named, label = (keys and self._texts.named_by(value)) or ("", "")
            for key, old in value.items():
                name = self._texts.redact_key(key)
                own = label if key == named else self._texts.names.label(key) if keys else ""
                new = self._item(own, old, keys)
                changed = changed or new is not old or name is not key
                mapping[name] = new
            return mapping if changed else value
        if isinstance(value, list):
            items = [self._walk(item, keys) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if isinstance(value, Tagged):
            return self._tagged(value, keys)
        return value

    def _item(self, label: str, value: Plain, keys: bool) -> Plain:
        """What stands under a key with this label."""
        if label and value:
            if isinstance(value, str):
                return self._texts.keyed(label, value)
            if isinstance(value, Tagged) and value.tag in BYTES:
                return self._bytes(value, label, keys)
        return self._walk(value, keys)

    def _tagged(self, value: Tagged, keys: bool) -> Plain:
        if value.tag in OPAQUE:
            return value
        if value.tag in BYTES:
            return self._bytes(value, "", keys)
        if value.tag == "map" and isinstance(value.value, list):
            pairs = [self._pair(pair, keys) for pair in value.value]
            if all(new is old for new, old in zip(pairs, value.value, strict=True)):
                return value
            return Tagged(value.tag, pairs)
        inner = self._walk(value.value, keys)
        if inner is value.value:
            return value
        if value.tag in ("set", "frozenset") and isinstance(inner, list):
            inner = sorted(inner, key=canonical_text)
        return Tagged(value.tag, inner)

    def _pair(self, pair: Plain, keys: bool) -> Plain:
        """A key and its value, of a mapping whose keys are not all texts."""
        if not isinstance(pair, list) or len(pair) != 2:
            return self._walk(pair, keys)
        name, old = pair
        if not isinstance(name, str):
            return self._walk(pair, keys)
        shown = self._texts.redact_key(name)
        new = self._item(self._texts.names.label(name) if keys else "", old, keys)
        return pair if new is old and shown is name else [shown, new]

    def _bytes(self, value: Tagged, label: str, keys: bool) -> Tagged:
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
            new = self._texts.redact(text, keys)
        if new == text:
            return value
        return Tagged(value.tag, base64.b64encode(new.encode("utf-8", "surrogateescape")).decode())
