"""Outputs and results of the project's own classes through every command, each in a fresh process."""

from __future__ import annotations

import pytest
from support.command import Project

TOOLS = """
    import dataclasses, enum
    import numpy as np

    class Severity(enum.Enum):
        LOW = "low"
        HIGH = "high"

    @dataclasses.dataclass
    class Reading:
        service: str
        rates: np.ndarray

    def read(service):
        return Reading(service, np.array([0.25, 0.75]))
"""
AGENT = """
    import dataclasses
    import numpy as np
    from tools import Reading, Severity, read

    @dataclasses.dataclass
    class Verdict:
        severity: Severity
        rates: np.ndarray

        def __eq__(self, other):
            return self.severity is other.severity and (self.rates == other.rates).all()

    def run():
        reading = read("checkout")
        assert type(reading) is Reading
        return {"verdict": Verdict(Severity.HIGH, reading.rates * 2), "rates": reading.rates}
"""


@pytest.fixture
def recorded(project: Project) -> Project:
    project.write("tools.py", TOOLS)
    project.write("agent.py", AGENT)
    ended = project.record("agent:run")
    assert ended.status == 0, ended.err
    return project


def test_what_was_recorded_is_read_and_checked_without_the_classes(recorded: Project) -> None:
    (recorded.folder / "tools.py").unlink()
    (recorded.folder / "agent.py").unlink()
    shown = recorded.run("inspect", "cassettes/run.yaml")
    assert shown.status == 0, shown.err
    assert 'dataclass({"class": "tools:Reading"' in shown.out
    whole = recorded.run("inspect", "cassettes/run.yaml", "--json").json
    assert whole["calls"][0]["result"]["!dataclass"]["fields"]["service"] == "checkout"
    assert recorded.run("validate", "--verify-integrity", "cassettes/run.yaml").status == 0


def test_the_output_is_compared_when_it_is_replayed(recorded: Project) -> None:
    replayed = recorded.run("replay", "cassettes/run.yaml")
    assert replayed.status == 0, replayed.err
    assert "equals the recorded output" in replayed.out
    recorded.write("agent.py", AGENT.replace("Severity.HIGH", "Severity.LOW"))
    replayed = recorded.run("replay", "cassettes/run.yaml")
    assert replayed.status == 1
    assert "tools:Severity.HIGH" in replayed.err


def test_the_exported_test_reads_the_output_from_the_cassette(recorded: Project) -> None:
    ended = recorded.run("export", "cassettes/run.yaml", "--pytest", "--output", "tests/test_run.py")
    assert ended.status == 0, ended.err
    assert "stepfork.expect(outcome, stepfork.load(CASSETTE).output, exact=True)" in recorded.read(
        "tests/test_run.py"
    )
    tested = recorded.pytest("tests")
    assert tested.status == 0, tested.out
    recorded.write("agent.py", AGENT.replace("Severity.HIGH", "Severity.LOW"))
    tested = recorded.pytest("tests")
    assert tested.status == 1
    assert "behavior mismatch at 'verdict'" in tested.out


def test_what_a_cassette_may_construct_is_a_setting(recorded: Project) -> None:
    text = recorded.read("cassettes/run.yaml").replace("class: tools:Reading", "class: nowhere:Reading")
    assert "nowhere" in text
    recorded.write("cassettes/run.yaml", text)
    replayed = recorded.run("replay", "cassettes/run.yaml", "--integrity", "off")
    assert replayed.status == 2
    assert "'nowhere' is not imported by the program" in replayed.err
    assert "allow_classes = ['nowhere:Reading']" in replayed.err
    recorded.write("nowhere.py", TOOLS)
    option = ("--allow-classes", "other.*,nowhere.*")
    replayed = recorded.run("replay", "cassettes/run.yaml", "--integrity", "off", *option)
    assert replayed.status == 1
    assert "assert type(reading) is Reading" in replayed.err
    wrong = recorded.run("replay", "cassettes/run.yaml", "--allow-classes", "nowhere")
    assert wrong.status == 2
    assert "allow_classes must hold 'module:Class' or 'module.*'" in wrong.err
