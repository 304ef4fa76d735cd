r"""Server-sent event streams <-> what stands of them in a cassette. Knows no file, no SDK and no HTTP.

A stream stands as what it said, for people, and a `wire` with the rest, so that every byte comes back:

```yaml
text: Looking both up.
tool_calls:
- {id: call_1, name: search, arguments: {q: rust}}
wire:
  events: |
    $common = "id":"chatcmpl-3","object":"chat.completion.chunk","created":1790000000,"model":"m"
    {$common,"choices":[{"index":0,"delta":{"content":$next text}}]}
    {$common,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":$tool_calls.0.id,...}]}}]}
    {$common,"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    [DONE]
  order: 1{4} 2 3 4
  cuts: {text: 75410}
```

`events` has a line for each kind of event, as it was on the wire but for the holes. ``$common`` is what a
line before has defined or what is said above (``$text``, ``$tool_calls.0.id``), ``$next text`` the next piece
of a text; the other ways to take a value are told in `series`. A line that does not start with ``{``
or ``[`` is the whole event (``: ping``), with ``\n`` for its line ends and a backslash before what else would
mean something.

- `order`: which line comes when, ``2{200}`` for 200 times the second; left out if each comes once
- `cuts`: the length of each piece in characters, ``0`` to ``9``, ``a`` (10) to ``z``, ``(36)``
- `series`, `texts`: values that change and that nobody said
- `frame`: what stands before the data: ``tight`` for ``data:``, ``named`` for ``event: <type>`` before it
- `json`: ``spaced``, ``ascii``, ``html``, ``slash``: how texts are spelled; `odd`: pieces that are spelled
  otherwise; `arguments`: the style of calls' arguments
- `eol` (``crlf``, ``cr``), `bom`, `end` (what ends the last event), `tail` (bytes that are no text)

A reviewer may edit what was said: pieces are cut as before as far as the text goes, the last takes what is
left, and what repeats a text follows it. What no such description gives back exactly stands as `raw`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

from stepfork.cassette import json_style
from stepfork.cassette.stream.decode import decoded, size_of
from stepfork.cassette.stream.encode import encoded
from stepfork.cassette.stream.leaves import BESIDE, leaves
from stepfork.cassette.stream.spelling import Misfit
from stepfork.core.model import Plain, Tagged

__all__ = ["Misfit", "calls_of", "check", "decode", "encode", "text_of"]

_WORTH: Final = 0.9
"""A stream that says nothing we know stands raw if its wire is not shorter than this part of it."""


def encode(raw: bytes) -> dict[str, Plain]:
    r"""What stands in a cassette for a stream.

    It is decoded again before it is returned, from the plain values: that those come back from the file is
    the business of emitter and reader, which are tested for every plain value, and checking it here would
    cost twenty times as much. Takes time proportional to the length.

    >>> encode(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n')
    {'text': 'Hi', 'wire': {'events': '{"choices":[{"delta":{"content":$next text}}]}\n[DONE]\n'}}
    >>> encode(b"no events"), encode(b"\xff")
    ({'raw': 'no events'}, {'raw': Tagged(tag='bytes', value='/w==')})
    """
    try:
        stream = encoded(raw)
        if stream is not None and _is_worth_it(stream, len(raw)) and decoded(stream) == raw:
            return stream
    except (ValueError, RecursionError):  # nothing of the kind is known; the raw text is always right
        pass
    try:
        return {"raw": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"raw": Tagged("bytes", base64.b64encode(raw).decode("ascii"))}


def decode(stream: dict[str, Plain]) -> bytes:
    r"""The bytes of a stream that stands in a cassette, edited or not.

    Fields that tell how it ended (``broken``, ``closed``) are left alone.

    Raises:
        Misfit: if its parts do not fit together, or would give a stream out of proportion to them; with the
            field, without ``stream.`` before it.

    >>> decode({"text": "Ho!", "wire": {"events": '[$next text]', "order": "1{2}", "cuts": {"text": "11"}}})
    b'data: ["H"]\n\ndata: ["o!"]\n\n'
    """
    if "raw" not in stream:
        return decoded(stream)
    raw = stream["raw"]
    for key in stream:
        if key == "wire" or key not in ("raw", *BESIDE):
            raise Misfit(key, "a stream that stands raw has nothing else")
    if isinstance(raw, str):
        return raw.encode("utf-8", "surrogatepass")
    if isinstance(raw, Tagged) and raw.tag == "bytes" and isinstance(raw.value, str):
        try:
            return base64.b64decode(raw.value, validate=True)
        except (ValueError, binascii.Error):
            raise Misfit("raw", "bytes in base64 expected") from None
    hint = "; add quotes" if isinstance(raw, bool | int | float) else ""
    raise Misfit("raw", f"text or bytes expected{hint}")


def check(stream: dict[str, Plain]) -> None:
    """Whether the parts of a stream fit together; costs what `decode` does.

    Raises:
        Misfit: if they do not.

    >>> check({"text": "Hi", "wire": {"events": "[DONE]"}})
    Traceback (most recent call last):
    ...
    stepfork.cassette.stream.spelling.Misfit: text: no event of the stream says it; remove it, or record again
    """
    decode(stream)


def text_of(stream: dict[str, Plain]) -> str:
    """The text that a stream says, for people; several choices or texts with an empty line between.

    Where it says no text it is the refusal, and for a stream of an unknown kind what it has of text.

    >>> text_of({"choices": [{"text": "Yes."}, {"text": "No."}], "wire": {}})
    'Yes.\\n\\nNo.'
    """
    stream = _readable(stream)
    said = _said(stream)
    for kind in ("text", "refusal"):
        if texts := [text for name, text in said.items() if kind in name.split(".")]:
            return "\n\n".join(texts)
    wire, raw = stream.get("wire"), stream.get("raw")
    texts = list(_texts(wire.get("texts"))) if isinstance(wire, dict) and not said else []
    return raw if isinstance(raw, str) else "\n\n".join(texts)


def calls_of(stream: dict[str, Plain]) -> list[tuple[str, str]]:
    """The calls that a stream asks for: names and arguments as JSON.

    >>> calls_of({"tool_calls": [{"id": "call_1", "name": "search", "arguments": {"q": "go"}}], "wire": {}})
    [('search', '{"q":"go"}')]
    """
    said = _said(_readable(stream))
    calls = dict.fromkeys(name.rpartition(".")[0] for name in said if "tool_calls" in name)
    return [(said.get(f"{call}.name", ""), said.get(f"{call}.arguments", "")) for call in calls]


def _readable(stream: dict[str, Plain]) -> dict[str, Plain]:
    """A stream that stands raw (another tool or a person wrote it) as what it says, if it says anything."""
    raw = stream.get("raw")
    again = encode(raw.encode("utf-8", "surrogatepass")) if isinstance(raw, str) else stream
    return again if "wire" in again else stream


def _said(stream: dict[str, Plain]) -> dict[str, str]:
    if "raw" in stream:
        return {}
    wire = stream.get("wire")
    style = wire.get("arguments") if isinstance(wire, dict) else None
    return leaves(
        stream, style if isinstance(style, str) and style in json_style.STYLES else json_style.DEFAULT
    )


def _texts(texts: Any) -> Iterator[str]:
    if isinstance(texts, dict):
        yield from (text for text in texts.values() if isinstance(text, str))


def _is_worth_it(stream: dict[str, Plain], length: int) -> bool:
    return len(stream) > 1 or size_of(stream) < _WORTH * length
