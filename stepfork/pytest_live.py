"""Whether the setting `live` of a whole pytest run named any call in it. Knows closed sessions, no item.

A setting for many tests need not fit each of them (`Run.close` checks one that is for a single test); if it
fits none, the tests are green for another reason than they say.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from stepfork.errors import StepforkError
from stepfork.session import active
from stepfork.session.run import Run

_KEY: Final = "stepfork_live"


class LiveSelectors:
    """A plugin; what it learns while tests run it says at the end."""

    def __init__(self) -> None:
        self._fit: set[str] = set()
        self._idle: dict[str, str] = {}  # selector -> what to say of it
        self._stop_listening = active.on_close(self._closed)

    def _closed(self, run: Run) -> None:
        if not run.goes_live or run.fault is not None or all(call.kind != "llm" for call in run.calls):
            return
        try:
            idle = run.idle_selectors
        except StepforkError:  # a document that no call of the test needed
            return
        self._fit.update(one for one in run.settings.live if one not in idle)
        self._idle = idle | self._idle

    @property
    def _wrong(self) -> list[str]:
        return [said for selector, said in self._idle.items() if selector not in self._fit]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The run is red if nothing that `live` names was there; a worker of pytest-xdist hands it on."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_KEY] = {"fit": sorted(self._fit), "idle": self._idle}
        elif self._wrong and not self._fit and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """The controller of pytest-xdist hears what a worker saw."""
        sent = getattr(node, "workeroutput", {}).get(_KEY)
        if sent is not None:
            self._fit.update(sent["fit"])
            self._idle = sent["idle"] | self._idle

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Each selector that named nothing; the error that it is where none did."""
        for said in self._wrong:
            terminalreporter.write_line(said if self._fit else f"ERROR {said}", red=not self._fit)

    def pytest_unconfigure(self) -> None:
        """Stops listening."""
        self._stop_listening()
