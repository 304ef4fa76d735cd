"""What live calls took: requests, tokens, money. Knows prices and answers; knows no session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stepfork.cassette.usage import Usage
from stepfork.session.prices import Prices


@dataclass(slots=True)
class Spending:
    """What the live calls of one session took, or of several.

    Attributes:
        requests: requests that were really sent, retries included.
        input_tokens, output_tokens: as the answers say; a stream says it only if it is asked to.
        cost: estimated, by currency; empty where no price is known.
        unstated: answers that do not say their tokens, so that there are more than those counted.
        unpriced: models whose tokens are not in `cost`, although there is a table of prices.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unstated: int = 0
    cost: dict[str, float] = field(default_factory=dict)
    unpriced: list[str] = field(default_factory=list)

    def answered(self, model: str, usage: Usage, prices: Prices | None) -> None:
        """A live call was answered."""
        self.input_tokens += usage.input
        self.output_tokens += usage.output
        if prices is None:
            return
        cost = prices.cost(model, usage)
        if cost is not None:
            self.cost[prices.currency] = self.cost.get(prices.currency, 0.0) + cost
        elif (name := model or usage.model) not in self.unpriced:
            self.unpriced.append(name)

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input_tokens + self.output_tokens

    @property
    def tokens_shown(self) -> str:
        """The number, or what is known of it.

        >>> Spending(output_tokens=3).tokens_shown, Spending(unstated=1).tokens_shown
        ('3', 'unknown')
        """
        if not self.unstated:
            return str(self.tokens)
        return f"at least {self.tokens}" if self.tokens else "unknown"

    def add(self, other: Spending) -> None:
        """Adds what other calls took."""
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.unstated += other.unstated
        for currency, cost in other.cost.items():
            self.cost[currency] = self.cost.get(currency, 0.0) + cost
        self.unpriced += [model for model in other.unpriced if model not in self.unpriced]

    @property
    def cost_text(self) -> str:
        """The estimated cost, "" where no price is known.

        >>> Spending(cost={"USD": 0.0123}, unpriced=["m"]).cost_text
        "estimated cost 0.0123 USD (no price for 'm')"
        """
        costs = ", ".join(f"{_amount(cost)} {currency}" for currency, cost in self.cost.items())
        missing = f"no price for {', '.join(map(repr, self.unpriced))}" if self.unpriced else ""
        if not costs:
            return missing
        return f"estimated cost {costs}" + (f" ({missing})" if missing else "")

    def text(self) -> str:
        """All of it in a clause; "" if no request was sent.

        >>> Spending(requests=2, input_tokens=60, output_tokens=27).text()
        '2 requests sent, 87 tokens spent'
        >>> Spending(requests=1, unstated=1).text()
        '1 request sent, tokens unknown (1 answer does not say them)'
        """
        if not self.requests:
            return ""
        sent = f"{self.requests} request{'' if self.requests == 1 else 's'} sent, {self._tokens_text()}"
        return f"{sent}, {self.cost_text}" if self.cost_text else sent

    def _tokens_text(self) -> str:
        silent = "1 answer does not" if self.unstated == 1 else f"{self.unstated} answers do not"
        known = self.tokens or not self.unstated
        counted = f"{self.tokens_shown} tokens spent" if known else "tokens unknown"
        return f"{counted} ({silent} say them)" if self.unstated else counted

    def json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "answers_without_tokens": self.unstated,
            "estimated_cost": dict(self.cost),
            "unpriced": list(self.unpriced),
        }


def _amount(cost: float) -> str:
    return f"{cost:.2f}" if cost >= 1 else f"{cost:.4f}" if cost >= 0.01 else f"{cost:.6f}"
