"""numpy's scalars and arrays. Knows what they hold and how it is spelled.

numpy is not imported here: who has a value of it has imported it, and on replay the program has to.
Small arrays stand as numbers, others as their raw buffer; each way is proven while recording.
"""

from __future__ import annotations

import base64
import math
import sys
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue, Unsupported, type_name
from stepfork.cassette.values.item_types import MOMENTS, NOT_A_TIME, NUMBERS, TEXTS, check_items, item_type
from stepfork.cassette.values.walk import Decoder, Encoder, Row, is_of, parts, text
from stepfork.core.model import Plain, Tagged

_READABLE: Final = 64
"""Items up to which an array of numbers or moments is spelled out."""
_LARGEST: Final = 1 << 28
"""Bytes of an array that is spelled out, so that a file of a few letters cannot ask for all memory."""


def _is_scalar(kind: type) -> bool:
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__)


def _encode_array(array: Any, encoder: Encoder, path: str) -> Plain:
    kind: str = array.dtype.kind
    if kind not in "biufcmMUSOV" or (kind == "V" and not _is_record(array.dtype)):
        raise Unsupported(path, type_name(array), f"with items of type {array.dtype}")
    form: dict[str, Plain] = {"dtype": _spelled(array.dtype)}
    if kind == "O":
        with encoder.visit(array, path):
            form["values"] = [encoder.encode(item, f"{path}[{at}]") for at, item in enumerate(array.ravel())]
    elif kind in TEXTS or (kind in NUMBERS + MOMENTS and array.size <= _READABLE and array.itemsize <= 8):
        form["values"] = encoder.encode(_spelled_out(array.ravel()), path)
    if "values" not in form or (kind != "O" and not _same_bytes(array, form)):
        form["values"] = Tagged("bytes", base64.b64encode(array.tobytes()).decode("ascii"))
    if array.ndim != 1 or not isinstance(form["values"], list):
        form["shape"] = list(array.shape)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        form["order"] = "F"
    return form


def _spelled_out(flat: Any) -> Any:
    """The items as numbers and texts: a moment as its ISO text, a span of time as its count of units."""
    if flat.dtype.kind == "M":
        texts = sys.modules["numpy"].datetime_as_string(flat).tolist()
        return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
    if flat.dtype.kind == "m":
        numbers, missing = flat.view("i8" if flat.dtype.isnative else flat.dtype.str[0] + "i8"), flat != flat
        return [NOT_A_TIME if gone else n for n, gone in zip(numbers.tolist(), missing, strict=True)]
    return flat.tolist()


def _is_record(dtype: Any) -> bool:
    """Whether items are records of named fields, each a number or a text."""
    simple = dtype.fields is not None and all(len(item) == 2 for item in dtype.descr)
    return simple and not dtype.hasobject and dtype == sys.modules["numpy"].dtype(dtype.descr)


def _dtype(numpy: Any, spelled: Any) -> Any:
    if isinstance(spelled, list):
        return numpy.dtype([(text(name), text(kind)) for name, kind in spelled])
    return numpy.dtype(text(spelled))


def _spelled(dtype: Any) -> Plain:
    """``float64``; with its byte order where that is another machine's. Records as pairs of name and type."""
    if dtype.fields is not None:
        return [list(item) for item in dtype.descr]
    return str(dtype.name if dtype.isnative and dtype.kind in NUMBERS + MOMENTS + "cO" else dtype.str)


def _same_bytes(array: Any, form: dict[str, Plain]) -> bool:
    numpy = sys.modules["numpy"]
    values = [math.nan if item != item else item for item in Decoder(None).decode(form["values"])]
    again = _array(numpy, form["dtype"], values, array.shape)
    return bool(again.tobytes() == array.tobytes())


def _decode_array(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("dtype", "values"), ("shape", "order"))
    name, values = fields["dtype"], decoder.decode(fields["values"])
    if not isinstance(values, list | bytes):
        raise BadValue("'values' must be a sequence, or !bytes")
    shape = fields.get("shape", [len(values)])
    if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape):
        raise BadValue("'shape' must be a list of sizes")
    if fields.get("order", "F") != "F":
        raise BadValue("'order' must be F, or be left out")
    _check_form(name, values, shape)
    numpy = decoder.library("numpy")
    array = _array(numpy, name, values, tuple(shape))
    return numpy.asfortranarray(array) if fields.get("order") == "F" else array


def _array(numpy: Any, name: Any, values: Any, shape: tuple[int, ...]) -> Any:
    dtype = _dtype(numpy, name)
    count = math.prod(shape)
    if isinstance(values, bytes):
        return numpy.frombuffer(values, dtype=dtype).reshape(shape).copy()
    _check_count(len(values), list(shape), 1)
    if count * dtype.itemsize > _LARGEST:
        raise BadValue(f"an array of the shape {list(shape)} and the type {name} is larger than 256 MB")
    array = numpy.empty(count, dtype=dtype)
    for at, item in enumerate(values):
        array[at] = item
    return array.reshape(shape)


def _check_form(name: Any, values: list[Any] | bytes, shape: list[int]) -> None:
    """What can be told without numpy: whether these are values, or bytes, of that type and number."""
    found = item_type(name)
    if isinstance(values, list):
        _check_count(len(values), shape, 1)
        check_items(name, values)
    elif found.kind == "O":
        raise BadValue("objects must stand as a sequence")
    else:
        _check_count(len(values), shape, 8 if found.kind in MOMENTS else found.size)


def _check_count(given: int, shape: list[int], size: int) -> None:
    """Whether so many values, or bytes of so many a value (0: not known), make an array of that shape."""
    if size and given != math.prod(shape) * size:
        what = f"{given} values do" if size == 1 else f"{given} bytes do"
        raise BadValue(f"{what} not make an array of the shape {shape}")


def _encode_scalar(value: Any, encoder: Encoder, path: str) -> Plain:
    form = _encode_array(sys.modules["numpy"].asarray(value), encoder, path)
    assert isinstance(form, dict)
    values = form["values"]
    return {"dtype": form["dtype"], "value": values[0] if isinstance(values, list) else values}


def _decode_scalar(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("dtype", "value"))
    value = decoder.decode(fields["value"])
    raw = isinstance(value, bytes) and item_type(fields["dtype"]).kind != "S"
    _check_form(fields["dtype"], value if raw else [value], [])
    numpy = decoder.library("numpy")
    return _array(numpy, fields["dtype"], value if raw else [value], ())[()]


ARRAYS = (
    Row("array", is_of("numpy", "ndarray"), _encode_array, _decode_array),
    Row("numpy", _is_scalar, _encode_scalar, _decode_scalar),
)
"""numpy first: its float64 is a float."""
