"""What a session knows of its secrets: replaces them, learns of them, tells what stands for which.

Knows no file, no SDK and no clock; what is replaced is decided in `value_redaction` and `text_redaction`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

from stepfork.core.changed_texts import said_in
from stepfork.core.model import Plain
from stepfork.core.placeholder_texts import PLACEHOLDER, placeholders_in
from stepfork.core.redaction_keys import Keys
from stepfork.core.redaction_rules import Rules
from stepfork.core.text_redaction import TextRedactor
from stepfork.core.value_redaction import ValueRedactor

__all__ = ["Keys", "Redactor"]

_LONGEST_HEARD: Final = 64
_PLAIN: Final = re.compile(r"[^\"'`\\<>\x00-\x1f]+")
"""A value that stands in JSON and in code as it is."""
_WORD: Final = re.compile(r"\w+")
_LONG_WORD: Final = re.compile(r"[\w.@+-]+")


class Redactor:
    """Replaces the secrets of one session. Safe to use from several threads.

    >>> redactor = Redactor()
    >>> redactor.redact({"api_key": "correct horse", "q": "is correct horse right?"})
    {'api_key': '<secret:api_key:1>', 'q': 'is <secret:api_key:1> right?'}
    """

    def __init__(self, rules: Rules | None = None, *, replays: bool = False) -> None:
        self._texts = TextRedactor(rules or Rules())
        self._texts.placeholders.replays = replays
        self._values = ValueRedactor(self._texts)
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

    def redact(self, value: Plain, keys: Keys = Keys.ALL, *, raw: bool = False) -> Plain:
        """The value with its secrets replaced; the same object if there are none. It is not changed itself.

        `raw` says that the value comes from the program as it is: what only looks like a placeholder in it is
        escaped.

        >>> answer = {"token": " key", "password": "abc", "content": '{"token": "abc"}'}
        >>> Redactor().redact(answer, Keys.ANSWER)
        {'token': ' key', 'password': '<secret:password:1>', 'content': '{"token": "<secret:token:1>"}'}
        >>> Redactor().redact("what is <secret:token:1>?", raw=True)
        'what is <=secret:token:1>?'
        """
        with self._lock:
            self._texts.raw = raw
            try:
                return self._values.redact(value, keys)
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

    def is_secret_key(self, key: str) -> bool:
        """Whether what stands under a key is a secret.

        >>> Redactor().is_secret_key("MY_TOKEN"), Redactor().is_secret_key("DB")
        (True, False)
        """
        return bool(self._texts.label(key))

    def has_rule(self, label: str) -> bool:
        """Whether anything is replaced under a label here; one with other settings may have replaced more.

        >>> Redactor().has_rule("api_key"), Redactor().has_rule("customer_number")
        (True, False)
        """
        return self._texts.has_rule(label)

    def also_keys(self, keys: Iterable[str]) -> None:
        """From now on what stands under these keys is a secret too.

        >>> redactor = Redactor()
        >>> redactor.also_keys(["customer_number"])
        >>> redactor.redact({"customerNumber": "K-1"})
        {'customerNumber': '<secret:customer_number:1>'}
        """
        with self._lock:
            self._texts.also_keys(keys)

    def learn_headers(self, headers: Iterable[tuple[str, str]]) -> None:
        """Takes what stands in the headers of a request for secret from now on, where their names say so.

        >>> redactor = Redactor()
        >>> redactor.learn_headers([("X-Api-Key", "f3a91c0d5e7b4826"), ("Accept", "application/json")])
        >>> redactor.redact("is f3a91c0d5e7b4826 for application/json?")
        'is <secret:api_key:1> for application/json?'
        """
        with self._lock:
            for name, value in headers:
                label = self._texts.label(name)
                if label:
                    self._texts.learn_parts(label, value)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """What is redacted meanwhile comes with an answer: it was not the program's own.

        >>> redactor = Redactor()
        >>> with redactor.answering():
        ...     _ = redactor.redact({"token": "q7Zx4mW9aa"})
        >>> redactor.redact({"token": "v1.q7Zx4mW9aa"})
        {'token': '<secret:token:2><secret:token:1>'}
        """
        with self._lock:
            self._texts.placeholders.answering = True
            try:
                yield
            finally:
                self._texts.placeholders.answering = False

    def bring(self, value: Plain, *, is_answer: bool = True) -> None:
        """Takes note of the placeholders in a recorded value that the program of a replay is given.

        >>> redactor = Redactor(replays=True)
        >>> redactor.bring({"token": "<secret:token:1>"})
        >>> redactor.redact("<secret:token:1> <secret:token:2>", raw=True)
        '<secret:token:1> <=secret:token:2>'
        """
        with self._lock:
            found = list(placeholders_in(value))
            self._texts.bring(found)
            if is_answer:
                self._texts.placeholders.answers.update(found)

    def hear(self, answer: Plain) -> None:
        """Takes note of an answer as the file has it: a short value that it says in clear is no secret where
        the program hands it on.

        >>> redactor = Redactor()
        >>> redactor.hear(["ETH", "BTC"])
        >>> redactor.redact([{"token": "ETH"}, {"token": "abc"}])
        [{'token': 'ETH'}, {'token': '<secret:token:1>'}]
        """
        with self._lock:
            self._texts.heard.update(text for text in said_in(answer) if 0 < len(text) <= _LONGEST_HEARD)

    def told_in_clear(self, asked: Iterable[Plain]) -> dict[str, str]:
        """What of the answers turned out to be no secret, by its placeholder: short values and words under
        the key of one that the program handed on in clear. Only questions are to be `asked`.

        >>> redactor = Redactor()
        >>> with redactor.answering():
        ...     _ = redactor.redact([{"token": "493021"}, {"password": "abc"}])
        >>> redactor.told_in_clear([{"q": "code 493021"}])
        {'<secret:token:1>': '493021'}
        """
        with self._lock:
            values = {
                shown: self._texts.placeholders.value(shown)[0] for shown in self._texts.placeholders.told
            }
        plain = {shown: value for shown, value in values.items() if _PLAIN.fullmatch(value)}
        if not plain:
            return {}
        met: set[str] = set()
        for text in chain.from_iterable(map(said_in, asked)):
            met.add(text)
            met.update(_WORD.findall(text))
            met.update(_LONG_WORD.findall(text))
        return {shown: value for shown, value in sorted(plain.items()) if value in met}

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
