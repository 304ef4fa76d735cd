"""The user's table of prices: read, used, refused."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chat_server import ChatServer
from support.examples import examples

import stepfork
from stepfork.cassette.usage import Usage, usage_of
from stepfork.session.prices import Prices, read_prices
from stepfork.session.spending import Spending


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.toml", 'currency = "CHF"\n["gpt-4.1"]\ninput = 2\noutput = 8.5\n'),
        ("p.json", '{"currency": "CHF", "gpt-4.1": {"input": 2, "output": 8.5}}'),
    ],
)
def test_toml_and_json(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_prices(tmp_path / name) == Prices("CHF", {"gpt-4.1": (2.0, 8.5)})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'currency' must be a text"),
        ("currency = 1", "'currency' must be a text"),
        ('currency = "USD"', "names no model"),
        ('currency = "USD"\n[m]\ninput = 1', "'m' must have 'input' and 'output'"),
        ('currency = "USD"\n[m]\ninput = 1\noutput = 2\ncached = 3', "'m' must have 'input' and 'output'"),
        ('currency = "USD"\nm = 3', "'m' must have 'input' and 'output'"),
        ('currency = "USD"\n[gpt-4.1]\ninput = 1\noutput = 2', "a name with dots stands in quotes"),
        ('currency = "USD"\n[m]\ninput = -1\noutput = 2', "input must be a number from 0 on, not -1"),
        ('currency = "USD"\n[m]\ninput = nan\noutput = 2', "input must be a number from 0 on, not nan"),
        ('currency = "USD"\n[m]\ninput = true\noutput = 2', "input must be a number from 0 on, not True"),
        ('currency = "USD"\n[m]\ninput = "1"\noutput = 2', "input must be a number from 0 on, not '1'"),
        ("currency = USD", "cannot be read: "),
        ("\0", "cannot be read: "),
    ],
)
def test_a_malformed_table_is_refused_before_anything_is_sent(
    text: str, problem: str, tmp_path: Path, server: ChatServer
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(text)
    with (
        pytest.raises(stepfork.ConfigError, match="prices: ") as caught,
        stepfork.record(tmp_path / "run.yaml", prices=prices),
    ):
        pass
    assert problem in str(caught.value)
    assert "prices.toml" in str(caught.value)
    assert list(tmp_path.iterdir()) == [prices]


@pytest.mark.parametrize("text", ["[]", "{", '{"currency": "USD", "m": [1, 2]}'])
def test_malformed_json(text: str, tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text(text)
    with pytest.raises(stepfork.ConfigError, match="prices"):
        read_prices(tmp_path / "prices.json")


def test_a_missing_table_and_what_is_no_path(tmp_path: Path) -> None:
    with (
        pytest.raises(stepfork.ConfigError, match=r"none\.toml cannot be read"),
        stepfork.record(tmp_path / "run.yaml", prices=tmp_path / "none.toml"),
    ):
        pass
    with pytest.raises(stepfork.ConfigError, match="prices must be a path"):
        stepfork.record(tmp_path / "run.yaml", prices=3)


def test_a_frozen_replay_costs_nothing_and_reads_no_table(tmp_path: Path, server: ChatServer) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('currency = "USD"\n[m]\ninput = 1000000\noutput = 1\n')

    def go() -> None:
        with openai.OpenAI(base_url=server.url, api_key="k") as client:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])

    with stepfork.record(tmp_path / "run.yaml", prices=prices) as run:
        go()
    assert run.spending.cost == {"USD": pytest.approx(3.000004)}
    assert run.spending.text() == "1 request sent, 7 tokens spent, estimated cost 3.00 USD"
    prices.unlink()
    with stepfork.replay(tmp_path / "run.yaml", prices=prices) as run:
        go()
    assert (run.spending, run.tokens) == (Spending(), 7)


COUNT = st.integers(0, 10**9)


@examples(100)
@given(asked=COUNT, said=COUNT, names=st.sampled_from(["prompt completion", "input output"]))
def test_usage_is_read_whatever_it_is_called(asked: int, said: int, names: str) -> None:
    first, second = names.split()
    full = {f"{first}_tokens": asked, f"{second}_tokens": said, "total_tokens": asked + said}
    for left_out in (None, *full):
        usage = {key: value for key, value in full.items() if key != left_out}
        assert usage_of({"response": {"usage": usage, "model": "x"}}) == Usage(asked, said, "x")


@pytest.mark.parametrize("usage", [None, {}, [], {"total_tokens": "7"}, {"prompt_tokens": True}])
def test_what_is_no_usage(usage: object) -> None:
    assert usage_of({"response": {"usage": usage}}) is None  # type: ignore[dict-item]
    assert usage_of({"response": usage}) is None  # type: ignore[dict-item]
    assert usage_of({"error": {"class": "E"}}) is None


AMOUNTS = st.builds(
    Spending,
    requests=COUNT,
    input_tokens=COUNT,
    output_tokens=COUNT,
    unstated=COUNT,
    cost=st.dictionaries(st.sampled_from(["USD", "EUR"]), st.integers(0, 1000).map(float)),
    unpriced=st.lists(st.sampled_from("abc"), unique=True),
)


@examples(100)
@given(parts=st.lists(AMOUNTS), data=st.data())
def test_the_sum_does_not_depend_on_the_order(parts: list[Spending], data: st.DataObject) -> None:
    sums = []
    for order in (parts, data.draw(st.permutations(parts))):
        total = Spending()
        for part in order:
            total.add(part)
        sums.append({**total.json(), "unpriced": sorted(total.unpriced)})
    assert sums[0] == sums[1]
