"""Which classes a cassette may name, and whose constructors may run. Knows modules and files, no value.

Classes are found among the modules that are imported already; nothing is imported for a name in a file but
what `allow_classes` names.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stepfork.cassette.values.faults import Missing

_INSTALLED: Final = ("site-packages", "dist-packages")


def class_name(kind: type) -> str:
    """``module:qualified.name`` of a class.

    >>> class_name(KeyError)
    'builtins:KeyError'
    """
    return f"{kind.__module__}:{kind.__qualname__}"


@dataclass(frozen=True, slots=True)
class ClassPolicy:
    """What may be done with a class that a cassette names.

    Attributes:
        root: the project's root; classes in files under it are the program's own.
        allow: the setting `allow_classes`: ``"m:Class"``, ``"m.*"`` (a module and all below it).
        sdks: the packages that are patched.

    >>> ClassPolicy().find("builtins:KeyError")
    <class 'KeyError'>
    >>> ClassPolicy().may_construct(KeyError)
    True
    """

    root: Path | None = None
    allow: tuple[str, ...] = ()
    sdks: tuple[str, ...] = ()

    def find(self, name: str) -> type:
        """The class of that name.

        Raises:
            Missing: if its module is not imported, or has no such class; if the name is not the class's own;
                or if the class has a ``__del__``, which would run with what the file holds.
        """
        module_name, _, qualified = name.partition(":")
        module = self.module(module_name, name)
        found = _below(module, qualified)
        # type() and not isinstance(), which would ask the object itself
        if found is None or not issubclass(type(found), type):
            raise Missing(f"class {name!r} is not to be found in its module")
        if class_name(found) != name:
            raise Missing(f"the class {name!r} has moved to {class_name(found)!r}; record again")
        if any("__del__" in vars(base) for base in found.__mro__):
            raise Missing(f"class {name!r} has a finaliser, which would run for a copy too")
        return found  # type: ignore[no-any-return]

    def module(self, module: str, wanted: str) -> Any:
        """A module that the program has imported, or that the user allows to be, for what is `wanted` of it.

        Raises:
            Missing: if it is neither.
        """
        found = sys.modules.get(module)
        if found is not None:
            return found
        if not self.allows(wanted) and wanted not in self.allow:
            raise Missing(
                f"{wanted!r} is needed, and {module!r} is not imported by the program; "
                f"import it, or set allow_classes = [{wanted!r}]"
            )
        try:
            return importlib.import_module(module)
        except Exception as error:
            raise Missing(f"{wanted!r} is needed, and {module!r} does not import: {error}") from None

    def allows(self, name: str) -> bool:
        """Whether the user has named this class.

        >>> ClassPolicy(allow=("shop.*", "m:C")).allows("shop.models:Item")
        True
        """
        module = name.partition(":")[0]
        return any(
            item == name or (item.endswith(".*") and f"{module}.".startswith(item[:-1]))
            for item in self.allow
        )

    def may_construct(self, kind: type) -> bool:
        """Whether the constructor of this class may run for a cassette."""
        top = kind.__module__.partition(".")[0]
        if top in sys.stdlib_module_names or top in self.sdks or self.allows(class_name(kind)):
            return True
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return self.root is not None and isinstance(file, str) and is_own(Path(file), self.root)


IMPORTED: Final = ClassPolicy()
"""Classes that are imported are found; constructors run for those of the standard library."""


def is_own(file: Path, root: Path) -> bool:
    """Whether a file is under the project's root and not something installed there."""
    file, root = file.resolve(), root.resolve()
    if not file.is_relative_to(root) or any(part in _INSTALLED for part in file.relative_to(root).parts):
        return False
    libraries = [Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib")]
    return not any(file.is_relative_to(library) for library in libraries)


def _below(module: Any, qualified: str) -> Any:
    """What stands under a dotted name, read from the namespaces themselves: no attribute access runs code."""
    space = object.__getattribute__(module, "__dict__")
    if qualified in space:
        return space[qualified]
    found: Any = None
    for part in qualified.split("."):
        found = space.get(part)
        if found is None or not issubclass(type(found), type):
            return None
        space = type.__dict__["__dict__"].__get__(found)
    return found
