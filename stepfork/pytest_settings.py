"""What pytest is told about stepfork: options and ini values, one for every setting. Opens no session.

They become layers of the workspace: ini values the weakest, options the strongest but for a marker.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from stepfork import api
from stepfork.errors import ConfigError
from stepfork.session import config
from stepfork.session.modes import MODES
from stepfork.session.workspace import workspace

_OPTIONS: Final = {"mode": "--stepfork-mode", "cassette_dir": "--stepfork-cassette-dir"}
_DEFAULTS: Final = {"mode": "replay"}


def declare(parser: pytest.Parser) -> None:
    """The options and the ini values."""
    group = parser.getgroup("stepfork", "recording and replaying the calls of LLM agents")
    group.addoption(
        _OPTIONS["mode"],
        metavar="MODE",
        help="replay (the default): answer every call from the test's cassette; record: run live and write "
        "it; auto: replay where a cassette is, else record, but never in CI; hybrid: replay, but send the "
        "LLM calls that the setting 'live' names; off: leave the tests alone",
    )
    group.addoption(
        _OPTIONS["cassette_dir"],
        metavar="DIR",
        help="where the tests' cassettes lie, from pytest's rootdir (default: cassettes)",
    )
    for name in config.NAMES:
        several = name in config.MANY
        kind: Literal["linelist", "string"] = "linelist" if several else "string"
        parser.addini(
            f"stepfork_{name}",
            f"{_EXPLAINED.get(name, _OTHER)}{' (one a line)' if several else ''}",
            type=kind,
            default=None,
        )


_EXPLAINED: Final = {
    "mode": f"{', '.join(MODES)}; as --stepfork-mode, which is stronger",
    "tools": "modules, functions and classes whose calls are recorded: myagent.tools, m:function, m:Class",
    "exclude": "what of them is no tool",
    "cassette_dir": "where the tests' cassettes lie, from pytest's rootdir",
    "off": "paths of tests that are left alone in every mode, such as tests/tools/*",
    "ignore": "places of calls that do not count: llm:messages[*].metadata.request_id",
    "normalize": "what is another text in every run: uuid, date, REGEX=>TEXT",
    "redact_keys": "keys whose values are secrets",
    "redact_patterns": "regular expressions of secrets",
    "redact_allow": "keys or values that are no secrets",
    "through": "tools whose body runs on replay",
    "integrity": "what a wrong checksum means: warn, error, off",
    "past_failure": "what the first call after a recorded failure means: raise, stop",
    "allow_hosts": "hosts that may be connected to on replay",
    "allow_classes": "classes that a cassette may have imported and constructed: m:Class, m.*",
    "fsync": "whether each recorded call is forced to the disk",
}
_OTHER: Final = "as the setting of that name"


def read(pytest_config: pytest.Config) -> None:
    """Has the workspace know them; reads the other layers too, so that a wrong one is found now.

    Raises:
        pytest.UsageError: for a setting that makes no sense.
    """
    try:
        given: dict[str, Any] = {}
        for name, option in _OPTIONS.items():
            value = getattr(pytest_config.known_args_namespace, f"stepfork_{name}")
            if value is not None:
                given |= config.check({name: value}, option)
        workspace.configure(
            root=Path(pytest_config.rootpath),
            base=_DEFAULTS | _ini_values(pytest_config),
            options=given,
            every_call_has_a_session=True,
        )
        workspace.settings().rules()
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def given(pytest_config: pytest.Config) -> dict[str, str]:
    """The options of the command line that a command which records needs too."""
    folder = pytest_config.getoption(_OPTIONS["cassette_dir"])
    return {} if folder is None else {_OPTIONS["cassette_dir"]: str(folder)}


def _ini_values(pytest_config: pytest.Config) -> dict[str, Any]:
    layer: dict[str, Any] = {}
    for name in config.NAMES:
        source = f"pytest's configuration: stepfork_{name}"
        try:
            value = pytest_config.getini(f"stepfork_{name}")
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{source}: {error}") from None
        if value not in (None, "", []):
            layer |= config.check({name: config.truth(value, source) if name == "fsync" else value}, source)
    return layer


def install() -> None:
    """Patches, where anything but a default is set; again, where a conftest did that in an earlier run.

    Raises:
        pytest.UsageError: for a setting that makes no sense.
    """
    try:
        if workspace.is_configured(_DEFAULTS):
            api.install(workspace.settings())
        _patch_again()
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


_earlier: tuple[Path, list[tuple[Mapping[str, Any], dict[str, Any]]]] | None = None
"""What ``autopatch()`` was given in the last run of this process, by whom, and below which rootdir."""


def _patch_again() -> None:
    """Python executes a module once: a conftest of an earlier run is not executed again by the next one."""
    if _earlier is None or _earlier[0] != workspace.root:
        return
    for caller, given in _earlier[1]:
        module = sys.modules.get(caller["__name__"])
        if module is not None and vars(module) is caller:
            api.autopatch(**given)
            workspace.autopatched_by[-1] = (caller, given)


def forget() -> None:
    """Undoes every patch and every layer: a process that runs pytest several times starts each time clean."""
    global _earlier
    if workspace.root is not None:
        _earlier = (workspace.root, list(workspace.autopatched_by))
    api.unpatch()
    workspace.configure(root=None, base={}, options={})
