"""A cassette that is opened for reading: lazily parsed documents, proven or refused. Writes nothing.

The text is split without being parsed; a call's document is parsed once, when it is reached. A file
whose checksum is absent or wrong is validated as a whole before anything of it is used.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn

from stepfork.cassette import frame, integrity, question, reader, schema
from stepfork.cassette.documents import Documents
from stepfork.cassette.fields import Fault
from stepfork.cassette.partial import Partial, bases, sort_key
from stepfork.cassette.placed import check_at, decode_at, field_of, look_at
from stepfork.cassette.public import call_tree
from stepfork.cassette.values import IMPORTED, BadValue, ClassPolicy
from stepfork.core.directories import AS_THEY_STAND, Directories
from stepfork.core.lanes import BadMark, Lanes, Mark, assemble
from stepfork.core.model import Call, Plain, Recorded, Status, Trajectory, describe
from stepfork.core.placeholder_texts import IN_BASE64, MARK, unescaped_value
from stepfork.errors import CassetteError

_PARTIAL: Final = re.compile(r"\.partial(\.\d+)?\.yaml\Z")
_MARKS: Final = tuple(word.encode() for word in (MARK, *IN_BASE64))
"""What stands of any placeholder in a document: as it is, or in base64, as bytes are."""
_MEND: Final = "restore it from version control, or delete it and record again"


class StoredCassette:
    """The calls of one cassette file, by position in the file.

    Attributes:
        path: the file.
        header, end: its first and last document; `end` is None for a recording that was cut off.
        verdict: what the checksum says: ``"ok"``, ``"absent"`` or ``"differs"``.
        warnings: sentences for the user about what is odd but not wrong.
        slices: its documents, not parsed.
        tops: positions of the calls that were made inside no other call.
    """

    def __init__(
        self,
        path: Path,
        *,
        text: str | None = None,
        classes: ClassPolicy = IMPORTED,
        directories: Directories = AS_THEY_STAND,
    ) -> None:
        """Opens the file and checks it; `classes` says what may be made of the classes it names.

        `directories` are put in place of their names; without them all reads as it stands in the file.

        Raises:
            FileNotFoundError: if there is none.
            CassetteError: if it cannot be read or trusted as it is.
        """
        self.path = path
        self._classes = classes
        self.warnings: list[str] = []
        self._marks: dict[int, Mark | None] = {}  # of the calls of a partial file
        self._may_be_torn = _PARTIAL.search(path.name) is not None
        text = reader.read_text(path, torn=self._may_be_torn) if text is None else text
        if not text.strip():
            self._fail("the file is empty, so it is no cassette", 1)
        self.slices = reader.split(text)
        self._directories = directories
        self._documents = Documents(path, self.slices, directories)
        self._places: Sequence[int] = range(1, len(self.slices))  # of the calls, among the slices
        self.header = self._read_header()
        self.verdict, self.end = self._read_end(text)
        self._documents.trusted = self.verdict == "ok"
        self.tops = self._tops()
        if self.end is not None and self.verdict != "ok":
            what = "has no checksum" if self.verdict == "absent" else "was changed since it was recorded"
            for problem in self.problems():
                raise problem
            self.warnings.append(
                f"{path}: the cassette {what}; it reads well and is replayed as it is; "
                f"once the change is reviewed: {integrity.SEAL} {path}"
            )

    def __len__(self) -> int:
        return len(self._places)

    @property
    def status(self) -> Status:
        """How the recorded run ended: ``completed``, ``failed`` or ``partial``."""
        return "partial" if self.end is None else self.end.status

    @property
    def interrupted(self) -> bool:
        """Whether the run was cut off from outside, so that nothing in it cancels what was cancelled then."""
        error = None if self.end is None else self.end.error
        return self.end is None or (error is not None and error.get("class") == "builtins:KeyboardInterrupt")

    @property
    def failed(self) -> bool:
        """Whether the recording may not replace a good one: its run or its test failed, or it was cut off."""
        return self.end is None or self.end.status == "failed" or self.end.test == "failed"

    def refuse_changed(self) -> None:
        """What opening it means under ``integrity = "error"``.

        Raises:
            CassetteError: if the file does not fit its checksum, or has none. A partial file has none yet.
        """
        if self.end is not None and self.verdict != "ok":
            what = "has no checksum" if self.verdict == "absent" else "does not fit its checksum"
            raise CassetteError(
                f"{what}, and integrity is 'error'; restore the file, record again, or review the change "
                f"and seal it: {integrity.SEAL} {self.path}",
                file=self.path,
            )

    def recorded(self, at: int) -> Recorded:
        """The call at a position; parsed the first time, kept from then on. It is not to be changed.

        Raises:
            CassetteError: if its document, or one that it refers to, does not fit, with line and field.
        """
        self._check_depth(at)
        found = self._documents.recorded(self._places[at])
        return found if at not in self._marks else replace(found, mark=self._marks[at])

    def _check_depth(self, at: int) -> None:
        """Whether a call stands inside of the one before it, or of one around that."""
        place = self._places[at]
        depth = self._documents.own(place).recorded.depth
        try:
            if depth:
                _check_enclosed(
                    depth, self._documents.own(self._places[at - 1]).recorded.depth + 1 if at else 0
                )
            if self.verdict == "ok" and self.slices.begins(place, "depth:") != (depth > 0):
                raise Fault("depth", f"it stands before all other fields, and not where it is 0; {_MEND}")
        except Fault as fault:
            raise self._documents.located(fault, place) from None

    def _own(self, at: int) -> Recorded:
        """The same where only its place, its mark and its kind are asked for."""
        found = self._documents.own(self._places[at]).recorded
        return found if at not in self._marks else replace(found, mark=self._marks[at])

    def holds_secrets(self, at: int) -> bool:
        """Whether the call at a position may hold a placeholder of a secret."""
        may_hold, place = self._documents.may_hold, self._places[at]
        return self._any_secrets and any(may_hold(place, word) for word in _MARKS)

    def shows_secrets(self, at: int) -> bool:
        """Whether the call at a position may hold one in what it says itself, in bytes and base64 too."""
        return any(self.slices.has(self._places[at], word) for word in (b"!shared", *_MARKS))

    def may_look_secret(self, at: int) -> bool:
        """Whether the call at a position may hold a text that looks like a placeholder and is none."""
        has, place = self.slices.has, self._places[at]
        return has(place, b"=secret:") or has(place, b"!shared") or has(place, b"!byte")

    def told(self, at: int) -> dict[str, Plain]:
        """What the call at a position asks, as its document tells it: in full, or by the call it extends."""
        document = self._documents.own(self._places[at])
        call = document.recorded.call
        return {"args": call.args} if call.kind == "tool" else question.told(call.args, document.extension)

    def said(self, at: int) -> tuple[Plain, Plain]:
        """What the call at a position asks and is answered, without what it has from the call it extends."""
        document = self._documents.own(self._places[at])
        recorded, extension = document.recorded, document.extension
        asked: Plain = recorded.call.args
        if extension is not None:
            asked = [extension.changed, dict(extension.append)]
        steps = recorded.outcome.get("steps")
        given: list[Plain] = []  # what the program gave a generator on its way
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, dict):
                given += [step.get("sent"), step.get("thrown")]
        answered = {
            field: value for field, value in recorded.outcome.items() if field != "steps" or not given
        }
        return [recorded.call.target, asked, *given], answered

    @cached_property
    def _any_secrets(self) -> bool:
        return any(self.slices.has(place, word) for place in self._places for word in _MARKS)

    def inside(self, at: int) -> list[int]:
        """The positions of the calls that were made directly inside the one at a position."""
        found: list[int] = []
        depth = self._own(at).depth + 1
        for inner in range(at + 1, len(self)):
            here = self._own(inner).depth
            if here < depth:
                break
            if here == depth:
                found.append(inner)
        return found

    def llm_calls_inside(self, number: int) -> int:
        """How many LLM calls were made inside the top-level call of that number (from 0), at any depth."""
        first = self.tops[number] + 1
        last = self.tops[number + 1] if number + 1 < len(self.tops) else len(self)
        return sum(self.slices.has(self._places[at], b"\nllm: ") for at in range(first, last))

    def lanes(self, calls: Sequence[int]) -> Lanes:
        """The lanes that made these calls (of the run, or inside one call); calls go by their numbers.

        Only calls that say something of a lane are parsed.

        Raises:
            CassetteError: if what they say of lanes makes no sense.
        """
        marks = (
            (number, self._own(at).mark if self._may_have_lane(at) else None)
            for number, at in enumerate(calls)
        )
        try:
            return assemble(marks)
        except BadMark as bad:
            place = self._places[calls[bad.at]]
            raise self._documents.located(Fault(bad.field, f"{bad.problem}; {_MEND}"), place) from None

    def _may_have_lane(self, at: int) -> bool:
        trusted = self.verdict == "ok"  # written by us: a lane stands on a line of its own
        return not trusted or self.slices.has(self._places[at], b"\nlane: ")

    def call(self, number: int) -> Call:
        """The top-level call of that number (from 0) with its children, as users see it."""
        first = self.tops[number]
        last = self.tops[number + 1] if number + 1 < len(self.tops) else len(self)
        return self._tree(first, last)[0]

    def _tree(self, first: int, last: int) -> tuple[Call, ...]:
        """The calls at these positions as users see them."""

        def located(fault: Fault, at: int) -> CassetteError:
            return self._documents.located(fault, self._places[first + at])

        return call_tree([self.recorded(at) for at in range(first, last)], self._classes, located)

    def entrypoint_args(self) -> Any:
        """The arguments that the entrypoint was recorded with.

        Raises:
            CassetteError: if they cannot be rebuilt.
        """
        try:
            return decode_at("args", self.header.args, self._classes)
        except Fault as fault:
            problem = fault.problem if "record again" in fault.problem else f"{fault.problem}; {_MEND}"
            raise self._documents.located(Fault(fault.field, problem), 0) from None

    def unreadable(self, problem: BadValue, outcome: dict[str, Plain]) -> CassetteError:
        """The error for what a call came to (or its stream) that cannot be rebuilt."""
        said = str(problem)
        if not any(way in said for way in ("record again", "allow_classes", "codecs")):
            said = f"{said}; {_MEND}"
        for at in range(len(self)):
            recorded = self.recorded(at)
            if outcome is recorded.outcome or outcome is recorded.outcome.get("stream"):
                number = bisect_right(self.tops, at)
                what = describe(recorded.call.kind, recorded.call.name)
                field = field_of(problem, recorded.outcome, self._classes)
                fault = Fault(field, f"call #{number}, {what}: {said}")
                return self._documents.located(fault, self._places[at])
        return CassetteError(said, file=self.path)

    def all_recorded(self) -> list[Recorded]:
        """Every call in file order."""
        return [self.recorded(at) for at in range(len(self))]

    def problems(self) -> Iterator[CassetteError]:
        """Every fault of every document, found by reading all of them, values included."""
        deepest = 0  # how deep the next call may be
        sound = True
        for place in self._places:
            try:
                own = self._documents.own(place)
                recorded = own.recorded
                _check_values(own)
                _check_enclosed(recorded.depth, deepest)
                deepest = recorded.depth + 1
                self._documents.recorded(place)
            except CassetteError as problem:
                sound = False
                yield problem
            except Fault as fault:
                sound = False
                yield self._documents.located(fault, place)
        around: list[tuple[int, str, Plain]] = [(0, "args", self.header.args)]
        if self.end is not None:
            last = len(self.slices) - 1
            around += [(last, "output", self.end.output), (last, "error", self.end.error)]
        for place, field, value in around:
            try:
                check_at(field, value)
            except Fault as fault:
                yield self._documents.located(fault, place)
        if sound:
            yield from self._lane_problems()

    def _lane_problems(self) -> Iterator[CassetteError]:
        """Marks that make no sense, in the run and inside each call."""
        scopes: list[list[int]] = [[]]
        ended: list[list[int]] = []
        for at in range(len(self)):
            depth = self._own(at).depth
            ended += scopes[depth + 1 :]
            del scopes[depth + 1 :]
            scopes[depth].append(at)
            scopes.append([])
        for calls in (*ended, *scopes):
            try:
                self.lanes(calls)
            except CassetteError as problem:
                yield problem

    def trajectory(self) -> Trajectory:
        """All of it as a read-only trajectory of Python values.

        Raises:
            CassetteError: if any document does not fit.
        """
        for problem in self.problems():
            raise problem
        end = self.end
        try:
            output = look_at("output", end.output, self._classes) if end is not None else None
            error = look_at("error", end.error, self._classes) if end is not None else None
        except Fault as fault:
            raise self._documents.located(fault, len(self.slices) - 1) from None
        return Trajectory(
            name=self.header.name,
            status=self.status,
            output=output,
            error=error,
            calls=self._tree(0, len(self)),
            header=frame.header_document(self.header),
        )

    # -- reading ------------------------------------------------------------------------------------

    def _read_header(self) -> frame.Header:
        try:
            header = frame.read_header(self._documents.parse(0))
            return frame.changed_header(
                header, lambda value: unescaped_value(self._directories.restore(value))
            )
        except Fault as fault:
            problem = fault.problem
            if not isinstance(fault, frame.UnknownVersion) and fault.field == "stepfork":
                problem = f"{problem}; {_MEND}"
            raise self._documents.located(Fault(fault.field, problem), 0) from None

    def _read_end(self, text: str) -> tuple[integrity.Verdict, frame.End | None]:
        last = len(self.slices) - 1
        if last > 0 and (self.slices.begins(last, "end:") or self._is_end(last)):
            self._places = range(1, last)
            verdict = integrity.verify(text)
            if self._may_be_torn and verdict != "ok":  # killed while it wrote the end
                self.warnings.append(f"{self.path}: the end was cut off while it was written; it is left out")
                return "absent", None
            try:
                end = frame.read_end(self._documents.parse(last))
                return verdict, frame.changed_end(end, self._directories.restore)
            except Fault as fault:
                raise self._documents.located(fault, last) from None
        if not self._may_be_torn:
            self._fail(
                f"the end document is missing, so the file was cut off; {_MEND}", self.slices.line(last)
            )
        # while recording, every whole document is followed by its separator: what has none is torn
        self._places = range(1, last)
        if last > 0 and self.slices.text(last).strip():
            self.warnings.append(
                f"{self.path}: the last call was cut off while it was written; it is left out"
            )
        return "absent", None

    def _is_end(self, place: int) -> bool:
        try:
            return "end" in self._documents.parse(place)
        except CassetteError:
            return False

    def _tops(self) -> list[int]:
        if self.end is None:
            self._places = self._in_order_of_start()
            return [at for at in range(len(self)) if self._own(at).depth == 0]
        if self.verdict == "ok":  # written by us: depth is the first field where it is there at all
            return [at for at, place in enumerate(self._places) if not self.slices.begins(place, "depth:")]
        return [at for at in range(len(self)) if self._own(at).depth == 0]

    def _in_order_of_start(self) -> list[int]:
        """The places of a partial file, which is in order of completion, as a finished one has them."""
        places = self._places
        documents = [self._documents.own(place) for place in places]
        self._documents.bases = {places[at]: places[base] for at, base in bases(documents).items()}
        calls = [(found.recorded, found.place or schema.Place(at)) for at, found in enumerate(documents)]
        partial = Partial(calls, lambda at: sort_key(self._documents.recorded(places[at]).call))
        ordered = partial.ordered()
        if lost := len(calls) - len(ordered):
            self.warnings.append(f"{self.path}: {lost} call(s) inside a call that never ended are left out")
        self._marks = {number: recorded.mark for number, (_, recorded) in enumerate(ordered)}
        return [places[at] for at, _ in ordered]

    def _fail(self, problem: str, line: int) -> NoReturn:
        raise CassetteError(problem if _MEND in problem else f"{problem}; {_MEND}", file=self.path, line=line)


def _check_enclosed(depth: int, deepest: int) -> None:
    if depth > deepest:
        raise Fault("depth", f"at most {deepest} here: no call before it encloses this one")


def _check_values(document: schema.Document) -> None:
    recorded, extension = document.recorded, document.extension
    if extension is None:
        check_at("args" if recorded.call.kind == "tool" else "request", recorded.call.args)
    else:
        check_at("request", extension.changed)
        check_at("append", dict(extension.append))
    for field, value in recorded.outcome.items():
        check_at(field, value)
