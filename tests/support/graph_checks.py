"""One graph, three answers: reference, program interpreter, compiled code; and a small language to write graphs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuvil_core import program as programs
from cuvil_core import reference
from cuvil_core.artifact import pack
from cuvil_core.compile import Variant, build, facts_of, manifest_of, variants_of
from cuvil_core.contract import CompileRequest
from cuvil_core.ir import Dim, DType, Graph, Payload, TensorType, Value
from cuvil_core.lowering import lower
from cuvil_core.ops import new_builder
from cuvil_core.runtime import CuvilModule, cpu_features, load
from cuvil_core.scheduling import Isa, Machine, choose

Array = np.ndarray[Any, np.dtype[Any]]
F32 = DType.FLOAT32


class Maker:
    """A graph builder with short words; attributes that are nearly always the same have defaults."""

    def __init__(self, seed: int = 0) -> None:
        self.builder = new_builder()
        self.random = np.random.default_rng(seed)

    def input(self, name: str, *shape: int | str, dtype: DType = F32) -> Value:
        """An input; texts are symbols."""
        extents = tuple(Dim.symbol(one) if isinstance(one, str) else Dim.of(one) for one in shape)
        return self.builder.input(name, TensorType(dtype, extents))

    def constant(self, *shape: int, dtype: DType = F32, scale: float = 1.0) -> Value:
        """Random numbers as a constant."""
        data = (self.random.normal(size=shape) * scale).astype(dtype.value)
        return self.builder.constant(Payload(dtype, shape, data.tobytes()))

    def numbers(self, values: Any, dtype: DType = F32) -> Value:
        """These numbers as a constant."""
        data = np.asarray(values, dtype.value)
        return self.builder.constant(Payload(dtype, data.shape, data.tobytes()))

    def op(self, name: str, *operands: Value, **attributes: Any) -> Value:
        """A primitive; tuples that name extents become dims."""
        for key in ("shape", "starts", "sizes", "low", "high", "dims"):
            if key in attributes:
                attributes[key] = tuple(Dim.of(one) for one in attributes[key])
        return self.builder.emit(name, list(operands), attributes)

    def filled(self, number: float, like: Value) -> Value:
        """A scalar stretched to the shape of a value."""
        one = self.builder.constant(Payload.scalar(like.dtype, number))
        return self.op("broadcast_to", one, shape=like.shape)

    def per_channel(self, values: Value, like: Value) -> Value:
        """A vector stretched along axis 1 of a value."""
        channels = values.shape[0]
        shape = (1, channels, *(1 for _ in like.shape[2:]))
        return self.op("broadcast_to", self.op("reshape", values, shape=shape), shape=like.shape)

    def relu(self, x: Value) -> Value:
        """max(x, 0)."""
        return self.op("max", x, self.filled(0.0, x))

    def conv(
        self,
        x: Value,
        outputs: int,
        window: Sequence[int] = (3, 3),
        strides: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        base: Sequence[int] | None = None,
        groups: int = 1,
    ) -> Value:
        """A convolution with random weights of a size that keeps results near 1."""
        rank = len(window)
        inner = (x.shape[1].constant or 1) // groups
        weights = self.constant(outputs, inner, *window, scale=1 / np.sqrt(inner * np.prod(window)))
        return self.op(
            "conv",
            x,
            weights,
            strides=tuple(strides or (1,) * rank),
            pads=tuple(pads or (0,) * (2 * rank)),
            dilations=tuple(dilations or (1,) * rank),
            base_dilations=tuple(base or (1,) * rank),
            groups=groups,
        )

    def pool(self, x: Value, kind: str, window: int, stride: int, pad: int = 0) -> Value:
        """A square window over two spatial axes."""
        both = (window, window)
        return self.op(
            "window_reduce", x, kind=kind, window=both, strides=(stride,) * 2, pads=(pad,) * 4, dilations=(1, 1)
        )

    def matmul(self, a: Value, b: Value) -> Value:
        """The last two axes multiplied, the others in step."""
        rank = len(a.shape)
        batch = tuple(range(rank - 2))
        return self.op("dot", a, b, batch_a=batch, batch_b=batch, contract_a=(rank - 1,), contract_b=(rank - 2,))

    def done(self, *outputs: Value) -> Graph:
        """The graph."""
        return self.builder.finish(list(outputs), [f"out{place}" for place in range(len(outputs))])


def variants() -> tuple[Variant, ...]:
    """The variants of the shipped target that this processor runs."""
    return tuple(one for one in variants_of("x86_64-cpu") if cpu_features() >= set(one.flags))


def module_of(graph: Graph, variant: Variant, folder: Path) -> CuvilModule:
    """The graph, compiled for one variant and loaded."""
    program = lower(graph, choose(graph, Machine.of(variant.isa)))
    programs.verify(program)
    facts = facts_of(graph, {variant.name: program}, (variant,))
    manifest = manifest_of(graph, CompileRequest(), "0" * 64, "test", {}, facts)
    path = folder / f"{variant.name}.cuvil"
    path.write_bytes(pack(manifest, {variant.name: build(program, variant, graph.symbols)}, program.weights))
    return load(path)


def interpreted(graph: Graph, inputs: Mapping[str, Array], isa: Isa = Isa.AVX512) -> dict[str, Array]:
    """What the program's interpreter answers, in the graph's dtypes."""
    program = lower(graph, choose(graph, Machine.of(isa)))
    programs.verify(program)
    answers = programs.interpret(program, inputs)
    types = dict(zip(graph.output_names, (value.dtype for value in graph.outputs), strict=True))
    return {name: array.view(reference.numpy_dtype(types[name])) for name, array in answers.items()}


def random_inputs(graph: Graph, symbols: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """Inputs of the graph's types at these extents: normal floats, small integers, fair bools."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for value, name in zip(graph.inputs, graph.input_names, strict=True):
        shape = tuple(extent.evaluate(symbols) for extent in value.shape)
        if value.dtype.is_float:
            found[name] = random.normal(size=shape).astype(value.dtype.value)
        elif value.dtype is DType.BOOL:
            found[name] = random.integers(0, 2, shape).astype(bool)
        else:
            found[name] = random.integers(0 if not value.dtype.is_signed else -5, 6, shape).astype(value.dtype.value)
    return found


def assert_same(found: Mapping[str, Array], wanted: Mapping[str, Array], rtol: float = 2e-5) -> None:
    """Equal shapes and dtypes; integers and bools equal, floats within rtol of the largest magnitude, NaN at NaN."""
    for name, want in wanted.items():
        have = found[name]
        assert have.shape == want.shape, f"{name}: shape {have.shape} instead of {want.shape}"
        assert have.dtype == want.dtype, f"{name}: dtype {have.dtype} instead of {want.dtype}"
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(have, want, err_msg=name)
            continue
        finite = np.abs(want[np.isfinite(want)])
        scale = float(finite.max()) if finite.size else 1.0
        np.testing.assert_allclose(have, want, rtol=rtol, atol=rtol * max(scale, 1e-30), err_msg=name)


def check(graph: Graph, bindings: Sequence[Mapping[str, int]], folder: Path, rtol: float = 2e-5) -> None:
    """Reference, interpreter and the compiled code of every variant agree at each binding of the symbols."""
    modules = [module_of(graph, variant, folder) for variant in variants()]
    for seed, symbols in enumerate(bindings):
        inputs = random_inputs(graph, symbols, seed)
        kept = {name: array.copy() for name, array in inputs.items()}
        wanted = reference.run(graph, inputs)
        assert_same(interpreted(graph, inputs), wanted, rtol)
        for module in modules:
            assert_same(module.run(inputs), wanted, rtol)
        assert_same(inputs, kept, 0)
