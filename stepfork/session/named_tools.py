"""Whether the tools that settings name are any. Knows what is patched and what is recorded; takes no call."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from stepfork.cassette.store import StoredCassette
from stepfork.errors import ConfigError
from stepfork.session import active, faults


def check_tools(setting: str, names: Iterable[str], cassette: StoredCassette | None) -> None:
    """Refuses names that no tool has and, where a cassette is replayed, no recorded call of one either.

    Raises:
        ConfigError: naming the setting and the name.
    """
    unknown = [name for name in names if not active.may_be_tool(name)]
    if not unknown:
        return
    calls = [] if cassette is None else cassette.all_recorded()
    recorded = {call.call.name for call in calls if call.call.kind == "tool"}
    for name in unknown:
        if name in recorded:
            continue
        close = difflib.get_close_matches(name, {*recorded, *active.tool_names()}, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        nor = "" if cassette is None else f", and {faults.shown(cassette.path)} has no call of it"
        raise ConfigError(f"{setting}: {name!r} is no tool{nor}{hint}")
