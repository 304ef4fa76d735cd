"""Codecs for types that stepfork does not know: how one is written into a cassette and read back.

Knows nothing of cassettes itself: what is registered here is asked wherever values are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stepfork.cassette.values.registered import CODECS, Codec

__all__ = ["register", "unregister"]

T = TypeVar("T")


def register(kind: type[T], tag: str, encode: Callable[[T], Any], decode: Callable[[Any], T]) -> None:
    """Says how values of a class, and of classes below it, stand in cassettes.

    Every use is proven while recording: what `decode` makes of it must be of the same type and encode alike.
    Register where both the recording and the replay pass, in ``conftest.py`` or beside the class.

    Args:
        kind: the class.
        tag: the name its values go by in the file: small letters, digits and ``-``.
        encode: gives a value that cassettes can hold: a text, a dict, a tuple, anything with a form.
        decode: gives the value again, from what `encode` gave.

    Raises:
        ConfigError: if the class has a form already (``str``, ``Decimal``), or the tag another class.

    >>> class Angle:
    ...     def __init__(self, degrees):
    ...         self.degrees = degrees
    >>> register(Angle, "angle", lambda angle: angle.degrees, Angle)
    >>> unregister("angle")
    """
    CODECS.add(Codec(kind, tag, encode, decode))


def unregister(tag: str) -> None:
    """Forgets the codec of that tag, if there is one.

    >>> unregister("no-such-tag")
    """
    CODECS.drop(tag)
