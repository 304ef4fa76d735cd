"""``stepfork prune``: deletes the cassettes that no test used. Knows what the last full run left behind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from stepfork.cli import output
from stepfork.cli.faults import FINE
from stepfork.cli.settings import settings_options
from stepfork.errors import ConfigError
from stepfork.session.faults import shown

_LIST: Final = Path(".pytest_cache/v/stepfork/unused")


@click.command()
@click.option("--yes", is_flag=True, help="Delete without asking.")
@settings_options
def prune(yes: bool) -> int:
    """Delete the cassettes that no test used in the last full run of pytest, after asking."""
    found = _found()
    folder, files = _read(found)
    unused = list(_still_unused(files, folder, found.stat().st_mtime))
    if not unused:
        output.show("nothing to delete: every cassette was used, or is new since the last full run of pytest")
        return FINE
    for path in unused:
        output.show(shown(path))
    number = "this cassette" if len(unused) == 1 else f"these {len(unused)} cassettes"
    if not yes and not click.confirm(f"Delete {number}?"):
        output.show("nothing was deleted")
        return FINE
    for path in unused:
        path.unlink(missing_ok=True)
        _remove_empty(path.parent, folder)
    output.show(f"deleted {len(unused)}")
    return FINE


def _found() -> Path:
    """What the last full run of pytest left, here or in a folder above."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / _LIST).is_file():
            return folder / _LIST
    raise ConfigError(
        "which cassettes are unused is known after a full run; run all tests first: pytest (with its cache)"
    )


def _read(found: Path) -> tuple[Path, list[Path]]:
    """The cassette folder and the files in it that were unused."""
    again = "run all tests again: pytest"
    try:
        left = json.loads(found.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{shown(found)} cannot be read ({error}); {again}") from None
    match left:
        case {"folder": str(folder), "files": [*files]} if all(isinstance(file, str) for file in files):
            return Path(folder).resolve(), [Path(file) for file in files]
    raise ConfigError(f"{shown(found)} is no list of cassettes; {again}")


def _still_unused(paths: Iterable[Path], folder: Path, since: float) -> Iterable[Path]:
    """Those that are there as the run saw them; nothing outside the cassette folder is touched."""
    for path in paths:
        if path.suffix != ".yaml" or not path.resolve().is_relative_to(folder) or not path.is_file():
            continue
        if path.stat().st_mtime > since:
            output.complain(f"{shown(path)}: left alone: it was changed since the last full run of pytest")
        else:
            yield path


def _remove_empty(folder: Path, top: Path) -> None:
    """Removes folders that hold nothing any more, up to the cassette folder."""
    with suppress(OSError):
        while folder.resolve() != top and folder.resolve().is_relative_to(top):
            folder.rmdir()
            folder = folder.parent
