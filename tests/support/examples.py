"""How many examples a Hypothesis test draws, and from which seed. Knows no test.

EXAMPLES=20 draws twenty times as many. They are the same at every run, but under the profile "random".
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

VARIABLE = "EXAMPLES"
PHASES = [phase for phase in Phase if phase is not Phase.explain]  # it takes minutes, and says little
UNTIMED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def factor() -> int:
    """What the numbers of examples are multiplied by, as the environment says."""
    said = os.environ.get(VARIABLE, "1")
    if not (said.isascii() and said.isdigit() and int(said) > 0):
        raise pytest.UsageError(f"{VARIABLE} is {said!r}, not a whole number from 1 up: correct or unset it")
    return int(said)


def register() -> None:
    """Puts "fixed" in force, which CI draws; --hypothesis-profile=random chooses the other."""
    settings.register_profile("fixed", derandomize=True, database=None)
    settings.register_profile("random", derandomize=False)
    settings.load_profile("fixed")


def examples(number: int, **more: Any) -> settings:
    """For a test that draws ``number`` examples, times the factor: ``@examples(100)`` above ``@given``."""
    more = {"deadline": None, "suppress_health_check": UNTIMED, "phases": PHASES, **more}
    return settings(max_examples=number * factor(), **more)
