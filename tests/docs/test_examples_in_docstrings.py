"""Every example in a docstring runs and shows what it says; every public name has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import stepfork

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(stepfork.__path__, "stepfork.")
    if not info.name.startswith(("stepfork.__main__", "stepfork.pytest_"))
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("name", stepfork.__all__)
def test_every_public_name_is_documented_with_an_example(name: str) -> None:
    documented = getattr(stepfork, name).__doc__ or ""
    errors = isinstance(getattr(stepfork, name), type) and issubclass(getattr(stepfork, name), Exception)
    assert len(documented) > 40
    assert errors or ">>>" in documented or "Example" in documented or name in ("Run", "Trajectory")
