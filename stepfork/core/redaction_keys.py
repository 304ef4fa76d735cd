"""Which rules for keys hold where in a value, and which texts are names that stay. Knows no secret.

What a tool takes and gives may hold a secret under any key that says so; an SDK's answer has its own fields.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from stepfork.core.model import Plain
from stepfork.core.secret_shapes import RUN

_CLASS: Final = re.compile(r"[\w.]+:[\w.<>]+\Z")


class Keys(Enum):
    """Which rules for keys hold in a value.

    In texts inside of an `ANSWER` (JSON that a model wrote) and under ``arguments`` all of them do; a `WIRE`
    is the answer itself as text.
    """

    ALL = 1
    ANSWER = 2
    WIRE = 3

    def below(self, key: str) -> Keys:
        """The rules that hold for what stands under a key."""
        return _BELOW.get(key, self) if self is Keys.ANSWER else self


_ENUMERATED: Final = frozenset({"role", "object", "type", "finish_reason", "status", "model"})
_CONSTANT: Final = re.compile(r"[a-z][a-z0-9]{0,15}(?:[._/:-][a-z0-9]{1,15}){0,7}\Z")
_BELOW: Final = {"arguments": Keys.ALL, "wire": Keys.WIRE}


def is_name(key: str, text: str, fields: dict[str, Plain], keys: Keys) -> bool:
    """Whether a text names the class of an error, or is one of the constants of an SDK's answer."""
    if key == "class":
        return ("args" in fields or "init" in fields) and _CLASS.match(text) is not None
    if keys is not Keys.ANSWER or key not in _ENUMERATED:
        return False
    return _CONSTANT.match(text) is not None and RUN.search(text) is None
