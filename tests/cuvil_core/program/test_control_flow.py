"""Branches, loops and asserts: interpreted and compiled they agree, and their buffers live long enough."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuvil_core.errors import InputError, InternalError
from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir import Binary, Cast, Expr, Index, Literal
from cuvil_core.program import (
    Assert,
    Branch,
    Carried,
    Carry,
    Launch,
    Loop,
    Program,
    Role,
    Statement,
    interpret,
    lifetimes,
    print_program,
    verify,
)
from graph_checks import variants
from hand_programs import F32, Array, Hand, module_of_program, read, with_room

pytestmark = pytest.mark.timeout(300)
N = Dim.symbol("N")
I64, BOOL = DType.INT64, DType.BOOL
X = np.array([1.0, -2.0, 0.5, 8.0, 3.0], np.float32)


def plus(number: float, parameter: int = 0) -> Expr:
    """An element plus a number."""
    return Binary("add", read(parameter), Literal(number, F32))


def scaled(number: float, parameter: int = 0) -> Expr:
    """An element times a number."""
    return Binary("mul", read(parameter), Literal(number, F32))


def integers(*values: int) -> Array:
    """An int64 tensor."""
    return np.array(values, np.int64)


def agree(program: Program, inputs: Mapping[str, Array], folder: Path, *wanted: Array) -> None:
    """Interpreter and the compiled code of every variant give these outputs."""
    answers = [interpret(program, inputs)]
    answers += [module_of_program(program, variant, folder).run(inputs) for variant in variants()]
    for answer in answers:
        for (name, have), want in zip(answer.items(), wanted, strict=True):
            np.testing.assert_array_equal(have, want, err_msg=name)


def branching() -> Program:
    """input1[0] ? (x + 1) · 2 : x · 5, plus 1; each side has temporaries of its own."""
    hand = Hand("N")
    x, flag, y = hand.port(Role.INPUT, N), hand.port(Role.INPUT, 1, I64), hand.port(Role.OUTPUT, N)
    step, chosen = hand.temporary(N), hand.temporary(N)
    then = (hand.map("plus", plus(1), x, step), hand.map("twice", scaled(2), step, chosen))
    branch = Branch(flag, then, (hand.map("five", scaled(5), x, chosen),), "choice")
    return hand.done(branch, hand.map("plus", plus(1), chosen, y))


def counting(how: Carry) -> Program:
    """x is halved and raised by 1, input1[0] times; what the loop leaves is read after further temporaries."""
    hand = Hand("N")
    x, turns, y = hand.port(Role.INPUT, N), hand.port(Role.INPUT, 1, I64), hand.port(Role.OUTPUT, N)
    now, half, later, other = (hand.temporary(N) for _ in range(4))
    body = (hand.map("half", scaled(0.5), now, half), hand.map("plus", plus(1), half, later))
    total = hand.map("sum", Binary("add", read(0), read(1)), now, other, y)
    loop = Loop(turns, body, (Carried(now, later, how),))
    return hand.done(hand.map("start", plus(0), x, now), loop, hand.map("nine", scaled(9), x, other), total)


def stacking() -> Program:
    """N turns, each of which writes a row of the output: x · the turn's number, in place."""
    hand = Hand("N")
    x, _, y = hand.port(Role.INPUT, 5), hand.port(Role.INPUT, N), hand.port(Role.OUTPUT, N * 5)
    counter = hand.temporary(1, I64)
    number = read(1, I64, Index())
    row = Binary("mul", read(0), Cast(number, F32))
    start = hand.map("clear", Literal(0.0, F32), y)
    here = Index.indirect(number) * 5 + Index.axis("i")
    return hand.done(start, Loop(N, (hand.map("row", row, x, counter, y, at=here, over=5),), counter=counter))


def doubling() -> Program:
    """While its first element is below 100, but at most 1,000 times, the output is doubled: carried by copy."""
    hand = Hand("N")
    x, y = hand.port(Role.INPUT, N), hand.port(Role.OUTPUT, N)
    more, later = hand.temporary(1, BOOL), hand.temporary(N)
    below = Binary("lt", read(0, F32, Index()), Literal(100.0, F32))
    test, again = hand.map("test", below, y, more), hand.map("test", below, later, more)
    start = hand.map("start", plus(0), x, y)
    body = (hand.map("twice", scaled(2), y, later), again)
    return hand.done(start, test, Loop(Dim.of(1000), body, (Carried(y, later, Carry.COPY),), condition=more))


def nesting() -> Program:
    """N times: on odd turns x is raised by 1 input1[0] times, else it is doubled; both by swaps, inside each other."""
    hand = Hand("N")
    x, turns = hand.port(Role.INPUT, 5), hand.port(Role.INPUT, 1, I64)
    _, y = hand.port(Role.INPUT, N), hand.port(Role.OUTPUT, 5)
    counter, odd = hand.temporary(1, I64), hand.temporary(1, I64)
    now, later, inner, next_inner = (hand.temporary(5) for _ in range(4))
    raise_ = Loop(turns, (hand.map("plus", plus(1), inner, next_inner),), (Carried(inner, next_inner),))
    then = (hand.map("copy", plus(0), now, inner), raise_, hand.map("copy", plus(0), inner, later))
    choice = Branch(odd, then, (hand.map("twice", scaled(2), now, later),))
    parity = hand.map("odd", Binary("mod", read(0, I64), Literal(2, I64)), counter, odd)
    outer = Loop(N, (parity, choice), (Carried(now, later),), counter=counter)
    return hand.done(hand.map("start", plus(0), x, now), outer, hand.map("end", plus(0), now, y))


def asserting() -> Program:
    """The second of two asserts needs input1[0] to be set; then y = x + 1."""
    hand = Hand("N")
    x, flag, y = hand.port(Role.INPUT, N), hand.port(Role.INPUT, 1, BOOL), hand.port(Role.OUTPUT, N)
    sound = hand.temporary(1, BOOL)
    first = hand.map("sound", Binary("eq", read(0, F32, Index()), read(0, F32, Index())), x, sound)
    return hand.done(first, Assert(sound, "x[0] is a number"), Assert(flag, "flag"), hand.map("plus", plus(1), x, y))


@pytest.mark.parametrize("flag", [0, 1, -3])
def test_a_branch_takes_one_side(flag: int, tmp_path: Path) -> None:
    """Any number but 0 takes the first side, 0 the other; what follows reads what that side made."""
    agree(branching(), {"input0": X, "input1": integers(flag)}, tmp_path, ((X + 1) * 2 if flag else X * 5) + 1)


def test_sides_of_a_branch_share_memory() -> None:
    """Temporaries of the two sides never live at the same time."""
    lives = {one.buffer.name: one for one in lifetimes(branching())}
    assert len(lives) == 2
    hand = Hand()
    flag, one, other = hand.port(Role.INPUT, 1, I64), hand.temporary(5), hand.temporary(5)
    launches = [hand.map("zero", Literal(0.0, F32), name) for name in (one, other)]
    apart = {life.buffer.name: life for life in lifetimes(hand.done(Branch(flag, (launches[0],), (launches[1],))))}
    assert not apart[one].meets(apart[other])


@pytest.mark.parametrize("how", Carry)
def test_a_loop_carries_its_value(how: Carry, tmp_path: Path) -> None:
    """After any number of turns, none included, the value is that of the last turn, and later buffers spare it."""
    program = counting(how)
    modules = [module_of_program(program, variant, tmp_path) for variant in variants()]
    for turns in (-1, 0, 1, 2, 5):
        want = X
        for _ in range(turns):
            want = want * np.float32(0.5) + np.float32(1)
        inputs = {"input0": X, "input1": integers(turns)}
        for answer in (interpret(program, inputs), *(module.run(inputs) for module in modules)):
            np.testing.assert_array_equal(answer["output0"], want + X * 9)


def test_turns_are_counted_and_may_write_in_place(tmp_path: Path) -> None:
    """As many turns as a symbol says, each with its number, fill one tensor row by row."""
    inputs = {"input0": X, "input1": np.zeros(4, np.float32)}
    agree(stacking(), inputs, tmp_path, np.concatenate([X * turn for turn in range(4)]))


def test_a_condition_ends_a_loop(tmp_path: Path) -> None:
    """The condition is asked before every turn, the first included."""
    agree(doubling(), {"input0": X}, tmp_path, X * 128)
    agree(doubling(), {"input0": X * 1000}, tmp_path, X * 1000)


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_loops_stand_in_branches_in_loops(turns: int, tmp_path: Path) -> None:
    """Buffers that change places inside and outside keep their names' meaning."""
    want = X
    for turn in range(5):
        want = want + turns if turn % 2 else want * 2
    inputs = {"input0": X, "input1": integers(turns), "input2": np.zeros(5, np.float32)}
    agree(nesting(), inputs, tmp_path, want.astype(np.float32))


def test_an_assert_ends_the_call_with_its_sentence(tmp_path: Path) -> None:
    """A broken assert is the caller's fault, named; the module goes on to serve calls that keep it."""
    program = asserting()
    good, bad = ({"input0": X, "input1": np.array([flag])} for flag in (True, False))
    agree(program, good, tmp_path, X + 1)
    with pytest.raises(InputError, match="condition flag;"):
        interpret(program, bad)
    for variant in variants():
        module = module_of_program(program, variant, tmp_path)
        with pytest.raises(InputError, match="condition flag;"):
            module.run(bad)
        with pytest.raises(InputError, match="a number"):
            module.run({**good, "input0": X * np.float32("nan")})
        np.testing.assert_array_equal(module.run(good)["output0"], X + 1)


def test_text(golden: Callable[[str, str], None]) -> None:
    """Blocks are indented; a loop's head tells its turns, its condition, its counter and what it carries."""
    programs = (branching(), counting(Carry.SWAP), doubling(), nesting(), asserting())
    golden("control_flow.txt", "\n".join(map(print_program, programs)))


def _with(program: Program, **changes: Any) -> Program:
    """The program with its outermost loop or branch changed."""
    changed = [replace(one, **changes) if isinstance(one, Loop | Branch) else one for one in program.statements]
    return replace(program, statements=tuple(changed))


FAULTS: dict[str, tuple[Callable[[], Program], str]] = {
    "float condition": (lambda: _with(branching(), condition="input0"), "cannot steer"),
    "unknown condition": (lambda: _with(branching(), condition="nothing"), "no buffer nothing"),
    "condition that may be empty": (lambda: _with(stacking(), turns="input9"), "no buffer input9"),
    "turns of another type": (lambda: _with(doubling(), turns="t2"), "cannot steer"),
    "turns by an undeclared symbol": (lambda: _with(stacking(), turns=Dim.symbol("M")), "undeclared"),
    "side without the value": (lambda: _with(branching(), otherwise=()), "read before"),
    "condition never set": (
        lambda: replace(doubling(), statements=tuple(one for one in doubling().statements if not _sets_condition(one))),
        "read before",
    ),
    "value that no turn makes": (lambda: _with(counting(Carry.COPY), body=()), "does not write"),
    "value without a start": (
        lambda: replace(counting(Carry.SWAP), statements=counting(Carry.SWAP).statements[1:]),
        "read before",
    ),
    "output swapped": (lambda: _with(doubling(), carried=(Carried("output0", "t3"),)), "change places"),
    "input carried": (
        lambda: _with(counting(Carry.COPY), carried=(Carried("input0", "t5", Carry.COPY),)),
        "belongs to",
    ),
    "carried twice": (lambda: _with(counting(Carry.COPY), carried=(Carried("t3", "t5", Carry.COPY),) * 2), "twice"),
    "unlike pair": (lambda: _with(doubling(), carried=(Carried("output0", "t2", Carry.COPY),)), "not alike"),
    "output of a loop that may have no turn": (lambda: _with(stacking_only(), turns="input1"), "never written"),
}  # fmt: skip


def _sets_condition(statement: Statement) -> bool:
    return isinstance(statement, Launch) and statement.arguments[-1] == "t2"


def stacking_only() -> Program:
    """A loop whose body alone writes the output, at least once."""
    hand = Hand("N")
    x, _, y = hand.port(Role.INPUT, N), hand.port(Role.INPUT, 1, I64), hand.port(Role.OUTPUT, N)
    return hand.done(Loop(N, (hand.map("plus", plus(1), x, y),)))


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str) -> None:
    """Each kind of broken branch or loop is refused with a sentence that says which."""
    broken, words = FAULTS[fault]
    with pytest.raises(InternalError, match=words):
        verify(broken())


class Grower:
    """A random sound program over vectors of 4 floats: launches, branches and loops inside one another."""

    def __init__(self, seed: int) -> None:
        self.choose, self.hand = random.Random(seed), Hand()
        self.x = self.hand.port(Role.INPUT, 4)
        self.flags = [self.hand.port(Role.INPUT, 1, I64) for _ in range(3)]
        self.y = self.hand.port(Role.OUTPUT, 4)

    def program(self) -> Program:
        """Six statements, then the sum of two values: the others are free once nobody in a loop needs them."""
        held = [self.x]
        statements = self.row(held, 6, 2)
        statements.append(self.hand.map("plus", plus(0), held[0], self.y))
        for name in self.choose.sample(held, 2):
            summed = self.hand.temporary(4)
            statements.append(self.hand.map("sum", Binary("add", read(0), read(1)), self.y, name, summed))
            statements.append(self.hand.map("plus", plus(0), summed, self.y))
        return self.hand.done(*statements)

    def row(self, held: list[str], count: int, depth: int) -> list[Statement]:
        """Statements that read any of `held` and add what they make to it."""
        kinds = [self.launch, self.launch, *((self.branch, self.loop) if depth else ())]
        return [one for _ in range(count) for one in self.choose.choice(kinds)(held, depth)]

    def launch(self, held: list[str], depth: int) -> list[Statement]:
        """A new value from two others."""
        target = self.hand.temporary(4)
        made = self.combine(held, target)
        held.append(target)
        return [made]

    def combine(self, held: list[str], target: str) -> Statement:
        """Half the first value plus the second plus a number."""
        value = Binary("add", scaled(0.5), plus(self.choose.randrange(9), 1))
        return self.hand.map("mix", value, self.choose.choice(held), self.choose.choice(held), target)

    def branch(self, held: list[str], depth: int) -> list[Statement]:
        """A new value, made by either side in its own way."""
        target = self.hand.temporary(4)
        then, otherwise = self.side(held, target, depth), self.side(held, target, depth)
        held.append(target)
        return [Branch(self.choose.choice(self.flags), then, otherwise)]

    def side(self, held: list[str], target: str, depth: int) -> tuple[Statement, ...]:
        """One side of a branch, which ends with the target."""
        own = list(held)
        side = self.row(own, self.choose.randrange(1, 4), depth - 1)
        return (*side, self.combine(own, target))

    def loop(self, held: list[str], depth: int) -> list[Statement]:
        """A new value, carried from turn to turn."""
        now, later = self.hand.temporary(4), self.hand.temporary(4)
        start = self.combine(held, now)
        own = [*held, now]
        body = [*self.row(own, self.choose.randrange(1, 4), depth - 1), self.combine(own, later)]
        held.append(now)
        carried = (Carried(now, later, self.choose.choice(list(Carry))),)
        return [start, Loop(self.choose.choice(self.flags), tuple(body), carried)]


def _random_inputs(seed: int) -> dict[str, Array]:
    choose = np.random.default_rng(seed)
    flags = {f"input{place}": choose.integers(0, 4, 1) for place in (1, 2, 3)}
    return {"input0": choose.normal(size=4).astype(np.float32), **flags}


@given(st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_sharing_memory_changes_nothing(seed: int) -> None:
    """Random programs answer in one arena, full of NaN before, as with memory of its own for every buffer."""
    program, inputs = Grower(seed).program(), _random_inputs(seed)
    (have,) = interpret(program, inputs).values()
    np.testing.assert_array_equal(have, interpret(with_room(program), inputs)["output0"])
    assert np.isfinite(have).all()


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_random_programs_compile(seed: int, tmp_path: Path) -> None:
    """Compiled, random programs answer as the interpreter does."""
    program = Grower(seed).program()
    modules = [module_of_program(program, variant, tmp_path) for variant in variants()]
    for number in range(4):
        inputs = _random_inputs(number)
        want = interpret(program, inputs)
        for module in modules:
            np.testing.assert_array_equal(module.run(inputs)["output0"], want["output0"])
