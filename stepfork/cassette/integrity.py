"""The checksum line of a cassette. Knows the file's text and nothing of what it means.

SHA-256 (FIPS 180-4) over the UTF-8 bytes of the text with LF line ends, up to the ``sha256:`` line. It
finds damage and unreviewed edits; it proves nothing about who made them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, Literal, TypeAlias

Verdict: TypeAlias = Literal["ok", "absent", "differs"]
SEAL: Final = "stepfork seal"
"""The command that gives an edited file the checksum that fits it."""
_LINE: Final = re.compile(r'sha256: "([0-9a-f]{64})"\n\Z')


def sealed(text: str) -> str:
    """The text with its checksum line; a line that is there already is replaced.

    >>> sealed("end: completed\\n").splitlines()[1][:12]
    'sha256: "b73'
    """
    body = _LINE.sub("", text)
    return f'{body}sha256: "{_digest(body)}"\n'


def verify(text: str) -> Verdict:
    """Whether the checksum line, which must be the last, fits the text before it.

    >>> verify(sealed("end: completed\\n")), verify("end: completed\\n")
    ('ok', 'absent')
    """
    found = _LINE.search(text, max(0, len(text) - 80))
    if found is None:
        return "differs" if re.search(r"^sha256:", text[-400:], re.MULTILINE) else "absent"
    return "ok" if _digest(text[: found.start()]) == found[1] else "differs"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
