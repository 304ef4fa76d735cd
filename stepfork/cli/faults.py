"""Errors as messages and exit codes, for every command alike. Knows the error tree, no command.

0 fine; 1 the behaviour differs or a check failed; 2 bad input or usage; 3 nothing to verify.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType
from typing import Final

import stepfork
from stepfork.core.redaction import Redactor
from stepfork.errors import RecordingError, ReplayMismatchError, StepforkError

FINE: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
NOTHING_TO_VERIFY: Final = 3

_OWN = Path(stepfork.__file__).parent


def status_of(error: StepforkError) -> int:
    """The exit code an error ends a command with."""
    return FAILED if isinstance(error, ReplayMismatchError | RecordingError) else BAD_INPUT


def message(error: StepforkError) -> str:
    """What is printed for an error: a mismatch in full, anything else in one line; no shape of a secret."""
    text = Redactor().redact_text(str(error))
    if isinstance(error, ReplayMismatchError):
        return text
    return f"error: {'; '.join(line.strip() for line in text.splitlines() if line.strip())}"


def one_line(error: BaseException) -> str:
    """Class and text of any exception in one line.

    >>> one_line(KeyError("k")), one_line(SystemExit())
    ("KeyError: 'k'", 'SystemExit')
    """
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its text cannot be read)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def own_fault(error: BaseException) -> StepforkError | None:
    """The error of ours that an exception is, or that a group of them holds."""
    if isinstance(error, StepforkError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(own_fault, error.exceptions)), None)
    return None


def users_traceback(error: BaseException, redactor: Redactor) -> str:
    """The traceback of an exception of the user's code, from the first frame that is not ours."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(_OWN):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
    return redactor.redact_text("".join(lines)).rstrip()
