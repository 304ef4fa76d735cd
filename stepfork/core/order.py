"""Which recorded calls may come next. Pure; knows positions, no documents and no session.

Today's programs are taken to have one thread of control: the recorded order is the only one. A call
that was still running when its recording ended is optional: it may come at its place or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator


class Order:
    """A cursor over the top-level calls of a recording.

    >>> order = Order(3, optional=lambda at: at == 0)
    >>> list(order.candidates())
    [0, 1]
    >>> order.take(1)
    >>> list(order.candidates()), order.left_over()
    ([2], [2])
    """

    def __init__(self, total: int, optional: Callable[[int], bool]) -> None:
        self._total = total
        self._optional = optional
        self._next = 0

    @property
    def taken(self) -> int:
        """How many positions lie behind the cursor."""
        return self._next

    def candidates(self) -> Iterator[int]:
        """Positions that may come next, the strictly expected one first or right after optional ones."""
        for at in range(self._next, self._total):
            yield at
            if not self._optional(at):
                return

    def take(self, at: int) -> None:
        """The call at this position was made; what is optional before it was left out."""
        self._next = at + 1

    def left_over(self) -> list[int]:
        """Positions that had to come and did not."""
        return [at for at in range(self._next, self._total) if not self._optional(at)]
