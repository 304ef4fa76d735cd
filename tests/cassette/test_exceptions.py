"""Exceptions to plain values and back: class, content, causes and notes, and what a file may not do."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support import value_classes as vc
from support.examples import examples

from stepfork.cassette.emitter import emit_document
from stepfork.cassette.exceptions import decode_exception, encode_exception
from stepfork.cassette.reader import parse_document
from stepfork.cassette.values import TAGS, BadValue, ClassPolicy, Unsupported, decode, encode
from stepfork.core.model import Tagged

ROOT = ClassPolicy(root=Path(__file__).parents[1])


def through_the_file(error: BaseException, classes: ClassPolicy = ClassPolicy()) -> BaseException:
    text = emit_document({"error": encode_exception(error, classes=classes)})
    for pure in (True, False):
        again = decode_exception(parse_document(text, known_tags=TAGS, pure=pure)["error"], classes)
    return again


def raised(make: Any) -> BaseException:
    try:
        make()
    except BaseException as error:
        return error
    raise AssertionError


def invalid() -> None:
    vc.Answer.model_validate({"title": "t", "inner": 3})


ERRORS = [
    ValueError("no"), KeyError("k"), OSError(2, "no such", "f"), FileNotFoundError(2, "a", "b"),
    vc.Renamed(1, "x", "f"), UnicodeDecodeError("utf8", b"a", 0, 1, "r"), vc.ToolDown("x", retry_after=30),
    json.JSONDecodeError("m", "doc", 1), TimeoutError(), StopIteration(3), ZeroDivisionError("x"),
    ImportError("x", name="n", path="p"), SyntaxError("m", ("f", 1, 2, "t")),
    vc.Slotted("s", 3), vc.Made("x"),
    subprocess.CalledProcessError(1, ["ls"], b"out"), SystemExit(3), ExceptionGroup("g", [ValueError(1)]),
    vc.Group("g", [vc.Slotted("s", 3), ExceptionGroup("h", [KeyError("k")])]),
    raised(lambda: {}.x),  # type: ignore[attr-defined]
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_exception_comes_back_as_the_same_class(error: BaseException) -> None:
    vc.constructed.clear()
    again = through_the_file(error)
    assert type(again) is type(error)
    assert (str(again), repr(again), vars(again)) == (str(error), repr(error), vars(error))
    assert vc.constructed == [], "no constructor of the user's ran"


def test_fields_that_builtin_exceptions_have_in_c() -> None:
    assert through_the_file(ImportError("x", name="n", path="p")).name == "n"  # type: ignore[attr-defined]
    assert through_the_file(SyntaxError("m", ("f", 1, 2, "t"))).lineno == 1  # type: ignore[attr-defined]
    assert through_the_file(vc.Slotted("s", 3)).code == 3  # type: ignore[attr-defined]
    again = through_the_file(OSError(28, "full", "f"))
    assert isinstance(again, OSError)
    assert (again.errno, again.strerror, again.filename) == (28, "full", "f")


def test_a_cause_notes_and_from_none() -> None:
    def chained() -> None:
        try:
            {}["k"]
        except KeyError as error:
            error.add_note("inner")
            raise vc.ToolDown("x", retry_after=1) from error

    error = raised(chained)
    error.add_note("one")
    error.add_note("two\nlines")
    again = through_the_file(error)
    assert again.__notes__ == ["one", "two\nlines"]
    assert repr(again.__cause__) == "KeyError('k')"
    assert again.__cause__ is again.__context__
    assert again.__cause__.__notes__ == ["inner"]
    assert (again.__suppress_context__, again.retry_after) == (True, 1)  # type: ignore[attr-defined]

    def from_none() -> None:
        try:
            {}["k"]
        except KeyError:
            raise ValueError("x") from None

    again = through_the_file(raised(from_none))
    assert (again.__cause__, again.__suppress_context__) == (None, True)
    assert not through_the_file(ValueError()).__suppress_context__


def test_C74_a_timeout_keeps_the_cancellation_that_it_came_from() -> None:
    async def late() -> None:
        await asyncio.wait_for(asyncio.sleep(60), 0.001)

    again = through_the_file(raised(lambda: asyncio.run(late())))
    assert isinstance(again, TimeoutError)
    assert isinstance(again.__cause__, asyncio.CancelledError)


def test_exceptions_are_values_too() -> None:
    values = [1, KeyError("k"), asyncio.CancelledError(), {"error": vc.Slotted("s", 1)}]
    again = decode(encode(values))
    assert [type(item) for item in again] == [int, KeyError, asyncio.CancelledError, dict]
    assert again[3]["error"].code == 1


def test_an_error_of_pydantics() -> None:
    error = raised(invalid)
    again = through_the_file(error)
    assert isinstance(again, ValidationError)
    assert isinstance(error, ValidationError)
    assert (again.errors(), str(again)) == (error.errors(), str(error))


def test_C72_an_sdk_error_keeps_its_response_where_a_tool_lets_it_through() -> None:
    request = httpx2.Request("POST", "http://host/v1/x?a=1", headers={"x-a": "b"}, json={"a": 1})
    headers = [
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("content-encoding", "gzip"),
        ("retry-after", "30"),
    ]
    content = gzip.compress(b'{"error": {"code": "slow"}}')
    response = httpx2.Response(429, headers=headers, content=content, request=request)
    error = openai.RateLimitError("slow down", response=response, body={"code": "slow"})
    again = through_the_file(error)
    assert isinstance(again, openai.RateLimitError)
    assert (str(again), again.status_code, again.body, again.code) == (
        "slow down",
        429,
        {"code": "slow"},
        "slow",
    )
    assert again.response.json() == {"error": {"code": "slow"}}
    assert sorted(again.response.headers.multi_items()) == sorted(headers), "without its content's length"
    assert (str(again.request.url), again.request.content) == (str(request.url), request.content)
    assert dict(again.request.headers) == {"x-a": "b", "content-type": "application/json"}
    assert again.request is again.response.request, "it stands once"


def test_errors_of_an_http_library_hold_their_request_and_response() -> None:
    request = httpx2.Request("GET", "http://host/")
    lost = through_the_file(httpx2.ConnectError("refused", request=request))
    assert isinstance(lost, httpx2.ConnectError)
    assert str(lost.request.url) == "http://host/"
    error = raised(httpx2.Response(500, content=b"\xff\x00", request=request).raise_for_status)
    again = through_the_file(error)
    assert isinstance(again, httpx2.HTTPStatusError)
    assert (again.response.status_code, again.response.content) == (500, b"\xff\x00")
    unread = httpx2.HTTPStatusError("x", request=request, response=httpx2.Response(200, stream=Unread()))
    with pytest.raises(Unsupported, match="whose content was not read"):
        encode_exception(unread)


class Unread(httpx2.SyncByteStream):
    def __iter__(self) -> Any:
        yield b"a"


def test_a_constructor_runs_where_it_is_needed_and_allowed() -> None:
    error = vc.Handle("db")
    with pytest.raises(Unsupported) as caught:
        encode_exception(error)
    assert caught.value.path == "error.lock"
    assert "allow_classes = ['support.value_classes:Handle']" in caught.value.hint
    vc.constructed.clear()
    again = through_the_file(error, ROOT)
    assert (type(again), again.args, again.host) == (vc.Handle, ("db",), "db")  # type: ignore[attr-defined]
    assert "Handle" in vc.constructed
    with pytest.raises(BadValue, match="may not run"):
        decode_exception(encode_exception(error, classes=ROOT))


def test_a_cause_that_cannot_be_written_is_named_only() -> None:
    error = ValueError("x")
    for cause in (TypeError(object()), error):
        error.__cause__ = cause
        form = encode_exception(error)
        assert form["cause_left_out"] == f"builtins:{type(cause).__name__}: {cause}"
        again = decode_exception(form)
        assert (again.__cause__, again.__suppress_context__) == (None, True)


def test_a_set_in_an_error_may_have_another_order() -> None:
    """Which order it has depends on how it was made, and for texts on the process."""
    late = {8}
    late.add(0)  # an equal one that is made at once has 0 first
    assert str(late) != str({0, 8})
    for error in (ValueError(late), KeyError("k", [frozenset(late)]), vc.ToolDown("x", retry_after=late)):  # type: ignore[arg-type]
        again = through_the_file(error)
        assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))
        outer = RuntimeError("x")
        outer.__cause__ = error
        assert type(through_the_file(outer).__cause__) is type(error)
    group = through_the_file(ExceptionGroup("g", [ValueError(late)]))
    assert group.exceptions[0].args == ({0, 8},)  # type: ignore[attr-defined]


def test_what_would_change_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"error\.args\[0\]: object"):
        encode_exception(ValueError(object()))
    error = ValueError("x")
    error.inner = error  # type: ignore[attr-defined]
    with pytest.raises(Unsupported, match="contains itself"):
        encode_exception(error)
    Local = type("Local", (Exception,), {})
    with pytest.raises(Unsupported, match="not to be found"):
        encode_exception(Local("x"))


@examples(100)
@given(
    st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=2)), st.text()
)
def test_any_arguments_and_attributes(content: Any, note: str) -> None:
    error = vc.ToolDown("x", retry_after=1)
    error.args = (content, note)
    error.extra = content  # type: ignore[attr-defined]
    error.add_note(note)
    again = through_the_file(error)
    assert (again.args, vars(again)) == (error.args, vars(error))


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "builtins:print", "no.such:Error", "builtins:KeyboardInterrupt", "builtins", ":", "",
        "subprocess:Popen", "support.value_classes:Plain",
        "builtins:ValueError.__init__", "asyncio:TimeoutError",
    ],
)  # fmt: skip
@pytest.mark.parametrize("given", ["args", "init"])
def test_no_other_callable_named_in_a_file_is_called(name: str, given: str) -> None:
    with pytest.raises(BadValue):
        decode_exception({"class": name, given: ["x"]})


HOSTILE = [
    Tagged("model", {"class": "os:system", "fields": {"command": "touch x"}}),
    Tagged("model", {"class": "os:system", "init": {"command": "touch x"}}),
    Tagged("dataclass", {"class": "subprocess:Popen", "init": {"args": "touch x"}}),
    Tagged("dataclass", {"class": "support.value_classes:Plain", "init": {"a": 1}}),
    Tagged("dataclass", {"class": "support.value_classes:Color", "fields": {}}),
    Tagged("dataclass", {"class": "no.such.module:C", "fields": {}}),
    Tagged("dataclass", {"class": "antigravity:C", "fields": {}}),
    Tagged("dataclass", {"class": ["os", "system"], "fields": {}}),
    Tagged("dataclass", {"class": "support.value_classes:Frozen", "fields": {"__class__": 1}}),
    Tagged("dataclass", {"class": "support.value_classes:Frozen", "fields": {}, "__reduce__": ["os:system"]}),
    Tagged("dataclass", {"class": "support.value_classes:Finalised", "fields": {"path": "x"}}),
    Tagged("namedtuple", {"class": "support.value_classes:Point", "fields": {"x": 1}}),
    Tagged("url", {"class": "pydantic.types:ImportString", "value": "antigravity"}),
    Tagged("url", {"class": "support.value_classes:Answer", "value": {"title": 1}}),
    Tagged("url", {"class": "pydantic.networks:HttpUrl", "value": 3}),
    Tagged("url", {"class": "pydantic.main:create_model", "value": "x"}),
    Tagged("fraction", "1e999999999"),
    Tagged("fraction", [1, 0]),
    Tagged("namedtuple", {"class": "os:stat_result", "fields": {}}),
    Tagged("enum", "os:system.__call__"),
    Tagged("enum", "support.value_classes:Color.mro"),
    Tagged("enum", "support.value_classes:Outer.Inner.B"),
    Tagged("enum", {"class": "support.value_classes:Color", "value": 1}),
    Tagged("enum", {"class": "support.value_classes:Perm", "value": 1 << 40}),
    Tagged("exception", {"class": "os:system", "args": ["touch x"]}),
    Tagged("exception", {"class": "support.value_classes:Handle", "init": ["x"]}),
    Tagged("exception", {"class": "builtins:ValueError", "args": [], "state": {"a": 1}}),
    Tagged("defaultdict", {"factory": "system", "items": {}}),
    Tagged("custom", {"codec": "os:system", "value": "touch x"}),
    Tagged("array", {"dtype": "O", "values": Tagged("bytes", "AAAAAAAAAAA=")}),
    Tagged("array", {"dtype": "float64", "values": [], "shape": [1 << 60]}),
    Tagged("array", {"dtype": "U1000000000", "values": ["a"]}),
    Tagged("array", {"dtype": "float64", "values": [1.0], "shape": [-1]}),
    Tagged("dataframe", {"columns": [{"name": "a", "values": [1], "dtype": "os:system"}], "index": {}}),
    Tagged("http-request", {"library": "os", "method": "GET", "url": "http://x"}),
    Tagged("http-response", {"library": "httpx2", "status": "200"}),
    Tagged("deque", {"maxlen": 0, "items": [1]}),
    Tagged("bytes-stream", {"content": "abc"}),
    Tagged("text-stream", {"content": "abc", "newline": "x"}),
]  # fmt: skip


@pytest.mark.parametrize("form", HOSTILE, ids=lambda form: f"{form.tag}-{str(form.value)[:40]}")
def test_hostile_values_are_refused_and_run_nothing(
    form: Tagged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    vc.constructed.clear()
    with pytest.raises(BadValue):
        decode(form)
    assert (vc.constructed, os.listdir(tmp_path)) == ([], [])
    assert not {"antigravity", "no"} & (set(sys.modules) - before)


def test_only_allowed_classes_are_imported(make_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_module(
        """
        import dataclasses
        @dataclasses.dataclass
        class C:
            a: int
            def __post_init__(self):
                self.b = 1
        """,
        load=False,
    ).__name__
    fields: Any = Tagged("dataclass", {"class": f"{name}:C", "fields": {"a": 1}})
    init: Any = Tagged("dataclass", {"class": f"{name}:C", "init": {"a": 1}})
    with pytest.raises(
        BadValue, match=rf"not imported by the program; import it, or set allow_classes = \['{name}:C'\]"
    ):
        decode(fields)
    with pytest.raises(BadValue, match="not imported"):
        decode(fields, ClassPolicy(allow=(f"{name}x.*", f"{name}:D")))
    assert name not in sys.modules
    assert decode(init, ClassPolicy(allow=(f"{name}.*",))).b == 1
    assert vars(decode(fields)) == {"a": 1}
    with pytest.raises(BadValue, match="may not run"):
        decode(init)
    root = Path(str(sys.modules[name].__file__)).parent
    assert decode(init, ClassPolicy(root=root)).b == 1
    installed = ClassPolicy(root=root.parent / "elsewhere")
    with pytest.raises(BadValue, match="may not run"):
        decode(init, installed)
