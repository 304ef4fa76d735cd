"""The error tree. Knows what can go wrong and how each error is worded in one place; knows nothing else.

::

    StepforkError
    ├── ReplayMismatchError   (also AssertionError)     the agent made another call than the recorded one
    ├── CassetteNotFoundError (also FileNotFoundError)  there is no cassette to replay
    ├── CassetteError         the file cannot be trusted: unreadable, wrong version, tampered
    ├── RecordingError        a value cannot be recorded
    ├── NoCassetteError       a patched call outside any cassette while replaying
    ├── UnsupportedCallError  a call that stepfork cannot record (websockets)
    ├── ConfigError           a setting, mode, pattern or use that makes no sense
    └── BlockedNetworkError   a connection outside every recorded call

Errors that stand for something callers already catch subclass it, so that ``except AssertionError``
and ``except FileNotFoundError`` go on working.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

__all__ = [
    "BlockedNetworkError",
    "CassetteError",
    "CassetteNotFoundError",
    "ConfigError",
    "NoCassetteError",
    "RecordingError",
    "ReplayMismatchError",
    "StepforkError",
    "UnsupportedCallError",
]


_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""A text as it may go to a terminal: what would steer it, or turn the line around, as ``\u`` and digits.

    >>> print(visible("a\x1b[31mb\u202ec"))
    a\u001b[31mb\u202ec
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _cut(text: str, limit: int) -> str:
    """The beginning and the end of a long text: a file can have a key of any length."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}…{text[-half:]}"


class StepforkError(Exception):
    """Root of every error stepfork raises.

    >>> issubclass(ReplayMismatchError, StepforkError)
    True
    """


class ReplayMismatchError(StepforkError, AssertionError):
    """The agent's trajectory differs from the recorded one.

    Attributes:
        cassette: path of the cassette, or None for a trajectory that has no file.
        index: the top-level call, counted from 1, at which the difference was seen.
        kind: kind of the call: ``"llm"``, ``"tool"`` or ``"http"``.
        path: where inside the call, as in ``messages[0].content``; "" for the whole call.
        expected: the recorded leaf (secrets replaced), or None where nothing was recorded.
        actual: the leaf the agent sent (secrets replaced), or None where nothing was sent.

    >>> try:
    ...     raise ReplayMismatchError("call #1: expected tool 'a' but the agent called 'b'", index=1)
    ... except AssertionError as error:
    ...     error.index
    1
    """

    def __init__(
        self,
        message: str,
        *,
        cassette: Path | None = None,
        index: int = 0,
        kind: str = "",
        path: str = "",
        expected: Any = None,
        actual: Any = None,
    ) -> None:
        super().__init__(message)
        self.cassette = cassette
        self.index = index
        self.kind = kind
        self.path = path
        self.expected = expected
        self.actual = actual


class CassetteNotFoundError(StepforkError, FileNotFoundError):
    """There is no cassette at the path; the message carries the command that records one.

    Attributes:
        cassette: the path that was looked for.

    >>> issubclass(CassetteNotFoundError, FileNotFoundError)
    True
    """

    def __init__(self, message: str, *, cassette: Path | None = None) -> None:
        super().__init__(message)
        self.cassette = cassette

    def __str__(self) -> str:
        return str(self.args[0])


class CassetteError(StepforkError):
    """A cassette cannot be read or trusted. It is never overwritten and never counts as an empty one.

    Attributes:
        file: the path, or None for text that came from no file.
        line: line in the file, from 1; None where no line can be named.
        field: dotted place inside the document, as in ``request.messages[0].content``; "" for all of it.
        problem: what is wrong, without the place.

    >>> str(CassetteError("duplicate key", file=Path("a.yaml"), line=7, field="response"))
    'a.yaml:7: response: duplicate key'
    """

    def __init__(
        self, problem: str, *, file: Path | None = None, line: int | None = None, field: str = ""
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.field = field
        super().__init__(problem)

    def __str__(self) -> str:
        place = str(self.file) if self.file is not None else "<cassette>"
        if self.line is not None:
            place += f":{self.line}"
        problem = _cut(self.problem, 1000)
        return visible(
            f"{place}: {_cut(self.field, 200)}: {problem}" if self.field else f"{place}: {problem}"
        )


class RecordingError(StepforkError):
    """A value cannot be recorded. The live run goes on undisturbed; raised when the session ends.

    Attributes:
        call: the call, as in ``tool 'search'``.
        path: where in the call, as in ``result.rows[3]``.
        type: the type that cannot be recorded, as in ``socket.socket``.

    >>> issubclass(RecordingError, StepforkError)
    True
    """

    def __init__(self, message: str, *, call: str = "", path: str = "", type: str = "") -> None:
        super().__init__(message)
        self.call = call
        self.path = path
        self.type = type


class NoCassetteError(StepforkError):
    """A patched call was made outside any cassette while replaying, or after its session had closed."""


class UnsupportedCallError(StepforkError):
    """The call is of a sort that stepfork does not record or replay. It never goes live silently."""


class ConfigError(StepforkError):
    """A setting, mode, pattern or use that makes no sense; the message lists what would."""


class BlockedNetworkError(StepforkError):
    """A connection outside every recorded call while replaying; the message names the host."""
