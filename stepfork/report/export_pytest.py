"""A recorded run as a pytest test on the public API alone. Pure: a plan -> source; reads and imports nothing.

What was recorded is data here and never code: it goes into literals, and into comments only as printable
text. The entrypoint is imported under another name inside the test, so that pytest collects nothing of it.
"""

from __future__ import annotations

import ast
import hashlib
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias

from stepfork.core.canonical import canonical_text
from stepfork.core.directories import holds_name
from stepfork.core.model import Plain
from stepfork.core.placeholder_texts import MARK
from stepfork.report.python_source import (
    WIDTH,
    Group,
    Item,
    Source,
    Text,
    columns,
    has_source,
    layout,
    quoted,
    source_of,
)

_SEPARATORS: Final = re.compile(r"[\s_.:/-]+")
_RECORDED: Final = "stepfork.load(CASSETTE).output"
"""For an outcome that no expression gives: it is read from the cassette, once its classes are imported; or
one that names a directory, which is another one on another machine."""
_RECORDED_ARGS: Final = 'stepfork.load(CASSETTE).header["args"]'
_LONGEST: Final = 60  # characters of a test's name
Ending: TypeAlias = Literal["completed", "failed", "partial"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the outcome should be: `exact` where nothing else may be there, `recorded` where it was so."""

    value: Plain
    exact: bool = False
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a test is made of; secrets are replaced already.

    Attributes:
        name: the recording's name.
        cassette: where it lies from the test's folder.
        module, function: the entrypoint.
        is_async: whether calling it gives a coroutine.
        args: what it is called with: names to values, or values in order.
        ending: how the recorded run ended.
        incomplete: why the recording lacks something, if it does; "" if not.
        interrupted: whether it raised KeyboardInterrupt, which would end pytest.
        error: what it raised, as text.
        expectation: what to assert of the outcome; None for nothing.
        trajectory: what to assert of the calls, as `Run.expect_trajectory` takes it.
        sys_path: the folder of the entrypoint's top module from the test's folder, if it is not installed.
        exclude: functions to be left out of the recorded tool patterns.
    """

    name: str
    cassette: PurePosixPath
    module: str
    function: str
    is_async: bool = False
    args: Plain = None
    ending: Ending = "completed"
    incomplete: str = ""
    interrupted: bool = False
    error: str = ""
    expectation: Expectation | None = None
    trajectory: Mapping[str, Plain] = field(default_factory=dict)
    sys_path: PurePosixPath | None = None
    exclude: Sequence[str] = ()


def source_of_test(plan: Plan) -> str:
    r'''The source of the test.

    >>> print(source_of_test(Plan("outage", PurePosixPath("outage.yaml"), "agent", "run")), end="")
    """Replays the recorded run 'outage'; written by `stepfork export`."""
    <BLANKLINE>
    from pathlib import Path
    <BLANKLINE>
    import stepfork
    <BLANKLINE>
    CASSETTE = Path(__file__).parent / "outage.yaml"
    <BLANKLINE>
    <BLANKLINE>
    def test_outage() -> None:
        with stepfork.replay(CASSETTE):
            from agent import run as entrypoint
    <BLANKLINE>
            entrypoint()
    '''
    imports: set[str] = {"from pathlib import Path"}
    body = _body(plan, imports)
    if plan.is_async:
        imports.add("import asyncio")
    if plan.sys_path is not None:
        imports.add("import sys")
    lines = [_docstring(plan), "", *sorted(imports, key=_import_order), "", "import stepfork", ""]
    lines += layout(_below_here(plan.cassette), indent=0, before="CASSETTE = ")
    if plan.sys_path is not None:
        lines += layout(_on_path(plan.sys_path), indent=0)
    lines += ["", "", f"def {function_name(plan.name)}() -> None:", *body]
    source = "\n".join(lines) + "\n"
    ast.parse(source)
    return source


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _docstring(plan: Plan) -> str:
    frame = '"""Replays the recorded run \'{}\'; written by `stepfork export`."""'
    return frame.format(_comment(plan.name, WIDTH + 2 - len(frame)))


def _body(plan: Plan, imports: set[str]) -> list[str]:
    failed = plan.ending != "completed"
    expected = plan.expectation
    lines = [f"    # {line}" for line in _remark(plan)]
    options = [Item("CASSETTE")]
    if failed:
        options.append(Item(Text("stop"), "past_failure="))
    if plan.exclude:
        names = tuple(Item(Text(name)) for name in plan.exclude)
        options.append(Item(Group("[", names, "]"), "exclude="))
    # only the session knows what a placeholder stands for
    inside = MARK in canonical_text([None if expected is None else expected.value, dict(plan.trajectory)])
    only_if = failed and (expected is not None or bool(plan.trajectory)) and not inside
    session = Group("stepfork.replay(", tuple(options), ")")
    holds_run = only_if or bool(plan.trajectory)
    lines += layout(session, indent=4, before="with ", after=" as run:" if holds_run else ":")
    lines += _import(plan)
    call: Source = Group("entrypoint(", _arguments(plan.args, imports), ")")
    if plan.is_async:
        call = Group("asyncio.run(", (Item(call),), ")")
    before = "" if expected is None else "outcome = "
    lines += ["", *(_caught(call, before) if plan.interrupted else layout(call, indent=8, before=before))]
    if only_if:
        lines.append("    if not run.went_past:")
    for check in _checks(plan, imports):
        lines += layout(check, indent=8 if only_if or inside else 4)
    return lines


def _caught(call: Source, before: str) -> list[str]:
    """The call, whose KeyboardInterrupt fails this test and does not end pytest."""
    return [
        "        try:",
        *layout(call, indent=12, before=before),
        "        except KeyboardInterrupt as interrupt:",
        '            raise AssertionError("the run raised KeyboardInterrupt") from interrupt',
    ]


def _checks(plan: Plan, imports: set[str]) -> Iterator[Source]:
    """What is asserted once the run has ended."""
    expected = plan.expectation
    if expected is not None:
        spelled = has_source(expected.value) and not (expected.recorded and holds_name(expected.value))
        value = source_of(expected.value, imports) if spelled else _RECORDED
        items = [Item("outcome"), Item(value)]
        items += [Item("True", "exact=")] if expected.exact else []
        yield Group("stepfork.expect(", tuple(items), ")")
    if plan.trajectory:
        rules = tuple(Item(source_of(rule, imports), f"{name}=") for name, rule in plan.trajectory.items())
        yield Group("run.expect_trajectory(", rules, ")")


def _remark(plan: Plan) -> list[str]:
    """What a reader should know about the recorded run, as comment lines."""
    if plan.incomplete:
        return textwrap.wrap(f"Beware: {_comment(plan.incomplete, 200)}", 78, break_long_words=True)
    if plan.ending == "completed":
        return []
    if plan.ending == "partial":
        what = "The recording was cut off."
    else:
        what = f"When it was recorded, this raised {_comment(plan.error, 200) or 'an error'}."
    return textwrap.wrap(
        f"{what} The test passes once it does not, also if the run then goes on past the recording.",
        78,
        break_long_words=True,
    )


def _import(plan: Plan) -> list[str]:
    if plan.function == "entrypoint":
        return [f"        from {plan.module} import entrypoint"]
    line = f"        from {plan.module} import {plan.function} as entrypoint"
    if columns(line) <= WIDTH:
        return [line]
    start = f"        from {plan.module} import ("
    return [start, f"            {plan.function} as entrypoint,", "        )"]


def _arguments(args: Plain, imports: set[str]) -> tuple[Item, ...]:
    if holds_name(args):
        return (Item(_RECORDED_ARGS, "*" if isinstance(args, list) else "**"),)
    if isinstance(args, list):
        return tuple(Item(source_of(value, imports)) for value in args)
    if not isinstance(args, dict):
        return ()
    named = {key: value for key, value in args.items() if _is_name(key)}
    items = [Item(source_of(value, imports), f"{key}=") for key, value in named.items()]
    others: dict[str, Plain] = {key: value for key, value in args.items() if key not in named}
    if others:
        items.append(Item(source_of(others, imports), "**"))
    return tuple(items)


def _is_name(key: str) -> bool:
    # Python reads identifiers in their NFKC form
    return key.isidentifier() and not keyword.iskeyword(key) and unicodedata.normalize("NFKC", key) == key


def _below_here(path: PurePosixPath) -> Source:
    one = f"Path(__file__).parent / {quoted(str(path))}"
    if len(one) <= 75:
        return one
    parts = tuple(Item(Text(part)) for part in path.parts)
    return Group("Path(__file__).parent.joinpath(", parts, ")")


def _on_path(folder: PurePosixPath) -> Source:
    place = "Path(__file__).parent" if str(folder) == "." else _below_here(folder)
    return Group("sys.path.append(", (Item(Group("str(", (Item(place),), ")")),), ")")


def _comment(text: str, longest: int) -> str:
    """Recorded text as something that can stand in a comment or docstring: one line, printable, no quotes."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(line.replace('"', "'").replace("\\", "/").split())
    if columns(line) <= longest:
        return line
    while columns(line) > longest - 1:
        line = line[:-1]
    return line + "…"


def function_name(name: str) -> str:
    """The name of the test function: an identifier in ASCII, with a suffix where mending lost something.

    >>> function_name("incident-triage"), function_name("1 bad/é class")
    ('test_incident_triage', 'test_1_bad_e_class_90ba8ec8')
    """
    plain = unicodedata.normalize("NFKD", _SEPARATORS.sub("_", name.strip()))
    safe = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"[\u0300-\u036f]", "", plain)).strip("_")
    words = safe.removeprefix("test_")
    if _SEPARATORS.sub("_", name.strip()).strip("_") != safe or len(words) > _LONGEST or not words:
        suffix = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        words = f"{words[: _LONGEST - 9].strip('_')}_{suffix}".strip("_")
    return f"test_{words}"
