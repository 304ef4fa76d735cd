"""A cassette that is opened for reading: lazily parsed documents, proven or refused. Writes nothing.

The text is split without being parsed; a call's document is parsed once, when it is reached. A file
whose checksum is absent or wrong is validated as a whole before anything of it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from stepfork.cassette import integrity, reader, schema
from stepfork.cassette.exceptions import decode_exception
from stepfork.cassette.values import TAGS, BadValue, decode
from stepfork.core.model import Call, Plain, Recorded, Status, Tagged, Trajectory
from stepfork.errors import CassetteError

_PARTIAL: Final = re.compile(r"\.partial(\.\d+)?\.yaml\Z")
_MEND: Final = "restore it from version control, or delete it and record again"


class StoredCassette:
    """The calls of one cassette file, by position in the file.

    Attributes:
        path: the file.
        header, end: its first and last document; `end` is None for a recording that was cut off.
        verdict: what the checksum says: ``"ok"``, ``"absent"`` or ``"differs"``.
        warnings: sentences for the user about what is odd but not wrong.
        tops: positions of the calls that were made inside no other call.
    """

    def __init__(self, path: Path, *, text: str | None = None) -> None:
        """Opens the file and checks it.

        Raises:
            FileNotFoundError: if there is none.
            CassetteError: if it cannot be read or trusted as it is.
        """
        self.path = path
        self.warnings: list[str] = []
        self._parsed: dict[int, Recorded] = {}
        text = reader.read_text(path) if text is None else text
        if not text.strip():
            self._fail("the file is empty, so it is no cassette", 1)
        self._slices = list(reader.split(text))
        if not self._slices:
            self._fail("the file is empty, so it is no cassette", 1)
        self.header = self._read_header()
        self.verdict, self.end = self._read_end(text)
        self.tops = self._tops()
        if self.end is not None and self.verdict != "ok":
            what = "has no checksum" if self.verdict == "absent" else "was changed since it was recorded"
            for problem in self.problems():
                raise problem
            self.warnings.append(f"{path}: the cassette {what}; it reads well and is replayed as it is")

    def __len__(self) -> int:
        return len(self._slices)

    @property
    def status(self) -> Status:
        """How the recorded run ended: ``completed``, ``failed`` or ``partial``."""
        return "partial" if self.end is None else self.end.status

    @property
    def failed(self) -> bool:
        """Whether the recording may not replace a good one: its run or its test failed, or it was cut off."""
        return self.end is None or self.end.status == "failed" or self.end.test == "failed"

    def recorded(self, at: int) -> Recorded:
        """The call at a position; parsed the first time, kept from then on.

        Raises:
            CassetteError: if its document does not fit, with line and field.
        """
        found = self._parsed.get(at)
        if found is None:
            line, text = self._slices[at]
            found = self._parsed[at] = self._read_call(line, text)[0]
        return found

    def holds_secrets(self, at: int) -> bool:
        """Whether the call at a position holds a placeholder of a secret."""
        return "<secret:" in self._slices[at][1]

    def call(self, number: int) -> Call:
        """The top-level call of that number (from 0) with its children, as users see it."""
        first = self.tops[number]
        last = self.tops[number + 1] if number + 1 < len(self.tops) else len(self)
        return call_tree([self.recorded(at) for at in range(first, last)])[0]

    def all_recorded(self) -> list[Recorded]:
        """Every call in file order."""
        return [self.recorded(at) for at in range(len(self))]

    def problems(self) -> Iterator[CassetteError]:
        """Every fault of every document, found by reading all of them, values included."""
        for at, (line, text) in enumerate(self._slices):
            try:
                recorded = self._parsed.get(at) or self._read_call(line, text)[0]
                _check_values(recorded)
            except CassetteError as problem:
                yield problem
            except schema.Fault as fault:
                yield self._located(fault, line, text)
        if self.end is not None:
            try:
                _check_value("output", self.end.output)
            except schema.Fault as fault:
                yield CassetteError(fault.problem, file=self.path, line=self._end_line, field=fault.field)

    def trajectory(self) -> Trajectory:
        """All of it as a read-only trajectory of Python values.

        Raises:
            CassetteError: if any document does not fit.
        """
        for problem in self.problems():
            raise problem
        end = self.end
        return Trajectory(
            name=self.header.name,
            status=self.status,
            output=decode(end.output) if end is not None and end.has_output else None,
            error=_plain_error(end.error) if end is not None and end.error is not None else None,
            calls=call_tree(self.all_recorded()),
            header=schema.header_document(self.header),
        )

    # -- reading ------------------------------------------------------------------------------------

    def _read_header(self) -> schema.Header:
        line, text = self._slices.pop(0)
        document = self._parse(line, text)
        try:
            return schema.read_header(document)
        except schema.Fault as fault:
            raise self._located(fault, line, text) from None

    def _read_end(self, text: str) -> tuple[integrity.Verdict, schema.End | None]:
        line, last = self._slices[-1] if self._slices else (1, "")
        if self._slices and (last.startswith("end:") or (last.strip() and self._is_end(line, last))):
            self._slices.pop()
            self._end_line = line
            document = self._parse(line, last)
            try:
                return integrity.verify(text), schema.read_end(document)
            except schema.Fault as fault:
                raise self._located(fault, line, last) from None
        if _PARTIAL.search(self.path.name) is None:
            self._fail(f"the end document is missing, so the file was cut off; {_MEND}", line)
        self._end_line = line
        # while recording, every whole document is followed by its separator: what has none is torn
        if self._slices:
            torn = self._slices.pop()[1]
            if torn.strip():
                self.warnings.append(
                    f"{self.path}: the last call was cut off while it was written; it is left out"
                )
        return "absent", None

    def _is_end(self, line: int, text: str) -> bool:
        try:
            return "end" in self._parse(line, text)
        except CassetteError:
            return False

    def _tops(self) -> list[int]:
        if self.end is None:
            self._reorder()
            return [at for at in range(len(self)) if self.recorded(at).depth == 0]
        if self.verdict == "ok":  # written by us: depth is the first field where it is there at all
            return [at for at, (_, text) in enumerate(self._slices) if not text.startswith("depth:")]
        tops = [at for at, (line, text) in enumerate(self._slices) if "depth" not in self._parse(line, text)]
        if len(self) and (not tops or tops[0] != 0):
            line, text = self._slices[0]
            raise self._located(schema.Fault("depth", "the first call cannot be inside another"), line, text)
        return tops

    def _reorder(self) -> None:
        """Brings a partial file, which is in order of completion, into order of start."""
        placed: dict[int, tuple[tuple[int, str], schema.Place]] = {}
        for at, (line, text) in enumerate(self._slices):
            place = self._read_call(line, text)[1] or schema.Place(at)
            placed[place.start] = ((line, text), place)
        self._slices = []
        kept: set[int] = set()
        for start in sorted(placed):
            piece, place = placed[start]
            if place.parent is None or place.parent in kept:
                kept.add(start)
                self._slices.append(piece)
        if len(kept) < len(placed):
            lost = len(placed) - len(kept)
            self.warnings.append(
                f"{self.path}: {lost} call(s) made inside a call that never ended are left out"
            )
        self._parsed.clear()

    def _read_call(self, line: int, text: str) -> tuple[Recorded, schema.Place | None]:
        document = self._parse(line, text)
        try:
            return schema.read_call(document)
        except schema.Fault as fault:
            raise self._located(fault, line, text) from None

    def _parse(self, line: int, text: str) -> dict[str, Plain]:
        return reader.parse_document(text, file=self.path, first_line=line, known_tags=TAGS)

    def _located(self, fault: schema.Fault, line: int, text: str) -> CassetteError:
        problem = fault.problem
        if not isinstance(fault, schema.UnknownVersion) and fault.field == "stepfork":
            problem = f"{problem}; {_MEND}"
        return CassetteError(
            problem,
            file=self.path,
            line=reader.line_of(text, fault.field, first_line=line),
            field=fault.field,
        )

    def _fail(self, problem: str, line: int) -> NoReturn:
        raise CassetteError(problem if _MEND in problem else f"{problem}; {_MEND}", file=self.path, line=line)


def _check_values(recorded: Recorded) -> None:
    _check_value("args" if recorded.call.kind == "tool" else "request", recorded.call.args)
    for field, value in recorded.outcome.items():
        _check_value(field, value)


def _check_value(field: str, value: Plain) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check_value(f"{field}.{key}", item)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            _check_value(f"{field}[{at}]", item)
    elif isinstance(value, Tagged):
        try:
            decode(value)
        except BadValue as problem:
            raise schema.Fault(field, str(problem)) from None


def call_tree(recorded: list[Recorded]) -> tuple[Call, ...]:
    """Calls in file order, a parent before its children, as a tree."""
    children: list[list[Call]] = [[]]
    for item in reversed(recorded):
        while len(children) <= item.depth + 1:
            children.append([])
        inner = tuple(reversed(children[item.depth + 1]))
        children[item.depth + 1] = []
        children[item.depth].append(public_call(item, inner))
    return tuple(reversed(children[0]))


def public_call(recorded: Recorded, children: tuple[Call, ...] = ()) -> Call:
    """The call as users see it: Python values, the JSON or text of an answer."""
    call, outcome = recorded.call, recorded.outcome
    result: Any = None
    if "result" in outcome:
        result = decode(outcome["result"])
    else:
        for form in schema.RESPONSE_FIELDS:
            if form in outcome:
                result = decode(outcome[form])
    error = _plain_error(outcome["error"]) if "error" in outcome else None
    return Call(call.kind, call.name, decode(call.args), result, error, children)


def _plain_error(error: Any) -> dict[str, Any]:
    return {key: decode(value) for key, value in error.items()}


def rebuild_error(path: Path | None, error: Plain, field: str = "error") -> BaseException:
    """The recorded exception again.

    Raises:
        CassetteError: if its class is not to be found or its content does not fit.
    """
    try:
        return decode_exception(error)
    except BadValue as problem:
        raise CassetteError(str(problem), file=path, field=field) from None
