"""Values as Python source: equal when run, and left as they are by ruff."""

from __future__ import annotations

import datetime
import decimal
import math
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.cassette.values import encode
from stepfork.core.canonical import canonical_text
from stepfork.report.python_source import WIDTH, columns, flat, layout, quoted, source_of


def run(value: Any) -> Any:
    """The value that the source of a value gives."""
    imports: set[str] = set()
    lines = layout(source_of(encode(value), imports), indent=0, before="value = ")
    namespace: dict[str, Any] = {}
    exec(compile("\n".join([*sorted(imports), *lines]), "<source>", "exec"), namespace)  # noqa: S102
    return namespace["value"]


def same(one: Any, other: Any) -> bool:
    return canonical_text(encode(one)) == canonical_text(encode(other))


C148 = {
    "t": 'a"""b\\',
    "r": "\r\n\x1b",
    "s": "\ud83d",
    "x": float("nan"),
    "i": float("inf"),
    "d": decimal.Decimal("1.0"),
}


@pytest.mark.parametrize(
    "value",
    [
        C148,
        -0.0,
        -math.inf,
        (),
        (1,),
        (1, (2, "x" * 90)),
        set(),
        {3, 1, 2},
        frozenset(),
        frozenset({"a"}),
        b"",
        b"\x00\xff'\"\\\n~" * 40,
        bytearray(b"a"),
        bytearray(),
        complex(-0.0, math.nan),
        decimal.Decimal("NaN"),
        datetime.date(2024, 2, 29),
        datetime.time(23, 59, 59, 999999, fold=1),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(2024, 1, 1, 2, 3, 4, 5, ZoneInfo("Europe/Berlin"), fold=1),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-5))),
        datetime.timedelta(days=-1, microseconds=1),
        datetime.timedelta(0),
        uuid.UUID(int=1),
        Path("a/b"),
        {1: "a", (2, 3): {None: True}},
        10**700,
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_c148_the_source_gives_the_equal_value(value: Any) -> None:
    assert same(run(value), value)


texts = st.text(max_size=200) | st.text(alphabet="ab '\"\\\n\t", max_size=200)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=60)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=20), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=15,
)


@examples(100)
@given(values)
def test_any_value_comes_back_equal(value: Any) -> None:
    assert same(run(value), value)


@examples(40)
@given(st.lists(values, max_size=8), st.sampled_from([0, 4, 8, 12]))
def test_ruff_leaves_it_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], indent: int
) -> None:
    imports: set[str] = set()
    lines = [f"{' ' * at}if 1:" for at in range(0, indent, 4)]
    for number, item in enumerate(items):
        source = source_of(encode(item), imports)
        lines += layout(source, indent=indent, before=f"value_{number} = ")
    lines.append(f"{' ' * indent}pass")
    path = tmp_path_factory.mktemp("source") / "made.py"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--diff", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@examples(100)
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=300), max_size=4))
def test_lines_are_short_where_they_can_be(value: dict[str, str]) -> None:
    for line in layout(source_of(encode(value), set()), indent=8):
        assert columns(line) <= WIDTH or any(len(quoted(key)) > 40 for key in value)


def test_a_text_is_cut_after_its_lines() -> None:
    source = source_of("first line of several\n" * 6, set())
    lines = layout(source, indent=4, before="text = ")
    assert lines[0] == "    text = ("
    assert lines[1] == '        "first line of several\\n"'
    assert len(lines) == 8


def test_flat() -> None:
    imports: set[str] = set()
    assert flat(source_of(encode({"a": (1,), "b": decimal.Decimal(1)}), imports)) == (
        '{"a": (1,), "b": Decimal("1")}'
    )
    assert imports == {"from decimal import Decimal"}
