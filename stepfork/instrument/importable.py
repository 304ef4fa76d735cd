"""Which modules could still be imported. Knows names and folders; imports nothing and runs no code."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import pkgutil
import sys
from typing import Any

from stepfork.instrument.tool_patterns import Pattern

__all__ = ["exists", "may_come"]


def may_come(pattern: Pattern) -> bool:
    """Whether a module that the pattern means can still be imported; runs no code to find out."""
    if not pattern.has_wildcard:
        return pattern.module not in sys.modules
    segments = pattern.module.split(".")
    above = next(at for at, segment in enumerate(segments) if "*" in segment)
    to_search = [".".join(segments[:above])]
    while to_search:
        package = to_search.pop()
        if package and package not in sys.modules:
            return True
        places = getattr(sys.modules.get(package), "__path__", None) if package else None
        for module in pkgutil.iter_modules(places, f"{package}." if package else ""):
            if module.name not in sys.modules and (module.ispkg or pattern.matches_module(module.name)):
                return True
            if module.ispkg:
                to_search.append(module.name)
    return False


def exists(name: str) -> bool:
    """Whether a module of that name could be imported; runs no package's code to find out."""
    parts = name.split(".")
    path: Any = None
    for at in range(1, len(parts) + 1):
        full = ".".join(parts[:at])
        loaded = sys.modules.get(full)
        if loaded is not None:
            path = getattr(loaded, "__path__", None)
        else:
            try:
                spec = (
                    importlib.util.find_spec(full)
                    if at == 1
                    else importlib.machinery.PathFinder.find_spec(full, path)
                )
            except (ImportError, ValueError):
                return False
            if spec is None:
                return False
            path = spec.submodule_search_locations
        if path is None and at < len(parts):
            return False
    return True
