"""The rule that a mismatch proposes for a folder with another name: it works tomorrow and elsewhere."""

from __future__ import annotations

import pytest

from stepfork.core.likeness import Likeness
from stepfork.core.matching import Mismatch, match
from stepfork.core.model import Incoming
from stepfork.core.proposals import proposal
from stepfork.core.volatile import Rules


def call(path: str) -> Incoming:
    return Incoming("tool", "t", {"p": path})


@pytest.mark.parametrize(
    ("recorded", "now", "rule", "elsewhere"),
    [
        (
            "/tmp/pytest-of-bob/pytest-7/data1/x",
            "/tmp/pytest-of-bob/pytest-7/data0/x",
            r"/data[^/\\\s]+",
            ("/tmp/pytest-of-eve/pytest-3/data1/x", "/tmp/pytest-of-eve/pytest-3/data4/x"),
        ),
        (
            "/srv/t/tmpab12cd/in.csv",
            "/srv/t/tmpxy34zw/in.csv",
            r"/tmp[^/\\\s]+",
            ("/var/folders/q/tmpab12cd/in.csv", "/var/folders/q/tmp__k3u/in.csv"),
        ),
        (
            "/home/bob/runs/17/out",
            "/home/bob/runs/18/out",
            r"/runs/[^/\\\s]+",
            ("/x/runs/17/out", "/x/runs/4/out"),
        ),
        (
            "/w/job-12/step/a1/log",
            "/w/job-13/step/a2/log",
            r"/job\-[^/\\\s]+/step/a[^/\\\s]+",
            ("/v/job-12/step/a1/log", "/v/job-7/step/a9/log"),
        ),
        (r"C:\runs\17\a", r"C:\runs\18\a", r"\\runs\\[^/\\\s]+", (r"D:\runs\17\a", r"D:\runs\3\a")),
    ],
)
def test_it_begins_behind_what_differs_between_machines(
    recorded: str, now: str, rule: str, elsewhere: tuple[str, str]
) -> None:
    said = proposal(call(recorded), call(now), Mismatch("args", "p", recorded, now))
    assert said == f"only a path differs; if it does in every run: normalize = {{'{rule}' = \"<path>\"}}"
    trial = Likeness(Rules.compile(((rule, "<path>"),))).trial()
    assert match(call(elsewhere[0]), call(elsewhere[1]), trial.same_text, asks_all=trial.asks_all) is None


def test_nothing_is_proposed_that_would_fit_any_path() -> None:
    assert proposal(call("/x"), call("/y"), Mismatch("args", "p", "/x", "/y")) == ""
