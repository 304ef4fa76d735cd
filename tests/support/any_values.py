"""Values of every supported type, for Hypothesis, and what tells them apart. Knows no cassette."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import io
import ipaddress
import re
import struct
import time
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from support import value_classes as vc
from support.texts import SURROGATE_TEXT, TEXT

ZONES = st.one_of(
    st.none(),
    st.sampled_from([dt.UTC, ZoneInfo("Europe/Oslo"), ZoneInfo("UTC"), ZoneInfo("America/St_Johns")]),
    st.builds(
        dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)), st.text(max_size=5)
    ),
    st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))),
)
FOLDS = st.integers(0, 1)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**60), 10**60),
    st.floats(),
    TEXT,
    SURROGATE_TEXT,
    st.binary(max_size=20),
    st.decimals().filter(lambda number: not number.is_snan()),
    st.sampled_from(["-NaN12", "1E+9", "-0", "0E-9"]).map(decimal.Decimal),
    st.fractions(),
    st.complex_numbers(),
    st.uuids(),
    st.dates(),
    st.timedeltas(),
    st.builds(lambda at, fold: at.replace(fold=fold), st.datetimes(timezones=ZONES), FOLDS),
    st.builds(lambda at, fold: at.replace(fold=fold), st.times(timezones=ZONES), FOLDS),
    ZONES,
    st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
    st.ip_addresses(),
    st.ip_addresses(v=4).map(ipaddress.ip_interface),
    st.ip_addresses(v=6).map(ipaddress.ip_network),
    TEXT.map(PurePosixPath),
    TEXT.map(PureWindowsPath),
    TEXT.map(Path),
    st.sampled_from([*vc.Color, *vc.Level, *vc.Word, vc.Perm.READ | vc.Perm.RUN, vc.Perm(0)]),
    st.sampled_from([vc.Color, vc.Answer, ValueError, int, dict]),
)
FLAGS = st.sampled_from([0, re.I, re.M | re.S, re.X, re.A])
UNHASHABLE = st.one_of(
    st.just(decimal.Decimal("sNaN")),
    st.binary(max_size=9).map(bytearray),
    st.builds(slice, st.none() | st.integers(), st.none() | st.integers()),
    st.builds(re.compile, TEXT.map(re.escape), FLAGS),
    st.builds(re.compile, st.binary(max_size=9).map(re.escape), FLAGS),
    st.integers(0, 2**31).map(time.gmtime),
    st.builds(
        lambda content, at: (made := io.BytesIO(content), made.seek(at))[0], st.binary(), st.integers(0, 9)
    ),
    st.builds(lambda content, at: (made := io.StringIO(content), made.seek(at))[0], TEXT, st.integers(0, 9)),
)
NUMPY = st.one_of(
    st.floats(width=16).map(np.float16),
    st.floats(width=32).map(np.float32),
    st.floats().map(np.float64),
    st.floats().map(np.longdouble),
    st.complex_numbers().map(np.complex128),
    st.integers(0, 255).map(np.uint8),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.booleans().map(np.bool_),
    TEXT.map(np.str_),
    st.binary(max_size=9).map(np.bytes_),
    st.builds(np.datetime64, st.integers(-(2**40), 2**40), st.sampled_from(["s", "ns", "D", "M"])),
    st.builds(np.timedelta64, st.integers(-(2**40), 2**40), st.sampled_from(["s", "ns", "D", "Y"])),
    st.builds(
        lambda numbers, kind, shape: np.array(numbers[: int(np.prod(shape))]).astype(kind).reshape(shape),
        st.lists(st.integers(0, 99), min_size=12, max_size=12),
        st.sampled_from(
            ["<i4", ">i2", "f2", ">f8", "c8", "?", "U3", ">U2", "S2", "M8[s]", "m8[D]", "O", "u1"]
        ),
        st.sampled_from([(), (0,), (3,), (2, 0), (3, 4), (2, 3, 2), (12,)]),
    ).flatmap(lambda made: st.sampled_from([made, np.asfortranarray(made), made.T])),
    st.lists(st.tuples(st.integers(0, 9), st.floats()), max_size=3).map(
        lambda rows: np.array(rows, dtype=[("a", "<i4"), ("b", ">f8")])
    ),
)
HASHABLE = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
PANDAS = st.one_of(
    st.sampled_from([pd.NaT, pd.NA, pd.Period("2024-01", "M"), pd.Timedelta("1D2h"), pd.RangeIndex(3)]),
    st.builds(pd.Timestamp, st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1), timezones=ZONES)),
    st.lists(st.integers() | st.none() | TEXT, max_size=3).map(lambda items: pd.Series(items, dtype=object)),
    st.lists(st.floats(), max_size=3).map(lambda items: pd.Series(items, name="n")),
    st.dictionaries(TEXT, st.lists(st.floats(), min_size=2, max_size=2), max_size=3).map(pd.DataFrame),
    st.dictionaries(TEXT, st.lists(TEXT, min_size=2, max_size=2), max_size=3).map(pd.DataFrame),
)
NAMES = st.text("ab_c", min_size=1, max_size=4) | TEXT


def errors(inner: Any) -> Any:
    """Exceptions of many classes, with any arguments, notes, attributes and causes."""

    def made(kind: Any, args: list[Any], notes: list[str], attributes: dict[str, Any], cause: Any) -> Any:
        error = kind(*args)
        for note in notes:
            error.add_note(note)
        vars(error).update(attributes)
        if cause is not None:
            error.__cause__ = cause
        return error

    plain = [ValueError, KeyError, OSError, RuntimeError, StopIteration, vc.Made, vc.Renamed, TimeoutError]
    return st.builds(
        made,
        st.sampled_from([*plain, ImportError, AttributeError, NameError, AssertionError, LookupError]),
        st.lists(inner, max_size=3),
        st.lists(TEXT, max_size=2),
        st.dictionaries(st.sampled_from(["code", "retry_after", "_x"]), inner, max_size=2),
        st.none() | st.builds(ValueError, inner),
    )


def containers(inner: Any) -> Any:
    items, named = st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)
    return st.one_of(
        items,
        items.map(tuple),
        named,
        st.dictionaries(HASHABLE, inner, max_size=3),
        st.sets(HASHABLE, max_size=3),
        items.map(collections.deque),
        items.map(lambda found: collections.deque(found, 3)),
        named.map(collections.OrderedDict),
        named.map(lambda found: collections.defaultdict(list, found)),
        st.dictionaries(HASHABLE, st.integers() | st.floats(), max_size=3).map(collections.Counter),
        named.map(lambda found: SimpleNamespace(**found)),
        st.builds(vc.Point, inner, inner),
        st.builds(vc.Plain, inner, inner),
        st.builds(vc.Frozen, inner),
        st.builds(vc.Box, inner),
        st.builds(vc.Answer, title=inner),
        st.builds(vc.Answer, title=inner, score=inner),
        st.builds(vc.Old, a=inner),
        named.map(lambda found: vc.Open.model_construct(**found)),
        errors(inner),
        st.builds(vc.ToolDown, TEXT, retry_after=inner),
        st.lists(inner, max_size=3).map(lambda found: array_of(found)),
    )


def array_of(items: list[Any]) -> Any:
    made = np.empty(len(items), dtype=object)
    for at, item in enumerate(items):
        made[at] = item
    return made


VALUES = st.deferred(lambda: st.recursive(SCALARS | UNHASHABLE | NUMPY | PANDAS, containers, max_leaves=8))


def like(value: Any) -> Any:
    """What tells it from all that is not it, in texts, lists and tuples that can be compared."""
    kind = type(value)
    if kind in (collections.OrderedDict, vc.Text):
        kind = kind.__base__
    return [kind.__qualname__, held(value)]


def held(value: Any) -> Any:
    if isinstance(value, type):
        return repr(value)
    if isinstance(value, pd.DataFrame):
        return [[like(name), held(value[name])] for name in value.columns] + [repr(value.index)]
    if isinstance(value, pd.Series):
        return [repr(value.dtype), [like(item) for item in value.tolist()], value.name, repr(value.index)]
    if isinstance(value, np.ndarray):
        order = value.flags.f_contiguous, value.flags.c_contiguous
        cells = [like(cell) for cell in value.ravel().tolist()] if value.dtype == object else value.tobytes()
        return [repr(value.dtype), value.dtype.str, value.shape, order, cells]
    if isinstance(value, np.generic):
        if isinstance(value, str | bytes):
            return value.tolist()
        return [repr(value.dtype), repr(value) if isinstance(value, np.longdouble) else value.tobytes()]
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("d", value)
    if isinstance(value, complex):
        return [held(value.real), held(value.imag)]
    if isinstance(value, dict):
        extra = value.default_factory if isinstance(value, collections.defaultdict) else None
        return [[[like(key), like(item)] for key, item in value.items()], repr(extra)]
    if isinstance(value, set | frozenset):
        return sorted((like(item) for item in value), key=repr)
    if isinstance(value, time.struct_time):
        return [repr(value), value.tm_zone, value.tm_gmtoff]
    if isinstance(value, tuple | list | collections.deque):
        return [[like(item) for item in value], getattr(value, "maxlen", None)]
    if isinstance(value, dt.datetime | dt.time):
        fold = None if isinstance(value, pd.Timestamp) and value.tzinfo is None else value.fold
        return [repr(value), fold, like(value.tzinfo)]
    if isinstance(value, io.BytesIO | io.StringIO):
        return [value.getvalue(), value.tell()]
    if isinstance(value, BaseException):
        beside = {name: item for name, item in vars(value).items() if name != "__notes__"}
        notes = [
            getattr(value, "__notes__", []),
            value.__suppress_context__,
            like(getattr(value, "errno", None)),
        ]
        return [sorted(str(value)), *map(like, (value.args, beside, value.__cause__)), notes]
    if hasattr(value, "model_fields_set"):
        beside = [value.__pydantic_extra__, value.__pydantic_private__]
        return [like(vars(value)), sorted(value.model_fields_set), *map(like, beside)]
    if isinstance(value, vc.Frozen):
        return [like(value.a), like(value.b)]
    if isinstance(value, SimpleNamespace | vc.Plain | vc.Box):
        return like(vars(value))
    if isinstance(value, vc.Old):
        return [like(vars(value)), sorted(value.__fields_set__), like(value._seen)]
    return repr(value)


ALIKE = st.sampled_from(
    [
        0,
        0.0,
        -0.0,
        False,
        None,
        "",
        "0",
        b"0",
        decimal.Decimal("0"),
        decimal.Decimal("-0.0"),
        np.float64(0),
        np.float32(-0.0),
        np.int64(0),
        vc.Level.LOW,
        1,
        1.0,
        True,
        "1",
        1 + 0j,
        complex(1, -0.0),
        float("nan"),
    ]
)
KEYS = ALIKE.filter(lambda value: not isinstance(value, np.generic))  # it cannot be compared with a Decimal
BOXES = st.recursive(
    ALIKE,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=1)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=1)
        | st.sets(KEYS, max_size=2)
        | st.builds(vc.Plain, inner)
    ),
    max_leaves=4,
)
