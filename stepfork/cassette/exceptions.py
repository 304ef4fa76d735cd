"""Exceptions <-> plain values. Names, describes and rebuilds them; knows no call and no file.

An exception is described by its class (``module:qualified.name``), the arguments it is rebuilt from, its
attributes, its notes and its cause. It is rebuilt by the ``__new__`` and ``__init__`` of the builtin
exception it derives from, and its attributes are put in place: no code of its class runs. Only where that
does not give it back its own constructor is called, if the policy lets it. Which way does is found, and
proven, while recording.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from stepfork.cassette.exception_kinds import (
    bare_exception,
    builtin_below,
    kind_of,
    members_of,
    without_handles,
)
from stepfork.cassette.fields import Fault, check_error
from stepfork.cassette.values.faults import BadValue, Unsupported, type_name
from stepfork.cassette.values.http_messages import named_once
from stepfork.cassette.values.looking import looks
from stepfork.cassette.values.policy import IMPORTED, ClassPolicy, class_name
from stepfork.cassette.values.state import put_state, state_of
from stepfork.cassette.values.walk import Decoder, Encoder, Row
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

__all__ = ["class_name", "decode_exception", "encode_exception", "is_outcome", "text_of"]

_INTERRUPTING: Final = ("trio", "stepfork")
_NOTES: Final = "__notes__"


@looks
def encode_exception(
    error: BaseException, path: str = "error", classes: ClassPolicy = IMPORTED
) -> dict[str, Plain]:
    """The plain form of an exception, proven to come back as the same class with the same content.

    Raises:
        Unsupported: if it would not.

    >>> encode_exception(KeyError("k"))
    {'class': 'builtins:KeyError', 'args': ['k']}
    """
    try:
        form = _encode(error, Encoder(classes), path)
        named = named_once(form)
        assert isinstance(named, dict)
        return named
    except Unsupported:
        raise
    except Exception as problem:  # a text or attribute that raises when it is asked for
        raise Unsupported(path, type_name(error), f"(it cannot be read: {type_name(problem)})") from None


@looks
def decode_exception(form: Plain, classes: ClassPolicy = IMPORTED) -> BaseException:
    """A fresh exception from its plain form.

    Raises:
        BadValue: if the class is not to be found or the content does not fit it.

    >>> decode_exception({"class": "builtins:ValueError", "args": ["no"]})
    ValueError('no')
    """
    try:
        error = _decode(form, Decoder(classes))
    except BadValue:
        raise
    except Exception as problem:
        raise BadValue(f"the error cannot be read: {problem}") from None
    if not is_outcome(error):
        raise BadValue(f"{class_name(type(error))!r} ends a program and is no outcome of a call")
    return error


def is_outcome(error: BaseException) -> bool:
    """Whether an error is what a call came to, and no interruption of the whole run or of a task.

    >>> is_outcome(SystemExit(1)), is_outcome(KeyboardInterrupt())
    (True, False)
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_outcome, error.exceptions))
    asyncio: Any = sys.modules.get("asyncio")  # who raises its error has imported it
    if isinstance(error, KeyboardInterrupt) or (asyncio and isinstance(error, asyncio.CancelledError)):
        return False
    return isinstance(error, Exception) or type(error).__module__.partition(".")[0] not in _INTERRUPTING


@looks
def text_of(error: BaseException) -> str:
    """The text of an exception; one that cannot be read is empty.

    >>> text_of(ValueError("no"))
    'no'
    """
    try:
        return str(error)
    except Exception:
        return ""


# -- there ------------------------------------------------------------------------------------------


def _encode(error: BaseException, encoder: Encoder, path: str) -> dict[str, Plain]:
    name = encoder.name_of(error, path)
    with encoder.visit(error, path):
        try:
            if kind_of(type(error)) is not None:
                raise Unsupported(path, type_name(error), "(it does not come back equal)")
            form = _by_state(error, name, encoder, path)
        except Unsupported as problem:
            form = _by_constructor(error, name, encoder, path, problem)
        form |= _around(error, encoder, path)
    return form


def _by_state(error: BaseException, name: str, encoder: Encoder, path: str) -> dict[str, Plain]:
    """What the builtin exception below is made of, and the attributes."""
    kind = type(error)
    base = builtin_below(kind)
    arguments = base.__reduce__(error)[1]
    try:
        bare = bare_exception(kind, tuple(arguments))
    except Exception as problem:
        raise Unsupported(path, type_name(error), f"({_first_line(problem)})") from None
    form: dict[str, Plain] = {
        "class": name,
        "args": [encoder.encode(item, f"{path}.args[{at}]") for at, item in enumerate(arguments)],
    }
    state = _fields_beyond(error, bare, encoder, path) | _attributes(error)
    if state:
        form["attributes"] = encoder.fields(state, path)
    again = _decode(form, Decoder(encoder.classes))
    if not _same(again, error, encoder, path):
        raise Unsupported(path, type_name(error), "(it does not come back equal)")
    return form


def _by_constructor(
    error: BaseException, name: str, encoder: Encoder, path: str, problem: Unsupported
) -> dict[str, Plain]:
    """What ``__reduce__`` says the constructor takes.

    Raises:
        Unsupported: the problem that led here if this does not do either, with the line to add if it would.
    """
    kind = kind_of(type(error))
    reduced: Any = (type(error), kind.take(error)) if kind is not None else error.__reduce_ex__(4)
    if not (isinstance(reduced, tuple) and len(reduced) > 1 and reduced[0] is type(error)):
        raise problem
    form: dict[str, Plain] = {"class": name}
    try:
        form["init"] = [encoder.encode(item, f"{path}.args[{at}]") for at, item in enumerate(reduced[1])]
    except Unsupported:
        raise problem from None
    if kind is None and not encoder.classes.may_construct(type(error)):
        problem.hint = f"if its constructor may run on replay, set allow_classes = [{name!r}]"
        raise problem
    attributes: dict[str, Plain] = {}
    for key, item in _attributes(error).items():
        try:
            attributes[key] = encoder.encode(item, f"{path}.{key}")
        except Unsupported:
            continue  # the constructor makes it
    try:
        made = _decode(form, Decoder(encoder.classes))
        differing = {
            key: item for key, item in attributes.items() if not _has(made, key, item, encoder, path)
        }
        if differing:
            form["attributes"] = differing
            made = _decode(form, Decoder(encoder.classes))
    except BadValue:
        raise problem from None
    if not _same(made, error, encoder, path, loosely=True):
        raise problem
    return form


def _has(made: BaseException, key: str, item: Plain, encoder: Encoder, path: str) -> bool:
    state = state_of(made)
    try:
        return key in state and canonical_text(encoder.encode(state[key], path)) == canonical_text(item)
    except Unsupported:
        return False


def _around(error: BaseException, encoder: Encoder, path: str) -> dict[str, Plain]:
    """What stands around an exception: its notes and what it was raised from."""
    form: dict[str, Plain] = {}
    notes = _notes(error)
    if notes:
        form["notes"] = list(notes)
    cause = error.__cause__
    if cause is not None:
        try:
            form["cause"] = _encode(cause, encoder, f"{path}.__cause__")
        except Exception:  # it would cost the recording, and hardly any program looks at it
            form["cause_left_out"] = f"{class_name(type(cause))}: {text_of(cause)}"
    if error.__suppress_context__ != ("cause" in form):
        form["suppress_context"] = error.__suppress_context__
    return form


def _arguments(error: BaseException) -> Any:
    kind = kind_of(type(error))
    return error.args if kind is None else kind.take(error)


def _attributes(error: BaseException) -> dict[str, Any]:
    state, kind = state_of(error), kind_of(type(error))
    if _notes(error):
        del state[_NOTES]
    if kind is not None:
        return {name: item for name, item in state.items() if name not in kind.hides}
    return without_handles(type(error), state)


def _notes(error: BaseException) -> list[str]:
    """The notes, where they are texts as `add_note` leaves them."""
    notes = state_of(error).get(_NOTES)
    return notes if type(notes) is list and all(type(note) is str for note in notes) else []


def _fields_beyond(error: BaseException, bare: BaseException, encoder: Encoder, path: str) -> dict[str, Any]:
    """Fields of the builtin exception that its arguments do not give (``ImportError.name``)."""
    found: dict[str, Any] = {}
    for member in members_of(type(error)):
        name = member.__name__
        old, new = member.__get__(error), member.__get__(bare)
        place = f"{path}.{name}"
        if old is not new and canonical_text(encoder.encode(old, place)) != canonical_text(
            encoder.encode(new, place)
        ):
            found[name] = old
    return found


def _same(
    again: BaseException, error: BaseException, encoder: Encoder, path: str, *, loosely: bool = False
) -> bool:
    """Whether an exception came back; `loosely` takes attributes that cannot be written for equal by type.

    A set that it holds may be iterated in another order, today or in another process; so may its text be.
    """
    if type(again) is not type(error):
        return False
    said, now = _said(error), _said(again)
    forms: list[Plain] = []
    old, new = ({"args": _arguments(one), **_attributes(one)} for one in (error, again))
    if old.keys() != new.keys():
        return False
    for name, item in old.items():
        try:
            forms.append(encoder.encode(item, f"{path}.{name}"))
        except Unsupported:
            if not loosely or type(item) is not type(new[name]):
                raise
            continue
        if canonical_text(forms[-1]) != canonical_text(encoder.encode(new[name], f"{path}.{name}")):
            return False
    return now == said or (sorted(now) == sorted(said) and any(map(_holds_set, forms)))


def _holds_set(form: Plain) -> bool:
    if isinstance(form, Tagged):
        return form.tag in ("set", "frozenset") or _holds_set(form.value)
    if isinstance(form, list | dict):
        return any(map(_holds_set, form.values() if isinstance(form, dict) else form))
    return False


def _said(error: BaseException) -> str:
    """The text of an exception, or what it raises instead."""
    try:
        return str(error)
    except Exception as problem:
        return f"raises {type_name(problem)}"


# -- and back ---------------------------------------------------------------------------------------


def _decode(form: Any, decoder: Decoder) -> BaseException:
    by_constructor = isinstance(form, dict) and "init" in form
    try:
        check_error("", form)
    except Fault as fault:
        raise BadValue(str(fault)) from None
    fields: dict[str, Any] = form
    arguments = decoder.items(fields["init"] if by_constructor else fields.get("args", []))
    attributes = decoder.fields(fields.get("attributes", {}))
    cause = _decode(fields["cause"], decoder) if "cause" in fields else None
    kind: Any = decoder.find(fields["class"], _is_exception, "exception class")
    try:
        if by_constructor:
            special = kind_of(kind)
            if special is None:
                decoder.constructs(kind)
            error: BaseException = kind(*arguments) if special is None else special.make(kind, arguments)
        else:
            error = bare_exception(kind, tuple(arguments))
        if type(error) is not kind:
            raise BadValue(f"exception class {fields['class']!r} gives another class")
        members = {member.__name__: member for member in members_of(kind)}
        for name in members.keys() & attributes.keys():
            members[name].__set__(error, attributes.pop(name))
        put_state(error, attributes)
    except BadValue:
        raise
    except Exception as problem:
        raise BadValue(
            f"exception class {fields['class']!r} cannot be built from its args: {problem}"
        ) from None
    for note in fields.get("notes", []):
        error.add_note(note)
    if cause is not None:
        error.__cause__ = error.__context__ = cause
    if "suppress_context" in fields:
        error.__suppress_context__ = fields["suppress_context"]
    return error


def _is_exception(kind: type) -> bool:
    return issubclass(kind, BaseException)


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]


def _encode_value(error: BaseException, encoder: Encoder, path: str) -> Plain:
    return _encode(error, encoder, path)


def _decode_value(content: Any, decoder: Decoder) -> BaseException:
    return _decode(content, decoder)


EXCEPTION: Final = Row("exception", _is_exception, _encode_value, _decode_value)
"""An exception as a value, as `asyncio.gather` returns it."""
