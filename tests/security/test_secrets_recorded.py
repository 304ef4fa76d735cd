"""No secret reaches a file, and what was recorded replays: with the real value, a dummy, a placeholder."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import openai
import pytest
from support.chat_server import ChatServer, completion, json_answer
from support.secret_corpus import positives

import stepfork

TOKEN = "q7/Zx+4m=W v9&K" + "ü2hJ8r"
"""Spelled differently in JSON, URLs and base64."""
KEY = {sample.name: sample.secrets[0] for sample in positives()}["openai project"]

TOOLS = """
import base64, json

LOGIN = {"token": TOKEN, "user": "bob"}

def login(user, password="hunter2hunter2"):
    return dict(LOGIN)

def fetch(url="", headers=None, body="", blob="", raw=b"", pairs=()):
    return {"seen": [url, body, blob], "raw": raw}

def free(value):
    return {"answer": value}

def fails(token):
    error = ConnectionError(f"refused: {token}", {"token": token})
    error.url = f"https://h/?api_key={token}"
    error.add_note(f"tried with {token}")
    raise error from ValueError(f"bad {token}")

def rows(token):
    sent = yield f"row of {token}"
    while sent:
        sent = yield {"sent": sent, "token": token}
    return [token]

def signs(request, log):
    request["headers"] = {"Authorization": "Bearer " + request["token"]}
    log.append(f"signed with {request['token']}")
    return None

class Odd:
    pass

def odd():
    return {"rows": [{TOKEN: Odd()}]}

def told():
    return f"the new one is {TOKEN}"
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(f"TOKEN = {TOKEN!r}\nKEY = {KEY!r}\n{TOOLS}")


def spellings(secret: str) -> Iterator[str]:
    """What of a secret must stand in no file, as it is or spelled as a URL, JSON or base64 would."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    yield quote(secret)
    raw = secret.encode()
    for shift in range(3):
        yield base64.b64encode(b"x" * shift + raw).decode()[4:-4]


def written(folder: Path) -> str:
    """All files of a folder, in one text."""
    return "\n".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.yaml*")))


def assert_no_secret(folder: Path, *secrets: str) -> None:
    text = written(folder)
    assert text
    assert not [form for secret in secrets for form in spellings(secret) if form in text], text


def in_every_form(token: str, tools: Any) -> Any:
    """An agent that spells what it was given in every way it can think of."""
    basic = base64.b64encode(f"bob:{token}".encode()).decode()
    return tools.fetch(
        url=f"https://h/{quote(token, safe='')}?{urlencode({'q': token})}",
        headers={"Authorization": f"Bearer {token}", "X-Basic": f"Basic {basic}", "x": [token]},
        body=json.dumps({"inner": json.dumps({"t": token})}),
        blob=base64.b64encode(f"see {token}, then go on".encode()).decode(),
        raw=f"raw {token}".encode(),
        pairs=((token, 1), [{"name": "API_KEY", "value": token}]),
    )


def test_C112_whatever_the_key(tools: Any, tmp_path: Path) -> None:
    """Values of secret shape under any key are replaced; the report says what and where."""
    samples = {
        "JrX": "AIza" + "a" * 35,
        "raw": "Set-Cookie: sid=" + "q7ZxT4mWv9" + "; Path=/",
        "env": "AWS_SECRET_ACCESS_KEY=" + "q7ZxT4mWv9KcP2hJ8rLd5NfY3sBg6tVa1EuXo0Ik",
        "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0." + "q7ZxT4mWv9KcP2hJ8r",
    }
    tools.LOGIN |= {"more": samples}
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        assert tools.login("bob")["more"] == samples, "the live run sees real values"
    text = path.read_text("utf-8")
    assert not [value for value in ("a" * 35, "q7ZxT4mWv9", samples["jwt"]) if value in text]
    with stepfork.replay(path):
        tools.LOGIN.clear()
        assert tools.login("bob") == {
            "token": "<secret:token:1>",
            "user": "bob",
            "more": {
                "JrX": "<secret:api_key:1>",
                "raw": "Set-Cookie: sid=<secret:set_cookie:1>; Path=/",
                "env": "AWS_SECRET_ACCESS_KEY=<secret:aws_secret_access_key:1>",
                "jwt": "<secret:jwt:1>",
            },
        }


def test_C114_ids_images_and_hashes_come_back(tools: Any, tmp_path: Path) -> None:
    value = {
        "id": "toolu_01AbCdEfGhIjKlMnOpQrStUv",
        "png": base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8).decode(),
        "sha": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
        "text": "a=b",
        "next_page_token": "CAUQAAq7ZxT4mWv9KcP2hJ8r",
    }
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.login("bob")
        tools.free(value)
    assert "toolu_01AbCdEfGhIjKlMnOpQrStUv" in path.read_text("utf-8")
    with stepfork.replay(path):
        tools.login("bob")
        assert tools.free(value) == {"answer": value}


def test_C116_a_secret_in_a_megabyte_is_in_no_file(tools: Any, tmp_path: Path) -> None:
    filler = "All is well, and the rows go on.\n" * 15_000
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.login("bob", password=TOKEN)
        tools.free(filler + TOKEN + filler + KEY)
        assert_no_secret(tmp_path, TOKEN, KEY)
        assert len(written(tmp_path)) > 1_900_000
    assert_no_secret(tmp_path, TOKEN, KEY)
    with stepfork.replay(path):
        tools.login("bob", password=TOKEN)
        answer = tools.free(filler + TOKEN + filler + KEY)["answer"]
    assert answer.startswith(filler)
    assert "<secret:api_key:" in answer


def test_what_an_answer_held_is_handed_on_in_every_spelling(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        token = tools.login("bob")["token"]
        assert token == TOKEN
        live = in_every_form(token, tools)
        assert live["raw"] == f"raw {TOKEN}".encode(), "the live run sees real values"
        assert_no_secret(tmp_path, TOKEN)
    assert_no_secret(tmp_path, TOKEN)
    with stepfork.replay(path):
        token = tools.login("bob")["token"]
        assert token == "<secret:token:1>"
        answer = in_every_form(token, tools)
    assert answer["raw"] == b"raw <secret:token:1>"
    assert base64.b64decode(answer["seen"][2]) == b"see <secret:token:1>, then go on"


@pytest.mark.parametrize("password", [TOKEN, "dummy-of-eight", "<secret:password:1>"])
def test_any_value_under_a_secret_key_matches_and_is_followed(
    tools: Any, tmp_path: Path, password: str
) -> None:
    path = tmp_path / "run.yaml"

    def agent(password: str) -> None:
        tools.login("bob", password=password)
        in_every_form(password, tools)

    with stepfork.record(path, tools=[tools.__name__]):
        agent(TOKEN)
    assert_no_secret(tmp_path, TOKEN)
    with stepfork.replay(path):
        agent(password)


def test_another_secret_than_the_one_before_is_a_mismatch_without_it(tools: Any, tmp_path: Path) -> None:
    """C120: the error names the place and not the value, in the text and in its attributes."""
    path, other = tmp_path / "run.yaml", "another" + "-secret-9"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.login("bob", password=TOKEN)
        tools.free(f"use {TOKEN}")
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.login("bob", password=TOKEN)
        tools.login("bob", password=other)
    assert other not in f"{caught.value}{vars(caught.value)}"
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.login("bob", password=TOKEN)
        tools.free(f"use {KEY}")
    assert caught.value.path == "value"
    assert caught.value.expected == "use <secret:password:1>"
    assert caught.value.actual == "use <secret:api_key:other-1>"
    assert KEY not in str(caught.value)


def test_what_a_tool_raises(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    def agent() -> Exception:
        with pytest.raises(ConnectionError) as caught:
            tools.fails(TOKEN)
        tools.free(str(caught.value))
        return caught.value

    with stepfork.record(path, tools=[tools.__name__]):
        assert TOKEN in str(agent())
        assert_no_secret(tmp_path, TOKEN)
    assert_no_secret(tmp_path, TOKEN)
    with stepfork.replay(path):
        error: Any = agent()
    one = "<secret:token:1>"
    assert error.args == (f"refused: {one}", {"token": one})
    assert (error.url, error.__notes__) == (f"https://h/?api_key={one}", [f"tried with {one}"])
    assert str(error.__cause__) == f"bad {one}"


def test_what_a_generator_yields_takes_and_returns(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    def agent() -> list[Any]:
        rows = tools.rows(TOKEN)
        seen = [next(rows), rows.send(f"again {TOKEN}"), rows.send(TOKEN)]
        with pytest.raises(StopIteration) as stopped:
            next(rows)
        return [*seen, stopped.value.value]

    with stepfork.record(path, tools=[tools.__name__]):
        assert TOKEN in str(agent())
    assert_no_secret(tmp_path, TOKEN)
    one = "<secret:token:1>"
    with stepfork.replay(path):
        assert agent() == [
            f"row of {one}",
            {"sent": f"again {one}", "token": one},
            {"sent": one, "token": one},
            [one],
        ]


def test_what_a_tool_changes_in_its_arguments(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    def agent() -> tuple[dict[str, Any], list[str]]:
        request: dict[str, Any] = {"token": TOKEN}
        log: list[str] = []
        tools.signs(request, log)
        tools.fetch(headers=request["headers"], body=log[0])
        return request, log

    with stepfork.record(path, tools=[tools.__name__]):
        request, log = agent()
        assert request["headers"] == {"Authorization": f"Bearer {TOKEN}"}
    assert_no_secret(tmp_path, TOKEN)
    with stepfork.replay(path):
        request, log = agent()
    assert log == ["signed with <secret:token:1>"]


def test_what_is_known_only_later_is_gone_in_the_end(tools: Any, tmp_path: Path) -> None:
    """In the header, in calls before, in the output; the partial file holds it until it is known."""
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__], name=f"with {TOKEN}") as run:
        tools.told()
        assert TOKEN in written(tmp_path)
        tools.login("bob", password=TOKEN)
        tools.free({"after": TOKEN})
        assert written(tmp_path).count(TOKEN) == 2, "what is written from then on is clean"
        run.set_output({"said": f"it was {TOKEN}"})
    assert_no_secret(tmp_path, TOKEN)
    trajectory = stepfork.load(path)
    assert trajectory.name == "with <secret:password:1>"
    assert trajectory.output == {"said": "it was <secret:password:1>"}
    with stepfork.replay(path):
        assert tools.told() == "the new one is <secret:password:1>"
        tools.login("bob", password=TOKEN)
        tools.free({"after": TOKEN})


def test_a_run_that_failed_and_what_cannot_be_recorded(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    with pytest.raises(KeyError), stepfork.record(path, tools=[tools.__name__]):
        tools.login("bob", password=TOKEN)
        raise KeyError(f"no {TOKEN}", KEY)
    assert_no_secret(tmp_path, TOKEN, KEY)
    assert stepfork.load(path).error["args"] == ["no <secret:password:1>", "<secret:api_key:1>"]
    with pytest.raises(stepfork.RecordingError) as caught, stepfork.record(path, tools=[tools.__name__]):
        tools.login("bob", password=TOKEN)
        tools.odd()
    assert "result.rows[0]" in str(caught.value)
    assert not [form for form in spellings(TOKEN) if form in f"{caught.value}{vars(caught.value)}"]
    assert_no_secret(tmp_path, TOKEN)
    with (
        pytest.raises(stepfork.RecordingError) as caught,
        stepfork.record(path, tools=[tools.__name__]) as run,
    ):
        tools.login("bob", password=TOKEN)
        run.set_output({TOKEN: object()})
    assert TOKEN not in f"{caught.value}{vars(caught.value)}"


def test_what_expect_says(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.login("bob", password=TOKEN)
        with pytest.raises(AssertionError) as caught:
            stepfork.expect({"a": f"is {TOKEN}"}, {"a": f"was {KEY}"})
    assert str(caught.value) == (
        'behavior mismatch at \'a\': expected "was <secret:api_key:1>", got "is <secret:password:1>"'
    )
    with pytest.raises(AssertionError) as caught:
        stepfork.expect({"rows": [{"password": "x1"}]}, {"rows": [{"password": "y2"}]})
    assert str(caught.value) == (
        'behavior mismatch at \'rows[0].password\': expected "<secret:password:1>", got "<secret:password:2>"'
    )


def test_parts_of_a_form(server: ChatServer, tmp_path: Path) -> None:
    """A field of a multipart body, and the name of a file in it."""
    path = tmp_path / "run.yaml"
    server.respond = lambda _: json_answer({"id": "file-1", "object": "file"})

    def agent(client: openai.OpenAI, key: str) -> str:
        made = client.files.create(
            file=(f"notes {KEY}.txt", b"content"), purpose="batch", extra_body={"api_key": key}
        )
        return made.id

    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        assert agent(client, TOKEN) == "file-1"
    assert_no_secret(tmp_path, TOKEN, KEY)
    with stepfork.replay(path), openai.OpenAI() as client:
        assert agent(client, "another-dummy") == "file-1"


def test_a_request_to_a_model_and_its_answer(server: ChatServer, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    server.answer = lambda _: json_answer(completion(f"You said {TOKEN} and {KEY}."))

    def agent(client: openai.OpenAI, token: str) -> Any:
        message: Any = {"role": "user", "content": f"use {token}, key {KEY}"}
        answer = client.chat.completions.create(
            model="m", messages=[message], extra_body={"metadata": {"password": token}}
        )
        return answer.choices[0].message.content

    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        assert agent(client, TOKEN) == f"You said {TOKEN} and {KEY}."
    assert_no_secret(tmp_path, TOKEN, KEY)
    with stepfork.replay(path), openai.OpenAI() as client:
        said = agent(client, TOKEN)
    assert said == "You said <secret:password:1> and <secret:api_key:1>."


@pytest.mark.parametrize("setting", ["redact_keys", "redact_patterns", "redact_allow"])
def test_C118_a_null_rule_is_an_error(tools: Any, tmp_path: Path, setting: str) -> None:
    with (
        pytest.raises(stepfork.ConfigError, match=setting),
        stepfork.record(tmp_path / "run.yaml", tools=[tools.__name__], **{setting: None}),
    ):
        tools.login("bob")
    assert not list(tmp_path.rglob("*.yaml"))


def test_C118_an_empty_list_leaves_the_built_in_rules_on(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__], redact_keys=[], redact_patterns=[]):
        tools.login("bob", password=TOKEN)
    assert_no_secret(tmp_path, TOKEN)


def test_the_users_own_rules(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    rules: dict[str, Any] = {
        "redact_keys": ["user"],
        "redact_patterns": [r"badge (\w+)"],
        "redact_allow": ["token", r"hunter2.*"],
    }
    with stepfork.record(path, tools=[tools.__name__], **rules):
        tools.LOGIN["token"] = "plain text"
        tools.login("bob-the-builder")
        tools.free("badge x1 of bob-the-builder")
    calls = stepfork.load(path).calls
    assert calls[0].args == {"user": "<secret:user:1>", "password": "hunter2hunter2"}
    assert calls[0].result == {"token": "plain text", "user": "<secret:user:2>"}
    assert calls[1].args == {"value": "badge <secret:pattern:1> of <secret:user:1>"}


def test_a_url_of_pydantics_escapes_the_placeholder(make_module: Any, tmp_path: Path) -> None:
    tools = make_module(
        f"""
        from pydantic import HttpUrl
        def where():
            return HttpUrl("https://bob:" + {KEY!r} + "@h.example/a")
        def go(url, text):
            return "ok"
        """
    )
    path = tmp_path / "run.yaml"
    for mode in (stepfork.record, stepfork.replay):
        with mode(path, tools=[tools.__name__]):
            url = tools.where()
            tools.go(url, f"see {url}")
    assert "%3Csecret" in str(url), "that is how pydantic spells it"
    assert_no_secret(tmp_path, KEY)


def test_the_first_group_of_a_pattern_that_took_part_is_the_secret(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    pattern = r"token (\w+)|key (\w+)|badge \d+"
    with stepfork.record(path, tools=[tools.__name__], redact_patterns=[pattern]):
        tools.free("key hushhush99, token hidden77xx, badge 12345678 and hushhush99 again")
    text = path.read_text()
    assert not [secret for secret in ("hushhush99", "hidden77xx", "12345678") if secret in text]
    assert "key <secret:pattern:" in text


@pytest.mark.parametrize("setting", ["redact_patterns", "redact_allow", "normalize"])
def test_a_pattern_that_python_cannot_compile_is_a_wrong_setting(tmp_path: Path, setting: str) -> None:
    value: Any = "a{99999999999}"
    given: Any = {value: "x"} if setting == "normalize" else [value]
    with (
        pytest.raises(stepfork.ConfigError, match=re.escape(value)),
        stepfork.record(tmp_path / "run.yaml", **{setting: given}),
    ):
        pass


@pytest.mark.parametrize("where", ["argument", "another argument", "result", "output"])
def test_C120_a_value_that_cannot_be_recorded_is_named_without_its_secrets(
    tools: Any, tmp_path: Path, where: str
) -> None:
    odd = {"api_key": TOKEN, f"k {TOKEN}": object()}
    message = ""
    try:
        with stepfork.record(tmp_path / "run.yaml", tools=[tools.__name__]) as run:
            if where == "argument":
                tools.free(odd)
            elif where == "another argument":
                tools.login({f"k {TOKEN}": object()}, password=TOKEN)
            elif where == "result":
                tools.LOGIN |= odd
                tools.login("bob", "x")
            else:
                run.set_output(odd)
    except stepfork.RecordingError as error:
        message = f"{error} {error.path}"
    assert "of type object" in message
    assert TOKEN not in message
    assert json.dumps(TOKEN)[1:-1] not in message


PLAIN = "Zk9" + "qP2vTr8LmX4wY7sBn3"


@pytest.mark.parametrize(
    "value",
    [
        {"X-Api-Key": [PLAIN]},
        {"X-Api-Key": (PLAIN, "x")},
        {"Set-Cookie": [f"sid={PLAIN}; Path=/"]},
        {"cookies": [{"name": "sid", "value": PLAIN, "domain": "example.com"}]},
        [("Accept", "*/*"), ("X-Api-Key", PLAIN)],
        [["Cookie", f"a=b; sid={PLAIN}"]],
        ["mysql", "--password", PLAIN, "-u", "root"],
        ("tool", "--api-key", PLAIN),
        {b"api_key": PLAIN.encode()},
        {b"x-api-key": PLAIN, 1: 2},
        {"OPENAI_KEY": PLAIN},
        {"PGPASSWORD": PLAIN},
        {"passwords": [PLAIN, "y"]},
        {"password_2": PLAIN},
        {"accesskey": PLAIN},
        {"JSESSIONID": PLAIN},
        {"client_secret": {"value": PLAIN, "expires_at": 1}},
    ],
    ids=repr,
)
def test_C112_secrets_in_lists_pairs_and_under_more_names(tools: Any, tmp_path: Path, value: Any) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.free(value)
        tools.free(f"and {PLAIN} elsewhere")
    assert_no_secret(tmp_path, PLAIN)
    with stepfork.replay(path, tools=[tools.__name__]):
        tools.free(value)
        tools.free(f"and {PLAIN} elsewhere")


@pytest.mark.parametrize(
    "value",
    [
        ["password", "username"],
        [["password", "string"], ["token", "required"]],
        {"secrets": ["API_KEY", "DB_PASSWORD"]},
        {"password": {"type": "string", "value": "x"}},
        ["deploy", "--token", "--verbose"],
        ["deploy", "--password", "$DB_PASSWORD"],
        {"SORT_KEY": "created_at", "PRIMARY_KEY": "id", "sha256": "x", "step_1": "y"},
        {"pwd": "/srv/app"},
    ],
    ids=repr,
)
def test_C114_lists_pairs_and_names_that_hold_none(tools: Any, tmp_path: Path, value: Any) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.free(value)
    assert "<secret:" not in path.read_text()
