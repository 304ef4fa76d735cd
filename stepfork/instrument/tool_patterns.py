"""What a user writes to name tools: patterns of modules and objects. Knows names; looks at no module."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from stepfork.errors import ConfigError

__all__ = ["Pattern", "parse_pattern"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Modules, or one object in them; made by `parse_pattern`.

    Attributes:
        text: the pattern as written.
        module: its module part, as in ``myagent.tools.*``.
        target: the object in the module, as in ``lookup`` or ``Class.method``; "" for the whole module.
    """

    text: str
    module: str
    target: str = ""

    @property
    def has_wildcard(self) -> bool:
        """Whether the module part may match several modules, and therefore none."""
        return "*" in self.module

    def matches_module(self, name: str) -> bool:
        """Whether the module of this name is meant (wholly, or for one object in it).

        >>> tools = parse_pattern("myagent.tools.*")
        >>> tools.matches_module("myagent.tools.web.search"), tools.matches_module("myagent.tools")
        (True, False)
        """
        return _regex(self.module).fullmatch(name) is not None if self.has_wildcard else name == self.module

    def covers(self, name: str) -> bool:
        """Whether an object of this name, in a module that matches, is meant.

        >>> [parse_pattern(text).covers("Index.lookup") for text in ("m", "m:Index", "m:Ind")]
        [True, True, False]
        """
        return not self.target or f"{name}.".startswith(f"{self.target}.")


def parse_pattern(text: str) -> Pattern:
    """Reads a pattern: ``pkg.mod``, ``pkg.mod.*``, ``pkg.mod:function``, ``m:Class``, ``m:Class.method``.

    A last segment ``*`` stands for submodules at any depth (not for the package itself); any other ``*``
    for part of one segment.

    Raises:
        ConfigError: the text is none of these.

    >>> parse_pattern("myagent.search:Index.lookup").target
    'Index.lookup'
    >>> parse_pattern("myagent/search.py")
    Traceback (most recent call last):
    stepfork.errors.ConfigError: 'myagent/search.py' is not a tool pattern; write one like 'myagent.tools', \
'myagent.tools.*', 'myagent.search:lookup' or 'myagent.search:Class.method'
    """
    module, colon, target = text.partition(":") if isinstance(text, str) else ("", "", "")
    segments = [segment.replace("*", "x") for segment in module.split(".")] + (
        target.split(".") if colon else []
    )
    if (
        not all(segment.isidentifier() for segment in segments)
        or "**" in module
        or module.split(".")[0] == "*"
    ):
        raise ConfigError(
            f"{text!r} is not a tool pattern; write one like 'myagent.tools', 'myagent.tools.*', "
            "'myagent.search:lookup' or 'myagent.search:Class.method'"
        )
    return Pattern(text, module, target)


@functools.cache
def _regex(module: str) -> re.Pattern[str]:
    deep = module.endswith(".*")
    text = re.escape(module.removesuffix(".*")).replace(r"\*", r"[^.]*")
    return re.compile(text + r"\..+" if deep else text)
