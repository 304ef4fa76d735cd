"""Faults that attacks on the first version of the command line found."""

from __future__ import annotations

import subprocess
import sys

from support.command import Project


def test_an_exception_whose_text_cannot_be_read(project: Project) -> None:
    project.write(
        "odd.py",
        """
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        def run():
            raise Odd("x")
        """,
    )
    ended = project.run("record", "odd:run", "-o", "odd.yaml")
    assert ended.status == 1
    assert "encode_exception" not in ended.err
    assert (project.folder / "odd.yaml").exists()
    assert "encode_exception" not in project.run("replay", "odd.yaml").err


def test_an_argument_named_twice_is_refused(project: Project) -> None:
    ended = project.run("record", "agent:run", "--args", '{"service": "a", "service": "b"}', "-o", "x.yaml")
    assert ended.status == 2
    assert "'service' stands twice" in ended.complaint
    assert not (project.folder / "x.yaml").exists()


def test_output_that_goes_nowhere_gives_no_traceback(recorded: Project) -> None:
    for ending in (">&-", ">/dev/full"):
        command = f"{sys.executable} -m stepfork inspect cassettes/run.yaml {ending}"
        done = subprocess.run(
            ["sh", "-c", command], cwd=recorded.folder, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, ending
        assert "Exception" not in done.stderr, ending


def test_an_entrypoint_named_entrypoint_exports_clean(project: Project) -> None:
    project.write("ep.py", "import tools\n\n\ndef entrypoint():\n    return tools.lookup('a')\n")
    assert project.run("record", "ep:entrypoint", "--tools", "tools", "-o", "ep.yaml").status == 0
    assert project.run("export", "ep.yaml", "--pytest", "--output", "test_ep.py").status == 0
    assert "from ep import entrypoint\n" in project.read("test_ep.py")
    assert project.pytest("test_ep.py").status == 0
