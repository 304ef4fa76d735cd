"""Which placeholder of a recording stands for which secret of a run. Knows placeholders; finds no secrets.

A recording and a run number their secrets on their own, and a dummy value may stand where a real one did:
what counts is that the same placeholder always stands for the same secret, one to one.

A value that only a later call showed to be secret (its argument ``password``, say) is a placeholder
everywhere in the finished recording, but a run does not know it yet when it comes by. Such a placeholder,
and no other, also stands for a text of at least `SHORTEST` characters; the later call must then bring the
very same text as its secret, or it is the mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from stepfork.core.model import Plain, Tagged
from stepfork.core.secret_names import normalise

PLACEHOLDER: Final = re.compile(r"<secret:(\w{1,64}):([1-9][0-9]{0,8})>")
"""What stands for a secret: its label and its number."""
MARK: Final = "<secret:"
SHORTEST: Final = 8
"""A secret of fewer characters is replaced only where its key or context says that it is one."""
_SPELLED: Final = re.compile(
    r"(?:%3[Cc]|\\u003[Cc]|&lt;)secret(?::|%3[Aa])(\w{1,64})(?::|%3[Aa])([1-9][0-9]{0,8})(?:%3[Ee]|\\u003[Ee]|&gt;)"
)
_SPELLINGS: Final = ("%3csecret", "003csecret", "&lt;secret")


def is_spelled(text: str) -> bool:
    """Whether a text may hold a placeholder as URLs, JSON and HTML spell it."""
    lower = text.lower() if "secret" in text else ""
    return any(spelling in lower for spelling in _SPELLINGS)


def in_plain(text: str) -> str:
    """A text with each placeholder as itself: on replay an agent puts one into a URL as it would a value.

    >>> in_plain("https://h/?token=%3Csecret%3Atoken%3A1%3E")
    'https://h/?token=<secret:token:1>'
    """
    return _SPELLED.sub(r"<secret:\1:\2>", text) if is_spelled(text) else text


class Renaming:
    """The pairs found so far. `fork` it to try a comparison; keep the fork to commit to it.

    `shown_later` says whether a later call of the recording holds a placeholder as its secret argument.

    Attributes:
        learned: values that turned out to be secret in this fork, with their label.

    >>> renaming = Renaming()
    >>> renaming.unify("Bearer <secret:token:1>", "Bearer <secret:token:3>")
    True
    >>> renaming.unify("<secret:token:2>", "<secret:token:3>")
    False
    >>> renaming.unify("log in with <secret:password:1>", "log in with hunter2hunter2")
    False
    >>> renaming = Renaming(shown_later=lambda placeholder: placeholder == "<secret:password:1>")
    >>> renaming.unify("log in with <secret:password:1>", "log in with hunter2hunter2"), renaming.learned
    (True, {'hunter2hunter2': 'password'})
    """

    __slots__ = ("_incoming", "_known", "_recorded", "_shown_later", "learned")

    def __init__(self, shown_later: Callable[[str], bool] = lambda placeholder: False) -> None:
        self._shown_later = shown_later
        self._recorded: dict[str, str] = {}
        self._incoming: dict[str, str] = {}
        self._known: dict[str, str] = {}  # values by themselves -> the run's placeholder for them
        self.learned: dict[str, str] = {}

    def fork(self) -> Renaming:
        """An independent copy that has learned nothing yet."""
        copy = Renaming(self._shown_later)
        copy._recorded = self._recorded.copy()
        copy._incoming = self._incoming.copy()
        copy._known = self._known.copy()
        return copy

    def know(self, value: str, placeholder: str) -> None:
        """From now on a learned value is the run's `placeholder`."""
        self._known[value] = placeholder
        recorded = self._incoming.pop(value, None)
        if recorded is not None:
            self._recorded[recorded] = placeholder
            self._incoming[placeholder] = recorded

    def unify(self, recorded: str, incoming: str) -> bool:
        """Whether two texts are equal up to what the placeholders stand for; if not, nothing is kept."""
        if MARK not in recorded:
            return recorded == incoming
        pairs = self._pairs(recorded, incoming)
        if pairs is None:
            return False
        trial = self.fork()
        for placeholder, text in pairs:
            text = self._known.get(text, text)
            if trial._recorded.setdefault(placeholder, text) != text:
                return False
            if trial._incoming.setdefault(text, placeholder) != placeholder:
                return False
        self._recorded, self._incoming = trial._recorded, trial._incoming
        self.learned |= {
            text: placeholder.split(":")[1]
            for placeholder, text in pairs
            if text not in self._known and not PLACEHOLDER.fullmatch(text)
        }
        return True

    def _pairs(self, recorded: str, incoming: str) -> list[tuple[str, str]] | None:
        """What each placeholder of `recorded` stands for in `incoming`, read from left to right."""
        pairs: list[tuple[str, str]] = []
        at = start = 0  # in `incoming`, in `recorded`
        for found in PLACEHOLDER.finditer(recorded):
            literal = recorded[start : found.start()]
            if not incoming.startswith(literal, at):
                return None
            at, start = at + len(literal), found.end()
            text = self._text_at(incoming, at, found, recorded)
            if text is None:
                return None
            pairs.append((found[0], text))
            at += len(text)
        return pairs if incoming[at:] == recorded[start:] else None

    def _text_at(self, incoming: str, at: int, found: re.Match[str], recorded: str) -> str | None:
        there = PLACEHOLDER.match(incoming, at)
        if there is not None:
            return there[0] if there[1] == found[1] else None
        if not self._shown_later(found[0]):
            return None
        following = PLACEHOLDER.search(recorded, found.end())
        literal = recorded[found.end() : following.start() if following else len(recorded)]
        if following is None:
            end = len(incoming) - len(literal)
        elif literal:
            end = incoming.find(literal, at + SHORTEST)
        else:
            return None  # nothing tells where one secret ends and the next begins
        text = incoming[at:end] if end >= at + SHORTEST else ""
        return text if text and MARK not in text else None


def secret_arguments(value: Plain) -> Iterator[str]:
    """The placeholders that stand as whole values under the key they are labelled with.

    >>> list(secret_arguments({"password": "<secret:password:1>", "q": "<secret:password:2>"}))
    ['<secret:password:1>']
    """
    if isinstance(value, dict):
        for key, item in value.items():
            found = PLACEHOLDER.fullmatch(item) if isinstance(item, str) else None
            if found is not None and found[1] == normalise(key):
                yield found[0]
            else:
                yield from secret_arguments(item)
    elif isinstance(value, list):
        for item in value:
            yield from secret_arguments(item)
    elif isinstance(value, Tagged):
        yield from secret_arguments(value.value)
