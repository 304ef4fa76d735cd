"""Whether two texts say the same up to what may differ between a recording and a run: secrets, values that
were declared volatile, links to a directory. Knows the pairs found so far; finds no secret and reads no file.

A rule without a text tells the values that it finds apart. Each recorded one then stands for one of the
run, one to one, with two exceptions: a value that an answer brought stands for itself only (the program got
it from there, so it has to be that one), and a value that the program made itself is also known by the
recorded one if an answer quotes that.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

from stepfork.core.changed_texts import said_in
from stepfork.core.directories import AS_THEY_STAND, Directories
from stepfork.core.model import Plain, numbers_in
from stepfork.core.renaming import Bound, Renaming
from stepfork.core.volatile import Rules

_Value = tuple[int, str]  # the number of the rule, and what it found


class Likeness:
    """What one session knows: `trial` gives a comparison, `commit` keeps what it found.

    >>> alike = Likeness(Rules.compile((("[a-z]+-[0-9]+", True),)))
    >>> trial = alike.trial()
    >>> trial.same_text("a-1, b-2, a-1", "c-3, d-4, c-3"), alike.trial().same_text("a-1, b-2", "c-3, c-3")
    (True, False)
    """

    def __init__(
        self,
        rules: Rules | None = None,
        directories: Directories = AS_THEY_STAND,
        bound: Bound | None = None,
    ) -> None:
        self.rules: Final = rules or Rules()
        self.directories: Final = directories
        self._bound = bound
        self._renaming = Renaming(bound)
        self._run: dict[_Value, str] = {}  # recorded -> what the run made in its place
        self._recorded: dict[_Value, str] = {}  # of the run -> recorded
        self._brought: set[_Value] = set()

    def trial(self) -> Trial:
        """A comparison that changes nothing here."""
        known = (self._run, self._recorded, self._brought)
        return Trial(self.rules, self.directories, self._renaming.fork(), *known)

    def commit(self, trial: Trial) -> None:
        """From now on what the trial found is known."""
        if self._bound is None:  # else what is found is told to it
            self._renaming = trial.renaming
        self._run |= trial.run
        self._recorded |= trial.recorded

    def brought(self, answer: Plain) -> None:
        """Takes note of the values in an answer: the program did not make them."""
        if self.rules.tell_apart:
            for text in chain(said_in(answer), numbers_in(answer)):
                for piece in self.rules.cut(text)[1]:
                    if piece.text is None:
                        self._brought.add((piece.rule, piece.key))

    def blur(self, text: str) -> str:
        """The text with all replaced that may differ but secrets: equal for texts that may say the same."""
        text = self.directories.in_one_spelling(text)
        return self.rules.blur(text) if self.rules else text


class Trial:
    """One comparison of two calls.

    Attributes:
        renaming: what it found of secrets.
        run, recorded: what it found of volatile values.
        asks_all: whether texts that are equal have to be compared too.
    """

    def __init__(
        self,
        rules: Rules,
        directories: Directories,
        renaming: Renaming,
        known_run: Mapping[_Value, str],
        known_recorded: Mapping[_Value, str],
        brought: set[_Value],
    ) -> None:
        self.renaming = renaming
        self.run: dict[_Value, str] = {}
        self.recorded: dict[_Value, str] = {}
        self.asks_all = rules.tell_apart
        self._rules = rules
        self._directories = directories
        self._known_run = known_run
        self._known_recorded = known_recorded
        self._brought = brought

    def same_text(self, recorded: str, incoming: str) -> bool:
        """Whether two texts say the same. After a False the trial is of no more use."""
        if self._directories.has_spellings:
            recorded, incoming = map(self._directories.in_one_spelling, (recorded, incoming))
        if not self._rules:
            return self.renaming.unify(recorded, incoming)
        then, old = self._rules.cut(recorded)
        now, new = self._rules.cut(incoming)
        if len(old) != len(new) or not all(map(self.renaming.unify, then, now)):
            return False
        for was, here in zip(old, new, strict=True):
            if was.rule != here.rule or was.text != here.text:
                return False
            if was.text is None and (
                was.form != here.form or not self._pair((was.rule, was.key), (here.rule, here.key))
            ):
                return False
        return True

    def _pair(self, then: _Value, now: _Value) -> bool:
        stands_for = self.recorded.get(now) or self._known_recorded.get(now)
        made = self.run.get(then) or self._known_run.get(then)
        if stands_for is not None:
            return stands_for == then[1]
        if then != now:
            if made is not None or then in self._brought or now in self._brought:
                return False
            self.run[then] = now[1]
        self.recorded[now] = then[1]
        return True
