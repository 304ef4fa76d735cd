"""What the reader refuses, and that it says where: nothing in a file is read as other than it looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.cassette.emitter import emit_document
from stepfork.cassette.reader import line_of, parse_document, read_text
from stepfork.errors import CassetteError

FILE = Path("cassettes/a.yaml")


@pytest.fixture(params=[False, True], ids=["libyaml", "pure"])
def pure(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def refused(text: str, *, pure: bool, first_line: int = 1) -> CassetteError:
    with pytest.raises(CassetteError) as caught:
        parse_document(text, file=FILE, first_line=first_line, pure=pure)
    assert caught.value.file == FILE
    return caught.value


@pytest.mark.parametrize(
    "value",
    [
        *("no", "No", "yes", "on", "off", "y", "n", "True", "TRUE", "NULL", "~", "="),
        *("1.10", "0.70", "012", "0o17", "0x1F", "0b1", "1_000", "12:30:45", "1e3", "1.", ".5", "+1", "-0"),
        *("1e-05", "1.0e5", ".NaN", ".Inf", "+.inf", "2024-01-01", "2024-01-01T10:00:00Z"),
    ],
)
def test_C13_an_edit_without_quotes_never_becomes_something_else(value: str, pure: bool) -> None:
    """C13: ``content: no``, ``content: 1.10``, ``content: 2024-01-01``."""
    text = f"request:\n  messages:\n  - role: user\n    content: {value}\n"
    error = refused(text, pure=pure, first_line=10)
    assert error.problem == f"ambiguous unquoted value '{value}': add quotes if it is text"
    assert (error.line, error.field) == (13, "request.messages[0].content")
    assert refused(f"a: [1, {value}]\n", pure=pure).field == "a[1]"
    assert refused(f"a: !tuple [{value}]\n", pure=pure).field == "a[0]"
    assert refused(f"a: !decimal {value}\n", pure=pure).field == "a"


@pytest.mark.parametrize(
    "value", ["no way", "1.2.3", "3 apples", "12:30 sharp", "-x", "10.0.0.1", "1e", "nope", "e"]
)
def test_unquoted_text_that_nobody_reads_otherwise_is_text(value: str, pure: bool) -> None:
    assert parse_document(f"a: {value}\n", pure=pure) == {"a": value}


def test_an_empty_value_is_refused(pure: bool) -> None:
    for text in ("a: 1\nb:\nc: 2\n", "a: 1\nb: # comment\n", "a: 1\nb: !tuple\n"):
        error = refused(text, pure=pure)
        assert error.problem == "text expected: add quotes, or write null"
        assert (error.line, error.field) == (2, "b")


@pytest.mark.parametrize("key", ["no", "1", "1.5", "null", "true", "2024-01-01", "~", "12:30:45", "0x1F"])
def test_a_key_that_is_not_text_is_refused(key: str, pure: bool) -> None:
    error = refused(f"a:\n  {key}: 1\n", pure=pure)
    assert error.problem == f"the unquoted key '{key}' is not read as text by every reader: add quotes"
    assert (error.line, error.field) == (2, "a")
    assert parse_document(f'a:\n  "{key}": 1\n', pure=pure) == {"a": {key: 1}}


def test_C15_duplicate_keys(pure: bool) -> None:
    """C15: an interaction with two ``response:`` keys."""
    error = refused("llm: x\nresponse: {a: 1}\nresponse: {a: 2}\n", pure=pure, first_line=7)
    assert str(error) == f"{FILE}:9: response: duplicate key 'response'"
    assert refused('a: {b: 1, "b": 2}\n', pure=pure).field == "a.b"
    assert "duplicate" in refused('"\\x41": 1\nA: 2\n', pure=pure).problem


@pytest.mark.parametrize(
    ("text", "line", "field", "problem"),
    [
        ("a: &x 1\n", 1, "a", "anchors ('&x') are not read"),
        ("a: 1\nb: &x {c: 1}\n", 2, "b", "anchors"),
        ("a: 1\nb: *x\n", 2, "b", "aliases ('*x') are not read"),
        ("&x a: 1\n", 1, "", "anchors"),
        ("*x : 1\n", 1, "", "aliases"),
        ("a: &x [*x]\n", 1, "a", "anchors"),
        (
            "a: 1\nb: !!python/object/apply:os.system [x]\n",
            2,
            "b",
            "unknown tag '!!python/object/apply:os.system'",
        ),
        ("a: !!str 1\n", 1, "a", "unknown tag '!!str'"),
        ("a: !other 1\n", 1, "a", "unknown tag '!other'"),
        ("a: ! 1\n", 1, "a", "unknown tag '!'"),
        ("a: !<tag:x> 1\n", 1, "a", "unknown tag 'tag:x'"),
        ("!!set {a, b}\n", 1, "", "unknown tag"),
        ("!tuple {a: 1}\n", 1, "", "a document carries no tag"),
        ("!tuple a: 1\n", 1, "", "a key must be text"),
        ("a:\n  <<: {b: 1}\n", 2, "a", "merge keys"),
        ("a:\n  ? [x]\n  : 1\n", 2, "a", "a key must be text"),
        ("a: {{b: 1}: 2}\n", 1, "a", "a key must be text"),
        ("- a\n- b\n", 1, "", "must be a mapping"),
        ("text\n", 1, "", "must be a mapping"),
        ("", 1, "", "the document is empty"),
        ("\n# comment\n\n", 1, "", "the document is empty"),
        ("---\n", 1, "", "the document is empty"),
        ("a: 1\n---\nb: 2\n", 2, "", "more than one document"),
        ("a: 1\n...\nb: 2\n", 3, "", "more than one document"),
        # where a syntax error stands the parser may still be one field behind or ahead
        ("a: 1\nb: c: d\n", 2, None, "not valid YAML: mapping values are not allowed"),
        ("a: 1\nb: [c,\n", 2, "b[1]", "not valid YAML"),
        ('a: 1\nb: "c\n\nd: e\n', 4, "b", "not valid YAML: found unexpected end of stream"),
        ("a: 1\n\tb: 2\n", 2, None, "not valid YAML: found"),
        ("a: @x\n", 1, "a", "not valid YAML"),
        ("a: %x\n", 1, "a", "not valid YAML"),
        ("a: !e!x 1\n", 1, "a", "not valid YAML: found undefined tag handle"),
        ('a: "\\ud83d"\n', 1, "a", "not valid YAML: found invalid Unicode"),
        ('a: "\\UFFFFFFFF"\n', 1, "a", "not valid YAML: found invalid Unicode"),
        ("a: !surrogates [x]\n", 1, "a", "must be text"),
        ("a: !surrogates 1\n", 1, "a", "must be text"),
        ("a: !surrogates \\x41\n", 1, "a", "after a backslash"),
        ("a: !surrogates \\u0041\n", 1, "a", "after a backslash"),
        ("a: !tagged [x]\n", 1, "a", "a mapping of one known tag"),
        ("a: !tagged {x: 1}\n", 1, "a", "a mapping of one known tag"),
        ("a: !tagged {tuple: 1, set: 2}\n", 1, "a", "a mapping of one known tag"),
        ("a: !tagged x\n", 1, "a", "a mapping of one known tag"),
        ("a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", 2, "", "merge conflict marker '<<<<<<<'"),
        ("a: |\n  x\n=======\nb: 2\n", 3, "", "merge conflict marker '======='"),
        ("b: 2\n>>>>>>> theirs\n", 2, "", "merge conflict marker '>>>>>>>'"),
        ("b: 2\n||||||| base\n", 2, "", "merge conflict marker '|||||||'"),
        ("a: 1\nb: x\x00y\n", 2, "", "the character U+0000 cannot stand as itself"),
        ("a: 1\nb: x\x85y\n", 2, "", "U+0085"),
        ("a: 1\nb: x\u2028y\n", 2, "", "U+2028 cannot stand as itself: write \\u2028 in double quotes"),
        ("a: 1\nb: x\ry\n", 2, "", "U+000D"),
        ("a: 1\nb: x\ud83dy\n", 2, "", "U+D83D"),
        ("a: 1\nb: x\ufeffy\n", 2, "", "U+FEFF"),
    ],
)
def test_refused_with_line_and_field(
    text: str, line: int, field: str | None, problem: str, pure: bool
) -> None:
    error = refused(text, pure=pure, first_line=101)
    assert problem in error.problem
    assert error.line == 100 + line
    if field is not None:
        assert error.field == field


def test_signs_of_conflicts_inside_a_text_are_text(pure: bool) -> None:
    document = {"a": "<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> theirs\n", "=======": "<<<<<<< a", "<<<<<<< k": 1}
    assert parse_document(emit_document(document), pure=pure) == document


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 100_000, "a:\n" + "- " * 100_000, "a: " + "{a: " * 100_000, "- " * 100_000, "[" * 100_000],
    ids=["flow sequences", "block sequences", "flow mappings", "root sequences", "root flow"],
)
def test_depth_is_refused_without_a_crash(text: str, pure: bool) -> None:
    error = refused(text, pure=pure)
    assert "nested deeper than 210 levels" in error.problem or "must be a mapping" in error.problem
    assert len(str(error)) < 2000


def test_block_mappings_nested_without_end(pure: bool) -> None:
    text = "".join(f"{' ' * depth}k:\n" for depth in range(2000))
    assert "nested deeper than 210 levels" in refused(text, pure=pure).problem


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ("{a: ", "}"), ("!tuple [", "]")])
def test_the_limit_of_depth_is_the_one_that_the_error_names(before: str, after: str, pure: bool) -> None:
    def nested(levels: int) -> str:
        return f"a: {before * levels}1{after * levels}\n"

    assert "a" in parse_document(nested(210), file=FILE, known_tags={"tuple"}, pure=pure)
    with pytest.raises(CassetteError, match="nested deeper than 210 levels"):
        parse_document(nested(211), file=FILE, known_tags={"tuple"}, pure=pure)


def test_a_billion_laughs_are_refused_at_the_first(pure: bool) -> None:
    text = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    assert refused(text, pure=pure).line == 1


def test_long_values_are_shortened_in_messages(pure: bool) -> None:
    error = refused(f"a: {'1_' * 5000}\n", pure=pure)
    assert len(str(error)) < 200


@examples(300)
@given(st.text(alphabet=" \t\n#:-?,[]{}&*!|>'\"%@`~=<\\/.01ab\r\x00\x85😀", max_size=30), st.booleans())
def test_whatever_stands_there_it_is_read_or_refused(text: str, pure: bool) -> None:
    try:
        found: Any = parse_document(text, pure=pure)
    except CassetteError as error:
        found = error
    if isinstance(found, CassetteError):
        assert found.line in range(1, text.count("\n") + 2)
    else:
        assert isinstance(found, dict)


@examples(300)
@given(st.text(alphabet="0123456789+-._:eExoTZtyYnNaAfFiIlLuUsSrR~=<", max_size=12))
def test_unquoted_values_mean_the_same_to_every_reader_or_are_refused(text: str) -> None:
    """C13: whatever is typed without quotes, what we read is what YAML 1.1 and 1.2 read."""
    import yaml
    from ruamel.yaml import YAML

    try:
        found = parse_document(f"a: {text}\n")["a"]
    except CassetteError:
        return
    others = [yaml.safe_load(f"a: {text}\n")["a"], YAML(typ="safe", pure=True).load(f"a: {text}\n")["a"]]
    assert [(type(other), str(other)) for other in others] == [(type(found), str(found))] * 2


def test_the_line_of_a_field() -> None:
    text = "a: 1\nb:\n- c: 2\n  d: {e: [1, 2]}\n- c: 3\n\n  x.y: {z: 1}\nbb: 1\n"
    lines = {
        "a": 1,
        "b": 2,
        "b[0]": 3,
        "b[0].d.e[1]": 4,
        "b[1].c": 5,
        "b[1].x.y.z": 7,
        "bb": 8,
        "b[7]": 2,
        "": 1,
    }
    assert {field: line_of(text, field) for field in lines} == lines
    assert line_of(text, "missing", first_line=5) == 5
    assert line_of("a: [", "a", first_line=5) == 5


def test_read_text(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: \xf0\x9f\x98\x80\r\n")
    assert read_text(file) == "a: 1\nb: 😀\n"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(CassetteError, match="not UTF-8") as caught:
        read_text(file)
    assert (caught.value.file, caught.value.line) == (file, 2)
    with pytest.raises(CassetteError, match="cannot be read"):
        read_text(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "none.yaml")
    with pytest.raises(CassetteError, match="cannot be read"):
        read_text(file / "below.yaml")
