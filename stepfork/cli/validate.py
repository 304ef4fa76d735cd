"""``stepfork validate``: every fault of every file. Knows exit codes, and that files are cassettes."""

from __future__ import annotations

from typing import Final

import click

from stepfork.cassette.integrity import SEAL
from stepfork.cli import output
from stepfork.cli.faults import BAD_INPUT, FAILED, FINE, NOTHING_TO_VERIFY
from stepfork.cli.files import cassette_at
from stepfork.cli.settings import settings_options
from stepfork.session.faults import shown
from stepfork.session.workspace import workspace

_WORST_LAST: Final = (FINE, NOTHING_TO_VERIFY, FAILED, BAD_INPUT)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--verify-integrity", is_flag=True, help="Insist on a checksum, whatever `integrity` says.")
@settings_options
def validate(files: tuple[str, ...], verify_integrity: bool) -> int:
    """Read every document of every FILE and list all faults.

    Exit code 0 if all is well; 2 if a file cannot be read as a cassette; 1 if a checksum is wrong; 3 with
    --verify-integrity if a file has no checksum. Of several files the worst counts: 2, then 1, then 3.
    """
    return max((_check(file, verify_integrity) for file in files), key=_WORST_LAST.index)


def _check(file: str, verify_integrity: bool) -> int:
    from stepfork.cassette.check import faults_of

    path = cassette_at(file)
    where = shown(path)
    try:
        cassette, faults = faults_of(path)
    except FileNotFoundError:
        output.complain(f"{where}: there is no such file")
        return BAD_INPUT
    for fault in faults:
        output.complain(str(fault).replace(str(path), where, 1))
    if cassette is None or faults:
        return BAD_INPUT
    wanted = verify_integrity or workspace.settings().integrity != "off"
    calls = f"{len(cassette.tops)} call{'' if len(cassette.tops) == 1 else 's'}"
    if cassette.verdict == "differs" and wanted:
        output.complain(
            f"{where}: the checksum is wrong: the file was changed since it was recorded; "
            f"once the change is reviewed: {SEAL} {where}"
        )
        return FAILED
    if cassette.verdict == "absent" and verify_integrity:
        output.complain(f"{where}: there is no checksum to verify")
        return NOTHING_TO_VERIFY
    for sentence in cassette.warnings if cassette.end is None else ():
        output.complain(f"warning: {sentence}")
    state = cassette.status if cassette.verdict == "ok" else f"{cassette.status}, no valid checksum"
    output.show(f"{where}: ok ({calls}, {state})")
    return FINE
