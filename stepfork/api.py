"""The public functions: wires sessions, patches and settings together. Knows no call and no document."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any, Literal, TypeVar

from stepfork.cassette.store import StoredCassette
from stepfork.cassette.values import IMPORTED, ClassPolicy
from stepfork.core.model import Trajectory
from stepfork.errors import ConfigError
from stepfork.session import active, config
from stepfork.session.config import Settings
from stepfork.session.expectation import expect
from stepfork.session.faults import Hints, not_found
from stepfork.session.modes import REPLAYING, Action, decide, find_mode
from stepfork.session.run import Ending, Recipe, Run
from stepfork.session.workspace import workspace

__all__ = [
    "Session",
    "autopatch",
    "expect",
    "is_replaying",
    "load",
    "record",
    "replay",
    "tool",
    "unpatch",
    "use_cassette",
]

F = TypeVar("F", bound=Callable[..., Any])


def autopatch(
    *,
    tools: Iterable[str] | str = (),
    cassette_dir: str | os.PathLike[str] | None = None,
    mode: str | None = None,
    **settings: Any,
) -> None:
    """Patches the OpenAI SDK and the named tools, now or whenever they are imported.

    Call it before or after anything exists; calling it again adds to what is patched and wraps nothing
    twice. In the modes that replay, a patched call outside every session raises `NoCassetteError`.

    Args:
        tools: module patterns (``"myagent.tools"``, ``"myagent.tools.*"``), functions
            (``"myagent.search:lookup"``), classes (``"m:Class"``, ``"m:Class.method"``).
        cassette_dir: where relative cassette paths start.
        mode: ``"replay"``, ``"record"``, ``"auto"``, ``"hybrid"`` or ``"off"``.
        settings: any other setting, by name.

    Raises:
        ConfigError: for an unknown setting, a malformed pattern or an unsupported SDK.

    Example:
        In ``conftest.py``::

            import stepfork

            stepfork.autopatch(tools=["myagent.tools"])
    """
    given: dict[str, Any] = dict(settings)
    if tools:
        given["tools"] = tools
    if cassette_dir is not None:
        given["cassette_dir"] = cassette_dir
    if mode is not None:
        given["mode"] = mode
    layer = config.check(given, "autopatch()")
    for name in ("tools", "exclude"):
        if name in layer:
            known = workspace.autopatch.get(name, ())
            layer[name] = known + tuple(item for item in layer[name] if item not in known)
    before = dict(workspace.autopatch)
    workspace.autopatch.update(layer)
    try:
        install(workspace.settings())
    except BaseException:
        workspace.autopatch = before
        raise
    workspace.autopatched_by.append((sys._getframe(1).f_globals, given))


def install(settings: Settings) -> None:
    """Patches for good what the settings name, and refuses calls outside sessions if their mode says so."""
    from stepfork.instrument.hooks import HOOKS

    HOOKS.hold(settings.tools, settings.exclude)
    active.refuse_outside(_reason(settings.mode), replaying=find_mode(settings.mode).standing == "replay")


def _reason(mode: str) -> str | None:
    """Why a call outside every session is refused in this mode; None if it is let through."""
    if mode == "record" and workspace.every_call_has_a_session:
        return (
            "a patched call was made outside every cassette while recording, so it would be missing on "
            "replay; make it inside a test or a fixture's set-up, or in a 'with stepfork.record(...)' block"
        )
    if not find_mode(mode).refuse_unrecorded:
        return None
    return (
        f"a patched call was made outside every cassette while the mode is {mode!r}; "
        "make it inside a test or a 'with stepfork.replay(...)' block, or set the mode to 'off'"
    )


def unpatch() -> None:
    """Undoes `autopatch`: every patched object is again the very object it was.

    >>> unpatch()
    """
    from stepfork.instrument.hooks import HOOKS

    HOOKS.release_all()
    workspace.autopatch.clear()
    workspace.autopatched_by.clear()
    active.refuse_outside(None)


class Session:
    """What `record`, `replay` and `use_cassette` give: a context manager, sync and async, and a decorator.

    As a decorator each call of the function is a session of its own.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        overrides: Mapping[str, Any],
        *,
        source: str,
        fixed_mode: str | None = None,
        name: str | None = None,
        marker: Mapping[str, Any] | None = None,
        recipe: Recipe | None = None,
        hints: Hints | None = None,
        lazy: bool = False,
        hands_over: bool = False,
        before_recording: Callable[[Run], Action] = lambda run: "record",
        similar: Callable[[Path], Path | None] = lambda path: None,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"{source}: the name of a recording is a text, not {type(name).__name__}")
        self._given = path
        self._overrides = config.check(overrides, source)
        if fixed_mode is not None:
            self._overrides["mode"] = fixed_mode
        self._marker = marker or {}
        self._name = name
        self._recipe = recipe
        self._hints = hints
        self._lazy = lazy
        self._hands_over = hands_over
        self._before_recording = before_recording
        self._similar = similar
        self._source = source
        self._run: Run | None = None
        self._stack: ExitStack | None = None

    def __enter__(self) -> Run:
        if self._stack is not None:
            raise ConfigError(f"{self._source} is open already; make a new one for each block")
        settings = workspace.settings(self._marker, self._overrides)
        path = workspace.cassette_path(self._given, settings)
        action: Action = decide(settings.mode, exists=os.path.exists(path), ci=bool(os.environ.get("CI")))
        if action == "record":
            workspace.check_writable(path, settings)
        stack = ExitStack()
        try:
            if action != "off":
                _check_modules(settings.tools)
            run = Run(
                path,
                action,
                settings,
                name=self._name,
                recipe=self._recipe,
                hints=self._hints,
                outer=active.enclosing(),
                similar=self._similar,
                on_open=functools.partial(_patch, stack),
                hands_over=self._hands_over,
                before_recording=self._before_recording,
                classes=_classes(settings, action),
                directories=workspace.directories,
                live_is_for_it="live" in {**self._marker, **self._overrides}
                or not workspace.every_call_has_a_session,
            )
            entered = active.enter(run)
            stack.callback(active.leave, run, entered)
            if action != "off":
                _empty_caches(stack)
            if not self._lazy:
                run.open()
            elif (
                action != "off" and self._marker
            ):  # what is only patched now must be so before the first call
                _patch(stack, run, settings.tools, settings.exclude)
        except BaseException:
            stack.close()
            raise
        self._run, self._stack = run, stack
        return run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.finish(error)

    def finish(self, error: BaseException | None = None, ending: Ending = "run") -> bool:
        """Ends the session; see `Run.close`."""
        run, stack = self._run, self._stack
        if run is None or stack is None:
            raise ConfigError(
                f"{self._source} is not open: use it as 'with ...:', which opens and closes it once"
            )
        self._run = self._stack = None
        with stack:
            return run.close(error, ending)

    async def __aenter__(self) -> Run:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.finish(error)

    def __call__(self, function: F) -> F:
        """As a decorator: each call of the function is a session of its own."""
        if not callable(function):
            raise ConfigError(f"{self._source} decorates a function, not {type(function).__name__}")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(f"{self._source} cannot decorate a generator; use it as a 'with' block inside")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                with self._fresh():
                    return await function(*args, **kwargs)

            return run_async  # type: ignore[return-value]

        @functools.wraps(function)
        def run_sync(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return run_sync  # type: ignore[return-value]

    def _fresh(self) -> Session:
        again = copy.copy(self)
        again._run = again._stack = None
        return again


def _classes(settings: Settings, action: Action) -> ClassPolicy:
    if action == "off":
        return IMPORTED
    from stepfork.instrument.hooks import patched_sdks

    return workspace.classes(settings, patched_sdks())


def _check_modules(tools: tuple[str, ...]) -> None:
    if tools:
        from stepfork.instrument.hooks import HOOKS

        HOOKS.check_modules(tools)


def _patch(stack: ExitStack, run: Run, tools: tuple[str, ...], exclude: tuple[str, ...]) -> None:
    """Patches what nobody has patched yet, until the session has ended and whatever was started in it."""
    from stepfork.instrument.hooks import HOOKS

    _check_modules(tools)
    stack.callback(run.when_alone, functools.partial(HOOKS.release, HOOKS.hold(tools, exclude)))
    _empty_caches(stack)


def _empty_caches(stack: ExitStack) -> None:
    """No cache in front of a tool gives what was not said in the session, now and when it has ended."""
    from stepfork.instrument.hooks import HOOKS

    HOOKS.empty_caches()
    stack.callback(HOOKS.empty_caches)


def record(path: str | os.PathLike[str], *, name: str | None = None, **overrides: Any) -> Session:
    """Records the block into a cassette, whatever the mode settings say.

    A context manager (sync and async) and a decorator; gives the `Run`. The block runs live. The file is
    ``<name>.partial.yaml`` until the block ends, then one rename makes it the cassette.

    Args:
        path: the cassette; relative paths start at ``cassette_dir`` if it is set.
        name: the recording's name; the file's name without ending if it is left out.
        overrides: settings for this block.

    Raises:
        ConfigError: for an unknown setting, or if the cassette is in use.
        CassetteError: if an unreadable file stands at the path; it is left alone.
        RecordingError: at the end, if a value could not be recorded.

    Example::

        with stepfork.record("cassettes/outage.yaml", tools=["myagent.tools"]) as run:
            run.set_output(agent.run("checkout-api"))
    """
    return Session(path, overrides, source="stepfork.record()", fixed_mode="record", name=name)


def replay(
    path: str | os.PathLike[str], *, mode: Literal["replay", "hybrid"] = "replay", **overrides: Any
) -> Session:
    """Answers every patched call of the block from a cassette, strictly.

    A context manager (sync and async) and a decorator; gives the `Run`. No tool body runs, nothing is
    sent, no key is needed. The tools that the cassette's header names are patched for the block.
    In mode ``hybrid`` the LLM calls that `live` names (all, if it names none) are sent all the same, and may
    ask something else; all other calls are as strict, and the cassette is left as it is.

    Args:
        path: the cassette; relative paths start at ``cassette_dir`` if it is set.
        mode: ``"replay"`` or ``"hybrid"``.
        overrides: settings for this block.

    Raises:
        CassetteNotFoundError: if there is no cassette.
        CassetteError: if it cannot be read or trusted.
        ReplayMismatchError: for a call that is not the recorded one, and at the end if recorded calls
            were not made.

    Example::

        with stepfork.replay("cassettes/outage.yaml") as run:
            outcome = agent.run("checkout-api")
        assert run.counts.live == 0
    """
    if mode not in REPLAYING:
        raise ConfigError(f"stepfork.replay(): unknown mode {mode!r}: the modes are {', '.join(REPLAYING)}")
    if "live" in overrides and mode != "hybrid":
        raise ConfigError("stepfork.replay(): in mode 'replay' nothing is 'live'; it needs mode='hybrid'")
    return Session(path, overrides, source="stepfork.replay()", fixed_mode=mode)


def use_cassette(path: str | os.PathLike[str], **overrides: Any) -> Session:
    """Records or replays the block as the mode settings say (``STEPFORK_MODE``, pyproject, `autopatch`).

    Args:
        path: the cassette; relative paths start at ``cassette_dir`` if it is set.
        overrides: settings for this block, ``mode`` among them.

    Raises:
        As `record` and `replay` do.

    Example::

        with stepfork.use_cassette("cassettes/outage.yaml", mode="auto"):
            agent.run("checkout-api")
    """
    source = "stepfork.use_cassette()"
    hints = Hints(record="run it again with STEPFORK_MODE=record in the environment")
    return Session(path, overrides, source=source, hints=hints)


def tool(function: F) -> F:
    """Makes a function a tool that no module pattern names. Gives the very function back.

    Raises:
        ConfigError: for anything that is no Python function.

    >>> @tool
    ... def lookup(service: str) -> str:
    ...     return service
    >>> lookup("checkout")
    'checkout'
    """
    from stepfork.instrument.hooks import HOOKS

    if not isinstance(function, FunctionType):
        raise ConfigError(f"stepfork.tool decorates a Python function, not {type(function).__name__}")
    HOOKS.add_tool(function)
    return function


def is_replaying() -> bool:
    """Whether calls made here are answered from a cassette: for code that sleeps or polls.

    >>> is_replaying()
    False
    """
    return active.expects_replay()


def load(path: str | os.PathLike[str]) -> Trajectory:
    """A cassette as a read-only trajectory.

    Nothing is imported for it but what `allow_classes` names: a value of a class that the program has not
    imported stays as it stands in the file, tag and content.

    Raises:
        CassetteNotFoundError: if there is none.
        CassetteError: if any of it cannot be read.

    Example::

        trajectory = stepfork.load("cassettes/outage.yaml")
        [call.name for call in trajectory.calls]
    """
    settings = workspace.settings()
    place = workspace.cassette_path(path, settings)
    try:
        classes, directories = workspace.classes(settings), workspace.directories(settings)
        return StoredCassette(place, classes=classes, directories=directories).trajectory()
    except FileNotFoundError:
        raise not_found(place, Hints()) from None
