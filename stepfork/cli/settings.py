"""Every setting as an option of every command. Knows the table of settings, no command."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from stepfork.core import volatile
from stepfork.session import config
from stepfork.session.workspace import workspace

F = TypeVar("F", bound=Callable[..., Any])

_HELP: Final = {
    "tools": "Tools: modules (a.tools, a.tools.*), functions (a.search:lookup), classes (a.index:Index).",
    "exclude": "What is no tool, in the same spelling.",
    "cassette_dir": "The folder in which relative cassette paths start.",
    "off": "Test paths that are left alone; for pytest.",
    "ignore": "Places of calls that do not count: llm:messages[*].metadata.id, search:options.trace_id.",
    "normalize": "What is another text in every run: uuid, date, time, REGEX, REGEX=>TEXT; paths=false.",
    "redact_keys": "A key whose value is a secret, beside the built-in ones.",
    "redact_patterns": "A regular expression for secrets, beside the built-in ones.",
    "redact_allow": "A key or regular expression of what is no secret.",
    "through": "Tools whose body runs on replay, while the calls inside of it are answered.",
    "integrity": "What a wrong checksum means: warn, error or off.",
    "past_failure": "What the first new call after a recorded failure means: raise or stop.",
    "allow_hosts": "Hosts (host, host:port) that may be connected to on replay.",
    "allow_classes": "Classes (m:Class, m.*) that a cassette may have imported and constructed.",
    "live": "LLM calls that mode hybrid sends: llm, llm:MODEL.",
    "prices": "A TOML or JSON file with prices of tokens, for the estimated cost of live calls.",
    "fsync": "Force every recorded call to the disk.",
}
_BY_COMMAND: Final = ("mode",)
"""Settings that the command itself decides."""
_SPLIT: Final = ("tools", "exclude", "off", "through", "live", "allow_hosts", "allow_classes")
"""Lists whose items hold no comma; a regular expression may."""

NAMES: Final = tuple(name for name in config.NAMES if name not in _BY_COMMAND)


def spelled(name: str) -> str:
    """The option of a setting.

    >>> spelled("redact_keys")
    '--redact-keys'
    """
    return "--" + name.replace("_", "-")


def settings_options(command: F) -> F:
    """Gives a command an option for every setting, and the settings to this process before it runs.

    A misspelt setting, wherever it comes from, ends the command before anything else happens.
    """

    @functools.wraps(command)
    def with_settings(**given: Any) -> Any:
        options: dict[str, Any] = {}
        for name in NAMES:
            value = given.pop(name)
            if value is None or value == ():
                continue
            if name in _SPLIT:
                value = [part.strip() for item in value for part in item.split(",") if part.strip()]
            options |= config.check({name: value}, f"option {spelled(name)}")
        workspace.configure(root=Path.cwd(), base={}, options=options)
        workspace.settings().rules()
        return command(**given)

    decorated: Any = with_settings
    for name in reversed(NAMES):
        decorated = _option(name)(decorated)
    return decorated  # type: ignore[no-any-return]


def given_options(leave_out: Sequence[str] = ()) -> list[str]:
    """The settings that were given on this command line, as words of another one."""
    words: list[str] = []
    for name, value in workspace.options.items():
        if name in leave_out:
            continue
        if name == "fsync":
            words.append("--fsync" if value else "--no-fsync")
            continue
        if name == "normalize":
            value = volatile.spelled(value)
        for item in value if name in config.MANY else (value,):
            words += [spelled(name), str(item)]
    return words


def _option(name: str) -> Callable[[Any], Any]:
    if name in config.MANY:
        more = " Repeatable or comma-separated." if name in _SPLIT else " Repeatable."
        return click.option(spelled(name), name, multiple=True, metavar="TEXT", help=_HELP[name] + more)
    if name == "fsync":
        return click.option("--fsync/--no-fsync", name, default=None, help=_HELP[name])
    metavar = {"cassette_dir": "FOLDER", "prices": "FILE"}.get(name, "TEXT")
    return click.option(spelled(name), name, metavar=metavar, help=_HELP[name])
