"""Emitter and reader together: every plain value comes back exactly, and the file reads well in a diff."""

from __future__ import annotations

import io
import math
from collections import OrderedDict
from enum import Enum, IntEnum
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from support.examples import examples
from support.texts import SURROGATE_TEXT, TEXT

from stepfork.cassette.emitter import emit_document
from stepfork.cassette.reader import parse_document, split
from stepfork.cassette.scalars import MAX_DEPTH
from stepfork.core.model import Tagged

TAGS = frozenset(("tuple", "set", "path", "x-1", "no"))
MANY = examples(200)


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1, True and 1.0 apart, and -0.0 and 0.0, and keeps the order of keys."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Tagged):
        return one.tag == other.tag and same(one.value, other.value)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (
            one != one and other != other
        )
    return bool(one == other)


def comes_back(document: dict[str, Any]) -> str:
    text = emit_document(document)
    assert text.endswith("\n")
    assert "\n---" not in text
    text.encode()  # no lone surrogate is left
    for pure in (False, True):
        assert same(parse_document(text, known_tags=TAGS, pure=pure), document), text
    return text


def any_loader_reads(document: dict[str, Any]) -> str:
    text = comes_back(document)
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        assert same(yaml.load(text, Loader=loader), document), text
    assert same(plain_ruamel(YAML(typ="safe", pure=True).load(text)), document), text
    return text


def plain_ruamel(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain_ruamel(item) for key, item in value.items()}
    return [plain_ruamel(item) for item in value] if isinstance(value, list) else value


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from([1e-05, 1e16, 1e17, -1e-300, 5e-324, 1.5e300, 0.1, -0.0, 123456789012345680.0]),
)


def values(text: st.SearchStrategy[str], tags: bool) -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.none(), st.booleans(), NUMBERS, text, text)

    def more(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        shapes = [st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)]
        if tags:
            shapes.append(st.builds(Tagged, st.sampled_from(sorted(TAGS)), inner))
        return st.one_of(shapes)

    return st.recursive(leaves, more, max_leaves=12)


@MANY
@given(
    st.dictionaries(
        st.one_of(TEXT, SURROGATE_TEXT), values(st.one_of(TEXT, SURROGATE_TEXT), True), max_size=4
    )
)
def test_every_plain_value_comes_back(document: dict[str, Any]) -> None:
    comes_back(document)


@MANY
@given(st.dictionaries(TEXT, values(TEXT, False), max_size=4))
def test_json_like_content_loads_with_any_safe_loader(document: dict[str, Any]) -> None:
    any_loader_reads(document)


@MANY
@given(TEXT, TEXT)
def test_nasty_text_comes_back_at_every_place(text: str, key: str) -> None:
    """C02, C04, C08: as value, key, item, in flow, last in the document and before something else."""
    any_loader_reads({"a": text, "f": [text], "l": [{"k": text, "m": "x\ny"}, [text, "x\n"]], key: text})
    any_loader_reads({"deep": {"er": {"x": "1\n2", key: text}}, "n": 1, "z": text})


@MANY
@given(st.lists(st.dictionaries(TEXT, TEXT, max_size=2), min_size=1, max_size=4))
def test_a_stream_splits_into_what_was_joined(documents: list[dict[str, Any]]) -> None:
    texts = [emit_document(document) for document in documents]
    stream = "---\n".join(texts)
    found = split(stream)
    assert [text for _, text in found] == texts
    for line, text in found:
        assert stream.split("\n")[line - 1 :][: text.count("\n")] == text.split("\n")[:-1]


@MANY
@given(st.dictionaries(TEXT, values(TEXT, False), max_size=4))
def test_crlf_changes_no_value(document: dict[str, Any]) -> None:
    """C06: what git's autocrlf makes of the file reads the same."""
    stream = (emit_document(document) + "---\nend: completed\n").replace("\n", "\r\n")
    slices = split(stream)
    assert len(slices) == 2
    assert same(parse_document(slices[0][1]), document)
    assert same(parse_document(emit_document(document).replace("\n", "\r\n")), document)


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b\nc", "\u2029"])
def test_C02_unicode_line_breaks(text: str) -> None:
    assert not set("\x85\u2028\u2029") & set(any_loader_reads({"result": text}))


@pytest.mark.parametrize("text", ["#️⃣ 1️⃣ 👩‍👩‍👧 😀", "#️⃣"])
def test_C04_emoji_stand_as_themselves(text: str) -> None:
    assert f'content: "{text}"' in any_loader_reads({"content": text})
    assert f"  {text}\n  next" in any_loader_reads({"content": f"{text}\nnext"})


@pytest.mark.parametrize("text", ["  lead\nline \n\ttab\n\n\n", "\n", " ", "\t"])
def test_C08_blanks_count(text: str) -> None:
    any_loader_reads({"first": text, "list": [text, text], "last": text})


def test_C08_ordinary_text_is_a_block() -> None:
    assert emit_document({"a": "  lead\nline \n\ttab\n\n\n"}) == "a: |2+\n    lead\n  line \n  \ttab\n\n\n"


def test_C11_strings_that_look_like_numbers_stay_text() -> None:
    document = {
        "sha": "695e0514",
        "v": "1.10",
        "z": "012",
        "o": "0o17",
        "h": "0x1F",
        "u": "1_000",
        "t": "12:30:45",
        "e": "1e3",
        "n": ".nan",
    }
    any_loader_reads(document)
    any_loader_reads({value: key for key, value in document.items()})
    any_loader_reads({"args": {"list": list(document.values())}})


WORDS = "y Y yes Yes YES n N no No NO on On ON off OFF true True TRUE false False null Null NULL"
SIGNS = "~ << = - . --- ... + ? : , | > % @ ` ! & * { } [ ] # ' \""
LOOK_ALIKES = (
    "1 -1 +1 1. .5 1e5 1E5 0b1 0777 0x_1 1:20 -1:20.5 2024-01-01 +.inf .NaN 2001-12-14t21:59:43.10-05:00 3x"
)


@pytest.mark.parametrize(
    "text", [*WORDS.split(), *SIGNS.split(), *LOOK_ALIKES.split(), "2001-12-14 21:59:43 -5", ""]
)
def test_what_some_reader_takes_for_something_else_is_quoted(text: str) -> None:
    any_loader_reads({"a": text, text: "b", "c": [text], "d": {text: text}, "e": [[text, "x\ny"]]})


@pytest.mark.parametrize(
    "number",
    [
        1e-05,
        1e16,
        1.5e-07,
        math.inf,
        -math.inf,
        math.nan,
        -0.0,
        10**599,
        -(10**600),
        pytest.param(10**5000, id="5000 digits"),
        1e22,
    ],
)
def test_numbers(number: Any) -> None:
    any_loader_reads({"a": number, "b": [number], "c": {"d": [number, True, 1, 1.0]}})


def test_float_spelling() -> None:
    document = {"a": [1e-05, 1e16, math.nan, math.inf, -math.inf, -0.0, 0.1]}
    assert emit_document(document) == "a: [1.0e-05, 1.0e+16, .nan, .inf, -.inf, -0.0, 0.1]\n"


@pytest.mark.parametrize("length", [127, 128, 999, 1000, 1001, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("character", ["k", '"', "é", "\n", "😀"])
def test_long_keys(length: int, character: str) -> None:
    key = character * length
    any_loader_reads(
        {key: 1, key + "a": {"x": "1\n2"}, "n": [{key: ["a\nb"], key + "b": "a\nb\n"}], key + "c": []}
    )
    comes_back({key + "\ud83d": 1, "t": Tagged("tuple", [{key: Tagged("set", {key + "z": "a\nb"})}])})


@pytest.mark.parametrize("text", ["a " * 3000, "a: " * 3000, "\t" * 3000, "word\n" * 3000])
def test_long_text(text: str) -> None:
    any_loader_reads({"a": text, "b": [text, [text]], "c": {"d": {"e": {"f": text}}}})


def test_lone_surrogates_come_back_and_a_pair_of_them_stays_a_pair() -> None:
    text = comes_back(
        {"a": "x\ud83d", "b": "\ud83d\ude00", "c": "1\n\\ \udc80\n", "\udc80": Tagged("path", "\udc80")}
    )
    assert text == (
        "a: !surrogates x\\ud83d\n"
        "b: !surrogates \\ud83d\\ude00\n"
        "c: !surrogates |\n  1\n  \\\\ \\udc80\n"
        "!surrogates \\udc80: !tagged {path: !surrogates \\udc80}\n"
    )


def test_tags_within_tags() -> None:
    value = Tagged("set", Tagged("tuple", [Tagged("path", Tagged("no", None)), "a\nb"]))
    comes_back(
        {"a": value, "b": [value], "c": [[value]], "d": Tagged("path", "a\n\n"), "e": Tagged("no", {})}
    )


def test_nesting_up_to_the_limit_comes_back_and_beyond_is_refused() -> None:
    for wrap in (lambda inner: [inner], lambda inner: {"k": inner}, lambda inner: Tagged("tuple", [inner])):
        value: Any = "a\nb"
        for _ in range(MAX_DEPTH - 1):
            value = wrap(value)
        comes_back({"a": value})
        with pytest.raises(ValueError, match="deeper than 200 levels"):
            emit_document({"a": wrap(value)})
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="deeper than 200 levels"):
        emit_document({"a": circle})
    small: Any = 1
    for _ in range(MAX_DEPTH - 1):
        small = [small]
    any_loader_reads({"a": small})


def test_what_is_not_plain_is_refused_by_name() -> None:
    for value in (b"x", (1,), {1, 2}, object(), 1j):
        for document in ({"a": value}, {"a": [value]}, {"a": {"b": [value, 1]}}, {"a": Tagged("set", value)}):
            with pytest.raises(TypeError, match=f"{type(value).__name__} is not a plain value"):
                emit_document(document)
    for key in (1, None, b"x"):
        for document in ({key: 1}, {"a": {key: 1}}, {"a": {key: "x\ny"}}):
            with pytest.raises(TypeError, match="a key of a plain value is a str"):
                emit_document(document)
    for tag in ("", "a b", "!x", "surrogates", "tagged", "é", "x" * 70):
        with pytest.raises(ValueError, match="cannot be a tag"):
            emit_document({"a": Tagged(tag, 1)})
    with pytest.raises(TypeError, match="a document is a dict"):
        emit_document([])  # type: ignore[arg-type]


def test_subclasses_are_written_as_what_they_are_based_on() -> None:
    """C21: no tag of Python's."""

    class Colour(str, Enum):  # noqa: UP042 - its str() is not its value
        RED = "red"

    class Number(IntEnum):
        ONE = 1

    class Text(str):
        def __str__(self) -> str:
            return "wrong"

    odd = {
        Text("k"): [Text("a"), Colour.RED, Number.ONE, OrderedDict(x=Text("v\nw"))],
        "o": OrderedDict(a=Text("b")),
    }
    text = emit_document({"a": odd, "b": Text("c"), "d": [Text("e\n")], "f": Tagged("path", Text("g"))})
    found = parse_document(text, known_tags=TAGS)
    expected = {"k": ["a", "red", 1, {"x": "v\nw"}], "o": {"a": "b"}}
    assert same(found, {"a": expected, "b": "c", "d": ["e\n"], "f": Tagged("path", "g")})
    assert "wrong" not in text


def test_ruamel_finds_no_duplicate_or_merged_key() -> None:
    text = emit_document({"<<": {"a": 1}, "a": 2, "=": "="})
    assert dict(YAML(typ="safe", pure=True).load(io.StringIO(text))) == {"<<": {"a": 1}, "a": 2, "=": "="}
