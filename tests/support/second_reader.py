"""A second reader of cassettes, written from docs/cassette-format.md. Knows ruamel.yaml and no stepfork.

It gives a file as plain JSON: header, calls in full, end; a tagged value is an object with one key, U+0000
and the tag. `python -m support.second_reader FILE`, in tests/, prints it. Streams: `second_reader_stream`.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import hashlib
import json
import re
import struct
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from support.second_reader_stream import json_text, stream_bytes

LLM_QUESTION = ("method", "path", "query", "content_type")
EXTENSION = ("extends", "remove", "append")
NO_OUTCOME = {"tool", "llm", "args", "request", "depth", "lane", "started", "after", "shared", "unfinished"}
NO_OUTCOME |= {*LLM_QUESTION, *EXTENSION, "odd_contents", "start", "parent", "line", "lines"}
STEP = re.compile(r'(?:^|(?<!^)\.)([A-Za-z_][\w-]*)|\[("(?:[^"\\]|\\.)*")\]')


LOOKALIKE = re.compile(r"<=(=*secret:\w{1,64}:(?:other-)?[1-9][0-9]{0,8}>)")


class Unreadable(Exception):
    """This is no cassette."""


def read(path: Path) -> dict[str, Any]:
    """A cassette as JSON."""
    text = path.read_bytes().decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    documents = text.split("\n---\n")
    partial = re.search(r"\.partial(\.\d+)?\.yaml$", path.name)
    end: Any = None
    if partial:
        documents.pop()
    parsed = [parse(f"{document}\n") for document in documents]
    if parsed[0].get("stepfork") != 1:
        raise Unreadable("another version")
    if not partial:
        end = parsed.pop()
        if "end" not in end:
            raise Unreadable("cut off")
        end["checksum"] = checksum(text, end.pop("sha256", None))
    for field in {"args", "env"} & {*parsed[0]}:
        parsed[0][field] = as_it_was(parsed[0][field])
    calls = parsed[1:]
    shared = shared_values(calls)
    full = [restore(call, shared) for call in calls]
    places = full if partial else with_places(full)
    requests: list[Any] = []
    for at, call in enumerate(full):
        requests.append(request_of(call, at, places, requests))
    found = [in_full(call, requests[at]) for at, call in enumerate(full)]
    calls = in_order_of_start(full, found) if partial else found
    return {
        part: with_offsets(value) for part, value in (("header", parsed[0]), ("calls", calls), ("end", end))
    }


def with_offsets(value: Any) -> Any:
    """An offset of whole minutes is the same in a text and beside it."""
    if isinstance(value, list):
        return [with_offsets(item) for item in value]
    if not isinstance(value, dict):
        return value
    for tag in ("\0datetime", "\0time"):
        if [*value] == [tag] and isinstance(value[tag], list):
            text, zone, fold = value[tag]
            if type(zone) is int and zone and not zone % 60_000_000 and not fold:
                hours, minutes = divmod(abs(zone) // 60_000_000, 60)
                return {tag: f"{text}{'+' if zone > 0 else '-'}{hours:02}:{minutes:02}"}
    return {key: with_offsets(item) for key, item in value.items()}


def as_it_was(value: Any) -> Any:
    """A value of the program: what only looks like the placeholder of a secret has a `=` less."""
    if isinstance(value, str):
        return LOOKALIKE.sub(r"<\1", value)
    if isinstance(value, dict):
        if [*value] == ["\0bytes"]:
            raw = base64.b64decode(value["\0bytes"])
            with contextlib.suppress(UnicodeDecodeError):
                raw = as_it_was(raw.decode()).encode() if b"\0" not in raw else raw
            return {"\0bytes": base64.b64encode(raw).decode()}
        return {as_it_was(key): as_it_was(item) for key, item in value.items()}
    return [as_it_was(item) for item in value] if isinstance(value, list) else value


def checksum(text: str, written: Any) -> str:
    if written is None:
        return "absent"
    body = text[: text.rindex("sha256: ")]
    return "ok" if hashlib.sha256(body.encode()).hexdigest() == written else "differs"


# -- values -----------------------------------------------------------------------------------------


def parse(text: str) -> Any:
    yaml = YAML(typ="safe", pure=True)
    return value_of(yaml.compose(text), yaml)


def value_of(node: Any, yaml: Any) -> Any:
    tag = str(node.tag)
    ours = tag[1:] if tag.startswith("!") else ""
    value: Any
    if isinstance(node, MappingNode):
        value = {}
        for key, item in node.value:
            name = value_of(key, yaml)
            if not isinstance(name, str) or name in value:
                raise Unreadable(f"the key {name!r}")
            value[name] = value_of(item, yaml)
    elif isinstance(node, SequenceNode):
        value = [value_of(item, yaml) for item in node.value]
    else:
        assert isinstance(node, ScalarNode)
        if ours and not node.style:
            tag = str(yaml.resolver.resolve(ScalarNode, node.value, (True, False)))
        value = node.value if node.style else unquoted(node.value, tag.rpartition(":")[2])
    if not ours:
        return value
    if ours == "surrogates":
        return re.sub(r"\\(\\|u[0-9a-f]{4})", lambda f: chr(int(f[1][1:], 16)) if f[1][1:] else "\\", value)
    if ours in ("f32", "f64"):
        size, code = (4, "f") if ours == "f32" else (8, "d")
        raw = base64.b64decode(value)
        return list(struct.unpack(f"<{len(raw) // size}{code}", raw))
    if ours == "tagged":
        ((ours, value),) = value.items()
    return {f"\0{ours}": value}


def unquoted(text: str, kind: str) -> Any:
    """What YAML 1.2 says of an unquoted scalar."""
    if kind == "int":
        return int(text, 16 if "0x" in text else 10)
    if kind == "float":
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))
    return {"null": None, "bool": text == "true"}.get(kind, text)


def canonical(value: Any) -> str:
    """The canonical text, but with the keys in the order they have."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def shared_values(calls: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for call in calls:
        for name, value in call.get("shared", {}).items():
            if (
                not hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass"))
                .hexdigest()
                .startswith(name)
            ):
                raise Unreadable(f"{name} is the name of another value")
            found[name] = value
    return found


def restore(value: Any, shared: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if list(value) == ["\0shared"]:
            return copy.deepcopy(shared[value["\0shared"]])
        return {key: item if key == "shared" else restore(item, shared) for key, item in value.items()}
    return [restore(item, shared) for item in value] if isinstance(value, list) else value


# -- calls ------------------------------------------------------------------------------------------


def in_full(call: dict[str, Any], request: Any) -> dict[str, Any]:
    kind = "tool" if "tool" in call else "llm"
    outcome = {key: value for key, value in call.items() if key not in NO_OUTCOME}
    content = content_of(outcome) if kind == "llm" else None
    if content is not None:
        outcome["bytes"] = base64.b64encode(content).decode()
    lane = {key: call[key] for key in ("lane", "started", "after") if key in call}
    return {
        "kind": kind,
        "name": call[kind],
        "asked": call.get("args", {}) if kind == "tool" else request,
        "target": {key: call[key] for key in LLM_QUESTION if key in call},
        "outcome": outcome,
        "depth": call.get("depth", 0),
        "unfinished": call.get("unfinished", False),
        "lane": lane,
    }


def content_of(outcome: dict[str, Any]) -> bytes | None:
    """The bytes of an answer."""
    if "stream" in outcome:
        return stream_bytes(outcome["stream"])
    if "response" in outcome:
        text = json_text(outcome["response"], outcome.get("json", "compact"))
        return text.encode("utf-8", "surrogatepass")
    if "text" in outcome:
        return bytes(outcome["text"].encode("utf-8", "surrogatepass"))
    return base64.b64decode(outcome["body"]["\0bytes"]) if "body" in outcome else None


def with_places(calls: list[Any]) -> list[Any]:
    """Who made each call, told as a partial file does: ``parent`` and ``line``, which begin and end."""
    lines: list[dict[str, int]] = []  # by depth: the number of each lane that goes on
    parents: list[int] = []
    placed = []
    for at, call in enumerate(calls):
        depth, lane = call.get("depth", 0), call.get("lane", "")
        del lines[depth + 1 :], parents[depth:]
        while len(lines) <= depth:
            lines.append({})
        here = lines[depth]
        for other in list(here):
            above = lane == other or not other or lane.startswith(f"{other}.")
            if not above:
                del here[other]
        placed.append({**call, "parent": parents[-1] if parents else None, "line": here.setdefault(lane, at)})
        parents.append(at)
    return placed


def request_of(call: Any, at: int, places: list[Any], requests: list[Any]) -> Any:
    if "extends" not in call:
        return call.get("request")
    me = places[at]
    line = [
        other
        for other in range(at)
        if "llm" in places[other]
        and places[other].get("parent") == me.get("parent")
        and places[other].get("line") == me.get("line")
    ]
    request = copy.deepcopy(requests[line[-call["extends"]]])
    for path in call.get("remove", []):
        cut = re.fullmatch(r"(.*)\[(-?\d+):(\d*)\]", path, re.DOTALL)
        if cut:
            del find(request, cut[1])[int(cut[2]) : int(cut[3]) if cut[3] else None]
        else:
            above, key = parted(path)
            del walk(request, above)[key]
    for path, value in call.get("request", {}).items():
        above, key = parted(path)
        walk(request, above)[key] = value
    for path, tail in call.get("append", {}).items():
        find(request, path).extend(tail)
    return request


def steps(path: str) -> list[str]:
    keys, at = [], 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            raise Unreadable(path)
        keys.append(step[1] if step[1] is not None else json.loads(step[2]))
        at = step.end()
    return keys


def parted(path: str) -> tuple[list[str], str]:
    keys = steps(path)
    return keys[:-1], keys[-1]


def walk(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = value[key]
    return value


def find(value: Any, path: str) -> Any:
    return walk(value, steps(path))


def in_order_of_start(calls: list[Any], found: list[Any]) -> list[Any]:
    """Those of a partial file: in order of start, each with what was called inside of it behind it."""
    starts = {call.get("start", at): at for at, call in enumerate(calls)}
    inside: dict[Any, list[int]] = {}
    for start in sorted(starts):
        inside.setdefault(calls[starts[start]].get("parent"), []).append(start)

    def below(parent: Any) -> list[Any]:
        return [call for start in inside.get(parent, []) for call in (found[starts[start]], *below(start))]

    return below(None)


if __name__ == "__main__":
    print(json.dumps(read(Path(sys.argv[1])), indent=1))
