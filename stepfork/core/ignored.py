"""Which places of a call do not count when it is compared: the rules of ``ignore``. Knows calls and paths.

A rule is ``KIND:PATH``, ``KIND:NAME:PATH`` or, for a tool, ``NAME:PATH``; the name of an LLM call is its
endpoint or model. A path is that of a mismatch, with ``[*]`` for every item and ``.*`` for every key:
``llm:messages[*].metadata.request_id``, ``search:options.trace_id``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, get_args

from stepfork.core.model import Incoming, Kind, Plain, Tagged
from stepfork.errors import ConfigError

_KINDS: Final = get_args(Kind)
_STEP: Final = re.compile(
    r"""(?:\.|^)(?P<key>[^\W\d][\w-]*|\*)|\[(?P<index>\d+|\*)\]|\[(?P<odd>"(?:[^"\\]|\\.)*")\]"""
)
_NAME: Final = re.compile(r"""((?:[^"\[]|\[\d+\])*):(.*)""", re.DOTALL)
_ANY: Final = "*"
_NOTHING: Final = "<ignored>"
"""What stands for an item of a list that does not count: how many there are still does."""

Step: TypeAlias = str | int
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the kind of the calls, their name ("" for all), and the steps to the place."""

    kind: str
    name: str
    steps: Steps

    def applies(self, call: Incoming) -> bool:
        """Whether it says something of a call."""
        if self.kind != call.kind:
            return False
        return self.name in ("", call.name, call.alias) or (call.kind == "llm" and self.name == _model(call))


@dataclass(frozen=True, slots=True)
class Ignored:
    """The rules of one session.

    >>> ignored = Ignored.compile(["tool:trace.id"])
    >>> ignored.without(Incoming("tool", "search", {"q": "go", "trace": {"id": 7, "of": 1}})).args
    {'q': 'go', 'trace': {'of': 1}}
    """

    rules: tuple[Rule, ...] = ()

    @classmethod
    def compile(cls, rules: Iterable[str]) -> Ignored:
        """Checked rules.

        Raises:
            ConfigError: for one that is none.
        """
        return cls(tuple(map(_rule, rules)))

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that rules name.

        >>> Ignored.compile(["search:client", "tool:db", "llm:gpt-4o:user"]).tools
        ('search',)
        """
        return tuple(rule.name for rule in self.rules if rule.kind == "tool" and rule.name)

    def arguments(self, names: Iterable[str]) -> frozenset[str]:
        """The arguments of a tool (by its name and alias) that do not count as a whole; they are left out.

        >>> sorted(Ignored.compile(["search:client", "tool:db", "search:options.id"]).arguments(["search"]))
        ['client', 'db']
        """
        return frozenset(
            str(rule.steps[0])
            for rule in self.rules
            if rule.kind == "tool" and len(rule.steps) == 1 and rule.name in ("", *names)
        )

    def without(self, call: Incoming) -> Incoming:
        """The call without what does not count of it; the same object if all of it does."""
        paths = [rule.steps for rule in self.rules if rule.applies(call)]
        if not paths:
            return call
        args = _without(call.args, paths)
        return call if args is call.args else replace(call, args=args)


def _model(call: Incoming) -> Plain:
    return call.args.get("model") if isinstance(call.args, dict) else None


def _rule(text: str) -> Rule:
    kind, colon, rest = text.strip().partition(":")
    if kind not in _KINDS:
        kind, rest = "tool", text.strip()
        colon = ""
    found = _NAME.fullmatch(rest)
    name, path = (found[1], found[2]) if found else ("", rest)
    if (not colon and not name) or not path:
        raise ConfigError(
            f"ignore: {text!r} is no rule; say which calls and where, as in 'llm:messages[*].id' or "
            "'search:options.id'"
        )
    return Rule(kind, name, _steps(path, text))


def _steps(path: str, text: str) -> Steps:
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (at and found[0][0] not in ".["):
            raise ConfigError(
                f"ignore: {text!r}: {path[at:]!r} is no place; a path is as in 'messages[*].meta[\"a b\"].id'"
            )
        if found["key"] is not None:
            steps.append(found["key"])
        elif found["odd"] is not None:
            steps.append(str(json.loads(found["odd"])))
        else:
            steps.append(_ANY if found["index"] == _ANY else int(found["index"]))
        at = found.end()
    return tuple(steps)


def _without(value: Plain, paths: Sequence[Steps]) -> Plain:
    """The value without what stands at the end of these paths."""
    if isinstance(value, Tagged):
        inner = _without(value.value, paths)
        return value if inner is value.value else Tagged(value.tag, inner)
    if isinstance(value, dict):
        mapping: dict[str, Plain] = {}
        for key, item in value.items():
            further = [steps[1:] for steps in paths if steps[0] in (key, _ANY)]
            if () not in further:
                mapping[key] = _without(item, further) if further else item
        same = len(mapping) == len(value) and all(mapping[key] is item for key, item in value.items())
        return value if same else mapping
    if isinstance(value, list):
        items: list[Plain] = []
        for at, item in enumerate(value):
            further = [steps[1:] for steps in paths if steps[0] in (at, _ANY)]
            items.append(_NOTHING if () in further else _without(item, further) if further else item)
        return value if all(new is item for new, item in zip(items, value, strict=True)) else items
    return value
