"""Selectors: how settings and expectations name calls. Pure; knows calls, recorded or not, and no session.

``search`` is the tool of that name, ``llm`` any model request, ``llm:NAME`` those to an endpoint
(``llm:chat.completions``) or a model (``llm:gpt-4o``), ``http:GET host/path`` a request. An endpoint's name
will also do alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from stepfork.core.model import Call, Incoming, Kind
from stepfork.errors import ConfigError

KINDS: Final = get_args(Kind)


def selects(selector: str, call: Call | Incoming) -> bool:
    """Whether a selector names a call.

    >>> call = Incoming("llm", "chat.completions", {"model": "gpt-4o"})
    >>> [selects(selector, call) for selector in ("llm", "llm:gpt-4o", "llm:o3", "search")]
    [True, True, False, False]
    """
    kind, colon, rest = selector.partition(":")
    if kind not in KINDS:
        return call.name == selector
    if call.kind != kind:
        return False
    return not colon or call.name == rest or (kind == "llm" and model_of(call.args) == rest)


def model_of(args: Any) -> Any:
    """The model that a request names; None where it names none."""
    return args.get("model") if isinstance(args, Mapping) else None


def names_nothing(selector: str, calls: Iterable[Call | Incoming], where: str) -> str:
    """What to say of a selector that names no LLM call that was made and none that was recorded in `where`.

    >>> names_nothing("llm:gpt-4o", [], "run.yaml")
    "live: 'llm:gpt-4o' names no LLM call that was made, and none in run.yaml, which has no LLM call"
    """
    said = f"live: {selector!r} names no LLM call that was made, and none in {where}"
    asked = [call for call in calls if call.kind == "llm"]
    if not asked:
        return f"{said}, which has no LLM call"
    ends = dict.fromkeys(f"llm:{call.name}" for call in asked)
    models = dict.fromkeys(f"llm:{model}" for call in asked if (model := model_of(call.args)) is not None)
    there = [*ends, *(name for name in models if name not in ends)]
    close = difflib.get_close_matches(selector.lower(), there, 1)
    hint = f"; did you mean {close[0]!r}? It" if close else "; it"
    return f"{said}{hint} has {', '.join(map(repr, there))}"


def check_live(selector: str) -> None:
    """Refuses what names no LLM calls: tools never run and nothing else goes live on replay.

    Raises:
        ConfigError: saying what would do.

    >>> check_live("llm:gemini-2.5-flash")
    """
    kind, colon, rest = selector.partition(":")
    if kind != "llm" or bool(colon) != bool(rest) or rest != rest.strip():
        raise ConfigError(
            f"{selector!r} names no LLM calls: 'llm' means all of them, "
            "'llm:NAME' those to a model or an endpoint, as in 'llm:gemini-2.5-flash'"
        )
