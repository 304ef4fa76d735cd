"""What of a run may be shown beside the recording: no text that stands where that has a secret. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from stepfork.core.matching import ABSENT, Mismatch
from stepfork.core.model import Incoming, Plain, Tagged
from stepfork.core.placeholder_texts import MARK, PLACEHOLDER, opened, placeholders_in
from stepfork.core.renaming import Apart, Renaming

ANOTHER: Final = "<another text>"


def masked(recorded: Plain, here: Plain) -> Plain:
    """A value of the run, with `ANOTHER` for what stands in the place of a recorded placeholder.

    >>> masked("log in with <secret:password:1> now", "log in with hunter2hunter3 later")
    'log in with <another text>'
    >>> masked({"q": "use <secret:token:1>, then go"}, {"q": "use <secret:token:other-1>, then stop"})
    {'q': 'use <secret:token:other-1>, then stop'}
    """
    if isinstance(recorded, str) and isinstance(here, str):
        return _text(recorded, here)
    if isinstance(recorded, dict) and isinstance(here, dict):
        hides = any(MARK in opened(key) for key in recorded if key not in here)
        return {
            key if key in recorded or not hides or PLACEHOLDER.search(key) else ANOTHER: masked(
                recorded.get(key), item
            )
            for key, item in here.items()
        }
    if isinstance(recorded, list) and isinstance(here, list):
        there = [*recorded, *[None] * len(here)]
        return [masked(old, new) for old, new in zip(there, here, strict=False)]
    if isinstance(recorded, Tagged) and isinstance(here, Tagged) and recorded.tag == here.tag:
        return Tagged(here.tag, masked(recorded.value, here.value))
    if isinstance(here, str | dict | list | Tagged) and any(placeholders_in(recorded)):
        return ANOTHER
    return here


class _Anything(Apart):
    """A recorded placeholder may stand for any text of another value of the same run."""

    def may_be(self, recorded: str, here: str) -> bool:
        """Always."""
        return True


def placed(recorded: Plain, here: Plain) -> Plain:
    """A value that was written by hand, with the recorded text where that says the same but for its secrets.

    >>> placed({"id": "<secret:token:1>", "q": "key <secret:a:1>."}, {"id": "q7Zx", "q": "key q7Zx4mW9."})
    {'id': '<secret:token:1>', 'q': 'key <secret:a:1>.'}
    >>> placed("key <secret:token:1>.", "no key q7Zx4mW9.")
    'no key q7Zx4mW9.'
    """
    if isinstance(recorded, str) and isinstance(here, str):
        is_whole = here and PLACEHOLDER.fullmatch(recorded)
        hides = MARK in opened(recorded) and (is_whole or Renaming(_Anything()).unify(recorded, here))
        return recorded if hides else here
    if isinstance(recorded, dict) and isinstance(here, dict):
        return {key: placed(recorded[key], item) if key in recorded else item for key, item in here.items()}
    if isinstance(recorded, list) and isinstance(here, list):
        there = [*recorded, *[None] * len(here)]
        return [placed(old, new) for old, new in zip(there, here, strict=False)]
    if isinstance(recorded, Tagged) and isinstance(here, Tagged) and recorded.tag == here.tag:
        return Tagged(here.tag, placed(recorded.value, here.value))
    return here


def _text(recorded: str, here: str) -> str:
    if recorded == here:
        return here
    if opened(recorded) != recorded:
        return ANOTHER
    at = start = 0  # in `here`, in `recorded`
    for found in PLACEHOLDER.finditer(recorded):
        literal = recorded[start : found.start()]
        same = next(
            (n for n, pair in enumerate(zip(literal, here[at:], strict=False)) if len(set(pair)) > 1), -1
        )
        same = min(len(literal), len(here) - at) if same < 0 else same
        at += same
        there = PLACEHOLDER.match(here, at)
        if same < len(literal) or there is None:
            return here[:at] + ANOTHER + _common_end(recorded, here[at:])
        at, start = there.end(), found.end()
    return here


def _common_end(recorded: str, rest: str) -> str:
    """What both end with, behind the last placeholder."""
    last = recorded[recorded.rfind(">") + 1 :]
    return last if rest.endswith(last) else ""


def masked_call(recorded: Incoming, here: Incoming) -> Incoming:
    """A call as it may be shown beside the recorded one."""
    target = masked(recorded.target, here.target)
    assert isinstance(target, dict)
    return replace(here, args=masked(recorded.args, here.args), target=target)


def masked_mismatch(mismatch: Mismatch) -> Mismatch:
    """The leaf of a mismatch as it may be shown."""
    leaves: tuple[Any, Any] = (mismatch.expected, mismatch.actual)
    if ABSENT in leaves:
        return mismatch
    return replace(mismatch, actual=masked(*leaves))
