"""Matching and its words: which calls are equal, and what is said where they are not."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.core.canonical import canonical_text, digest
from stepfork.core.matching import ABSENT, distance, fingerprint, match
from stepfork.core.model import Incoming, Plain, Tagged
from stepfork.core.wording import headline, spell, spell_pair

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


def maps(items: st.SearchStrategy[Plain]) -> st.SearchStrategy[Plain]:
    """Mappings with keys of any type."""
    pairs = st.lists(
        st.tuples(SCALARS, items).map(list), max_size=4, unique_by=lambda it: canonical_text(it[0])
    )
    return st.builds(Tagged, st.just("map"), pairs)


PLAIN: st.SearchStrategy[Plain] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        | st.builds(Tagged, st.sampled_from(["tuple", "set"]), st.lists(inner, max_size=3))
        | maps(inner)
    ),
    max_leaves=12,
)


NEW_YEAR, SECOND = Tagged("date", "2024-01-01"), Tagged("date", "2024-01-02")


def tool(args: Any) -> Incoming:
    return Incoming("tool", "t", {"x": args})


@examples(100)
@given(PLAIN)
def test_everything_equals_itself(value: Plain) -> None:
    assert match(tool(value), tool(value)) is None
    assert distance(tool(value), tool(value)) == 0


@examples(100)
@given(PLAIN, PLAIN)
def test_match_agrees_with_the_canonical_text(one: Plain, other: Plain) -> None:
    assert (match(tool(one), tool(other)) is None) == (canonical_text(one) == canonical_text(other))
    assert (digest(one) == digest(other)) == (canonical_text(one) == canonical_text(other))


@examples(100)
@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=5))
def test_the_order_of_keys_does_not_count(value: dict[str, Plain]) -> None:
    turned = dict(reversed(list(value.items())))
    assert match(tool(value), tool(turned)) is None


@examples(100)
@given(maps(PLAIN), st.randoms(use_true_random=False))
def test_the_order_of_keys_that_are_no_texts_does_not_count(value: Tagged, choose: random.Random) -> None:
    pairs: Any = value.value
    turned = Tagged("map", choose.sample(pairs, len(pairs)))
    assert match(tool(value), tool(turned)) is None
    assert fingerprint(tool(value)) == fingerprint(tool(turned))
    assert digest(value) == digest(turned)
    assert (digest(value, in_order=True) == digest(turned, in_order=True)) == (pairs == turned.value)


@examples(100)
@given(PLAIN, PLAIN)
def test_the_headline_is_always_one_short_line(one: Plain, other: Plain) -> None:
    mismatch = match(tool(one), tool(other))
    if mismatch is not None:
        line = headline(1, tool(one), tool(other), mismatch)
        assert "\n" not in line
        assert len(line) < 400
        line.encode("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "path", "expected", "actual"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "x.a[1].b", 2, 3),
        ([1, 2], [1], "x[1]", 2, ABSENT),
        ([1], [1, 2], "x[1]", ABSENT, 2),
        ({"a": 1}, {}, "x.a", 1, ABSENT),
        ({}, {"odd key": 1}, 'x["odd key"]', ABSENT, 1),
        (Tagged("tuple", [1, 2]), Tagged("tuple", [1, 3]), "x[1]", 2, 3),
        (Tagged("tuple", [1]), [1], "x", Tagged("tuple", [1]), [1]),
        (NEW_YEAR, SECOND, "x", NEW_YEAR, SECOND),
    ],
)  # fmt: skip
def test_the_differing_leaf(old: Any, new: Any, path: str, expected: Any, actual: Any) -> None:
    mismatch = match(tool(old), tool(new))
    assert mismatch is not None
    assert (mismatch.path, mismatch.expected, mismatch.actual) == (path, expected, actual)


def test_only_the_order_of_items_differs() -> None:
    mismatch = match(tool([1, 2, {"a": 1}]), tool([{"a": 1}, 2, 1]))
    assert mismatch is not None
    assert mismatch.order_only
    assert "order" in headline(1, tool([1]), tool([1]), mismatch)


def test_a_placeholder_compares_as_the_caller_says() -> None:
    asked = []

    def same(old: str, new: str) -> bool:
        asked.append((old, new))
        return True

    assert match(tool("<secret:token:1>"), tool("<secret:token:2>"), same) is None
    assert match(tool("<secret:token:1>"), tool("<secret:token:1>"), same) is None, "it binds equal ones too"
    assert len(asked) == 2
    assert match(tool("plain"), tool("plain"), same) is None
    assert len(asked) == 2


def test_a_difference_far_inside_a_long_text_is_shown_at_its_place() -> None:
    text = "word " * 40_000
    old, new = text[:150_000] + "OLD" + text[150_000:], text[:150_000] + "NEW" + text[150_000:]
    shown = spell_pair(old, new, 80)
    assert "OLD" in shown[0]
    assert "NEW" in shown[1]
    assert max(map(len, shown)) <= 80


def test_spelling_is_json_where_json_can() -> None:
    assert spell(True) == "true"
    assert spell(math.nan) == "NaN"
    assert spell("\ud83d") == r'"\ud83d"'
    assert spell(Tagged("decimal", "0.10")) == 'decimal("0.10")'
