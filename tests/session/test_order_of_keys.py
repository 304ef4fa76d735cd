"""The order of keys, of whatever type: it does not count in questions, and answers keep it (contract, 4)."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import second_reader
from support.examples import examples

import stepfork


@dataclass
class Holder:
    """Holds a mapping."""

    of: dict[Any, Any]


MAKERS: dict[str, Any] = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": lambda pairs: Counter(dict(pairs)),
    "defaultdict": lambda pairs: defaultdict(int, pairs),
    "inside": lambda pairs: {"a": [dict(pairs)]},
    "dataclass": lambda pairs: Holder(dict(pairs)),
}
KEYS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.tuples(st.integers(), st.text(max_size=2))
)


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module("def ident(x):\n    return x\n")


def turned(tools: Any, path: Path, make: Any, pairs: list[Any], again: list[Any]) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.ident(make(pairs))
    with stepfork.replay(path):
        found = tools.ident(make(again))
    assert found == make(pairs)
    if isinstance(found, dict):
        assert list(found) == list(make(pairs))


@pytest.mark.parametrize("kind", MAKERS)
def test_C24_equal_mappings_match_whatever_the_order_of_their_keys(tools: Any, path: Path, kind: str) -> None:
    pairs: list[Any] = [(1, 2), ("1", 3), ((1, "a"), 4), (True + 1, 5), (None, 6)]
    turned(tools, path, MAKERS[kind], pairs, pairs[::-1])
    for wrong in ([*pairs[1:], (1, 7)], pairs[1:], [*pairs, (9, 9)], [*pairs[1:], (1.5, 2)]):
        with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
            tools.ident(MAKERS[kind](wrong))
        assert "order" not in str(caught.value).partition("\n")[0]


@examples(40)
@given(st.data())
def test_any_mapping_matches_itself_in_any_order(tools: Any, tmp_path: Path, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(KEYS, st.integers()), max_size=6, unique_by=lambda it: it[0]))
    again = data.draw(st.permutations(pairs))
    turned(tools, tmp_path / "run.yaml", data.draw(st.sampled_from(list(MAKERS.values()))), pairs, again)


def test_keys_that_hold_secrets_may_stand_in_another_order_too(tools: Any, path: Path) -> None:
    one, other = "sk-proj-" + "a1B2" * 12, "sk-proj-" + "c3D4" * 12
    asked = {1: "x", one: "first", other: "second"}
    with stepfork.record(path, tools=[tools.__name__]):
        tools.ident(asked)
    assert one not in path.read_text("utf-8")
    with stepfork.replay(path):
        tools.ident(dict(reversed(asked.items())))


def test_a_large_answer_keeps_its_order_beside_an_equal_one_with_another(tools: Any, path: Path) -> None:
    texts: dict[Any, str] = {f"k{number}": "word " * 20 for number in range(30)}
    numbers: dict[Any, str] = dict.fromkeys(range(30), "word " * 20)
    asked = [
        made(one.items()) for one in (texts, numbers) for made in (dict, lambda it: dict(reversed(it)))
    ] * 2
    with stepfork.record(path, tools=[tools.__name__]):
        live = [list(tools.ident(one)) for one in asked]
    assert path.read_text("utf-8").count("word " * 20) == 4 * 30
    with stepfork.replay(path):
        assert [list(tools.ident(one)) for one in asked] == live
    assert len(second_reader.read(path)["calls"]) == len(asked)
