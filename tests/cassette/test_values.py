"""Python values and exceptions to plain values and back."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import re
from collections import OrderedDict
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.cassette import shared
from stepfork.cassette.emitter import emit_document
from stepfork.cassette.fields import Fault
from stepfork.cassette.reader import parse_document
from stepfork.cassette.values import TAGS, BadValue, Unsupported, decode, encode
from stepfork.core.canonical import canonical_text, digest
from stepfork.core.model import Tagged

FAR = dt.timezone(dt.timedelta(hours=-3, minutes=7))
ZONES = st.none() | st.just(dt.UTC) | st.just(ZoneInfo("Europe/Oslo")) | st.just(FAR)
HASHABLE = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals()
    | st.uuids() | st.dates() | st.timedeltas() | st.datetimes(timezones=ZONES) | st.times()
    | st.complex_numbers()
)  # fmt: skip
KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.uuids() | st.dates()
VALUES = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.frozensets(st.integers() | st.text(), max_size=4)
        | st.sets(st.integers(), max_size=4)
    ),
    max_leaves=15,
)


def same(one: Any, other: Any) -> bool:
    """Equal in type and value, NaN included."""
    return type(one) is type(other) and canonical_text(encode(one)) == canonical_text(encode(other))


@examples(100)
@given(VALUES)
def test_a_value_comes_back_as_itself_through_the_file(value: Any) -> None:
    text = emit_document({"v": encode(value)})
    for pure in (False, True):
        again = decode(parse_document(text, known_tags=TAGS, pure=pure)["v"])
        assert same(again, value)
        assert repr(again) == repr(value) or not isinstance(value, dt.datetime | dt.time | Decimal | float)


OFFSETS = st.integers(-86_399, 86_399).map(lambda seconds: dt.timedelta(seconds=seconds)) | st.integers(
    -1439, 1439
).map(lambda minutes: dt.timedelta(minutes=minutes))


@examples(100)
@given(
    st.datetimes(timezones=OFFSETS.map(dt.timezone)) | st.times(timezones=OFFSETS.map(dt.timezone)),
    st.sampled_from([0, 0, 1]),
)
def test_a_moment_with_any_offset_comes_back_and_reads_as_iso_where_it_can(
    value: dt.datetime | dt.time, fold: int
) -> None:
    value = value.replace(fold=fold)
    text = emit_document({"v": encode(value)})
    again = decode(parse_document(text, known_tags=TAGS)["v"])
    assert repr(again) == repr(value)
    if not fold and not value.utcoffset() % dt.timedelta(minutes=1):  # type: ignore[operator]
        assert f'"{value.isoformat().replace("+00:00", "Z")}"' in text


@pytest.mark.parametrize(
    ("zone", "spelled"),
    [
        (dt.timezone(dt.timedelta(hours=1)), '!datetime "2026-11-29T08:30:00+01:00"'),
        (dt.timezone(dt.timedelta(hours=-3, minutes=-30)), '!datetime "2026-11-29T08:30:00-03:30"'),
        (dt.timezone(dt.timedelta(0)), '!datetime "2026-11-29T08:30:00Z"'),
        (
            dt.timezone(dt.timedelta(hours=1), "CET"),
            '!datetime ["2026-11-29T08:30:00", [3600000000, CET], 0]',
        ),
        (dt.timezone(dt.timedelta(seconds=90)), '!datetime ["2026-11-29T08:30:00", 90000000, 0]'),
    ],
)
def test_how_a_zone_reads(zone: dt.timezone, spelled: str) -> None:
    value = dt.datetime(2026, 11, 29, 8, 30, tzinfo=zone)
    text = emit_document({"opened": encode(value)})
    assert text == f"opened: {spelled}\n"
    assert repr(decode(parse_document(text, known_tags=TAGS)["opened"])) == repr(value)


def test_an_offset_in_the_long_form_is_the_same_value() -> None:
    long = '!datetime ["2026-11-29T08:30:00", 3600000000, 0]'
    for document in (f"v: {long}\n", 'v: !datetime\n- "2026-11-29T08:30:00"\n- 3600000000\n- 0\n'):
        plain = parse_document(document, known_tags=TAGS)["v"]
        assert plain == encode(dt.datetime(2026, 11, 29, 8, 30, tzinfo=dt.timezone(dt.timedelta(hours=1))))
    plain = parse_document('v: !time ["08:30:00", -12600000000, 0]\n', known_tags=TAGS)["v"]
    assert plain == Tagged("time", "08:30:00-03:30")


def test_a_shared_value_fits_its_name_with_offsets_in_either_form() -> None:
    zone = dt.timezone(dt.timedelta(hours=1))
    value = encode(
        {"rows": [(dt.datetime(2026, 1, 1, hour, tzinfo=zone), dt.time(hour)) for hour in range(9)]}
    )
    long = {
        "rows": [
            Tagged(
                "tuple",
                [
                    Tagged("datetime", [f"2026-01-01T{hour:02}:00:00", 3_600_000_000, 0]),
                    Tagged("time", f"{hour:02}:00:00"),
                ],
            )
            for hour in range(9)
        ]
    }
    for form in (value, long):
        assert shared.values_of({"shared": {digest(form)[:8]: value}}) == {digest(form)[:8]: value}
    with pytest.raises(Fault, match="the value was changed"):
        shared.values_of({"shared": {digest({})[:8]: value}})


def test_C17_C21_values_keep_their_types() -> None:
    class S(str):
        pass

    value = {
        "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        "id": UUID(int=1),
        "p": Decimal("0.10"),
        "s": {3, 1, 2},
        "path": Path("a/b"),
        "posix": PurePosixPath("a"),
        "windows": PureWindowsPath("a\\b"),
        "big": 10**40,
        "minus zero": -0.0,
    }
    again = decode(encode(value))
    assert again == value
    assert str(again["p"]) == "0.10"
    assert math.copysign(1, again["minus zero"]) == -1
    assert type(decode(encode(S("text")))) is str
    assert type(decode(encode(OrderedDict(b=1, a=2)))) is dict
    assert list(decode(encode(OrderedDict(b=1, a=2)))) == ["b", "a"]


@pytest.mark.parametrize(
    "value",
    [object(), lambda: 1, open, iter([1]), asyncio, type, re.match("a", "a"), memoryview(bytearray(b"a"))],
)
def test_what_would_not_come_back_is_refused_with_its_path(value: Any) -> None:
    with pytest.raises(Unsupported) as caught:
        encode({"rows": [1, (2, value)]}, "result")
    assert caught.value.path == "result.rows[1][1]"


def test_cycles_and_depth_are_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(Unsupported, match="contains itself"):
        encode(cycle)
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Unsupported, match="levels deep"):
        encode(deep)
    shared: list[Any] = [1]
    assert decode(encode([shared, shared])) == [[1], [1]]


@pytest.mark.parametrize(
    "bad",
    [Tagged("date", "no"), Tagged("tuple", 1), Tagged("nope", 1), Tagged("map", [[1]]), Tagged("bytes", "%"),
     Tagged("datetime", ["2024-01-01T00:00:00", "../../etc/passwd", 0]), Tagged("timedelta", 1.5),
     Tagged("map", [[[], 1]])],
)  # fmt: skip
def test_a_wrong_tag_is_a_clear_error(bad: Tagged) -> None:
    with pytest.raises(BadValue):
        decode(bad)
