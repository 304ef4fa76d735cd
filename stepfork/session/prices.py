"""What tokens cost, from a table that the user gives. Reads that file; knows no call. None is built in.

::

    currency = "USD"          # any text; per million tokens

    ["gemini-2.5-flash"]
    input = 0.30
    output = 2.50

The same as JSON: ``{"currency": "USD", "gemini-2.5-flash": {"input": 0.3, "output": 2.5}}``.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stepfork.cassette.usage import Usage
from stepfork.errors import ConfigError

_PER: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, input and output, by model."""

    currency: str = ""
    models: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def cost(self, model: str, usage: Usage) -> float | None:
        """What an answer cost; None if there is no price for its model.

        The model that was asked for counts, else the one that the answer names.

        >>> Prices("USD", {"m": (1.0, 2.0)}).cost("m", Usage(500_000, 250_000))
        1.0
        """
        price = self.models.get(model) or self.models.get(usage.model)
        return None if price is None else (usage.input * price[0] + usage.output * price[1]) / _PER


def read_prices(file: Path) -> Prices:
    """The table in a TOML file, or a JSON file if it is named so.

    Raises:
        ConfigError: if it cannot be read or holds anything else.
    """
    try:
        text = file.read_text("utf-8")
        table = json.loads(text) if file.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"prices: {file} cannot be read: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError(f"prices: {file} must hold a table of models")
    currency = table.pop("currency", None)
    if not isinstance(currency, str) or not currency.strip():
        raise ConfigError(f"prices: {file}: 'currency' must be a text, as in currency = \"USD\"")
    if not table:
        raise ConfigError(f"prices: {file} names no model")
    return Prices(currency.strip(), {model: _price(file, model, price) for model, price in table.items()})


def _price(file: Path, model: str, price: Any) -> tuple[float, float]:
    where = f"prices: {file}: {model!r}"
    if not isinstance(price, dict) or set(price) != {"input", "output"}:
        nested = isinstance(price, dict) and any(isinstance(item, dict) for item in price.values())
        hint = "; a name with dots stands in quotes" if nested else ""
        raise ConfigError(f"{where} must have 'input' and 'output', the prices of a million tokens{hint}")
    for name, value in price.items():
        number = type(value) in (int, float) and math.isfinite(value) and value >= 0
        if not number:
            raise ConfigError(f"{where}: {name} must be a number from 0 on, not {value!r}")
    return float(price["input"]), float(price["output"])
