"""The bytes of a recorded stream, made as docs/cassette-format.md tells. Knows no YAML and no stepfork."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

Part = Any  # a text, or a hole: (how, name)

SIGNS = "0123456789abcdefghijklmnopqrstuvwxyz"
HOLE = (
    r"\$(?:(next|this|bytes|value|word|item|json|pad(?:1[0-6]|[1-9])) )?"
    r"([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)"
)
IN_DATA = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|$)|' + HOLE)
IN_WHOLE = re.compile(r"\\.?|" + HOLE)


def stream_bytes(stream: dict[str, Any]) -> bytes:
    """The bytes of the field ``stream``."""
    if "raw" in stream:
        raw = stream["raw"]
        if isinstance(raw, dict):
            return base64.b64decode(raw["\0bytes"])
        return bytes(raw.encode("utf-8", "surrogatepass"))
    return Wire(stream).bytes()


def json_text(value: Any, style: str) -> str:
    """A value as JSON in a style."""
    layouts: dict[str, Any] = {
        "compact": {"separators": (",", ":")},
        "spaced": {"separators": (", ", ": ")},
        "indent 2": {"indent": 2},
        "indent 4": {"indent": 4},
    }
    layout = next(name for name in layouts if style.startswith(name))
    text = json.dumps(value, ensure_ascii=" ascii" in style, **layouts[layout])
    return text + ("\n" if style.endswith(" newline") else "")


class Wire:
    def __init__(self, stream: dict[str, Any]) -> None:
        self.wire = stream["wire"]
        self.words = self.wire.get("json", "").split()
        self.said: dict[str, str] = {}
        if "choices" in stream:
            for at, choice in enumerate(stream["choices"]):
                self.name_texts(choice, f"choices.{at}.")
        else:
            self.name_texts(stream, "")

    def name_texts(self, said: dict[str, Any], prefix: str) -> None:
        for kind in ("text", "reasoning", "refusal"):
            value = said.get(kind)
            if isinstance(value, list):
                self.said.update({f"{prefix}{kind}.{at}": text for at, text in enumerate(value)})
            elif value is not None:
                self.said[prefix + kind] = value
        for at, call in enumerate(said.get("tool_calls", [])):
            for key, value in call.items():
                text = (
                    value
                    if isinstance(value, str)
                    else json_text(value, self.wire.get("arguments", "compact"))
                )
                self.said[f"{prefix}tool_calls.{at}.{key}"] = text

    def quoted(self, text: str) -> str:
        found = json.dumps(text, ensure_ascii="ascii" in self.words)
        if "html" in self.words:
            found = re.sub("[<>&\u2028\u2029]", lambda sign: f"\\u{ord(sign[0]):04x}", found)
        return found.replace("/", "\\/") if "slash" in self.words else found

    # -- templates ----------------------------------------------------------------------------------

    def templates(self) -> list[list[Part]]:
        macros: dict[str, list[Part]] = {}
        found: list[list[Part]] = []
        for line in self.wire["events"].removesuffix("\n").split("\n"):
            definition = re.fullmatch(r"\$([A-Za-z_]\w*) = (.*)", line, re.DOTALL)
            if definition:
                macros[definition[1]] = self.parts(definition[2], IN_DATA, macros)
            elif line[0] in "{[":
                data = self.parts(line, IN_DATA, macros)
                found.append([self.head(data), *data, "\n\n"])
            else:
                found.append([*self.parts(line, IN_WHOLE, macros), "\n\n"])
        return found

    def parts(self, line: str, holes: re.Pattern[str], macros: dict[str, list[Part]]) -> list[Part]:
        parts: list[Part] = []
        at = 0
        for hole in holes.finditer(line):
            how, name = hole.groups()
            if name is None:
                continue
            parts.append(self.told(line[at : hole.start()], holes))
            at = hole.end()
            if how:
                parts.append((how, name))
            elif name in macros:
                parts += macros[name]
            else:
                parts.append(self.quoted(self.said[name]))
        return [*parts, self.told(line[at:], holes)]

    @staticmethod
    def told(text: str, holes: re.Pattern[str]) -> str:
        if holes is IN_DATA:
            return text

        def one(escape: re.Match[str]) -> str:
            if escape[1]:
                return chr(int(escape[1], 16))
            return {"n": "\n", "r": "\r"}.get(escape[2], escape[2])

        return re.sub(r"\\(?:u([0-9a-f]{4})|(.?))", one, text)

    def head(self, data: list[Part]) -> str:
        words = self.wire.get("frame", "").split()
        blank = "" if "tight" in words else " "
        text = "".join(part if isinstance(part, str) else "$" for part in data)
        kind = re.search(r'"type"\s*:\s*"([^"\\]*)"', text) if "named" in words else None
        return (f"event:{blank}{kind[1]}\n" if kind else "") + f"data:{blank}"

    # -- values -------------------------------------------------------------------------------------

    def bytes(self) -> bytes:
        templates = self.templates()
        runs = self.wire.get("order")
        numbers = range(1, len(templates) + 1) if runs is None else map(int, items(runs))
        events = [templates[number - 1] for number in numbers]
        counts: dict[Part, int] = {}
        for event in events:
            for part in event:
                if not isinstance(part, str):
                    counts[part] = counts.get(part, 0) + 1
        self.left = {hole: self.values(hole, count) for hole, count in counts.items()}
        self.pads: dict[str, int] = {}
        text = "".join(map(self.event, events))
        if text:
            text = text.removesuffix("\n\n") + self.wire.get("end", "\n\n")
        text = text.replace("\n", {"lf": "\n", "crlf": "\r\n", "cr": "\r"}[self.wire.get("eol", "lf")])
        bom = "\ufeff" if self.wire.get("bom") else ""
        tail = base64.b64decode(self.wire["tail"]["\0bytes"]) if "tail" in self.wire else b""
        return (bom + text).encode("utf-8", "surrogatepass") + tail

    def values(self, hole: Part, count: int) -> Any:
        """What comes into the holes of a kind and a name, one by one: the text, and how it is spelled."""
        how, name = hole
        series = self.wire.get("series", {}).get(name)
        if how == "next":
            text = self.said[name] if name in self.said else self.wire["texts"][name]
            return iter(self.spelled(name, pieces(text, self.wire.get("cuts", {}).get(name), count)))
        if how == "value" and isinstance(series, dict):
            return iter([(None, str(series["from"] + series["step"] * at)) for at in range(count)])
        if how in ("value", "json"):
            return iter([(None, item) for item in (items(series) if how == "value" else series)])
        if how in ("word", "item"):
            return iter([(item, self.quoted(item)) for item in (items(series) if how == "word" else series)])
        return None

    def spelled(self, name: str, texts: list[str]) -> list[tuple[str, str]]:
        odd = self.wire.get("odd", {}).get(name, {})
        found = []
        for at, text in enumerate(texts):
            literal = odd.get(str(at))
            found.append(
                (text, self.quoted(text) if literal is None or json.loads(literal) != text else literal)
            )
        return found

    def event(self, event: list[Part]) -> str:
        taken: dict[str, tuple[Any, str]] = {}
        piece = ""
        texts: list[Any] = []
        for part in event:
            if not isinstance(part, str) and self.left[part] is not None:
                value = next(self.left[part])
                taken.setdefault(part[1], value)
                texts.append(value[1])
                piece = value[1] if part[0] == "next" else piece
            else:
                texts.append(part)
        for at, part in enumerate(texts):
            if isinstance(part, tuple):
                texts[at] = self.derived(part, taken, piece)
        return "".join(texts)

    def derived(self, hole: Part, taken: dict[str, tuple[Any, str]], piece: str) -> str:
        how, name = hole
        if how.startswith("pad"):
            at = self.pads.get(name, 0)
            self.pads[name] = end = at + ((int(how[3:]) - len(piece) + 2) % 16 or 16)
            return self.quoted(self.wire["series"][name][at:end])
        text, literal = taken[name]
        if how == "this":
            return literal
        comma = ", " if "spaced" in self.words else ","
        return f"[{comma.join(map(str, text.encode('utf-8', 'surrogatepass')))}]"


def items(runs: str) -> list[str]:
    """``1 2{3}`` as 1 2 2 2."""
    found: list[str] = []
    for item in runs.split(" ") if runs else ():
        times = re.fullmatch(r"([^{]+)\{(\d+)\}", item)
        found += [times[1]] * int(times[2]) if times else [item]
    return found


def pieces(text: str, cuts: str | None, count: int) -> list[str]:
    lengths: list[int] = []
    for sign, long, times in re.findall(r"(?:([0-9a-z])|\((\d+)\))(?:\{(\d+)\})?", cuts or f"0{{{count}}}"):
        lengths += [SIGNS.index(sign) if sign else int(long)] * int(times or 1)
    found, at = [], 0
    for length in lengths[: count - 1]:
        found.append(text[at : at + length])
        at += length
    return [*found, text[at:]]
