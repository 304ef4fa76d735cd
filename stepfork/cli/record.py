"""``stepfork record``: runs an entrypoint live and records it. Knows the steps; the rooms do the work."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click

from stepfork.api import Session
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.values import Unsupported, encode
from stepfork.cli import output
from stepfork.cli.entrypoint import Arguments, Reference, load, specs, working_directory_first
from stepfork.cli.faults import FAILED, FINE, message, one_line, own_fault, status_of, users_traceback
from stepfork.cli.files import cassette_at, parse_json, warn
from stepfork.cli.settings import settings_options
from stepfork.core.redaction import Redactor
from stepfork.errors import ConfigError
from stepfork.report.calls import counted, numbered
from stepfork.report.text import calls_text
from stepfork.session.faults import shown
from stepfork.session.run import Recipe, Run
from stepfork.session.workspace import workspace


@click.command()
@click.argument("entrypoint", metavar="MODULE:FUNCTION")
@click.option("--args", "args_json", metavar="JSON", help="An object: named arguments; an array: positional.")
@click.option("--env", multiple=True, metavar="NAME", help="An environment variable to record. Repeatable.")
@click.option("-o", "--output", "target", required=True, metavar="FILE", help="The cassette to write.")
@settings_options
def record(entrypoint: str, args_json: str | None, env: tuple[str, ...], target: str) -> int:
    """Run MODULE:FUNCTION live and record what it calls and what comes out.

    The run is stored with its arguments, the variables named with --env and its output. If it raises,
    the exit code is 1 and what was recorded is kept; it never takes the place of a completed recording.
    """
    working_directory_first()
    reference = Reference.parse(entrypoint)
    specs(reference)
    args = None if args_json is None else parse_json(args_json, "--args")
    arguments = Arguments.of(args, "--args")
    recipe = Recipe(str(reference), _plain(args), {name: _variable(name) for name in env})
    path = cassette_at(target)
    settings = workspace.settings()
    session = Session(
        path,
        {"exclude": (*settings.exclude, str(reference))},
        source="stepfork record",
        fixed_mode="record",
        recipe=recipe,
    )
    warn()
    run = session.__enter__()
    try:
        loaded = load(reference)
        loaded.check(arguments)
    except BaseException:
        session.finish(ending="abandoned")
        raise
    ended_by: BaseException | None = None
    try:
        run.set_output(loaded.call(arguments))
    except BaseException as error:
        ended_by = error
    try:
        session.finish(ended_by)
    except Exception as error:
        ended_by = error
    _say_where(run, path)
    return _status(ended_by, reference, run.redactor)


def _plain(args: Any) -> Any:
    try:
        return encode(args, "--args")
    except Unsupported as problem:
        raise ConfigError(f"--args: {problem}") from None


def _variable(name: str) -> str:
    if name not in os.environ:
        raise ConfigError(f"--env {name}: there is no such environment variable")
    return os.environ[name]


def _say_where(run: Run, path: Path) -> None:
    written = run.written
    if written is None:
        return
    cassette = StoredCassette(written.path)
    calls = numbered(cassette)
    where = shown(written.path)
    lines = [f"recorded {counted(calls)} to {where}"]
    if calls:
        lines.append(calls_text(calls))
    elif not cassette.header.tools:
        lines.append("no tools were named: --tools MODULE records the calls of that module's functions")
    if written.unchanged:
        lines.append(f"nothing changed since the last recording, so {where} was left as it is")
    if written.kept is not None:
        lines.append(f"the completed recording {shown(written.kept)} was kept as it is")
        lines.append(f"to put the new one in its place: stepfork adopt {shlex.quote(where)}")
    if calls or cassette.header.tools:
        lines.append(f"next: stepfork replay {shlex.quote(where)}")
        lines.append(
            f"      stepfork export {shlex.quote(where)} --pytest --output tests/test_{_slug(path)}.py"
        )
    output.show("\n".join(lines))


def _slug(path: Path) -> str:
    stem = path.name.partition(".")[0]
    return "".join(character if character.isalnum() else "_" for character in stem)


def _status(error: BaseException | None, reference: Reference, redactor: Redactor) -> int:
    """The exit code, after what there is to say of an error was said on stderr."""
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return FINE
    ours = own_fault(error)
    if ours is not None:
        output.complain(message(ours))
        return status_of(ours)
    output.complain(users_traceback(error, redactor))
    output.complain(redactor.redact_text(f"error: {reference} raised {one_line(error)}"))
    return FAILED
