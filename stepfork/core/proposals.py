"""The rule under which two calls that differ would be the same one, if what differs looks volatile. Pure.

Each proposal is tried before it is made: with that one rule more the calls match, or nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stepfork.core.ignored import Ignored
from stepfork.core.likeness import Likeness
from stepfork.core.matching import Mismatch, match
from stepfork.core.model import Incoming, Tagged
from stepfork.core.volatile import Rules
from stepfork.core.wording import common_length

_BUILT_IN: Final = (("uuid", "a UUID"), ("date", "a date"), ("time", "a time"))
_PATH: Final = re.compile(r"(?:[A-Za-z]:)?[/\\][^\s\"'<>|]*")
_DIGITS: Final = re.compile(r"\d+")
_SAYS_ENOUGH: Final = 3  # characters of a folder's name that tell it from others
_RANDOM: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w-]{12,64}\Z")


def proposal(recorded: Incoming, incoming: Incoming, mismatch: Mismatch) -> str:
    """What to set, in a sentence; "" if the difference does not look like one that every run has.

    >>> old, new = Incoming("tool", "t", {"at": "2026-11-28"}), Incoming("tool", "t", {"at": "2026-11-29"})
    >>> proposal(old, new, Mismatch("args", "at", "2026-11-28", "2026-11-29"))
    'only a date differs; if it does in every run: normalize = {date = true}'
    """
    if mismatch.fault != "args" or not mismatch.path:
        return ""
    if not mismatch.order_only and match(recorded, incoming, Likeness().trial().same_text) is None:
        return ""  # they differ in which secret is which
    for what, setting, alike, ignored in _candidates(recorded, mismatch):
        trial = alike.trial()
        left = match(
            ignored.without(recorded), ignored.without(incoming), trial.same_text, asks_all=trial.asks_all
        )
        if left is None:
            return f"only {what} differs; if it does in every run: {setting}"
    return ""


def _candidates(recorded: Incoming, mismatch: Mismatch) -> Iterator[tuple[str, str, Likeness, Ignored]]:
    """What differs, the setting, and the rule, the likeliest first."""
    nothing, as_it_is = Ignored(), Likeness()
    place = (
        f"{recorded.name}:{mismatch.path}" if recorded.kind == "tool" else f"{recorded.kind}:{mismatch.path}"
    )
    ignore = f'ignore = ["{place}"]' if '"' not in place else f"ignore = ['{place}']"
    if mismatch.order_only:
        yield "the order of its items", ignore, as_it_is, Ignored.compile([place])
        return
    old, new = (_text(leaf) for leaf in (mismatch.expected, mismatch.actual))
    if not old or not new:
        return
    for name, what in _BUILT_IN:
        yield what, f"normalize = {{{name} = true}}", Likeness(Rules.compile(((name, True),))), nothing
    pattern = _path_pattern(old, new)
    if pattern:
        rules = Rules.compile(((pattern, "<path>"),))
        yield "a path", f"normalize = {{'{pattern}' = \"<path>\"}}", Likeness(rules), nothing
    if len(old) == len(new) and _RANDOM.match(old) and _RANDOM.match(new):
        yield repr(mismatch.path), ignore, as_it_is, Ignored.compile([place])


def _text(leaf: object) -> str:
    if isinstance(leaf, Tagged):
        leaf = leaf.value
    return leaf if isinstance(leaf, str) else ""


def _path_pattern(old: str, new: str) -> str:
    """A regular expression for the parts of a path that differ; "" if what differs is in no path."""
    was, now = _PATH.findall(old), _PATH.findall(new)
    pairs = [(a, b) for a, b in zip(was, now, strict=False) if a != b]
    if not pairs or len(was) != len(now):
        return ""
    parts, others = (re.split(r"([/\\])", path) for path in pairs[0])
    if len(parts) != len(others):
        return ""
    differing = [at for at, (a, b) in enumerate(zip(parts, others, strict=True)) if a != b]
    first, last = differing[0], differing[-1]
    shared = common_length(parts[first], others[first])
    # where a folder lies is another place on another machine: begin as late as what is left says enough
    if first < 3 and shared < _SAYS_ENOUGH:
        return ""
    start = first - 1 if shared >= _SAYS_ENOUGH else first - 3
    pairs = list(zip(parts[start : last + 1], others[start : last + 1], strict=True))
    return "".join(_DIGITS.sub(r"\\d+", re.escape(a)) if a == b else _part(a, b) for a, b in pairs)


def _part(old: str, new: str) -> str:
    """Of a folder's name what both have in common at its beginning, and anything behind it."""
    shared = old[: common_length(old, new)]
    return re.escape(shared.rstrip("0123456789")) + r"[^/\\\s]+"
