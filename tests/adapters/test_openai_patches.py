"""Patches of the OpenAI SDK: what was there before, what comes after, what lies above and below."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import openai
import pytest
from adapters.openai_rows import NOWHERE, VERSION, M
from support.chat_server import ChatServer

import stepfork


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def test_a_client_made_before_the_patch_is_caught(server: ChatServer, path: Path) -> None:
    with openai.OpenAI(base_url=server.url, api_key="sk-live") as client:
        create = client.chat.completions.create
        with stepfork.record(path):
            recorded = create(model="m", messages=M).model_dump()
        server.stop()
        with stepfork.replay(path):
            assert create(model="m", messages=M).model_dump() == recorded


def test_the_module_level_client_and_a_subclass(
    server: ChatServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine(openai.OpenAI):
        pass

    def agent() -> Any:
        with Mine(base_url=server.url, api_key="k") as mine:
            first = mine.chat.completions.create(model="m", messages=M).model_dump()
        second = openai.chat.completions.create(model="m", messages=M).model_dump()
        return first, second

    monkeypatch.setattr(openai, "base_url", server.url)
    monkeypatch.setattr(openai, "api_key", "k")
    with stepfork.record(path):
        recorded = agent()
    server.stop()
    with stepfork.replay(path):
        assert agent() == recorded
    assert len(stepfork.load(path).calls) == 2, "C64: exactly one call a call"


def test_unpatch_restores_the_identical_objects() -> None:
    from openai import _base_client

    owners = [openai.OpenAI, openai.AsyncOpenAI, openai.AzureOpenAI, openai.AsyncAzureOpenAI,
              _base_client.BaseClient, _base_client.SyncAPIClient, _base_client.AsyncAPIClient]  # fmt: skip
    before = [dict(vars(owner)) for owner in owners]
    stepfork.autopatch()
    stepfork.autopatch()
    request = vars(_base_client.SyncAPIClient)["request"]
    assert request is not before[5]["request"]
    assert request.__wrapped__ is before[5]["request"], "wrapped once, however often autopatch was called"
    stepfork.unpatch()
    after = [dict(vars(owner)) for owner in owners]
    assert all(
        a.keys() == b.keys() and all(a[k] is b[k] for k in a) for a, b in zip(before, after, strict=True)
    )


def test_a_patch_over_ours_is_left_alone_and_ours_goes_inert(server: ChatServer) -> None:
    from openai._base_client import SyncAPIClient

    stepfork.autopatch()
    ours = SyncAPIClient.__dict__["request"]
    theirs_saw = []

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        theirs_saw.append(1)
        return ours.__get__(self, type(self))(*args, **kwargs)

    original = ours.__wrapped__
    SyncAPIClient.request = theirs  # type: ignore[method-assign]
    try:
        with pytest.warns(UserWarning, match="patched again by another library"):
            stepfork.unpatch()
        with openai.OpenAI(base_url=server.url, api_key="k") as client:
            client.chat.completions.create(model="m", messages=M)
        assert theirs_saw == [1]
    finally:
        SyncAPIClient.request = original  # type: ignore[method-assign]


def test_a_mock_over_our_patch_wins_and_ours_survives_it(server: ChatServer, path: Path) -> None:
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        recorded = client.chat.completions.create(model="m", messages=M).model_dump()
    with stepfork.replay(path), openai.OpenAI(base_url=NOWHERE) as client:
        kind = "openai._base_client.SyncAPIClient.request"
        with mock.patch(kind, return_value="mocked"):
            assert client.chat.completions.create(model="m", messages=M) == "mocked"
        assert client.chat.completions.create(model="m", messages=M).model_dump() == recorded


if VERSION >= (1, 54):  # older ones have no websockets

    def test_websockets_are_let_through_where_no_session_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
        stepfork.autopatch()
        client: Any = openai.OpenAI(api_key="k", base_url=NOWHERE)
        realtime = client.realtime if hasattr(client, "realtime") else client.beta.realtime
        manager = realtime.connect(model="m")
        with pytest.raises(Exception) as caught, manager:
            pass
        assert not isinstance(caught.value, stepfork.StepforkError)
        client.close()
