"""Instances of the user's classes, arrays and frames: there, through the file, and back."""

from __future__ import annotations

import io
import math
from collections import Counter, OrderedDict, defaultdict, deque
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion
from pydantic import AnyUrl, HttpUrl, PostgresDsn
from support import value_classes as vc
from support.examples import examples

from stepfork import codecs
from stepfork.cassette.emitter import emit_document
from stepfork.cassette.reader import parse_document
from stepfork.cassette.values import TAGS, BadValue, ClassPolicy, Unsupported, checks, decode, encode, look
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged
from stepfork.errors import ConfigError


def array_of_objects(items: list[Any]) -> Any:
    """One cell each; `np.array` would look into what is inside of them, a range of billions as well."""
    array = np.empty(len(items), dtype=object)
    for at, item in enumerate(items):
        array[at] = item
    return array


ALLOWED = ClassPolicy(allow=("support.value_classes.*",))


def through_the_file(value: Any, classes: ClassPolicy = ClassPolicy()) -> Any:
    """What comes back, under both of PyYAML's loaders; what stands in the file reads well without classes."""
    text = emit_document({"v": encode(value, classes=classes)})
    found = []
    for pure in (False, True):
        plain = parse_document(text, known_tags=TAGS, pure=pure)["v"]
        checks().decode(plain)
        found.append(decode(plain, classes))
    assert type(found[0]) is type(found[1])
    return found[0]


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.fractions()
    | st.sampled_from([*vc.Color, *vc.Level, *vc.Word, vc.Perm.READ, vc.Perm.READ | vc.Perm.RUN, vc.Perm(0)])
    | st.builds(range, st.integers(), st.integers(), st.integers(1, 9))
    | st.floats(width=32).map(np.float32) | st.floats().map(np.float64) | st.integers(0, 255).map(np.uint8)
    | st.builds(vc.ToolDown, st.text(), retry_after=st.integers())
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(deque)
        | st.lists(inner, max_size=3).map(lambda items: deque(items, 3))
        | st.builds(vc.Point, inner, inner)
        | st.builds(vc.Plain, inner, inner)
        | st.builds(vc.Frozen, inner, inner)
        | st.builds(vc.Box, inner)
        | st.builds(vc.Answer, title=inner)
        | st.builds(vc.Answer, title=inner, score=inner)
        | st.builds(vc.Open.model_construct, extra=inner)
        | st.dictionaries(st.text(), inner, max_size=3).map(lambda d: defaultdict(list, d))
        | st.dictionaries(st.integers() | st.text(), st.integers(), max_size=3).map(Counter)
        | st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), inner, max_size=3).map(
            lambda d: SimpleNamespace(**d)
        )
        | st.lists(st.floats(), max_size=4).map(np.array)
        | st.lists(inner, max_size=3).map(array_of_objects)
    ),
    max_leaves=10,
)


@examples(100)
@given(VALUES)
def test_a_value_comes_back_as_itself(value: Any) -> None:
    again = through_the_file(value)
    assert type(again) is type(value)
    assert canonical_text(encode(again)) == canonical_text(encode(value))


@examples(100)
@given(VALUES)
def test_a_reader_needs_no_class(value: Any) -> None:
    plain = encode(value)
    checks().decode(plain)
    look(plain)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (vc.Color.RED, 'v: !enum support.value_classes:Color.RED\n'),
        (vc.Outer.Inner.A, 'v: !enum support.value_classes:Outer.Inner.A\n'),
        (vc.Perm(3), 'v: !enum {class: "support.value_classes:Perm", value: 3}\n'),
        (vc.Point(1), 'v: !namedtuple {class: "support.value_classes:Point", fields: {x: 1, "y": 0}}\n'),
        (vc.Frozen(1), 'v: !dataclass {class: "support.value_classes:Frozen", fields: {a: 1, b: null}}\n'),
        (defaultdict(int, a=1), "v: !defaultdict {factory: int, items: {a: 1}}\n"),
        (np.arange(4).reshape(2, 2), "v: !array {dtype: int64, values: [0, 1, 2, 3], shape: [2, 2]}\n"),
        (np.float64(0.5), "v: !numpy {dtype: float64, value: 0.5}\n"),
        (OrderedDict(b=1, a=2), "v: {b: 1, a: 2}\n"),
        (vc.Text("text"), "v: text\n"),
        (defaultdict(lambda: 1, a=1), "v: {a: 1}\n"),
    ],
)  # fmt: skip
def test_C21_how_it_stands_in_the_file(value: Any, text: str) -> None:
    assert emit_document({"v": encode(value)}) == text


def test_C21_no_method_of_a_subclass_is_asked() -> None:
    assert through_the_file(vc.Headers(Accept="*/*")) == {"Accept": "*/*"}
    assert type(through_the_file(vc.Text("a"))) is str


def test_no_constructor_runs_where_what_an_object_holds_says_all() -> None:
    plain = vc.Plain(1, [vc.Answer(title="t"), vc.Frozen((1, 2))])
    vc.constructed.clear()
    assert through_the_file(plain, ALLOWED) == plain
    assert vc.constructed == []


def test_what_was_set_and_what_was_only_the_default_stay_apart() -> None:
    assert through_the_file(vc.Answer(title=1)).model_fields_set == {"title"}
    assert through_the_file(vc.Answer(title=1, score=0.5)).model_fields_set == {"title", "score"}
    model = vc.Open(a=2, more={"x": 1})
    model._seen = 7
    again = through_the_file(model)
    assert (again, again.model_extra, again._seen) == (model, {"more": {"x": 1}}, 7)
    assert through_the_file(vc.Open()).model_extra == {}


def test_an_answer_of_the_sdk_is_a_value_like_any_other() -> None:
    message = {"role": "assistant", "content": "hi"}
    answer = ChatCompletion.model_validate(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "new": [1],
         "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    )  # fmt: skip
    again = through_the_file(answer)
    assert again == answer
    assert again.to_dict() == answer.to_dict()


def test_urls_of_pydantics_go_by_its_encoder() -> None:
    for value in (HttpUrl("https://host:8080/a?b=1#c"), AnyUrl("x://y"), PostgresDsn("postgres://u@h/d")):
        model = vc.Answer(title=value)
        assert through_the_file(model) == model
        assert type(through_the_file(model).title) is type(value)


def test_models_of_pydantics_first_version() -> None:
    model = vc.Old(a=[(1, 2)])
    model._seen = 3
    again = through_the_file(model)
    assert (again, again.__fields_set__, again._seen) == (model, {"a"}, 3)


def test_what_is_worked_out_from_the_rest_is_not_written() -> None:
    box = vc.Box[int](3)
    assert box.worked_out
    assert through_the_file(box) == box
    assert "worked_out" not in vars(through_the_file(box))


@pytest.mark.parametrize("value", [vc.Locked("a"), vc.WithLock(a=3)], ids=["dataclass", "model"])
def test_a_constructor_runs_where_it_is_needed_and_allowed(value: Any) -> None:
    with pytest.raises(Unsupported) as caught:
        encode(value, "result")
    assert "allow_classes = ['support.value_classes:" in caught.value.hint
    again = through_the_file(value, ALLOWED)
    assert type(again) is type(value)
    form = encode(value, "result", ALLOWED)
    with pytest.raises(BadValue, match="may not run: set allow_classes"):
        decode(form)
    assert look(form) == form


def test_a_constructor_that_makes_something_else_is_refused() -> None:
    with pytest.raises(Unsupported, match="does not make it again"):
        encode(vc.Odd("a"), classes=ALLOWED)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3)), np.array(3), np.arange(100, dtype=">i4").reshape(10, 10).T,
        np.array(["a", "bc", ""]),
        np.array([b"a\x00b"]), np.array(["2024-01-01"], dtype="M8[ns]"), np.array([1 + 2j]),
        np.array([[math.nan, -0.0, math.inf]]), np.array([0.1], dtype="f2"), np.array([True]),
        np.array([{"a": (1,)}, None, np.float64(1)], dtype=object), np.random.default_rng(1).random(500),
        np.frombuffer(bytes.fromhex("010000000000f87f"), dtype="f8"),
        np.float64(0.1), np.int8(-3), np.bool_(True), np.str_("a"), np.bytes_(b"a"), np.complex128(1j),
        np.datetime64("2024-01-01"), np.timedelta64(3, "s"), np.longdouble(1) / 3,
    ],
    ids=repr,
)  # fmt: skip
def test_arrays_come_back_to_the_last_bit(value: Any) -> None:
    again = through_the_file(value)
    assert type(again) is type(value)
    assert (again.dtype, again.shape) == (value.dtype, value.shape)
    assert again.dtype.hasobject or again.tobytes() == value.tobytes()
    assert repr(again) == repr(value)
    if isinstance(value, np.ndarray):
        assert again.flags.writeable


DAYS = pd.to_datetime(["2024-01-01", "2024-01-02"])
TWO_LEVELS = pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["n", "m"])
FRAMES = {
    "plain": pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.1, math.nan]}),
    "objects": pd.DataFrame({"a": [1, "x", None, (1,)]}, dtype=object),
    "categories": pd.DataFrame({"c": pd.Categorical(["a", "b"], categories=["b", "a"], ordered=True)}),
    "moments": pd.DataFrame({"t": DAYS, "z": DAYS.tz_localize("UTC"), "d": DAYS - DAYS[0]}),
    "an index of days": pd.DataFrame({"a": [1, 2]}, index=DAYS),
    "missing": pd.DataFrame({"i": pd.array([1, None], dtype="Int64"), "s": ["a", None]}),
    "no columns": pd.DataFrame(),
    "no rows": pd.DataFrame(columns=["a", "b"]),
    "columns by number": pd.DataFrame([[1, 2.5]]),
    "columns twice": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "two levels": pd.DataFrame({"a": [1, 2]}, index=TWO_LEVELS),
    "large": pd.DataFrame(np.random.default_rng(1).random((200, 2)), columns=["a", "b"]),
    "names": pd.DataFrame([[1]], index=pd.Index(["k"], name="i"), columns=pd.Index(["a"], name="c")),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_frames_come_back_with_types_and_labels(name: str) -> None:
    frame = FRAMES[name]
    pd.testing.assert_frame_equal(through_the_file(frame), frame, check_exact=True, check_column_type=True)


def test_series_come_back() -> None:
    for series in (pd.Series([1, 2], name="s"), pd.Series(["a"], index=["k"]), pd.Series([], dtype=float)):
        pd.testing.assert_series_equal(through_the_file(series), series, check_exact=True)


def test_what_a_frame_would_lose_is_refused() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["unit"] = "kg"
    with pytest.raises(Unsupported, match="does not come back equal"):
        encode(frame)
    with pytest.raises(Unsupported, match=r"rows\['a'\]\[0\]: object"):
        encode(pd.DataFrame({"a": [object()]}), "rows")


def test_C19_streams_in_memory_stand_by_content_and_are_not_used_up() -> None:
    stream, lines = io.BytesIO(b"abc\x00\xff"), io.StringIO("a\r\nb", newline="")
    stream.read(1)
    again, text = through_the_file(stream), through_the_file(lines)
    assert (again.read(), stream.read()) == (b"bc\x00\xff", b"bc\x00\xff")
    assert (list(text), list(lines)) == (["a\r\n", "b"], ["a\r\n", "b"])
    stream.close()
    with pytest.raises(Unsupported, match="closed"):
        encode(stream)


def test_small_things_of_the_standard_library() -> None:
    for value in (
        Fraction(1, 3),
        range(1, 9, 2),
        SimpleNamespace(a=(1,)),
        Counter(a=2),
        deque([1], maxlen=2),
    ):
        again = through_the_file(value)
        assert (type(again), again) == (type(value), value)
    assert through_the_file(deque([1], maxlen=2)).maxlen == 2
    assert through_the_file(memoryview(b"ab")) == memoryview(b"ab")
    assert through_the_file(defaultdict(list)).default_factory is list


def test_an_object_inside_itself_is_refused() -> None:
    plain = vc.Plain(1)
    plain.b = [plain]
    with pytest.raises(Unsupported, match="contains itself"):
        encode(plain)


def test_a_class_that_cannot_be_found_again_is_refused() -> None:
    Local = type("Local", (vc.Plain,), {})
    with pytest.raises(Unsupported, match="not to be found") as caught:
        encode([Local(1)], "result")
    assert caught.value.path == "result[0]"


def test_a_class_with_a_finaliser_is_refused_and_it_does_not_run() -> None:
    value = vc.Finalised("x")
    vc.constructed.clear()
    with pytest.raises(Unsupported, match="has a finaliser, which would run for a copy too"):
        encode(value, classes=ALLOWED)
    assert vc.constructed == []


# -- codecs -----------------------------------------------------------------------------------------


@pytest.fixture
def money() -> Any:
    codecs.register(vc.Money, "money", lambda value: (value.cents, "EUR"), lambda pair: vc.Money(pair[0]))
    yield
    codecs.unregister("money")


def test_a_codec_of_the_users(money: Any) -> None:
    form = encode([vc.Money(5)])
    assert emit_document({"v": form}) == "v:\n- !custom {codec: money, value: !tuple [5, EUR]}\n"
    assert through_the_file([vc.Money(5)]) == [vc.Money(5)]


def test_a_codec_that_is_not_registered_is_a_clear_error(money: Any) -> None:
    form = encode(vc.Money(5))
    codecs.unregister("money")
    with pytest.raises(BadValue, match="no codec is registered for 'money'"):
        decode(form)
    assert look(form) == form
    checks().decode(form)
    with pytest.raises(Unsupported):
        encode(vc.Money(5))


@pytest.mark.parametrize(
    ("encode_it", "decode_it", "why"),
    [
        (lambda value: 1, lambda content: "text", "does not give it back equal"),
        (lambda value: value.cents, lambda content: vc.Money(0), "does not give it back equal"),
        (lambda value: 1 / 0, lambda content: content, "failed: ZeroDivisionError"),
        (lambda value: object(), lambda content: content, "object"),
        (lambda value: value, lambda content: content, "contains itself"),
    ],
)
def test_a_codec_is_proven_while_recording(encode_it: Any, decode_it: Any, why: str) -> None:
    codecs.register(vc.Money, "money", encode_it, decode_it)
    try:
        with pytest.raises(Unsupported, match=why):
            encode(vc.Money(5))
    finally:
        codecs.unregister("money")


def test_what_cannot_have_a_codec(money: Any) -> None:
    for kind, tag in ((str, "text"), (dict, "d"), (vc.Plain, "money"), (vc.Plain, "Not This"), ("m:C", "c")):
        with pytest.raises(ConfigError, match=r"stepfork.codecs.register\(\)"):
            codecs.register(kind, tag, repr, repr)  # type: ignore[arg-type]
    codecs.register(vc.Money, "money", lambda value: value.cents, vc.Money)  # the same again, as on a reload
    assert through_the_file(vc.Money(5)) == vc.Money(5)


def test_a_codec_goes_before_what_stepfork_makes_of_a_class() -> None:
    codecs.register(vc.Locked, "locked", lambda value: value.name, vc.Locked)
    try:
        assert through_the_file(vc.Locked("a")).name == "a"
    finally:
        codecs.unregister("locked")


def test_plain_forms_share_nothing_with_the_value() -> None:
    form: Plain = Tagged("custom", {"codec": "nobody", "value": [1]})
    seen = look(form)
    assert seen == form
    assert seen.value is not form.value  # type: ignore[union-attr]
