"""Hand-made graphs with control flow, as text: what the rooms from the printer to the compiled code are held to."""

from collections.abc import Mapping
from dataclasses import replace

from cuvil_core.ir import Block, Dim, DType, Graph, Op, TensorType, Value, freeze, parse_graph

TEXTS: Mapping[str, str] = {
    "a branch of two ways": """graph {
  symbol N in 1..
  input %0 "x" : float32[N, 3]
  input %1 "flag" : bool[]
  %2 = constant {value = payload(float32, 3, [1.0, 2.0, 3.0])} : float32[3]
  %3, %4 = if %1, %0, %2 : float32[N, 3], float32[3]
  block
    input %0 : float32[N, 3]
    input %1 : float32[3]
    %2 = broadcast_to %1 {shape = <N, 3>} : float32[N, 3]
    %3 = add %0, %2 : float32[N, 3]
    yield %3, %1
  end
  block
    input %0 : float32[N, 3]
    input %1 : float32[3]
    %2 = exp %0 : float32[N, 3]
    %3 = reduce %2 {axes = [0], kind = "sum"} : float32[3]
    yield %0, %3
  end
  output %3 "y"
  output %4 "z"
}
""",
    "rows of a running sum": """graph {
  symbol N in 1..
  input %0 "x" : float32[N, 3]
  %1 = constant {value = payload(float32, scalar, [0.0])} : float32[]
  %2 = broadcast_to %1 {shape = <3>} : float32[3]
  %3, %4, %5 = loop %2, %2, %0 {carried = 2, conditional = false, turns = <N>} : float32[3], float32[3], float32[N, 3]
  block
    input %0 : int64[]
    input %1 : float32[3]
    input %2 : float32[3]
    input %3 : float32[N, 3]
    %4 = gather %3, %0 {axis = 0} : float32[3]
    %5 = add %1, %4 : float32[3]
    %6 = neg %5 : float32[3]
    yield %5, %1, %6
  end
  output %3 "sum"
  output %4 "before"
  output %5 "rows"
}
""",
    "perhaps no turn": """graph {
  symbol N in 1..
  input %0 "x" : float32[N]
  input %1 "start" : int32[2]
  %2, %3 = loop %1, %0 {carried = 1, conditional = false, turns = <N - 1>} : int32[2], float32[N - 1, N]
  block
    input %0 : int64[]
    input %1 : int32[2]
    input %2 : float32[N]
    %3 = add %1, %1 : int32[2]
    %4 = abs %2 : float32[N]
    yield %3, %4
  end
  output %2 "doubled"
  output %3 "rows"
}
""",
    "until the data says": """graph {
  symbol N in 1..
  input %0 "x" : float32[N]
  input %1 "turns" : int64[]
  input %2 "flag" : bool[]
  %3 = loop %1, %2, %0 {carried = 1, conditional = true, turns = []} : float32[N]
  block
    input %0 : int64[]
    input %1 : float32[N]
    %2 = add %1, %1 : float32[N]
    %3 = reduce %2 {axes = [0], kind = "sum"} : float32[]
    %4 = constant {value = payload(float32, scalar, [64.0])} : float32[]
    %5 = lt %3, %4 : bool[]
    yield %5, %2
  end
  output %3 "y"
}
""",
    "a branch inside of a loop inside of a branch": """graph {
  symbol N in 1..
  input %0 "x" : float32[N, 16]
  input %1 "flag" : bool[]
  %2 = iota {axis = 1, dtype = float32, shape = <16, 16>} : float32[16, 16]
  %3 = if %1, %0, %2 : float32[N, 16]
  block
    input %0 : float32[N, 16]
    input %1 : float32[16, 16]
    %2 = loop %0, %1 {carried = 1, conditional = false, turns = <3>} : float32[N, 16]
    block
      input %0 : int64[]
      input %1 : float32[N, 16]
      input %2 : float32[16, 16]
      %3 = dot %1, %2 {batch_a = [], batch_b = [], contract_a = [1], contract_b = [0]} : float32[N, 16]
      %4 = tanh %3 : float32[N, 16]
      %5 = constant {value = payload(int64, scalar, [1])} : int64[]
      %6 = eq %0, %5 : bool[]
      %7 = if %6, %4 : float32[N, 16]
      block
        input %0 : float32[N, 16]
        %1 = neg %0 : float32[N, 16]
        yield %1
      end
      block
        input %0 : float32[N, 16]
        yield %0
      end
      yield %7
    end
    yield %2
  end
  block
    input %0 : float32[N, 16]
    input %1 : float32[16, 16]
    yield %0
  end
  output %3 "y"
}
""",
    "two values that change places": """graph {
  input %0 "a" : int64[4]
  input %1 "b" : int64[4]
  input %2 "turns" : int64[]
  %3, %4 = loop %2, %0, %1 {carried = 2, conditional = false, turns = []} : int64[4], int64[4]
  block
    input %0 : int64[]
    input %1 : int64[4]
    input %2 : int64[4]
    yield %2, %1
  end
  output %3 "first"
  output %4 "second"
}
""",
    "rows of whole numbers turned round": """graph {
  input %0 "x" : bool[2, 3]
  %1 = loop %0 {carried = 0, conditional = false, turns = <4>} : int64[4, 3, 2]
  block
    input %0 : int64[]
    input %1 : bool[2, 3]
    %2 = transpose %1 {perm = [1, 0]} : bool[3, 2]
    %3 = cast %2 {dtype = int64} : int64[3, 2]
    %4 = broadcast_to %0 {shape = <3, 2>} : int64[3, 2]
    %5 = mul %3, %4 : int64[3, 2]
    yield %5
  end
  output %1 "rows"
}
""",
}


def control_graph(name: str) -> Graph:
    """A graph of TEXTS."""
    return parse_graph(TEXTS[name])


def branched(graph: Graph) -> Graph:
    """The graph within the sides of a branch, by a new input `flag`; the other side gives its outputs negated."""
    flag = Value("flag", TensorType(DType.BOOL, ()))
    turned = tuple(Value(f"turned{at}", value.type) for at, value in enumerate(graph.outputs))
    signs = (Op("neg", (one,), (other,)) for one, other in zip(graph.outputs, turned, strict=True))
    sides = (Block(graph.inputs, graph.ops, graph.outputs), Block(graph.inputs, (*graph.ops, *signs), turned))
    inputs = tuple(Value(f"outer{at}", value.type) for at, value in enumerate(graph.inputs))
    results = tuple(Value(f"result{at}", value.type) for at, value in enumerate(graph.outputs))
    op = Op("if", (flag, *inputs), results, blocks=sides)
    names = (*graph.input_names, "flag")
    return replace(graph, inputs=(*inputs, flag), input_names=names, ops=(op,), outputs=results)


def looped(graph: Graph, turns: int) -> Graph:
    """The graph within a loop that stacks its outputs, carries the first one, and reads its inputs in each turn."""
    counter, start = Value("counter", TensorType(DType.INT64, ())), Value("start", graph.outputs[0].type)
    total = Value("total", start.type)
    body = (*graph.ops, Op("add", (start, graph.outputs[0]), (total,)))
    block = Block((counter, start, *graph.inputs), body, (total, *graph.outputs))
    inputs = tuple(Value(f"outer{at}", value.type) for at, value in enumerate(graph.inputs))
    before = Value("before", start.type)
    rows = [TensorType(value.dtype, (Dim.of(turns), *value.shape)) for value in graph.outputs]
    results = tuple(Value(f"result{at}", type) for at, type in enumerate((start.type, *rows)))
    attributes = freeze({"turns": (Dim.of(turns),), "conditional": False, "carried": 1})
    op = Op("loop", (before, *inputs), results, attributes, blocks=(block,))
    return replace(
        graph,
        inputs=(*inputs, before),
        input_names=(*graph.input_names, "before"),
        ops=(op,),
        outputs=results,
        output_names=("total", *(f"rows {name}" for name in graph.output_names)),
    )
