"""``stepfork replay``: runs a recorded entrypoint against its cassette. Knows the steps; judges nothing."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Any

import click

from stepfork.api import Session, install
from stepfork.cassette.frame import Header
from stepfork.cassette.store import StoredCassette
from stepfork.cli import output
from stepfork.cli.entrypoint import Arguments, Reference, check_own, load, specs, working_directory_first
from stepfork.cli.faults import FAILED, FINE, own_fault, users_traceback
from stepfork.cli.files import cassette_at, open_cassette, read_expectation
from stepfork.cli.settings import given_options, settings_options
from stepfork.core.redaction import Redactor
from stepfork.errors import ConfigError, ReplayMismatchError
from stepfork.report.answers import answers_of
from stepfork.report.replay_report import Happened, Report, judge, report_json, report_text
from stepfork.report.tally import unchecked_text
from stepfork.session.config import project_root
from stepfork.session.faults import Hints, incomplete, record_command, shown
from stepfork.session.modes import REPLAYING
from stepfork.session.run import Run
from stepfork.session.workspace import workspace


@click.command()
@click.argument("file")
@click.option("--entrypoint", metavar="MODULE:FUNCTION", help="Run this one and not the recorded one.")
@click.option(
    "--mode",
    type=click.Choice(REPLAYING),
    default="replay",
    help="replay (the default); hybrid: the LLM calls that --live names are sent, all else is frozen.",
)
@click.option("--env", multiple=True, metavar="NAME", help="Apply this recorded variable. Repeatable.")
@click.option("--expect-output", metavar="FILE", help="JSON that the output must hold.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@settings_options
def replay(
    file: str,
    entrypoint: str | None,
    mode: str,
    env: tuple[str, ...],
    expect_output: str | None,
    as_json: bool,
) -> int:
    """Run the recorded entrypoint again, every call answered from FILE.

    No tool body runs and nothing is sent. Exit code 0 if the calls are the recorded ones and the output
    equals the expectation, else the recorded output; also if a recorded failure comes back alike
    (REPRODUCED). Exit code 1 if anything differs.

    With --mode hybrid the LLM calls that --live names (llm, llm:MODEL; all, if it is left out) are really
    sent and may ask something else. Tools stay frozen and FILE is left as it is.
    """
    if mode != "hybrid" and "live" in workspace.options:
        raise ConfigError(f"--live: nothing is live in mode {mode!r}; it needs --mode hybrid")
    working_directory_first()
    path = cassette_at(file)
    where = shown(path)
    cassette = open_cassette(path, of_today=True)
    expected = None if expect_output is None else read_expectation(expect_output, "--expect-output")
    reference, own_root = entrypoint_of(cassette, entrypoint, where)
    arguments = Arguments.of(cassette.entrypoint_args(), f"{where}: args")
    _apply(env, cassette.header, where)
    settings = workspace.settings()
    # to the end of the process: a thread that outlives the entrypoint must not go live either
    tools = (*settings.tools, *cassette.header.tools)
    install(replace(settings, mode="replay", tools=tools, exclude=(*settings.exclude, str(reference))))
    session = Session(
        path,
        {"exclude": (*settings.exclude, str(reference))},
        source="stepfork replay",
        fixed_mode=mode,
        hints=Hints(
            record=record_command(
                replace(cassette.header, entrypoint=str(reference)),
                where,
                given_options(leave_out=("live", *(("tools",) if cassette.header.tools else ()))),
            )
        ),
    )
    with output.stdout_is_stderr() if as_json else nullcontext():
        happened, redactor = _run(session, reference, own_root, arguments)
    if refused := incomplete(cassette.end):
        happened = replace(happened, notes=(*happened.notes, redactor.redact_text(refused)))
    report = judge(
        happened,
        cassette.end,
        expected,
        has_expectation=expect_output is not None,
        past_failure=settings.past_failure,
        redactor=redactor,
        rules=settings.volatile(),
    )
    _show(report, where, reference, cassette, redactor, as_json=as_json)
    return FAILED if report.verdict == "DIFFERS" else FINE


def entrypoint_of(cassette: StoredCassette, given: str | None, where: str) -> tuple[Reference, Path | None]:
    """The entrypoint to run, and the root it must lie under if the cassette and not the user named it.

    Raises:
        ConfigError: if there is none, or if the recorded one is not the project's own.
    """
    if given is not None:
        reference = Reference.parse(given)
        specs(reference)
        return reference, None
    if cassette.header.entrypoint is None:
        raise ConfigError(f"{where} names no entrypoint; pass --entrypoint MODULE:FUNCTION")
    reference = Reference.parse(cassette.header.entrypoint)
    root = project_root(Path.cwd())
    check_own(reference, root)
    return reference, root


def _apply(names: tuple[str, ...], header: Header, where: str) -> None:
    for name in names:
        if name not in header.env:
            known = f"it has {', '.join(header.env)}" if header.env else "none was recorded"
            raise ConfigError(f"--env {name}: {where} holds no such variable; {known}")
        os.environ[name] = header.env[name]


def _run(
    session: Session,
    reference: Reference,
    own_root: Path | None,
    arguments: Arguments,
) -> tuple[Happened, Redactor]:
    """Runs the entrypoint in the session; its module is imported there too, so that it needs no key.

    Gives what happened, and what replaces the secrets that came up.
    """
    run = session.__enter__()
    try:
        loaded = load(reference, own_root=own_root)
        loaded.check(arguments)
    except BaseException:
        session.finish(ending="abandoned")
        raise
    value: Any = None
    error: BaseException | None = None
    try:
        value = loaded.call(arguments)
    except BaseException as raised:
        error = raised
    returned = error is None
    try:
        if session.finish(error):
            error = None
    except Exception as raised:
        error = raised
    return _happened(run, value, error, returned=returned), run.redactor


def _happened(run: Run, value: Any, error: BaseException | None, *, returned: bool) -> Happened:
    ours = None if error is None else own_fault(error)
    mismatch = ours if isinstance(ours, ReplayMismatchError) else None
    if ours is not None and mismatch is None:
        raise ours
    if isinstance(error, SystemExit) and error.code in (None, 0):
        error = None
    return Happened(
        counts=run.counts,
        returned=returned,
        output=value,
        error=None if mismatch else error,
        mismatch=mismatch,
        went_past=run.went_past,
        missing=run.missing,
        answers=answers_of(run),
        spending=run.spending,
        notes=(*([run.note] if run.note else []), *starmap(unchecked_text, run.unchecked.items())),
        classes=run.classes,
    )


def _show(
    report: Report,
    where: str,
    reference: Reference,
    cassette: StoredCassette,
    redactor: Redactor,
    *,
    as_json: bool,
) -> None:
    error = report.happened.error
    if error is not None and report.verdict == "DIFFERS":
        output.complain(users_traceback(error, redactor))
    if report.fault:
        output.complain(report.fault)
    if as_json:
        output.show_json(report_json(report, where, str(reference), cassette.end))
    else:
        output.show(report_text(report, where, str(reference)))
