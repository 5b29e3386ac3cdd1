"""TreeEnsemble and TreeEnsembleRegressor: all trees walked at once, one step a level, by tables looked up.

A leaf leads to itself, so shallow trees wait for deep ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, need
from cuvil_core.importer.onnx.features import DOMAIN
from cuvil_core.importer.onnx.lookups import counted, rows_at
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import payload_of_proto
from cuvil_core.ir import Dim, DType, Payload, Relation

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_COMPARE = ("le", "lt", "ge", "gt", "eq", "ne")
_MEMBER = 6
_FOLDS = {"AVERAGE": "sum", "SUM": "sum", "MIN": "min", "MAX": "max"}
MAX_DEPTH = 1 << 8
MAX_VOTES = 1 << 24
"""Nodes times targets: the table of what each leaf adds to each target."""


@dataclass(frozen=True, slots=True)
class _Forest:
    """One entry a node; `votes` is nodes × targets, what a tree that ends there adds."""

    features: Sequence[int]
    splits: Sequence[float]
    modes: Sequence[int]
    on_true: Sequence[int]
    on_false: Sequence[int]
    missing: Sequence[int]
    roots: Sequence[int]
    votes: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
    members: "np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None" = None
    """For nodes that test membership: nodes × members, filled up with NaN, which equals nothing."""

    @property
    def nodes(self) -> int:
        """How many there are, leaves included."""
        return len(self.features)


def _tree_ensemble(context: Context, node: Node, operands: Operands) -> Tensor:
    """Interior nodes and leaves come in lists of their own; here leaves follow the interior nodes."""
    x = need(node, operands, 0)
    modes = [int(mode) for mode in _numbers(node, "nodes_modes")]
    inner, leaves = len(modes), _numbers(node, "leaf_weights")
    targets, count = node.integers("leaf_targetids"), node.integer("n_targets")
    kind = _chosen(node, "aggregate_function", 1, ("AVERAGE", "SUM", "MIN", "MAX"))
    if len(targets) != len(leaves) or any(not 0 <= target < count for target in targets):
        raise node.broken("its leaves have no target each, or one beyond n_targets")
    votes = _votes(node, inner + len(leaves), count, kind)
    votes[np.arange(inner, inner + len(leaves)), list(targets)] = leaves
    itself = list(range(inner, inner + len(leaves)))
    none = [0] * len(leaves)
    forest = _Forest(
        [*node.integers("nodes_featureids"), *none],
        [*_numbers(node, "nodes_splits"), *map(float, none)],
        [*modes, *none],
        [*_branches(node, "true", inner), *itself],
        [*_branches(node, "false", inner), *itself],
        [*node.integers("nodes_missing_value_tracks_true", (0,) * inner), *none],
        node.integers("tree_roots"),
        votes,
    )
    if _MEMBER in modes:
        forest = replace(forest, members=_members(node, modes, forest.nodes))
    transform = _chosen(node, "post_transform", 0, ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"))
    return _transformed(context, node, _walked(context, node, x, forest, kind), transform)


def _regressor(context: Context, node: Node, operands: Operands) -> Tensor:
    """Nodes are named by tree and number, leaves among them, with any number of votes each; the result is float32."""
    x = need(node, operands, 0)
    names = list(zip(node.integers("nodes_treeids"), node.integers("nodes_nodeids"), strict=False))
    place = {name: at for at, name in enumerate(names)}
    kinds = [text.decode("utf-8", "replace") for text in node.attributes["nodes_modes"].strings]
    known = {**{name: at for at, name in enumerate(MODES[:_MEMBER])}, "LEAF": -1}
    if len(place) != len(names) or len(kinds) != len(names) or not set(kinds) <= known.keys():
        raise node.broken("its nodes are named twice or have modes that there are not")
    count, kind = node.integer("n_targets"), node.text("aggregate_function", "SUM")
    if kind not in _FOLDS:
        raise node.broken(f"there is no aggregate_function {kind!r}")
    votes = _votes(node, len(names), count, kind)
    for target, weight, name in _ballots(node):
        if name not in place or not 0 <= target < count:
            raise node.broken("a target names a node or an output that there is not")
        votes[place[name], target] = weight if kind in ("MIN", "MAX") else votes[place[name], target] + weight
    ways = []
    for branch in ("true", "false"):
        ids = node.integers(f"nodes_{branch}nodeids")
        pairs = zip(names, ids, kinds, strict=False)
        ways.append([_way(place, name, to, end == "LEAF") for name, to, end in pairs])
    forest = _Forest(
        node.integers("nodes_featureids"),
        node.numbers("nodes_values"),
        [max(0, known[one]) for one in kinds],
        ways[0],
        ways[1],
        node.integers("nodes_missing_value_tracks_true", (0,) * len(names)),
        [place[name] for name in dict.fromkeys((tree, 0) for tree, _ in names) if name in place],
        votes,
    )
    result = _walked(context, node, context.cast(x, DType.FLOAT32), forest, kind)
    base = node.numbers("base_values", ())
    if base:
        if len(base) not in (1, count):
            raise node.broken("its base values do not fit its targets")
        result = context.binary("add", result, _table(DType.FLOAT32, np.array(base)))
    return _transformed(context, node, result, node.text("post_transform", "NONE"))


def _way(place: "dict[tuple[int, int], int]", name: tuple[int, int], to: int, leaf: bool) -> int:
    """Where a branch leads: a leaf to itself, nothing else does."""
    if leaf:
        return place[name]
    return -1 if to == name[1] else place.get((name[0], to), -1)


def _ballots(node: Node) -> "list[tuple[int, float, tuple[int, int]]]":
    ids, weights = node.integers("target_ids"), node.numbers("target_weights")
    names = list(zip(node.integers("target_treeids"), node.integers("target_nodeids"), strict=False))
    if not len(ids) == len(weights) == len(names):
        raise node.broken("its targets differ in number")
    return list(zip(ids, weights, names, strict=True))


def _votes(node: Node, nodes: int, count: int, kind: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    if not 1 <= count <= MAX_VOTES or nodes * count > MAX_VOTES:
        raise node.unsupported(f"{nodes} nodes for {count} targets")
    fill = {"MIN": np.inf, "MAX": -np.inf}.get(kind, 0.0)
    return np.full((nodes, count), fill)


def _numbers(node: Node, key: str) -> list[float]:
    payload = payload_of_proto(node.attributes[key].t, None, str(node))
    return [float(value) for value in payload.values()]


def _chosen(node: Node, key: str, default: int, names: tuple[str, ...]) -> str:
    number = node.integer(key, default)
    if not 0 <= number < len(names):
        raise node.broken(f"there is no {key} {number}")
    return names[number]


def _branches(node: Node, branch: str, inner: int) -> list[int]:
    ids, leaves = node.integers(f"nodes_{branch}nodeids"), node.integers(f"nodes_{branch}leafs")
    if len(ids) != inner or len(leaves) != inner:
        raise node.broken("its nodes differ in number")
    pairs = enumerate(zip(ids, leaves, strict=True))
    return [one + inner if leaf else (one if one < inner and one != at else -1) for at, (one, leaf) in pairs]


def _members(node: Node, modes: list[int], nodes: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """One list a node that tests membership, each ended by NaN."""
    values = _numbers(node, "membership_values") if node.has("membership_values") else []
    groups: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            groups.append([])
        else:
            groups[-1].append(value)
    testing = [at for at, mode in enumerate(modes) if mode == _MEMBER]
    if len(groups) - 1 != len(testing):
        raise node.broken("its membership values are not one list a node")
    table = np.full((nodes, max(1, *map(len, groups))), np.nan)
    for at, group in zip(testing, groups, strict=False):
        table[at, : len(group)] = group
    return table


def _walked(context: Context, node: Node, x: Tensor, forest: _Forest, kind: str) -> Tensor:
    """The votes of the leaves that each row ends at, joined over the trees."""
    depth = _depth(node, forest)
    if x.rank != 2:
        raise node.broken("its input must be rows of features")
    context.guard(max(forest.features) + 1, x.shape[1], Relation.AT_MOST)
    shape = (x.shape[0], Dim.of(len(forest.roots)))
    at = context.stretch(_table(DType.INT64, np.array(forest.roots)), shape)
    for _ in range(depth):
        at = _step(context, x, forest, at)
    votes = context.emit("gather", _table(x.dtype, forest.votes), at, axis=0)
    total = context.reduce(_FOLDS[kind], votes, [1], keepdims=False)
    return context.number("div", total, len(forest.roots)) if kind == "AVERAGE" else total


def _depth(node: Node, forest: _Forest) -> int:
    """Steps from a root to the farthest leaf; a node that leads back would never end."""
    lengths = {len(forest.splits), len(forest.modes), len(forest.on_true), len(forest.on_false), len(forest.missing)}
    if lengths != {forest.nodes} or not forest.roots or min(forest.features) < 0:
        raise node.broken("its nodes differ in number, or it has no tree")
    if not set(forest.modes) <= set(range(len(MODES))):
        raise node.broken("a node has a mode that there is not")
    level, depth = set(forest.roots), 0
    while level:
        if not all(0 <= at < forest.nodes for at in level) or depth > MAX_DEPTH:
            raise node.broken(f"a node leads nowhere, or deeper than {MAX_DEPTH}")
        ways = ((at, way) for at in level for way in (forest.on_true[at], forest.on_false[at]))
        level = {way for at, way in ways if way != at}
        depth += bool(level)
    return depth


def _step(context: Context, x: Tensor, forest: _Forest, at: Tensor) -> Tensor:
    """From each node to the one that its test leads to."""

    def looked_up(dtype: DType, values: Sequence[float]) -> Tensor:
        return context.emit("gather", _table(dtype, np.array(values)), at, axis=0)

    feature = looked_up(DType.INT64, forest.features)
    value = rows_at(context, x, [counted(context, at.shape, 0), feature])
    split = looked_up(x.dtype, forest.splits)
    kinds = sorted(set(forest.modes))
    mode = looked_up(DType.INT64, forest.modes) if len(kinds) > 1 else None
    holds = _test(context, forest, at, value, split, kinds[0])
    for kind in kinds[1:]:
        assert mode is not None
        here = context.number("eq", mode, kind)
        holds = context.emit("select", here, _test(context, forest, at, value, split, kind), holds)
    if any(forest.missing):
        tracked = context.number("ne", looked_up(DType.INT64, forest.missing), 0)
        holds = context.emit("or", holds, context.emit("and", tracked, context.emit("isnan", value)))
    ways = [looked_up(DType.INT64, way) for way in (forest.on_true, forest.on_false)]
    return context.emit("select", holds, *ways)


def _test(context: Context, forest: _Forest, at: Tensor, value: Tensor, split: Tensor, kind: int) -> Tensor:
    if kind != _MEMBER:
        return context.emit(_COMPARE[kind], value, split)
    assert forest.members is not None
    members = context.emit("gather", _table(value.dtype, forest.members), at, axis=0)
    column = context.stretch(context.reshape(value, [*value.shape, Dim.of(1)]), members.shape)
    same = context.cast(context.emit("eq", column, members), DType.INT32)
    return context.number("gt", context.reduce("max", same, [2], keepdims=False), 0)


def _table(dtype: DType, values: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> Tensor:
    whole = [int(value) if dtype is DType.INT64 else float(value) for value in values.ravel()]
    return Tensor.of_payload(Payload.of(dtype, values.shape, whole))


def _transformed(context: Context, node: Node, scores: Tensor, transform: str) -> Tensor:
    if transform == "LOGISTIC":
        return context.emit("sigmoid", scores)
    if transform == "SOFTMAX":
        most = context.reduce("max", scores, [1])
        powers = context.emit("exp", context.binary("sub", scores, most))
        return context.binary("div", powers, context.reduce("sum", powers, [1]))
    if transform != "NONE":
        raise node.unsupported(f"the post_transform {transform}")
    return scores


ENTRIES: tuple[Entry, ...] = (
    Entry("TreeEnsemble", _tree_ensemble, since=5, domain=DOMAIN),
    Entry("TreeEnsembleRegressor", _regressor, since=1, until=4, domain=DOMAIN),
)
