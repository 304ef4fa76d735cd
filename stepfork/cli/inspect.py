"""``stepfork inspect``: a cassette at a glance, or one call of it in full. Knows options, renders nothing."""

from __future__ import annotations

import click

from stepfork.cli import output
from stepfork.cli.faults import FINE
from stepfork.cli.files import cassette_at, open_cassette
from stepfork.cli.settings import settings_options
from stepfork.errors import ConfigError
from stepfork.report.as_json import call_json, overview_json
from stepfork.report.calls import numbered, secrets_of
from stepfork.report.text import call_in_full, overview
from stepfork.session.faults import shown


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--call", "number", type=int, metavar="N", help="Show call N in full, counted from 1.")
@click.option("--errors-only", is_flag=True, help="List only calls that failed.")
@settings_options
def inspect(file: str, as_json: bool, number: int | None, errors_only: bool) -> int:
    """Show what is recorded in FILE: how the run ended, its calls, its output, what was redacted.

    Partial and failed recordings are shown as well.
    """
    path = cassette_at(file)
    cassette = open_cassette(path)
    calls = numbered(cassette)
    if number is not None:
        if not 1 <= number <= len(calls):
            raise ConfigError(f"--call {number}: {shown(path)} holds calls 1 to {len(calls)}")
        call = calls[number - 1]
        if as_json:
            output.show_json(call_json(call))
        else:
            output.show(call_in_full(call))
        return FINE
    secrets = secrets_of(cassette, calls)
    listed = [call for call in calls if call.failed] if errors_only else calls
    if as_json:
        output.show_json(overview_json(shown(path), cassette, listed, secrets))
    else:
        output.show(overview(shown(path), cassette, calls, listed, secrets))
    return FINE
