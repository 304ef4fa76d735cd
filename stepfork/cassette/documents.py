"""The call documents of one file, read when they are asked for: each once, with all that it refers to.

Knows where documents stand and how one refers to another (`shared`, `extends`); knows no order of calls but
the file's, no checksum and no session.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from stepfork.cassette import reader, schema, shared
from stepfork.cassette.bases import is_below
from stepfork.cassette.extension import Draft, Misfit, Request
from stepfork.cassette.fields import Fault, shown
from stepfork.cassette.slices import Slices
from stepfork.cassette.values import TAGS
from stepfork.core.directories import AS_THEY_STAND, HELD, Directories
from stepfork.core.model import Plain, Recorded
from stepfork.errors import CassetteError

_KNOWN_TAGS: Final = TAGS | {shared.TAG}
_FEW: Final = 8
_KEPT: Final = 256  # requests in full; lists of what they share are all they cost
_KEY: Final = re.compile(r'^  "?([0-9a-f]{8,64})"?:', re.MULTILINE)


class Documents:
    """The documents of one file, by their place in it.

    Attributes:
        trusted: whether the text is as it was written, so that a field stands on a line of its own.
        bases: which call each one extends, where the file's order does not say it.
    """

    def __init__(self, path: Path, slices: Slices, directories: Directories = AS_THEY_STAND) -> None:
        """`directories` are put in place of their names."""
        self.path = path
        self._directories = directories
        self.slices = slices
        self.trusted = False
        self.bases: Mapping[int, int] | None = None
        self._raw: dict[int, dict[str, Plain]] = {}
        self._own: dict[int, schema.Document] = {}
        self._full: OrderedDict[int, Recorded] = OrderedDict()
        self._ranks: dict[int, tuple[list[int], int]] = {}  # LLM calls of a line, and which of them it is
        self._values: dict[str, shared.Value] = {}
        self._items = 0  # in all that references stood for so far
        self._defined: dict[str, list[int]] | None = None

    def parse(self, place: int) -> dict[str, Plain]:
        """The fields of a document.

        Raises:
            CassetteError: if it is none.
        """
        return reader.parse_document(
            self.slices.text(place),
            file=self.path,
            first_line=lambda: self.slices.line(place),
            known_tags=_KNOWN_TAGS,
        )

    def located(self, fault: Fault, place: int) -> CassetteError:
        """A fault of a document as an error that names file, line and field."""
        line = reader.line_of(self.slices.text(place), fault.field, first_line=self.slices.line(place))
        return CassetteError(fault.problem, file=self.path, line=line, field=fault.field)

    def own(self, place: int) -> schema.Document:
        """What the document of a call says by itself, references to shared values followed.

        Raises:
            CassetteError: if it does not fit, with line and field.
        """
        found = self._own.get(place)
        if found is None:
            document = self.fields_of(place)
            try:
                if self.slices.has(place, b"!shared"):
                    document = shared.restore(document, self._value)
                found = self._own[place] = self._of_today(place, schema.read_call(document))
            except Fault as fault:
                raise self.located(fault, place) from None
            del self._raw[place]
        return found

    def _of_today(self, place: int, document: schema.Document) -> schema.Document:
        """The document in today's terms. A text of ours shows the names of directories as they are."""
        if self._directories is AS_THEY_STAND or (self.trusted and not self.slices.holds(place, HELD)):
            return document
        return schema.restored(document, self._directories.restore)

    def recorded(self, place: int) -> Recorded:
        """A call with its question in full, whose parts other calls share: it is not to be changed.

        Raises:
            CassetteError: if its document, or one that it extends, does not fit.
        """
        own = self.own(place)
        if own.extension is None:
            return own.recorded
        found = self._full.get(place)
        if found is None:
            call = replace(own.recorded.call, args=self._request(place))
            found = self._full[place] = replace(own.recorded, call=call)
            if len(self._full) > _KEPT:
                self._full.popitem(last=False)
        else:
            self._full.move_to_end(place)
        return found

    def may_hold(self, place: int, words: bytes) -> bool:
        """Whether a call may hold a text, in what it says or in what it refers to."""
        has = self.slices.has
        return has(place, words) or has(place, b"!shared") or has(place, b"\nextends:")

    # -- what a call extends ------------------------------------------------------------------------

    def _request(self, place: int) -> Request:
        """The request of a call that extends another: that one's, and all changes since."""
        chain: list[int] = []
        step = place
        while self.own(step).extension is not None and step not in self._full:
            chain.append(step)
            step = self._base(step)
        known = self._full.get(step) or self.own(step).recorded
        if type(known.call.args) is not dict:
            raise self.located(
                Fault("extends", "the call that it extends has no fields to extend"), chain[-1]
            )
        draft = Draft(known.call.args)
        for step in reversed(chain):
            extension = self.own(step).extension
            assert extension is not None
            try:
                draft.apply(extension)
            except Misfit as misfit:
                raise self.located(Fault(misfit.field, misfit.problem), step) from None
        return draft.request

    def _base(self, place: int) -> int:
        """The call that this one extends: so many LLM calls back among those of its line of control."""
        own = self.own(place)
        assert own.extension is not None
        back = own.extension.back
        found = self.bases.get(place) if self.bases is not None else self._llm_call_back(place, back)
        if found is None:
            problem = f"there is no LLM call {shown(back)} back in this line of control"
            raise self.located(Fault("extends", problem), place)
        return found

    def _llm_call_back(self, place: int, back: int) -> int | None:
        """The LLM call so many back. Few, as they are written, are steps; a line is only indexed for more."""
        if back <= _FEW:
            step: int | None = place
            while step is not None and back:
                step, back = self._llm_call_before(step), back - 1
            return step
        todo = [place]
        while todo[-1] not in self._ranks:
            before = self._llm_call_before(todo[-1])
            if before is None:
                self._ranks[todo[-1]] = ([todo[-1]], 0)
                break
            todo.append(before)
        for after, before in reversed(list(pairwise(todo))):
            calls, rank = self._ranks[before]
            calls.append(after)
            self._ranks[after] = (calls, rank + 1)
        calls, rank = self._ranks[place]
        return calls[rank - back] if back <= rank else None

    def _llm_call_before(self, place: int) -> int | None:
        """The last LLM call that the line of control of a call made before it."""
        depth, lane = self.own(place).recorded.depth, self._lane(place)
        for before in range(place - 1, 0, -1):
            if self._is_deeper(before, depth):
                continue
            if depth and self.own(before).recorded.depth < depth:
                break
            other = self._lane(before)
            if other == lane:
                if self._is_llm(before):
                    return before
            elif not is_below(other, lane):
                break
        return None

    def _is_deeper(self, place: int, depth: int) -> bool:
        if self.trusted and not self.slices.begins(place, "depth:"):
            return False
        return (self.trusted and not depth) or self.own(place).recorded.depth > depth

    def _lane(self, place: int) -> str:
        if self.trusted and not self.slices.has(place, b"\nlane: "):
            return ""
        mark = self.own(place).recorded.mark
        return "" if mark is None else mark.lane

    def _is_llm(self, place: int) -> bool:
        if self.trusted:
            return self.slices.has(place, b"\nllm: ")
        return self.own(place).recorded.call.kind == "llm"

    # -- what documents share -----------------------------------------------------------------------

    def fields_of(self, place: int) -> dict[str, Plain]:
        """The fields of a document; what it shares is known from then on."""
        document = self._raw.get(place)
        if document is None:
            document = self.parse(place)
            try:
                for name, value in shared.values_of(document).items():
                    if name not in self._values:
                        self._values[name] = shared.weighed(value)
            except Fault as fault:
                raise self.located(fault, place) from None
            self._raw[place] = document
        return document

    def _value(self, name: str) -> shared.Value:
        if name not in self._values:
            for place in self._places_of(name):
                self.fields_of(place)
        if name not in self._values:
            raise Fault("", f"no document has '{name}' under 'shared'")
        found = self._values[name]
        self._items += found.items
        if self._items > shared.MOST_ITEMS:
            raise Fault("", f"this file refers to more than {shared.MOST_ITEMS} values by '!shared'")
        return found

    def _places_of(self, name: str) -> list[int]:
        """The documents that may have the value of a name: as they are written, or in any other style."""
        if self._defined is None:
            self._defined = {}
            for place in self._sharing():
                for found in _KEY.finditer(self.slices.text(place)):
                    self._defined.setdefault(found[1], []).append(place)
        places = [place for place in self._defined.get(name, []) if place not in self._own]
        return places or [
            place for place in self._sharing() if place not in self._own and name in self.slices.text(place)
        ]

    def _sharing(self) -> list[int]:
        has = self.slices.has
        return [at for at in range(1, len(self.slices)) if has(at, b"\nshared:") or has(at, b'\n"shared":')]
