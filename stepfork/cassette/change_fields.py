"""What a call did to its arguments, as fields of its document: whether that fits what they were.

Knows plain forms; knows no object and no other field of the document.
"""

from __future__ import annotations

import re
from typing import Any, Final

from stepfork.cassette import fields
from stepfork.cassette.fields import Fault
from stepfork.cassette.placed import check_at
from stepfork.cassette.values import IMPORTED, BadValue, checks
from stepfork.cassette.values.holders import Holder, check_fields, holder_of, likeness
from stepfork.cassette.values.plain_parts import Place, paths_above, step
from stepfork.cassette.values.wholes import BY_STATE, forms_fit
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged
from stepfork.core.placeholder_texts import MARK

_IN_TUPLE: Final = re.compile(r"([^.\[]+)\[([0-9]{1,9})\]")
_ROOT: Final = re.compile(r"[^.\[]*")
_NAMED: Final = "<"  # begins what stands for a secret or a directory, which are of another length
_BYTES: Final = frozenset({"bytes", "bytearray", "memoryview"})


def check(document: dict[str, Plain], args: dict[str, Plain], above: str, *, ran: bool, grown: bool) -> None:
    """Checks what one document, or one step of a generator, says about the arguments `args` of its call.

    `ran` says that the body had run before, so that the arguments need not be what the document says any
    more; `grown` that some step changed an argument: an iterator may then have more items than it had.

    Raises:
        Fault: naming the field.

    >>> check({"left": {"rows": 1}}, {"rows": [1, 2]}, "", ran=False, grown=False)
    """
    changed = _mapping(document, "changed")
    for name, after in changed.items():
        field = f"{above}changed.{name}"
        if name not in args:
            raise Fault(field, f"{name!r} is no argument of this call")
        check_at(field, after)  # only then it can be looked into
        check_at(f"args.{name}", args[name])
        _check_changed(field, args[name], after, ran)
    _check_places(document, changed, args, above, ran)
    written = _mapping(document, "written")
    lefts = _mapping(document, "left")
    for name, text in written.items():
        content = _content(f"{above}written.{name}", name, args)
        _check_written(f"{above}written.{name}", content, text)
        if name not in lefts:
            raise Fault(f"{above}left.{name}", "missing; it says where in what is written the tool stood")
        if lefts[name] == "closed":
            raise Fault(f"{above}left.{name}", "a count expected: what a closed buffer holds is not recorded")
    for name, left in lefts.items():
        content = _content(f"{above}left.{name}", name, args)
        _check_left(f"{above}left.{name}", left, content, written.get(name, content), grown)


def _mapping(document: dict[str, Plain], field: str) -> dict[str, Plain]:
    value = document.get(field, {})
    assert isinstance(value, dict)
    return value


# -- changed, kept, replaced ------------------------------------------------------------------------


def _check_changed(field: str, before: Plain, after: Plain, ran: bool) -> None:
    """Whether an object with the form `before` can be one with the form `after` later."""
    holder = holder_of(before)
    if not ran and canonical_text(before) == canonical_text(after):
        return
    what = fields.kind_of(before)
    if holder is None:
        raise Fault(field, f"the argument is {what}, which no call can change")
    if likeness(before) != likeness(after):
        other = fields.kind_of(after)
        other = f"{other} of another class" if other == what else other
        raise Fault(field, f"the argument is {what}, and no call makes {other} of it")
    if not holder.filled:
        old, new = _parts(holder, before), _parts(holder, after)
        if list(old) != list(new) or (not ran and not old):
            raise Fault(field, f"the argument is {what}, which stays as it is: only what is in it may change")
        for place, part in old.items():
            if canonical_text(part) != canonical_text(new[place]):
                _check_changed(field + step(place), part, new[place], ran)
    elif holder.by_form or ((other_holder := holder_of(after)) is not None and other_holder.by_form):
        widened = MARK in canonical_text([before, after])  # an array of texts in which a secret was replaced
        if not ran and not widened and not forms_fit(before, after):
            raise Fault(field, f"the argument is {what} that cannot become this in place")
    else:
        try:
            check_fields(before, after)
        except BadValue as problem:
            raise Fault(field, str(problem)) from None


def _check_places(
    document: dict[str, Plain], changed: dict[str, Plain], args: dict[str, Plain], above: str, ran: bool
) -> None:
    replaced: Any = document.get("replaced", [])
    kept = _mapping(document, "kept")
    fields.texts(f"{above}replaced", replaced)
    for place, origin in kept.items():
        if not isinstance(origin, str):
            raise Fault(f"{above}kept.{place}", f"text expected, found {fields.kind_of(origin)}; add quotes")
    for field in ("kept", "replaced"):
        if field in document and "changed" not in document:
            raise Fault(f"{above}{field}", "only what has 'changed' may say this")
    if not kept and not replaced:
        return
    (now, made_now), (then, made_then) = _places(changed), _places(args)
    for at, place in enumerate(replaced):
        _check_place(
            f"{above}replaced[{at}]", place, place in now or _is_inside(place, made_now), "afterwards"
        )
    for place, origin in kept.items():
        field, old = f"{above}kept.{place}", str(origin)
        _check_place(field, place, place in now or _is_inside(place, made_now), "afterwards")
        root = _ROOT.match(old)
        known = old in then or _is_inside(old, made_then) or (ran and root is not None and root[0] in args)
        _check_place(field, old, known, "in the arguments")


def _check_place(field: str, place: str, is_known: bool, when: str) -> None:
    if not is_known and _NAMED not in place:
        raise Fault(field, f"no list, mapping or object is at {fields.shown(place)} {when}")


def _parts(holder: Holder, form: Plain) -> dict[Place, Plain]:
    """The parts that a form shows: what a codec or a constructor makes of one, only these know."""
    return {} if holder.by_form else holder.plain_parts(form, IMPORTED)


def _is_inside(place: str, made: set[str]) -> bool:
    """Whether a place is inside of an object that a codec or a constructor makes."""
    return not made.isdisjoint(paths_above(place))


def _places(forms: dict[str, Plain]) -> tuple[set[str], set[str]]:
    """The places of all that can be filled anew; and of what codecs and constructors make."""
    found: set[str] = set()
    made: set[str] = set()
    todo: list[tuple[str, Plain]] = list(forms.items())
    while todo:
        path, form = todo.pop()
        holder = holder_of(form)
        if holder is not None:
            found |= {path} if holder.filled else set()
            made |= {path} if holder.by_form and isinstance(form, Tagged) and form.tag in BY_STATE else set()
            todo += [(path + step(place), part) for place, part in _parts(holder, form).items()]
    return found, made


# -- left, written ----------------------------------------------------------------------------------


def _content(field: str, name: str, args: dict[str, Plain]) -> Plain:
    """What is recorded of an argument, or of one item of a tuple of them (``args[0]``)."""
    if name in args:
        return args[name]
    inside = _IN_TUPLE.fullmatch(name)
    of = None if inside is None else args.get(inside[1])
    items = of.value if isinstance(of, Tagged) and of.tag == "tuple" else None
    if inside is not None and isinstance(items, list) and int(inside[2]) < len(items):
        return items[int(inside[2])]
    raise Fault(field, f"{name!r} is no argument of this call")


def _kind(content: Plain) -> str:
    """What an iterator or a stream is recorded as; "" for any other value."""
    if isinstance(content, Tagged):
        return "bytes" if content.tag in _BYTES else ""
    return "text" if isinstance(content, str) else "a sequence" if isinstance(content, list) else ""


def _check_left(field: str, left: Plain, content: Plain, stands: Plain, grown: bool) -> None:
    """`stands` is what a buffer holds afterwards, as far as that is said."""
    if left != "closed" and (type(left) is not int or left < 0):
        raise Fault(field, f"a count or 'closed' expected, found {fields.shown(left)}")
    kind = _kind(content)
    if not kind:
        raise Fault(field, f"the argument is {fields.kind_of(content)}, no iterator and no stream")
    if kind == "a sequence" and left == "closed":
        raise Fault(field, "a count expected: the argument is an iterator, which cannot be closed")
    if type(left) is not int:
        return
    most = None  # of a stream that is as it was: the tool may have gone back to before where it stood
    if kind == "a sequence" and not grown:
        most = len(content)  # type: ignore[arg-type]
    elif stands is not content:
        most = _length(stands)
    if most is not None and left > most:
        raise Fault(field, f"a count of at most {most} expected, found {fields.shown(left)}")


def _length(content: Plain) -> int | None:
    """How long a text, or bytes, were when the tool had them; None where that is not known."""
    if isinstance(content, Tagged) and content.tag in _BYTES:
        found: Any = checks().decode(content)
        return None if _NAMED.encode() in bytes(found) else len(found)
    return len(content) if isinstance(content, str) and _NAMED not in content else None


def _check_written(field: str, content: Plain, text: Plain) -> None:
    kind = _kind(content)
    if kind not in ("text", "bytes"):
        raise Fault(field, f"the argument is {fields.kind_of(content)}, no buffer that is written to")
    if _kind(text) != kind:
        raise Fault(field, f"{kind} expected, as in the argument, found {fields.kind_of(text)}")
    check_at(field, text)
