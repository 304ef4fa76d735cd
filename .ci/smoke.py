"""Installs a wheel in a fresh environment outside the checkout and uses it: CLI, pytest, record, replay."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

AGENT = """
from tools import weather

def run(city: str) -> dict:
    report = weather(city)
    return {"city": city, "umbrella": report["rain"] > 0.5}
"""
TOOLS = """
def weather(city: str) -> dict:
    with open("bodies.txt", "a") as file:
        file.write("x")
    return {"city": city, "rain": 0.8}
"""
TEST = """
import agent

def test_umbrella(stepfork_run):
    assert agent.run("Oslo")["umbrella"]
"""


def main(wheel: Path) -> None:
    """Exits with a message at the first thing that is not as it should be."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("STEPFORK_", "OPENAI_"))
    }
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        venv.create(folder / "env", with_pip=True)
        programs = folder / "env" / "bin"

        def run(*command: str, code: int = 0) -> str:
            result = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            output = result.stdout + result.stderr
            print(
                f"$ {' '.join(command).replace(str(folder), '.')}\n{output.replace(str(folder), '.')}", end=""
            )
            if result.returncode != code:
                sys.exit(f"expected exit code {code}, got {result.returncode}")
            return output

        def expect(text: str, output: str) -> None:
            if text not in output:
                sys.exit(f"expected {text!r} in the output")

        python, stepfork = str(programs / "python"), str(programs / "stepfork")
        run(python, "-m", "pip", "install", "--quiet", f"{wheel.resolve()}[pytest]")
        (folder / "agent.py").write_text(AGENT)
        (folder / "tools.py").write_text(TOOLS)
        expect("stepfork", run(stepfork, "--version"))
        run(stepfork, "record", "agent:run", "--tools", "tools", "--args", '["Oslo"]', "-o", "run.yaml")
        expect("1 substituted", run(stepfork, "replay", "run.yaml"))
        run(stepfork, "validate", "--verify-integrity", "run.yaml")
        run(stepfork, "export", "run.yaml", "--pytest", "--output", "test_exported.py")
        (folder / "test_agent.py").write_text(TEST)
        (folder / "conftest.py").write_text("import stepfork\n\nstepfork.autopatch(tools=['tools'])\n")
        pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error")
        expect("1 newly recorded", run(*pytest, "--stepfork-mode=record", "test_agent.py"))
        expect("2 tests, 2 calls replayed, 0 live", run(*pytest))
        (folder / "agent.py").write_text(AGENT.replace("weather(city)", "weather(city + '!')"))
        expect('expected "Oslo", got "Oslo!"', run(*pytest, code=1))
        run(stepfork, "replay", "run.yaml", code=1)
        if (folder / "bodies.txt").read_text() != "xx":
            sys.exit("a tool body ran on replay")
    print("the wheel works")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
