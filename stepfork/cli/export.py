"""``stepfork export``: a recording becomes a pytest test. Knows paths and the entrypoint, no source."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

import click

from stepfork.api import Session
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.values import Unsupported, encode
from stepfork.cli import output
from stepfork.cli.entrypoint import (
    Arguments,
    Entrypoint,
    Reference,
    import_folder,
    load,
    working_directory_first,
)
from stepfork.cli.faults import FINE
from stepfork.cli.files import cassette_at, open_cassette, read_expectation
from stepfork.cli.replay import entrypoint_of
from stepfork.cli.settings import settings_options
from stepfork.core.masking import placed
from stepfork.core.model import Plain
from stepfork.core.redaction import Redactor
from stepfork.errors import ConfigError
from stepfork.report.calls import error_text
from stepfork.report.export_pytest import Expectation, Plan, source_of_test
from stepfork.report.python_source import has_source
from stepfork.session.expected_trajectory import ExpectedTrajectory
from stepfork.session.faults import incomplete, shown
from stepfork.session.workspace import workspace

_INTERRUPT: Final = "builtins:KeyboardInterrupt"


@click.command()
@click.argument("file")
@click.option(
    "--pytest", "for_pytest", is_flag=True, help="Write a pytest test. (There is no other kind yet.)"
)
@click.option("--entrypoint", metavar="MODULE:FUNCTION", help="Call this one and not the recorded one.")
@click.option("--expect-output", metavar="FILE", help="JSON that the output must hold.")
@click.option("--expect-trajectory", metavar="FILE", help="JSON of rules that the calls must keep.")
@click.option("--output", "target", metavar="FILE", help="The test to write; stdout if it is left out.")
@click.option("--overwrite", is_flag=True, help="Replace the test if it exists.")
@settings_options
def export(
    file: str,
    for_pytest: bool,
    entrypoint: str | None,
    expect_output: str | None,
    expect_trajectory: str | None,
    target: str | None,
    overwrite: bool,
) -> int:
    """Write a test that replays FILE and asserts what should come out.

    It asserts what --expect-output and --expect-trajectory say (called, not_called, counts, arguments, order,
    sequence, strict_sequence, max_steps); without either, the recorded output. For a run that failed it
    asserts that the run no longer raises; where only its recording failed (RecordingError), --expect-output
    must say what should come out. Paths in the test are relative to it; without --output, to the
    working directory.
    """
    if not for_pytest:
        raise ConfigError("say what to write: --pytest")
    working_directory_first()
    path = cassette_at(file)
    where = shown(path)
    test = None if target is None else Path.cwd() / target
    if test is not None:
        _check_target(test, path, overwrite=overwrite)
    cassette = open_cassette(path)
    for problem in cassette.problems():  # a test of what cannot be read would only say so later
        raise problem
    expected = None if expect_output is None else read_expectation(expect_output, "--expect-output")
    trajectory = _trajectory(expect_trajectory)
    if expect_output is None and (refused := incomplete(cassette.end)):
        mend = "when that is mended, record again; or say what should come out: --expect-output"
        raise ConfigError(f"{where}: {refused}; {mend}")
    reference, own_root = entrypoint_of(cassette, entrypoint, where)
    with output.stdout_is_stderr():
        loaded = _load(path, reference, own_root)
    loaded.check(Arguments.of(cassette.entrypoint_args(), f"{where}: args"))
    folder = Path.cwd() if test is None else test.parent
    plan = _plan(cassette, loaded, folder, _plain(expected, expect_output), trajectory)
    source = source_of_test(plan)
    if expect_output is None and not trajectory:
        output.complain(_warning(cassette, where))
    if test is None:
        click.echo(source, nl=False)
    else:
        _write(test, source, overwrite=overwrite)
        output.show(f"wrote {shown(test)}; run it: pytest {shown(test)}")
    return FINE


def _load(path: Path, reference: Reference, own_root: Path | None) -> Entrypoint:
    """Imports the entrypoint as the test will: while replaying, so that it needs no key and sends nothing."""
    session = Session(path, {}, source="stepfork export", fixed_mode="replay")
    session.__enter__()
    try:
        return load(reference, own_root=own_root)
    finally:
        session.finish(ending="abandoned")


def _plain(expected: object, source: str | None) -> Expectation | None:
    if source is None:
        return None
    try:
        value = encode(expected, "value")
    except Unsupported as problem:
        raise ConfigError(f"--expect-output {source}: {problem}") from None
    if not has_source(value):
        raise ConfigError(f"--expect-output {source}: it is nested too deep to be written into a test")
    return Expectation(value)


def _trajectory(file: str | None) -> dict[str, Plain]:
    """The checked rules of an ``--expect-trajectory`` file."""
    if file is None:
        return {}
    rules = read_expectation(file, "--expect-trajectory")
    ExpectedTrajectory.of(rules, f"--expect-trajectory {file}")
    plain: dict[str, Plain] = rules
    return plain


def _plan(
    cassette: StoredCassette,
    entry: Entrypoint,
    folder: Path,
    expected: Expectation | None,
    trajectory: dict[str, Plain],
) -> Plan:
    settings = workspace.settings()
    redactor = Redactor(settings.rules())
    header, end, reference = cassette.header, cassette.end, entry.reference
    asked_for = expected is not None or bool(trajectory)
    if not asked_for and cassette.status == "completed" and end is not None and end.has_output:
        expected = Expectation(end.output, exact=True, recorded=True)
    elif expected is not None and end is not None:
        expected = replace(expected, value=placed(end.output, expected.value))
    if expected is not None:
        expected = replace(expected, value=redactor.redact(expected.value))
    home = import_folder(reference)
    return Plan(
        name=redactor.redact_text(header.name),
        cassette=_from(folder, cassette.path),
        module=reference.module,
        function=reference.function,
        is_async=entry.is_async,
        args=redactor.redact(header.args),
        ending="completed" if incomplete(end) else cassette.status,
        incomplete=redactor.redact_text(incomplete(end)),
        interrupted=end is not None and end.error is not None and end.error["class"] == _INTERRUPT,
        error="" if end is None or end.error is None else redactor.redact_text(error_text(end.error)),
        expectation=expected,
        trajectory={name: redactor.redact(rule) for name, rule in trajectory.items()},
        sys_path=None if home is None else _from(folder, home),
        exclude=_exclude(reference, (*header.tools, *settings.tools), settings.exclude),
    )


def _exclude(reference: Reference, tools: tuple[str, ...], exclude: tuple[str, ...]) -> tuple[str, ...]:
    """What the test must leave out of the tools: what was left out here, and the entrypoint if it is one."""
    from stepfork.instrument.tool_patterns import parse_pattern

    covered = any(parse_pattern(pattern).matches_module(reference.module) for pattern in tools)
    return (*exclude, str(reference)) if covered else exclude


def _from(folder: Path, path: Path) -> PurePosixPath:
    """A path from a folder on."""
    try:
        relative = os.path.relpath(path.resolve(), folder.resolve())
    except ValueError:
        raise ConfigError(f"{path} and the test must be on the same drive") from None
    return PurePosixPath(Path(relative).as_posix())


def _warning(cassette: StoredCassette, where: str) -> str:
    if cassette.status != "completed":
        return f"note: {where} holds a run that {_how(cassette)}; the test asserts that it no longer raises"
    return "warning: without --expect-output the test asserts the recorded behaviour, right or wrong"


def _how(cassette: StoredCassette) -> str:
    return "was cut off" if cassette.end is None else "failed"


def _check_target(test: Path, cassette: Path, *, overwrite: bool) -> None:
    if test.resolve() == cassette.resolve():
        raise ConfigError(f"--output {shown(test)}: that is the cassette")
    if test.exists() and not overwrite:
        raise ConfigError(f"{shown(test)} exists; pass --overwrite to replace it")
    if test.is_dir():
        raise ConfigError(f"--output {shown(test)}: is a folder")


def _write(test: Path, source: str, *, overwrite: bool) -> None:
    """Writes the whole file or nothing."""
    try:
        test.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{test.name}.", suffix=".new", dir=test.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(source)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
            if overwrite:
                os.replace(name, test)
            else:
                os.link(name, test)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)
    except FileExistsError:
        raise ConfigError(f"{shown(test)} exists; pass --overwrite to replace it") from None
    except OSError as error:
        raise ConfigError(f"{shown(test)} cannot be written: {error.strerror or error}") from None
