"""The whole contract of an adapter: what it says it patches, and how a call becomes plain values.

An adapter is one file in `adapters/` with a module-level ``ADAPTER``. It knows its SDK; it knows neither
files nor sessions. `wrapping.py` installs its patches, `driver.py` runs its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from stepfork.core.model import Incoming, Kind, Plain, Recorded
from stepfork.session.control import Frame
from stepfork.session.run import Ticket

Wrapper: TypeAlias = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]
"""What wrapt calls: ``(wrapped, instance, args, kwargs) -> result``."""

Outcome: TypeAlias = dict[str, Plain]
"""How a call ended, as document fields: ``{"result": ...}``, ``{"response": ...}``, ``{"error": ...}``."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One row of the table of patches: ``module:Class.attribute`` and what to wrap it with.

    `optional` rows may be missing in some versions of the SDK; any other missing row is an error. With a
    ``*`` in its module (``sdk.resources.*:*Connection.open``) a row means every class of that name in every
    module that matches, whenever it is imported.
    """

    target: str
    wrapper: Wrapper
    optional: bool = False


class Adapter(Protocol):
    """What a file in `adapters/` offers as ``ADAPTER``."""

    module: str
    """The import that switches the adapter on, as in ``"openai"``."""

    def patches(self) -> Sequence[Patch]:
        """The rows to install once that module is imported."""
        ...


class Target(Protocol):
    """One call on its way through the driver."""

    @property
    def kind(self) -> Kind:
        """``"llm"``, ``"tool"`` or ``"http"``."""
        ...

    @property
    def name(self) -> str:
        """What the call is called in a cassette."""
        ...

    def incoming(self) -> Incoming:
        """The question in plain values. Raises `Unsupported` for what has none."""
        ...

    def begins(self, ticket: Ticket, where: Frame) -> None:
        """The call is made live now, under this ticket and at this place: what becomes of its arguments from
        here on is its doing."""
        ...

    def seen(self) -> Outcome:
        """What else is recorded, however the call ended: what it did to its arguments, what it yielded.
        Raises `Unsupported` for what does not come back equal."""
        ...

    def again(self, recorded: Recorded) -> None:
        """On replay, before the answer: does to the caller's arguments what the call did."""
        ...

    def returned(self, value: Any) -> Outcome | None:
        """How a call that returned is recorded; None if the adapter will say so later (a stream)."""
        ...

    def raised(self, error: BaseException) -> Outcome:
        """How a call that raised is recorded. Raises `Unsupported` for what does not come back equal."""
        ...
