"""The OpenAI table: all rows, in their order."""

from __future__ import annotations

from adapters import (
    openai_rows_chat,
    openai_rows_clients,
    openai_rows_errors,
    openai_rows_resources,
    openai_rows_responses,
)
from adapters.openai_rows import ROWS, VERSION, Kind, Row, here, hybrid, record, replay

PARTS = (
    openai_rows_chat,
    openai_rows_responses,
    openai_rows_resources,
    openai_rows_clients,
    openai_rows_errors,
)
ROWS.sort(key=lambda row: [part.__name__ for part in PARTS].index(row.play.__module__))

__all__ = ["ROWS", "VERSION", "Kind", "Row", "here", "hybrid", "record", "replay"]
