"""Numbers the placeholders of one session. Knows labels and values; finds no secrets and replaces none."""

from __future__ import annotations

from stepfork.core.placeholder_texts import MARK, OTHER, PLACEHOLDER


class Placeholders:
    """What stands for which value, numbered in order of their first appearance.

    A value that can be told from ordinary text (`spreads`) keeps its first placeholder, whatever label it is
    met under later: the file says that it is the same secret. A short one has another under each label, so
    that one dummy serves for all of them.

    Attributes:
        replays: whether this numbers the secrets of a replay: what the recording does not know yet is
            ``<secret:LABEL:other-N>``, which no recording holds.
        brought: the recording's placeholders that the program of a replay was given.
        answering: whether what gets a placeholder now comes with an answer.
        answers: the placeholders that first came with one.
        told: those of values that do not spread which came with one, first or not.

    >>> placeholders = Placeholders()
    >>> [placeholders.of("token", value) for value in ("a", "b", "a")]
    ['<secret:token:1>', '<secret:token:2>', '<secret:token:1>']
    >>> placeholders.of("token", "correct horse", spreads=True), placeholders.of("password", "correct horse")
    ('<secret:token:3>', '<secret:token:3>')
    """

    def __init__(self) -> None:
        self.replays = False
        self.brought: set[str] = set()
        self.answering = False
        self.answers: set[str] = set()
        self.told: set[str] = set()
        self._given: dict[tuple[str, str], str] = {}  # the label is "" for a value that spreads
        self._numbers: dict[str, int] = {}
        self._met: dict[str, set[str]] = {}
        self._values: dict[str, tuple[str, str]] = {}

    def __len__(self) -> int:
        return len(self._given)

    def of(self, label: str, value: str, *, spreads: bool = False) -> str:
        """What stands for a value under a label."""
        key = ("", value) if spreads or ("", value) in self._given else (label, value)
        placeholder = self._given.get(key)
        if placeholder is None:
            number = self._numbers[label] = self._numbers.get(label, 0) + 1
            placeholder = f"{MARK}{label}:{OTHER if self.replays else ''}{number}>"
            self._given[key] = placeholder
            self._values[placeholder] = key
            if self.answering:
                self.answers.add(placeholder)
        if self.answering and key[0]:
            self.told.add(placeholder)
        self._met.setdefault(placeholder, set()).add(label)
        return placeholder

    def given(self, value: str) -> str:
        """What stands for a value that spreads; "" if nothing does yet."""
        return self._given.get(("", value), "")

    def reserve(self, text: str) -> None:
        """Takes note of the placeholders in a text, so that no other value gets the number of one."""
        if MARK in text and not self.replays:
            for label, number in PLACEHOLDER.findall(text):
                if number.isdigit():
                    self._numbers[label] = max(self._numbers.get(label, 0), int(number))

    def labels(self, placeholder: str) -> set[str]:
        """The labels under which what a placeholder stands for was met."""
        return self._met.get(placeholder, set())

    def value(self, placeholder: str) -> tuple[str, bool]:
        """What a placeholder of this session stands for, and whether that spreads."""
        label, value = self._values.get(placeholder, ("", ""))
        return value, not label

    def bind(self, placeholder: str, recorded: str) -> None:
        """From now on the recording's placeholder stands for what this one of the replay stood for."""
        key = self._values.pop(placeholder, None)
        if key is not None:
            self._given[key] = recorded
            self._met.setdefault(recorded, set()).update(self._met.pop(placeholder, ()))
