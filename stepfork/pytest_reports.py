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
    redact_outcome(report, redact)
    if hasattr(report, "wasxfail"):
        report.wasxfail = redact(report.wasxfail)
    report.user_properties = [
        (redact(str(name)), _property(str(name), value, redact)) for name, value in report.user_properties
    ]


def redact_outcome(report: pytest.TestReport | pytest.CollectReport, redact: Callable[[str], str]) -> None:
    """Has `redact` go over what any report has: what went wrong, and what was printed."""
    shown: Any = report.longrepr
    if isinstance(shown, str):
        report.longrepr = redact(shown)
    elif isinstance(shown, tuple):
        report.longrepr = (shown[0], shown[1], redact(shown[2]))
    elif hasattr(shown, "reprtraceback"):
        _redact_representation(shown, redact)
    elif shown is not None and redact(text := str(shown)) != text:  # a doctest's, or a plugin's own
        report.longrepr = redact(text)
    report.sections = [(name, redact(text)) for name, text in report.sections]


def redact_subtest(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Has `redact` go over the report of a subtest; its heading cannot be changed but from here."""
    redact_report(report, redact)
    context: Any = report.context
    if context.msg is not None:
        object.__setattr__(context, "msg", redact(str(context.msg)))
    told = {name: _property(str(name), value, redact) for name, value in context.kwargs.items()}
    object.__setattr__(context, "kwargs", told)


class ReportFile:
    """What tests write into pytest's XML report by themselves: two fixtures give methods of what it keeps."""

    def __init__(self) -> None:
        self._suite: Any = None
        self._case: Any = None
        self._before = 0

    def made(self, fixture: str, value: object) -> None:
        """A fixture was set up: one of the two gives a method of what it writes to, if there is a report."""
        if fixture == "record_testsuite_property":
            self._suite = getattr(value, "__self__", None)
        elif fixture == "record_xml_attribute":
            self._case = getattr(value, "__self__", None)

    def begin(self) -> None:
        """Another test begins; what the last one wrote has been gone over."""
        self._before = len(getattr(self._suite, "global_properties", ()))
        self._case = None

    def redact(self, redact: Callable[[str], str]) -> None:
        """Has `redact` go over what the test wrote so far."""
        properties = getattr(self._suite, "global_properties", [])
        properties[self._before :] = [
            (redact(name), _argument(name, value, redact)) for name, value in properties[self._before :]
        ]
        attributes = getattr(self._case, "attrs", {})
        for name in list(attributes):
            attributes[redact(name)] = _argument(name, attributes.pop(name), redact)


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
        (shown.reprtraceback, getattr(shown, "reprcrash", None), None)
    ]
    for frames, crash, _ in links:
        if crash is not None:
            crash.message = redact(crash.message)
        for entry in getattr(frames, "reprentries", ()):
            _redact_entry(entry, redact)


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
