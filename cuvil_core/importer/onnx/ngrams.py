"""TfIdfVectorizer on integers: how often each n-gram of a pool occurs in a row, with gaps of up to max_skip_count."""

from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, need
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Payload, dim_max

MAX_GRAMS = 1 << 16
MAX_STEPS = 1 << 6
"""Lengths times skips: each is a comparison of the whole row with the pool."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """n-grams of one length, and the columns of the result that count them."""

    grams: tuple[tuple[int, ...], ...]
    columns: tuple[int, ...]

    @property
    def length(self) -> int:
        """Items of a gram."""
        return len(self.grams[0])


def _tfidf(context: Context, node: Node, operands: Operands) -> Tensor:
    x, mode, indexes = need(node, operands, 0), node.text("mode"), node.integers("ngram_indexes")
    if node.has("pool_strings") or not node.has("pool_int64s"):
        raise node.unsupported("strings")
    if x.rank not in (1, 2) or mode not in ("TF", "IDF", "TFIDF") or not indexes or min(indexes) < 0:
        raise node.broken("it needs rows of items, one of the modes TF, IDF and TFIDF, and columns")
    size = max(indexes) + 1
    if size > MAX_GRAMS:
        raise node.unsupported(f"{size} columns, more than {MAX_GRAMS}")
    rows = context.reshape(context.cast(x, DType.INT64), [Dim.of(1), *x.shape] if x.rank == 1 else x.shape)
    counts = _counts(context, node, rows, indexes, size)
    result = _weighted(context, node, counts, indexes, mode)
    return context.reshape(result, [Dim.of(size)]) if x.rank == 1 else result


def _pools(node: Node, indexes: tuple[int, ...]) -> list[_Pool]:
    """The pool cut by lengths; lengths outside of the wanted ones count in the numbering only."""
    items, starts = node.integers("pool_int64s"), node.integers("ngram_counts")
    least, most = node.integer("min_gram_length"), node.integer("max_gram_length")
    ends = (*starts[1:], len(items))
    found, first = [], 0
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if not 0 <= start <= end <= len(items) or (end - start) % length:
            raise node.broken(f"its ngram_counts {list(starts)} do not cut its pool into n-grams")
        grams = tuple(tuple(items[at : at + length]) for at in range(start, end, length))
        columns = indexes[first : first + len(grams)]
        first += len(grams)
        if grams and least <= length <= most:
            found.append(_Pool(grams, columns))
    if first != len(indexes) or len({gram for pool in found for gram in pool.grams}) != sum(
        len(pool.grams) for pool in found
    ):
        raise node.broken("its pool has not one n-gram for each of ngram_indexes, or one twice")
    return found


def _counts(context: Context, node: Node, rows: Tensor, indexes: tuple[int, ...], size: int) -> Tensor:
    """How often each column's n-gram occurs in each row, float32."""
    pools, skips = _pools(node, indexes), node.integer("max_skip_count")
    if skips < 0 or len(pools) * (skips + 1) > MAX_STEPS:
        raise node.unsupported(f"a max_skip_count of {skips}")
    parts = [context.full(DType.FLOAT32, 0, [rows.shape[0], 1])]
    places: dict[int, int] = {}
    for pool in pools:
        for column in pool.columns:
            if column in places:
                raise node.broken(f"two n-grams are counted in column {column}")
            places[column] = len(places) + 1
        # A single item has no gaps, so it is counted once, whatever the skips.
        gaps = range(1 if pool.length == 1 else skips + 1)
        found = [_occurrences(context, rows, pool, gap + 1) for gap in gaps]
        total = found[0]
        for one in found[1:]:
            total = context.emit("add", total, one)
        parts.append(total)
    order = Payload.of(DType.INT64, (size,), [places.get(column, 0) for column in range(size)])
    return context.emit("gather", context.concat(parts, 1), Tensor.of_payload(order), axis=1)


def _occurrences(context: Context, rows: Tensor, pool: _Pool, step: int) -> Tensor:
    """rows × grams: at how many places the items of the gram stand `step` apart."""
    places = dim_max(rows.shape[1] - (pool.length - 1) * step, 0)
    shape = (rows.shape[0], places, Dim.of(len(pool.grams)))
    if places == 0:
        return context.full(DType.FLOAT32, 0, [shape[0], shape[2]])
    hit: Tensor | None = None
    for at in range(pool.length):
        items = context.slice(rows, 1, at * step, places)
        wanted = Tensor.of_payload(Payload.of(DType.INT64, (len(pool.grams),), [gram[at] for gram in pool.grams]))
        column = context.stretch(context.reshape(items, [*shape[:2], Dim.of(1)]), shape)
        same = context.emit("eq", column, context.stretch(wanted, shape))
        hit = same if hit is None else context.emit("and", hit, same)
    assert hit is not None
    return context.reduce("sum", context.cast(hit, DType.FLOAT32), [1], keepdims=False)


def _weighted(context: Context, node: Node, counts: Tensor, indexes: tuple[int, ...], mode: str) -> Tensor:
    weights = node.numbers("weights", ())
    if mode == "TF":
        return counts
    if weights and (len(weights) != len(indexes) or indexes != tuple(range(len(indexes)))):
        raise node.unsupported("weights beside columns in another order, on which runtimes differ")
    factors = weights or (1.0,) * (counts.shape[1].constant or 0)
    line = Tensor.of_payload(Payload.of(DType.FLOAT32, (len(factors),), list(factors)))
    if mode == "TFIDF":
        return context.binary("mul", counts, line)
    present = context.cast(context.number("gt", counts, 0), DType.FLOAT32)
    return context.binary("mul", present, line)


ENTRIES: tuple[Entry, ...] = (Entry("TfIdfVectorizer", _tfidf, since=9),)
