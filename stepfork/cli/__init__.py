"""The command line: the list of commands, and one place where errors become messages and exit codes.

Knows no cassette and no session; each command has a file of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from stepfork.cli import adopt, export, inspect, output, prune, record, replay, seal, validate
from stepfork.cli.faults import BAD_INPUT, FAILED, message, status_of
from stepfork.errors import StepforkError

_EXIT_CODES = (
    "Exit codes: 0 fine; 1 the behaviour differs or a check failed; 2 bad input; 3 nothing to verify."
)


@click.group(
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    no_args_is_help=False,
)
@click.version_option(package_name="stepfork", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Record one failing run of an agent, fix the code, keep the failure as a test that runs offline."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(BAD_INPUT)


for _command in (
    record.record,
    replay.replay,
    inspect.inspect,
    validate.validate,
    export.export,
    adopt.adopt,
    seal.seal,
    prune.prune,
):
    commands.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command and exits with its code."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # recorded text may hold what the terminal's encoding lacks
            reconfigure(errors="backslashreplace")
    if sys.stdout is None:  # closed by the shell: what is printed goes nowhere, the exit code says it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
    try:
        status = commands.main(arguments, prog_name="stepfork", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        _complain(error.format_message())
        status = BAD_INPUT
    except click.Abort:
        _complain("interrupted")
        status = FAILED
    except StepforkError as error:
        output.complain(message(error))
        status = status_of(error)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = FAILED
    except OSError as error:  # a full disk, or a device that takes nothing
        _complain(f"the output cannot be written: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = BAD_INPUT
    sys.exit(status if isinstance(status, int) else 0)


def _complain(text: str) -> None:
    output.complain(f"error: {' '.join(text.split())}")
