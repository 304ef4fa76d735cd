"""The codecs that users register for their own types. Knows how one is found; the types are theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, type_name
from stepfork.cassette.values.policy import class_name
from stepfork.cassette.values.walk import ROWS, Decoder, Encoder, Row, parts
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain
from stepfork.errors import ConfigError

_TAG: Final = re.compile(r"[a-z][a-z0-9-]*")
_PLAIN: Final = (str, int, float, bool, type(None), list, dict)


@dataclass(frozen=True, slots=True)
class Codec:
    """How one type of the user's is written and read."""

    kind: type
    tag: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


class Codecs:
    """What was registered, by tag and by type."""

    def __init__(self) -> None:
        self._by_tag: dict[str, Codec] = {}
        self._by_type: dict[type, Codec] = {}

    def add(self, codec: Codec) -> None:
        """Takes up a codec; one for the same class, as after a reload, gives way.

        Raises:
            ConfigError: if the type or the tag cannot have one.
        """
        kind, tag = codec.kind, codec.tag
        if not isinstance(kind, type):
            raise ConfigError(f"stepfork.codecs.register() takes a class, not {kind!r}")
        if kind in ROWS.by_type or kind in _PLAIN or kind is object:
            raise ConfigError(
                f"stepfork.codecs.register(): {kind.__name__} has a form of its own in cassettes"
            )
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise ConfigError(
                f"stepfork.codecs.register(): {tag!r} cannot be a tag; write small letters, digits and '-'"
            )
        known = self._by_tag.get(tag)
        if known is not None:
            if class_name(known.kind) != class_name(kind):
                raise ConfigError(
                    f"stepfork.codecs.register(): {tag!r} is the tag of {class_name(known.kind)!r} already"
                )
            self._by_type.pop(known.kind, None)
        self._by_tag[tag] = self._by_type[kind] = codec

    def drop(self, tag: str) -> None:
        """Forgets a codec."""
        codec = self._by_tag.pop(tag, None)
        if codec is not None:
            self._by_type.pop(codec.kind, None)

    def of(self, kind: type) -> Codec | None:
        """The codec of a type, or of the nearest class above it."""
        if not self._by_type:
            return None
        return next((self._by_type[base] for base in kind.__mro__ if base in self._by_type), None)

    def named(self, tag: str) -> Codec:
        """The codec of a tag. Raises Missing if there is none."""
        codec = self._by_tag.get(tag)
        if codec is None:
            raise Missing(
                f"no codec is registered for {tag!r}: call stepfork.codecs.register() before the replay"
            )
        return codec


CODECS: Final = Codecs()


def _has_codec(kind: type) -> bool:
    return CODECS.of(kind) is not None


def _encode(value: Any, encoder: Encoder, path: str) -> Plain:
    codec = CODECS.of(type(value))
    assert codec is not None
    with encoder.visit(value, path):
        try:
            form = encoder.encode(codec.encode(value), path)
            again = codec.decode(Decoder(encoder.classes).decode(form))
            same = type(again) is type(value)
            same = same and canonical_text(encoder.encode(codec.encode(again), path)) == canonical_text(form)
        except Unsupported:
            raise
        except Exception as problem:
            why = f"(its codec {codec.tag!r} failed: {type(problem).__name__}: {problem})"
            raise Unsupported(path, type_name(value), why, "mend the codec") from None
    if not same:
        why = f"(its codec {codec.tag!r} does not give it back equal)"
        raise Unsupported(path, type_name(value), why, "mend the codec")
    return {"codec": codec.tag, "value": form}


def _decode(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("codec", "value"))
    tag, value = fields["codec"], decoder.decode(fields["value"])
    if not isinstance(tag, str):
        raise BadValue("'codec' must be the name of a codec")
    if decoder.classes is None:
        raise Missing("codecs are not looked for")
    return CODECS.named(tag).decode(value)


REGISTERED: Final = Row("custom", _has_codec, _encode, _decode)
"""Goes before what stepfork makes of a class itself."""
