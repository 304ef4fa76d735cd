"""Which keys hold secrets, by their names. Knows words and spellings; knows no text and no session."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from stepfork.core.placeholder_texts import MARK, PLACEHOLDER


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMES: Final = _words(
    "api_key api_keys authorization proxy_authorization cookie cookies set_cookie password passwd passphrase "
    "secret secrets client_secret secret_key secret_access_key private_key "
    "token access_token refresh_token id_token "
    "session_token auth_token api_token bearer_token subscription_key "
    "amz_security_token amz_signature goog_signature dd_application_key secret_key_base "
    "passwords access_tokens refresh_tokens auth_tokens "
    "pgpassword accesskey csrf_token xsrf_token "
    "sas_token gh_token hf_token ssh_key jsessionid phpsessid jwt mysql_pwd storage_account_key"
)
_BY_LETTERS: Final = {name.replace("_", ""): name for name in _NAMES}
_TAILS: Final = _words(
    "api_key apikey secret_key access_key private_key client_secret api_secret app_secret consumer_secret "
    "subscription_key shared_secret signing_secret webhook_secret jwt_secret token_secret access_token "
    "refresh_token id_token "
    "session_token auth_token api_token bearer_token bot_token server_token github_token gitlab_token "
    "slack_token hf_token npm_token vault_token encryption_key signing_key "
    "master_key auth_key password passwd passphrase "
    "db_pass smtp_pass mail_pass email_pass user_pass mysql_pass ftp_pass admin_pass db_pwd smtp_pwd user_pwd"
)
"""How a longer name may end: ``openai_api_key``, ``dbPassword``. A bare ``token`` is no such ending."""
_LOUD_TAILS: Final = _words("token secret pat pass key pwd")
"""Endings that count in the spelling of the environment only: ``GITHUB_TOKEN``."""
_NO_TOKEN: Final = _words("page next cursor continuation sync eos bos pad unk sep cls mask max min stop")
_NO_PASS: Final = _words("test tests check checks all first second last single did must")
_NO_PWD: Final = _words("old init orig start")
_NO_KEY: Final = _words(
    "public primary foreign sort partition cache hash index object row route dedupe idempotency lookup range "
    "group unique composite natural surrogate shift ctrl alt hot any press enter escape return tab delete "
    "map dict json event message s3 storage file path redis registry feature flag license translation"
)
_NO_SECRET: Final = _words("no has is max min num show hide forgot reset require requires use allow needs")
_IN_ANSWERS: Final = _words("client_secret api_key access_token refresh_token id_token password")
"""Keys that hold secrets even where a key is a field of what an SDK was answered."""
_WORDS: Final = frozenset(_BY_LETTERS) | _words(
    "undefined required optional disabled redacted placeholder unlimited anonymous encrypted"
)
_NUMBER: Final = re.compile(r"(?<=[A-Za-z])[_-]?\d{1,2}\Z")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MODEL: Final = re.compile(
    r"(?:gpt|chatgpt|o\d|claude|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|grok|text-embedding)"
    r"[\d.]{0,4}(?:[-.:][a-z0-9.]{1,12})*\Z"
)
"""The name of a model."""
LONGEST_NAME: Final = 64
SEVERAL: Final = frozenset(
    {"api_keys", "passwords", "secrets", "access_tokens", "refresh_tokens", "auth_tokens"}
)
"""Keys of several secrets, each under a name of its own."""
COOKIES: Final = frozenset({"cookie", "cookies", "set_cookie"})
_KEYWORDS: Final = (
    *("key", "token", "secret", "password", "passwd", "passphrase"),
    *("authorization", "cookie", "signature", "sig", "pwd", "pat", "pass", "key_base"),
)
"""How a name ends that is worth a look when it stands in a text."""
IN_TEXTS: Final = {"pwd": "password", "accountkey": "account_key"}
"""Names that hold a secret in a text (a connection string), while a field of that name holds anything."""
IN_QUERIES: Final = {"sig": "signature", "signature": "signature"}
"""Names that hold a secret in the query of a URL only."""


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
    if _NUMBER.search(name):
        return _holds_secret(_NUMBER.sub("", key), _NUMBER.sub("", name))
    if len(words) < 2 or words[0] in _NO_SECRET:
        return False
    if (
        (words[-1] in ("authorization", "secret") and "-" in key)
        or words[-1] in _TAILS
        or "_".join(words[-2:]) in _TAILS
    ):
        return True
    if not key.isupper() or words[-1] not in _LOUD_TAILS:
        return False
    return words[-2] not in {"pass": _NO_PASS, "pwd": _NO_PWD, "key": _NO_KEY}.get(words[-1], _NO_TOKEN)


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
        """The normalised name of a key that holds a secret; "" for any other key.

        What stands for a secret in a key names nothing: not what comes after it in a list of two.
        """
        label = self._labels.get(key)
        if label is None:
            said = PLACEHOLDER.sub(" ", key) if MARK in key else key
            name = normalise(said) if len(key) <= LONGEST_NAME else ""
            secret = name not in self.allowed and (name in self.extra or _holds_secret(said, name))
            if len(self._labels) > 10_000:
                self._labels.clear()
            label = self._labels[key] = name if secret else ""
        return label

    def gives(self, label: str) -> bool:
        """Whether any key has this label.

        >>> Names().gives("db_password"), Names().gives("github_token"), Names().gives("customer")
        (True, True, False)
        """
        forms = (label, label.upper(), label.replace("_", "-"))
        return any(map(self.label, forms)) or label in {*IN_TEXTS.values(), *IN_QUERIES.values()}

    def label_in_answer(self, key: str) -> str:
        """The same for a field of an SDK's answer, where a ``token`` is a piece of text.

        >>> Names().label_in_answer("client_secret"), Names().label_in_answer("token")
        ('client_secret', '')
        """
        label = self.label(key)
        return label if label in _IN_ANSWERS else ""

    def label_in_text(self, key: str, *, in_query: bool) -> str:
        """The same for a name that holds a secret in a text only, or only in the query of a URL.

        >>> Names().label_in_text("Pwd", in_query=False), Names().label_in_text("sig", in_query=False)
        ('password', '')
        """
        name = key.lower()
        label = IN_TEXTS.get(name) or (IN_QUERIES.get(name, "") if in_query else "")
        return "" if name in self.allowed else label


def is_word(value: str) -> bool:
    """Whether a value is a word that stands under secret keys but is no secret: ``required``, ``api-key``."""
    return len(value) <= LONGEST_NAME and re.sub(r"[\W_]", "", value).lower() in _WORDS
