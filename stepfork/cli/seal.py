"""``stepfork seal``: a reviewed edit gets its checksum. Knows exit codes; reads and writes nothing itself."""

from __future__ import annotations

from pathlib import Path

import click

from stepfork.cli import output
from stepfork.cli.faults import BAD_INPUT, FINE
from stepfork.cli.files import cassette_at
from stepfork.cli.settings import settings_options
from stepfork.session.faults import Hints, not_found, shown
from stepfork.session.workspace import workspace


@click.command()
@click.argument("file")
@settings_options
def seal(file: str) -> int:
    """Give FILE the checksum that fits it, after an edit that was reviewed.

    Every document is read first: a file with any fault is left alone (exit code 2), and all are listed.
    """
    from stepfork.cassette import sealing
    from stepfork.cassette.check import faults_of

    path = cassette_at(file)
    where = shown(path)
    try:
        cassette, faults = faults_of(path)
    except FileNotFoundError:
        raise not_found(Path(where), Hints()) from None
    for fault in faults:
        output.complain(str(fault).replace(str(path), where, 1))
    if cassette is None or faults:
        return BAD_INPUT
    if cassette.verdict == "ok":
        output.show(f"{where}: nothing to do, the checksum is right")
        return FINE
    workspace.check_writable(path, workspace.settings())
    anew = sealing.seal(cassette)
    calls = f"{len(cassette.tops)} call{'' if len(cassette.tops) == 1 else 's'}"
    more = f"; {anew} document{'' if anew == 1 else 's'} written anew in the usual style" if anew else ""
    output.show(f"{where}: sealed ({calls}, {cassette.status}){more}")
    return FINE
