"""What pytest shows of a test: no secret, and of an error of stepfork's no source of stepfork's.

Knows pytest's reports; knows no session and no call. pytest shows the arguments of the frames that an error
came through, local variables if asked to, and what was printed: all of it may hold what the session of the
test knows to be secret.
"""

from __future__ import annotations

import linecache
import os
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pytest

from stepfork.errors import ConfigError, StepforkError
from stepfork.report.colour import in_colour

_FAILED: Final = "\x1b[1m\x1b[31m"
"""How pytest shows the lines of an error."""
_OWN: Final = str(Path(__file__).parent) + os.sep
_NO_USERS: Final = ("pluggy", "_pytest", "pytest", "contextlib", "stepfork")


def without_own_frames(error: BaseException) -> str:
    """Takes the frames of stepfork's out of the traceback of one of its errors.

    Gives all that there is to show, if none of the user's frames is left: the error then comes from the end
    of the test's session.
    """
    if not isinstance(error, StepforkError):
        return ""
    for one in (error, error.__cause__, error.__context__):
        if isinstance(one, StepforkError):
            _drop_own(one.__traceback__)
    if _has_users(error.__traceback__) or error.__cause__ or not _stands_alone(error):
        return ""
    return _line(error)


def of_an_import(error: BaseException) -> str:
    """All there is to show of a wrong setting that was found out when a module had been imported."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    others = [file for file in files if not file.startswith(_OWN)]
    by_import = bool(others) and others[-1].startswith("<frozen importlib")
    return _line(error) if isinstance(error, ConfigError) and by_import else ""


def _line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _drop_own(frame: TracebackType | None) -> None:
    while frame is not None:
        following = frame.tb_next
        while following is not None and following.tb_frame.f_code.co_filename.startswith(_OWN):
            following = following.tb_next
        frame.tb_next = following
        frame = following


def _has_users(frame: TracebackType | None) -> bool:
    names = (str(one.f_globals.get("__name__", "")) for one, _ in traceback.walk_tb(frame))
    return any(name.partition(".")[0] not in _NO_USERS for name in names)


def _stands_alone(error: BaseException) -> bool:
    return error.__context__ is None or error.__suppress_context__


def redact_report(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Has `redact` go over all texts of a report."""
    shown: Any = report.longrepr
    if isinstance(shown, str):
        report.longrepr = redact(shown)
    elif isinstance(shown, tuple):
        report.longrepr = (shown[0], shown[1], redact(shown[2]))
    elif shown is not None:
        _redact_representation(shown, redact)
    if hasattr(report, "wasxfail"):
        report.wasxfail = redact(report.wasxfail)
    report.user_properties = [
        (redact(str(name)), _property(str(name), value, redact)) for name, value in report.user_properties
    ]
    report.sections = [(name, redact(text)) for name, text in report.sections]


def colour_report(report: pytest.TestReport) -> None:
    """Has a terminal show the leaves of a mismatch in colour; for one that is shown nowhere else."""
    shown: Any = report.longrepr
    for frames, _, _ in getattr(shown, "chain", ()):
        for entry in getattr(frames, "reprentries", ()):
            if any("ReplayMismatchError" in line for line in getattr(entry, "lines", ())):
                entry.lines = [in_colour(line, _FAILED) for line in entry.lines]
    if isinstance(shown, str) and "ReplayMismatchError" in shown:
        report.longrepr = "\n".join(map(in_colour, shown.split("\n")))


def redact_warning(warning: warnings.WarningMessage, redact: Callable[[str], str]) -> None:
    """Has `redact` go over what is shown of a warning: its text, and the line that gave it."""
    said = str(warning.message)
    if redact(said) != said:
        warning.message = redact(said)
    line = linecache.getline(warning.filename, warning.lineno).strip()
    if redact(line) != line:
        warning.line = redact(line)


def _property(name: str, value: object, redact: Callable[[str], str]) -> object:
    """What a test says of itself; a value of any kind is a text where it is shown."""
    text = str(value)
    shown = _argument(name, text, redact) if name.isidentifier() else redact(text)
    return value if shown == text else shown


def _redact_representation(shown: Any, redact: Callable[[str], str]) -> None:
    links = list(getattr(shown, "chain", [])) or [
        (getattr(shown, "reprtraceback", None), getattr(shown, "reprcrash", None), None)
    ]
    for frames, crash, _ in links:
        if crash is not None:
            crash.message = redact(crash.message)
        for entry in getattr(frames, "reprentries", ()):
            _redact_entry(entry, redact)
    if isinstance(getattr(shown, "longrepr", None), str):
        shown.longrepr = redact(shown.longrepr)


def _redact_entry(entry: Any, redact: Callable[[str], str]) -> None:
    """One frame: the lines of its source and of the error, its arguments, its variables."""
    holders: list[Any] = [entry, getattr(entry, "reprlocals", None)]
    for holder in holders:
        if getattr(holder, "lines", None):
            holder.lines = redact("\n".join(holder.lines)).split("\n")
    arguments = getattr(entry, "reprfuncargs", None)
    if arguments is not None:
        arguments.args = [(name, _argument(name, text, redact)) for name, text in arguments.args]


def _argument(name: str, text: str, redact: Callable[[str], str]) -> str:
    """What an argument is shown as: ``password='...'`` is told by the name as well."""
    return redact(f"{name}={text}").partition("=")[2]
