"""The errors of a session, worded in full. Knows calls and hints; decides nothing.

A mismatch says in this order: the call and the fault; cassette and call number; the differing leaf, old
and new; the nearest recorded call; the command that records again. Always under 4 kB.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepfork.cassette.frame import End, Header
from stepfork.cassette.values import BadValue, look
from stepfork.cassette.values.policy import class_name
from stepfork.core import wording
from stepfork.core.masking import masked_call, masked_mismatch
from stepfork.core.matching import ABSENT, Mismatch, distance, match
from stepfork.core.model import Incoming, Plain, cut, describe
from stepfork.core.placeholder_texts import PLACEHOLDER
from stepfork.core.proposals import proposal
from stepfork.core.text_redaction import OWN_PATTERN
from stepfork.errors import CassetteNotFoundError, RecordingError, ReplayMismatchError


@dataclass(frozen=True, slots=True)
class Hints:
    """What to tell the user to do: the exact command that records, and how to leave this run alone."""

    record: str = ""
    leave_alone: str = ""


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a fault: the cassette, how many top-level calls it holds, and the hints.

    `refused` says why the recording itself was refused, if it was: it then lacks calls. `unruled` are the
    labels of secrets that it replaced by rules which this session has not.
    """

    path: Path
    total: int
    hints: Hints
    refused: str = ""
    unruled: tuple[str, ...] = ()


def refusal_of(end: End | None) -> str:
    """Why a recording was refused, which ended for no other reason; "" for any other end."""
    error = None if end is None else end.error
    if not isinstance(error, dict) or error["class"] != class_name(RecordingError):
        return ""
    args = error.get("args")
    return " ".join(map(str, args)) if isinstance(args, list) else ""


def incomplete(end: End | None) -> str:
    """What to say of a recording that was refused, though its run did not fail; "" for any other.

    >>> incomplete(None)
    ''
    """
    why = refusal_of(end)
    return why and f"the recording is incomplete: it failed with RecordingError: {cut(why, 1000)}"


def shown(path: Path) -> str:
    """A path as the user would write it: from the working directory where it lies below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def differs(
    where: Where,
    index: int,
    recorded: Incoming,
    incoming: Incoming,
    mismatch: Mismatch,
    others: Iterable[tuple[int, Incoming]],
    to_come: Container[int] = (),
    blame: str = "",
) -> ReplayMismatchError:
    """The call at this place is another one than recorded.

    `others` are all the recorded calls, numbered, `to_come` the numbers of those that were not made yet;
    `blame` is what a live answer may have to do with it.
    """
    nearest = _nearest(recorded, incoming, index, others, to_come)
    mismatch = masked_mismatch(mismatch)
    incoming = masked_call(recorded, incoming)
    lines = [
        wording.headline(index, recorded, incoming, mismatch),
        f"  cassette: {_file(where)}, call {index} of {where.total}",
    ]
    if ":" in incoming.name and incoming.name.rpartition(":")[2] == recorded.name:
        lines.append(
            f"  two tools are called {cut(repr(recorded.name), 120)} now; "
            "the recording does not say which one it was"
        )
    if mismatch.order_only:
        lines.append("  only the order of the items differs")
    if mismatch.fault in ("kind", "name"):
        lines += [f"  recorded: {wording.summary(recorded)}", f"  now:      {wording.summary(incoming)}"]
    else:
        lines += [f"  {line}" for line in wording.leaves(mismatch.expected, mismatch.actual)]
    if nearest:
        lines.append(nearest)
    elif (rule := proposal(recorded, incoming, mismatch)) and cut(rule, _RULE) == rule:
        lines.append(f"  {rule}")
    lines += [f"  {blame}"] if blame else []
    lines += _again(where)
    return ReplayMismatchError(
        "\n".join(lines),
        cassette=where.path,
        index=index,
        kind=incoming.kind,
        path=mismatch.path,
        expected=_public(mismatch.expected),
        actual=_public(mismatch.actual),
    )


def one_more(where: Where, incoming: Incoming, same: int, blame: str = "") -> ReplayMismatchError:
    """All recorded calls are used up and here is another; `same` is how often it was recorded."""
    index = where.total + 1
    what = describe(incoming.kind, incoming.name)
    if same:
        times = "once" if same == 1 else f"{same} times"
        fault = f"{what} was recorded {times} with these arguments and is made one time more"
    else:
        fault = f"the agent made {what}, but the recording ends after call #{where.total}"
    lines = [
        f"call #{index}: {fault}",
        f"  cassette: {_file(where)}, {_used(where.total)}",
    ]
    lines.append(f"  now:      {wording.summary(incoming)}")
    lines += [f"  {blame}"] if blame else []
    lines += _again(where)
    return ReplayMismatchError(
        "\n".join(lines), cassette=where.path, index=index, kind=incoming.kind, actual=_public(incoming.args)
    )


def _used(total: int) -> str:
    return {0: "no calls", 1: "1 call, which is used"}.get(total, f"{total} calls, all of them used")


def too_early(
    where: Where, missing: int, index: int, recorded: Incoming, incoming: Incoming
) -> ReplayMismatchError:
    """An equal call has to come first, or another line of control has to make this one."""
    incoming = masked_call(recorded, incoming)
    what = describe(incoming.kind, incoming.name)
    if missing == index:
        fault = f"{what} is recorded for another task or thread than the one that makes it now"
    else:
        fault = f"{what} has to follow the equal call #{missing} of another task or thread, and comes before"
    return _about(where, index, incoming.kind, fault, [_now(incoming)])


def one_more_inside(where: Where, index: int, incoming: Incoming) -> ReplayMismatchError:
    """The body of a tool makes a call, and all that were recorded inside of it are used up."""
    what = describe(incoming.kind, incoming.name)
    fault = f"inside of it the agent made {what}, but no more calls were recorded there"
    return _about(where, index, incoming.kind, fault, [_now(incoming)], actual=_public(incoming.args))


def left_over_inside(where: Where, name: str, left: list[tuple[int, Incoming]]) -> ReplayMismatchError:
    """The body of a tool returned before these recorded calls were made inside of it."""
    index, first = left[0]
    what = describe(first.kind, first.name)
    fault = f"inside {describe('tool', name)}: expected {what} but the agent never made it"
    not_made = [f"  not made: {wording.summary(call)}" for _, call in left[:5]]
    return _about(where, index, first.kind, fault, not_made, expected=_public(first.args))


def left_over(where: Where, left: list[tuple[int, Incoming]]) -> ReplayMismatchError:
    """The block ended before these recorded calls were made."""
    index, first = left[0]
    lines = [left_over_note(where, left), f"  cassette: {_file(where)}, call {index} of {where.total}"]
    lines += [f"  not made: #{at} {wording.summary(call)}" for at, call in left[:5]]
    if len(left) > 5:
        lines.append(f"  and {len(left) - 5} more")
    lines += _again(where)
    return ReplayMismatchError(
        "\n".join(lines), cassette=where.path, index=index, kind=first.kind, expected=_public(first.args)
    )


def left_over_note(where: Where, left: list[tuple[int, Incoming]]) -> str:
    """The left-over calls in one line."""
    index, first = left[0]
    return (
        f"call #{index}: expected {describe(first.kind, first.name)} but the agent never made it "
        f"({len(left)} of {where.total} recorded calls were not made)"
    )


def running_note(where: Where, running: list[tuple[int, Incoming]]) -> str:
    """Calls of tasks or threads that were still running when the block ended, in one line."""
    index, first = running[0]
    return (
        f"{_file(where)}: call #{index} ({describe(first.kind, first.name)}) was not made: its task or "
        f"thread was still running when the session ended ({len(running)} of {where.total} recorded calls)"
    )


def no_answer(where: Where, index: int, incoming: Incoming) -> ReplayMismatchError:
    """The recorded call was still running when its recording ended."""
    what = describe(incoming.kind, incoming.name)
    fault = f"{what} was still running when the recording ended, so there is no answer to replay"
    return _about(where, index, incoming.kind, fault)


def nobody_cancels(where: Where, index: int, incoming: Incoming) -> ReplayMismatchError:
    """The recorded call was cancelled, and nothing in the program does so any more."""
    what = describe(incoming.kind, incoming.name)
    fault = f"{what} was cancelled when it was recorded, and nothing cancels it now"
    return _about(where, index, incoming.kind, fault)


def read_further(where: Where, index: int, recorded: Incoming) -> ReplayMismatchError:
    """The agent reads more of a streamed answer, or of a generator, than it did when it was recorded."""
    what = describe(recorded.kind, recorded.name)
    source = what if recorded.kind == "tool" else f"the stream of {what}"
    fault = f"the agent reads further in {source} than it did when it was recorded"
    return _about(where, index, recorded.kind, fault)


def not_comparable(
    where: Where, index: int, kind: str, name: str, path: str, type_: str
) -> ReplayMismatchError:
    """An argument has no plain form, so it can equal nothing that was recorded."""
    place, type_ = cut(path, wording.PLACE), cut(type_, wording.PLACE)
    if where.refused:
        fault = f"{describe(kind, name)} {place} is of type {type_}, and so it was not recorded either"
        return _about(where, index, kind, fault, path=path)
    fault = f"{describe(kind, name)} {place}: a value of type {type_} cannot be compared with the recording"
    return _about(where, index, kind, fault, path=path)


def _about(
    where: Where, index: int, kind: str, fault: str, more: Iterable[str] = (), **leaves: Any
) -> ReplayMismatchError:
    """A mismatch that a sentence says; `more` are lines below the place, `leaves` further attributes."""
    counted = f"call {index} of {where.total}" if index <= where.total else f"{where.total} calls"
    place = f"  cassette: {_file(where)}, {counted}"
    lines = [f"call #{index}: {fault}", place, *more, *_again(where)]
    return ReplayMismatchError("\n".join(lines), cassette=where.path, index=index, kind=kind, **leaves)


def _now(incoming: Incoming) -> str:
    return f"  now:      {wording.summary(incoming)}"


def record_in_code(path: Path) -> Hints:
    """What to do where no command is known that records."""
    return Hints(record=f"run the same code inside 'with stepfork.record({shown(path)!r}):'")


def record_command(header: Header, where: str, options: Iterable[str] = ()) -> str:
    """The command that records a cassette with an entrypoint again; `options` are further ones for it.

    >>> record_command(Header("a", entrypoint="agent:run", tools=("agent.tools",)), "a.yaml")
    'stepfork record agent:run --tools agent.tools -o a.yaml'
    >>> record_command(Header("a", entrypoint="agent:run", args=["<secret:api_key:1>"]), "a.yaml")
    'stepfork record agent:run --args \\'["<your api_key>"]\\' -o a.yaml'
    """
    words = ["stepfork", "record", header.entrypoint or ""]
    for pattern in header.tools:
        words += ["--tools", pattern]
    if header.args:
        args = PLACEHOLDER.sub(r"<your \1>", wording.spell(header.args))
        words += ["--args", args if len(args) <= 500 else "<the args in the file's header>"]
    for name in header.env:
        words += ["--env", name]
    return shlex.join([*words, *options, "-o", where])


def not_found(path: Path, hints: Hints, similar: Path | None = None) -> CassetteNotFoundError:
    """There is no cassette to replay."""
    lines = [f"there is no cassette {shown(path)}"]
    if similar is not None:
        lines.append(f"  another one is there: {shown(similar)}; was the test renamed? Then rename the file")
    if hints.record:
        lines.append(f"  to record it: {hints.record}")
    if hints.leave_alone:
        lines.append(f"  to leave it alone: {hints.leave_alone}")
    return CassetteNotFoundError("\n".join(lines), cassette=path)


_RULE = 400  # bytes of a proposed rule; part of one would be none


def _file(where: Where) -> str:
    return cut(shown(where.path), 300)


def _again(where: Where) -> list[str]:
    """Why the recording is not whole, if it is not, which settings it had, and how to record again."""
    return [*_other_rules(where), *_record_again(where)]


def _other_rules(where: Where) -> list[str]:
    if not where.unruled:
        return []
    keys = [f"what stands under {label!r}" for label in where.unruled if label != OWN_PATTERN]
    what = ", ".join([*keys, *(["what a pattern found"] if len(keys) < len(where.unruled) else [])])
    rules = "redact_keys, redact_patterns and redact_allow"
    return [f"  the recording replaced {cut(what, 300)}; this session does not: give both the same {rules}"]


def _record_again(where: Where) -> list[str]:
    command = cut(where.hints.record, 800)
    if where.refused:
        record = command and f"  when that is mended, record again: {command}"
        why = f"  the file holds a recording that failed with RecordingError: {cut(where.refused, 1000)}"
        return [why, *filter(None, [record])]
    return [f"  if the change is meant, record again: {command}"] if command else []


_LOOKED_AT = 200  # recorded calls of the same name that are compared to find the nearest


def _nearest(
    recorded: Incoming,
    incoming: Incoming,
    index: int,
    others: Iterable[tuple[int, Incoming]],
    to_come: Container[int],
) -> str:
    """The recorded call that the incoming one was probably meant to be, if that is not the expected one."""
    alike = [
        (at, other)
        for at, other in others
        if at != index and (other.kind, other.name) == (incoming.kind, incoming.name)
    ]
    same = [at for at, other in alike if match(other, incoming) is None]
    for at in same:
        if at in to_come:
            return f"  this very call is recorded as #{at}: the order of the calls changed"
    if same:
        times = f"as #{same[0]}" if len(same) == 1 else f"{len(same)} times, last as #{same[-1]}"
        return f"  this very call is recorded {times}, was made already, and is made one time more now"
    alike = sorted(alike, key=lambda pair: abs(pair[0] - index))[:_LOOKED_AT]
    if not alike:
        return ""
    at, other = min(alike, key=lambda pair: distance(pair[1], incoming))
    same_name = (recorded.kind, recorded.name) == (incoming.kind, incoming.name)
    if same_name and distance(recorded, incoming) <= distance(other, incoming):
        return ""
    mismatch = match(other, incoming)
    place = cut(repr(mismatch.path), wording.PLACE) if mismatch is not None else "nothing"
    return f"  nearest recorded call: #{at} {describe(incoming.kind, incoming.name)}, differing at {place}"


def _public(leaf: Any) -> Any:
    if leaf is ABSENT:
        return None
    value: Plain = leaf
    try:
        return look(value)
    except BadValue:
        return value
