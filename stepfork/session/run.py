"""One session: takes calls, counts them, latches the first fault. Knows modes and files, no SDK.

A `Run` is what users hold (``with stepfork.replay(...) as run``). The driver speaks to `begin`,
`finish`, `refuse`; whoever opened the session speaks to `close`.
"""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary, ref

from stepfork.cassette import emitter, frame
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.usage import is_silent, usage_of
from stepfork.cassette.values import IMPORTED, BadValue, ClassPolicy, Unsupported, encode
from stepfork.cassette.writer import Writer, Written
from stepfork.core.directories import AS_THEY_STAND, Directories
from stepfork.core.lines import Line, Scope
from stepfork.core.model import Call, Incoming, Plain, Recorded, describe
from stepfork.core.placeholder_texts import MARK, PLACEHOLDER
from stepfork.core.redaction import Redactor
from stepfork.errors import (
    ConfigError,
    RecordingError,
    StepforkError,
    UnsupportedCallError,
)
from stepfork.session import faults
from stepfork.session.config import Settings
from stepfork.session.control import Frame, Strand
from stepfork.session.expected_trajectory import ExpectedTrajectory
from stepfork.session.final import redacted_header
from stepfork.session.live_answers import LiveAnswers
from stepfork.session.modes import Action
from stepfork.session.named_tools import check_tools
from stepfork.session.play import Body
from stepfork.session.prices import Prices, read_prices
from stepfork.session.recorder import Recorder, cause, described, end_of
from stepfork.session.replayer import PastRecording, Replayer
from stepfork.session.selectors import model_of
from stepfork.session.spending import Spending
from stepfork.session.ticket import Ticket
from stepfork.session.turns import Turns

Ending: TypeAlias = Literal["run", "test", "skipped", "abandoned"]

__all__ = ["Body", "Counts", "Ending", "PastRecording", "Recipe", "Run", "Ticket"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Top-level calls of a session.

    Attributes:
        recorded: calls in the cassette.
        substituted: calls answered from it.
        live: calls really made, tools included.
        tool_bodies_executed: tool functions whose body ran.
    """

    recorded: int = 0
    substituted: int = 0
    live: int = 0
    tool_bodies_executed: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a recording's header says besides its name: how to run it again."""

    entrypoint: str | None = None
    args: Plain = None
    env: dict[str, str] | None = None


_NO_OUTPUT: Final = object()


class Run:
    """One recording or replay.

    Attributes:
        path: the cassette's path.
        file: the same with every link resolved: what tells two cassettes apart.
        action: ``"record"``, ``"replay"`` or ``"off"``.
        is_open: whether calls are still taken.
        went_past: whether a fixed agent went on past a recorded failure (``past_failure="stop"``).
        written: where a recording went, once it is closed.
        tokens: tokens that the answered LLM calls had cost when they were recorded.
        scope: the lines of control that make its calls.
        strands: how many tasks, threads and work items that were started in it have not ended.
        classes: what cassettes may do with the classes that they name.
        ignored: which places of calls do not count.
        redactor: what replaces its secrets, wherever something is said of it.
        spending: requests, tokens and money that live LLM calls took.
        note: what was odd but not wrong, once it is closed.
        blocked: connections that were refused while it replayed, by ``host:port``, and how often.
        hands_over: whether those serve, once it is closed, whatever session is open (a fixture's do).

    `live_is_for_it` says whether the setting `live` is meant for this session, and not for many.
    """

    def __init__(
        self,
        path: Path,
        action: Action,
        settings: Settings,
        *,
        name: str | None = None,
        recipe: Recipe | None = None,
        hints: faults.Hints | None = None,
        outer: Run | None = None,
        similar: Callable[[Path], Path | None] = lambda path: None,
        on_open: Callable[[Run, tuple[str, ...], tuple[str, ...]], None] = lambda run, tools, exclude: None,
        hands_over: bool = False,
        before_recording: Callable[[Run], Action] = lambda run: "record",
        classes: ClassPolicy = IMPORTED,
        directories: Callable[[Settings], Directories] = lambda settings: AS_THEY_STAND,
        live_is_for_it: bool = True,
    ) -> None:
        self.path = path
        self.classes = classes
        self.file = os.path.realpath(path)
        self.action: Action = action
        self.settings = settings
        self.outer = outer
        self.is_open = True
        self.went_past = False
        self.written: Written | None = None
        self.tokens = 0
        self.spending = Spending()
        self._prices: Prices | None = None
        self._price_file = None if settings.prices is None else Path.cwd() / settings.prices
        self.scope = Scope()
        self.strands = 0
        self.hands_over = hands_over
        self._live_is_for_it = live_is_for_it
        self.note = ""
        self.blocked: dict[str, int] = {}
        self._on_strands: Callable[[int], None] = lambda more: None
        self._strangers: WeakKeyDictionary[Strand, Line] = WeakKeyDictionary()
        self._outside: list[tuple[ref[Strand], Line]] = []
        self._when_alone: list[Callable[[], None]] = []
        self._bodies = 0
        self._name = name or path.name.removesuffix(".yaml")
        self._recipe = recipe or Recipe()
        self._hints = hints
        self._similar = similar
        self._on_open = on_open
        self._before_recording = before_recording
        self._output: Any = _NO_OUTPUT
        self._lock = threading.RLock()
        self._turns = Turns()
        self._latched: StepforkError | PastRecording | None = None
        self._recorder: Recorder | None = None
        self._replayer: Replayer | None = None
        self._find_directories = directories
        self._directories = AS_THEY_STAND
        self.redactor = Redactor(settings.rules(), replays=action == "replay")
        self.ignored = settings.ignored()
        self._pid = os.getpid()
        self._pending: list[Callable[[], None]] = []

    # -- what users see -----------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """The top-level calls of this session so far, in order; secrets replaced."""
        with self._lock:
            player = self._recorder or self._replayer
            return [] if player is None else player.calls()

    @property
    def asked(self) -> list[str]:
        """A digest of each top-level call that was recorded, sorted: what tells two recordings apart."""
        with self._lock:
            return [] if self._recorder is None else self._recorder.asked()

    @property
    def counts(self) -> Counts:
        """How many calls were recorded, substituted, live, and how many tool bodies ran."""
        with self._lock:
            if self._recorder is not None:
                recorder = self._recorder
                return Counts(recorder.recorded, 0, recorder.live, recorder.bodies)
            if self._replayer is not None:
                made, bodies = self._replayer, self._bodies
                live = made.live + bodies
                return Counts(made.recorded, made.substituted - bodies, live, bodies)
            return Counts()

    @property
    def goes_live(self) -> bool:
        """Whether LLM calls may be made live although a cassette is replayed (mode ``hybrid``)."""
        return self.action == "replay" and bool(self.settings.goes_live())

    @property
    def live_calls(self) -> list[int]:
        """Which of `calls` were LLM calls made live while a cassette was replayed, by number from 1."""
        with self._lock:
            return [] if self._replayer is None else self._replayer.live_calls()

    @property
    def idle_selectors(self) -> dict[str, str]:
        """What of `live` names no call, neither one made nor one recorded; with each, what to say of it."""
        with self._lock:
            if self._replayer is None or not (self.goes_live and self.settings.live):
                return {}
            return self._replayer.idle_selectors()

    def set_output(self, value: Any) -> None:
        """Says what the run came to; a recording stores it in its cassette.

        Raises:
            RecordingError: while recording, if the value cannot be written.
            ConfigError: if the session has closed.
        """
        if not self.is_open:
            raise ConfigError(f"{self.path}: the session has closed; call set_output() inside of it")
        if self.action == "record":
            try:
                output = encode(value, "output", self.classes)
                emitter.emit_document({"output": output})
                self._output = output
            except Unsupported as problem:
                self.redactor.redact(problem.beside)
                text = self.redactor.redact_text
                raise RecordingError(
                    text(f"the output cannot be recorded: {described(problem)}"),
                    path=text(problem.path),
                    type=problem.type,
                ) from None
            except (ValueError, RecursionError) as bug:
                raise RecordingError(f"the output cannot be recorded: {cause(bug)}", path="output") from None

    def expect_trajectory(self, **rules: Any) -> None:
        """Asserts which calls were made: every rule must hold for the top-level calls of this session so far.

        ``called=["search"]``, ``not_called=["delete"]``, ``counts={"search": 2}``,
        ``arguments=[{"name": "search", "occurrence": 2, "arguments": {"q": "go"}}]``, ``order=[...]``
        (whatever came between), ``sequence=[...]`` (in a row), ``strict_sequence=[...]`` (nothing else),
        ``max_steps=5``. A name is a tool's; ``llm``, ``llm:MODEL`` and ``http:GET host/path`` are the other
        kinds.

        Raises:
            AssertionError: naming every rule that does not hold, and the calls that were made.
            ConfigError: for a rule that makes no sense.

        Example::

            with stepfork.replay("cassettes/outage.yaml") as run:
                agent.run("checkout-api")
            run.expect_trajectory(called=["lookup_service_health"], not_called=["restart"], max_steps=6)
        """
        __tracebackhide__ = True
        ExpectedTrajectory.of(rules, "run.expect_trajectory()").check(self.calls)

    @property
    def unchecked(self) -> dict[str, int]:
        """LLM calls inside tools that were answered as a whole, by the tool's name."""
        return {} if self._replayer is None else dict(self._replayer.unchecked)

    @property
    def missing(self) -> int:
        """How many recorded calls had to be made and were not."""
        return 0 if self._replayer is None else len(self._replayer.left_over())

    # -- what the driver says -----------------------------------------------------------------------

    @property
    def touched(self) -> bool:
        """Whether any call reached this session."""
        return self._recorder is not None or self._replayer is not None or self._latched is not None

    @property
    def guards_network(self) -> bool:
        """Whether nothing may leave the process: on replay, of what has a cassette or made a call."""
        return self.action == "replay" and (self.touched or os.path.exists(self.path))

    @property
    def fault(self) -> StepforkError | None:
        """The first fault of this session, which every later call and its end raise again."""
        return self._latched if isinstance(self._latched, StepforkError) else None

    def begin(self, call: Incoming, frame: Frame) -> Recorded | Ticket | Body:
        """A call arrives: the recorded call that answers it, a ticket to make it live, or a body to run.

        Raises:
            StepforkError: a mismatch, a missing or broken cassette; the same again for every later call.
            PastRecording: where a failed recording ends and the run may end with it.
        """
        __tracebackhide__ = True
        with self._lock:
            self._check_latch()
            try:
                if self._interrupts(call.kind, call.name):
                    ticket = Ticket(call, frame.inside, frame.line.last())
                    self._turns.take(lambda: self._begin_live(ticket))
                    return ticket
                with self._turns:
                    self._open()
                    if self._recorder is not None:
                        ticket = Ticket(call, frame.inside, frame.line.last())
                        self._recorder.begin(ticket)
                        return ticket
                    assert self._replayer is not None
                    answer = self._replayer.answer(call, frame.line, frame.inside)
            except (StepforkError, PastRecording) as fault:
                self._latched = fault
                raise
            if isinstance(answer, Body):
                self._bodies += frame.inside is None
            elif isinstance(answer, Recorded) and (usage := usage_of(answer.outcome)) is not None:
                self.tokens += usage.total
            return answer

    def _begin_live(self, ticket: Ticket) -> None:
        if self._recorder is not None:
            self._recorder.begin(ticket)

    def _interrupts(self, kind: str, name: str) -> bool:
        """Whether a call came while another one is taken down, in the same thread: it is, once that is done.

        Raises:
            UnsupportedCallError: if the other one is being answered: this one cannot wait for its answer.
        """
        __tracebackhide__ = True
        if self._turns.taken and self.action != "record":
            raise UnsupportedCallError(
                f"{describe(kind, name)} was called while stepfork answered another call: by a signal "
                "handler or a finaliser, at a place that is another one in every run; let it set a flag, "
                "and let the main program make the call"
            )
        return self._turns.taken

    def body_returned(self, body: Body) -> None:
        """A body that ran on replay has returned.

        Raises:
            ReplayMismatchError: if it left out calls that were recorded inside of it.
        """
        __tracebackhide__ = True
        with self._lock:
            self._check_latch()
            assert self._replayer is not None
            try:
                self._interrupts("tool", body.name)
                with self._turns:
                    self._replayer.body_returned(body)
            except StepforkError as fault:
                self._latched = fault
                raise

    def finish(self, ticket: Ticket, outcome: dict[str, Plain]) -> None:
        """A live call ended with this outcome."""
        with self._lock:
            self._turns.take(lambda: self._finish(ticket, outcome))

    def _finish(self, ticket: Ticket, outcome: dict[str, Plain]) -> None:
        player = self._recorder or self._replayer
        if player is None or not self.is_open:
            return
        usage = usage_of(outcome) if ticket.call.kind == "llm" else None
        if usage is not None:
            self.spending.answered(str(model_of(ticket.call.args) or ""), usage, self._prices)
        elif ticket.call.kind == "llm" and is_silent(outcome):
            self.spending.unstated += 1
        player.finish(ticket, outcome)

    def sending(self) -> None:
        """A live LLM call sends a request, the first or a retry."""
        with self._lock:
            self.spending.requests += 1

    def broken_off(self, ticket: Ticket, error: BaseException) -> None:
        """What ended a live call is meant to end the whole run; if it does not, that call is refused."""
        with self._lock:
            if self._recorder is not None:
                self._recorder.broken_off.append((ticket, type(error)))

    def refuse(
        self,
        kind: str,
        name: str,
        problem: Unsupported,
        *,
        line: Line | None = None,
        ticket: Ticket | None = None,
    ) -> None:
        """A value of a call has no plain form: while recording it goes on live, on replay it raises.

        Raises:
            ReplayMismatchError: on replay.
        """
        __tracebackhide__ = True
        with self._lock:
            self._check_latch()
            try:
                if self._interrupts(kind, name):
                    self._turns.take(lambda: self._refuse_live(kind, name, problem, ticket))
                    return
                with self._turns:
                    self._open()
                    if self._recorder is not None:
                        self._refuse_live(kind, name, problem, ticket)
                        return
                    self.redactor.redact(problem.beside)
                    assert self._replayer is not None
                    if ticket is not None:  # what a live answer holds need not fit into a cassette here
                        self._replayer.finish(ticket, {})
                        return
                    raise self._replayer.refuse(
                        kind, name, problem.path, problem.type, line or self.scope.main
                    ) from None
            except (StepforkError, PastRecording) as fault:
                self._latched = fault
                raise

    def _refuse_live(self, kind: str, name: str, problem: Unsupported, ticket: Ticket | None) -> None:
        if self._recorder is not None:
            self.redactor.redact(problem.beside)
            self._recorder.refuse(kind, name, problem)
            if ticket is not None:
                self._recorder.drop(ticket)

    def latch(self, fault: StepforkError) -> StepforkError:
        """Keeps a fault found outside `begin`, so that leaving the session raises it; gives it back."""
        with self._lock:
            if self._latched is None:
                self._latched = fault
            return fault

    def read_further(self, recorded: Recorded) -> StepforkError:
        """The agent reads more of a streamed answer than there was when it was recorded: a latched fault."""
        assert self._replayer is not None
        return self.latch(self._replayer.read_further(recorded))

    def unanswered(self, recorded: Recorded) -> StepforkError:
        """An answered call was cancelled or unfinished when it was recorded, and waits in vain: a fault."""
        assert self._replayer is not None
        return self.latch(self._replayer.unanswered(recorded))

    def unreadable(self, problem: BadValue, outcome: dict[str, Plain]) -> StepforkError:
        """What a recorded call came to cannot be rebuilt: a latched fault that names its place and call."""
        assert self._replayer is not None
        return self.latch(self._replayer.cassette.unreadable(problem, outcome))

    def compare(self, recorded: Recorded, place: str, expected: dict[str, Plain], actual: Plain) -> None:
        """What the agent gives to an answered call that goes on (a generator) must be what it gave it then.

        Raises:
            ReplayMismatchError: if it is not; the same again for every later call.
        """
        __tracebackhide__ = True
        with self._lock:
            self._check_latch()
            assert self._replayer is not None
            try:
                self._interrupts(recorded.call.kind, recorded.call.name)
                with self._turns:
                    self._replayer.compare(recorded, place, expected, actual)
            except StepforkError as fault:
                self._latched = fault
                raise

    def at_close(self, end: Callable[[], None]) -> None:
        """Has a call that is still open (a stream not read to its end) tell what it saw at the end."""
        self._pending.append(end)

    # -- what its strands say -----------------------------------------------------------------------

    def line_started(self, frame: Frame, *, inline: bool) -> Line:
        """A task, thread or work item is started there; the line that it is."""
        with self._lock:
            self.strands += 1
            self._on_strands(1)
            return frame.line.last() if inline else frame.line.fork()

    def line_ended(self, line: Line | None, *, cancelled: bool) -> None:
        """A strand has ended, and its line if it had one of its own."""
        with self._lock:
            self.strands -= 1
            self._on_strands(-1)
            if line is not None:
                line.end(cancelled=cancelled)
            alone = self._when_alone if not self.strands and not self.is_open else []
            self._when_alone = [] if alone else self._when_alone
        for action in alone:
            action()

    def line_joined(self, line: Line, by: Line) -> None:
        """The strand of a line saw that another, which it would have waited for, has ended."""
        with self._lock:
            if line.parent is by:
                line.join()

    def stranger(self, strand: Strand) -> Line:
        """The line of a strand that none of this session's has started."""
        with self._lock:
            line = self._strangers.get(strand)
            if line is None:
                line = self._strangers[strand] = self.scope.stranger()
                self._outside.append((ref(strand), line))
            return line

    def _end_strangers(self) -> None:
        """Ends the lines from outside whose task or thread has ended: nobody says so when they do."""
        for found, line in self._outside:
            strand = found()
            if strand is None or not strand.is_alive():
                line.end()

    def set_apart(self, strand: Strand) -> None:
        """What the strand does from now on is a line of its own: nobody waits for it any more."""
        with self._lock:
            frame = strand.frames[0]
            frame.line = frame.line.scope.stranger()

    def hand_over_no_more(self) -> None:
        """Strands that were started in it are late from now on: what they served has ended."""
        self.hands_over = False

    def report_strands(self, count: Callable[[int], None]) -> None:
        """Tells how many strands that were started in it go on, and from now on of each start and end."""
        with self._lock:
            count(self.strands)
            self._on_strands = count

    def when_alone(self, action: Callable[[], None]) -> None:
        """Does something once the session is closed and all strands that were started in it have ended."""
        with self._lock:
            if self.strands:
                self._when_alone.append(action)
                return
        action()

    def _check_latch(self) -> None:
        __tracebackhide__ = True
        if os.getpid() != self._pid:
            raise UnsupportedCallError(
                f"a call was made in a forked process while {self.path} is open in its parent; "
                "calls of child processes are not recorded or replayed"
            )
        if isinstance(self._latched, StepforkError):
            raise copy.copy(self._latched).with_traceback(None)
        if self._latched is not None:
            raise PastRecording

    def open(self) -> None:
        """Opens the file; done by the first call where nobody did it before.

        Raises:
            CassetteNotFoundError, CassetteError, ConfigError: if that is not possible.
        """
        __tracebackhide__ = True
        with self._lock, self._turns:
            self._open()

    def _open(self) -> None:
        __tracebackhide__ = True
        if self._recorder is not None or self._replayer is not None or self.action == "off":
            return
        settings = self.settings
        if self._price_file is not None and (self.action == "record" or self.goes_live):
            self._prices = read_prices(self._price_file)
        self._directories = self._find_directories(settings)
        if self.action == "record":
            self.action = self._before_recording(self)
        if self.action == "record":
            self._on_open(self, settings.tools, settings.exclude)
            check_tools("ignore", self.ignored.tools, None)
            self.redactor.spell_also(self._directories.normalise_text)
            self._recorder = Recorder(
                self._start_writing(), self.redactor, self.scope, self.classes, self._directories
            )
        else:
            stored = self._stored()
            new = tuple(item for item in stored.header.tools if item not in settings.tools)
            self._on_open(self, settings.tools + new, settings.exclude)
            check_tools("through", settings.through, stored)
            check_tools("ignore", self.ignored.tools, stored)
            hints = self._hints_for(stored)
            self._learn_env(stored.header.env)
            self._replayer = Replayer(
                stored,
                self.redactor,
                hints,
                settings.past_failure,
                self.scope,
                settings.through,
                settings.volatile(),
                self.ignored,
                self._directories,
                LiveAnswers(settings.goes_live(), self.redactor, self.classes),
            )

    def _learn_env(self, recorded: Mapping[str, str]) -> None:
        """Variables that held a secret when they were recorded hold one now."""
        for name, shown in recorded.items():
            now, whole = os.environ.get(name, ""), PLACEHOLDER.fullmatch(shown)
            if not now or MARK not in shown or MARK in now:
                continue
            if whole is not None and not self.redactor.is_secret_key(name):
                self.redactor.learn(now, whole[1])
            self.redactor.redact({name: now})

    def _hints_for(self, stored: StoredCassette) -> faults.Hints:
        """Who opened the session knows best how to record again; else the cassette does."""
        if self._hints is not None:
            return self._hints
        if stored.header.entrypoint is not None:
            return faults.Hints(record=faults.record_command(stored.header, faults.shown(self.path)))
        return faults.record_in_code(self.path)

    def _start_writing(self) -> Writer:
        header = frame.Header(
            name=self._name,
            entrypoint=self._recipe.entrypoint,
            tools=self.settings.tools,
            args=self._recipe.args,
            env=self._recipe.env or {},
            recorded_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        shown = frame.changed_header(
            redacted_header(header, self.redactor, raw=True), self._directories.normalise
        )
        try:
            return Writer(Path(self.file), shown, fsync=self.settings.fsync, rules=self.settings.volatile())
        except (ValueError, RecursionError) as bug:
            raise ConfigError(f"{self.path}: the header cannot be written: {cause(bug)}") from None

    def _stored(self) -> StoredCassette:
        __tracebackhide__ = True
        try:
            cassette = StoredCassette(self.path, classes=self.classes, directories=self._directories)
        except FileNotFoundError:
            hints = self._hints or faults.record_in_code(self.path)
            raise faults.not_found(self.path, hints, self._similar(self.path)) from None
        if self.settings.integrity == "error":
            cassette.refuse_changed()
        if self.settings.integrity != "off":
            for sentence in cassette.warnings:
                warnings.warn(sentence, stacklevel=2)
        return cassette

    # -- the end ------------------------------------------------------------------------------------

    def close(self, error: BaseException | None = None, ending: Ending = "run") -> bool:
        """Ends the session after a block that returned, or that `error` left.

        Gives True if `error` is settled by it (a run that went past a recorded failure). `ending` says
        what the error means: the end of the recorded ``run``, the verdict of a ``test``, a block that was
        ``skipped`` halfway on purpose (what was recorded is kept, nothing is left over), or one that was
        ``abandoned`` before it began (nothing is kept).

        Raises:
            ReplayMismatchError: a mismatch, even if the agent caught it, or left-over calls.
            ConfigError: if `live` names no call that was made or recorded.
            RecordingError: if a value could not be recorded and the block did not fail itself.
            CassetteError: if the recording cannot be written.
        """
        with self._lock:
            if not self.is_open:
                return False
            if os.getpid() != self._pid:  # a forked child: the file is its parent's
                self.is_open = False
                if self._recorder is not None:
                    self._recorder.release()
                return False
            for end in self._pending:
                try:
                    end()
                except Exception as bug:
                    if self._recorder is None:
                        raise
                    self._recorder.miss(bug)
            judged = ending in ("run", "test")
            if judged and not self.touched and self.action == "replay" and os.path.exists(self.path):
                self.open()  # nothing was called, though something is recorded: all of it is left over
            self.is_open = False
            if self._recorder is not None:
                if ending == "abandoned":
                    self._recorder.discard()
                else:
                    self._close_recording(self._recorder, error, ending)
                return False
            if isinstance(self._latched, PastRecording):
                self.went_past = True
                return _only_past(error)
            if self._latched is not None:
                self._raise_latched(self._latched, None if ending == "skipped" else error)
                return False
            if self._replayer is not None and judged:
                self._check_left_over(self._replayer, error)
                if self.settings.live and self._live_is_for_it and (error is None or _is_clean_exit(error)):
                    self._check_live(error)
            return False

    def _raise_latched(self, latched: StepforkError, error: BaseException | None) -> None:
        if _contains(error, latched):
            return
        if error is not None and not isinstance(error, Exception | SystemExit):
            error.add_note(str(latched))  # KeyboardInterrupt and its kind end the run, whatever else there is
            return
        raise copy.copy(latched).with_traceback(None) from error

    def _check_left_over(self, replayer: Replayer, error: BaseException | None) -> None:
        self._end_strangers()
        left = replayer.left_over()
        running = replayer.still_running()
        if running:
            note = replayer.running_note(running)
            if error is not None:
                error.add_note(note)
            self.note = note
        if not left:
            return
        if error is None or _is_clean_exit(error):
            fault = replayer.left_over_error(left)
            self._latched = fault
            raise fault from error
        error.add_note(replayer.left_over_note(left))

    def _check_live(self, error: BaseException | None) -> None:
        if idle := self.idle_selectors:
            self._latched = ConfigError(next(iter(idle.values())))
            raise self._latched from error

    def _close_recording(self, recorder: Recorder, error: BaseException | None, ending: Ending) -> None:
        fault: StepforkError | None
        try:
            fault = self._end_recording(recorder, error, ending)
        except StepforkError as found:
            fault = found
        except Exception as bug:
            said = self.redactor.redact_text(cause(bug))
            fault = RecordingError(f"{self.path}: the recording cannot be ended: {said}{recorder.release()}")
        finally:
            recorder.release()
        if fault is None or _contains(error, fault):
            return
        self._latched = fault
        if error is None or _is_clean_exit(error):
            raise fault from error
        error.add_note(f"the recording failed: {fault}")

    def _end_recording(
        self, recorder: Recorder, error: BaseException | None, ending: Ending
    ) -> StepforkError | None:
        """Writes the end; gives what kept the recording from being whole."""
        if ending in ("run", "test"):
            recorder.refuse_broken_off(error)
        ended_by = None if ending != "run" or _is_clean_exit(error) else error
        faults_found = [*recorder.refused, *([self.fault] if self.fault is not None else [])]
        failed = ended_by is not None or bool(faults_found)
        has_output = self._output is not _NO_OUTPUT
        if ended_by is None and faults_found:
            ended_by = faults_found[0]
        end = end_of(
            ended_by, self._output if has_output else None, has_output, self.redactor, failed, self.classes
        )
        if ending == "test" and error is not None and not failed:
            end = frame.End("completed", "failed", end.output, end.has_output, end.error)
        self.written = recorder.close(frame.changed_end(end, self._directories.normalise))
        self._warn_of_name(self.written.path)
        if warning := recorder.ambiguous():
            warnings.warn(f"{self.path}: {warning}", RuntimeWarning, stacklevel=2)
        return faults_found[0] if faults_found else None

    def _warn_of_name(self, path: Path) -> None:
        """A name is given before the run shows what is a secret."""
        shown = str(path)
        with suppress(Exception):  # the recording stands, whatever goes wrong here
            shown = self.redactor.redact_text(shown)
        if shown != str(path):
            warnings.warn(
                f"{shown}: the name of this file holds a secret of the run; give the cassette (or the "
                "parameter of the test: pytest.param(..., id='a-name')) another name and delete this file",
                RuntimeWarning,
                stacklevel=2,
            )


def _is_clean_exit(error: BaseException | None) -> bool:
    """Whether it is the end of a program that says all went well."""
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _contains(error: BaseException | None, latched: StepforkError) -> bool:
    """Whether an error is the latched one (or a repetition of it), alone or inside a group."""
    if isinstance(error, BaseExceptionGroup):
        return any(_contains(inner, latched) for inner in error.exceptions)
    return type(error) is type(latched) and str(error) == str(latched)


def _only_past(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_only_past(inner) for inner in error.exceptions)
    if isinstance(error, SystemExit):  # an agent that turns whatever ends it into an exit code
        return _only_past(error.__context__)
    return isinstance(error, PastRecording)
