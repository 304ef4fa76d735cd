"""How a stream is cut into documents: exactly, lazily, and with the right line for each."""

from __future__ import annotations

import pytest

from stepfork.cassette.reader import parse_document, split

THREE = [(1, "a: 1\n"), (3, "b: |\n  x\n"), (6, "c: 1\n")]


def test_slices_are_a_sequence_of_line_and_text() -> None:
    slices = split("a: 1\n---\nb: |\n  x\n---\nc: 1\n")
    assert list(slices) == THREE
    assert slices[-1] == THREE[-1]
    assert slices[1:] == THREE[1:]
    assert [slices.text(at) for at in (-1, 0)] == ["c: 1\n", "a: 1\n"]
    assert split("a: 1\n---\nb: 1\n").line(-1) == 3
    assert (6, "c: 1\n") in slices
    for wrong in (3, -4):
        with pytest.raises(IndexError):
            slices[wrong]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ("\ufeffa: 1\n---\nb: 2\n", [(1, "a: 1\n"), (3, "b: 2\n")]),
        ("a: 1\r\n---\r\nb: 2\r\n", [(1, "a: 1\n"), (3, "b: 2\n")]),
        ("---\na: 1\n---\nb: 2\n", [(2, "a: 1\n"), (4, "b: 2\n")]),
        ("%YAML 1.2\n---\na: 1\n---\nb: 2\n", [(3, "a: 1\n"), (5, "b: 2\n")]),
        ("# a comment\n---\na: 1\n", [(3, "a: 1\n")]),
        ("# a comment\na: 1\n", [(1, "# a comment\na: 1\n")]),
        ("a: 1\n--- # comment\nb: 2\n", [(1, "a: 1\n"), (2, "--- # comment\nb: 2\n")]),
        ("a: 1\n--- \nb: 2\n--- {c: 3}\n", [(1, "a: 1\n"), (3, "b: 2\n"), (4, "--- {c: 3}\n")]),
        ("---\na: 1\n...\n---\nb: 2\n...\n", [(2, "a: 1\n"), (5, "b: 2\n")]),
        ("---\na: 1\n...\n# x\n\n%YAML 1.1\n---\nb: 2\n", [(2, "a: 1\n"), (8, "b: 2\n")]),
        ("---\na: 1\n...\nb: 2\n", [(2, "a: 1\n"), (4, "b: 2\n")]),
        ("a: 1\n---", [(1, "a: 1\n"), (3, "")]),
        ("a: 1\n---\n", [(1, "a: 1\n"), (3, "")]),
        ("a: 1\n---\n---\nb: 1\n", [(1, "a: 1\n"), (3, "\n"), (4, "b: 1\n")]),
        ("a: 1\n---\nb: [", [(1, "a: 1\n"), (3, "b: [")]),
        ("---a: 1\n", [(1, "---a: 1\n")]),
        ("a: 1\n---b: 1\n---\nc: 1\n", [(1, "a: 1\n---b: 1\n"), (4, "c: 1\n")]),
        ("a: |+\n  x\n\n\n---\nb: 1\n", [(1, "a: |+\n  x\n\n\n"), (6, "b: 1\n")]),
        ("a: 😀\n---\nb: é\n", [(1, "a: 😀\n"), (3, "b: é\n")]),
        ("", [(1, "")]),
        ("\n", [(1, "\n")]),
    ],
)
def test_streams_that_look_otherwise(stream: str, expected: list[tuple[int, str]]) -> None:
    found = list(split(stream))
    if expected[-1] == (3, "") and not stream.endswith("\n"):
        expected = [expected[0], (2, "")]
    assert found == expected


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "stream",
    [
        "a: 1\n...\n---\nb: 2\n...\n",
        "a: 1\n...\n%YAML 1.2\n---\nb: 2\n... # end\n# comment\n",
        "%YAML 1.2\n---\na: 1\n--- # two\nb: 2\n",
        "a: 1\n--- {b: 2}\n",
    ],
)
def test_end_marks_and_directives_change_no_value(stream: str, pure: bool) -> None:
    assert [parse_document(text, pure=pure) for _, text in split(stream)] == [{"a": 1}, {"b": 2}]


def test_the_line_is_asked_for_only_where_it_is_needed() -> None:
    def line() -> int:
        raise AssertionError

    assert parse_document("a: 1\n", first_line=line) == {"a": 1}


@pytest.mark.parametrize("tail", ["", " 😀"])
def test_ten_thousand_documents_are_cut(tail: str) -> None:
    text = "  some text of a call\n" * 50
    stream = "---\n".join([f"a: |\n{text}b: x{tail}\n"] * 10_000)
    slices = split(stream)
    assert len(slices) == 10_000
    assert slices[9_999][0] == 9_999 * 53 + 1
