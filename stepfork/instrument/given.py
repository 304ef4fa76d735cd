"""The arguments of one tool call: in plain values, and what its body does to them. Knows no session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import AsyncGeneratorType, FunctionType
from typing import Any, Final

from stepfork.cassette.values import ClassPolicy, Unsupported, decode, encode, looks, type_name
from stepfork.core.model import Plain
from stepfork.instrument import contents
from stepfork.instrument.changes import Watched, can_change
from stepfork.instrument.contents import AsyncDrained, Drained, Source
from stepfork.instrument.overlaps import AtWork

_ORDINARY: Final = frozenset({str, int, float, bool, bytes, type(None), list, dict, set, frozenset})
_NONE: Final = object()


def defaults_of(function: FunctionType) -> dict[str, Any]:
    """The defaults of a function's parameters, by name.

    >>> defaults_of(lambda a, b=1, *, c=2: None)
    {'b': 1, 'c': 2}
    """
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}


class Given:
    """The bound arguments of a call.

    `arguments` are what the body gets; where it cannot get the caller's own iterator, the other one is put
    in there. `skip` has the names of those that are not recorded, ``self`` among them; `classes` are those of
    values. `defaults` are looked at for what has no plain form: a default itself, which says that nothing was
    given, counts as absent.
    """

    def __init__(
        self,
        arguments: dict[str, Any],
        skip: frozenset[str],
        classes: ClassPolicy,
        defaults: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._arguments = arguments
        self._defaults = defaults
        self._skip = skip
        self._classes = classes
        self._sources: dict[
            str, Source
        ] = {}  # by argument, or place in a tuple of them: ``rows``, ``args[0]``
        self._plain: dict[str, Plain] = {}
        self._problems: list[Unsupported] = []
        self._watched: Watched | None = None
        self._at_work: AtWork | None = None
        self._has_changed = False  # whether the body changed an argument
        self._stood: dict[str, tuple[Plain, Any]] = {}  # where the sources stood

    def has_async(self) -> bool:
        """Whether `read_async` has something to read."""
        return any(type(value) is AsyncGeneratorType for value in self._arguments.values())

    async def read_async(self) -> None:
        """Reads async generators, which `plain` has no way to wait for."""
        for name, value in self._arguments.items():
            if type(value) is AsyncGeneratorType and name not in self._skip:
                source = self._sources[name] = AsyncDrained(value)
                await source.read()
                self._arguments[name] = source.given

    def plain(self) -> dict[str, Plain]:
        """The arguments in plain values.

        Raises:
            Unsupported: for one that has no plain form.
        """
        for name, value in self._arguments.items():
            if name not in self._skip:
                known = len(self._problems)
                content = self._content(name, value)
                try:
                    self._plain[name] = encode(content, f"argument {name!r}", self._classes)
                except Unsupported as problem:
                    self._problems.append(problem)  # the others are read all the same: the body gets them all
                if len(self._problems) > known and self._defaults().get(name, _NONE) is value:
                    del self._problems[known:]
                    self._plain.pop(name, None)
                    self._sources.pop(name, None)
        if self._problems:
            first = self._problems[0]
            first.beside = [first.beside, dict(self._plain)]
            raise first
        return dict(self._plain)

    def _content(self, name: str, value: Any) -> Any:
        """What is recorded of an argument."""
        if type(value) is not tuple:  # else it may be the ``*args`` of a function
            given, content = self._read(name, value)
            if given is not value:
                self._arguments[name] = given
            return content
        pairs = [self._read(f"{name}[{at}]", item) for at, item in enumerate(value)]
        if any(given is not item for (given, _), item in zip(pairs, value, strict=True)):
            self._arguments[name] = tuple(given for given, _ in pairs)
        return tuple(content for _, content in pairs)

    def _read(self, name: str, value: Any) -> tuple[Any, Any]:
        """What the body gets for a value, and what is recorded of it."""
        source = self._sources.get(name)
        if source is None and type(value) in _ORDINARY:
            return value, value
        path = f"argument {name!r}"
        try:
            source = source or contents.source_of(value, path)
            if source is None:
                return value, value
            self._sources[name] = source
            contents.check(source, path)
        except Unsupported as problem:
            self._problems.append(problem)
        return (value, value) if source is None else (source.given, source.content)

    # -- while recording ----------------------------------------------------------------------------

    @looks
    def watch(self, *, again: bool = False) -> None:
        """The body runs now, or goes on `again`: what changes from here on is its doing."""
        if not again or self._watched is None or self._is_stale():
            self._look(again)
            assert self._watched is not None
            self._watched.see()
        self._stood = {name: (source.left(), source.written()) for name, source in self._sources.items()}

    def work(self, name: str, run: Any, ticket: Any, inside: Any) -> None:
        """The body of a function runs: others may run meanwhile, and change the same objects."""
        if self._watched is not None and self._watched.holds():
            self._at_work = AtWork(name, run, ticket, inside, self._watched)

    def _is_stale(self) -> bool:
        """Whether the arguments are not what they were when the body began or went on the last time."""
        assert self._watched is not None
        try:
            return self._watched.is_stale()
        except Unsupported:
            return True

    def _look(self, again: bool) -> None:
        if again:
            for name in self._plain:
                if name not in self._sources and can_change(self._plain[name]):
                    self._plain[name] = encode(self._current(name), f"argument {name!r}", self._classes)
        self._watched = Watched(
            {name: self._current(name) for name in self._plain}, self._plain, self._classes
        )

    def _current(self, name: str) -> Any:
        """An argument; in a tuple of them (``*args``) iterators and streams by their content."""
        value = self._arguments[name]
        if type(value) is not tuple or not self._sources:
            return value
        sources = (self._sources.get(f"{name}[{at}]") for at in range(len(value)))
        return tuple(
            item if source is None else source.content for item, source in zip(value, sources, strict=True)
        )

    @looks
    def changes(self) -> dict[str, Plain]:
        """What the body did to them since then: ``changed``, ``kept``, ``replaced``.

        Raises:
            Unsupported: for what cannot be done again in place.
        """
        if self._at_work is not None:
            self._at_work.ended()
        found = {} if self._watched is None else self._watched.changes()
        self._has_changed = self._has_changed or "changed" in found
        return found

    def moved(self) -> dict[str, Plain]:
        """What the body read of iterators and streams since then, and wrote to them: ``left``, ``written``.

        Raises:
            Unsupported: if it wrote what has no plain form, or left more than there was or less than nothing.
        """
        left: dict[str, Plain] = {}
        written: dict[str, Plain] = {}
        for name, source in self._sources.items():
            stood, stood_written = self._stood.get(name, (None, None))
            now, new = source.left(), source.written()
            if new is not None and new != stood_written:
                written[name] = encode(new, f"argument {name!r}", self._classes)
            if name in written or now != stood:
                self._check_left(name, source, now)
                left[name] = now
        found: dict[str, Plain] = {"left": left} if left else {}
        return {**found, "written": written} if written else found

    def _check_left(self, name: str, source: Source, left: Plain) -> None:
        """Whether so much can be left of what was recorded."""
        more = isinstance(source.content, list) and not self._has_changed
        if type(left) is int and (left < 0 or (more and left > len(source.content))):
            if left < 0:
                why, hint = "that the tool left behind its end", "pass its path or its content"
            else:
                why, hint = "that got more items while the tool ran", "pass a list"
            raise Unsupported(f"argument {name!r}", type_name(source.given), why, hint)

    def check_read(self) -> None:
        """Whether the body, which has returned, left nothing unread that its caller could go on with.

        Raises:
            Unsupported: if it did: the caller's own generator was read to its end when the call began.
        """
        for name, source in self._sources.items():
            if isinstance(source, Drained) and source.unread():
                why = f"and the tool left {source.unread()} of its {len(source.content)} items unread"
                hint = "pass a list, or an iterator over a list"
                raise Unsupported(f"argument {name!r}", type_name(source.given), why, hint)

    # -- on replay ----------------------------------------------------------------------------------

    @looks
    def change(self, recorded: dict[str, Plain], before: Plain = None) -> None:
        """Does what the body did when it was recorded.

        `before` are the arguments as they were recorded; None if the body had run before.
        """
        if "changed" in recorded:
            if isinstance(before, dict):  # a secret that it does not show stays the caller's own
                self._plain = before
            self._look(again=before is None)
            assert self._watched is not None
            self._watched.change(recorded)
        left, written = recorded.get("left", {}), recorded.get("written", {})
        assert isinstance(left, dict)
        assert isinstance(written, dict)
        for name, rest in left.items():
            if name in self._sources:
                self._sources[name].go_on(
                    rest, decode(written[name], self._classes) if name in written else None
                )
