"""Which rules of a user are taken and which refused."""

from __future__ import annotations

from typing import Any

import pytest

from stepfork.core.redaction_rules import Rules
from stepfork.errors import ConfigError


@pytest.mark.parametrize("setting", ["keys", "patterns", "allow"])
@pytest.mark.parametrize("bad", [None, [None], [""], ["  "], [3], 3, "text", {"a": "b"}, b"x", True])
def test_c118_a_null_or_empty_rule_is_refused(setting: str, bad: Any) -> None:
    with pytest.raises(ConfigError, match=f"redact_{setting} must"):
        Rules.compile(**{setting: bad})


@pytest.mark.parametrize(
    ("setting", "rule", "says"),
    [
        ("patterns", "(", r"redact_patterns: '\(' is not a regular expression"),
        ("allow", "[", r"redact_allow: '\[' is not a regular expression"),
        ("patterns", "a*", "redact_patterns: 'a\\*' fits the empty text"),
        ("keys", "--", "redact_keys: '--' is no name of a key"),
        ("keys", "k" * 65, "over 64 characters"),
    ],
)
def test_a_rule_that_makes_no_sense_is_named(setting: str, rule: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Rules.compile(**{setting: [rule]})
