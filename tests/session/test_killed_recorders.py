"""Recorders that are killed at random: what they leave is whole and says what the program had seen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import killed
from support.chat_server import chat_server

import stepfork
from stepfork.cassette.store import StoredCassette
from stepfork.core.model import Call

KILLS = 200


@pytest.fixture(scope="module")
def graves(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of recorders that were killed, each with what its program had seen of the run."""
    folder = tmp_path_factory.mktemp("killed")
    with chat_server() as server:
        done = subprocess.run(
            [sys.executable, killed.__file__, str(folder), server.url, str(KILLS), "7"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return [folder / f"killed{at}" for at in range(KILLS)]


def numbers(calls: tuple[Call, ...]) -> Iterator[int]:
    """The numbers of all calls of a trajectory."""
    for call in calls:
        if call.kind == "tool":
            yield call.args["n"]
        else:
            yield int(call.args["messages"][-1]["content"].split()[1])
        yield from numbers(call.children)


def test_C92_no_good_cassette_is_damaged_and_what_was_seen_is_in_the_file(graves: list[Path]) -> None:
    good = (graves[0].parent / "warm.yaml").read_bytes()
    states: Counter[str] = Counter()
    for grave in graves:
        seen = json.loads((grave / "seen.json").read_text())
        path, partial = grave / "run.yaml", grave / "run.partial.yaml"
        left = {file.name for file in grave.iterdir()} - {"seen.json"}
        assert left <= {"run.yaml", "run.partial.yaml", ".run.yaml.new"}, left
        finished = False
        if path.exists() and path.read_bytes() != good:
            cassette = StoredCassette(path)
            assert (cassette.verdict, cassette.status) == ("ok", "completed")
            finished = True
        if "end" in seen:
            assert finished
            assert left == {"run.yaml"}
            continue_with = path
        elif partial.exists() and partial.stat().st_size:
            continue_with = partial
        else:
            assert finished or not seen
            states["nothing" if not finished else "finished"] += 1
            if not finished:
                continue
            continue_with = path
        trajectory = stepfork.load(continue_with)
        states[trajectory.status] += 1
        found = Counter(numbers(trajectory.calls))
        assert max(found.values(), default=0) <= 1
        answered = {int(word) for word in seen if word != "end"}
        assert answered <= set(found), (grave, answered - set(found))
    assert states["partial"] > KILLS / 10, states
    assert states["completed"] > KILLS / 20, states


def test_what_is_left_replays_as_far_as_it_goes(graves: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program, on the same dice, gets the recorded answers, and ends where they end, if they do."""
    import random

    import openai

    monkeypatch.syspath_prepend(str(graves[0].parent))
    import killtools  # type: ignore[import-not-found]

    partials = [at for at, grave in enumerate(graves) if (grave / "run.partial.yaml").exists()]
    went = ended_early = 0
    with openai.OpenAI(base_url="http://127.0.0.1:1/v1", api_key="none", max_retries=0) as client:
        for at in partials[::4]:
            partial = graves[at] / "run.partial.yaml"
            if not partial.stat().st_size or StoredCassette(partial).status != "partial":
                continue
            before = partial.read_bytes()
            dice, seen = random.Random(7000 + at), []
            dice.random()
            try:
                with stepfork.replay(partial, tools=["killtools"]) as run:
                    killed.agent(killtools, client, dice, seen.append)
            except stepfork.StepforkError:
                ended_early += 1
            else:  # it was killed between its last call and its end
                assert run.counts.substituted == run.counts.recorded == len(run.calls)
            assert (run.counts.live, run.counts.tool_bodies_executed) == (0, 0)
            assert run.counts.recorded == len(stepfork.load(partial).calls)
            left = run.counts.recorded - run.counts.substituted
            assert 0 <= left <= 2, "of three calls made at once the one that is not recorded may come first"
            went += len(seen)
            assert partial.read_bytes() == before
    assert went > 10
    assert ended_early > 3
