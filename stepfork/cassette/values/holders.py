"""What a value holds, part by part, in the object and in its plain form. Knows shapes; knows no call.

A *holder* is one shape of values whose parts have places: a sequence, a tuple, a mapping, attributes. It
gives the parts of an object and those of its plain form under the same places, and fills an object anew.
What has no parts is filled as a whole (`wholes`); what has no holder never changes.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final, Protocol, TypeAlias

from stepfork.cassette.values.classes import is_attrs
from stepfork.cassette.values.faults import BadValue
from stepfork.cassette.values.looking import looks
from stepfork.cassette.values.models import fields_set, is_model, parts_of_model, put_parts
from stepfork.cassette.values.plain_parts import (
    Place,
    fields_of,
    hollow,
    items_of,
    pairs_of,
    places_of,
)
from stepfork.cassette.values.policy import ClassPolicy
from stepfork.cassette.values.state import put_state, replace_state, state_of
from stepfork.cassette.values.walk import Decoder, Encoder
from stepfork.cassette.values.wholes import BY_STATE, NEVER_CHANGE, fill_whole, fits_whole
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

Forms: TypeAlias = Mapping[Place, Plain]
_NONE: Final[Forms] = MappingProxyType({})


class Holder(Protocol):
    """One shape of values.

    Attributes:
        by_order: whether its parts may be found at another place after a change.
        filled: whether an object of it can be given other parts.
        by_form: whether it is another one only where its plain form is; what its parts are is its own affair.
    """

    by_order: bool
    filled: bool
    by_form: bool

    def suits(self, value: Any) -> bool:
        """Whether an object is of this shape."""

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        """What an object holds now; `forms` are the plain forms of that, as far as they are known."""

    def beyond(self, value: Any) -> Any:
        """What an object holds beyond its parts; it can be compared."""

    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        """The plain forms of what it holds, by the same places."""

    def fits(self, held: Any, before: Plain, after: Plain) -> bool:
        """Whether an object can be brought from one form to the other."""

    def fill(self, held: Any, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> None:
        """Gives an object these parts, and what else its form says."""

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        """A new object of these parts."""


# -- sequences --------------------------------------------------------------------------------------


class _Holder:
    """What most of them have in common."""

    by_order = False
    filled = True
    by_form = False

    def beyond(self, value: Any) -> Any:
        return None

    def fits(self, held: Any, before: Plain, after: Plain) -> bool:
        return True


class _Sequence(_Holder):
    """Lists and deques."""

    by_order = True

    def suits(self, value: Any) -> bool:
        return isinstance(value, list | deque)

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        kind: Any = list if isinstance(value, list) else deque
        return dict(enumerate(kind.__iter__(value)))

    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        return dict(enumerate(items_of(form)))

    def fill(self, held: Any, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> None:
        kind: Any = list if isinstance(held, list) else deque
        kind.clear(held)
        kind.extend(held, parts.values())

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        if isinstance(form, list):
            return list(parts.values())
        maxlen = form.value["maxlen"] if isinstance(form.value, dict) else None  # type: ignore[union-attr]
        return deque(parts.values(), maxlen)  # type: ignore[arg-type]


class _Tuple(_Sequence):
    """Tuples, which stay as they are while what is in them may change."""

    filled = False

    def suits(self, value: Any) -> bool:
        return isinstance(value, tuple)

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        return dict(enumerate(tuple.__iter__(value)))

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        return tuple(parts.values())


class _NamedTuple(_Tuple):
    by_order = False

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        return dict(zip(type(value)._fields, tuple.__iter__(value), strict=True))

    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        return fields_of(form)

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        kind = type(hollow(form, classes))
        return tuple.__new__(kind, [parts[name] for name in kind._fields])


# -- mappings ---------------------------------------------------------------------------------------


_TEXT: Final = frozenset({str})


class _Mapping(_Holder):
    """Dicts of every kind."""

    def beyond(self, value: Any) -> Any:
        return id(value.default_factory) if isinstance(value, defaultdict) else None

    def suits(self, value: Any) -> bool:
        return isinstance(value, dict)

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        if type(value) is dict and _TEXT.issuperset(map(type, value)):
            return dict(value)
        return dict(zip(self._keys(value, classes), _base(value).values(value), strict=True))

    def _keys(self, value: Any, classes: ClassPolicy) -> dict[Place, Any]:
        """The object's own keys by their places."""
        keys = list(_base(value).keys(value))
        if _TEXT.issuperset(map(type, keys)):
            return {key: key for key in keys}
        encoder = Encoder(classes)
        return dict(zip(places_of(encoder.encode(key, "key") for key in keys), keys, strict=True))

    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        if isinstance(form, dict):
            return form
        pairs = pairs_of(form)
        return dict(zip(places_of(key for key, _ in pairs), (item for _, item in pairs), strict=True))

    def fill(self, held: Any, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> None:
        own = self._keys(held, classes)
        plain = [key for key, _ in pairs_of(form)]
        decoder = Decoder(classes)
        base = _base(held)
        base.clear(held)
        for place, key in zip(places_of(plain), plain, strict=True):
            base.__setitem__(held, own[place] if place in own else decoder.decode(key), parts[place])
        if isinstance(held, defaultdict) and isinstance(form, Tagged) and form.tag == "defaultdict":
            held.default_factory = hollow(form, classes).default_factory

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        made = hollow(form, classes)
        self.fill(made, form, parts, classes)
        return made


def _base(value: Any) -> Any:
    """Whose methods are asked: those of a subclass may mean something else."""
    return OrderedDict if isinstance(value, OrderedDict) else dict


# -- attributes -------------------------------------------------------------------------------------


class _Attributes(_Holder):
    """Dataclasses, attrs classes, namespaces."""

    def suits(self, value: Any) -> bool:
        return isinstance(value, SimpleNamespace) or is_dataclass(type(value)) or is_attrs(type(value))

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        return state_of(value)

    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        return fields_of(form)

    def fits(self, held: Any, before: Plain, after: Plain) -> bool:
        check_fields(before, after)
        return True

    def fill(self, held: Any, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> None:
        replace_state(held, parts)

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        made = hollow(form, classes)  # with the defaults of fields that are new
        put_state(made, parts)
        return made


class _Model(_Attributes):
    """pydantic's models: their fields, what they hold beyond them, and what is private."""

    def suits(self, value: Any) -> bool:
        return is_model(type(value))

    def beyond(self, value: Any) -> Any:
        return frozenset(fields_set(value))

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        return {name: item for part in parts_of_model(value) for name, item in part.items()}

    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        content: Any = form.value  # type: ignore[union-attr]
        return {
            name: item
            for part in ("fields", "attributes", "extra", "private")
            for name, item in content.get(part, {}).items()
        }

    def fill(self, held: Any, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> None:
        put_parts(held, hollow(form, classes), parts)

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        made = hollow(form, classes)
        self.fill(made, form, parts, classes)
        return made


class _Whole(_Holder):
    """What is filled as a whole, or not at all."""

    by_form = True

    def suits(self, value: Any) -> bool:
        return True

    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        return {}

    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        return {}

    def fits(self, held: Any, before: Plain, after: Plain) -> bool:
        return fits_whole(held, before, after)

    def fill(self, held: Any, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> None:
        fill_whole(held, form, classes, parts)

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        return Decoder(classes).decode(form)


class _Frozen(_Whole):
    """What never changes, but may hold what does."""

    filled = False
    by_form = False


class _Remade(_Whole):
    """What a codec or its own constructor makes. Its parts are the attributes that this gives as they are."""

    @looks
    def parts(self, value: Any, classes: ClassPolicy, forms: Forms = _NONE) -> dict[Place, Any]:
        held = state_of(value)
        shown = self.plain_parts(Encoder(classes).encode(value, "value"), classes)
        alike = {
            at: form for at, form in shown.items() if repr(_form(held.get(str(at)), classes)) == repr(form)
        }
        return {at: held[str(at)] for at in alike}

    @looks
    def plain_parts(self, form: Plain, classes: ClassPolicy) -> dict[Place, Plain]:
        made = state_of(Decoder(classes).decode(form))
        forms: dict[Place, Plain] = {name: _form(item, classes) for name, item in made.items()}
        return {name: shown for name, shown in forms.items() if holder_of(shown) is not None}

    def new(self, form: Plain, parts: dict[Place, Any], classes: ClassPolicy) -> Any:
        made = Decoder(classes).decode(form)
        put_state(made, {str(at): part for at, part in parts.items()})
        return made


def _form(value: Any, classes: ClassPolicy) -> Plain:
    """The form of a value; None for one that cannot be written."""
    try:
        return Encoder(classes).encode(value, "value")
    except Exception:
        return None


_WHOLE: Final[Holder] = _Whole()
_REMADE: Final[Holder] = _Remade()
_SEQUENCE: Final[Holder] = _Sequence()
_MAPPING: Final[Holder] = _Mapping()
_ATTRIBUTES: Final[Holder] = _Attributes()
_BY_TAG: Final[dict[str, Holder]] = {
    "deque": _SEQUENCE,
    "frozenset": _Frozen(),
    "tuple": _Tuple(),
    "namedtuple": _NamedTuple(),
    **dict.fromkeys(("map", "counter", "defaultdict"), _MAPPING),
    **dict.fromkeys(("dataclass", "attrs", "namespace"), _ATTRIBUTES),
    "model": _Model(),
    "custom": _REMADE,
}
_DECLARED: Final = frozenset({"dataclass", "attrs"})  # a model may have others beside its fields
_OF_CLASSES: Final = frozenset({"dataclass", "attrs", "model", "namedtuple"})


def holder_of(form: Plain) -> Holder | None:
    """The shape of the value with this form; None for one that never changes.

    >>> holder_of([1]) is holder_of([]), holder_of(1), holder_of(Tagged("decimal", "1"))
    (True, None, None)
    """
    if isinstance(form, list):
        return _SEQUENCE
    if isinstance(form, dict):
        return _MAPPING
    if not isinstance(form, Tagged) or form.tag in NEVER_CHANGE:
        return None
    if form.tag in _OF_CLASSES and isinstance(form.value, dict) and "init" in form.value:
        return _REMADE if form.tag in BY_STATE else _WHOLE
    return _BY_TAG.get(form.tag, _WHOLE)


def check_fields(before: Plain, after: Plain) -> None:
    """Whether two forms of one object name the same fields of its class; what is no field may come and go.

    Raises:
        BadValue: if they do not.

    >>> check_fields(Tagged("namespace", {"a": 1}), Tagged("namespace", {}))
    """
    forms: Any = [
        form.value for form in (before, after) if isinstance(form, Tagged) and form.tag in _DECLARED
    ]
    if len(forms) < 2 or any("init" in form for form in forms):
        return
    old, new = ({*form["fields"], *form.get("absent", ())} for form in forms)
    for name in sorted(old ^ new):
        if name in old:
            raise BadValue(f"the field {name!r} is missing; one that was deleted stands under 'absent'")
        raise BadValue(f"the argument has no field {name!r}")


def likeness(form: Plain) -> Any:
    """Equal for two forms if an object of the one may be filled to be of the other."""
    holder = holder_of(form)
    if holder is None:
        return None
    if not isinstance(form, Tagged) or holder is _MAPPING:
        return holder
    named: Any = form.value if form.tag in _OF_CLASSES else {}
    return (form.tag, named.get("class"), canonical_text(named.get("of")))
