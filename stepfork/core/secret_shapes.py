"""What a secret looks like: names of keys, shapes in text. Knows no session, no placeholder and no setting.

Everything here takes time linear in the text. Where a form alone decides (``ghp_...``) there is a row in
`SHAPES`; where only the context does (``password=...``) the value must look like a credential, so that
prose and code stay what they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# ----------------------------------------------------------------------------------------------- names


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMES: Final = _words(
    "api_key api_keys authorization proxy_authorization cookie cookies set_cookie password passwd passphrase "
    "secret client_secret secret_key secret_access_key private_key token access_token refresh_token id_token "
    "session_token auth_token api_token bearer_token amz_security_token amz_signature goog_signature"
)
_BY_LETTERS: Final = {name.replace("_", ""): name for name in _NAMES}
_TAILS: Final = _words(
    "api_key apikey secret_key access_key private_key client_secret api_secret app_secret consumer_secret "
    "shared_secret signing_secret webhook_secret jwt_secret token_secret access_token refresh_token id_token "
    "session_token auth_token api_token bearer_token password passwd passphrase"
)
"""How a longer name may end: ``openai_api_key``, ``dbPassword``. A bare ``token`` is no such ending."""
_LOUD_TAILS: Final = _words("token secret")
"""Endings that count in the spelling of the environment only: ``GITHUB_TOKEN``."""
_NO_TOKEN: Final = _words("page next cursor continuation sync eos bos pad unk sep cls mask max min stop")
_NO_SECRET: Final = _words("no has is max min num show hide forgot reset require requires use allow needs")
_WORDS: Final = frozenset(_BY_LETTERS) | _words(
    "undefined required optional disabled redacted placeholder unlimited anonymous encrypted"
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LONGEST_NAME: Final = 64
COOKIES: Final = frozenset({"cookie", "cookies", "set_cookie"})


def normalise(key: str) -> str:
    """A key in the one spelling that keys are compared in.

    >>> [normalise(key) for key in ("apiKey", "X-API-Key", "OPENAI_API_KEY", "apikey")]
    ['api_key', 'api_key', 'openai_api_key', 'api_key']
    """
    name = re.sub(r"\W+", "_", _HUMP.sub("_", key)).strip("_").lower().removeprefix("x_")
    return _BY_LETTERS.get(name.replace("_", ""), name)


def _holds_secret(key: str, name: str) -> bool:
    if name in _NAMES:
        return True
    words = name.split("_")
    if len(words) < 2 or words[0] in _NO_SECRET:
        return False
    if words[-1] in _TAILS or "_".join(words[-2:]) in _TAILS:
        return True
    return key.isupper() and words[-1] in _LOUD_TAILS and words[-2] not in _NO_TOKEN


@dataclass(slots=True)
class Names:
    """Which keys hold secrets: the built-in ones and `extra`, less those `allowed` (both normalised).

    >>> names = Names()
    >>> names.label("apiKey"), names.label("DB_PASSWORD"), names.label("max_tokens")
    ('api_key', 'db_password', '')
    """

    extra: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    words: tuple[str, ...] = field(init=False)
    _labels: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.words = tuple(dict.fromkeys((*_KEYWORDS, *sorted(name.split("_")[-1] for name in self.extra))))

    def label(self, key: str) -> str:
        """The normalised name of a key that holds a secret; "" for any other key."""
        label = self._labels.get(key)
        if label is None:
            name = normalise(key) if len(key) <= LONGEST_NAME else ""
            secret = name not in self.allowed and (name in self.extra or _holds_secret(key, name))
            if len(self._labels) > 10_000:
                self._labels.clear()
            label = self._labels[key] = name if secret else ""
        return label


# ---------------------------------------------------------------------------------------------- shapes


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


_RUN: Final = re.compile(r"[A-Za-z0-9]{16}|\d{9}|(?=[A-Za-z]{0,9}\d)(?=\d{0,9}[A-Za-z])[A-Za-z0-9]{10}")


def _looks_random(key: str) -> bool:
    """Tells ``sk-proj-8fK2...`` from ``sk-learn-compatible-estimators``."""
    body = key[3:300]
    if _RUN.search(body):
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
_TYPE: Final = re.compile(r"[\w.]*(?:Key|Token|Password|Secret|Credential)(?:s|Types?)?\Z")
_MIXED: Final = re.compile(r"[A-Za-z][0-9]|[0-9][A-Za-z]")
_ONE_CASE: Final = re.compile(r"[a-z]{20,}\Z|[A-Z]{20,}\Z")


def is_word(value: str) -> bool:
    """Whether a value is a word that stands under secret keys but is no secret: ``required``, ``api-key``."""
    return len(value) <= LONGEST_NAME and re.sub(r"[\W_]", "", value).lower() in _WORDS


def is_reference(value: str) -> bool:
    """Whether a value stands for a secret without being one: ``$TOKEN``, ``YOUR_API_KEY``, ``self.token``."""
    if _REFERENCE.match(value) or is_word(value):
        return True
    return bool(_DOTTED.match(value)) and sum(map(str.isdigit, value)) < 3


def _credible(value: str) -> bool:
    return (
        len(value) >= 8 and bool(_MIXED.search(value) or _ONE_CASE.match(value)) and not is_reference(value)
    )


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


def find(text: str, names: Names) -> tuple[list[Span], bool]:
    """The secrets in a text, and whether it should be read as JSON, if it is JSON, to find more.

    >>> spans, _ = find("password=" + "hunter2" * 2, Names())
    >>> [(span.start, span.label) for span in spans]
    [(9, 'password')]
    """
    spans: list[Span] = []
    for mark, shapes in _BY_MARK:
        if mark in text:
            for rank, shape in shapes:
                for hint in shape.hints:
                    if hint in text:
                        spans += _matches(text, rank, shape)
                        break
    named = False
    assigns = "=" in text or ":" in text
    if assigns or " " in text:
        lower = _lower(text)
        spans += _credentials(text, lower)
        if assigns:
            found, named = _assignments(text, lower, names)
            spans += found
            named = named or r":\/\/" in text
    return spans, named


def _matches(text: str, rank: int, shape: Shape) -> Iterator[Span]:
    for match in shape.pattern.finditer(text):
        if shape.check(match[shape.group]):
            yield Span(match.start(shape.group), rank, match.end(shape.group), shape.label)


def _lower(text: str) -> str:
    """The text in lower case, character by character, so that offsets stay what they are."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower()[:1] for char in text)


# ----------------------------------------------------------------------------------- secrets by context

_CONTEXT: Final = len(SHAPES)  # the rank of what only its context makes a secret
_KEYWORDS: Final = (
    *("key", "token", "secret", "password", "passwd", "passphrase"),
    *("authorization", "cookie", "signature"),
)
_IN_NAME: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_AFTER_NAME: Final = frozenset("\"'`\\] \t=:")
_SEPARATOR: Final = re.compile(
    r"""(?P<close>\\{0,8}["'`]?)\]?[ \t]{0,3}(?:=>|:=|=(?!=)|:(?!:))[ \t]{0,3}(?P<quote>\\{0,8}["'`])?"""
)
# Few `=`, `:` and `?` inside a value: so no text is scanned again from each of many names.
_BARE: Final = re.compile(r"[^\s\"'`<>\\,;&(){}\[\]|:=]++(?:[:=]++[^\s\"'`<>\\,;&(){}\[\]|:=]++){0,3}+={0,2}")
_IN_QUERY: Final = re.compile(r"[^\s\"'`<>\\;&#?]++(?:\?[^\s\"'`<>\\;&#?]++){0,2}+")
_IN_QUOTES: Final = re.compile(r"[^\s\"'`<>\\]++")
_COOKIE: Final = re.compile(r"[\w!#$%&'*+.^|~-]{1,128}+=([^\s\"'<>\\`;,]++)(?:;[ \t]*)?")
_SCHEME_VALUE: Final = re.compile(r"[ \t]{1,3}([A-Za-z0-9._~+/=-]{8,}+)")
_LONGEST_VALUE: Final = 4096


def _places(lower: str, word: str, follow: frozenset[str]) -> Iterator[int]:
    """Where `word` ends in a text with one of the characters `follow` after it."""
    at = lower.find(word)
    while at >= 0:
        at += len(word)
        if lower[at : at + 1] in follow:
            yield at
        at = lower.find(word, at)


def _credentials(text: str, lower: str) -> Iterator[Span]:
    """``Bearer TOKEN`` and ``Basic BASE64``; the word stays."""
    for scheme in ("bearer", "basic"):
        for end in _places(lower, scheme, frozenset(" \t")):
            match = _SCHEME_VALUE.match(text, end)
            if match is None:
                continue
            value = match[1].rstrip(".")
            if scheme == "basic":
                secret = basic_password(value) is not None
            elif "authorization" in lower[max(0, end - 40) : end]:
                secret = not is_reference(value)
            else:
                secret = _credible(value) and _RUN.search(value[:300]) is not None
            if secret:
                yield Span(match.start(1), _CONTEXT, match.start(1) + len(value), "authorization")


def basic_password(value: str) -> str | None:
    """The password in the base64 of ``user:password``; None for anything else.

    >>> basic_password("dXNlcjpodW50ZXIy")
    'hunter2'
    """
    try:
        pair = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    _, colon, password = pair.partition(":")
    return password if colon and pair.isprintable() else None


def _assignments(text: str, lower: str, names: Names) -> tuple[list[Span], bool]:
    """``api_key=...``, ``"password": "..."``, ``?token=...``, ``Cookie: a=...``."""
    spans: list[Span] = []
    named = False
    for word in names.words:
        done = 0
        for end in _places(lower, word, _AFTER_NAME):
            separator = _SEPARATOR.match(text, end) if end >= done else None
            if separator is None:
                continue
            named = True
            head = text[max(0, end - LONGEST_NAME) : end]
            key = head[len(head.rstrip(_IN_NAME)) :]
            label = names.label(key)
            if label in COOKIES:
                found, done = _cookies(text, separator.end(), label)
                spans += found
            elif label and (place := _value(text, end - len(key), key, separator, label in names.extra)):
                spans.append(Span(place[0], _CONTEXT, place[1], label))
                done = place[1]
    return spans, named


def _cookies(text: str, at: int, label: str) -> tuple[list[Span], int]:
    """The values in ``a=1; b=2`` and where they end; of a ``Set-Cookie`` only the first."""
    spans: list[Span] = []
    while match := _COOKIE.match(text, at):
        at = match.end()
        if not is_reference(match[1]):
            spans.append(Span(match.start(1), _CONTEXT, match.end(1), label))
        if label == "set_cookie":
            break
    return spans, at


def _value(text: str, start: int, key: str, separator: re.Match[str], own: bool) -> tuple[int, int] | None:
    """Where the value assigned to `key` stands, if it looks like a secret. `own`: a key of the user's."""
    at = separator.end()
    tight = separator[0] == "="
    before = text[max(0, start - 5) : start]
    if tight and (before.endswith(("?", "#", "&amp;")) or (before.endswith("&") and before[-2:] != "&&")):
        match = _IN_QUERY.match(text, at)
        return match.span() if match and not is_reference(match[0]) else None
    if before.endswith(":"):
        return None  # arn:aws:...:secret:NAME
    quoted = separator["quote"] is not None
    match = (_IN_QUOTES if quoted else _BARE).match(text, at)
    if match is None or match.end() - at > _LONGEST_VALUE:
        return None
    value, after = match[0], text[match.end() : match.end() + 2]
    if quoted:
        if after[:1] not in ("\\", separator["quote"][-1]):
            return None  # words in quotes
        sure = bool(separator["close"])
    elif after[:1] in ("(", "["):
        return None  # a call or an item
    elif not tight and _TYPE.match(value):
        return None  # an annotation
    elif tight and after[:1] == "&" and after != "&&":
        return None if is_reference(value) else match.span()
    else:
        value = value.rstrip(".:?*")
        sure = tight and key.isupper() and before[-1:] in ("", " ", "\n", "\t", '"', "'", "`", ";")
    likely = sure or _MIXED.search(value) or _ONE_CASE.match(value) or (own and any(map(str.isdigit, value)))
    if len(value) < 8 or not likely or is_reference(value):
        return None
    return at, at + len(value)
