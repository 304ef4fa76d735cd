"""Python values <-> plain values. Knows every tag and what it stands for; knows no call and no file.

Only what comes back as itself is taken; anything else is refused (`Unsupported`). Subclasses of str, int,
float, list and dict that have no tag of their own come back as the plain type. `walk` is the way through a
value; `standard`, `containers`, `classes`, `models`, `arrays`, `frames`, `http_messages`, `registered`
and `stepfork.cassette.exceptions` hold the rows; `policy` says what may be done
with a class that a file names.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from stepfork.cassette.exceptions import EXCEPTION
from stepfork.cassette.values.arrays import ARRAYS
from stepfork.cassette.values.classes import CLASSES
from stepfork.cassette.values.containers import CONTAINERS
from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, readable, type_name
from stepfork.cassette.values.frames import FRAMES
from stepfork.cassette.values.http_messages import HTTP_MESSAGES
from stepfork.cassette.values.looking import is_looking, is_out_of_stack, looks
from stepfork.cassette.values.models import MODELS
from stepfork.cassette.values.policy import IMPORTED, ClassPolicy
from stepfork.cassette.values.registered import REGISTERED
from stepfork.cassette.values.standard import STANDARD
from stepfork.cassette.values.walk import ROWS, Decoder, Encoder
from stepfork.core.model import Plain

__all__ = [
    "IMPORTED",
    "TAGS",
    "BadValue",
    "ClassPolicy",
    "Decoder",
    "Missing",
    "Unsupported",
    "checks",
    "decode",
    "encode",
    "is_looking",
    "is_out_of_stack",
    "look",
    "looks",
    "type_name",
]

ROWS.add((*STANDARD, *CONTAINERS, REGISTERED, EXCEPTION, *ARRAYS, *FRAMES, *HTTP_MESSAGES, *MODELS, *CLASSES))

TAGS: Final = frozenset(ROWS.by_tag)
"""The tags a cassette may hold."""


@looks
def encode(value: Any, path: str = "value", classes: ClassPolicy = IMPORTED) -> Plain:
    """The plain form of a Python value; `path` names it in the error.

    Raises:
        Unsupported: for a value that would not come back as itself.

    >>> from decimal import Decimal
    >>> encode({"p": Decimal("0.10"), "t": (1, 2)})
    {'p': Tagged(tag='decimal', value='0.10'), 't': Tagged(tag='tuple', value=[1, 2])}
    """
    try:
        return Encoder(classes).encode(value, path)
    except Exception as problem:
        unsupported = problem if isinstance(problem, Unsupported) else _unreadable(value, path, problem)
        with suppress(RecursionError):
            unsupported.beside = readable(value)
        raise unsupported from None


def _unreadable(value: Any, path: str, problem: Exception) -> Unsupported:
    why = f"(it cannot be read: {type(problem).__name__}: {problem})"
    return Unsupported(path, type_name(value), why)


@looks
def decode(value: Plain, classes: ClassPolicy = IMPORTED) -> Any:
    """A fresh Python value for a plain one: no container is shared with the argument.

    Raises:
        BadValue: where a tag's content does not fit it, or names what is not at hand or not allowed.

    >>> from stepfork.core.model import Tagged
    >>> decode(Tagged("tuple", [1, Tagged("set", [2])]))
    (1, {2})
    """
    return Decoder(classes).decode(value)


@looks
def look(value: Plain, classes: ClassPolicy = IMPORTED) -> Any:
    """The same for a reader: what is not at hand (a class that is not imported) stays a `Tagged`.

    Raises:
        BadValue: where a tag's content does not fit it.

    >>> from stepfork.core.model import Tagged
    >>> look([Tagged("enum", "shop.models:Color.RED")])
    [Tagged(tag='enum', value='shop.models:Color.RED')]
    """
    return Decoder(classes, lenient=True).decode(value)


def checks() -> Decoder:
    """Decodes values only to see whether all tags fit their contents, without looking for any class.

    >>> from stepfork.core.model import Tagged
    >>> checks().decode(Tagged("enum", "shop.models:Color.RED"))
    Tagged(tag='enum', value='shop.models:Color.RED')
    """
    return Decoder(None, lenient=True)
