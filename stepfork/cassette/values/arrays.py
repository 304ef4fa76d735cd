"""numpy's scalars and arrays, pandas' frames and series. Knows what they hold and how it is spelled.

Neither library is imported here: who has a value of one has imported it, and on replay the program has to.
Small arrays stand as numbers, others as their raw buffer; each way is proven while recording.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, type_name
from stepfork.cassette.values.walk import Decoder, Encoder, Row, is_of, parts, text
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

_READABLE: Final = 64
"""Items up to which an array of numbers stands as numbers."""
_LARGEST: Final = 1 << 28
"""Bytes of an array that is spelled out, so that a file of a few letters cannot ask for all memory."""
_NUMBERS: Final = "biuf"
_TEXTS: Final = "US"


def _is_scalar(kind: type) -> bool:
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__)


def _encode_array(array: Any, encoder: Encoder, path: str) -> Plain:
    kind: str = array.dtype.kind
    if array.dtype.fields is not None or kind not in "biufcmMUSO":
        raise Unsupported(path, type_name(array), f"with items of type {array.dtype}")
    form: dict[str, Plain] = {"dtype": _spelled(array.dtype)}
    flat = array.ravel().tolist() if kind in _NUMBERS + _TEXTS + "O" else []
    if kind == "O":
        with encoder.visit(array, path):
            form["values"] = [encoder.encode(item, f"{path}[{at}]") for at, item in enumerate(array.ravel())]
    elif kind in _TEXTS or (kind in _NUMBERS and array.size <= _READABLE and array.itemsize <= 8):
        form["values"] = encoder.encode(flat, path)
    if "values" not in form or (kind != "O" and not _same_bytes(array, form)):
        form["values"] = Tagged("bytes", base64.b64encode(array.tobytes()).decode("ascii"))
    if array.ndim != 1 or not isinstance(form["values"], list):
        form["shape"] = list(array.shape)
    return form


def _spelled(dtype: Any) -> str:
    """``float64``; with its byte order where that is another machine's."""
    return str(dtype.name if dtype.isnative and dtype.kind in _NUMBERS + "cO" else dtype.str)


def _same_bytes(array: Any, form: dict[str, Plain]) -> bool:
    numpy = sys.modules["numpy"]
    values = [math.nan if item != item else item for item in Decoder(None).decode(form["values"])]
    again = _array(numpy, form["dtype"], values, array.shape)
    return bool(again.tobytes() == array.tobytes())


def _decode_array(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("dtype", "values"), ("shape",))
    name, values = text(fields["dtype"]), decoder.decode(fields["values"])
    if not isinstance(values, list | bytes):
        raise BadValue("'values' must be a sequence, or !bytes")
    shape = fields.get("shape", [len(values)])
    if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape):
        raise BadValue("'shape' must be a list of sizes")
    return _array(decoder.library("numpy"), name, values, tuple(shape))


def _array(numpy: Any, name: Any, values: Any, shape: tuple[int, ...]) -> Any:
    dtype = numpy.dtype(name)
    count = math.prod(shape)
    if isinstance(values, bytes):
        return numpy.frombuffer(values, dtype=dtype).reshape(shape).copy()
    if len(values) != count or count * dtype.itemsize > _LARGEST:
        raise BadValue(f"{len(values)} values do not make an array of the shape {list(shape)}")
    array = numpy.empty(count, dtype=dtype)
    for at, item in enumerate(values):
        array[at] = item
    return array.reshape(shape)


def _encode_scalar(value: Any, encoder: Encoder, path: str) -> Plain:
    form = _encode_array(sys.modules["numpy"].asarray(value), encoder, path)
    assert isinstance(form, dict)
    values = form["values"]
    return {"dtype": form["dtype"], "value": values[0] if isinstance(values, list) else values}


def _decode_scalar(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("dtype", "value"))
    value = decoder.decode(fields["value"])
    numpy = decoder.library("numpy")
    raw = isinstance(fields["value"], Tagged) and numpy.dtype(text(fields["dtype"])).kind not in _TEXTS
    return _array(numpy, fields["dtype"], value if raw else [value], ())[()]


# -- pandas -----------------------------------------------------------------------------------------


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
    form = {"name": name, "dtype": str(column.dtype), "values": encoder.encode(_unboxed(values), place)}
    if form["dtype"] == "category":
        form["categories"] = encoder.encode(_unboxed(list(column.dtype.categories)), place)
        form["ordered"] = bool(column.dtype.ordered)
    return form


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
    if isinstance(values, Tagged):
        raise Missing("numpy is not at hand")
    if "dtype" not in fields:
        return name, values
    pandas = decoder.library("pandas")
    dtype: Any = text(fields["dtype"])
    if dtype == "str":  # pandas' own since version 3
        dtype = pandas.StringDtype(na_value=math.nan)
    elif dtype == "category":
        categories = decoder.items(fields.get("categories"))
        dtype = pandas.CategoricalDtype(categories, ordered=fields.get("ordered") is True)
    return name, pandas.array(values, dtype=dtype)


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
    return _encode_column(index.to_series(), encoder, place)


def _decode_index(pandas: Any, content: Any, decoder: Decoder) -> Any:
    if isinstance(content, dict) and "range" in content:
        fields = parts(content, ("range",), ("name",))
        return pandas.RangeIndex(*decoder.items(fields["range"]), name=decoder.decode(fields.get("name")))
    if isinstance(content, dict) and "tuples" in content:
        fields = parts(content, ("tuples", "names"))
        tuples, names = decoder.items(fields["tuples"]), decoder.items(fields["names"])
        return pandas.MultiIndex.from_tuples(tuples, names=names)
    name, values = _decode_column(content, decoder)
    return pandas.Index(values, name=name)


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
    dtypes = value.dtypes if hasattr(value, "columns") else [value.dtype]
    labels = [type_name(name) for name in columns]
    index = value.index
    return canonical_text(
        [*map(repr, dtypes), *labels, type(columns).__name__, repr(index.names), str(index.dtype)]
    )


ARRAYS = (
    Row("array", is_of("numpy", "ndarray"), _encode_array, _decode_array),
    Row("numpy", _is_scalar, _encode_scalar, _decode_scalar),
    Row("dataframe", is_of("pandas", "DataFrame"), _encode_frame, _decode_frame),
    Row("series", is_of("pandas", "Series"), _encode_series, _decode_series),
)
"""numpy first: its float64 is a float."""
