"""Where settings come from and how they add up: pyproject, environment, arguments -> one frozen `Settings`.

Reads ``pyproject.toml`` when asked to; everything else, the environment included, is an argument.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from stepfork.core import hosts, volatile
from stepfork.core.ignored import Ignored
from stepfork.core.redaction_rules import Rules
from stepfork.errors import ConfigError
from stepfork.session.modes import find_mode
from stepfork.session.selectors import check_live

PREFIX: Final = "STEPFORK_"
_CHOICES: Final = {"integrity": ("warn", "error", "off"), "past_failure": ("raise", "stop")}
_CLASSES: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(\.\*|:[^\s:,]+)")
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off", "")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with its default.

    Attributes:
        mode: ``replay``, ``record``, ``auto``, ``hybrid`` or ``off``.
        tools, exclude: patterns of tool modules, functions and classes.
        cassette_dir: where relative cassette paths start; None for the working directory.
        off: test paths (patterns) that are left alone.
        redact_keys, redact_patterns, redact_allow: rules for secrets beside the built-in ones.
        ignore: places of calls that do not count (``llm:messages[*].metadata.request_id``).
        normalize: what is another text in every run: built-in rules and regular expressions.
        through: tools whose body runs on replay, while the calls inside of it are answered.
        live: LLM calls that mode ``hybrid`` makes live: ``llm``, ``llm:MODEL``; all of them if it is empty.
        integrity: what a wrong checksum means: ``warn``, ``error`` or ``off``.
        past_failure: what the first call after a recorded failure means: ``raise`` or ``stop``.
        allow_hosts: hosts (``host``, ``host:port``, ``*.example.org``) that may be connected to on replay.
        allow_classes: classes (``m:Class``, ``m.*``) that a cassette may have imported and constructed.
        fsync: whether each call is forced to the disk.
        prices: a TOML or JSON file with prices of tokens, for the estimated cost of live calls.

    >>> Settings().mode
    'off'
    """

    mode: str = "off"
    tools: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    cassette_dir: Path | None = None
    off: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    normalize: volatile.Given = ()
    redact_keys: tuple[str, ...] = ()
    redact_patterns: tuple[str, ...] = ()
    redact_allow: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    integrity: str = "warn"
    past_failure: str = "raise"
    allow_hosts: tuple[str, ...] = ()
    allow_classes: tuple[str, ...] = ()
    fsync: bool = False
    prices: Path | None = None

    def rules(self) -> Rules:
        """The compiled rules for secrets. Raises ConfigError for one that is no regular expression."""
        return Rules.compile(keys=self.redact_keys, patterns=self.redact_patterns, allow=self.redact_allow)

    def ignored(self) -> Ignored:
        """The compiled rules of `ignore`."""
        return Ignored.compile(self.ignore)

    def goes_live(self) -> tuple[str, ...]:
        """The selectors of the LLM calls that are made live although a cassette is replayed.

        >>> Settings(mode="hybrid").goes_live(), Settings(mode="replay", live=("llm",)).goes_live()
        (('llm',), ())
        """
        return (self.live or ("llm",)) if self.mode == "hybrid" else ()

    def volatile(self) -> volatile.Rules:
        """The compiled rules of `normalize`."""
        return volatile.Rules.compile(self.normalize)


NAMES: Final = tuple(field.name for field in fields(Settings))
LISTS: Final = tuple(field.name for field in fields(Settings) if field.type == "tuple[str, ...]")
MANY: Final = (*LISTS, "normalize")
"""Settings that take several texts where only texts can be given."""
PATHS: Final = ("cassette_dir", "prices")


def check(layer: Mapping[str, Any], source: str) -> dict[str, Any]:
    """One layer of settings with every name and value checked; `source` says in an error where it came from.

    Raises:
        ConfigError: for an unknown name (listing the valid ones) or a value that does not fit.

    >>> check({"mode": "record", "tools": "agent.tools"}, "autopatch()")
    {'mode': 'record', 'tools': ('agent.tools',)}
    """
    return {name: _value(name, value, source) for name, value in layer.items()}


def _value(name: str, value: Any, source: str) -> Any:
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, 1)
        hint = f", did you mean {close[0]!r}? The" if close else "; the"
        raise ConfigError(f"{source}: unknown setting {name!r}{hint} settings are {', '.join(NAMES)}")
    if name in LISTS:
        values = (value,) if isinstance(value, str) else value
        if values is None or isinstance(values, Mapping | bytes) or not isinstance(values, Iterable):
            raise ConfigError(f"{source}: {name} must be a list of texts, not {_spell(value)}")
        values = tuple(values)
        for item in values:
            if not isinstance(item, str) or not item.strip():
                raise ConfigError(f"{source}: {name} must hold texts only, found {_spell(item)}")
            if name == "allow_classes" and not _CLASSES.fullmatch(item):
                raise ConfigError(
                    f"{source}: {name} must hold 'module:Class' or 'module.*', found {_spell(item)}"
                )
            if name == "ignore":
                try:
                    Ignored.compile([item])
                except ConfigError as error:
                    raise ConfigError(f"{source}: {error}") from None
            if name == "live":
                try:
                    check_live(item)
                except ConfigError as error:
                    raise ConfigError(f"{source}: live: {error}") from None
            if name == "allow_hosts" and not hosts.RULE.fullmatch(item.strip()):
                raise ConfigError(f"{source}: {name} must hold 'host' or 'host:port', found {_spell(item)}")
        return values
    if name == "normalize":
        try:
            rules = volatile.read(value)
            volatile.Rules.compile(rules)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None
        return rules
    if name == "fsync":
        if not isinstance(value, bool):
            raise ConfigError(f"{source}: fsync must be true or false, not {_spell(value)}")
        return value
    if name in PATHS:
        if value is not None and not isinstance(value, str | Path):
            raise ConfigError(f"{source}: {name} must be a path, not {_spell(value)}")
        return None if value is None else Path(value)
    if not isinstance(value, str):
        raise ConfigError(f"{source}: {name} must be text, not {_spell(value)}")
    if name == "mode":
        try:
            find_mode(value)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None
    elif value not in _CHOICES[name]:
        raise ConfigError(f"{source}: {name} must be one of {', '.join(_CHOICES[name])}, not {value!r}")
    return value


def _spell(value: Any) -> str:
    return "null" if value is None else repr(value)


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The layer of ``STEPFORK_*`` variables; lists are comma-separated.

    Raises:
        ConfigError: for a misspelt name or a value that does not fit.

    >>> from_environment({"STEPFORK_TOOLS": "a.tools, b.tools", "HOME": "/root"})
    {'tools': ('a.tools', 'b.tools')}
    """
    layer: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        value: Any = text
        if name in MANY:
            value = [item.strip() for item in text.split(",") if item.strip()]
        elif name == "fsync":
            value = truth(text, f"environment variable {variable}")
        elif text == "":
            continue
        layer |= check({name: value}, f"environment variable {variable}")
    return layer


def truth(text: str, source: str) -> bool:
    """What a text says where true or false is meant; `source` says in an error where it came from.

    Raises:
        ConfigError: for any other text.

    >>> truth("yes", "the environment"), truth("0", "the environment")
    (True, False)
    """
    if text.lower() not in _TRUE + _FALSE:
        raise ConfigError(f"{source}: expected 1 or 0, found {text!r}")
    return text.lower() in _TRUE


def find_pyproject(start: Path) -> Path | None:
    """The nearest ``pyproject.toml`` in `start` or above it."""
    for folder in (start, *start.parents):
        candidate = folder / "pyproject.toml"
        if candidate.is_file():
            return candidate
    return None


def from_pyproject(file: Path | None) -> dict[str, Any] | None:
    """The layer of ``[tool.stepfork]``; None where the file or the table is missing.

    A relative path (``cassette_dir``, ``prices``) starts at the file's folder.

    Raises:
        ConfigError: if the file cannot be read, or for an unknown name or a value that does not fit.
    """
    if file is None:
        return None
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    table = document.get("tool", {}).get("stepfork")
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: [tool.stepfork] must be a table")
    layer = check(table, f"{file}: [tool.stepfork]")
    for name in PATHS:
        if layer.get(name) is not None:
            layer[name] = file.parent / layer[name]
    return layer


def project_root(start: Path) -> Path:
    """The folder whose code counts as the project's own: that of ``pyproject.toml``, else `start`."""
    file = find_pyproject(start)
    return start if file is None else file.parent


def combine(*layers: Mapping[str, Any]) -> Settings:
    """One `Settings` from checked layers, the weakest first.

    >>> combine({"mode": "replay"}, {"mode": "record"}).mode
    'record'
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        merged.update(layer)
    return Settings(**merged)
