"""``stepfork adopt``: a failed recording takes the cassette's place. Knows the file's name, nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from stepfork.cassette import writer
from stepfork.cassette.store import StoredCassette
from stepfork.cli import output
from stepfork.cli.faults import FINE
from stepfork.cli.files import cassette_at
from stepfork.cli.settings import settings_options
from stepfork.session.faults import Hints, not_found, shown
from stepfork.session.workspace import workspace


@click.command()
@click.argument("file", metavar="FILE.failed.yaml")
@settings_options
def adopt(file: str) -> int:
    """Put a failed recording in the place of the cassette beside it."""
    path = cassette_at(file)
    settings = workspace.settings()
    for place in (path, writer.cassette_of(path)):
        workspace.check_writable(place, settings)
    try:
        cassette = StoredCassette(path)
        if settings.integrity == "error":
            cassette.refuse_changed()
        target = writer.adopt(path)
    except FileNotFoundError:
        raise not_found(Path(shown(path)), Hints()) from None
    if cassette.verdict != "ok" and settings.integrity != "off":
        for sentence in cassette.warnings:
            output.complain(f"warning: {sentence}".replace(str(path), shown(target)))
    output.show(f"{shown(path)} is now {shown(target)}")
    return FINE
