"""`python -m crds.generate`: write again what is made from crds/cuvilmodel.yaml; `--check` only says what is stale.

Makes the chart's copy of the CRD (byte for byte) and docs/reference/cuvilmodel.md.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "crds/cuvilmodel.yaml"
EXAMPLE = ROOT / "examples/cuvilmodel.yaml"

Schema = dict[str, Any]

HEAD = """\
# CuvilModel

<!-- Made from crds/cuvilmodel.yaml by `make generate`; change that file instead. -->

Group `cuvil.dev`, version `v1alpha1`, namespaced, short name `cuvil`: `kubectl get cuvil`.
The API server checks every field and rule below on `kubectl apply` and answers with the sentence given. An unknown
field is refused by `kubectl apply` as well (its `--validate=strict` is the default); a client that sends without strict
validation has unknown fields dropped by the API server.

Texts that stand for numbers: a percent is `0.5%` (at most four decimals, above 0 and below 100), a duration is whole
numbers with `ms`, `s`, `m` or `h` (`800ms`, `1h30m`), a tolerance is a decimal in quotes (`"1e-3"`).
"""


def outputs() -> dict[Path, str]:
    """Give each generated file with its text."""
    text = SOURCE.read_text()
    return {
        ROOT / "charts/cuvil/crds/cuvilmodel.yaml": text,
        ROOT / "docs/reference/cuvilmodel.md": reference(yaml.safe_load(text), EXAMPLE.read_text()),
    }


def reference(crd: Schema, example: str) -> str:
    """Give the reference page of the one version of a CRD."""
    version = crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    parts = [
        HEAD,
        f"## Example\n\n```yaml\n{example.rstrip()}\n```\n",
        "## Spec\n",
        _table(schema["spec"], "spec", with_default=True),
        "## Rules\n\nWhere a rule stands on a parent, it concerns several of its fields.\n",
        _rules(version["schema"]["openAPIV3Schema"]),
        "## Status\n\nWritten by the operator alone.\n",
        _table(schema["status"], "status", with_default=False),
        "## Columns of `kubectl get cuvil`\n",
        _columns(version["additionalPrinterColumns"]),
    ]
    return "\n".join(parts)


def _table(schema: Schema, root: str, *, with_default: bool) -> str:
    head = (
        "| field | type | default | meaning |\n|---|---|---|---|\n"
        if with_default
        else "| field | type | meaning |\n|---|---|---|\n"
    )
    lines = []
    for path, node, required in _fields(schema, root):
        default = "required" if required else _default(node)
        cells = [f"`{path}`", _type(node), *([default] if with_default else []), node.get("description", "")]
        lines.append("| " + " | ".join(cells) + " |\n")
    return head + "".join(lines)


def _fields(schema: Schema, where: str) -> Iterator[tuple[str, Schema, bool]]:
    """Give path, node and whether it is required, of every field below a schema."""
    required = set(schema.get("required", ()))
    for key, node in schema.get("properties", {}).items():
        path = f"{where}.{key}"
        yield path, node, key in required
        yield from _fields(node, path)
        for inner, suffix in (("items", "[]"), ("additionalProperties", ".*")):
            yield from _fields(node.get(inner, {}), path + suffix)


def _type(node: Schema) -> str:
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "items" in node:
        return f"list of {_type(node['items'])}"
    if "additionalProperties" in node:
        return f"map of {_type(node['additionalProperties'])}"
    return "time" if node.get("format") == "date-time" else str(node["type"])


def _default(node: Schema) -> str:
    default = node.get("default")
    return "" if default in (None, {}) else f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _rules(schema: Schema) -> str:
    lines = [f"- `{where or 'metadata'}`: {rule['message']}.\n" for where, rule in _all_rules(schema, "")]
    return "".join(lines)


def _all_rules(schema: Schema, where: str) -> Iterator[tuple[str, Schema]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield where.lstrip("."), rule
    for key, node in schema.get("properties", {}).items():
        yield from _all_rules(node, f"{where}.{key}")
    for inner, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if inner in schema:
            yield from _all_rules(schema[inner], where + suffix)


def _columns(columns: list[Schema]) -> str:
    lines = [
        f"| {one['name']} | `{one['jsonPath']}` | {'`-o wide`' if one.get('priority') else 'always'} |\n"
        for one in columns
    ]
    return "| column | from | shown |\n|---|---|---|\n" + "".join(lines)


def main() -> int:
    """Write or check; gives the exit code."""
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        name = path.relative_to(ROOT)
        if "--check" in sys.argv[1:]:
            print(f"{name} is stale; run `make generate` and commit what it writes", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(outputs()[path])
            print(f"wrote {name}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
