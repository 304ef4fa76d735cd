"""The files a command names: where a cassette is, opening it, JSON files. Knows paths, runs nothing."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stepfork.cassette.store import StoredCassette
from stepfork.cli import output
from stepfork.cli.settings import given_options
from stepfork.core.directories import AS_THEY_STAND
from stepfork.errors import ConfigError
from stepfork.session.faults import Hints, not_found, shown
from stepfork.session.workspace import workspace


def cassette_at(name: str) -> Path:
    """Where the cassette of that name is, or would be.

    Relative paths start at ``cassette_dir``, else at the working directory; a path from the working
    directory that lies in ``cassette_dir`` already, or that leads to a file where the other does not, is
    taken as it is.
    """
    settings = workspace.settings()
    by_rule = workspace.cassette_path(name, settings)
    plain = Path.cwd() / name
    if settings.cassette_dir is None or by_rule == plain:
        return by_rule
    inside = plain.resolve().is_relative_to((Path.cwd() / settings.cassette_dir).resolve())
    return plain if inside or (plain.exists() and not by_rule.exists()) else by_rule


def open_cassette(path: Path, *, of_today: bool = False) -> StoredCassette:
    """Opens a cassette; what is odd about it is said on stderr.

    It reads as it stands in the file, or `of_today`: with the directories of now in place of their names.

    Raises:
        CassetteNotFoundError, CassetteError: as replaying it would.
    """
    settings = workspace.settings()
    try:
        directories = workspace.directories(settings) if of_today else AS_THEY_STAND
        cassette = StoredCassette(path, directories=directories)
    except FileNotFoundError:
        options = "".join(f" {shlex.quote(word)}" for word in given_options())
        hints = Hints(record=f"stepfork record MODULE:FUNCTION{options} -o {shlex.quote(shown(path))}")
        raise not_found(Path(shown(path)), hints) from None
    if settings.integrity == "error":
        cassette.refuse_changed()
    if settings.integrity != "off":
        warn(cassette.warnings)
    return cassette


def warn(sentences: Iterable[str] = ()) -> None:
    """Says what is odd on stderr, and keeps the session from saying the same again as a Python warning."""
    for sentence in sentences:
        output.complain(f"warning: {sentence}")
    warnings.filterwarnings("ignore", module=r"stepfork\.session\.run")


def parse_json(text: str, source: str) -> Any:
    """JSON that the user wrote.

    Raises:
        ConfigError: with the place of the fault.
    """
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise ConfigError(f"{source}: invalid JSON at {place}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: invalid JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise ValueError(f"the key {twice!r} stands twice")
    return named


def read_expectation(file: str, option: str) -> Any:
    """The JSON of the file that an option (``--expect-output``) names.

    Raises:
        ConfigError: if it cannot be read or is no JSON.
    """
    source = f"{option} {file}"
    try:
        text = Path(file).read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{source}: not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror or error}") from None
    return parse_json(text, source)
