"""How large recordings would be without what makes them small. Knows cassettes."""

from __future__ import annotations

from pathlib import Path

from stepfork.cassette import emitter, schema
from stepfork.cassette.store import StoredCassette


def full_size(path: Path) -> int:
    """What the calls take where each stands in full."""
    calls = StoredCassette(path).all_recorded()
    return sum(len(emitter.emit_document(schema.call_document(call)).encode()) + 4 for call in calls)
