"""pandas' frames, series, indexes, moments and missing values. Knows what they hold and how it is spelled.

pandas is not imported here: who has a value of it has imported it, and on replay the program has to. What is
written is proven to come back equal while recording.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, type_name
from stepfork.cassette.values.item_types import check_column
from stepfork.cassette.values.standard import decode_zone, encode_zone
from stepfork.cassette.values.walk import Decoder, Encoder, Row, is_of, parts, text
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged


def _encode_frame(frame: Any, encoder: Encoder, path: str) -> Plain:
    form: dict[str, Plain] = {
        "columns": [_encode_column(frame.iloc[:, at], encoder, path) for at in range(frame.shape[1])],
        "index": _encode_index(frame.index, encoder, path),
    }
    if type(frame.columns).__name__ == "RangeIndex":
        form["labels"] = _encode_index(frame.columns, encoder, path)
    elif any(name is not None for name in frame.columns.names):
        form["names"] = encoder.encode(list(frame.columns.names), path)
    return _proven(frame, form, encoder, path, _decode_frame)


def _decode_frame(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("columns", "index"), ("labels", "names"))
    if not isinstance(fields["columns"], list):
        raise BadValue("'columns' must be a sequence")
    for column in fields["columns"]:
        _check_lengths(column, fields["index"])
    columns = [_decode_column(column, decoder) for column in fields["columns"]]
    names = decoder.items(fields.get("names", []))
    pandas = decoder.library("pandas")
    index = _decode_index(pandas, fields["index"], decoder)
    frame = pandas.DataFrame(
        {at: pandas.Series(values, index=index) for at, (_, values) in enumerate(columns)}, index=index
    )
    frame.columns = pandas.Index([name for name, _ in columns], dtype=None if columns else object)
    if "labels" in fields:
        frame.columns = _decode_index(pandas, fields["labels"], decoder)
    elif names:
        frame.columns.names = names
    return frame


def _encode_series(series: Any, encoder: Encoder, path: str) -> Plain:
    column = _encode_column(series, encoder, path)
    form = {**column, "index": _encode_index(series.index, encoder, path)}
    return _proven(series, form, encoder, path, _decode_series)


def _decode_series(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("name", "values", "index"), ("dtype", "categories", "ordered"))
    column = {key: item for key, item in fields.items() if key != "index"}
    _check_lengths(column, fields["index"])
    name, values = _decode_column(column, decoder)
    pandas = decoder.library("pandas")
    return pandas.Series(values, index=_decode_index(pandas, fields["index"], decoder), name=name)


def _encode_column(column: Any, encoder: Encoder, path: str) -> dict[str, Plain]:
    """Its name, and its values: as numpy's array, or as values and the name of a type of pandas' own."""
    place = f"{path}[{column.name!r}]"
    name = encoder.encode(column.name, f"{path}.columns")
    if type(column.dtype).__module__.startswith("numpy"):
        return {"name": name, "values": encoder.encode(column.to_numpy(), place)}
    missing = column.isna().tolist()
    values = [None if gone else item for item, gone in zip(column.tolist(), missing, strict=True)]
    if str(column.dtype) == "category":
        categories = encoder.encode(list(column.dtype.categories), place)
        ordered = bool(column.dtype.ordered)
        held = encoder.encode(values, place)
        return {
            "name": name,
            "dtype": "category",
            "values": held,
            "categories": categories,
            "ordered": ordered,
        }
    return {"name": name, "dtype": str(column.dtype), "values": encoder.encode(_unboxed(values), place)}


def _unboxed(values: list[Any]) -> list[Any]:
    """Moments of pandas' own as ISO texts, which it reads back."""
    own = ("Timestamp", "Timedelta", "Period")
    return [
        item.isoformat()
        if type(item).__name__ in own[:2]
        else str(item)
        if type(item).__name__ in own
        else item
        for item in values
    ]


def _decode_column(content: Any, decoder: Decoder) -> tuple[Any, Any]:
    fields = parts(content, ("name", "values"), ("dtype", "categories", "ordered"))
    name, values = decoder.decode(fields["name"]), decoder.decode(fields["values"])
    if "dtype" not in fields:
        if not isinstance(fields["values"], Tagged) or fields["values"].tag != "array":
            raise BadValue("'values' must be !array where there is no 'dtype'")
        if isinstance(values, Tagged):
            raise Missing("numpy is not at hand")
        return name, values
    dtype: Any = text(fields["dtype"])
    if not isinstance(values, list):
        raise BadValue("'values' must be a sequence where there is a 'dtype'")
    categories = decoder.items(fields["categories"]) if "categories" in fields else None
    if not isinstance(fields.get("ordered", False), bool):
        raise BadValue("'ordered' must be true or false")
    check_column(dtype, values, categories)
    pandas = decoder.library("pandas")
    if dtype == "str":  # pandas' own since version 3
        dtype = pandas.StringDtype(na_value=math.nan)
    elif dtype == "category":
        dtype = pandas.CategoricalDtype(categories, ordered=fields.get("ordered") is True)
    return name, pandas.array(values, dtype=dtype)


def _check_lengths(column: Any, index: Any) -> None:
    """What can be told without pandas: whether a column has a value for each label."""
    _check_labels(index)
    values, labels = _length_of(column), _length_of(index)
    if None not in (values, labels) and values != labels:
        raise BadValue(f"{values} values do not fit {labels} labels")


def _check_labels(content: Any) -> None:
    if not isinstance(content, dict) or not content.keys() & {"range", "tuples", "values"}:
        raise BadValue("an index has 'range', 'tuples' or 'values'")
    steps = content.get("range", [0, 0, 1])
    if not isinstance(steps, list) or len(steps) != 3 or any(type(step) is not int for step in steps):
        raise BadValue("'range' must be three whole numbers: start, stop, step")
    if steps[2] == 0:
        raise BadValue("the step of a 'range' cannot be 0")
    if not isinstance(content.get("tuples", []), list):
        raise BadValue("'tuples' must be a sequence")


def _length_of(content: Any) -> int | None:
    """How many values a column or an index has, if its form says so."""
    if isinstance(content, dict) and "range" in content:
        return len(range(*content["range"]))
    held = content.get("values", content.get("tuples")) if isinstance(content, dict) else None
    if isinstance(held, Tagged) and held.tag == "array" and isinstance(held.value, dict):
        held = held.value.get("values")
    return len(held) if isinstance(held, list) else None


def _encode_index(index: Any, encoder: Encoder, path: str) -> Plain:
    place = f"{path}.index"
    if type(index).__name__ == "RangeIndex":
        form: dict[str, Plain] = {"range": [index.start, index.stop, index.step]}
        return form if index.name is None else {**form, "name": encoder.encode(index.name, place)}
    if index.nlevels > 1:
        return {
            "tuples": encoder.encode(list(index), place),
            "names": encoder.encode(list(index.names), place),
        }
    freq = getattr(index, "freqstr", None) if type(index).__name__ in _EVEN else None
    column = _encode_column(index.to_series(), encoder, place)
    return column if freq is None else {**column, "freq": freq}


def _decode_index(pandas: Any, content: Any, decoder: Decoder) -> Any:
    if isinstance(content, dict) and "range" in content:
        fields = parts(content, ("range",), ("name",))
        return pandas.RangeIndex(*decoder.items(fields["range"]), name=decoder.decode(fields.get("name")))
    if isinstance(content, dict) and "tuples" in content:
        fields = parts(content, ("tuples", "names"))
        tuples, names = decoder.items(fields["tuples"]), decoder.items(fields["names"])
        return pandas.MultiIndex.from_tuples(tuples, names=names)
    freq = content.get("freq") if isinstance(content, dict) else None
    if freq is not None:
        content = {key: item for key, item in content.items() if key != "freq"}
    name, values = _decode_column(content, decoder)
    index = pandas.Index(values, name=name)
    if freq is not None:
        index.freq = text(freq)
    return index


def _proven(
    value: Any, form: dict[str, Plain], encoder: Encoder, path: str, decode: Callable[[Any, Decoder], Any]
) -> Plain:
    """The form, if it gives an equal value again, the types of its columns and labels included."""
    try:
        again = decode(form, Decoder(encoder.classes))
        same = type(again) is type(value) and bool(again.equals(value)) and _types(again) == _types(value)
    except (BadValue, TypeError, ValueError, AttributeError):
        same = False
    if not same or value.attrs:
        raise Unsupported(path, type_name(value), "(it does not come back equal)")
    return form


def _types(value: Any) -> str:
    columns = value.columns if hasattr(value, "columns") else [value.name]
    kind = _kind(columns) if hasattr(value, "columns") else ""
    dtypes = value.dtypes if hasattr(value, "columns") else [value.dtype]
    labels = [type_name(name) for name in columns]
    index = value.index
    return canonical_text([*map(repr, dtypes), *labels, kind, _kind(index)])


def _kind(index: Any) -> str:
    freq = getattr(index, "freqstr", None) if type(index).__name__ in _EVEN else None
    return f"{type(index).__name__} {index.names!r} {index.dtype} {freq}"


def _encode_labels(index: Any, encoder: Encoder, path: str) -> Plain:
    """An index that stands by itself."""
    form = _encode_index(index, encoder, path)
    try:
        again = _decode_labels(form, Decoder(encoder.classes))
        same = bool(again.equals(index)) and _kind(again) == _kind(index)
    except (BadValue, TypeError, ValueError, AttributeError):
        same = False
    if not same:
        raise Unsupported(path, type_name(index), "(it does not come back equal)")
    return form


def _decode_labels(content: Any, decoder: Decoder) -> Any:
    _check_labels(content)
    return _decode_index(decoder.library("pandas"), content, decoder)


# -- moments and missing values ---------------------------------------------------------------------


def _encode_single(value: Any, encoder: Encoder, path: str) -> Plain:
    kind = type(value).__name__
    if kind in _MISSING:
        return _MISSING[kind]
    form: dict[str, Plain] = {"type": kind}
    if kind == "Period":
        form |= {"value": str(value), "freq": value.freqstr}
    elif kind == "Timestamp" and value.tzinfo is not None:
        moment = value.tz_convert("UTC").tz_localize(None)
        form |= {"value": moment.isoformat(), "zone": encode_zone(value.tzinfo, encoder, path)}
    else:
        form["value"] = value.isoformat()
    if kind != "Period":
        form["unit"] = value.unit
    again = _decode_single(form, Decoder(encoder.classes))
    if type(again) is not type(value) or again != value or repr(again) != repr(value):
        raise Unsupported(path, type_name(value), "(it does not come back equal)")
    return form


def _decode_single(content: Any, decoder: Decoder) -> Any:
    if content in ("NaT", "NA"):
        return getattr(decoder.library("pandas"), content)
    fields = parts(content, ("type", "value"), ("unit", "zone", "freq"))
    kind, value = fields["type"], text(fields["value"])
    if kind not in ("Timestamp", "Timedelta", "Period"):
        raise BadValue("'type' must be Timestamp, Timedelta or Period")
    text(fields.get("freq", "") if kind != "Period" else fields.get("freq"))
    text(fields.get("unit", ""))
    pandas = decoder.library("pandas")
    if kind == "Period":
        return pandas.Period(value, freq=text(fields.get("freq")))
    made = getattr(pandas, kind)(value).as_unit(text(fields.get("unit", "ns")))
    return (
        made.tz_localize("UTC").tz_convert(decode_zone(fields["zone"], decoder)) if "zone" in fields else made
    )


_EVEN = ("DatetimeIndex", "TimedeltaIndex")
"""Indexes that know how far apart their labels are."""
_MISSING: dict[str, Plain] = {"NaTType": "NaT", "NAType": "NA"}
_INDEXES = (
    *(
        "Index",
        "RangeIndex",
        "MultiIndex",
        "DatetimeIndex",
        "TimedeltaIndex",
        "PeriodIndex",
        "CategoricalIndex",
    ),
    "IntervalIndex",
)


def _is_single(kind: type) -> bool:
    """Whether it is a moment, a span of time or a missing value."""
    return is_of("pandas", "Timestamp", "Timedelta", "Period")(kind) or (
        kind.__name__ in _MISSING and kind.__module__.partition(".")[0] == "pandas"
    )


FRAMES = (
    Row("dataframe", is_of("pandas", "DataFrame"), _encode_frame, _decode_frame),
    Row("series", is_of("pandas", "Series"), _encode_series, _decode_series),
    Row("index", is_of("pandas", *_INDEXES), _encode_labels, _decode_labels),
    Row("pandas", _is_single, _encode_single, _decode_single),
)
"""Before what stands for the types below them: a Timestamp is a datetime."""
