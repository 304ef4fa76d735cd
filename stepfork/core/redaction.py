"""Replaces secrets in plain values, consistently within a session. Knows no file, no SDK and no clock.

A `Redactor` remembers what it found: a value of eight characters and more that was a secret once is one
wherever it stands. What a secret looks like is said in `secret_shapes`.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import quote, quote_plus

from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged
from stepfork.core.renaming import MARK, PLACEHOLDER, SHORTEST
from stepfork.core.secret_shapes import COOKIES, LONGEST_NAME, Names, basic_password, find, is_word, normalise
from stepfork.errors import ConfigError

_SCHEME: Final = re.compile(r"(?i)(bearer|basic|token|apikey|bot)[ \t]+(\S+)")
_COOKIE_VALUE: Final = re.compile(r"=[ \t]*\"?([^\s;,\"]+)")
_OPAQUE: Final = frozenset({"decimal", "datetime", "date", "time", "timedelta", "uuid", "complex"})
"""Tags whose text would not be read back with a placeholder in it."""
_MASK: Final = re.compile(r"[*•._=#-]+\Z|\s+\Z")
_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")
_BYTES: Final = frozenset({"bytes", "bytearray"})
_LOOKED_AT: Final = frozenset({str, dict, list, Tagged})
_JSONISH: Final = re.compile(r"\s*[\[{]")
_JSON: Final = json.JSONDecoder(strict=False)
_JSON_STRING: Final = re.compile(r'("(?:[^"\\]++|\\.)*+")(\s*+:)?', re.DOTALL)
_BLOB: Final = re.compile(r"[A-Za-z0-9+/\s]*+={0,2}\s*")
_PROBE: Final = re.compile(r"[A-Za-z0-9_./+=~%-]+")
_PASSES: Final = 10
_FEW: Final = 40
_MEMO_CHARACTERS: Final = 16_000_000


@dataclass(frozen=True, slots=True)
class Rules:
    """The user's rules; the built-in ones are always on beside them.

    Attributes:
        keys: more keys whose text is a secret; whole keys, in any usual spelling.
        patterns: regular expressions; the first group is the secret if there is one, else the whole match.
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
                except re.error as error:
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


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret that was replaced. Its value is in no repr.

    Attributes:
        label: the normalised key it stood under, or the name of its shape.
        placeholder: what stands for it.
        path: where it stood first, as in ``args.headers.authorization``; "" where that is not known.
        value: the secret itself.
    """

    label: str
    placeholder: str
    path: str
    value: str = field(repr=False)


_Path: TypeAlias = "tuple[_Path, str | int] | None"
_Place: TypeAlias = tuple[int, int, int, str, str]
"""Start, end (negative), rank, label and value of a secret in a text. Of two that overlap the first in this
order counts: the one that starts earlier, else the longer one, else the one of lower rank."""


class Redactor:
    """Replaces the secrets of one session. Safe to use from several threads.

    >>> redactor = Redactor()
    >>> redactor.redact({"api_key": "correct horse", "q": "is correct horse right?"})
    {'api_key': '<secret:api_key:1>', 'q': 'is <secret:api_key:1> right?'}
    >>> redactor.found[0]
    Secret(label='api_key', placeholder='<secret:api_key:1>', path='api_key')
    """

    def __init__(self, rules: Rules | None = None) -> None:
        rules = rules or Rules()
        self._names = Names(
            frozenset(map(normalise, rules.keys)), frozenset(normalise(key) for key in rules.allow)
        )
        self._patterns = tuple(re.compile(pattern) for pattern in rules.patterns)
        self._allowed = tuple(re.compile(pattern) for pattern in rules.allow)
        self._placeholders: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}
        self._found: list[Secret] = []
        self._values: dict[str, str] = {}  # what is replaced wherever it stands, and its label
        self._forms: dict[str, str] = {}  # its spellings -> the value
        self._index = _Index()
        self._probes: dict[str, int] = {}
        self._probe_index = _Index()
        self._unprobed = 0
        self._plain_keys: set[str] = set()
        self._memo: dict[bool, dict[str, str]] = {True: {}, False: {}}
        self._memo_size = 0
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<Redactor: {len(self._found)} secrets>"

    @property
    def found(self) -> tuple[Secret, ...]:
        """The secrets replaced so far, in order of their first appearance."""
        with self._lock:
            return tuple(self._found)

    @property
    def count(self) -> int:
        """How many values are known that are replaced wherever they stand; only ever grows."""
        return len(self._values)

    def mentions(self, text: str, since: int = 0) -> bool:
        """Whether a text may hold a value that became known when `count` was `since` or later.

        It may say yes where there is none (a value that is quoted or folded differently in the text cannot be
        ruled out), never no where there is one.
        """
        with self._lock:
            if since >= len(self._values):
                return False
            if self._unprobed > since:
                return True
            return any(self._probes[probe] > since for _, _, probe in self._probe_index.find(text))

    def redact(self, value: Plain, *, keys: bool = True, where: str = "") -> Plain:
        """The value with its secrets replaced; the same object if there are none. It is not changed itself.

        `keys=False` turns the rules for keys off (fields of an SDK's answers); shapes and known values stay
        on. `where` is the beginning of the paths in `found`.
        """
        with self._lock:
            if self._is_clean(value, keys):
                return value
            path: _Path = (None, where) if where else None
            while True:
                known = len(self._values)
                value = self._walk(value, keys, path)
                if len(self._values) == known:
                    return value

    def redact_text(self, text: str) -> str:
        """A text (of an error, a report, a log) with its secrets replaced.

        >>> Redactor().redact_text("GET https://bob:" + "hunter2" + "@host/ failed")
        'GET https://bob:<secret:password:1>@host/ failed'
        """
        redacted = self.redact(text)
        assert isinstance(redacted, str)
        return redacted

    def redact_name(self, name: str) -> str:
        """A file's name with its secrets replaced by ``secret-LABEL``.

        >>> Redactor().redact_name("test_login[" + "sk-" + "a" * 30 + "]")
        'test_login[secret-api_key]'
        """
        return PLACEHOLDER.sub(r"secret-\1", self.redact_text(name))

    def redact_headers(self, headers: Mapping[str, Plain], *, where: str = "") -> dict[str, Plain]:
        """Headers with their secrets replaced, those with several values (lists) too."""
        with self._lock:
            path: _Path = (None, where) if where else None
            redacted: dict[str, Plain] = {}
            for name, value in headers.items():
                label = self._names.label(name)
                if label and isinstance(value, list):
                    redacted[name] = [
                        self._keyed(label, item, ((path, name), at))
                        if isinstance(item, str) and item
                        else item
                        for at, item in enumerate(value)
                    ]
                else:
                    redacted[name] = value
            result = self.redact(redacted, where=where)
            assert isinstance(result, dict)
            return result

    def learn(self, value: str, label: str) -> str:
        """Takes a value for a secret from now on; gives the placeholder that stands for it.

        >>> Redactor().learn("hunter2hunter2", "password")
        '<secret:password:1>'
        """
        with self._lock:
            self._learn(value, label)
            return self._placeholder(label, value, None)

    def reserve(self, value: Plain) -> None:
        """Takes note of the placeholders in a recorded value, so that no new secret gets the number of one.

        Called with each recorded answer on replay, it keeps the numbering in step with the recording's.
        """
        with self._lock:
            for text in _strings(value):
                self._reserve(text)

    # ------------------------------------------------------------------------------------ values

    def _is_clean(self, value: Plain, keys: bool) -> bool:
        """Whether there is nothing to replace: all texts not seen before are looked at in one go."""
        memo = self._memo[keys]
        plain_keys = self._plain_keys
        every = bool(self._patterns)
        clean = True
        fresh: list[str] = []
        stack: list[Any] = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                if len(item) >= SHORTEST or every:
                    seen = memo.get(item)
                    if seen is None:
                        fresh.append(item)
                    elif seen != item:
                        clean = False
            elif isinstance(item, dict):
                for key, content in item.items():
                    if key not in plain_keys:
                        if keys and content and isinstance(content, str | Tagged) and self._names.label(key):
                            clean = False
                        if self._is_odd(key):
                            stack.append(key)
                    if content.__class__ in _LOOKED_AT:
                        stack.append(content)
            elif isinstance(item, list):
                stack.extend(item)
            elif isinstance(item, Tagged) and item.tag not in _OPAQUE:
                if item.tag in _BYTES or item.tag == "map":
                    clean = False
                if item.tag not in _BYTES:
                    stack.append(item.value)
        text = "\n".join(fresh)
        if MARK in text:
            self._reserve(text)
        if not clean or (fresh and self._may_hold_secret(text, fresh)):
            return False
        for item in fresh:
            self._remember(item, item, keys)
        return True

    def _is_odd(self, key: str) -> bool:
        """Whether a key is more than a word: only then may it hold a secret. A field's name is none."""
        if key.isidentifier() and not any(map(str.isdigit, key)):
            if not self._names.label(key) and len(self._plain_keys) < 10_000:
                self._plain_keys.add(key)
            return False
        return True

    def _may_hold_secret(self, text: str, parts: list[str]) -> bool:
        if any(True for _ in self._index.find(text)):
            return True
        spans, named = find(text, self._names)
        if spans or (named and any(_JSONISH.match(part) for part in parts)):
            return True
        return any(pattern.search(part) for pattern in self._patterns for part in parts)

    def _walk(self, value: Plain, keys: bool, path: _Path) -> Plain:
        if isinstance(value, str):
            return self._text(value, keys, path)
        if isinstance(value, dict):
            mapping = {}
            changed = False
            for key, old in value.items():
                name = self._text(key, False, path) if self._is_odd(key) else key
                new = self._item(self._names.label(key) if keys else "", old, keys, (path, name))
                changed = changed or new is not old or name is not key
                mapping[name] = new
            return mapping if changed else value
        if isinstance(value, list):
            items = [self._walk(item, keys, (path, at)) for at, item in enumerate(value)]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if isinstance(value, Tagged):
            return self._tagged(value, keys, path)
        return value

    def _item(self, label: str, value: Plain, keys: bool, path: _Path) -> Plain:
        """What stands under a key with this label."""
        if label and value:
            if isinstance(value, str):
                return self._keyed(label, value, path)
            if isinstance(value, Tagged) and value.tag in _BYTES:
                return self._bytes(value, label, keys, path)
        return self._walk(value, keys, path)

    def _tagged(self, value: Tagged, keys: bool, path: _Path) -> Plain:
        if value.tag in _OPAQUE:
            return value
        if value.tag in _BYTES:
            return self._bytes(value, "", keys, path)
        if value.tag == "map" and isinstance(value.value, list):
            pairs = [self._pair(pair, keys, path) for pair in value.value]
            if all(new is old for new, old in zip(pairs, value.value, strict=True)):
                return value
            return Tagged(value.tag, pairs)
        inner = self._walk(value.value, keys, path)
        if inner is value.value:
            return value
        if value.tag in ("set", "frozenset") and isinstance(inner, list):
            inner = sorted(inner, key=canonical_text)
        return Tagged(value.tag, inner)

    def _pair(self, pair: Plain, keys: bool, path: _Path) -> Plain:
        """A key and its value, of a mapping whose keys are not all texts."""
        if not isinstance(pair, list) or len(pair) != 2:
            return self._walk(pair, keys, path)
        name, old = pair
        if not isinstance(name, str):
            return self._walk(pair, keys, path)
        shown = self._text(name, False, path) if self._is_odd(name) else name
        new = self._item(self._names.label(name) if keys else "", old, keys, (path, shown))
        return pair if new is old and shown is name else [shown, new]

    def _bytes(self, value: Tagged, label: str, keys: bool, path: _Path) -> Tagged:
        """Bytes in base64: what they say is redacted as text; in a binary file only known values are."""
        try:
            raw = base64.b64decode(str(value.value), validate=True)
        except (binascii.Error, ValueError):
            return value
        text = raw.decode("utf-8", "surrogateescape")
        if label and text:
            new = self._keyed(label, text, path)
        elif _ESCAPED_BYTE.search(text):
            new = self._replace(text, self._known(text), path)
        else:
            new = self._text(text, keys, path)
        if new == text:
            return value
        return Tagged(value.tag, base64.b64encode(new.encode("utf-8", "surrogateescape")).decode())

    # ------------------------------------------------------------------------------------- texts

    def _text(self, text: str, keys: bool, path: _Path) -> str:
        if len(text) < SHORTEST and not self._patterns:
            return text
        result = self._memo[keys].get(text)
        if result is None:
            result = text
            for _ in range(_PASSES):
                step = self._pass(result, keys, path)
                if step == result:
                    break
                result = step
            self._remember(text, result, keys)
        return text if result == text else result

    def _pass(self, text: str, keys: bool, path: _Path) -> str:
        places = self._known(text)
        spans, named = find(text, self._names)
        if (spans or named) and _is_json(text):
            text = self._json(text, keys, path)
            places = self._known(text)
        elif spans and not _is_blob(text):
            places += [(at, -end, rank, label, text[at:end]) for at, rank, end, label in spans]
        text = self._replace(text, places, path)
        for pattern in self._patterns:
            group = 1 if pattern.groups else 0
            own = [match.span(group) for match in pattern.finditer(text) if match[group]]
            text = self._replace(text, [(at, -end, 0, "pattern", text[at:end]) for at, end in own], path)
        return text

    def _known(self, text: str) -> list[_Place]:
        """Where values stand that are known to be secret."""
        places: list[_Place] = []
        for at, end, form in self._index.find(text):
            value = self._forms[form]
            places.append((at, -end, -1, self._values[value], value))
        return places

    def _replace(self, text: str, places: list[_Place], path: _Path) -> str:
        """The text with placeholders at these places. Placeholders that it holds already stay untouched."""
        if not places:
            return text
        fixed = [match.span() for match in PLACEHOLDER.finditer(text)] if MARK in text else []
        parts: list[str] = []
        done = 0
        for at, minus_end, _, label, value in sorted(places):
            end = -minus_end
            before = bisect.bisect_left(fixed, (end, 0)) - 1
            if at < done or (before >= 0 and fixed[before][1] > at) or self._is_allowed(value):
                continue
            self._learn(value, label)
            parts += (text[done:at], self._placeholder(label, value, path))
            done = end
        return "".join((*parts, text[done:]))

    def _json(self, text: str, keys: bool, path: _Path) -> str:
        """JSON text: its strings are looked at decoded and replaced in place; no other byte changes."""
        parts: list[str] = []
        done = 0
        label = ""
        colon = 0
        for match in _JSON_STRING.finditer(text):
            token = match[1]
            old = json.loads(token, strict=False) if "\\" in token else token[1:-1]
            if match[2]:
                new = self._text(old, False, path) if self._is_odd(old) else old
                label, colon = self._names.label(old) if keys else "", match.end()
            else:
                keyed = label and old and not text[colon : match.start()].strip()
                new = self._keyed(label, old, path) if keyed else self._text(old, keys, path)
                label = ""
            if new != old:
                parts += (text[done : match.start()], json.dumps(new, ensure_ascii=token.isascii()))
                done = match.end(1)
        return "".join((*parts, text[done:]))

    # ----------------------------------------------------------------------------------- secrets

    def _keyed(self, label: str, value: str, path: _Path) -> str:
        """What stands for the value of a secret key: all of it, so that any dummy value matches.

        A placeholder of another label is replaced like any value: on replay the agent hands on what it was
        given, and the recording knew it by this key too.
        """
        secret = value.strip()
        if len(secret) < SHORTEST:
            secret = value
        scheme = _SCHEME.fullmatch(secret) if "authorization" in label else None
        if scheme:
            secret = scheme[2]
        standing = PLACEHOLDER.fullmatch(secret)
        if standing and standing[1] == label:
            return secret
        if self._is_allowed(value) or self._is_allowed(secret):
            return self._text(value, True, path)
        self._learn(secret, label)
        if label in COOKIES:
            for part in _COOKIE_VALUE.findall(secret)[: 1 if label == "set_cookie" else None]:
                self._learn(part, label)
        elif scheme and scheme[1].lower() == "basic":
            self._learn(basic_password(secret) or "", "password")
        return self._placeholder(label, secret, path)

    def _is_allowed(self, value: str) -> bool:
        return any(pattern.fullmatch(value) for pattern in self._allowed)

    def _learn(self, value: str, label: str) -> None:
        """From now on the value is replaced wherever it stands, unless it is too short or too plain."""
        if (
            len(value) < SHORTEST
            or value in self._values
            or not _may_spread(value, label)
            or self._is_allowed(value)
        ):
            return
        self._values[value] = label
        for form in (value, *_spellings(value)):
            if form not in self._forms:
                self._forms[form] = value
                self._index.add(form)
            probe = max(_PROBE.findall(form), key=len, default="")
            if len(probe) < SHORTEST:
                self._unprobed = len(self._values)
            else:
                if probe not in self._probes:
                    self._probe_index.add(probe)
                self._probes[probe] = len(self._values)
        self._forget()

    def _placeholder(self, label: str, value: str, path: _Path) -> str:
        placeholder = self._placeholders.get((label, value))
        if placeholder is None:
            number = self._numbers[label] = self._numbers.get(label, 0) + 1
            placeholder = self._placeholders[label, value] = f"{MARK}{label}:{number}>"
            if not PLACEHOLDER.fullmatch(value):
                self._found.append(Secret(label, placeholder, _spell(path), value))
        return placeholder

    def _reserve(self, text: str) -> None:
        for label, number in PLACEHOLDER.findall(text):
            self._numbers[label] = max(self._numbers.get(label, 0), int(number))

    def _remember(self, text: str, result: str, keys: bool) -> None:
        self._memo_size += len(text) + 50
        if self._memo_size > _MEMO_CHARACTERS:
            self._forget()
        self._memo[keys][text] = result

    def _forget(self) -> None:
        self._memo[True].clear()
        self._memo[False].clear()
        self._memo_size = 0


class _Index:
    """Finds any of many texts of eight characters and more in another; adding one costs the same always."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._grams: dict[str, list[tuple[str, int]]] = {}

    def add(self, text: str) -> None:
        self._texts.append(text)
        # Of five neighbouring places in a text one is looked at below. The last characters tell secrets
        # apart; their first ones are often the same.
        for at in range(len(text) - 8, len(text) - 3):
            self._grams.setdefault(text[at : at + 4], []).append((text, at))

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        if len(self._texts) <= _FEW:
            for known in self._texts:
                at = text.find(known)
                while at >= 0:
                    yield at, at + len(known), known
                    at = text.find(known, at + len(known))
            return
        grams = self._grams
        for middle in range(0, len(text) - 3, 5):
            for known, offset in grams.get(text[middle : middle + 4], ()):
                at = middle - offset
                if at >= 0 and text.startswith(known, at):
                    yield at, at + len(known), known


def _may_spread(value: str, label: str) -> bool:
    """Whether a value can be told from ordinary text, so that it may be replaced wherever it stands."""
    if MARK in value or _MASK.match(value) or is_word(value):
        return False
    return not (label in COOKIES and value.isalpha() and len(value) < 16)  # consent=accepted


def _spellings(value: str) -> list[str]:
    """Other forms of a value: in URLs, in JSON, in base64 (of a longer text too)."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    if len(raw) <= 10_000:
        urls = (quote(raw, safe=""), quote(raw), quote_plus(raw))
        forms += urls
        forms += (re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), url) for url in urls)
        for shift in range(3):
            whole = base64.b64encode(b"\0" * shift + raw).decode()
            core = whole[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
            forms += (core, core.replace("+", "-").replace("/", "_"))
    return [form for form in dict.fromkeys(forms) if form != value and len(form) >= SHORTEST]


def _strings(value: Plain) -> Iterator[str]:
    stack: list[Plain] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend((*item, *item.values()))
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, Tagged):
            stack.append(item.value)


def _is_json(text: str) -> bool:
    """Whether a text is a JSON object or array, or several of them."""
    at = 0
    try:
        while match := _JSONISH.match(text, at):
            _, at = _JSON.raw_decode(text, match.end() - 1)
    except (ValueError, RecursionError):
        return False
    return at > 0 and not text[at:].strip()


def _is_blob(text: str) -> bool:
    """Whether a text is one piece of base64, as images and audio are: no shape in it means anything."""
    if text.startswith("data:"):
        return _BLOB.fullmatch(text, text.find(",") + 1) is not None
    return len(text) >= 256 and _BLOB.fullmatch(text) is not None


def _spell(path: _Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")
