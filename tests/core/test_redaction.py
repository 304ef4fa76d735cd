"""What is a secret, what is not, and what stands for one. Knows the core only: no file, no session.

Samples that look like secrets are put together here, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import copy
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.core.model import Tagged
from stepfork.core.placeholder_texts import PLACEHOLDER
from stepfork.core.redaction import Keys, Redactor
from stepfork.core.redaction_rules import Rules
from stepfork.core.renaming import Renaming

# one long random text to cut samples from; no part of it is a real secret
R = "q7ZxT4mWv9KcP2hJ8rLd5NfY3sBg6tVa1EuXo0Ik" * 4
UPPER = "Q7ZXT4MWV9KCP2HJ8RLD"
SK = "sk-" + "proj-" + R[:40]
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiIxMjM0In0" + "." + R[:30]
PEM = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + (R[:60] + "\n") * 4 + "-----END " + "RSA PRIVATE KEY-----"
GH = "gh" + "p_" + R[:36]
AWS = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
BASIC = base64.b64encode(b"aladdin:open" + b"sesame1").decode()
PASS = "hunter2" + "hunter2"

# text -> the part of it that must be gone
POSITIVE = {
    "openai": (f"my key is {SK}.", SK),
    "openai old": ("sk-" + "a" * 48, "a" * 48),
    "openai short": ("key sk-" + "test-1234567890abcdef here", "1234567890abcdef"),
    "anthropic": ("sk-" + "ant-api03-" + R[:93] + "-AA", R[:93]),
    "openrouter": ("sk-" + "or-v1-" + "0f1e2d3c" * 8, "0f1e2d3c" * 8),
    "after an escaped line end": (f"a\\n{SK}", SK),
    "after a percent escape": (f"k%3D{SK}", SK),
    "xai": ("xai-" + R[:60], R[:60]),
    "groq": ("gsk_" + R[:52], R[:52]),
    "hugging face": ("hf_" + R[:34], R[:34]),
    "google": ("AIza" + "a" * 35, "a" * 35),
    "stripe": ("sk_" + "live_" + R[:24], R[:24]),
    "stripe restricted": ("rk_" + "test_" + R[:24], R[:24]),
    "github": (f"git clone with {GH}", GH),
    "github oauth": ("gh" + "o_" + R[:36], R[:36]),
    "github user": ("gh" + "u_" + R[:36], R[:36]),
    "github server": ("gh" + "s_" + R[:36], R[:36]),
    "github refresh": ("gh" + "r_" + R[:36], R[:36]),
    "github fine-grained": ("github_" + "pat_" + R[:22] + "_" + R[:59], R[:59]),
    "github as user": (f"https://{GH}@github.com/o/r.git", GH),
    "gitlab": ("glpat" + "-" + R[:20], R[:20]),
    "slack bot": ("xox" + "b-123456789012-" + R[:24], R[:24]),
    "slack user": ("xox" + "p-123456789012-" + R[:24], R[:24]),
    "aws id": ("AKIA" + UPPER[:16], UPPER[:16]),
    "aws temporary id": ("id=ASIA" + UPPER[:16] + ";", UPPER[:16]),
    "aws secret": (f"AWS_SECRET_ACCESS_KEY={AWS}", AWS),
    "aws secret in a file": (f"aws_secret_access_key = {AWS}", AWS),
    "jwt": (f"got {JWT} back", JWT),
    "jwt unsigned": (JWT.rpartition(".")[0] + ".", JWT.rpartition(".")[0]),
    "pem": (f"key:\n{PEM}\nend", R[:60]),
    "pem in json": (json.dumps({"k": PEM}), R[:60]),
    "pem short": ("-----BEGIN " + "PRIVATE KEY-----\nMIIEabc\n-----END " + "PRIVATE KEY-----", "MIIEabc"),
    "pem cut off": (PEM[:200], R[:60]),
    "bearer": (f"Authorization: Bearer {R[:24]}", R[:24]),
    "bearer lower": (f"use bearer {R[:24]} there", R[:24]),
    "bearer short, in a header": ("Authorization: Bearer " + "abcdefgh", "abcdefgh"),
    "basic": (f"Authorization: Basic {BASIC}", BASIC),
    "basic in curl": (f'curl -H "Authorization: Basic {BASIC}" http://h/', BASIC),
    "url password": ("postgres://bob:" + "s3cret" + "@db:5432/app", "s3cret"),
    "url password with an at": ("amqp://u:p" + "@ss@mq/", "p@ss"),
    "url password, no user": ("redis://:" + "swordfish" + "@cache:6379/0", "swordfish"),
    "url password, escaped": ("https://u:a%40" + "b%2Fc@h/", "a%40b%2Fc"),
    "query": ("GET https://h/x?api_key=" + "abc" + "&page=2", "api_key=abc"),
    "query, second": ("https://h/x?page=2&access_token=" + R[:12], R[:12]),
    "query, in html": ("https://h/x?page=2&amp;token=" + R[:12], R[:12]),
    "fragment": ("https://h/cb#access_token=" + R[:12] + "&state=1", R[:12]),
    "presigned": ("https://s3/x?X-Amz-Signature=" + "0f" * 32, "0f" * 32),
    "form": ("password=" + "swordfish&user=bob", "swordfish"),
    "form, last": ("user=bob&password=" + "swordfish", "swordfish"),
    "set-cookie": ("Set-Cookie: sid=" + R[:20] + "; Path=/; HttpOnly", R[:20]),
    "cookie": ("cookie: theme=dark; sid=" + R[:20], R[:20]),
    "assigned": ("api_key=" + R[:16], R[:16]),
    "assigned, letters only": ("api_key=" + "a" * 32, "a" * 32),
    "assigned with blanks": ("client_secret = " + R[:16], R[:16]),
    "told": (f"password: {PASS}", PASS),
    "told, end of a sentence": (f"The password: {PASS}.", PASS),
    "python": (f'client = Client(api_key="{R[:16]}")', R[:16]),
    "python dict": (f"{{'password': '{PASS}'}}", PASS),
    "python dict, letters only": ("bad args {'password': '" + "swordfish'}", "swordfish"),
    "environ": (f'os.environ["OPENAI_API_KEY"] = "{R[:16]}"', R[:16]),
    "env file": ("DB_PASSWORD=" + "swordfish", "swordfish"),
    "env file, token": ("export GITHUB_TOKEN=" + R[:16], R[:16]),
    "flag": (f"tool --api-key={R[:16]} run", R[:16]),
    "header": (f"X-Api-Key: {R[:16]}", R[:16]),
    "connection string": ("Server=db;User=sa;Password=" + PASS + ";", PASS),
    "yaml": (f"db:\n  password: {PASS}\n", PASS),
    "json": (json.dumps({"user": "bob", "password": "abc"}), "abc"),
    "json lines": ('{"token": "' + 'abc"}\n{"token": "xyz"}\n', "xyz"),
    "json with escapes": ('{"token": "a\\u0062' + 'c", "n": 1}', "\\u0062"),
    "json in json": (json.dumps({"body": json.dumps({"password": "abc"})}), "abc"),
    "json with escaped slashes": (r'{"u": "https:\/\/u:s3' + r'cret@h"}', "s3cret"),
}

BASE64 = base64.b64encode(bytes(range(256)) * 8).decode()  # two kilobytes
NEGATIVE = {
    "tool call id": "call_" + R[:24],
    "anthropic tool id": "toolu_01AbCdEfGhIjKlMnOpQrStUv",
    "completion id": "chatcmpl-" + R[:29],
    "response id": "resp_" + "68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b",
    "message id": "msg_" + "68af4030baa48193b0b43b4c2a176a1a05438e46b5f69a3b",
    "run id": "run_" + R[:24],
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "git sha": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "base64": BASE64,
    "png": "data:image/png;base64," + BASE64,
    "audio": "data:audio/wav;base64," + BASE64,
    "base64 with a shape in it": "QUJD/AKIA" + UPPER[:16] + "/" + BASE64,
    "base64 url": base64.urlsafe_b64encode(bytes(range(256)) * 3).decode(),
    "cursor": "eyJvZmZzZXQiOjEwMH0",
    "file after eyJ": "eyJhbGciOiJ.png",
    "a=b": "a=b",
    "equation": "x = y + 1; area=width*height",
    "prose password": "the password is wrong",
    "prose password colon": "password: required",
    "prose password at least": "password: at least eight characters",
    "prose token": "token: the smallest unit",
    "prose token long": "Token: tokenization splits a text",
    "prose secret": "The secret: perseverance and patience.",
    "prose key": "key: value, and so on",
    "prose keys": "Key findings: 3 outages, 12 alerts2024",
    "prose bearer": "Bearer of news",
    "prose bearer auth": "Use Bearer authentication instead of basic authentication.",
    "prose bearer proxy": "a bearer oauth2-proxy setup",
    "prose basic": "basic understanding of physics",
    "prose cookie": "Cookie: chocolate, with nuts",
    "prose authorization": "authorization: required for admins",
    "sklearn": "sk-learn",
    "sklearn long": "sk-learn-compatible-estimators-for-time-series",
    "sklearn version": "use sk-learn-py3-compat here",
    "task id": "task-1234567890abcdef1234567890abcdef",
    "disk id": "disk-a1b2c3d4e5f6a7b8c9d0",
    "code attribute": "password=self.password",
    "code settings": "api_key=settings.openai_api_key, timeout=10",
    "code call": "token=get_token1(user)",
    "code environ": 'api_key=os.environ["OPENAI_API_KEY"]',
    "code getenv": 'API_KEY = os.getenv("OPENAI_API_KEY")',
    "code comparison": 'if password == "abc123def456":',
    "code annotation": "def login(user: str, password: str) -> Token: ...",
    "code default": "def login(token: str | None = None): ...",
    "code and": "token1 && token == null",
    "code js": "const token = response.data.access_token",
    "code c++": "token::value1x2y3z",
    "shell variable": "api_key=$OPENAI_API_KEY",
    "shell braces": "curl -H 'Authorization: Bearer ${ACCESS_TOKEN}'",
    "template": "password={{ db_password }}",
    "f-string": 'f"postgres://{user}:{password}@{host}/db"',
    "documented header": "Authorization: Bearer <token>",
    "documented key": "api_key=YOUR_API_KEY",
    "documented key words": "OPENAI_API_KEY=your-api-key-goes-here",
    "masked": "password: ********",
    "path": "secret=/etc/app/secret1.yaml",
    "url with port": "http://localhost:8080/a@b",
    "url with mail": "https://example.com:443/?q=me@example.com",
    "url without password": "https://bob@example.com/",
    "minified json": '{"u":"http://h:8080","mail":"a@b.example"}',
    "page token": "https://h/x?page_token=abc&limit=10",
    "max tokens": "max_tokens=1024",
    "token count": "token_count: 12ab34cd56",
    "tokens": "tokens: 1234abcd5678",
    "json schema": json.dumps({"password": {"type": "string"}, "required": ["password"]}),
    "json counts": json.dumps({"max_tokens": 5, "token": None, "token_count": "12ab34cd56"}),
    "date": "token: 2024-01-01T00:00:00Z",
    "key words": "keyword=abc123def456, monkey=abc123def456, turkey: x1y2z3w4",
    "pem mentioned": "Paste the text from -----BEGIN to the end.",
    "public key": "-----BEGIN PUBLIC KEY-----\n" + R[:60] + "\n-----END PUBLIC KEY-----",
    "pem in a comment": "between '-----BEGIN RSA PRIVATE KEY-----' and\n'-----END RSA PRIVATE KEY-----'",
    "ssh algorithm": "sk-ecdsa-sha2-nistp256",
    "arn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-a1b2c3",
    "code type": "private_key: ed25519.Ed25519PrivateKey, key: PKCS7PrivateKeyTypes",
    "scheme": "Authorization: AWS4-HMAC-SHA256",
    "xox": "xoxo, hugs and kisses",
    "german": "Das Passwort ist geheim: nicht weitersagen",
    "emoji": "🔑: 🗝️ = \u2028 Schlüssel",
    "dotless": "İstanbul token: bir sözcük",
}


@pytest.mark.parametrize(("text", "secret"), POSITIVE.values(), ids=POSITIVE)
def test_secret_shape_is_replaced(text: str, secret: str) -> None:
    redacted = Redactor().redact_text(text)
    assert secret not in redacted
    assert PLACEHOLDER.search(redacted)
    assert secret not in str(Redactor().redact({"rows": [{"JrX": text}]}))


@pytest.mark.parametrize("text", NEGATIVE.values(), ids=NEGATIVE)
def test_ordinary_text_is_left_alone(text: str) -> None:
    value = {"rows": [text, {"content": text}]}
    assert Redactor().redact(value) is value
    if "AKIA" not in text:
        assert Redactor().redact_text(f"He said: {text}\nand left.") == f"He said: {text}\nand left."


def test_c112_shapes_are_found_whatever_the_key() -> None:
    redactor = Redactor()
    value = {
        "JrX": "AIza" + "a" * 35,
        "raw": "Set-Cookie: sid=" + R[:9],
        "env": f"AWS_SECRET_ACCESS_KEY={AWS}",
        "jwt": JWT,
    }
    assert redactor.redact(value) == {
        "JrX": "<secret:api_key:1>",
        "raw": "Set-Cookie: sid=<secret:set_cookie:1>",
        "env": "AWS_SECRET_ACCESS_KEY=<secret:aws_secret_access_key:1>",
        "jwt": "<secret:jwt:1>",
    }
    assert AWS not in repr(redactor)


def test_c114_ids_images_and_hashes_survive() -> None:
    value = {
        "id": "toolu_01AbCdEfGhIjKlMnOpQrStUv",
        "image": {"url": NEGATIVE["png"]},
        "sha": NEGATIVE["git sha"],
        "uuid": NEGATIVE["uuid"],
        "text": "a=b",
        "raw": Tagged("bytes", BASE64),
    }
    redactor = Redactor()
    redactor.redact({"api_key": PASS})
    assert redactor.redact(value) is value


def test_c116_a_secret_in_a_megabyte_is_found() -> None:
    filler = "All is well, and the rows go on.\n" * 15_000
    for text in (filler + SK + filler, json.dumps({"log": filler, "token": R[:10], "rest": [filler, SK]})):
        redacted = Redactor().redact({"result": text})
        assert SK not in str(redacted)
        assert R[:10] not in str(redacted)
        assert len(str(redacted)) > 900_000


def test_c118_the_built_in_rules_stay_on_beside_the_users() -> None:
    rules = Rules.compile(keys=["ssn"], patterns=[r"ACME-\d{4}"], allow=["nothing"])
    redacted = Redactor(rules).redact({"ssn": "12-34", "password": "x", "q": f"ACME-1234 {SK}"})
    assert redacted == {
        "ssn": "<secret:ssn:1>",
        "password": "<secret:password:1>",
        "q": "<secret:pattern:1> <secret:api_key:1>",
    }
    assert Redactor(Rules.compile([], [], [])).redact({"password": "x"}) == {
        "password": "<secret:password:1>"
    }


def test_c120_error_texts_and_names_are_redacted() -> None:
    redactor = Redactor()
    redactor.redact({"api_key": PASS})
    assert redactor.redact_text(f"KeyError: {PASS!r} at https://u:pw@h") == (
        "KeyError: '<secret:api_key:1>' at https://u:<secret:password:1>@h"
    )
    assert redactor.redact_name(f"test_it[{SK}]") == "test_it[secret-api_key]"
    assert redactor.redact_name("test_it[plain]") == "test_it[plain]"


# ------------------------------------------------------------------------------------------------ keys


SECRET_KEYS = """
api_key apiKey API_KEY api-key apikey APIKEY x-api-key X-API-Key x-goog-api-key OPENAI_API_KEY openai_api_key
openaiApiKey authorization Authorization Proxy-Authorization cookie Cookie set-cookie Set-Cookie password
passwd Password dbPassword DB_PASSWORD secret SECRET client_secret clientSecret CLIENT_SECRET secret_key
private_key privateKey PRIVATE-KEY token Token access_token accessToken ACCESS_TOKEN refresh_token id_token
idToken session_token sessionToken auth_token X-Auth-Token AWS_SECRET_ACCESS_KEY
GITHUB_TOKEN SLACK_BOT_TOKEN JWT_SECRET webhook_secret TEST_TOKEN DB_PASS AZURE_DEVOPS_PAT DD-APPLICATION-KEY
secret_key_base github_token
"""
ORDINARY_KEYS = """
tokens max_tokens maxTokens MAX_TOKENS token_count tokenizer next_page_token nextPageToken NEXT_PAGE_TOKEN
eos_token EOS_TOKEN page_token key keys keyboard primary_key public_key monkey cache_key sort_key secretary
secret_name secrets_found password_hint has_password reset_password require_password passwords_seen author
authorized authorization_url cookie_policy session_id id auth bearer completion_tokens prompt_cache_key
top_secret tokenise pwd PWD account_key application_key sig signature pat ALL_PASS TESTS_PASS bypass
"""


@pytest.mark.parametrize("key", SECRET_KEYS.split())
def test_a_secret_key_hides_its_text(key: str) -> None:
    redacted = Redactor().redact({"a": [{key: "x y"}]})
    assert isinstance(redacted, dict)
    assert PLACEHOLDER.fullmatch(redacted["a"][0][key])  # type: ignore[index,call-overload]


@pytest.mark.parametrize("key", ORDINARY_KEYS.split())
def test_an_ordinary_key_hides_nothing(key: str) -> None:
    value = {key: "some text"}
    assert Redactor().redact(value) is value


def test_only_texts_that_are_not_empty_are_replaced_under_a_key() -> None:
    value = {
        "password": {"type": "string"},
        "token": 5,
        "secret": None,
        "api_key": "",
        "authorization": True,
        "private_key": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    assert Redactor().redact(value) is value
    assert Redactor().redact({"token": "null"}) == {"token": "<secret:token:1>"}


def test_keys_off_for_the_fields_of_an_answer() -> None:
    value = {"logprobs": [{"token": " the", "bytes": [32]}], "wire": {"events": '{"token": "the"}'}}
    redactor = Redactor()
    assert redactor.redact(value, Keys.ANSWER) is value
    assert redactor.redact({"a": SK, "token": "the"}, Keys.ANSWER) == {
        "a": "<secret:api_key:1>",
        "token": "the",
    }


def test_users_keys_are_whole_keys_in_any_spelling() -> None:
    redactor = Redactor(Rules.compile(keys=["customer-ssn"]))
    assert redactor.redact({"customerSsn": "1", "CUSTOMER_SSN": "2", "ssn": "3", "my_customer_ssn": "4"}) == {
        "customerSsn": "<secret:customer_ssn:1>",
        "CUSTOMER_SSN": "<secret:customer_ssn:2>",
        "ssn": "3",
        "my_customer_ssn": "4",
    }
    assert redactor.redact_text("customer_ssn: 123-45-6789.") == "customer_ssn: <secret:customer_ssn:3>."
    assert redactor.redact('{"customer_ssn": "7"}') == '{"customer_ssn": "<secret:customer_ssn:4>"}'


def test_users_patterns_replace_the_group_if_there_is_one() -> None:
    redactor = Redactor(Rules.compile(patterns=[r"badge (\w+)", r"#\d"]))
    assert redactor.redact("badge x1, #7") == "badge <secret:pattern:1>, <secret:pattern:2>"
    assert redactor.redact(["#7", "ok"]) == ["<secret:pattern:2>", "ok"]


def test_allow_exempts_whole_keys_and_whole_values() -> None:
    redactor = Redactor(Rules.compile(allow=["token", r"sk-test-.*"]))
    value = {
        "token": "abc",
        "q": "sk-" + "test-" + R[:20],
        "api_key": "sk-test-" + R[:20],
        "t": f"token={R[:20]}",
    }
    assert redactor.redact(value) is value
    assert redactor.redact({"access_token": "abc", "token": SK}) == {
        "access_token": "<secret:access_token:1>",
        "token": "<secret:api_key:1>",
    }


# ---------------------------------------------------------------------------------------- consistency


def test_a_known_secret_is_replaced_wherever_it_stands() -> None:
    redactor = Redactor()
    secret = "p/ss wörd+" + R[:9]
    value = {
        "before": f"<{secret}>",
        "password": secret,
        f"key {secret}": 1,
        "url": "https://h/x?q=" + quote(secret, safe=""),
        "json": json.dumps([secret]),
        "base64": [base64.b64encode(b"x" * n + secret.encode() + b"yy").decode() for n in range(4)],
        "bytes": Tagged("bytes", base64.b64encode(f"a {secret} b".encode()).decode()),
        "tuple": Tagged("tuple", [secret, Tagged("set", ["a", secret])]),
        "map": Tagged("map", [[1, secret], ["token", "t"], [secret, 2]]),
    }
    before = copy.deepcopy(value)
    one = "<secret:password:1>"
    redacted: Any = redactor.redact(value)
    assert value == before
    assert redacted["before"] == f"<{one}>"
    assert redacted["password"] == one
    assert redacted[f"key {one}"] == 1
    assert redacted["url"] == f"https://h/x?q={one}"
    assert redacted["json"] == json.dumps([one])
    said = [base64.b64decode(text) for text in redacted["base64"]]
    assert said == [b"x" * n + one.encode() + b"yy" for n in range(4)]
    assert base64.b64decode(redacted["bytes"].value) == f"a {one} b".encode()
    assert redacted["tuple"] == Tagged("tuple", [one, Tagged("set", [one, "a"])])
    assert redacted["map"] == Tagged("map", [[1, one], ["token", "<secret:token:1>"], [one, 2]])
    assert redactor.redact(f"later: {secret}") == f"later: {one}"


def test_a_short_secret_is_replaced_only_where_it_is_one() -> None:
    redactor = Redactor()
    assert redactor.redact({"password": "abcdefg", "q": "abcdefg"}) == {
        "password": "<secret:password:1>",
        "q": "abcdefg",
    }
    assert redactor.redact({"password": "abcdefg"}) == {"password": "<secret:password:1>"}
    assert redactor.count == 0


@pytest.mark.parametrize(
    "word", ["password", "required", "api-key-s", "********", "          ", "client_secret"]
)
def test_a_plain_word_under_a_secret_key_is_not_hunted_elsewhere(word: str) -> None:
    redacted = Redactor().redact({"password": word, "q": f"the {word} field", "password_hint": word})
    assert redacted == {"password": "<secret:password:1>", "q": f"the {word} field", "password_hint": word}


def test_the_same_value_keeps_its_placeholder_and_others_get_the_next() -> None:
    redactor = Redactor()
    assert redactor.redact([{"token": "aa"}, {"token": "bb"}, {"token": "aa"}]) == [
        {"token": "<secret:token:1>"},
        {"token": "<secret:token:2>"},
        {"token": "<secret:token:1>"},
    ]


def test_a_header_is_its_credential() -> None:
    redactor = Redactor()
    headers = {
        "Authorization": f"Bearer {R[:20]}",
        "Set-Cookie": f"sid={R[20:40]}; Path=/",
        "Accept": "*/*",
    }
    assert redactor.redact(headers) == {
        "Authorization": "<secret:authorization:1>",
        "Set-Cookie": "sid=<secret:set_cookie:1>; Path=/",
        "Accept": "*/*",
    }
    assert redactor.redact(f"Bearer {R[:20]} and {R[20:40]}") == (
        "Bearer <secret:authorization:1> and <secret:set_cookie:1>"
    )
    assert redactor.redact({"authorization": R[:20]}) == {"authorization": "<secret:authorization:1>"}
    basic = Redactor()
    assert basic.redact({"authorization": f"Basic {BASIC}"}) == {
        "authorization": "Basic <secret:authorization:1>:<secret:password:1>"
    }
    assert basic.redact("opensesame1") == "<secret:password:1>"


def test_placeholders_stay_and_their_numbers_are_not_given_again() -> None:
    redactor = Redactor()
    value = {"api_key": "<secret:api_key:2>", "q": "see <secret:api_key:4> and <secret:x:1>"}
    assert redactor.redact(value) is value
    assert redactor.redact({"api_key": "dummy"}) == {"api_key": "<secret:api_key:5>"}
    assert redactor.redact([{"a": Tagged("tuple", ["<secret:token:7>"])}, {"token": "dummy"}]) == [
        {"a": Tagged("tuple", ["<secret:token:7>"])},
        {"token": "<secret:token:8>"},
    ]


def test_what_an_answer_held_is_handed_on_under_another_key() -> None:
    recording, replay = Redactor(), Redactor(replays=True)
    answer: Any = recording.redact({"token": PASS})
    asked = recording.redact({"authorization": f"Bearer {PASS}", "api_key": PASS, "note": f"with {PASS}"})
    given = answer["token"]
    replay.bring(answer)
    handed: Any = {"authorization": f"Bearer {given}", "api_key": given, "note": f"with {given}"}
    again = replay.redact(handed, raw=True)
    assert asked == again


def test_one_dummy_serves_for_several_keys() -> None:
    recorded = Redactor().redact([{"api_key": R[:20]}, {"token": R[20:40]}])
    assert Redactor().redact([{"api_key": "dummy"}, {"token": "dummy"}]) == recorded


def test_json_text_keeps_every_other_byte() -> None:
    text = ' {"a" : 1.50,\t"token":"x\\"y" , "b":["\\u00e9", {"k": "token"}], "token" : 5}\n'
    expected = text.replace('"x\\"y"', '"<secret:token:1>"')
    assert Redactor().redact(text) == expected
    assert Redactor().redact(text, Keys.WIRE) is text


def test_bytes_under_a_secret_key_and_binary_files() -> None:
    redactor = Redactor()
    redacted: Any = redactor.redact({"password": Tagged("bytes", base64.b64encode(b"abc").decode())})
    assert redacted == {"password": Tagged("bytes", base64.b64encode(b"<secret:password:1>").decode())}
    assert redactor.redact(redacted) is redacted
    binary = b"\xff\xfe\x00" + f"password={PASS}".encode()
    value = Tagged("bytes", base64.b64encode(binary).decode())
    assert redactor.redact(value) is value  # shapes mean nothing in a binary file, known values do
    redactor.redact({"token": PASS})
    hidden: Any = redactor.redact(value)
    assert base64.b64decode(hidden.value) == b"\xff\xfe\x00password=<secret:token:1>"
    odd = Tagged("bytes", "no base64!")
    assert redactor.redact(odd) is odd


def test_values_that_must_be_read_back_are_left_alone() -> None:
    redactor = Redactor()
    number = "123e4567-e89b-12d3-a456-426614174000"
    redactor.redact({"token": number})
    value = Tagged("uuid", number)
    assert redactor.redact(value) is value
    assert redactor.redact(Tagged("path", f"/tmp/{number}")) == Tagged("path", "/tmp/<secret:token:1>")


def test_mentions_tells_what_was_written_too_early() -> None:
    redactor = Redactor()
    redactor.redact({"token": R[:20]})
    since = redactor.count
    early = f"result: it is {R[20:40]}, with {R[:20]}\n"
    assert not redactor.mentions(early, since)
    redactor.redact({"password": R[20:40]})
    assert redactor.count == since + 1
    assert redactor.mentions(early, since)
    assert redactor.mentions(early, 0)
    assert not redactor.mentions(early, redactor.count)
    assert not redactor.mentions("result: nothing\n", since)
    assert redactor.mentions("url: /?q=" + base64.b64encode(f"a{R[20:40]}".encode()).decode(), since)
    redactor.redact({"password": "é ö ü ß"})  # can stand in a file in many ways
    assert redactor.count == since + 1
    redactor.redact({"password": "é ö ü ß é ö ü"})
    assert redactor.mentions("anything", since + 1)


def test_many_secrets_are_all_found() -> None:
    redactor = Redactor()
    secrets = [f"sk-{number:04d}-{R[number : number + 20]}" for number in range(160)]
    redactor.redact([{"api_key": secret} for secret in secrets])
    assert redactor.redact("|".join(secrets)) == "|".join(f"<secret:api_key:{n}>" for n in range(1, 161))


def test_new_secrets_are_taken_up_after_a_text_was_found_clean() -> None:
    redactor = Redactor()
    text = f"nothing to see in {R[:20]} as it seems, and this goes on for a while"
    assert redactor.redact(text) is text
    assert redactor.redact(text) is text
    redactor.redact({"token": R[:20]})
    assert redactor.redact(text) == text.replace(R[:20], "<secret:token:1>")
    assert redactor.redact(text) == text.replace(R[:20], "<secret:token:1>")


# ------------------------------------------------------------------------------------------ properties

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(LETTERS + " .:=\"'{}é\n", max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "q", "items", "Content-Type"]), inner, max_size=3)
        | st.lists(inner, max_size=2).map(lambda items: Tagged("tuple", items))
    ),
    max_leaves=12,
)
SECRETS = st.text("ABCDEFGHJKLMNP0123456789+/é", min_size=8, max_size=40)


def plant(draw: Any, value: Any, secret: str) -> Any:
    """The value with the secret put in at one place or several."""
    if isinstance(value, dict):
        return {key: plant(draw, item, secret) for key, item in value.items()} | (
            {"extra": secret} if draw(st.booleans()) else {}
        )
    if isinstance(value, list):
        return [plant(draw, item, secret) for item in value] + (
            [f"is {secret}!"] if draw(st.booleans()) else []
        )
    if isinstance(value, Tagged):
        return Tagged(value.tag, plant(draw, value.value, secret))
    if isinstance(value, str) and draw(st.booleans()):
        return draw(
            st.sampled_from([value + secret, secret + value, json.dumps({"x": secret}), f"{value} {secret}"])
        )
    return value


def replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    if isinstance(value, Tagged):
        return Tagged(value.tag, replaced(value.value, old, new))
    if isinstance(value, str):
        return value.replace(json.dumps(old)[1:-1], new).replace(old, new)
    return value


@examples(100)
@given(data=st.data(), plain=PLAIN, secret=SECRETS)
def test_a_planted_secret_never_survives_and_nothing_else_changes(data: Any, plain: Any, secret: str) -> None:
    value = [plant(data.draw, plain, secret), {"password": secret}]
    before = copy.deepcopy(value)
    redactor = Redactor()
    redacted = redactor.redact(value)
    assert repr(value) == repr(before)
    assert repr(redacted) == repr(replaced(before, secret, "<secret:password:1>"))
    assert redactor.redact(redacted) is redacted
    assert repr(Redactor().redact(redacted)) == repr(redacted)


TEXTS = st.text(max_size=60) | st.sampled_from(sorted(text for text, _ in POSITIVE.values()))
KEYS = st.sampled_from(["a", "token", "Cookie", "b-1", "authorization"]) | st.text(max_size=9)
SECRETIVE = st.recursive(
    TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@examples(100)
@given(SECRETIVE)
@example([PEM, "0000000A"])
@example({PEM: "0000000A"})
def test_redacting_twice_is_redacting_once(value: Any) -> None:
    before = copy.deepcopy(value)
    redactor = Redactor()
    once = redactor.redact(value)
    assert value == before
    assert redactor.redact(once) is once
    assert Redactor().redact(once) == once


@examples(100)
@given(st.text(LETTERS + "0123456789-_.:=/?&@{}\"'\\ \n", max_size=200))
def test_clean_text_is_the_same_object(text: str) -> None:
    redacted = Redactor().redact(text)
    assert redacted is text or redacted != text


HOSTILE = (
    *(
        "sk-",
        "sk-a1-",
        "eyJ",
        "eyJaaaaaaa.",
        "://",
        "://a:",
        "://a:bbbbb",
        "AKIA",
        "xoxb-",
        "github_pat_",
        "%3Dsk-",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n" + "a" * 45,
        "token=",
        "token=1",
        "token:a1b",
    ),
    *(
        "?token=",
        "?token={",
        "cookie:a=",
        "cookie:a={",
        "bearer ",
        "basic YTpiYmJi ",
        "\\",
        "key\\\\",
        '"',
        'token="',
    ),
    *(
        "[",
        '{"token":',
        "key    ",
        "a",
        "=",
        "-",
        "<secret:",
        "<secret:a:1>",
        "İtoken: ",
        "0",
        "secret=/a",
        " ",
    ),
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_hostile_text_ends_and_stays_as_it_comes_out(unit: str) -> None:
    """What is quadratic here takes an hour, so that it is seen without a clock."""
    text = "token=" + (unit * (1_000_000 // len(unit)))
    redactor = Redactor(Rules.compile(keys=["ssn"]))
    clean = redactor.redact(text)
    assert isinstance(clean, str)
    assert redactor.redact(clean) == clean


def test_a_megabyte_of_base64_is_left_alone() -> None:
    text = base64.b64encode(R.encode() * 5000).decode()
    assert Redactor().redact(text) is text


# -------------------------------------------------------------------------------------------- renaming


def test_unify_wants_the_same_text_around_and_the_same_label() -> None:
    renaming = Renaming()
    assert renaming.unify("abc", "abc")
    assert not renaming.unify("abc", "abd")
    assert not renaming.unify("abc", "<secret:a:1>")
    assert not renaming.unify("<secret:a:1>", "abc")
    assert not renaming.unify("<secret:a:1>", "<secret:b:1>")
    assert not renaming.unify("x <secret:a:1>", "y <secret:a:1>")
    assert not renaming.unify("<secret:a:1>", "<secret:a:1><secret:a:2>")
    assert renaming.unify("x <secret:a:1> <secret:b:1>", "x <secret:a:2> <secret:b:5>")


def test_renaming_is_one_to_one_across_calls() -> None:
    renaming = Renaming()
    assert renaming.unify("<secret:a:1>", "<secret:a:2>")
    assert renaming.unify("<secret:a:2>", "<secret:a:1>")
    assert not renaming.unify("<secret:a:1>", "<secret:a:1>")
    assert not renaming.unify("<secret:a:3>", "<secret:a:1>")
    assert renaming.unify("<secret:b:1>", "<secret:b:1>")


def test_a_failed_comparison_leaves_no_trace() -> None:
    renaming = Renaming()
    assert not renaming.unify("<secret:a:1> <secret:a:1>", "<secret:a:2> <secret:a:3>")
    assert renaming.unify("<secret:a:1>", "<secret:a:3>")
    trial = renaming.fork()
    assert trial.unify("<secret:a:2>", "<secret:a:4>")
    assert renaming.unify("<secret:a:2>", "<secret:a:5>")
    assert not trial.unify("<secret:a:2>", "<secret:a:5>")
