"""How one scalar is spelled in a cassette and what a spelling means. Knows no collections and no documents.

The reader accepts as anything but text only what the emitter writes, so both take the rules from here.
"Any reader" below means PyYAML's C and Python loaders (YAML 1.1) and a YAML 1.2 reader.
"""

from __future__ import annotations

import re
from functools import lru_cache
from json.encoder import encode_basestring as _json_quote
from math import isfinite, isnan
from typing import Final

MAX_DEPTH: Final = 200
"""How deep collections may be nested in one document."""

SURROGATES: Final = "surrogates"
"""Tag of a text with lone surrogates, which no YAML escape carries through libyaml."""

_SAFE_CHARACTERS: Final = "\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
_SAFE: Final = re.compile(f"[{_SAFE_CHARACTERS}]*+")  # matching what is safe is twice as fast as searching
_UNSAFE: Final = re.compile(f"[^{_SAFE_CHARACTERS}]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SURROGATE_TEXT: Final = re.compile("[\\\\\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:(\\)|u(d[89a-f][0-9a-f]{2})|)")
_PLAIN_START: Final = re.compile(r"[A-Za-z_/($\\^;\xa1-\U0010ffff]|<(?!<)")
_NOT_IN_FLOW: Final = re.compile(r"[,\[\]{}:?]")
_LINE_WITH_TEXT: Final = re.compile(r"\n(?!\n|\Z)")
_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))

_HUGE: Final = 10**600  # Python refuses longer decimals in some settings; hexadecimal has no limit
_INT: Final = re.compile(r"0|-?[1-9][0-9]{0,599}")
_HEX: Final = re.compile(r"(-?)0x([1-9a-f][0-9a-f]*)")
_FLOAT: Final = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-][0-9]+)?")
# what YAML 1.1 or 1.2 reads as a number, a date, a merge key or the like, in any of its spellings
_NOT_TEXT: Final = re.compile(
    r"""  ~ | = | <<
        | [-+]? [0-9_]+ (?: \.[0-9_]* )? (?: [eE][-+]?[0-9]+ )?
        | [-+]? \.[0-9_]+ (?: [eE][-+]?[0-9]+ )?
        | [-+]? 0 (?: b[01_]+ | o[0-7_]+ | x[0-9a-fA-F_]+ )
        | [-+]? [0-9][0-9_]* (?: :[0-5]?[0-9] )+ (?: \.[0-9_]* )?
        | [-+]? \.(?:inf|Inf|INF) | \.(?:nan|NaN|NAN)
        | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
          (?: (?:[Tt]|[ \t]+) [0-9]{1,2}:[0-9]{2}:[0-9]{2} (?:\.[0-9]*)?
              (?: [ \t]* (?: Z | [-+][0-9]{1,2}(?: :?[0-9]{2})? ) )? )?
    """,
    re.VERBOSE,
)
_SPECIAL: Final[dict[str, bool | float | None]] = {
    "null": None,
    "true": True,
    "false": False,
    ".nan": float("nan"),
    ".inf": float("inf"),
    "-.inf": float("-inf"),
}


class Ambiguous(Exception):
    """An unquoted value that some reader takes for something else than text."""


def find_unsafe(text: str) -> re.Match[str] | None:
    r"""The first character that cannot stand as itself so that every reader gives it back.

    >>> find_unsafe("caf\xe9") is None, find_unsafe("a\x00").start()
    (True, 1)
    """
    return None if _SAFE.fullmatch(text) else _UNSAFE.search(text)


# -- spelling ---------------------------------------------------------------------------------------


def int_text(value: int) -> str:
    """An integer of any size, in hexadecimal from 600 digits on.

    >>> int_text(-12)
    '-12'
    """
    return int.__repr__(value) if -_HUGE < value < _HUGE else hex(value)


def float_text(value: float) -> str:
    """A float as YAML 1.1 and 1.2 both read it, and as the same value.

    >>> [float_text(item) for item in (1e-05, -0.0, float("nan"))]
    ['1.0e-05', '-0.0', '.nan']
    """
    if not isfinite(value):
        return ".nan" if isnan(value) else ".inf" if value > 0 else "-.inf"
    text = float.__repr__(value)
    return text if "." in text else text.replace("e", ".0e")


def inline_text(text: str) -> str:
    r"""A text on one line of a block collection: plain where every reader gives it back, else quoted.

    >>> print(inline_text("Go is small, and so."), inline_text("no"), inline_text("a\tb"))
    Go is small, and so. "no" "a\tb"
    """
    return text if _is_plain(text) else _quoted(text)


def flow_text(text: str) -> str:
    """A text inside a flow collection, or a key.

    >>> print(flow_text("small"), flow_text("a, b"))
    small "a, b"
    """
    return text if _is_plain(text) and not _NOT_IN_FLOW.search(text) else _quoted(text)


def literal_text(text: str, line: str) -> str:
    r"""A text of several lines as a literal block; `line` is the line end with its indentation.

    >>> literal_text("a\n\nb\n", "\n  ")
    '|\n  a\n\n  b'
    """
    tag = ""
    if not _SAFE.fullmatch(text):
        if not _SURROGATE.search(text):
            return _quoted(text)
        tag, text = f"!{SURROGATES} ", _escaped(text)
        if not _SAFE.fullmatch(text):
            return tag + _quoted(text)
    core = text.rstrip("\n")
    if not core.strip(" \t\n"):
        return tag + _quoted(text)
    ends = len(text) - len(core)
    mark = "-" if not ends else "" if ends == 1 else "+"
    if text[0] in " \t\n":
        mark = "2" + mark
    if "\n\n" in text or text[0] == "\n":
        body = _LINE_WITH_TEXT.sub(line, "\n" + core)
    else:
        body = line + core.replace("\n", line)
    return f"{tag}|{mark}{body}" + "\n" * (ends - 1)


def has_surrogates(text: str) -> bool:
    """Whether the text is written under a tag of its own."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def _is_plain(text: str) -> bool:
    if _PLAIN_START.match(text) is None or ": " in text or " #" in text or text[-1] == ":":
        return False
    if text[0].isspace() or text[-1].isspace() or (len(text) < 6 and text.lower() in _WORDS):
        return False
    if text.isprintable():
        return True
    return "\t" not in text and "\n" not in text and _SAFE.fullmatch(text) is not None


def _quoted(text: str) -> str:
    quoted = _json_quote(text)
    if text.isascii() and "\x7f" not in text:
        return quoted
    if _SURROGATE.search(text):
        return f"!{SURROGATES} {flow_text(_escaped(text))}"
    return _UNSAFE.sub(_escape, quoted)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped(text: str) -> str:
    return _SURROGATE_TEXT.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text)


# -- meaning ----------------------------------------------------------------------------------------


def read_plain(text: str) -> bool | int | float | str | None:
    """What an unquoted scalar means.

    Raises:
        Ambiguous: if it is not the emitter's spelling of what some reader takes it for.

    >>> read_plain("0.5"), read_plain("true"), read_plain("Go is small.")
    (0.5, True, 'Go is small.')
    """
    return _read_short(text) if len(text) < 40 else _read(text)


def unescape_surrogates(text: str) -> str:
    r"""The text that stands under ``!surrogates``.

    Raises:
        ValueError: if a backslash in it starts no escape of ours.

    >>> ascii(unescape_surrogates(r"a\\b\ud83d"))
    "'a\\\\b\\ud83d'"
    """
    return _ESCAPED.sub(_unescape, text)


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        return "\\"
    if not found[2]:
        raise ValueError(r"after a backslash stands another one or 'ud800' to 'udfff'")
    return chr(int(found[2], 16))


def _read(text: str) -> bool | int | float | str | None:
    if text in _SPECIAL:
        return _SPECIAL[text]
    first = text[:1]
    if first not in "0123456789+-.~=<":
        if len(text) < 6 and text.lower() in _WORDS:
            raise Ambiguous
        return text
    if _INT.fullmatch(text):
        return int(text)
    if (found := _HEX.fullmatch(text)) and len(found[2]) > 498:
        value = int(found[1] + found[2], 16)
        if abs(value) >= _HUGE:
            return value
    if len(text) < 40 and _FLOAT.fullmatch(text):
        number = float(text)
        if float_text(number) == text:
            return number
    if not text or _NOT_TEXT.fullmatch(text):
        raise Ambiguous
    return text


_read_short = lru_cache(maxsize=4096)(_read)
