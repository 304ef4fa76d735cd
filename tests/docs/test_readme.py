"""Runs the README as a new user would: its files in an empty folder, its commands in order, a real model.

Its links, and those of the other pages, lead somewhere; the rest of the pages is left to their own tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import ROOT, llama

README = (ROOT / "README.md").read_text("utf-8")
FILE = re.compile(r"`(\w+\.py)`[^\n]*:\n\n```python\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
ADDRESS = "http://127.0.0.1:8101/v1"


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with llama() as url:
        yield url


def steps() -> Iterator[tuple[str, list[str]]]:
    """Each command of the README with the lines it shows below it."""
    for block in CONSOLE.findall(README):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield command, shown


def test_every_command_of_the_readme_does_what_it_says(model: str, tmp_path: Path) -> None:
    for name, source in FILE.findall(README):
        (tmp_path / name).write_text(source)
    assert {path.name for path in tmp_path.iterdir()} == {
        "shop_tools.py",
        "shop.py",
        "conftest.py",
        "test_shop.py",
    }
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment["COLUMNS"] = "200"
    count = 0
    for command, shown in steps():
        code = 1 if command.endswith("# exits with 1") else 0
        result = subprocess.run(
            command.replace(ADDRESS, model),
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        output = result.stdout + result.stderr
        assert result.returncode == code, f"{command}\n{output}"
        for line in shown:
            assert line in output, f"{command} does not show {line!r}:\n{output}"
        count += 1
    assert count >= 12


def test_the_code_block_runs(model: str, tmp_path: Path) -> None:
    for name, source in FILE.findall(README):
        if name.startswith("shop"):
            (tmp_path / name).write_text(source)
    (block,) = re.findall(r"without either:\n\n```python\n(.*?)```", README, re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text("import shop\nimport stepfork\n\n" + block)
    environment = {**os.environ, "OPENAI_BASE_URL": model, "OPENAI_API_KEY": "none"}
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, env=environment, check=True)


def test_the_readme_never_says_to_install_from_the_index() -> None:
    assert "pip install stepfork" not in README


def test_every_link_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_readme_leads_to_every_page() -> None:
    readme = set(re.findall(r"\]\(([^)#]+)", README))
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md"), ROOT / "CHANGELOG.md"]
    assert {page.relative_to(ROOT).as_posix() for page in pages} <= readme


def headings(page: Path) -> set[str]:
    """The anchors of a page, made as the usual hosts of git make them."""
    titles = re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_into_a_page_names_a_heading_of_it() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")]
    links = 0
    for page in pages:
        for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)", page.read_text("utf-8")):
            assert heading in headings(page.parent / target if target else page), f"{page}: #{heading}"
            links += 1
    assert links


def test_every_file_that_the_page_on_how_it_is_built_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("stepfork/**/*.py")}
    named = re.findall(r"`([\w./-]+\.py)`", page)
    assert len(named) > 30
    for name in named:
        assert any(f"/{file}".endswith(f"/{name}") for file in files), name


def test_no_file_says_where_the_checkout_is() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = [ROOT / name for name in listed.stdout.split("\0") if name] or [*ROOT.glob("stepfork/**/*.py")]
    places = [f"{place}/" for place in (ROOT, Path(sys.prefix), Path.home()) if len(place.parts) > 2]
    for file in files:
        text = file.read_text("utf-8", "replace") if file.is_file() else ""
        for place in places:
            assert place not in text, f"{file} names {place}"
