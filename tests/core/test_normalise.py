"""Directories in texts and back: every text comes back equal, and only whole prefixes at a boundary go."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.core.directories import AS_THEY_STAND, Directories, holds_name
from stepfork.core.model import Tagged

BOB = Directories({"cwd": "/home/bob/shop", "home": "/home/bob", "tmp": "/tmp", "basetemp": "/tmp/py/py-3"})
LINKED = Directories(
    {"cwd": "/link/shop", "home": "/home/jürgen"}, {"cwd": "/data/real/shop", "home": "/home/jürgen"}
)
WINDOWS = Directories({"cwd": r"C:\Users\bob\shop", "home": r"C:\Users\bob", "tmp": r"C:\Temp"})
ODD = Directories({"cwd": '/a b/"c"\\d', "home": "/x/<cwd>", "tmp": "/y/<=tmp>"})
EVERY = [BOB, LINKED, WINDOWS, ODD, AS_THEY_STAND]

PIECES = [
    *("/home/bob/shop", "/home/bob", "/home/bobby", "/tmp", "/tmp/py/py-3", "/home/jürgen", "/link/shop"),
    *("/data/real/shop", "/home/j\\u00fcrgen", '/a b/"c"\\d', '/a b/\\"c\\"\\\\d', "/x/<cwd>", "/y/<=tmp>"),
    *("C:\\Users\\bob", "C:\\\\Users\\\\bob", "C:/Users/bob", "\\shop", "\\\\shop", "\\u00e9", "\\n"),
    *("<cwd>", "<=cwd>", "<==cwd>", "<home:real>", "<tmp:json>", "<cwd:real:ascii>", "<basetemp>", "<", ">"),
    *("https://a.b", "file://", "://", "/", ".", "..", " ", "\n", '"', "'", "=", ":", ",", "x", "-"),
    *("{", "}"),
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=9).map("".join)


@examples(100)
@given(texts, st.sampled_from(EVERY))
@example("\\n<cwd>/home/bob<=cwd>", BOB)
@example('{"path": "C:\\\\Users\\\\bob\\\\x"}', WINDOWS)
@example('{"path": "C:\\Users\\bob"}', WINDOWS)
def test_every_text_comes_back_equal(text: str, here: Directories) -> None:
    assert here.restore_text(here.normalise_text(text)) == text


@examples(100)
@given(texts, st.sampled_from(EVERY))
def test_every_text_comes_back_equal_from_json_and_bytes(text: str, here: Directories) -> None:
    value = {
        text: [json.dumps({"t": text}), Tagged("path", text), Tagged("tuple", [text, 1])],
        "b": Tagged("bytes", base64.b64encode(text.encode()).decode()),
    }
    assert here.restore(here.normalise(value)) == value


@examples(100)
@given(st.lists(texts, min_size=2, max_size=2, unique=True), st.sampled_from(EVERY))
def test_two_texts_never_become_one(pair: list[str], here: Directories) -> None:
    one, two = map(here.normalise_text, pair)
    assert one != two


@examples(100)
@given(texts)
def test_no_directory_is_left_where_a_name_belongs(text: str) -> None:
    plain = Directories({"home": "/home/bob"})
    assert "/home/bob" not in plain.normalise_text(f"{text}\n/home/bob/x").rpartition("\n")[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/bob/shop/data/x.csv", "<cwd>/data/x.csv"),
        ("/home/bob/shop", "<cwd>"),
        ("/home/bob/shopping", "<home>/shopping"),
        ("/home/bob/shop.bak and /home/bob/shop-2", "<home>/shop.bak and <home>/shop-2"),
        ("You are in /home/bob/shop.", "You are in <cwd>."),
        ("/home/bobby/x /home/bob2 /home/bob_x", "/home/bobby/x /home/bob2 /home/bob_x"),
        ("/mnt/home/bob/x ./home/bob ~/home/bob", "/mnt/home/bob/x ./home/bob ~/home/bob"),
        ("https://a.b/home/bob/x?p=/home/bob", "https://a.b/home/bob/x?p=/home/bob"),
        ("file:///home/bob/x.html", "file://<home>/x.html"),
        ("PATH=/usr/bin:/home/bob/bin", "PATH=/usr/bin:<home>/bin"),
        ("('/home/bob/a', \"/home/bob/b\")", "('<home>/a', \"<home>/b\")"),
        ("/tmp/x /tmp", "/tmp/x /tmp"),
        ("/tmp/py/py-3/test_x0/f /tmp/py/py-31", "<basetemp>/test_x0/f /tmp/py/py-31"),
        ("use <cwd> or <home:real>", "use <=cwd> or <=home:real>"),
        ('{"text": "see\\n/home/bob/shop/x"}', '{"text": "see\\n<cwd>/x"}'),
        ("/home/bob\u0301 /home/bob\\u00e9", "/home/bob\u0301 /home/bob\\u00e9"),
    ],
)
def test_where_a_directory_is_one(text: str, shown: str) -> None:
    assert BOB.normalise_text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"C:\Users\bob\shop\x.csv", r"<cwd>\x.csv"),
        (r"C:\Users\bobby", r"C:\Users\bobby"),
        ("C:/Users/bob/x", "<home:slash>/x"),
        (r'{"path": "C:\\Users\\bob\\x"}', r'{"path": "<home>\\x"}'),
        (r"FileNotFoundError: 'C:\\Users\\bob\\x'", r"FileNotFoundError: '<home:json>\\x'"),
        (r"C:\Temp\x", r"C:\Temp\x"),
    ],
)
def test_where_a_directory_of_windows_is_one(text: str, shown: str) -> None:
    assert WINDOWS.normalise_text(text) == shown


def test_what_was_recorded_on_one_system_reads_on_another() -> None:
    call = {"arguments": '{"path": "/home/bob/shop/x.csv"}', "text": "/home/bob/shop/x.csv"}
    there = WINDOWS.restore(BOB.normalise(call))
    assert there == {
        "arguments": json.dumps({"path": "C:\\Users\\bob\\shop/x.csv"}),
        "text": "C:\\Users\\bob\\shop/x.csv",
    }


PLAIN = Directories({"cwd": "/srv/shop", "home": "/home/ann"})
ACCENTED = Directories({"cwd": "/home/é漢/shop", "home": "/home/é漢"})
PLACES = [PLAIN, BOB, LINKED, WINDOWS, ODD, ACCENTED]


@examples(100)
@given(st.sampled_from(PLACES), st.sampled_from(PLACES), st.integers(0, 3), st.booleans())
def test_json_within_json_reads_elsewhere(
    then: Directories, now: Directories, depth: int, ascii: bool
) -> None:
    """What is asked counts as equal; what is answered says today's directory as its JSON spells it."""

    def asked(here: Directories) -> str:
        text = here.restore_text("<cwd>") + "/z"
        for _ in range(depth):
            text = json.dumps({"k": text}, ensure_ascii=ascii)
        return text

    assume(then is not ACCENTED or depth < 2 or not ascii)  # a name says one level of escapes
    answered = now.restore_text(then.normalise_text(asked(then)))
    assert now.in_one_spelling(answered) == now.in_one_spelling(asked(now))
    if then in (PLAIN, BOB) or depth <= 1:
        inner = answered
        for _ in range(depth):
            inner = json.loads(inner)["k"]
        assert inner == now.restore_text("<cwd>") + "/z"


def test_a_directory_of_one_component_is_read_though_never_replaced() -> None:
    here = Directories({"cwd": "/app"})
    assert here.normalise_text("/app/x") == "/app/x"
    assert here.restore_text("<cwd>/x") == "/app/x"


def test_a_link_and_what_it_leads_to_are_one_directory() -> None:
    assert LINKED.normalise_text("/link/shop/x /data/real/shop/x") == "<cwd>/x <cwd:real>/x"
    assert LINKED.in_one_spelling("/data/real/shop/x <cwd>") == "/link/shop/x <cwd>"
    assert LINKED.in_one_spelling("<cwd:real> :real") == "<cwd:real> :real"
    assert not BOB.has_links
    assert BOB.restore_text("<cwd:real>/x") == "/home/bob/shop/x"


def test_a_home_that_is_the_root() -> None:
    """As of a container that runs under any number of a user."""
    assert Directories({"home": "/"}).restore_text("<home>/a <home>") == "/a /"


def test_a_folder_that_a_url_has_to_escape() -> None:
    here = Directories({"cwd": "/srv/my ünï #1"})
    url = "file:///srv/my%20%C3%BCn%C3%AF%20%231/a"
    assert here.normalise_text(url) == "file://<cwd:url>/a"
    assert here.restore_text("file://<cwd:url>/a") == url
    assert Directories({"cwd": "/srv/x y"}).restore_text("file://<cwd:url>/a") == "file:///srv/x%20y/a"


def test_without_basetemp_its_name_is_the_temp_directory() -> None:
    assert Directories({"tmp": "/var/tmp/x"}).restore_text("<basetemp>/a <tmp_path>/b <home>") == (
        "/var/tmp/x/a /var/tmp/x/b <home>"
    )


def test_binary_files_and_forms_of_their_own_are_left_alone() -> None:
    pickled = Tagged("bytes", base64.b64encode(b"\x80\x04\x8c\x0e/home/bob/shop").decode())
    with_nul = Tagged("bytes", base64.b64encode(b"/home/bob/shop\0").decode())
    spoken = Tagged("bytes", base64.b64encode(b"/home/bob/shop\n").decode())
    assert BOB.normalise([pickled, with_nul, Tagged("decimal", "1.0")]) == [
        pickled,
        with_nul,
        Tagged("decimal", "1.0"),
    ]
    assert BOB.normalise(spoken) == Tagged("bytes", base64.b64encode(b"<cwd>\n").decode())


def test_a_set_stays_in_order() -> None:
    value = Tagged("set", ["/a", "/home/bob/shop"])
    assert BOB.normalise(value) == Tagged("set", ["/a", "<cwd>"])
    there = Directories({"cwd": "/0/0"})
    assert there.restore(Tagged("set", ["/a", "<cwd>"])) == Tagged("set", ["/0/0", "/a"])


def test_a_value_without_a_directory_is_the_very_same_object() -> None:
    value = {"q": ["a/b", "<b>", 1], "t": Tagged("tuple", ["https://x/home/bob"])}
    assert BOB.normalise(value) is value
    assert BOB.restore(value) is value
    assert not holds_name(value)


def test_nothing_takes_time_that_grows_with_the_square() -> None:
    for unit in ("<", "<=", "/home/bob.", "/home/bob", "://", "\\n", "/home/bob/shop", "<cwd"):
        text = unit * 200_000
        assert BOB.restore_text(BOB.normalise_text(text)) == text
