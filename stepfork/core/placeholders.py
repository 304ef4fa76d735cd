"""Numbers the placeholders of one session. Knows labels and values; finds no secrets and replaces none."""

from __future__ import annotations

from stepfork.core.renaming import MARK, PLACEHOLDER


class Placeholders:
    """One placeholder for each value under each label, numbered in order of their first appearance.

    >>> placeholders = Placeholders()
    >>> [placeholders.of("token", value) for value in ("a", "b", "a")]
    ['<secret:token:1>', '<secret:token:2>', '<secret:token:1>']
    """

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._given)

    def of(self, label: str, value: str) -> str:
        """What stands for a value under a label."""
        placeholder = self._given.get((label, value))
        if placeholder is None:
            number = self._numbers[label] = self._numbers.get(label, 0) + 1
            placeholder = self._given[label, value] = f"{MARK}{label}:{number}>"
        return placeholder

    def reserve(self, text: str) -> None:
        """Takes note of the placeholders in a text, so that no other value gets the number of one."""
        if MARK in text:
            for label, number in PLACEHOLDER.findall(text):
                self._numbers[label] = max(self._numbers.get(label, 0), int(number))
