"""Selectors: how settings and expectations name calls. Pure; knows calls, recorded or not, and no session.

``search`` is the tool of that name, ``llm`` any model request, ``llm:NAME`` those to an endpoint
(``llm:chat.completions``) or a model (``llm:gpt-4o``), ``http:GET host/path`` a request. An endpoint's name
will also do alone.
"""

from __future__ import annotations

from collections.abc import Mapping
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
