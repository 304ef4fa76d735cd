"""The modes as a policy table. Pure: whether a file stands there and whether this is CI are arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from stepfork.errors import ConfigError

Action: TypeAlias = Literal["replay", "record", "off"]


@dataclass(frozen=True, slots=True)
class Mode:
    """What a mode does where a cassette stands, and where none does.

    `refuse_unrecorded` says that a patched call outside every session is an error, not live.
    """

    name: str
    standing: Action
    missing: Action
    missing_in_ci: Action
    refuse_unrecorded: bool


_TABLE: Final = (
    #    name      standing  missing   missing_in_ci  refuse_unrecorded
    Mode("replay", "replay", "replay", "replay", True),
    Mode("record", "record", "record", "record", False),
    Mode("auto", "replay", "record", "replay", True),
    Mode("hybrid", "replay", "replay", "replay", True),
    Mode("off", "off", "off", "off", False),
)
MODES: Final = {mode.name: mode for mode in _TABLE}
REPLAYING: Final = tuple(mode.name for mode in _TABLE if mode.standing == mode.missing == "replay")
"""Modes that replay or fail, whatever is there."""


def find_mode(name: str) -> Mode:
    """The mode of that name.

    Raises:
        ConfigError: listing the valid modes.

    >>> find_mode("replay").refuse_unrecorded
    True
    """
    mode = MODES.get(name)
    if mode is None:
        raise ConfigError(f"unknown mode {name!r}: the modes are {', '.join(MODES)}")
    return mode


def decide(name: str, *, exists: bool, ci: bool) -> Action:
    """What a session in this mode does.

    >>> decide("auto", exists=False, ci=False), decide("auto", exists=False, ci=True)
    ('record', 'replay')
    """
    mode = find_mode(name)
    if exists:
        return mode.standing
    return mode.missing_in_ci if ci else mode.missing
