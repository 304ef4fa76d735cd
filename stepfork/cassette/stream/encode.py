"""An event stream -> what it said and its wire. Puts the parts together; knows no file and no fallback.

The steps: cut the bytes into events (`events`), group the events by shape (`shapes`), find what
they say (`said`) and put it in its place (`layout`), tell what else changes as series
(`series`), name what the templates repeat (`macros`).
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence

from stepfork.cassette import json_style
from stepfork.cassette.scalars import find_unsafe
from stepfork.cassette.stream.events import (
    FRAMES,
    GAP,
    Envelope,
    escape,
    escaped_line,
    head_of,
    open_stream,
    usual_head,
)
from stepfork.cassette.stream.layout import Layout
from stepfork.cassette.stream.leaves import SAID
from stepfork.cassette.stream.macros import Node, Templates
from stepfork.cassette.stream.series import Names, Series
from stepfork.cassette.stream.shapes import Shape, group
from stepfork.cassette.stream.spelling import Style, runs_text
from stepfork.core.model import Plain, Tagged


def encoded(raw: bytes) -> dict[str, Plain] | None:
    r"""What a stream said, and its wire; None if it is no text or holds no event.

    >>> encoded(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n')
    {'text': 'Hi', 'wire': {'events': '{"choices":[{"delta":{"content":$next text}}]}\n[DONE]\n'}}
    """
    opened = open_stream(raw)
    if opened is None or not opened[0]:
        return None
    events, envelope = opened
    shapes = group(events)
    style = Style.guess(GAP.join(events), _is_spaced(shapes))
    series = Series(style)
    layout = Layout(events, shapes, style, series)
    shapes = sorted(layout.shapes, key=lambda shape: shape.at[0])
    series.find(shapes)
    for shape in shapes:
        _settle(shape, layout.repeats)
    frame = _frame(shapes)
    wire: dict[str, Plain] = {
        "json": style.words(),
        "arguments": "" if layout.arguments == json_style.DEFAULT else layout.arguments,
        "frame": frame,
        "bom": envelope.bom,
        "eol": "" if envelope.eol == "lf" else envelope.eol,
        "events": "".join(line + "\n" for line in _lines(shapes, style, frame)),
        "order": _order(shapes, len(events)),
        "cuts": series.cuts,
        "odd": series.odd,
        "texts": series.texts,
        "series": series.values,
    }
    told = {key: value for key, value in wire.items() if value}
    return {**layout.said, "wire": {**told, **_end(envelope)}}


def _settle(shape: Shape, repeats: dict[tuple[str, str], str]) -> None:
    """Marks what never changes: as a repeat of what was said, else as the value itself."""
    paths = {*shape.paths}
    for token, mark in enumerate(shape.marks):
        if mark is None:
            literal = shape.rows[0][token]
            path = shape.paths[token] if shape.paths else ()
            key = str(path[-1]) if path else ""
            if key == "name" and not {(*path[:-1], "arguments"), (*path[:-1], "input")} & paths:
                key = ""  # of something else than a call
            shape.marks[token] = repeats.get((key, literal), literal)


def _is_spaced(shapes: Sequence[Shape]) -> bool:
    counts: Counter[bool] = Counter()
    for shape in shapes:
        if shape.tree is not None:
            counts[any(text.endswith('": ') for text in shape.texts)] += len(shape.at)
    return counts[True] > counts[False]


def _frame(shapes: Sequence[Shape]) -> str:
    counts: Counter[str] = Counter()
    for shape in shapes:
        if payload := _payload(shape):
            for frame in FRAMES:
                counts[frame] += len(shape.at) * (usual_head(frame, payload) == shape.head)
    return max(FRAMES, key=lambda frame: counts[frame])


def _payload(shape: Shape) -> str:
    """The template of an event's data, if nothing that changes stands before it."""
    return "" if shape.skip else shape.fill(shape.marks)[len(shape.head) :]


def _lines(shapes: Sequence[Shape], style: Style, frame: str) -> list[str]:
    """The definitions, and a line for every shape."""
    templates = Templates(style, Names(SAID))
    lines: list[str] = []
    nodes: dict[int, Node] = {}
    for at, shape in enumerate(shapes):
        payload = _payload(shape)
        if not _is_plain(shape, payload, frame):
            lines.append(_escaped(shape))
            continue
        lines.append(payload)
        if shape.tree is not None:
            node = templates.build(shape.tree, [mark or "" for mark in shape.marks])
            if templates.text(node) == payload:
                nodes[at] = node
    for at, text in zip(nodes, templates.share([*nodes.values()]), strict=True):
        lines[at] = text
    return [f"${name} = {text}" for name, text in templates.definitions] + lines


def _is_plain(shape: Shape, payload: str, frame: str) -> bool:
    """Whether the data alone stands for the event."""
    return (
        payload[:1] in ("{", "[")
        and shape.head == head_of(shape.head + payload) == usual_head(frame, payload)
        and (shape.tree is not None or "$" not in payload)
        and find_unsafe(payload) is None
        and payload[-1] not in " \t"
    )


def _escaped(shape: Shape) -> str:
    parts = [escape(shape.texts[0])]
    for mark, text in zip(shape.marks, shape.texts[1:], strict=True):
        parts += [mark if mark and mark[0] == "$" else escape(mark or ""), escape(text)]
    return escaped_line("".join(parts))


def _order(shapes: Sequence[Shape], count: int) -> str:
    if len(shapes) == count and all(shape.at == [at] for at, shape in enumerate(shapes)):
        return ""
    numbers = [""] * count
    for number, shape in enumerate(shapes, 1):
        for at in shape.at:
            numbers[at] = str(number)
    return runs_text(numbers)


def _end(envelope: Envelope) -> dict[str, Plain]:
    end: dict[str, Plain] = {}
    if envelope.end != GAP:
        end["end"] = envelope.end
    if envelope.tail:
        end["tail"] = Tagged("bytes", base64.b64encode(envelope.tail).decode("ascii"))
    return end
