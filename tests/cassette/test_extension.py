"""A request told by an earlier one comes back exactly, and what does not fit is refused by field and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork.cassette import schema
from stepfork.cassette.bases import REACH, Asked, ask
from stepfork.cassette.check import faults_of
from stepfork.cassette.emitter import emit_document
from stepfork.cassette.extension import Draft, apply, extend
from stepfork.cassette.floats import pack, unpack
from stepfork.cassette.question import read_extension, told
from stepfork.cassette.reader import parse_document
from stepfork.cassette.store import StoredCassette
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Tagged

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf")]),
    st.sampled_from(["a", "b", "", "x.y", "Two\nlines", "\ud800"]),
)
KEYS = st.sampled_from(["a", "b", "a.b", "[0]", "é", "messages", '"', "\ud800", "", "[-1:]"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda items: Tagged("tuple", items)),
    ),
    max_leaves=12,
)
REQUESTS = st.dictionaries(KEYS, VALUES, max_size=4)


@st.composite
def histories(draw: Any) -> list[dict[str, Any]]:
    """Requests that follow each other: messages are added, taken away in front, cut off behind, replaced."""
    messages: list[Any] = [draw(VALUES)]
    found: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 12))):
        messages = messages + draw(st.lists(VALUES, max_size=2))
        cut = draw(st.integers(0, 3))
        if draw(st.booleans()) and len(messages) > cut:
            messages = draw(
                st.sampled_from([messages[cut:], messages[:1] + messages[1 + cut :], messages[:-1]])
            )
        found.append(
            {"model": "m", "system": "Be brief. " * 30, "inner": {"messages": messages}, **draw(REQUESTS)}
        )
    return found


def plain(value: Any) -> str:
    return canonical_text(value)


@examples(100)
@given(REQUESTS, REQUESTS)
def test_an_extension_makes_the_request_and_leaves_what_it_extends(
    base: dict[str, Any], request: dict[str, Any]
) -> None:
    before = plain(base)
    extension = extend(base, request)
    assert plain(apply(base, extension)) == plain(request)
    assert plain(base) == before
    assert plain(apply(base, extend(base, base))) == before


@examples(100)
@given(REQUESTS, REQUESTS)
def test_it_comes_back_from_a_file(base: dict[str, Any], request: dict[str, Any]) -> None:
    document = {"llm": "x", **told(request, extend(base, request, back=3)), "response": 1}
    read = read_extension(parse_document(emit_document(document)))
    assert read is not None
    assert read.back == 3
    assert plain(apply(base, read)) == plain(request)


@examples(100)
@given(histories())
def test_a_chain_of_extensions_gives_every_request(history: list[dict[str, Any]]) -> None:
    before: list[Asked] = []
    for request in history:
        asked = ask(request, before[:REACH])
        assert plain(asked.request) == plain(request)
        before.insert(0, asked)
    for at, request in enumerate(history):
        chain, step = [], len(history) - 1 - at
        while (extension := before[step].extension) is not None:
            chain.append(extension)
            step += extension.back
        assert isinstance(before[step].request, dict)
        draft = Draft(before[step].request)
        for extension in reversed(chain):
            draft.apply(extension)
        assert plain(draft.request) == plain(request)


def test_the_call_is_chosen_that_says_the_most() -> None:
    writer = {"model": "m", "messages": ["You write poems. " * 30, "Go on."]}
    critic = {"model": "m", "messages": ["You find faults. " * 30, "Go on."]}
    first, second = ask(writer, []), ask(critic, [ask(writer, [])])
    assert second.extension is None, "nothing in common but the model"
    again = ask({**writer, "messages": [*writer["messages"], "A poem.", "Go on."]}, [second, first])
    assert again.extension is not None
    assert (again.extension.back, again.extension.append) == (2, {"messages": ["A poem.", "Go on."]})


def test_one_prompt_and_many_questions_make_no_endless_chain() -> None:
    before: list[Asked] = []
    longest = 0
    for number in range(500):
        asked = ask({"messages": ["Be brief, be kind. " * 20, f"question {number} " * 10]}, before[:REACH])
        longest = max(longest, asked.links)
        before.insert(0, asked)
    assert 30 < longest < 100
    assert sum(asked.extension is None for asked in before) < 20


@pytest.mark.parametrize(
    "values", [[1 / 3] * 20, [0.5] * 70, [float("nan")] * 65, [1 / 3e300, 1e-300 / 7] * 9]
)
def test_long_lists_of_floats_are_one_line(values: list[float]) -> None:
    for value in (values, Tagged("tuple", values), {"deep": [values]}):
        text = emit_document({"result": value})
        assert text.count("\n") <= 4
        assert plain(parse_document(text)["result"]) == plain(value)


def test_a_few_short_numbers_stay_readable() -> None:
    assert emit_document({"result": [20.5] * 20}).count("20.5") == 20


@examples(100)
@given(st.lists(st.floats(), max_size=99), st.booleans())
def test_packed_floats_come_back(values: list[float], whole: bool) -> None:
    packed = pack([*values, 1] if whole else values)
    assert packed is None or (not whole and plain(unpack(*packed)) == plain(values))


@pytest.mark.parametrize(("text", "said"), [("AAA", "f32.*4 bytes"), ("AAAA", "4 bytes"), ("[1.0]", "text")])
def test_packed_floats_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(stepfork.CassetteError, match=said) as caught:
        parse_document(f"tool: t\nresult:\n  a: !f32 {text}\n")
    assert (caught.value.field, caught.value.line) == ("result.a", 3)


# -- a file that was edited -----------------------------------------------------------------------------

HEAD = "stepfork: 1\nname: x\n---\n"
HI = "llm: chat.completions\nrequest: {model: m, messages: [{role: user, content: hi}]}\nresponse: 1\n"
FIRST = f"{HI}---\n"
END = "---\nend: completed\n"
NEXT = "llm: chat.completions\nextends: 1\n%sresponse: 1\n"
BAD = {
    "too far": ("extends: 1", "extends: 2", "extends", "no LLM call 2 back"),
    "not a number": ("extends: 1", "extends: x", "extends", "number"),
    "none": ("extends: 1", "extends: 0", "extends", "number from 1"),
    "no list": ("", "append: {model: [1]}\n", "append.model", "no list"),
    "no tail": ("", "append: {messages: 1}\n", "append.messages", "sequence"),
    "no such list": ("", "append: {input: [1]}\n", "append.input", "no input"),
    "no such key": ("", "remove: [tools]\n", "remove[0]", "no tools"),
    "no path": ("", 'remove: ["a..b"]\n', "remove[0]", "path"),
    "deep": ("", f"remove: [{'a.' * 5000}a]\n", "remove[0]", "more than 200 keys"),
    "too many": ("", 'remove: ["messages[-2:]"]\n', "remove[0]", "1 items"),
    "beyond": ("", 'remove: ["messages[1:2]"]\n', "remove[0]", "1 items"),
    "lost quotes": ("", "append:\n  messages:\n  - role: user\n    content: 12\n", "content", "add quotes"),
    "changed no mapping": ("", "request: [1]\n", "request", "mapping"),
}


@pytest.mark.parametrize(("old", "new", "field", "said"), BAD.values(), ids=BAD)
def test_a_wrong_extension_names_field_and_line(
    tmp_path: Path, old: str, new: str, field: str, said: str
) -> None:
    path = tmp_path / "run.yaml"
    text = (NEXT % "").replace(old, new) if old else NEXT % new
    path.write_text(HEAD + FIRST + text + END, "utf-8")
    with pytest.raises(stepfork.CassetteError, match=said) as caught:
        stepfork.load(path)
    assert field in str(caught.value.field)
    assert caught.value.line
    assert caught.value.line > 7
    assert [str(fault) for fault in faults_of(path)[1]] == [str(caught.value)]


def test_only_a_call_that_extends_may_append(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(HEAD + HI + "append: {messages: [1]}\n" + END, "utf-8")
    with pytest.raises(stepfork.CassetteError, match="only a call that 'extends' another"):
        stepfork.load(path)


def written(path: Path, calls: list[str]) -> StoredCassette:
    path.write_text(HEAD + "---\n".join(calls) + END, "utf-8")
    return StoredCassette(path)


def test_lines_of_control_extend_their_own_calls(tmp_path: Path) -> None:
    def first(lane: str, said: str, depth: int = 0) -> str:
        deep = f"depth: {depth}\n" if depth else ""
        mark = f"lane: {lane}\n" if lane else ""
        return f"{deep}llm: responses\n{mark}request: {{input: [{said}]}}\nresponse: 1\n"

    def then(lane: str, said: str, depth: int = 0) -> str:
        return first(lane, said, depth).replace("request: {input: ", "extends: 1\nappend: {input: ")

    calls = [first("", "m1"), "tool: t\nresult: 1\n", first("", "t1", 1), then("", "t2", 1)]
    calls += [first("a", "a1"), first("a.a", "aa1"), then("a.a", "aa2"), then("a", "a2"), first("b", "b1")]
    calls += [then("b", "b2"), then("", "m2"), first("a", "a9"), then("a", "a10"), first("A", "s1")]
    calls += [then("A", "s2")]
    cassette = written(tmp_path / "run.yaml", calls)
    said = [call.call.args["input"] for call in cassette.all_recorded() if call.call.kind == "llm"]
    assert said == [
        *(["m1"], ["t1"], ["t1", "t2"], ["a1"], ["aa1"], ["aa1", "aa2"], ["a1", "a2"], ["b1"]),
        *(["b1", "b2"], ["m1", "m2"], ["a9"], ["a9", "a10"], ["s1"], ["s1", "s2"]),
    ]
    with pytest.raises(stepfork.CassetteError, match="no LLM call 1 back"):
        written(tmp_path / "run.yaml", [*calls[:-4], then("a", "a9")])


def test_ten_thousand_turns_need_no_recursion_and_share_what_they_have_in_common(tmp_path: Path) -> None:
    path = tmp_path / "run.partial.yaml"
    turn = "llm: responses\nextends: 1\nappend: {input: [x]}\nresponse: 1\n"
    documents = ["llm: responses\nrequest: {input: [x]}\nresponse: 1\n", *([turn] * 9_999)]
    path.with_name("run.partial.yaml").write_text(
        HEAD + "".join(f"{text}---\n" for text in documents), "utf-8"
    )
    cassette = StoredCassette(path.with_name("run.partial.yaml"))
    assert len(cassette.recorded(9_999).call.args["input"]) == 10_000
    assert len(cassette.recorded(0).call.args["input"]) == 1


def test_what_is_read_is_shared_and_never_changed(tmp_path: Path) -> None:
    calls = [HI, NEXT % "append: {messages: [{role: user, content: a}]}\n"]
    cassette = written(
        tmp_path / "run.yaml", [*calls, NEXT % "append: {messages: [{role: user, content: b}]}\n"]
    )
    first, second, third = (call.call.args["messages"] for call in cassette.all_recorded())
    assert (len(first), len(second), len(third)) == (1, 2, 3)
    assert first[0] is second[0] is third[0]
    assert second[1] is third[1]
    assert schema.read_call(parse_document(calls[1])).recorded.call.args is None
