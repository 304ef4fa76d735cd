"""Moments, categories, texts and missing numbers in frames and arrays: readable in the file, and exact."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork.cassette.emitter import emit_document
from stepfork.cassette.reader import parse_document
from stepfork.cassette.values import TAGS, decode, encode

DAYS = pd.date_range("2024-01-01", periods=3, freq="D")
COLUMNS: dict[str, tuple[Any, str]] = {
    "days": (DAYS, '"2024-01-02T00:00:00"'),
    "with a gap": (pd.Series([DAYS[0], pd.NaT, DAYS[2]]).dt.as_unit("s"), "NaT"),
    "nanoseconds": (
        pd.Series(["2024-01-01T00:00:00.123456789"] * 3).astype("datetime64[ns]"),
        '"2024-01-01T00:00:00.123456789"',
    ),
    "in a zone": (DAYS.tz_localize("Europe/Oslo"), '"2024-01-02T00:00:00+01:00"'),
    "spans": (pd.to_timedelta([1, 2, 3], unit="h"), "timedelta64"),
    "spans with a gap": (pd.Series([pd.Timedelta(1, "h"), pd.NaT, pd.Timedelta(1, "ns")]), "NaT"),
    "categories": (pd.Categorical(["low", None, "high"], categories=["low", "high"], ordered=True), "low"),
    "categories of moments": (pd.Categorical(list(DAYS)), '"2024-01-02T00:00:00"'),
    "texts": (["a", "b", None], "[a, b, null]"),
    "texts of pandas' own": (pd.array(["a", None, "c"], dtype="string"), "[a, null, c]"),
    "numbers with a gap": (pd.array([1, None, 3], dtype="Int64"), "[1, null, 3]"),
    "truths with a gap": (pd.array([True, None, False], dtype="boolean"), "[true, null, false]"),
    "periods": (pd.period_range("2024-01", periods=3, freq="M"), "2024-02"),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_C17_a_column_is_readable_and_comes_back(make_module: Any, path: Path, what: str) -> None:
    column, shown = COLUMNS[what]
    frame = pd.DataFrame({"c": column, "n": [1, 2, 3]})
    tools = make_module("def table(value):\n    return value\n")
    with stepfork.record(path, tools=[tools.__name__]):
        tools.table(frame)
        tools.table(frame["c"])
        tools.table(frame.set_index("c"))
    text = path.read_text("utf-8")
    assert shown in text
    assert "!bytes" not in text
    with stepfork.replay(path):
        pd.testing.assert_frame_equal(tools.table(frame), frame, check_exact=True, check_freq=True)
        pd.testing.assert_series_equal(tools.table(frame["c"]), frame["c"], check_exact=True)
        pd.testing.assert_frame_equal(tools.table(frame.set_index("c")), frame.set_index("c"))


UNITS = ("Y", "M", "D", "h", "m", "s", "ms", "us", "ns")


@examples(100)
@given(
    st.lists(st.integers(-(2**55), 2**55) | st.just(-(2**63)), max_size=70),
    st.sampled_from(UNITS),
    st.sampled_from("mM"),
    st.sampled_from("<>"),
)
def test_C17_any_moment_of_numpy_comes_back(numbers: list[int], unit: str, kind: str, order: str) -> None:
    array = np.array(numbers, dtype=f"{order}i8").view(f"{order}{kind}8[{unit}]")
    text = emit_document({"v": encode(array)})
    again = decode(parse_document(text, known_tags=TAGS)["v"])
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_C17_one_moment_and_a_recorded_buffer_of_them() -> None:
    one = np.datetime64("2024-02-29T12:30", "us")
    assert "2024-02-29T12:30:00" in emit_document({"v": encode(one)})
    assert decode(encode(one)) == one
    before = parse_document(
        'v: !array {dtype: "<M8[us]", values: !bytes ACAhENcNBgA=, shape: [1]}\n', known_tags=TAGS
    )
    assert decode(before["v"]).tolist() == [dt.datetime(2024, 1, 1)]
