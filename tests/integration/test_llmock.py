"""A faulty server (llmock, in an environment of its own): its faults are recorded and come back alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from support.servers import llmock

import stepfork

M = [{"role": "user", "content": "hi"}]


def outcome(url: str, **options: Any) -> Any:
    """What the agent saw: the chunks or the answer, and the error if there was one."""
    seen: list[Any] = []
    with openai.OpenAI(base_url=url, max_retries=0) as client:
        try:
            answer = client.chat.completions.create(model="gpt-4o", messages=M, **options)
            if options.get("stream"):
                seen.extend(chunk.model_dump() for chunk in answer)
            else:
                seen.append(answer.model_dump())
        except openai.APIStatusError as error:
            kept = {"retry-after": error.response.headers.get("retry-after")}
            return seen, type(error), error.status_code, error.body, kept
        except (openai.APIError, ValueError) as error:
            return seen, type(error), str(error)
    return seen


def record_and_replay(url: str, path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with stepfork.record(path):
        recorded = outcome(url, **options)
    monkeypatch.delenv("OPENAI_API_KEY")
    with stepfork.replay(path) as run:
        assert outcome("http://127.0.0.1:9/v1", **options) == recorded
    assert (run.counts.substituted, run.counts.live) == (1, 0)
    return recorded


def test_429s_come_back_as_429s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with llmock("--error-rate-429", "1.0") as url:
        recorded = record_and_replay(url, tmp_path / "run.yaml", monkeypatch)
    assert recorded[1] is openai.RateLimitError
    assert recorded[2] == 429


@pytest.mark.parametrize("fault", ["disconnect", "truncate", "malformed"])
def test_broken_streams_break_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    with llmock("--stream-fault", f"{fault}=1.0", "--response-style", "varied") as url:
        record_and_replay(url, tmp_path / "run.yaml", monkeypatch, stream=True)


def test_a_good_answer_and_a_good_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with llmock("--response-style", "varied") as url:
        answer = record_and_replay(url, tmp_path / "one.yaml", monkeypatch)
        chunks = record_and_replay(url, tmp_path / "two.yaml", monkeypatch, stream=True)
    assert answer[0]["object"] == "chat.completion"
    assert len(chunks) > 1
