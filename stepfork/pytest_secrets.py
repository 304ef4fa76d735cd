"""Of which sessions pytest shows no secret, and until when. Knows the turns of tests and fixtures, no report.

A session is the test's or the fixture's that opened it: by the plugin, by ``with stepfork.record(...)`` or as
a decorator. What a test learned is hidden until the next begins, what a fixture did until it is torn down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from stepfork.core.redaction import Redactor
from stepfork.core.redaction_rules import Rules
from stepfork.session import active
from stepfork.session.run import Run


@dataclass(slots=True, eq=False)
class _Opener:
    """One test, or one set-up of a fixture: what the sessions knew that it opened and that are closed."""

    known: list[tuple[Redactor, Rules]] = field(default_factory=list)
    is_over: bool = False

    def end(self) -> None:
        """The fixture is torn down; what that shows belongs to the test that runs."""
        self.is_over = True


class Secrets:
    """The secrets of one pytest run, until it is closed."""

    def __init__(self) -> None:
        imports = _Opener()  # what modules open while they are imported serves every test
        self._test = _Opener()
        self._setups = [imports]  # what is being set up, the innermost last
        self._fixtures = [imports]
        self._open: dict[Run, _Opener] = {}
        self._listening = ExitStack()
        self._listening.callback(active.on_open(self._opened))
        self._listening.callback(active.on_close(self._closed))

    def close(self) -> None:
        """No more is learned."""
        self._listening.close()

    def begin(self) -> None:
        """Another test begins: those of the last one are over, with the fixtures that were torn down."""
        self._test = _Opener()
        self._setups.clear()
        self._fixtures = [opener for opener in self._fixtures if not opener.is_over]

    @contextmanager
    def setting_up(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """What is opened meanwhile is the fixture's, also if its set-up fails."""
        is_of_test = fixturedef.scope == "function"
        opener = self._test if is_of_test else _Opener()
        self._setups.append(opener)
        try:
            yield
        finally:
            self._setups.pop()
            if not is_of_test and (opener.known or opener in self._open.values()):
                self._fixtures.append(opener)
                fixturedef.addfinalizer(opener.end)

    def redact(self, text: str) -> str:
        """What is shown of the test that runs.

        The rules of its own sessions and of those that are open apply, once each; of wider fixtures what
        they know.
        """
        still_open = [(run.redactor, run.settings.rules()) for run in tuple(self._open) if run.touched]
        applied: set[Rules] = set()
        for redactor, rules in (*self._test.known, *still_open):
            if rules not in applied or redactor.mentions(text):
                applied.add(rules)
                text = redactor.redact_text(text)
        for opener in self._fixtures:
            for redactor, _ in opener.known:
                if redactor.mentions(text):
                    text = redactor.redact_text(text)
        return text

    def _opened(self, run: Run) -> None:
        self._open[run] = self._setups[-1] if self._setups else self._test

    def _closed(self, run: Run) -> None:
        opener = self._open.pop(run, None)
        if opener is not None and run.touched:
            opener.known.append((run.redactor, run.settings.rules()))
