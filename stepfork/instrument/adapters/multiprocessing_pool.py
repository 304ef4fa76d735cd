"""`multiprocessing.pool.ThreadPool`: each call of a function is a strand, forked in the order of the items.

Knows nothing of processes: what a process pool is given is pickled and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from stepfork.instrument.adapter import Patch
from stepfork.session import active, control


def _init(wrapped: Callable[..., Any], pool: Any, args: Any, kwargs: Any) -> Any:
    """The threads of a pool belong to nobody; a pool of processes has some too."""
    with control.neutral():
        return wrapped(*args, **kwargs)


def _apply_async(wrapped: Callable[..., Any], pool: Any, args: Any, kwargs: Any) -> Any:
    given = _named(("func", "args", "kwds", "callback", "error_callback"), args, kwargs, needed=1)
    strand = None if given is None or active.idle() else control.fork()
    if given is None or strand is None:
        return wrapped(*args, **kwargs)
    given["func"] = partial(control.run_in, strand, given["func"])
    return _or_end([strand], wrapped, given)


def _map_async(wrapped: Callable[..., Any], pool: Any, args: Any, kwargs: Any) -> Any:
    """What `map`, `starmap` and their asynchronous kin come to; the mapper calls the function on a chunk."""
    names = ("func", "iterable", "mapper", "chunksize", "callback", "error_callback")
    given = _named(names, args, kwargs, needed=3)
    if given is None or active.idle() or control.here().top() is None:
        return wrapped(*args, **kwargs)
    items = given["iterable"]
    items = items if hasattr(items, "__len__") else list(items)
    strands = [control.fork() for _ in range(len(items))]
    given |= {"iterable": _Items(strands, items), "mapper": partial(_work_off, given["mapper"])}
    return _or_end(strands, wrapped, given)


def _imap(wrapped: Callable[..., Any], pool: Any, args: Any, kwargs: Any) -> Any:
    """A thread of the pool drains the iterator: a strand too, from which those of the items are forked."""
    given = _named(("func", "iterable", "chunksize"), args, kwargs, needed=2)
    strand = None if given is None or active.idle() else control.fork()
    if given is None or strand is None:
        return wrapped(*args, **kwargs)
    given |= {"func": partial(_call, given["func"]), "iterable": _drain(strand, given["iterable"])}
    return _or_end([strand], wrapped, given)


class _Items:
    """The items of a map, each with its strand; iterated where and when the items would be."""

    def __init__(self, strands: list[control.Strand | None], items: Iterable[Any]) -> None:
        self._strands = strands
        self._items = items

    def __len__(self) -> int:
        return len(self._strands)

    def __iter__(self) -> Iterator[tuple[control.Strand | None, Any]]:
        return zip(self._strands, self._items, strict=False)


def _work_off(mapper: Callable[[Any], list[Any]], chunk: Any) -> list[Any]:
    """Calls the function on the items of a chunk; after the first that fails, the others are given up."""
    function, items = chunk
    try:
        return [_run(strand, mapper, (function, (item,)))[0] for strand, item in items]
    finally:
        for strand, _ in items:
            if strand is not None:
                strand.end(cancelled=True)


def _drain(strand: control.Strand, iterable: Iterable[Any]) -> Iterator[tuple[control.Strand | None, Any]]:
    try:
        with control.running(strand):
            items = iter(iterable)
        while True:
            with control.running(strand):
                try:
                    item = next(items)
                except StopIteration:
                    return
                forked = control.fork()
            yield forked, item
    finally:
        strand.end()


def _call(function: Callable[[Any], Any], item: tuple[control.Strand | None, Any]) -> Any:
    return _run(item[0], function, item[1])


def _run(strand: control.Strand | None, function: Callable[..., Any], *args: Any) -> Any:
    return function(*args) if strand is None else control.run_in(strand, function, *args)


def _or_end(
    strands: Iterable[control.Strand | None], wrapped: Callable[..., Any], given: dict[str, Any]
) -> Any:
    try:
        return wrapped(**given)
    except BaseException:
        for strand in strands:
            if strand is not None:
                strand.end()
        raise


def _named(names: Sequence[str], args: Any, kwargs: Any, needed: int) -> dict[str, Any] | None:
    """The arguments by name; None if the call is about to fail for want of some or for too many."""
    given = dict(zip(names, args, strict=False))
    fits = len(given) == len(args) and not given.keys() & kwargs.keys()
    given |= kwargs
    return given if fits and given.keys() >= set(names[:needed]) else None


class _ThreadPools:
    module = "multiprocessing.pool"

    def patches(self) -> Sequence[Patch]:
        return (
            Patch("multiprocessing.pool:Pool.__init__", _init),
            Patch("multiprocessing.pool:ThreadPool.apply_async", _apply_async),
            Patch("multiprocessing.pool:ThreadPool._map_async", _map_async),
            Patch("multiprocessing.pool:ThreadPool.imap", _imap),
            Patch("multiprocessing.pool:ThreadPool.imap_unordered", _imap),
        )


ADAPTER = _ThreadPools()
