"""Values with secrets planted in any form: no file holds one, replay matches, nothing else changes."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork.core import known_values, secret_shapes
from stepfork.core.redaction import Redactor

TOOLS = """
def unlock(password):
    return "open"

def takes(value, again=None):
    return [value, again]

def fails(value):
    raise LookupError(value)

def yields(value):
    yield value
    yield [value]
"""

SECRETS = st.text('ABCDEFGHJK0123456789+/ &%é"\\ß=-_.', min_size=6, max_size=30).map(lambda t: f"Zq9{t}Xw4")

Form = Callable[[str], Any]
FORMS: dict[str, Form] = {
    "itself": lambda secret: secret,
    "in a text": lambda secret: f"say {secret}, please",
    "in JSON": lambda secret: json.dumps({"a": [secret]}),
    "in JSON in JSON": lambda secret: json.dumps({"a": json.dumps({"b": secret}, ensure_ascii=False)}),
    "in a URL": lambda secret: f"https://h/x?q={quote_plus(secret)}&n=1",
    "in a path": lambda secret: f"https://h/{quote(secret, safe='')}/x",
    "in base64": lambda secret: base64.b64encode(f"ab{secret}, and on".encode()).decode(),
    "in URL-safe base64": lambda secret: base64.urlsafe_b64encode(f"a{secret}".encode()).decode(),
    "a key": lambda secret: {secret: 1, 2: secret},
    "in a tuple": lambda secret: (secret, 1),
    "in a set": lambda secret: {secret, "other"},
    "bytes": lambda secret: f"raw {secret}".encode(),
    "binary bytes": lambda secret: b"\xff\x00" + secret.encode() + b"\xfe",
    "a variable": lambda secret: [{"name": "DB_PASSWORD", "value": secret}],
}
TEXTS = st.text("abcdefghij .:=\n", max_size=20)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "q", "items"]), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=6,
)
FEW = examples(60)


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@st.composite
def planted(draw: Any, forms: list[str]) -> Callable[[str], Any]:
    """A value as a function of the secret in it."""
    around = draw(PLAIN)
    chosen = draw(st.lists(st.sampled_from(forms), min_size=1, max_size=3))
    keyed = draw(st.booleans())

    def make(secret: str) -> Any:
        parts = [FORMS[name](secret) for name in chosen]
        return {"around": around, "x": parts, **({"password": secret} if keyed else {})}

    return make


def leaked(folder: Path, secret: str) -> list[str]:
    """The files of a folder that hold a secret, as it is or spelled."""
    raw = secret.encode()
    spelled = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    spelled |= {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    spelled |= {json.dumps(form)[1:-1] for form in spelled}
    for shift in range(3):
        core = base64.b64encode(b"x" * shift + raw).decode()[4:-4]
        spelled |= {core, core.replace("+", "-").replace("/", "_")}
    return [
        f"{path.name}: {form}"
        for path in folder.rglob("*")
        for form in spelled
        if len(form) >= 8 and form in path.read_text("utf-8")
    ]


def calls(tools: Any, value: Any) -> None:
    tools.takes(value, again=[value])
    with pytest.raises(LookupError):
        tools.fails(value)
    list(tools.yields(value))


@FEW
@given(make=planted(list(FORMS)), secret=SECRETS, other=SECRETS, ends=st.sampled_from(["well", "badly"]))
def test_no_file_holds_a_planted_secret_and_it_replays(
    tools: Any, make: Callable[[str], Any], secret: str, other: str, ends: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name, "run.yaml")

        def record() -> None:
            with stepfork.record(path, tools=[tools.__name__]) as run:
                tools.unlock(secret)
                for step in (tools.takes, lambda value: calls(tools, value)):
                    step(make(secret))
                    assert not leaked(folder, secret), "in the partial file"
                run.set_output(make(secret))
                if ends == "badly":
                    raise KeyError(make(secret), secret)

        if ends == "badly":
            with pytest.raises(KeyError):
                record()
        else:
            record()
        assert list(folder.iterdir()) == [path]
        assert not leaked(folder, secret)
        for given_now in (secret, other):  # the same, or another one under the same key
            with stepfork.replay(path):
                tools.unlock(given_now)
                tools.takes(make(given_now))
                calls(tools, make(given_now))


@FEW
@given(make=planted(list(FORMS)), secret=SECRETS)
def test_what_becomes_known_only_later_is_in_no_finished_file(
    tools: Any, make: Callable[[str], Any], secret: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        with stepfork.record(Path(name, "run.yaml"), tools=[tools.__name__]):
            calls(tools, make(secret))
            tools.unlock(secret)
        assert not leaked(Path(name), secret)


@FEW
@given(make=planted(["itself", "in a text", "in a tuple"]), secret=SECRETS)
def test_what_becomes_known_only_later_replays(tools: Any, make: Callable[[str], Any], secret: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "run.yaml")
        for mode in (stepfork.record, stepfork.replay):
            with mode(path, tools=[tools.__name__]):
                tools.takes(make(secret))
                tools.unlock(secret)


@FEW
@given(value=PLAIN, more=st.dictionaries(st.sampled_from(["max_tokens", "id", "a"]), st.text(max_size=30)))
def test_a_value_without_secrets_comes_back_and_stands_as_it_is(
    tools: Any, value: Any, more: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "run.yaml")
        with stepfork.record(path, tools=[tools.__name__]):
            live = tools.takes([value, more])
        if "<secret:" not in path.read_text("utf-8"):
            with stepfork.replay(path):
                assert tools.takes([value, more]) == live
        else:
            assert Redactor().redact(more) != more, "only the free texts may look like one"


def searched(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    """How many characters are searched for shapes and known values while `work` runs."""
    total = 0

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal total
            total += len(arguments[-1])
            return function(*arguments)

        return counted

    with monkeypatch.context() as patch:
        patch.setattr("stepfork.core.secret_search.shaped", counting(secret_shapes.shaped))
        patch.setattr(known_values.KnownValues, "find", counting(known_values.KnownValues.find))
        work()
    return total


@pytest.mark.parametrize("unit", ["All is well. ", '{"a": "b\\"c"}, ', "token=abc123def456 ", "QUJDREVGR0hJ"])
def test_a_text_ten_times_as_long_takes_ten_times_the_work(
    monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    def work(length: int) -> int:
        redactor = Redactor()
        redactor.learn("Zq9-hunter2", "password")
        return searched(monkeypatch, lambda: redactor.redact([unit * (length // len(unit)) + "Zq9-hunter2"]))

    assert work(1_000_000) <= 10.5 * work(100_000)


def test_ten_times_the_calls_take_ten_times_the_work(
    monkeypatch: pytest.MonkeyPatch, tools: Any, tmp_path: Path
) -> None:
    """Each call is searched when it is made; closing looks at those again that a later secret may concern."""

    def record(number: int) -> None:
        with stepfork.record(tmp_path / f"{number}.yaml", tools=[tools.__name__]):
            for at in range(number):
                tools.takes(f"question {at:05} of many", again={"id": f"{at:08}"})
            tools.unlock("Zq9-hunter2")

    few, many = (searched(monkeypatch, lambda: record(number)) for number in (200, 2000))
    assert many <= 10.5 * few
