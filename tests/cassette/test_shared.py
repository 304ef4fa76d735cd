"""Large values that stand in several places stand in the file once, under a name that says what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork.cassette import integrity, shared
from stepfork.cassette.emitter import emit_document
from stepfork.cassette.fields import Fault
from stepfork.cassette.reader import KNOWN_TAGS, parse_document
from stepfork.core.canonical import canonical_text, digest
from stepfork.core.model import Tagged

LARGE = st.sampled_from(
    ["word " * 300, "0" * 1500, ["a long item " * 40] * 3, {"deep": {"text": "word " * 300, "n": 1}}]
)
SMALL = st.sampled_from([1, "x", None, [], {}, Tagged("tuple", ["a"])])
VALUES = st.recursive(
    st.one_of(LARGE, SMALL),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.lists(inner, max_size=2).map(lambda items: Tagged("tuple", items)),
    ),
    max_leaves=6,
)
DOCUMENTS = st.lists(VALUES.map(lambda value: {"tool": "t", "result": value}), max_size=5)


@examples(100)
@given(DOCUMENTS)
def test_shared_values_come_back_and_stand_once(documents: list[dict[str, Any]]) -> None:
    found = [shared.large_values(document, emit_document(document)) for document in documents]
    names = shared.names_of(found)
    told: set[str] = set()
    shortened = [shared.shorten(document, names, told) for document in documents]
    texts = [emit_document(document) for document in shortened]
    read = [parse_document(text, known_tags=KNOWN_TAGS | {shared.TAG}) for text in texts]
    values: dict[str, Any] = {}
    for original, document in zip(documents, read, strict=True):
        assert not values.keys() & shared.values_of(document).keys()
        values |= shared.values_of(document)
        back = shared.restore(document, lambda name: shared.weighed(values[name]))
        back.pop(shared.FIELD, None)
        assert canonical_text(back) == canonical_text(original)
    assert told == values.keys()
    for name in told:
        assert sum(text.count(f"!shared {name}") + text.count(f'!shared "{name}"') for text in texts) > 1


HEAD = "stepfork: 1\nname: x\n---\n"
END = "---\nend: completed\n"
NAME = digest("here")[:8]


def opened(path: Path, text: str) -> Any:
    path.write_text(HEAD + text + END, "utf-8")
    return stepfork.load(path)


def test_a_reference_may_stand_in_any_style_and_order(tmp_path: Path) -> None:
    text = f"tool: t\nresult: !shared '{NAME}'\n---\nshared: {{ '{NAME}': here }}\ntool: t\nresult: 1\n"
    assert opened(tmp_path / "run.yaml", text).calls[0].result == "here"


WRONG = {
    "missing": ("tool: t\nresult:\n  a: !shared '00000000'\n", "result.a", 6, "no document has"),
    "no name": ("tool: t\nresult: !shared [x]\n", "result", 5, "name of a value"),
    "changed": (
        f"tool: t\nresult: !shared '{NAME}'\nshared:\n  '{NAME}': there\n",
        f"shared.{NAME}",
        7,
        f"call it '{digest('there')[:8]}'",
    ),
    "nested": (
        f"tool: t\nresult: 1\nshared:\n  '{NAME}': [!shared '{NAME}']\n",
        f"shared.{NAME}",
        7,
        "no reference",
    ),
    "no mapping": ("tool: t\nresult: 1\nshared: [1]\n", "shared", 6, "mapping"),
    "odd name": ("tool: t\nresult: 1\nshared: {x: 1}\n", "shared.x", 6, "hexadecimal"),
}


@pytest.mark.parametrize(("text", "field", "line", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_reference_names_field_and_line(
    tmp_path: Path, text: str, field: str, line: int, said: str
) -> None:
    with pytest.raises(stepfork.CassetteError, match=said) as caught:
        opened(tmp_path / "run.yaml", text)
    assert (caught.value.field, caught.value.line) == (field, line)


def test_it_is_found_in_a_sealed_file_where_nothing_was_read_before(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    calls = (
        f"tool: t\nresult: !shared '{NAME}'\n---\n" * 2 + f"tool: t\nresult: 1\nshared:\n  '{NAME}': here\n"
    )
    path.write_text(integrity.sealed(HEAD + calls + END), "utf-8")
    assert [call.result for call in stepfork.load(path).calls] == ["here", "here", 1]


def test_references_that_stand_for_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_MOST", 10_000)
    bomb = {"tool": "t", "result": [Tagged(shared.TAG, "00000000")] * 20}
    with pytest.raises(Fault, match="refers to more than"):
        shared.restore(bomb, lambda name: shared.weighed("x" * 1000))
