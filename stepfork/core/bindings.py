"""What the placeholders of a recording stand for in a run: found call by call, the same throughout.

Knows placeholders and values; finds no secret and reads no file.

A placeholder that first came with an answer stands for itself: the program was given it, so it has to be that
one. Any other may stand for one value of the run, which is that placeholder from then on. A value that the
run does not know to be secret yet (its argument ``password`` comes later, say) may be any text of at least
eight characters if a further call, an answer or the output shows the placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from stepfork.core.model import Plain, Tagged, texts_in
from stepfork.core.placeholder_texts import MARK, PLACEHOLDER, SHORTEST, is_other, label_of, placeholders_in
from stepfork.core.redaction import Redactor
from stepfork.core.secret_names import COOKIES, normalise
from stepfork.core.secret_parts import holds_only_secrets

_ALWAYS: Final = 1 << 62


class Shown:
    """Where a recording shows its placeholders: calls by their number, in the order in which they started.

    >>> shown = Shown()
    >>> shown.question(0, "use <secret:token:1>")
    >>> shown.answer(0, [{"token": "<secret:token:1>"}, "<secret:jwt:1>"])
    >>> shown.is_later("<secret:token:1>", 0), shown.is_answers("<secret:token:1>")
    (True, False)
    >>> shown.is_later("<secret:jwt:1>", 1), shown.is_answers("<secret:jwt:1>")
    (False, True)
    """

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}  # the last call that asks with it
        self._answers: dict[str, bool] = {}  # whether an answer was the first to have it
        self._given: dict[str, int] = {}  # the last call that is answered with it under its own key
        self._earliest: dict[str, int] = {}  # the first call that asks with it
        self._first: dict[str, str] = {}  # the first text of a question that holds it
        self._handed: dict[str, int] = {}  # the last call that asks with it under its own key

    def header(self, value: Plain) -> None:
        """The arguments and variables that the program was started with."""
        for placeholder in placeholders_in(value):
            self._answers.setdefault(placeholder, False)

    def question(self, at: int, value: Plain) -> None:
        """What a call asks."""
        for text in texts_in(value):
            for placeholder in placeholders_in(text):
                self._answers.setdefault(placeholder, False)
                self._earliest.setdefault(placeholder, at)
                self._asked.setdefault(placeholder, at)
                # a history says the same again
                if self._first.setdefault(placeholder, text) != text or text == placeholder:
                    self._asked[placeholder] = at
        for placeholder in _under_their_keys(value):
            self._handed[placeholder] = at

    def answer(self, at: int, value: Plain) -> None:
        """What a call is answered."""
        for placeholder in placeholders_in(value):
            self._answers.setdefault(placeholder, True)
        for placeholder in _under_their_keys(value):
            self._given[placeholder] = at

    def output(self, value: Plain) -> None:
        """What the run came to."""
        for placeholder in placeholders_in(value):
            self._answers.setdefault(placeholder, False)
            self._asked[placeholder] = _ALWAYS

    def labels(self) -> Iterator[str]:
        """The labels of all of them."""
        return map(label_of, self._answers)

    def is_answers(self, placeholder: str) -> bool:
        """Whether an answer was the first to have it."""
        return self._answers.get(placeholder, False)

    def is_given(self, placeholder: str) -> bool:
        """Whether an answer shows by a key that it is a secret; else only the program's own calls may."""
        return placeholder in self._given

    def is_handed_later(self, placeholder: str, at: int) -> bool:
        """Whether a call after this one hands it in under its own key."""
        return self._handed.get(placeholder, -1) > at

    def is_later(self, placeholder: str, at: int) -> bool:
        """Whether anything after the question of a call shows it: another text than the first, or a key."""
        others = (self._asked.get(placeholder, at), self._earliest.get(placeholder, at))
        return others != (at, at) or self._given.get(placeholder, -1) >= at


_NAMED: Final = re.compile(
    r"([A-Za-z][\w-]{0,63})[^\w<>]{1,12}(?:(?i:bearer|basic|token|apikey|bot)[ \t]+)?\Z"
)
_IN_URL: Final = re.compile(r"://[^\s/@]{0,64}:?\Z")


def _under_their_keys(value: Plain) -> Iterator[str]:
    """The placeholders that stand under the key they are labelled with, or that a text says so of."""
    if isinstance(value, str):
        if MARK in value:
            yield from _named_in(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str) and MARK in item:
                label = normalise(key)
                yield from (found for found in placeholders_in(item) if label_of(found) == label)
                yield from _named_in(item)
            else:
                yield from _under_their_keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _under_their_keys(item)
    elif isinstance(value, Tagged) and value.tag != "secret":
        yield from _under_their_keys(value.value)


def _named_in(text: str) -> Iterator[str]:
    """The placeholders that a text gives away: ``password=...``, ``https://bob:...@host``, a cookie."""
    for found in PLACEHOLDER.finditer(text):
        head = text[max(0, found.start() - 90) : found.start()]
        named = _NAMED.search(head)
        if (
            (named is not None and normalise(named[1]) == found[1])
            or _IN_URL.search(head)
            or (found[1] in COOKIES and "cookie" in head.lower())
            or "Basic <secret:" in head
        ):
            yield found[0]


class Bindings:
    """The placeholders of one recording in one run; `shown` is asked for only when one has to be found.

    Attributes:
        at: the number of the call that is compared.

    >>> redactor, shown = Redactor(replays=True), Shown()
    >>> bindings = Bindings(redactor, lambda: shown)
    >>> mine = redactor.redact({"api_key": "dummy-key"})
    >>> mine, bindings.may_be("<secret:api_key:1>", mine["api_key"])
    ({'api_key': '<secret:api_key:other-1>'}, True)
    >>> bindings.commit({"<secret:api_key:1>": mine["api_key"]})
    >>> redactor.redact("with dummy-key")
    'with <secret:api_key:1>'
    """

    def __init__(self, redactor: Redactor, shown: Callable[[], Shown]) -> None:
        self.at = 0
        self._redactor = redactor
        self._make = shown
        self._shown: Shown | None = None
        self._values: dict[str, str] = {}  # recorded placeholder, or several -> what it stands for
        self._together: list[str] = []  # several side by side, of which not all are known yet

    def was_brought(self, placeholder: str) -> bool:
        """Whether the program was given a placeholder."""
        return self._redactor.was_brought(placeholder)

    def is_that_dummy(self, recorded: str, here: str) -> bool:
        """Whether a short dummy of the run is the one that a recorded placeholder stands for already."""
        value = self._values.get(recorded)
        if value is None:
            return False
        return here == value or (is_other(here) and self._redactor.meant(here) == (value, False))

    def is_dummy_for(self, recorded: str, here: str) -> bool:
        """Whether a dummy of the run stands for a value that is put together otherwise: ``Cookie: x`` for a
        cookie with its name, of which no part was used before or came with an answer; or the other way round.
        """
        if PLACEHOLDER.fullmatch(here) and is_other(here) and holds_only_secrets(recorded):
            parts = list(placeholders_in(recorded))
            known = self._redactor.labels(here)
            return any(label_of(part) in known for part in parts) and all(map(self._is_free, parts))
        if PLACEHOLDER.fullmatch(recorded) and holds_only_secrets(here) and self._is_free(recorded):
            return any(label_of(part) == label_of(recorded) for part in placeholders_in(here))
        return False

    def in_clear(self, here: str) -> str:
        """A text of the run with its short secrets in clear: what an answer says in clear stands in the
        recording so, under the key of a secret too.
        """
        return PLACEHOLDER.sub(self._plain, here) if MARK in here else here

    def _plain(self, found: re.Match[str]) -> str:
        value, spreads = self._redactor.meant(found[0])
        return found[0] if spreads or not value else value

    def _is_free(self, recorded: str) -> bool:
        """Whether a recorded placeholder may still stand for anything of the program's own."""
        return recorded not in self._values and not self._redactor.was_brought(recorded)

    def may_be(self, recorded: str, here: str) -> bool:
        """Whether a placeholder or text of the run may be what a recorded one stands for."""
        if recorded in self._values:
            return False
        is_text = PLACEHOLDER.fullmatch(here) is None
        if not is_text and not is_other(here):
            return False
        if self._shown is None:
            self._shown = self._make()
        if is_text and (several := _apart(recorded)):
            return all(self.may_be(part, here) for part in several) and self._fits(recorded, here, {})
        value = here if is_text else self._redactor.meant(here)[0]
        for together in self._together:
            if recorded in together and not self._fits(together, self._values[together], {recorded: value}):
                return False
        came = self._shown.is_answers(recorded) and self._redactor.was_brought(recorded)
        if came and self._shown.is_given(recorded):
            return False
        if not is_text and label_of(recorded) in self._redactor.labels(here):
            return True
        if came:
            return self._shown.is_handed_later(recorded, self.at)
        return self._shown.is_later(recorded, self.at)

    def unruled(self) -> list[str]:
        """The labels of what the recording replaced by rules that this run has not."""
        if self._shown is None:
            self._shown = self._make()
        return sorted({label for label in self._shown.labels() if not self._redactor.has_rule(label)})

    def commit(self, pairs: Mapping[str, str]) -> None:
        """From now on the run's secrets are what they turned out to be."""
        for recorded, here in pairs.items():
            if recorded == here:
                continue
            if PLACEHOLDER.fullmatch(here) is not None:
                self._values[recorded] = self._redactor.meant(here)[0]
                self._redactor.bind(here, recorded)
            elif recorded not in self._values:
                self._values[recorded] = here
                if _apart(recorded):
                    self._together.append(recorded)
                else:
                    self._redactor.bind(self._redactor.learn(here, label_of(recorded)), recorded)
        if self._together:
            self._tell_apart()

    def _fits(self, together: str, text: str, known: Mapping[str, str]) -> bool:
        """Whether a text may be these placeholders side by side."""
        return re.fullmatch(self._pattern(together, known), text, re.DOTALL) is not None

    def _pattern(self, together: str, known: Mapping[str, str]) -> str:
        values = {**self._values, **known}
        parts = _apart(together)
        return "".join(
            re.escape(values[part]) if part in values else f"(.{{{SHORTEST},}}?)" for part in parts
        )

    def _tell_apart(self) -> None:
        """Where all but one of several side by side are known, the last one is too."""
        for together in tuple(self._together):
            unknown = [part for part in _apart(together) if part not in self._values]
            if len(unknown) > 1:
                continue
            self._together.remove(together)
            found = re.fullmatch(self._pattern(together, {}), self._values[together], re.DOTALL)
            if unknown and found is not None:
                self.commit({unknown[0]: found[1]})


def _apart(several: str) -> list[str]:
    """The placeholders of several side by side; none if it is a single one."""
    found = [match[0] for match in PLACEHOLDER.finditer(several)]
    return found if len(found) > 1 else []
