"""The rules of ``normalize``: what they find, and when two texts say the same under them."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.core.likeness import Likeness
from stepfork.core.volatile import Rules, read, spelled
from stepfork.errors import ConfigError

ONE, TWO, THREE = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


def alike(rules: Any, *pairs: tuple[str, str], brought: Any = None) -> bool:
    """Whether all pairs of texts, recorded and now, say the same, one call after another."""
    known = Likeness(Rules.compile(read(rules)))
    known.brought(brought)
    for then, now in pairs:
        trial = known.trial()
        if not trial.same_text(then, now):
            return False
        known.commit(trial)
    return True


@pytest.mark.parametrize(
    ("rules", "text", "shown"),
    [
        ({"uuid": True}, f"a {ONE.upper()} b", "a <uuid> b"),
        ({"uuid": True}, uuid.UUID(int=5, version=4).hex, "<uuid>"),
        ({"uuid": True}, "d41d8cd98f00b204e9800998ecf8427e"[:-1], "d41d8cd98f00b204e9800998ecf8427"),
        ({"uuid": True}, f"call_{ONE} a{ONE} {ONE}0", f"call_<uuid> a{ONE} {ONE}0"),
        ({"date": True}, "2024-02-29T10:00 12024-01-01 2024-13-01", "<date>T10:00 12024-01-01 2024-13-01"),
        ({"date": True, "time": True}, "2024-02-29 10:00:59.123456+02:00", "<date> <time>"),
        (
            {"time": True},
            "at 10:00Z, 12:30:45 and 25:00 of 10:00:00:00",
            "at <time>, <time> and 25:00 of 10:00:00:00",
        ),
        ({r"run-\w+": "<run>"}, "run-a1, run-b2", "<run>, <run>"),
        ({r"(run)-\w+": r"\1-N"}, "run-a1", "run-N"),
        ({r"[0-9]+": "<n>", r"run-[0-9]+": "<run>"}, "run-17 and 5", "<run> and <n>"),
        ({"uuid": True, r"run-\w+": "<run>"}, f"run-{ONE} run-7", "run-<uuid> <run>"),
        ({r"run-\w+": "<run>", "uuid": True}, f"run-{ONE} run-7", "run-<uuid> <run>"),
        ({"uuid": True, r"run-[\w-]+": "<run>"}, f"run-{ONE} run-7", "<run> <run>"),
        ({"abc": "1", "bcd": "2"}, "abcd", "1d"),
        ({"bcd": "2", "abc": "1"}, "abcd", "1d"),
        ({"ab": "1", "bcd": "2", "def": "3"}, "abcdef", "a2ef"),
        ({"abc": "1", "ab.": "2"}, "abc", "1"),
        ({"date": "<day>"}, "2024-02-29", "<day>"),
        ({"date": False}, "2024-02-29", "2024-02-29"),
    ],
)
def test_what_a_rule_finds(rules: Any, text: str, shown: str) -> None:
    assert Rules.compile(read(rules)).blur(text) == shown


@examples(100)
@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=4), st.text("abc", max_size=30))
def test_of_what_overlaps_the_longest_counts(words: list[str], text: str) -> None:
    """Whatever the order of the rules; all that is left out overlaps something at least as long."""
    words = [f"(?:{word})" for word in words]
    rules = [Rules.compile(read(dict.fromkeys(order, True))) for order in (words, words[::-1])]
    cuts = [[(piece.value, rule.rules[piece.rule].name) for piece in rule.cut(text)[1]] for rule in rules]
    assert cuts[0] == cuts[1]
    parts, pieces = rules[0].cut(text)
    at, taken = 0, []
    for part, piece in zip(parts, [*pieces, None], strict=True):
        at += len(part)
        if piece is not None:
            taken.append((at, at + len(piece.value)))
            at += len(piece.value)
    assert at == len(text)
    for word in words:
        for match in re.finditer(word, text):
            start, end = match.span()
            over = [span for span in taken if span[0] < end and start < span[1]]
            assert max((stop - begin for begin, stop in over), default=0) >= end - start


def test_without_rules_a_text_says_only_itself() -> None:
    assert alike({}, ("a", "a"))
    assert not alike({}, (ONE, TWO))


def test_a_text_for_all_makes_all_one() -> None:
    rules = {r"run-\w+": "<run>"}
    assert alike(rules, ("run-a run-b", "run-c run-c"))
    assert not alike(rules, ("run-a", "walk-a"))
    assert not alike(rules, ("run-a x", "run-a y"))
    assert not alike(rules, ("run-a", "run-a run-a"))


def test_two_ids_never_become_one() -> None:
    assert alike({"uuid": True}, (ONE, TWO), (f"again {ONE}", f"again {TWO}"))
    assert not alike({"uuid": True}, (ONE, THREE), (TWO, THREE))
    assert not alike({"uuid": True}, (ONE, TWO), (ONE, THREE))
    assert not alike({"uuid": True}, (ONE, ONE), (TWO, ONE))
    assert not alike({"uuid": True}, (f"{ONE} {TWO}", f"{ONE} {ONE}"))


def test_an_id_from_an_answer_is_that_id() -> None:
    answer = {"response": {"id": f"call-{ONE}", "other": [TWO]}}
    assert alike({"uuid": True}, (ONE, ONE), (TWO, TWO), brought=answer)
    assert not alike({"uuid": True}, (ONE, TWO), brought=answer)
    assert not alike({"uuid": True}, (ONE, THREE), brought=answer)
    assert not alike({"uuid": True}, (THREE, ONE), brought=answer)


def test_an_id_that_an_answer_quotes_is_also_known_by_the_recorded_one() -> None:
    known = Likeness(Rules.compile((("uuid", True),)))
    trial = known.trial()
    assert trial.same_text(f"order {ONE}", f"order {TWO}")
    known.commit(trial)
    known.brought(f"done with {ONE}")
    trial = known.trial()
    assert trial.same_text(f"{ONE} {ONE}", f"{TWO} {ONE}")
    assert not known.trial().same_text(ONE, THREE)


def test_a_failed_trial_leaves_nothing_behind() -> None:
    known = Likeness(Rules.compile((("uuid", True),)))
    assert not known.trial().same_text(f"{ONE} a", f"{TWO} b")
    assert known.trial().same_text(ONE, THREE)


@examples(100)
@given(st.lists(st.uuids(), min_size=2, max_size=6, unique=True), st.data())
def test_texts_say_the_same_if_the_ids_are_renamed_one_to_one(
    ids: list[uuid.UUID], data: st.DataObject
) -> None:
    count = len(ids) // 2
    said = data.draw(st.lists(st.integers(0, count - 1), max_size=6))
    heard = data.draw(st.lists(st.integers(0, count - 1), min_size=len(said), max_size=len(said)))
    then = " ".join(str(ids[at]) for at in said)
    now = " ".join(str(ids[count + at]) for at in heard)
    one_to_one = len(set(zip(said, heard, strict=True))) == len(set(said)) == len(set(heard))
    assert alike({"uuid": True}, (then, now)) == one_to_one


@examples(100)
@given(st.text(), st.text())
def test_the_blurred_texts_of_alike_ones_are_equal(one: str, two: str) -> None:
    rules = Rules.compile(((r"\w\d*", True), (r" +", "_")))
    if Likeness(rules).trial().same_text(one, two):
        assert rules.blur(one) == rules.blur(two)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "normalize must be a table of rules, not null"),
        (3, "normalize must be a table of rules, not 3"),
        ({"uuids": True}, "there is no rule 'uuids'; the built-in ones are paths, uuid, date, time"),
        (["uid"], "there is no rule 'uid'"),
        ({"run-(": True}, "normalize: 'run-(' is not a rule: missing )"),
        ({r"run-\w+": r"\2"}, "is not a rule: invalid group reference"),
        ({r"\w*": "x"}, "fits the empty text"),
        ({"uuid": 3}, "'uuid' must be true, false or a text, not 3"),
        ({"uuid": None}, "'uuid' must be true, false or a text, not None"),
        ({"": True}, "found '' as one"),
        ({3: True}, "found 3 as one"),
        ({"paths": "<p>"}, "'paths' must be true or false"),
    ],
)
def test_what_is_no_rule_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Rules.compile(read(value))
    assert problem in str(caught.value)


@examples(100)
@given(
    st.dictionaries(
        st.sampled_from(["uuid", "date", "time", "run-[0-9]+", "a=b+", "x=>y*z"]),
        st.one_of(st.booleans(), st.sampled_from(["<x>", "=", "a b"])),
    )
)
def test_rules_as_texts_are_those_rules(rules: dict[str, Any]) -> None:
    given_rules = tuple(
        (name, value) for name, value in rules.items() if value or name in ("uuid", "date", "time")
    )
    given_rules = tuple(pair for pair in given_rules if pair[0] != "x=>y*z" or isinstance(pair[1], str))
    assert read(spelled(given_rules)) == given_rules
