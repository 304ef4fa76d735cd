"""Writes what a live run does: start order, nesting, unfinished calls. Knows no SDK and answers nothing."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from stepfork.cassette import emitter, frame, reader, schema
from stepfork.cassette.bases import REACH, Asked, ask
from stepfork.cassette.exceptions import class_name, encode_exception, text_of
from stepfork.cassette.partial import sort_key
from stepfork.cassette.public import call_tree
from stepfork.cassette.shared import large_values
from stepfork.cassette.values import TAGS, ClassPolicy, Unsupported
from stepfork.cassette.writer import Writer, Written
from stepfork.core.canonical import canonical_text, digest
from stepfork.core.directories import AS_THEY_STAND, Directories
from stepfork.core.lanes import Mark
from stepfork.core.layout import ambiguous, layout
from stepfork.core.lines import Line, Scope
from stepfork.core.model import Call, Incoming, Plain, Recorded, describe
from stepfork.core.redaction import Redactor
from stepfork.errors import RecordingError
from stepfork.session.final import (
    final_documents,
    may_hide_pieces,
    question_of,
    redacted_fields,
    redacted_header,
    redacted_outcome,
    told_value,
)
from stepfork.session.ticket import Ticket

_DROPPED: Final = ""
"""The text of a call that is not recorded."""
_ARGUMENT: Final = re.compile(r"argument '(\w+)'")


class Recorder:
    """One recording in progress."""

    def __init__(
        self,
        writer: Writer,
        redactor: Redactor,
        scope: Scope,
        classes: ClassPolicy,
        directories: Directories = AS_THEY_STAND,
    ) -> None:
        self._writer = writer
        self._classes = classes
        self._redactor = redactor
        self._directories = directories
        self._scope = scope
        self._lines: dict[Line, int] = {}  # their numbers in the file while it grows
        self._told: set[Line] = set()  # those of which the file says who started them
        self._tickets: list[Ticket] = []
        self._written = 0
        self._asked: dict[Line, deque[Asked]] = {}  # what each line asked last, as the file has it
        self.refused: list[RecordingError] = []
        self.broken_off: list[tuple[Ticket, type[BaseException]]] = []
        self.bodies = 0

    def begin(self, ticket: Ticket) -> None:
        """A call starts: its question is taken down before anything can change it."""
        call, ticket.call = ticket.call, Incoming(ticket.call.kind, ticket.call.name, {})
        ticket.start = len(self._tickets)
        try:
            ticket.call = self._redacted(call)
        except Exception as bug:
            self._fail(ticket, bug)
        ticket.found = self._redactor.count
        ticket.line.add(ticket)
        self._tickets.append(ticket)
        if ticket.parent is None and call.kind == "tool":
            self.bodies += 1

    def _redacted(self, call: Incoming) -> Incoming:
        target = redacted_fields(call.target, self._redactor, raw=True)
        args = self._directories.normalise(self._redactor.redact(call.args, raw=True))
        return Incoming(call.kind, call.name, args, target)

    def finish(self, ticket: Ticket, outcome: dict[str, Plain]) -> None:
        """The call ended; it is on disk when this returns, unless the disk is full (`Writer.append`)."""
        if ticket.text == _DROPPED:
            return
        try:
            text = self._write_down(ticket, outcome)
        except Exception as bug:
            self._fail(ticket, bug)
            return
        with contextlib.suppress(OSError):  # it waits; if the disk is still full at the end, that is an error
            self._writer.append(text)

    def _write_down(self, ticket: Ticket, outcome: dict[str, Plain]) -> str:
        """The document of a call as the growing file has it; nothing is noted down before it is made."""
        with self._redactor.answering():
            redacted = redacted_outcome(ticket.call.kind, outcome, self._redactor, self._directories)
        if ticket.call.kind == "tool":  # a model's answer has constants of its own
            self._redactor.hear(list(redacted.values()))
        shown = self._directories.normalise(redacted)
        assert isinstance(shown, dict)
        asked = self._ask(ticket)
        call = ticket.call
        if asked is not None and asked.request is not None:
            call = replace(call, args=asked.request)
        recorded = Recorded(call, shown, ticket.depth)
        extension = None if asked is None else asked.extension
        in_pieces = may_hide_pieces(shown.get("stream"))
        document = schema.call_document(recorded, extension)
        text = emitter.emit_document(document)
        large = large_values(document, text)
        place = self._place(ticket)
        before = "" if place is None else emitter.emit_document(schema.place_fields(place))
        ticket.call, ticket.asked, ticket.text, ticket.large = call, asked, text, large
        ticket.in_pieces = in_pieces
        self._written += 1
        if asked is not None:
            self._asked[ticket.line].appendleft(asked)
        return before + text

    def _ask(self, ticket: Ticket) -> Asked | None:
        """Tells the question of an LLM call by one of its line that is in the file already."""
        if ticket.call.kind != "llm":
            return None
        return ask(ticket.call.args, self._asked.setdefault(ticket.line, deque(maxlen=REACH)))

    def _place(self, ticket: Ticket) -> schema.Place | None:
        """What the file has to say while it grows; nothing where the order of the calls says it all."""
        line, parent = ticket.line, ticket.parent
        main = line is line.scope.main
        if parent is None and main and ticket.start == self._written:
            return None
        told: list[schema.Started] = []
        step = line
        while step is not step.scope.main and step not in self._told:
            self._told.add(step)
            above = step.parent
            if above is None:
                told.append(schema.Started(self._number(step), -1, 0, 0))
                break
            starter = None if above is above.scope.main else self._number(above)
            ended = tuple(map(self._number, step.after))
            told.append(schema.Started(self._number(step), starter, *step.born, ended))
            step = above
        start = None if parent is None else parent.start
        return schema.Place(ticket.start, start, None if main else self._number(line), tuple(reversed(told)))

    def _number(self, line: Line) -> int:
        return self._lines.setdefault(line, len(self._lines))

    def refuse(self, kind: str, name: str, problem: Unsupported) -> None:
        """A value of this call has no plain form. The live run goes on; the recording has failed."""
        call = describe(kind, name)
        hint = (
            "register a codec for it (stepfork.codecs), let the tool take and return plain values, "
            "or leave it out with 'exclude'"
        )
        argument = _ARGUMENT.match(problem.path) if kind == "tool" else None
        if argument is not None:
            hint = (
                "register a codec for it (stepfork.codecs), pass a plain value, leave the argument out with "
                f"ignore = ['{name}:{argument[1]}'], or the tool with 'exclude'"
            )
        if problem.hint:
            hint = f"{problem.hint}, or leave the tool out with 'exclude'"
        elif problem.path.startswith("error"):
            hint = (
                "let it raise an exception that its args rebuild, register a codec for what it holds "
                "(stepfork.codecs), or leave it out with 'exclude'"
            )
        elif problem.type in ("generator", "async_generator"):
            hint = "let the tool itself be the generator, or let it return a list"
        elif kind == "llm":
            hint = "pass a body that can be read more than once"
        text = self._redactor.redact_text
        self.refused.append(
            RecordingError(
                text(f"{call} cannot be recorded: {described(problem)}; {hint}"),
                call=call,
                path=text(problem.path),
                type=problem.type,
            )
        )

    def refuse_broken_off(self, error: BaseException | None) -> None:
        """Refuses the calls that an interruption ended, where it did not end the run: replay cannot do so."""
        ended_by = set(_kinds_in(error))
        for ticket, kind in self.broken_off:
            if kind not in ended_by:
                call = describe(ticket.call.kind, ticket.call.name)
                self.refused.append(
                    RecordingError(
                        f"{call} cannot be recorded: it was broken off by {kind.__name__}, and the run "
                        "went on; let the run end there, or leave the tool out with 'exclude'",
                        call=call,
                        type=kind.__name__,
                    )
                )

    def drop(self, ticket: Ticket) -> None:
        """The call ended in a way that has no plain form: it is not recorded."""
        ticket.text = _DROPPED

    def _fail(self, ticket: Ticket, bug: Exception) -> None:
        """Something that nobody foresaw kept a call from being written. The live run goes on."""
        self.drop(ticket)
        call = describe(ticket.call.kind, ticket.call.name)
        why, mend = self._redactor.redact_text(cause(bug)), "let it take and return less"
        if not isinstance(bug, ValueError | RecursionError | MemoryError):
            why = f"{type(bug).__name__} was raised while it was written down ({why})"
            mend = "if a signal handler raised it, let it not do so in the middle of a call"
        self.refused.append(
            RecordingError(
                f"{call} cannot be recorded: {why}; {mend}, or leave it out with 'exclude'",
                call=call,
                type=type(bug).__name__,
            )
        )

    def miss(self, bug: Exception) -> None:
        """What a call that was still open saw at the end could not be taken down."""
        said = self._redactor.redact_text(cause(bug))
        self.refused.append(
            RecordingError(f"the end of a call that was still open cannot be recorded: {said}")
        )

    def close(self, end: frame.End) -> Written:
        """Ends the recording; gives where it went.

        Raises:
            CassetteError: if the file cannot be written.
        """
        asked = chain((end.output,), (question_of(ticket) for ticket in self._tickets))
        told = self._redactor.told_in_clear(asked)
        documents = final_documents(self._in_order(self._scope), self._redactor, told)
        header = redacted_header(self._writer.header, self._redactor)
        end = frame.changed_end(end, lambda value: told_value(value, told))
        return self._writer.finish(header, documents, end)

    def release(self) -> str:
        """Lets go of the file if the recording could not be ended; says where what was recorded is."""
        left = self._writer.left()
        self._writer.release()
        return left

    def ambiguous(self) -> str:
        """What to warn of: equal calls made at the same time with different answers; "" if there are none."""
        pairs = list(ambiguous(self._scope, lambda ticket: sort_key(ticket.call), _answer_of))
        if not pairs:
            return ""
        first, _ = pairs[0]
        more = f" (and {len(pairs) - 1} more)" if len(pairs) > 1 else ""
        return (
            f"{describe(first.call.kind, first.call.name)} was called at the same time with equal arguments "
            f"and gave different answers{more}; on replay the order in which tasks and threads start says "
            "which answer is whose"
        )

    def discard(self) -> None:
        """Nothing was recorded: no file is left."""
        self._writer.discard()

    def calls(self) -> list[Call]:
        """The calls recorded so far, with their children."""
        recorded = []
        for ticket in self._tickets:
            if ticket.text:
                document = schema.read_call(reader.parse_document(ticket.text, known_tags=TAGS))
                told = replace(document, recorded=replace(document.recorded, call=ticket.call))
                recorded.append(schema.restored(told, self._directories.restore).recorded)
        return list(call_tree(recorded, self._classes))

    def asked(self) -> list[str]:
        """A digest of each top-level call that was recorded; sorted, for parallel calls have no order."""
        tickets = [ticket for ticket in self._tickets if ticket.parent is None and ticket.text]
        calls = [ticket.call for ticket in tickets]
        return sorted(digest([call.kind, call.name, call.args]) for call in calls)

    @property
    def recorded(self) -> int:
        """How many top-level calls were recorded."""
        return sum(1 for ticket in self._tickets if ticket.parent is None and ticket.text)

    @property
    def live(self) -> int:
        """How many top-level calls were really made."""
        return sum(1 for ticket in self._tickets if ticket.parent is None)

    def _in_order(self, scope: Scope) -> Iterator[tuple[Ticket, Mark | None]]:
        """The calls of a scope in their final order, each before those made inside of it."""
        rows = layout(scope, lambda ticket: sort_key(ticket.call), lambda ticket: ticket.text != _DROPPED)
        for ticket, mark in rows:
            yield ticket, mark
            if ticket.scope.in_use:
                yield from self._in_order(ticket.scope)

    def _is_replaced(self, text: str) -> bool:
        return self._directories.normalise_text(self._redactor.redact_text(text)) != text


def _kinds_in(error: BaseException | None) -> Iterator[type[BaseException]]:
    """The classes of an error, of those in a group, and of those it came from."""
    waiting, met = [error], set[int]()
    while waiting:
        step = waiting.pop()
        if step is not None and id(step) not in met:
            met.add(id(step))
            yield type(step)
            inner = step.exceptions if isinstance(step, BaseExceptionGroup) else ()
            waiting += [step.__cause__, step.__context__, *inner]


def cause(bug: Exception) -> str:
    """What kept something from being written, in one clause.

    >>> cause(ValueError("the value is nested deeper than 200 levels")), cause(RecursionError())
    ('the value is nested deeper than 200 levels', 'the value is nested too deep')
    """
    if isinstance(bug, RecursionError):
        return "the value is nested too deep"
    return " ".join(text_of(bug).split()) or type(bug).__name__


def _answer_of(ticket: Ticket) -> str:
    """How a call ended, without the ids and times that differ anyway."""
    if not ticket.text:
        return ""
    outcome = schema.read_call(reader.parse_document(ticket.text, known_tags=TAGS)).recorded.outcome
    response = outcome.get("response")
    if isinstance(response, dict):
        said: Plain = {key: response[key] for key in ("choices", "output", "data") if key in response}
        outcome = {**outcome, "response": said or response, "headers": None}
    streamed = outcome.get("stream")
    if isinstance(streamed, dict):
        outcome = {**outcome, "stream": {**streamed, "wire": None}, "headers": None}
    return canonical_text(outcome)


def described(problem: Unsupported) -> str:
    """Where a value stands that has no plain form, what it is, and why it has none."""
    return f"{problem.path} is of type {problem.type}{' ' + problem.why if problem.why else ''}"


def end_of(
    error: BaseException | None,
    output: Plain,
    has_output: bool,
    redactor: Redactor,
    failed: bool,
    classes: ClassPolicy,
) -> frame.End:
    """The end document of a run that returned, or was ended by `error`."""
    form: dict[str, Plain] | None = None
    if error is not None:
        try:
            form = encode_exception(error, classes=classes)
        except Unsupported:
            form = {"class": class_name(type(error)), "args": [text_of(error)] if text_of(error) else []}
        redacted = redactor.redact(form, raw=True)
        assert isinstance(redacted, dict)
        form = redacted
    return frame.End(
        status="failed" if failed else "completed",
        output=redactor.redact(output, raw=True) if has_output else None,
        has_output=has_output,
        error=form,
    )
