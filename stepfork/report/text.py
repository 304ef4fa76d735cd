"""Recorded calls and cassettes as text for people. Pure: objects -> text; knows no terminal and no file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from stepfork.cassette.frame import End, Header
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.stream import calls_of, text_of
from stepfork.core.model import Plain, Recorded, Tagged, describe
from stepfork.core.wording import spell
from stepfork.report.calls import Numbered, Secret, counted, error_text, hidden_calls
from stepfork.report.tally import unchecked_text

_WIDTH: Final = 100  # characters of a call's question or answer at a glance
_DEEPEST: Final = 20  # levels of calls inside of each other that are shown by indenting them


def overview(
    shown_path: str,
    cassette: StoredCassette,
    calls: Sequence[Numbered],
    shown: Sequence[Numbered],
    secrets: Sequence[Secret],
) -> str:
    """A cassette at a glance; `shown` are the calls to be listed."""
    header, end = cassette.header, cassette.end
    rows = [("file", shown_path), ("status", status_text(end)), *_header_rows(header)]
    rows += [("integrity", INTEGRITY[cassette.verdict]), ("calls", counted(calls))]
    lines = [_line(header.name), *(f"  {name:<11} {value}" for name, value in rows), ""]
    lines += calls_text(shown).splitlines()
    lines += [f"  {unchecked_text(name, number)}" for name, number in hidden_calls(calls).items()]
    if len(shown) < len(calls):
        lines.append(f"  ({len(calls) - len(shown)} more without an error)")
    lines += ["", *_end_lines(end), *_secret_lines(secrets)]
    return "\n".join(lines).rstrip()


INTEGRITY: Final = {
    "ok": "ok",
    "absent": "no checksum",
    "differs": "the file was changed since it was recorded",
}


def status_text(end: End | None) -> str:
    """How a recording ended, in words.

    >>> status_text(None)
    'partial: the recording was cut off'
    """
    if end is None:
        return "partial: the recording was cut off"
    if end.test:
        return f"{end.status}, but its test failed"
    return end.status


def _header_rows(header: Header) -> Iterator[tuple[str, str]]:
    if header.entrypoint:
        yield "entrypoint", _line(header.entrypoint) + (f" {_cut(spell(header.args))}" if header.args else "")
    if header.env:
        yield "env", ", ".join(map(_line, header.env))
    if header.tools:
        yield "tools", ", ".join(map(_line, header.tools))
    if header.recorded_at:
        yield "recorded", _line(header.recorded_at)


def _end_lines(end: End | None) -> Iterator[str]:
    if end is not None and end.has_output:
        yield f"output  {_cut(spell(end.output), 400)}"
    if end is not None and end.error is not None:
        yield f"raised  {_cut(error_text(end.error), 400)}"


def _secret_lines(secrets: Sequence[Secret]) -> Iterator[str]:
    if secrets:
        yield f"secrets replaced: {len(secrets)}"
    for secret in secrets:
        times = "once" if secret.count == 1 else f"{secret.count} times"
        yield f"  {secret.placeholder} {times}, first in {secret.first}"


def calls_text(calls: Iterable[Numbered]) -> str:
    """The calls as a compact tree: two lines a call, what was asked and what came of it."""
    lines = []
    for call in calls:
        for recorded in call.calls:
            number = f"#{call.number}" if recorded.depth == 0 else ""
            indent = _indent(recorded)
            lines.append(f"  {number:<3} {indent}{question(recorded)}")
            lines.append(f"      {indent}  {answer(recorded)}")
    return "\n".join(lines)


def _indent(recorded: Recorded) -> str:
    """Blanks before a call by how deep it is nested; a number where they would only fill the page."""
    depth = recorded.depth
    return "    " * depth if depth <= _DEEPEST else f"{'    ' * _DEEPEST}({depth} deep) "


def question(recorded: Recorded) -> str:
    """What a call asked, in one short line."""
    call = recorded.call
    what = f"{call.kind} {_line(call.name)}"
    if call.kind == "llm" and isinstance(call.args, dict):
        return f"{what} {_cut(_request(call.args))}".rstrip()
    return f"{what} {_cut(spell(call.args))}" if call.args else what


def answer(recorded: Recorded) -> str:
    """What came of a call, in one short line."""
    outcome = recorded.outcome
    if recorded.unfinished:
        return "unfinished: it was still running when the recording ended"
    if "yields" in outcome:
        return _generator(outcome)
    if outcome.get("cancelled"):
        return "cancelled"
    if "error" in outcome:
        return f"raised {_cut(error_text(outcome['error']))}"
    status = f"status {spell(outcome['status'])} " if "status" in outcome else ""
    if "result" in outcome:
        return f"-> {_cut(spell(outcome['result']))}"
    return f"-> {status}{_cut(_response(outcome))}"


def _generator(outcome: dict[str, Plain]) -> str:
    """What a generator yielded, and how it ended if it did not just come to its end."""
    end = ""
    if "error" in outcome:
        end = f", then raised {_cut(error_text(outcome['error']))}"
    elif "result" in outcome:
        end = f", then returned {_cut(spell(outcome['result']))}"
    elif "cancelled" in outcome or "closed" in outcome:
        end = f", then {'cancelled' if 'cancelled' in outcome else 'closed'}"
    return f"-> yielded {_cut(spell(outcome['yields']))}{end}"


def _request(request: dict[str, Plain]) -> str:
    parts = [spell(request["model"]).strip('"')] if "model" in request else []
    messages = request.get("messages", request.get("input"))
    if isinstance(messages, list) and messages:
        last = messages[-1]
        parts.append(f"{len(messages)} message{'s' if len(messages) > 1 else ''}")
        if isinstance(last, dict):
            parts.append(f"last {_line(str(last.get('role', '')))}: {spell(last.get('content'))}")
    elif messages is not None:
        parts.append(spell(messages))
    return ", ".join(parts)


def _response(outcome: dict[str, Plain]) -> str:
    if "stream" in outcome:
        return f"stream {_stream(outcome['stream'])}"
    if "response" not in outcome:
        return spell(outcome.get("text", outcome.get("body")))
    response = outcome["response"]
    try:
        message = response["choices"][0]["message"]  # type: ignore[index, call-overload]
        calls = message.get("tool_calls") or ()  # type: ignore[union-attr]
        said = [spell(message["content"])] if message.get("content") else []  # type: ignore[index, union-attr, call-overload]
        said += [_line(f"{call['function']['name']}({call['function']['arguments']})") for call in calls]  # type: ignore[index, call-overload, union-attr]
        return ", ".join(said) or spell(response)
    except (LookupError, TypeError, AttributeError):
        return spell(response)


def _stream(stream: Any) -> str:
    """What a recorded event stream says: its text, the calls it asks for."""
    text = text_of(stream)
    said = [spell(text)] if text else []
    said += [_line(f"{name}({arguments})") for name, arguments in calls_of(stream)]
    return ", ".join(said) or spell(stream.get("raw", ""))


def _cut(text: str, width: int = _WIDTH) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _line(text: str) -> str:
    """A name as one printable line, whatever it holds."""
    return text if text.isprintable() else spell(text)[1:-1]


# -- one call in full -------------------------------------------------------------------------------


def call_in_full(call: Numbered) -> str:
    """One call with everything that is recorded of it, and of the calls inside it."""
    blocks = []
    for recorded in call.calls:
        title = describe(recorded.call.kind, recorded.call.name)
        lines = [f"#{call.number} {title}" if recorded.depth == 0 else f"inside it: {title}"]
        lines += _field("args" if recorded.call.kind == "tool" else "request", recorded.call.args)
        for name, value in (recorded.call.target | recorded.outcome).items():
            lines += _field(name, value)
        if recorded.unfinished:
            lines.append("unfinished: it was still running when the recording ended")
        indent = _indent(recorded)
        blocks.append("\n".join(indent + line for line in lines))
    return "\n\n".join(blocks)


def _field(name: str, value: Plain) -> list[str]:
    lines = [f"{name}:"]
    _tree(value, "  ", lines)
    return lines


def _tree(value: Plain, indent: str, lines: list[str]) -> None:
    """A value over as many lines as it needs: texts as they read, containers item by item."""
    if isinstance(value, Tagged):
        lines.append(f"{indent}!{value.tag}")
        _tree(value.value, indent + "  ", lines)
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            _entry(f"{indent}{_line(key)}:", item, indent, lines)
    elif isinstance(value, list) and value:
        for item in value:
            _entry(f"{indent}-", item, indent, lines)
    elif isinstance(value, str) and "\n" in value:
        lines.extend(indent + _line(line) for line in value.split("\n"))
    else:
        lines.append(indent + spell(value))


def _entry(head: str, value: Plain, indent: str, lines: list[str]) -> None:
    if isinstance(value, str) and "\n" in value:
        lines.append(f"{head} |")
    elif isinstance(value, Tagged | dict | list) and value:
        lines.append(head)
    else:
        lines.append(f"{head} {spell(value)}")
        return
    _tree(value, indent + "  ", lines)
