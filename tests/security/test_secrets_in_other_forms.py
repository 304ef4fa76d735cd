"""Tables, data frames, other letters and log probabilities: a secret is found there, and replays (C112)."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import numpy
import openai
import pandas
import pytest
from support.chat_server import ChatServer, completion, json_answer

import stepfork
from stepfork.core.model import Tagged
from stepfork.core.redaction import Redactor

K = "Zk9" + "qP2vTr8LmX4wY7sBn3"
OTHER = "Qw7" + "eRt5yUi1oPa9sDf4gHj"

FRAMES: dict[str, Callable[[], Any]] = {
    "a column": lambda: pandas.DataFrame({"user": ["bob", "al"], "api_key": [K, None]}),
    "a row": lambda: pandas.DataFrame({"user": ["bob"], "api_key": [K]}).T,
    "an index": lambda: pandas.DataFrame({"user": ["bob"], "api_key": [K]}).set_index("api_key"),
    "categories": lambda: pandas.DataFrame({"user": ["bob", "al"], "token": [K, K]}, dtype="category"),
    "two levels": lambda: pandas.DataFrame(
        [["a", K]], columns=pandas.MultiIndex.from_tuples([("y", "k"), ("x", "token")])
    ),
    "a series by its name": lambda: pandas.Series([K], name="api_key"),
    "a series by its index": lambda: pandas.Series({"api_key": K, "plan": "free"}),
    "a series of all kinds": lambda: pandas.Series({"api_key": K, "count": 1}),
    "an array": lambda: {"api_key": K, "seen": numpy.array([K, "ab"])},
    "an array of short ones": lambda: {"api_key": K[:9], "seen": numpy.array([K[:9], "ab"])},
}


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module("ANSWER = [None]\ndef asks(value):\n    return ANSWER[0]\n")


def recorded(path: Path, tools: Any, agent: Callable[[], Any]) -> str:
    with stepfork.record(path, tools=[tools.__name__]):
        agent()
    return path.read_text("utf-8")


@pytest.mark.parametrize("how", FRAMES)
def test_C112_a_secret_in_a_frame_or_array(tools: Any, tmp_path: Path, how: str) -> None:
    path = tmp_path / "run.yaml"
    tools.ANSWER[0] = FRAMES[how]()

    def agent() -> Any:
        given = tools.asks(FRAMES[how]())
        tools.asks(given)  # what the answer brought goes in again
        return given

    assert K[:9] not in recorded(path, tools, agent)
    with stepfork.replay(path):
        given = agent()
    assert "<secret:" in str(given)
    assert type(given) is type(tools.ANSWER[0])


def test_C114_a_frame_without_secrets_stays(tools: Any, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"user": ["bob"], "tokens_used": ["12"], "note": ["q7Zx-4711"]})
    tools.ANSWER[0] = frame
    assert "<secret" not in recorded(tmp_path / "run.yaml", tools, lambda: tools.asks(frame))


TABLES = {
    "csv": f"user,api_key,plan\nbob,{K},free\n",
    "csv with quotes": f'"name";"password"\n"bob; the first";"{K}"\n',
    "tabs": f"user\taccess_token\nbob\t{K}",
    "markdown": f"| user | API Key |\n|---|---|\n| bob | `{K}` |\n\nand on",
    "in JSON": json.dumps({"csv": f"user,api_key\nbob,{K}\n"}),
    "in prose": f"Here it is:\n\nname,secret\r\nbob,{K}\r\n\r\nbye",
}
LETTERS: dict[str, Callable[[str], Any]] = {
    "capitals": str.upper,
    "small letters": str.lower,
    "hexadecimal": lambda text: f"<{text.encode().hex()}>",
    "hexadecimal capitals": lambda text: text.encode().hex().upper(),
    "UTF-16": lambda text: f"key {text} in it".encode("utf-16-le"),
    "UTF-16 with its mark": lambda text: f"key {text} in it".encode("utf-16"),
}


@pytest.mark.parametrize("how", TABLES)
def test_C112_a_secret_in_a_table(tools: Any, tmp_path: Path, how: str) -> None:
    path = tmp_path / "run.yaml"
    text = recorded(path, tools, lambda: [tools.asks(TABLES[how]), tools.asks(f"so it is {K}")])
    assert K not in text
    assert text.count(":1>") == 2
    for value in (K, OTHER):
        with stepfork.replay(path):
            tools.asks(TABLES[how].replace(K, value))
            tools.asks(f"so it is {value}")
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.asks(TABLES[how])
        tools.asks(f"so it is {OTHER}")


@pytest.mark.parametrize("how", LETTERS)
def test_C112_a_known_secret_in_other_letters(tools: Any, tmp_path: Path, how: str) -> None:
    """The program's own secret, and one that an answer brought."""
    path, spell = tmp_path / "run.yaml", LETTERS[how]
    tools.ANSWER[0] = {"token": OTHER}

    def agent(own: str) -> None:
        brought = tools.asks({"api_key": own})["token"]
        tools.asks([spell(own)])
        if not isinstance(spell(""), bytes):
            tools.asks({"seen": spell(brought)})

    text = recorded(path, tools, lambda: agent(K))
    for value in (K, OTHER):
        for form in (value, value.upper(), value.lower(), value.encode().hex(), value.encode().hex().upper()):
            assert form not in text
    for own in (K, "dummy-0-dummy"):
        with stepfork.replay(path):
            agent(own)


def test_C112_a_secret_in_UTF_16_before_it_is_known(tools: Any, tmp_path: Path) -> None:
    def agent() -> None:
        tools.asks(f"it is {K}".encode("utf-16-le"))
        tools.asks({"api_key": K})

    agent_text = recorded(tmp_path / "run.yaml", tools, agent)
    (first, _) = stepfork.load(tmp_path / "run.yaml").calls
    assert b"<secret:api_key:1>" in first.args["value"]
    assert "\\0".join(K) not in agent_text


def entries(*tokens: str) -> list[dict[str, Any]]:
    return [
        {
            "token": token,
            "logprob": -0.5,
            "bytes": list(token.encode()),
            "top_logprobs": [{"token": token, "logprob": -0.5, "bytes": list(token.encode())}],
        }
        for token in tokens
    ]


def test_C112_log_probabilities_spell_no_secret(tmp_path: Path, server: ChatServer) -> None:
    pieces = ("my", " pass", "word", "=", K[:4], K[4:9], K[9:], " it", " is")
    answer = completion("".join(pieces))
    answer["choices"][0]["logprobs"] = {"content": entries(*pieces), "refusal": None}
    server.answer = lambda request: json_answer(answer)
    client = openai.OpenAI(base_url=server.url, api_key="x", max_retries=0)

    def ask() -> Any:
        return client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "go"}], logprobs=True
        ).choices[0]

    path = tmp_path / "run.yaml"
    with stepfork.record(path):
        assert [entry.token for entry in ask().logprobs.content] == list(pieces), "the live run sees it all"
    text = path.read_text("utf-8")
    assert not [piece for piece in (K[:4], K[4:9], K[9:]) if piece in text]
    with stepfork.replay(path):
        choice = ask()
    tokens = [entry.token for entry in choice.logprobs.content]
    assert len(tokens) == len(pieces)
    assert "".join(tokens) == choice.message.content == "my password=<secret:password:1> it is"
    assert tokens[:4] == list(pieces[:4])
    assert tokens[-2:] == list(pieces[-2:])


def test_C112_what_stands_under_a_secret_as_a_key_is_none(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    tools.ANSWER[0] = {"api_key": K}

    def agent() -> None:
        tools.asks({tools.asks("key?")["api_key"]: "bob"})

    recorded(path, tools, agent)
    with stepfork.replay(path):
        agent()


def test_C114_tokens_of_a_model_are_no_secrets() -> None:
    dumped = {"choices": [{"logprobs": {"content": entries("my", " hands")}}]}
    assert Redactor().redact(dumped) is dumped


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('token: "banana123"', 'token: "<secret:token:1>"'),
        ("token=3f2b8c1e-5d64-4a7b-9c0d-1e2f3a4b5c6d", "token=<secret:token:1>"),
        ("key=value1&token=value2", "key=value1&token=value2"),
        ("Cookie: lang=en", "Cookie: lang=en"),
        ("Set-Cookie: theme=dark", "Set-Cookie: theme=dark"),
        ({"Cookie": "lang=en"}, {"Cookie": "lang=<secret:cookie:1>"}),
        ("api_key: gpt-4o-mini-2024-07-18", "api_key: gpt-4o-mini-2024-07-18"),
        (
            {"cookies": {"sid": K, "theme": "dark"}},
            {"cookies": {"sid": "<secret:cookies:1>", "theme": "<secret:cookies:2>"}},
        ),
        ({"cookies": {"type": "string"}}, {"cookies": {"type": "string"}}),
        (Tagged("tuple", ["token", "wordy"]), Tagged("tuple", ["token", "wordy"])),
    ],
)
def test_C114_what_stands_under_a_secret_key_goes_and_what_is_plain_does_not_spread(
    value: Any, shown: Any
) -> None:
    redactor = Redactor()
    assert redactor.redact(value) == shown
    ordinary = "lang=en theme=dark value2 gpt-4o-mini-2024-07-18 dark string"
    assert redactor.redact(ordinary) == ordinary


PHRASE = "correct-horse-battery"
GIVEN: dict[str, tuple[Any, str]] = {
    "an option": (["x", "--password", "hunter2"], "hunter2"),
    "an option with words": (["x", "--password", PHRASE], PHRASE),
    "a short option": (["x", "--api-key", "k9x"], "k9x"),
    "an option in one": (["x", f"--token={PHRASE}"], PHRASE),
    "a pair": ([["password", PHRASE]], PHRASE),
    "a header pair": ([("X-Api-Key", PHRASE)], PHRASE),
    "a header of curl": (["curl", "-H", f"X-Api-Key: {PHRASE}"], PHRASE),
    "a user of curl": (["/usr/bin/curl", "-u", f"bob:{K}", "https://h"], K),
    "a password of mysql": (f"mysql -u root -p{K} db", K),
    "a password in SQL": (f"ALTER ROLE bob WITH PASSWORD '{K}'", K),
    "a variable in quotes": (f'export DB_PASSWORD="{PHRASE}"', PHRASE),
    "a keyword argument": (f"connect(password='{PHRASE}')", PHRASE),
    "a key as keyword": (f"Conf(api_key='{PHRASE}')", PHRASE),
    "a connection string": (f"Server=db;Password={PHRASE};", PHRASE),
    "libpq": (f"host=db password={PHRASE}", PHRASE),
    "XML": (f"<password>{PHRASE}</password>", PHRASE),
    "npm": (f"//registry/:_authToken={PHRASE}", PHRASE),
    "a header": (f"X-Api-Key: {PHRASE}", PHRASE),
    "several keys by their names": ({"api_keys": {"openai": K, "plan": "free"}}, K),
    **{
        key: ({key: K}, K)
        for key in ("smtp_pass", "SMTP_PWD", "MYSQL_PWD", "db_pwd", "jwt", "storage_account_key")
    },
}


@pytest.mark.parametrize("form", GIVEN)
def test_C112_what_stands_behind_the_name_of_a_secret_is_one(
    make_module: Any, tmp_path: Path, form: str
) -> None:
    value, secret = GIVEN[form]
    tools, path = make_module("def run(value):\n    return 'ok'\n"), tmp_path / "a.yaml"

    def agent() -> None:
        tools.run(value)

    with stepfork.record(path, tools=[tools.__name__]):
        agent()
    text = path.read_text("utf-8")
    assert secret not in text
    assert "<secret:" in text
    with stepfork.replay(path):
        agent()


@pytest.mark.parametrize(
    "value",
    [
        ["token", "username"],
        ["x-api-key", "content-type"],
        ["api_key", "base_url"],
        ["tool", "--token", "--password"],
        ["--password", "required"],
        ["API key", "How do I rotate it?"],
        "return {'token': token.value, 'password': PASSWORD_HASH2}",
        {"secrets": {"name": "db-login", "namespace": "default"}},
        {"api_keys": {"type": "object", "title": "Keys of 3rd parties"}},
        "api_key = 'staging-api-key-name'",
    ],
    ids=str,
)
def test_C114_names_beside_names_are_no_secrets(value: Any) -> None:
    assert Redactor().redact(value) is value


ODD = "q7Z'x4\"m\tW9&a\\a/KJ+p<L s"
SPELLED: dict[str, Callable[[str], str]] = {
    "HTML": html.escape,
    "code": lambda value: repr(value)[1:-1],
    "a URL in a URL": lambda value: quote(quote(value, safe=""), safe=""),
    "a form in a URL": lambda value: quote(quote_plus(value)),
}


@pytest.mark.parametrize("spelling", SPELLED)
@pytest.mark.parametrize("own", [True, False])
def test_C112_a_known_secret_is_replaced_in_other_spellings(
    make_module: Any, tmp_path: Path, spelling: str, own: bool
) -> None:
    """Of the program's own, and of an answer."""
    tools, path = make_module("def run(value):\n    return value\n"), tmp_path / "a.yaml"

    def agent(secret: str) -> None:
        known = tools.run({"password": secret})["password"]
        tools.run(f"see {SPELLED[spelling](secret if own else known)} now")

    with stepfork.record(path, tools=[tools.__name__]):
        agent(ODD)
    assert SPELLED[spelling](ODD).strip("'") not in path.read_text("utf-8")
    assert path.read_text("utf-8").count("see <secret:password:1> now") == 2
    with stepfork.replay(path):
        agent(ODD)
