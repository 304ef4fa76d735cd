"""Of which sessions pytest shows no secret, and until when. Knows the turns of tests and fixtures, no report.

A session is the test's or the fixture's that opened it: by the plugin, by ``with stepfork.record(...)`` or as
a decorator. What a test learned is hidden until the next begins, what a fixture did until it is torn down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from stepfork.core.redaction_rules import Rules
from stepfork.session import active
from stepfork.session.run import Run


@dataclass(slots=True)
class _Opened:
    """The sessions that one test, or one set-up of a fixture, opened."""

    runs: list[tuple[Run, Rules]] = field(default_factory=list)
    is_over: bool = False

    def add(self, run: Run) -> None:
        """One more was opened."""
        self.runs.append((run, run.settings.rules()))

    def end(self) -> None:
        """The fixture is torn down; what that shows belongs to the test that runs."""
        self.is_over = True

    def forget_unused(self) -> None:
        """No call reached them, and none will."""
        self.runs = [(run, rules) for run, rules in self.runs if run.touched or run.is_open]


class Secrets:
    """The secrets of one pytest run; `stop` ends the listening."""

    def __init__(self) -> None:
        self._test = _Opened()
        imports = _Opened()  # what modules open while they are imported serves every test
        self._setups = [imports]  # what is being set up, the innermost last
        self._fixtures = [imports]
        self.stop = active.on_open(lambda run: self._now().add(run))

    def begin(self) -> None:
        """Another test begins: those of the last one are over, with the fixtures that were torn down."""
        self._test = _Opened()
        self._setups.clear()
        self._fixtures = [opened for opened in self._fixtures if not opened.is_over]

    @contextmanager
    def setting_up(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """What is opened meanwhile is the fixture's, also if its set-up fails."""
        is_of_test = fixturedef.scope == "function"
        opened = self._test if is_of_test else _Opened()
        self._setups.append(opened)
        try:
            yield
        finally:
            self._setups.pop()
            opened.forget_unused()
            if opened.runs and not is_of_test:
                self._fixtures.append(opened)
                fixturedef.addfinalizer(opened.end)

    def redact(self, text: str) -> str:
        """What is shown of the test that runs.

        All rules of the sessions of its own apply, once each, and of wider fixtures what they know.
        """
        applied: set[Rules] = set()
        for run, rules in self._test.runs:
            if run.touched and (rules not in applied or run.redactor.mentions(text)):
                applied.add(rules)
                text = run.redactor.redact_text(text)
        for opened in self._fixtures:
            for run, _ in opened.runs:
                if run.touched and (run.is_open or run.redactor.mentions(text)):
                    text = run.redactor.redact_text(text)
        return text

    def _now(self) -> _Opened:
        return self._setups[-1] if self._setups else self._test
