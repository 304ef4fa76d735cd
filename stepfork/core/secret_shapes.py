"""What a secret looks like: names of keys and shapes in text. Knows no session, no placeholder and no rule of the user's but names.

Everything here takes time linear in the text: a run of characters is scanned once, whatever it holds.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# ---------------------------------------------------------------------------------------------- names

_NAMES: Final = (
    "api_key api_keys authorization proxy_authorization cookie cookies set_cookie password passwd passphrase "
    "secret client_secret secret_key secret_access_key private_key token access_token refresh_token id_token "
    "session_token auth_token api_token bearer_token amz_security_token amz_signature goog_signature"
)
_SQUASHED: Final = {name.replace("_", ""): name for name in _NAMES.split()}
_TAILS: Final = tuple(
    tuple(tail.split("_"))
    for tail in (
        "api_key apikey secret_key secret_access_key private_key client_secret api_secret app_secret consumer_secret "
        "shared_secret signing_secret webhook_secret jwt_secret token_secret access_token refresh_token id_token "
        "session_token auth_token api_token bearer_token password passwd passphrase"
    ).split()
)
"""How a longer name may end: ``openai_api_key``, ``dbPassword``. A bare ``token`` is no such ending."""
_LOUD_TAILS: Final = ("token", "secret")  # endings that count in the spelling of the environment: GITHUB_TOKEN
_NO_TOKEN: Final = frozenset("page next cursor continuation sync eos bos pad unk sep cls mask max min stop".split())
_NO_HEAD: Final = frozenset("no has is max min num show hide forgot reset require requires use allow needs".split())
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST_NAME: Final = 64


def normalise(key: str) -> str:
    """A key's name in the one spelling that names are compared in.

    >>> [normalise(key) for key in ("apiKey", "X-API-Key", "OPENAI_API_KEY", "apikey")]
    ['api_key', 'api_key', 'openai_api_key', 'api_key']
    """
    name = re.sub(r"\W+", "_", _CAMEL.sub("_", key)).strip("_").lower().removeprefix("x_")
    return _SQUASHED.get(name.replace("_", ""), name)


def _built_in(key: str, name: str) -> bool:
    if name.replace("_", "") in _SQUASHED:
        return True
    words = name.split("_")
    if len(words) < 2 or words[0] in _NO_HEAD:
        return False
    if any(len(words) > len(tail) and tuple(words[-len(tail) :]) == tail for tail in _TAILS):
        return True
    return key.isupper() and words[-1] in _LOUD_TAILS and words[-2] not in _NO_TOKEN


@dataclass(slots=True)
class Names:
    """Which keys hold secrets: the built-in names, `extra` ones, less the `allowed` ones.

    >>> names = Names()
    >>> names.label("apiKey"), names.label("DB_PASSWORD"), names.label("max_tokens")
    ('api_key', 'db_password', '')
    """

    extra: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    _labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = (re.split(r"[\W_]", name)[-1] for name in self.extra)
        self.words = tuple(dict.fromkeys((*_KEYWORDS, *own)))

    def label(self, key: str) -> str:
        """The normalised name of a key that holds a secret, "" for any other key."""
        label = self._labels.get(key)
        if label is None:
            name = normalise(key) if len(key) <= _LONGEST_NAME else ""
            secret = name and name not in self.allowed and (name in self.extra or _built_in(key, name))
            if len(self._labels) > 10_000:
                self._labels.clear()
            label = self._labels[key] = name if secret else ""
        return label


# --------------------------------------------------------------------------------------------- shapes


class Span(NamedTuple):
    """Where a secret stands in a text; of two that overlap the earlier counts, then the lower `rank`."""

    start: int
    rank: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A secret that is known by its form. `hints` are texts one of which every match holds."""

    label: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    group: int = 0
    check: Callable[[str], object] = bool


def _prefixed(prefix: str, body: str) -> re.Pattern[str]:
    """`prefix` where no word goes on before it, then `body`. The literal stands first: that is fast."""
    before = rf"(?:(?<![A-Za-z0-9_-]{prefix})|(?<=\\[nrt]{prefix})|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{prefix}))"
    return re.compile(prefix + before + body)


_RANDOM: Final = re.compile(
    r"[A-Za-z0-9]{16}|\d{9}|(?=[a-z]*\d|[A-Z]*\d|\d+[A-Za-z])[A-Za-z0-9]{8}|(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{24}"
)


def _looks_random(key: str) -> object:
    """Tells ``sk-proj-8fK2...`` from ``sk-learn-compatible-estimators``."""
    return _RANDOM.search(key, 3, 300)


SHAPES: Final = (
    Shape(
        "private_key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{0,60}-----"
            r"|(?:\s|\\[nr])*+[A-Za-z0-9+/=]{40}[A-Za-z0-9+/=\s\\]*+)"
        ),
    ),
    Shape("jwt", ("eyJ",), _prefixed("eyJ", r"[\w-]{6,}+\.(?:[\w-]{8,}+|[\w-]++(?=\.[\w-]))(?:\.[\w-]*+){0,3}")),
    Shape("api_key", ("sk-",), _prefixed("sk-", r"[A-Za-z0-9_-]{12,}+"), check=_looks_random),
    Shape("api_key", ("xai-",), _prefixed("xai-", r"[A-Za-z0-9]{20,}+")),
    Shape("slack_token", ("xox",), _prefixed("xox", r"[abceoprs]-[A-Za-z0-9-]{10,}+")),
    Shape("gitlab_token", ("glpat-",), _prefixed("glpat-", r"[A-Za-z0-9_-]{20,}+")),
    Shape("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _prefixed("gh", r"[pousr]_[A-Za-z0-9]{20,}+")),
    Shape("github_token", ("github_pat_",), _prefixed("github_pat_", r"[A-Za-z0-9_]{20,}+")),
    Shape("api_key", ("sk_live_", "sk_test_"), _prefixed("sk_", r"(?:live|test)_[A-Za-z0-9]{10,}+")),
    Shape("api_key", ("rk_live_", "rk_test_"), _prefixed("rk_", r"(?:live|test)_[A-Za-z0-9]{10,}+")),
    Shape("api_key", ("gsk_",), _prefixed("gsk_", r"[A-Za-z0-9]{20,}+")),
    Shape("api_key", ("hf_",), _prefixed("hf_", r"[A-Za-z0-9]{30,}+")),
    Shape("api_key", ("AIza",), _prefixed("AIza", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    Shape("aws_access_key_id", ("AKIA",), _prefixed("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
    Shape("aws_access_key_id", ("ASIA",), _prefixed("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
    Shape(
        "password",
        ("://",),
        re.compile(r"://[^\s/?#:@\"'<>`\\]*+:([^\s/?#\"'<>`\\]+)@(?=[\w\[%{$-])"),
        group=1,
        check=lambda value: not is_reference(value),
    ),
)
_MARKS: Final = ("-", "_", ".", "://", "AKIA", "ASIA", "AIza")
_BY_MARK: Final = tuple(
    (
        mark,
        tuple(
            (rank, shape)
            for rank, shape in enumerate(SHAPES)
            if ("." if shape.label == "jwt" else next(m for m in ("-", "_", *shape.hints) if m in shape.pattern.pattern[:24]))
            == mark
        ),
    )
    for mark in _MARKS
)
