"""Matching back what holds more than one secret: cookies, Basic credentials, secrets put together (C112)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepfork
from stepfork import ReplayMismatchError

TOKENS = {"alice": "q7ZxT4mWv9KcP2hJ8rLd", "bob": "Zk9qP2vTr8LmX4wY7sBn"}
OWN = "Hj3kL9pQ2wEr7tYu5iOa"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


HOLDING: dict[str, Callable[[str], Any]] = {
    "a cookie": lambda token: {"Cookie": f"sid={token}"},
    "one of several cookies": lambda token: {"Cookie": f"theme=dark; sid={token}; csrf={OWN}"},
    "a quoted cookie": lambda token: {"cookie": f'sid="{token}"'},
    "a cookie in a list": lambda token: {"Cookie": [f"sid={token}"]},
    "a header pair": lambda token: [["Cookie", f"sid={token}"]],
    "a cookie in text": lambda token: f"curl -H 'Cookie: sid={token}' http://h/",
    "a cookie in JSON": lambda token: json.dumps({"Cookie": f"sid={token}; theme=dark"}),
    "a cookie set": lambda token: {"Set-Cookie": f"sid={token}; Path=/; HttpOnly"},
    "a password": lambda token: {"Authorization": basic("bob", token)},
    "a user without a password": lambda token: {"Authorization": basic(token, "")},
    "a user": lambda token: {"Authorization": basic(token, "x-oauth-basic")},
    "credentials in text": lambda token: f"Authorization: {basic('bob', token)}",
    "credentials in JSON": lambda token: json.dumps({"Authorization": basic("bob", token)}),
    "credentials in a repr": lambda token: f"sent { ({'Authorization': basic('bob', token)})!r}",
    "a bearer in a repr": lambda token: f"sent { ({'Authorization': f'Bearer {token}'})!r}",
    "a version before it": lambda token: {"api_key": f"v1.{token}"},
    "a key beside it": lambda token: {"X-Api-Key": f"{OWN}.{token}"},
    "a signature behind it": lambda token: {"token": f"{token}.{OWN}"},
}


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        "TOKENS = {}\nKEY = ['token']\n"
        "def login(user):\n    return {KEY[0]: TOKENS[user], 'user': user}\n"
        "def sends(value):\n    return 'sent'\n"
    )


def record(path: Path, tools: Any, agent: Callable[[], Any]) -> str:
    with stepfork.record(path, tools=[tools.__name__]):
        agent()
    return path.read_text("utf-8")


@pytest.mark.parametrize("key", ["token", "said"])
@pytest.mark.parametrize("how", HOLDING)
def test_C112_a_secret_of_an_answer_is_told_from_another_one_inside_of_a_value(
    tools: Any, tmp_path: Path, how: str, key: str
) -> None:
    tools.TOKENS |= TOKENS
    tools.KEY[0] = key
    path = tmp_path / "a.yaml"

    def agent(who: str) -> None:
        given = {user: tools.login(user)[key] for user in TOKENS}
        tools.sends(HOLDING[how](given[who]))
        tools.sends({"token": given[who]})

    text = record(path, tools, lambda: agent("alice"))
    assert TOKENS["alice"] not in text
    assert OWN not in text
    assert base64.b64encode(TOKENS["alice"].encode()).decode()[2:-3] not in text
    with stepfork.replay(path):
        agent("alice")
    if key == "said":  # only its use says that it is a secret; bob's was not used
        return
    with pytest.raises(ReplayMismatchError) as caught, stepfork.replay(path):
        agent("bob")
    assert caught.value.index == 3
    assert not [token for token in (*TOKENS.values(), OWN) if token in str(caught.value)]


@pytest.mark.parametrize("how", [name for name, form in HOLDING.items() if isinstance(form(""), dict)])
def test_C112_any_dummy_serves_for_a_secret_of_the_program_inside_of_a_value(
    tools: Any, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "a.yaml"
    form = HOLDING[how]
    record(path, tools, lambda: tools.sends(form(TOKENS["alice"])))
    for dummy in (form("x"), form(TOKENS["bob"]), form(TOKENS["alice"])):
        with stepfork.replay(path):
            tools.sends(dummy)
    if "set" not in how and "list" not in how:
        with stepfork.replay(path):
            tools.sends(dict.fromkeys(form(""), "x"))
        record(path, tools, lambda: tools.sends(dict.fromkeys(form(""), "correct-horse-9")))
        with stepfork.replay(path):
            tools.sends(form("x"))


def test_C112_a_dummy_header_does_not_serve_for_the_secret_of_an_answer(tools: Any, tmp_path: Path) -> None:
    tools.TOKENS |= TOKENS
    path = tmp_path / "a.yaml"
    record(path, tools, lambda: tools.sends({"Cookie": f"sid={tools.login('bob')['token']}"}))
    with pytest.raises(ReplayMismatchError), stepfork.replay(path):
        tools.login("bob")
        tools.sends({"Cookie": "x"})


def test_C112_a_cookie_with_another_name_is_a_mismatch(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    record(path, tools, lambda: tools.sends({"Cookie": f"sid={OWN}"}))
    with pytest.raises(ReplayMismatchError) as caught, stepfork.replay(path):
        tools.sends({"Cookie": "sessionid=dummy-dummy"})
    assert "dummy-dummy" not in str(caught.value)


def test_C112_what_was_said_of_a_cookie_stays(tools: Any, tmp_path: Path) -> None:
    set_cookie = (
        f"sid={OWN}; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT; HttpOnly, b={TOKENS['bob']}; Secure"
    )
    path = tmp_path / "a.yaml"
    text = record(path, tools, lambda: tools.sends({"Set-Cookie": set_cookie}))
    (call,) = stepfork.load(path).calls
    shown = call.args["value"]["Set-Cookie"]
    dates = "Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT"
    assert shown == f"sid=<secret:set_cookie:1>; {dates}; <secret:set_cookie:2>; Secure"
    assert OWN not in text
    assert TOKENS["bob"] not in text
