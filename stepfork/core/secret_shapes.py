"""The secrets that their form alone gives away. Knows shapes; asks for no key and no context.

One row in `SHAPES` for each form; those that a prefix gives away (``ghp_...``) come from `secret_tokens`.
All of it takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from stepfork.core.secret_names import MODEL, is_word
from stepfork.core.secret_tokens import TOKENS


class Span(NamedTuple):
    """Where a secret stands in a text. The lower its `rank`, the more its shape says by itself."""

    start: int
    rank: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A secret known by its form. Every match holds the text `hint`."""

    label: str
    hint: str
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
    if not body.strip("xX-_*."):
        return False
    return RUN.search(body) is not None or (len(body) >= 24 and _looks_mixed(body))


def _looks_mixed(text: str) -> bool:
    """Whether capitals, small letters and digits stand in it."""
    return all(re.search(kind, text) for kind in ("[a-z]", "[A-Z]", "[0-9]"))


_REFERENCE: Final = re.compile(
    r"""\$\{?\w+\}?\Z | \$\( | %\w*%?\Z | %\( | [{<\[]        # $TOKEN, ${TOKEN}, %TOKEN%, {token}, <token>
      | [*•._-]+\Z | [xX]+\Z                                  # a mask
      | [A-Z]+(?:_[A-Z]+)+\d{0,2}\Z | (?i:your|my|the)[_-]           # YOUR_API_KEY
      | arn: | AWS4-HMAC | \w+://(?!\S*@) | (?:~|\.{1,2})?/[a-z_.][\w.@/-]*\Z    # a name, an address, a path
      | value\d*\Z                                            # key=value1
      | \d{4}-\d\d-\d\d                                       # a date
    """,
    re.VERBOSE,
)
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")


def is_reference(value: str) -> bool:
    """Whether a value stands for a secret without being one: ``$TOKEN``, ``YOUR_API_KEY``, ``self.token``."""
    if _REFERENCE.match(value) or is_word(value) or MODEL.match(value):
        return True
    if not _DOTTED.match(value):
        return False
    last = value.rpartition(".")[2]
    return sum(map(str.isdigit, value)) < 3 and not (
        len(last) >= 20 and "_" not in last and _looks_mixed(last)
    )


def _is_no_reference(value: str) -> bool:
    return not is_reference(value)


_MIXED: Final = re.compile(r"[A-Za-z][0-9]|[0-9][A-Za-z]")
_ONE_CASE: Final = re.compile(r"[a-z]{20,}\Z|[A-Z]{20,}\Z")


def looks_secret(value: str) -> bool:
    """Whether letters and digits stand side by side in a value, or it is one long run of letters."""
    return bool(_MIXED.search(value) or _ONE_CASE.match(value))


_PHRASE: Final = re.compile(r"[a-z]{3,12}(?:-[a-z]{3,12}){2,7}\Z")
_OF_NAMES: Final = re.compile(
    r"(?:\A|-)(?:keys?|tokens?|secrets?|password|api|app|auth|your|the|test|example|name|header|cookie"
    r"|service|account|access|default|none|not|tls|role|user)(?:-|\Z)"
)


def is_phrase(value: str) -> bool:
    """Whether a value is put together of words as passphrases are: ``correct-horse-battery``.

    >>> is_phrase("correct-horse-battery"), is_phrase("staging-api-key"), is_phrase("lm-studio")
    (True, False, False)
    """
    return _PHRASE.match(value) is not None and _OF_NAMES.search(value) is None


_NAME: Final = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)?\Z|-")


def is_given(value: str) -> bool:
    """Whether what stands behind the name of a secret may be its value: no word, name, option or sentence.

    >>> [is_given(value) for value in ("hunter2", "k9x", "user", "content-type", "--force", "is required")]
    [True, True, False, False, False, False]
    """
    return not _NAME.match(value) and not any(map(str.isspace, value)) and not is_reference(value)


def is_credible(value: str) -> bool:
    """Whether a value looks like a credential: ``q7Zx4mW9`` does, ``required`` and ``lm-studio`` do not."""
    return len(value) >= 8 and looks_secret(value) and not is_reference(value)


_B: Final = "[A-Za-z0-9_-]"
_KEY_BODY: Final = re.compile(
    r"-----[^-]*-----(?:.*?[A-Za-z0-9+/=]{24}|[ \t]*(?:\n|\r|\\[nr])[A-Za-z0-9+/=\s\\]+-----END)", re.DOTALL
)


def _beginning(texts: list[str]) -> str:
    """What texts have in common at their beginning."""
    same = takewhile(lambda characters: len(set(characters)) == 1, zip(*texts, strict=False))
    return "".join(characters[0] for characters in same)


def _tokens() -> Iterator[Shape]:
    """A shape for each row in the table of what providers mint."""
    for label, prefixes, body in TOKENS:
        several = re.findall(r"\S+ $|\S+", prefixes)
        common = _beginning(several)
        rests = "|".join(re.escape(prefix[len(common) :]) for prefix in several)
        yield Shape(label, common, _prefixed(re.escape(common), f"(?:{rests}){body}"))


SHAPES: Final = (
    Shape(
        "private_key",
        "PRIVATE KEY",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{0,60}-----"
            r"|(?:\s|\\[nr])*+[A-Za-z0-9+/=]{40}[A-Za-z0-9+/=\s\\]*+)"
        ),
        check=lambda block: _KEY_BODY.match(block) is not None,
    ),
    Shape(
        "private_key",
        "Private-Lines:",
        re.compile(r"Private-Lines:[ \t]*\d+(?:\s|\\[nr])++((?:[A-Za-z0-9+/=]{16,}+(?:\s|\\[nr])*+)++)"),
        group=1,
    ),
    Shape(
        "jwt", "eyJ", _prefixed("eyJ", rf"{_B}{{6,}}+\.(?:{_B}{{8,}}+|{_B}++(?=\.{_B}))(?:\.{_B}++){{0,3}}")
    ),
    Shape("api_key", "sk-", _prefixed("sk-", rf"{_B}{{12,}}+"), check=_looks_random),
    *_tokens(),
    Shape("api_key", "-us", re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])")),
    Shape(
        "access_token", ".atlasv1.", re.compile(rf"(?<![A-Za-z0-9])[A-Za-z0-9]{{14}}\.atlasv1\.{_B}{{60,}}+")
    ),
    Shape("client_secret", "Q~", re.compile(r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])")),
    Shape("bot_token", ":AA", re.compile(rf":(?<=\d{{8}}:)(AA{_B}{{33}})(?!{_B})"), group=1),
    Shape(
        "bot_token",
        ".",
        re.compile(
            rf"\.(?:(?<=[MNO]{_B}{{23}}\.)|(?<=[MNO]{_B}{{24}}\.)|(?<=[MNO]{_B}{{25}}\.))"
            rf"({_B}{{6}}\.{_B}{{27,45}})(?![\w.-])"
        ),
        group=1,
        check=_looks_mixed,
    ),
    Shape(
        "webhook",
        "hooks.slack.com",
        re.compile(r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,}+)"),
        group=1,
    ),
    Shape("webhook", "/api/webhooks/", re.compile(rf"/api/webhooks/\d+/({_B}{{40,}}+)"), group=1),
    Shape(
        "webhook",
        "webhook.office.com",
        re.compile(r"webhook\.office\.com/webhookb2/([\w@/-]{40,}+)"),
        group=1,
    ),
    Shape(
        "password",
        "://",
        re.compile(r"://[^\s/?#:@\"'<>`\\]*+:([^\s/?#\"'<>`\\]+)@(?=[\w\[%{$-])"),
        group=1,
        check=_is_no_reference,
    ),
    Shape(
        "password",
        "curl ",
        re.compile(r"curl [^\n]{0,300}?(?<=\s)(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,64}:([^\s'\"]+)"),
        group=1,
        check=_is_no_reference,
    ),
    Shape(
        "password",
        "IDENTIFIED ",
        re.compile(
            r"IDENTIFIED (?<!\wIDENTIFIED )(?:WITH \w{1,40} )?BY (?P<quote>['\"])([^'\"\s]{4,})(?P=quote)"
        ),
        group=2,
        check=_is_no_reference,
    ),
    Shape(
        "password",
        "PASSWORD '",
        re.compile(r"PASSWORD '(?<!\wPASSWORD ')([^'\s]{4,})'"),
        group=1,
        check=_is_no_reference,
    ),
    Shape(
        "password",
        "mysql",
        re.compile(r"mysql(?:dump|admin)? (?:[^\n]{0,200}? )?-p([^\s'\"]{8,})"),
        group=1,
        check=is_credible,
    ),
    Shape(
        "token",
        "@",
        re.compile(r"(?<=://)([A-Za-z0-9_-]{20,255}+)@(?!\S{0,40}sentry)"),
        group=1,
        check=lambda value: RUN.search(value) is not None and _looks_mixed(value),
    ),
    Shape(
        "password",
        "login ",
        re.compile(r"login (?<!\wlogin )\S{1,128}\s+password (\S{4,})"),
        group=1,
        check=_is_no_reference,
    ),
)


IN_CONTEXT: Final = len(SHAPES)
"""The rank of what only its context makes a secret."""
LABELS: Final = frozenset(shape.label for shape in SHAPES)


def shaped(text: str) -> Iterator[Span]:
    """The secrets in a text that have one of the `SHAPES`.

    >>> [span.label for span in shaped("git clone with " + "ghp_" + "a1" * 18)]
    ['github_token']
    """
    for rank, shape in enumerate(SHAPES):
        if shape.hint in text:
            for match in shape.pattern.finditer(text):
                if shape.check(match[shape.group]):
                    yield Span(match.start(shape.group), rank, match.end(shape.group), shape.label)
