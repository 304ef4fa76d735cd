"""The secrets that their form alone gives away. Knows shapes; asks for no key and no context.

One row in `SHAPES` for each form (``ghp_...``). All of it takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from stepfork.core.secret_names import is_word


class Span(NamedTuple):
    """Where a secret stands in a text. The lower its `rank`, the more its shape says by itself."""

    start: int
    rank: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A secret known by its form. Every match holds the character `mark` and one of `hints`."""

    label: str
    mark: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    group: int = 0
    check: Callable[[str], bool] = bool


def _prefixed(prefix: str, body: str) -> re.Pattern[str]:
    """`prefix` where no word runs on before it, then `body`. The literal comes first: that is fast."""
    boundary = rf"(?:(?<![A-Za-z0-9_-]{prefix})|(?<=\\[nrt]{prefix})|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{prefix}))"
    return re.compile(prefix + boundary + body)


RUN: Final = re.compile(r"[A-Za-z0-9]{16}|\d{9}|(?=[A-Za-z]{0,9}\d)(?=\d{0,9}[A-Za-z])[A-Za-z0-9]{10}")
"""A run of characters that no word has."""


def _looks_random(key: str) -> bool:
    """Tells ``sk-proj-8fK2...`` from ``sk-learn-compatible-estimators``."""
    body = key[3:300]
    if RUN.search(body):
        return True
    return len(body) >= 24 and all(re.search(kind, body) for kind in ("[a-z]", "[A-Z]", "[0-9]"))


_REFERENCE: Final = re.compile(
    r"""\$\{?\w+\}?\Z | \$\( | %\w*%?\Z | %\( | [{<\[]        # $TOKEN, ${TOKEN}, %TOKEN%, {token}, <token>
      | [*•._-]+\Z | [xX]+\Z                                  # a mask
      | [A-Z]+(?:_[A-Z]+)+\Z | (?i:your|my|the)[_-]           # YOUR_API_KEY
      | arn: | AWS4-HMAC | \w+://(?!\S*@) | (?:~|\.{1,2})?/[a-z_.][\w.@/-]*\Z    # a name, an address, a path
      | \d{4}-\d\d-\d\d                                       # a date
    """,
    re.VERBOSE,
)
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")


def is_reference(value: str) -> bool:
    """Whether a value stands for a secret without being one: ``$TOKEN``, ``YOUR_API_KEY``, ``self.token``."""
    if _REFERENCE.match(value) or is_word(value):
        return True
    return bool(_DOTTED.match(value)) and sum(map(str.isdigit, value)) < 3


_B: Final = "[A-Za-z0-9_-]"
_KEY_BODY: Final = re.compile(
    r"-----[^-]*-----(?:.*?[A-Za-z0-9+/=]{24}|[ \t]*(?:\n|\r|\\[nr])[A-Za-z0-9+/=\s\\]+-----END)", re.DOTALL
)
SHAPES: Final = (
    Shape(
        "private_key",
        "-",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{0,60}-----"
            r"|(?:\s|\\[nr])*+[A-Za-z0-9+/=]{40}[A-Za-z0-9+/=\s\\]*+)"
        ),
        check=lambda block: _KEY_BODY.match(block) is not None,
    ),
    Shape(
        "jwt",
        ".",
        ("eyJ",),
        _prefixed("eyJ", rf"{_B}{{6,}}+\.(?:{_B}{{8,}}+|{_B}++(?=\.{_B}))(?:\.{_B}++){{0,3}}"),
    ),
    Shape("api_key", "-", ("sk-",), _prefixed("sk-", rf"{_B}{{12,}}+"), check=_looks_random),
    Shape("api_key", "-", ("xai-",), _prefixed("xai-", r"[A-Za-z0-9]{20,}+")),
    Shape("slack_token", "-", ("xox",), _prefixed("xox", r"[abceoprs]-[A-Za-z0-9-]{10,}+")),
    Shape("gitlab_token", "-", ("glpat-",), _prefixed("glpat-", rf"{_B}{{20,}}+")),
    Shape("github_token", "_", ("gh",), _prefixed("gh", r"[pousr]_[A-Za-z0-9]{20,}+")),
    Shape("github_token", "_", ("github_pat_",), _prefixed("github_pat_", r"[A-Za-z0-9_]{20,}+")),
    Shape("api_key", "_", ("sk_live_", "sk_test_"), _prefixed("sk_", r"(?:live|test)_[A-Za-z0-9]{10,}+")),
    Shape("api_key", "_", ("rk_live_", "rk_test_"), _prefixed("rk_", r"(?:live|test)_[A-Za-z0-9]{10,}+")),
    Shape("api_key", "_", ("gsk_",), _prefixed("gsk_", r"[A-Za-z0-9]{20,}+")),
    Shape("api_key", "_", ("hf_",), _prefixed("hf_", r"[A-Za-z0-9]{30,}+")),
    Shape("api_key", "A", ("AIza",), _prefixed("AIza", rf"{_B}{{35}}(?!{_B})")),
    Shape("aws_access_key_id", "A", ("AKIA",), _prefixed("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
    Shape("aws_access_key_id", "A", ("ASIA",), _prefixed("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
    Shape(
        "password",
        ":",
        ("://",),
        re.compile(r"://[^\s/?#:@\"'<>`\\]*+:([^\s/?#\"'<>`\\]+)@(?=[\w\[%{$-])"),
        group=1,
        check=lambda value: not is_reference(value),
    ),
)
_BY_MARK: Final = tuple(
    (mark, tuple((rank, shape) for rank, shape in enumerate(SHAPES) if shape.mark == mark))
    for mark in "-_.A:"
)


def shaped(text: str) -> Iterator[Span]:
    """The secrets in a text that have one of the `SHAPES`.

    >>> [span.label for span in shaped("git clone with " + "ghp_" + "a1" * 18)]
    ['github_token']
    """
    for mark, shapes in _BY_MARK:
        if mark in text:
            for rank, shape in shapes:
                if any(hint in text for hint in shape.hints):
                    yield from _matches(text, rank, shape)


def _matches(text: str, rank: int, shape: Shape) -> Iterator[Span]:
    for match in shape.pattern.finditer(text):
        if shape.check(match[shape.group]):
            yield Span(match.start(shape.group), rank, match.end(shape.group), shape.label)
