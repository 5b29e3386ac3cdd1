"""The CRD and `cuvil_operator.api` say the same: fields, types, defaults; the CRD's own promises hold."""

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
import yaml

from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus, Step
from cuvil_operator.api.codec import camel, without_none
from cuvil_operator.decide.split import unreachable

ROOT = Path(__file__).parents[2]
CRD = yaml.safe_load((ROOT / "crds/cuvilmodel.yaml").read_text())
VERSION = CRD["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]["properties"]
SPECS = yaml.safe_load((ROOT / "tests/crds/specs.yaml").read_text())


def merge(base: Any, patch: Any) -> Any:
    """Lay a JSON merge patch (RFC 7386) over a value."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def with_defaults(value: Any, schema: dict[str, Any]) -> Any:
    """Fill in defaults as the API server does: an absent field takes its default, then the fields inside it theirs."""
    if isinstance(value, list):
        return [with_defaults(one, schema["items"]) for one in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for key, inner in schema.get("properties", {}).items():
        if key not in filled and "default" in inner:
            filled[key] = inner["default"]
        if key in filled:
            filled[key] = with_defaults(filled[key], inner)
    return filled


def differences(hint: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Name each place where a type of api/ and the schema disagree."""
    hint = without_none(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        wanted = "date-time" if arguments[1].name == "time" else None
        if schema.get("type") != "string" or schema.get("format") != wanted:
            yield f"{where}: api has a {arguments[1].name}, the schema {schema.get('type')} {schema.get('format')}"
    elif origin is tuple:
        yield from differences(arguments[0], schema.get("items", {}), f"{where}[]")
    elif origin is Mapping:
        yield from differences(arguments[1], schema.get("additionalProperties", {}), f"{where}{{}}")
    elif origin in (Union, types.UnionType):
        if schema.get("x-kubernetes-int-or-string") is not True:
            yield f"{where}: api has int or str"
    elif is_dataclass(hint):
        yield from object_differences(hint, schema, where)
    else:
        wanted = "string" if issubclass(hint, Enum) else {int: "integer", str: "string", bool: "boolean"}[hint]
        if schema.get("type") != wanted:
            yield f"{where}: api has {hint.__name__}, the schema {schema.get('type')}"


def object_differences(cls: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Compare the fields, the required ones, and then each field's type."""
    hints = get_type_hints(cls, include_extras=True)
    ours = {camel(one.name): one for one in fields(cls)}
    theirs = schema.get("properties", {})
    yield from (f"{where}.{key}: only in one of api and schema" for key in set(ours) ^ set(theirs))
    needed = {key for key, one in ours.items() if one.default is MISSING and one.default_factory is MISSING}
    needed = {key for key in needed if key in set(schema.get("required", ())) or not nullable(hints[ours[key].name])}
    yield from (f"{where}.{key}: required in one, not in the other" for key in needed ^ set(schema.get("required", ())))
    for key in set(ours) & set(theirs):
        yield from differences(hints[ours[key].name], theirs[key], f"{where}.{key}")


def nullable(hint: Any) -> bool:
    """True for `X | None`."""
    return type(None) in get_args(hint)


def nodes(schema: dict[str, Any], where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every node of a schema with its path."""
    yield where, schema
    for key, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{where}.{key}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{where}[]")


def test_spec_has_the_same_fields_as_the_schema() -> None:
    """No field can be asked for that the operator does not read, and none is read that cannot be asked for."""
    assert not list(differences(CuvilModelSpec, SCHEMA["spec"], "spec"))


def test_status_has_the_same_fields_as_the_schema() -> None:
    """No status is pruned by the API server because the schema forgot it."""
    assert not list(differences(CuvilModelStatus, SCHEMA["status"], "status"))


@pytest.mark.parametrize("name", SPECS["good"])
def test_defaults_are_the_same(name: str) -> None:
    """A spec reads the same whether the API server filled in its defaults or the operator did."""
    raw = merge(SPECS["least"], SPECS["good"][name])
    defaulted = with_defaults(raw, SCHEMA["spec"])
    assert CuvilModelSpec.from_dict(raw) == CuvilModelSpec.from_dict(defaulted)
    assert set(defaulted) <= set(CuvilModelSpec.from_dict(raw).to_dict()) | {"suspend"}


def test_defaults_in_the_schema_are_complete() -> None:
    """What the API server stores for the least spec is all that the operator would have assumed."""
    defaulted = with_defaults(SPECS["least"], SCHEMA["spec"])
    assert CuvilModelSpec.from_dict(SPECS["least"]).to_dict() == defaulted


@pytest.mark.parametrize("column", VERSION["additionalPrinterColumns"], ids=lambda one: str(one["name"]))
def test_printer_columns_exist(column: dict[str, Any]) -> None:
    """Each JSONPath of `kubectl get cuvil` ends at a field of the schema with the column's type."""
    if column["jsonPath"] == ".metadata.creationTimestamp":
        return
    node: dict[str, Any] = {"properties": SCHEMA}
    for part in re.findall(r"\.([A-Za-z0-9]+)(?=[.\[]|$)", re.sub(r"\[\?.*?\]", "", column["jsonPath"])):
        node = node["properties"].get(part) or pytest.fail(f"{column['jsonPath']}: no {part}")
        node = node.get("items", node)
    assert node["type"] == column["type"]


def test_conditions_are_a_map_by_type() -> None:
    """Two writers of conditions cannot make one type appear twice."""
    conditions = SCHEMA["status"]["properties"]["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])


def test_everything_in_the_spec_is_bounded() -> None:
    """No text, list or map of a spec can grow without end, which also keeps the cost of the rules within budget."""
    bound = {"string": "maxLength", "array": "maxItems"}
    loose = [
        where
        for where, node in nodes(SCHEMA["spec"], "spec")
        if bound.get(node.get("type", ""), "type" if "type" in node else "maxLength") not in node
        or ("additionalProperties" in node and "maxProperties" not in node)
    ]
    assert not loose


def test_every_rule_has_a_sentence_with_a_cure() -> None:
    """A refused apply tells its reader what to write instead."""
    whole = VERSION["schema"]["openAPIV3Schema"]
    messages = [rule["message"] for _, node in nodes(whole, "") for rule in node.get("x-kubernetes-validations", ())]
    assert len(messages) >= 40
    assert not [one for one in messages if len(one) < 20 or one.endswith(".") or "\n" in one]


def test_every_field_is_described() -> None:
    """`kubectl explain` and the reference page have a sentence for each field of the spec and the status."""
    bare = ("key", "operator", "value", "effect", "tolerationSeconds", "requests", "limits", "min", "max")
    named = [n for part in ("spec", "status") for n in nodes(SCHEMA[part], part) if not n[0].endswith("[]")]
    assert not [where for where, node in named if "description" not in node and where.rsplit(".")[-1] not in bare]


def test_what_apply_accepts_pods_can_reach() -> None:
    """The schema's rule on coarse weights admits no step that the operator would then refuse."""
    for replicas in range(1, 60):
        for weight in range(1, 100):
            admitted = weight * (replicas + 1) >= 50
            assert not (admitted and unreachable(replicas, (Step(weight, timedelta(minutes=1)),)))
    rules = SCHEMA["spec"]["x-kubernetes-validations"]
    assert any("s.weight * (self.serving.replicas + 1) >= 50" in one["rule"] for one in rules)
