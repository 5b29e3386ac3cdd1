"""Frozen dataclasses ↔ the dicts of the Kubernetes API, by type hints alone.

A field `max_bytes` is the key `maxBytes`. Every fault is a SpecError that names the path, the value and the cure.
"""

import re
import types
import typing
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from cuvil_operator.api.values import TextForm

if typing.TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
K = TypeVar("K")


class SpecError(ValueError):
    """A field of a CuvilModel cannot be read: `spec.slo.errorRate: '5' is no percent; write …`."""


def read(cls: type[T], raw: object, where: str, *, strict: bool = True) -> T:
    """Build `cls` from a dict; absent keys take the field's default, null counts as absent.

    strict: an unknown key is a fault (a spec may ask for nothing that is then not done); status is read leniently, so
    that an older operator can read what a newer one wrote.
    """
    if not isinstance(raw, Mapping):
        raise SpecError(f"{where}: expected an object, found {type(raw).__name__}")
    known = {camel(one.name): one for one in fields(cls)}
    unknown = sorted(set(raw) - set(known)) if strict else []
    if unknown:
        raise SpecError(f"{where}.{unknown[0]}: no such field; {where} has {', '.join(known)}")
    hints = _hints(typing.cast(Hashable, cls))
    return cls(
        **{one.name: _field(one, hints[one.name], raw.get(key), f"{where}.{key}", strict) for key, one in known.items()}
    )


def write(value: "DataclassInstance") -> dict[str, Any]:
    """Give the dict of a dataclass; None and empty lists and maps are left out: equal values give equal dicts."""
    hints = _hints(typing.cast(Hashable, type(value)))
    pairs = ((camel(one.name), _write(hints[one.name], getattr(value, one.name))) for one in fields(value))
    return {key: written for key, written in pairs if written is not None and written != [] and written != {}}


@cache
def camel(name: str) -> str:
    """Give the key of a field: `opt_level` → `optLevel`, `format_` → `format`."""
    return re.sub(r"_([a-z0-9])", lambda hit: hit[1].upper(), name.rstrip("_"))


@cache
def _hints(cls: Hashable) -> dict[str, Any]:
    return get_type_hints(typing.cast(type, cls), include_extras=True)


def _field(one: "Field[Any]", hint: Any, raw: object, where: str, strict: bool) -> Any:
    if raw is not None:
        return _read(hint, raw, where, strict)
    if one.default is not MISSING:
        return one.default
    if one.default_factory is not MISSING:
        return one.default_factory()
    raise SpecError(f"{where}: is missing; set it")


def _read(hint: Any, raw: object, where: str, strict: bool) -> Any:
    hint = without_none(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _read_text(arguments[1], raw, where)
    if origin is tuple:
        return tuple(
            _read(arguments[0], one, f"{where}[{at}]", strict) for at, one in enumerate(_expect(list, raw, where))
        )
    if origin is Mapping:
        pairs = _expect(dict, raw, where).items()
        return {str(key): _read(arguments[1], one, f"{where}[{key}]", strict) for key, one in pairs}
    if origin in (Union, types.UnionType):
        return _read_scalar(arguments, raw, where)
    if is_dataclass(hint):
        return read(typing.cast(type, hint), raw, where, strict=strict)
    if issubclass(hint, Enum):
        return _read_enum(hint, raw, where)
    return _read_scalar((hint,), raw, where)


def _read_text(form: TextForm, raw: object, where: str) -> Any:
    try:
        return form.parse(_expect(str, raw, where))
    except SpecError:
        raise
    except (ValueError, OverflowError) as fault:
        raise SpecError(f"{where}: {fault}") from fault


def _read_enum(kind: type[Enum], raw: object, where: str) -> Enum:
    try:
        return kind(raw)
    except ValueError:
        raise SpecError(
            f"{where}: {raw!r} is none of {', '.join(str(one.value) for one in kind)}; take one of them"
        ) from None


def _read_scalar(kinds: tuple[type, ...], raw: object, where: str) -> Any:
    # bool is a subclass of int: `replicas: true` must not read as 1
    if type(raw) in kinds:
        return raw
    if kinds == (float,) and type(raw) is int:
        return float(raw)
    names = " or ".join(one.__name__ for one in kinds)
    raise SpecError(f"{where}: expected {names}, found {type(raw).__name__} {raw!r}")


def _expect(kind: type[K], raw: object, where: str) -> K:
    if isinstance(raw, kind):
        return raw
    raise SpecError(f"{where}: expected {kind.__name__}, found {type(raw).__name__}")


def _write(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    hint = without_none(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return arguments[1].format(value)
    if origin is tuple:
        return [_write(arguments[0], one) for one in value]
    if origin is Mapping:
        return {key: _write(arguments[1], one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return write(value)
    return value.value if isinstance(value, Enum) else value


def without_none(hint: Any) -> Any:
    """Give X of `X | None`; another hint as it is."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    kept = [one for one in get_args(hint) if one is not type(None)]
    return kept[0] if len(kept) == 1 else hint
