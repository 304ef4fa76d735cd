"""Where the cassette of a test lies: node id -> relative path. Pure; touches no file.

Names are valid on every system, distinct, stable and inside the cassette folder. A name that is fine
already stays as it is; an eight-hex suffix tells apart what the mending of a name made alike.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Final

LIMIT: Final = 200
"""Bytes of one path component, suffix included, without ``.yaml``."""

_UNSAFE: Final = re.compile(r"[^\w .,=+@()\[\]{}-]")
_RESERVED: Final = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?\Z")


def component(name: str, siblings: Iterable[str] = (), mend: Callable[[str], str] = str) -> str:
    """One path component for a name; `siblings` are the other names that live in the same folder.

    `mend` may change the name first (secrets in it); that counts as a change like any other. The suffix is
    made of the mended name, since a digest of a weak secret gives it away; of names that are mended alike
    each has its number, in the order of `siblings`.

    >>> component("test_y[a]"), component("test_y[../a]")
    ('test_y[a]', 'test_y[..-a]-44e27e51')
    """
    mended = mend(name)
    safe = _UNSAFE.sub("-", unicodedata.normalize("NFC", mended))
    safe = re.sub(r"\A[ .]+|[ .]+\Z", "-", safe) or "-"
    alike = any(other != name and _alike(other) == _alike(name) for other in siblings)
    size = len(safe.encode("utf-8", "replace"))
    if safe == name and not alike and size <= LIMIT and not _RESERVED.match(safe):
        return safe
    suffix = "-" + _digest(_numbered(name, mended, siblings, mend))
    room = LIMIT - len(suffix)
    return safe.encode("utf-8", "replace")[:room].decode("utf-8", "ignore").rstrip(" .") + suffix


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _numbered(name: str, mended: str, siblings: Iterable[str], mend: Callable[[str], str]) -> str:
    if mended == name:
        return name
    same = [other for other in siblings if mend(other) == mended]
    number = same.index(name) if name in same else 0
    return f"{mended}#{number + 1}" if number else mended


def _alike(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def cassette_of_test(
    module: PurePosixPath, parts: Iterable[tuple[str, Iterable[str]]], mend: Callable[[str], str] = str
) -> PurePosixPath:
    """The cassette of a test, relative to the cassette folder.

    `module` is the test file relative to the root; `parts` are the names below it (classes, then the
    test), each with the names beside it.

    >>> str(cassette_of_test(PurePosixPath("tests/test_agent.py"), [("TestX", []), ("test_y[id]", [])]))
    'tests/test_agent/TestX/test_y[id].yaml'
    """
    *folders, last = (component(name, siblings, mend) for name, siblings in parts)
    return module_folder(module).joinpath(*folders) / f"{last}.yaml"


def cassette_of_name(module: PurePosixPath, name: str, mend: Callable[[str], str] = str) -> PurePosixPath:
    """The cassette that a marker names, relative to the cassette folder.

    >>> str(cassette_of_name(PurePosixPath("tests/test_agent.py"), "outage"))
    'tests/test_agent/outage.yaml'
    """
    return module_folder(module) / (component(name.removesuffix(".yaml"), mend=mend) + ".yaml")


def module_folder(module: PurePosixPath) -> PurePosixPath:
    """The folder of a test module's (or a test folder's) cassettes: no ``.py``, no part leading outside.

    >>> str(module_folder(PurePosixPath("../tests/test_agent.py")))
    '--5ec1f7e7/tests/test_agent'
    """
    parts = [part for part in str(module).removesuffix(".py").split("/") if part not in ("", ".")]
    return PurePosixPath(*map(component, parts))


def sibling(path: str, mark: str) -> str:
    """The file beside a cassette that holds its partial or failed form.

    >>> sibling("cassettes/a.yaml", "partial"), sibling("a", "failed")
    ('cassettes/a.partial.yaml', 'a.failed.yaml')
    """
    return f"{path.removesuffix('.yaml')}.{mark}.yaml"
