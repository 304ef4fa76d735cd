"""Where a command's words go: stdout for results, stderr for faults. Knows streams, no cassette."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from stepfork.errors import visible
from stepfork.report.as_json import json_text
from stepfork.report.colour import in_colour


def show(text: str) -> None:
    """Prints a result for people: coloured on a terminal, plain when piped."""
    text = visible(text)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.highlighter import ReprHighlighter
        from rich.text import Text

        Console().print(ReprHighlighter()(Text(text)), soft_wrap=True)
    else:
        click.echo(text)


def complain(text: str) -> None:
    """Prints a fault: its leaves in colour on a terminal."""
    text = visible(text)
    if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        text = "\n".join(map(in_colour, text.split("\n")))
    click.echo(text, err=True)


def show_json(document: Any) -> None:
    """Prints a result for programs."""
    click.echo(json_text(document))


@contextlib.contextmanager
def stdout_is_stderr() -> Iterator[None]:
    """Whatever the block prints, in Python or below it, goes to stderr, so that stdout stays clean."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no such descriptor: only what Python prints can be led elsewhere
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    os.dup2(2, 1)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, OSError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
