"""The user's rules for secrets, checked. Knows the names of settings; redacts nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stepfork.core.secret_names import LONGEST_NAME, normalise
from stepfork.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Rules:
    """The user's rules; the built-in ones are always on beside them.

    Attributes:
        keys: more keys whose text is a secret; whole keys, in any usual spelling.
        patterns: regular expressions; the first group that took part is the secret, else the whole match.
        allow: what is no secret after all: keys, or regular expressions that fit the whole secret.
    """

    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()

    @classmethod
    def compile(cls, keys: Any = (), patterns: Any = (), allow: Any = ()) -> Rules:
        """Checked rules.

        Raises:
            ConfigError: for null, for a rule that is empty or no text, and for a bad regular expression.

        >>> Rules.compile(keys=["ssn"]).keys
        ('ssn',)
        """
        rules = cls(
            _texts("redact_keys", keys), _texts("redact_patterns", patterns), _texts("redact_allow", allow)
        )
        for key in rules.keys:
            if not normalise(key) or len(key) > LONGEST_NAME:
                raise ConfigError(
                    f"redact_keys: {key!r} is no name of a key, or over {LONGEST_NAME} characters"
                )
        for setting, expressions in (("redact_patterns", rules.patterns), ("redact_allow", rules.allow)):
            for expression in expressions:
                try:
                    empty = re.compile(expression).match("")
                except (re.error, OverflowError, RecursionError) as error:
                    problem = f"{setting}: {expression!r} is not a regular expression: {error}"
                    raise ConfigError(problem) from None
                if empty and setting == "redact_patterns":
                    raise ConfigError(
                        f"{setting}: {expression!r} fits the empty text, so it would fit everywhere"
                    )
        return rules


def _texts(setting: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        found = "null" if values is None else repr(values)
        raise ConfigError(
            f"{setting} must be a list of texts, not {found}; leave it out to keep the built-in rules"
        )
    texts = tuple(values)
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            found = "null" if text is None else repr(text)
            raise ConfigError(f"{setting} must hold texts that are not empty, found {found}")
    return texts
