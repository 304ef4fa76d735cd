"""What every test may use: modules made on the spot, a chat server, and a clean stepfork afterwards."""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.chat_server import ChatServer, chat_server
from support.examples import factor, register

import stepfork
from stepfork.session import active
from stepfork.session.workspace import workspace

_numbers = itertools.count()
register()  # before the tests are imported: what they say of their examples starts from the profile in force


def pytest_configure() -> None:
    """A number of examples that is none ends the run before it starts."""
    factor()


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No key and no setting from outside; nothing patched and no session open afterwards."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "STEPFORK_MODE", "CI"):
        monkeypatch.delenv(name, raising=False)
    yield
    stepfork.unpatch()
    workspace.configure(root=None, base={}, options={})
    assert not active.any_open(), "a test left a session open"


@pytest.fixture
def make_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Writes a module under a name of its own and imports it (unless ``load=False``: then only its name)."""
    made: list[str] = []
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(source: str, name: str = "", load: bool = True) -> ModuleType:
        name = name or f"mod_{next(_numbers)}"
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), "utf-8")
        made.append(name)
        importlib.invalidate_caches()
        if load:
            return importlib.import_module(name)
        return ModuleType(name)

    yield make
    for name in made:
        for loaded in [key for key in sys.modules if key == name or key == name.partition(".")[0]]:
            del sys.modules[loaded]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A chat server that says back what it is told."""
    with chat_server() as running:
        yield running
