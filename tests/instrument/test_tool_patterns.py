"""What a pattern says, and which texts are none."""

from __future__ import annotations

import pytest

from stepfork.errors import ConfigError
from stepfork.instrument.tool_patterns import parse_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (
            "myagent.tools",
            ["myagent.tools"],
            ["myagent", "myagent.tools.web", "myagent.tools2", "x.myagent.tools"],
        ),
        (
            "myagent.tools.*",
            ["myagent.tools.a", "myagent.tools.a.b.c"],
            ["myagent.tools", "myagent.toolsa", "myagent"],
        ),
        (
            "myagent.*_tools",
            ["myagent.web_tools", "myagent._tools"],
            ["myagent.web_tools.a", "myagent.a.web_tools"],
        ),
        ("myagent.*.tools", ["myagent.a.tools"], ["myagent.tools", "myagent.a.b.tools", "myagentxa.tools"]),
        ("agent*.tools.*", ["agents.tools.x", "agent.tools.x.y"], ["agents.tools", "myagent.tools.x"]),
        ("m:lookup", ["m"], ["m.lookup", "mm"]),
        ("m.*:lookup", ["m.a", "m.a.b"], ["m"]),
        ("__main__", ["__main__"], ["main"]),
    ],
)
def test_matches_modules(pattern, matching, other):
    parsed = parse_pattern(pattern)
    assert parsed.text == pattern
    assert [name for name in matching + other if parsed.matches_module(name)] == matching
    assert parsed.has_wildcard == ("*" in pattern)


def test_parts_of_a_pattern():
    pattern = parse_pattern("a.b:Class.method")
    assert (pattern.module, pattern.target) == ("a.b", "Class.method")
    assert parse_pattern("a.b").target == ""
    assert hash(pattern) == hash(parse_pattern("a.b:Class.method"))
    with pytest.raises(AttributeError):
        pattern.module = "c"


@pytest.mark.parametrize(
    "text",
    ["", " ", "a b", "a.", ".a", "a..b", "a:", ":f", "a:b:c", "a:b.", "a:*", "a:B.*", "*", "*.tools", "a.**",
     "a/b.py", "a?", "a.[bc]", "1a", "a: f", None, 3],
)  # fmt: skip
def test_malformed_patterns(text):
    with pytest.raises(ConfigError) as raised:
        parse_pattern(text)
    assert str(raised.value).startswith(f"{text!r} is not a tool pattern; write one like 'myagent.tools'")
    assert "\n" not in str(raised.value)
