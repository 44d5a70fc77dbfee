"""How long programs may be, what is counted of them, and the order of their statements."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import Played, kernel_of, plan_of

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.catalogue import ALGORITHMS, SmallSweep
from jaxbandits.kernels import schedule
from jaxbandits.kernels.arrays import LARGEST
from jaxbandits.kernels.emitter import Emitter
from jaxbandits.kernels.over_lanes import write_lane
from jaxbandits.kernels.schedule import APART, HELD, Census, Fitted, fit_kernel
from jaxbandits.kernels.text import Assign, Block, Entry, Let, Name, TooLong, indent_lines

X = np.zeros(4, np.float32)
arms = partial(e.bernoulli_arms, means=np.linspace(0.1, 0.9, 10))
losses = partial(e.bernoulli_losses, means=np.linspace(0.1, 0.9, 10))
contexts = partial(e.contextual_linear, num_arms=6, dim=3)
FEW = 1_000  # statements, as a bound
SLACK = 1.03  # other releases of JAX trace a few operations more
# At most so many statements a play and numbers alive; whether some arrays are in memory.
COUNTS = {
    "ucb1": (SmallSweep(a.ucb1, arms), 420, 100, False),
    "exp3": (SmallSweep(a.exp3, losses), 450, 60, False),
    "htinf": (SmallSweep(a.htinf, losses), 710, 80, False),
    "thompson": (SmallSweep(a.thompson, arms), 4_450, 150, False),
    "ftpl": (ALGORITHMS["ftpl"], 5_000, 120, False),
    "online_ucb": (SmallSweep(partial(a.online_ucb, epsilon=4.0), contexts), 4_000, 280, False),
    "ucb1, 100 arms": (SmallSweep(a.ucb1, partial(e.bernoulli_arms, means=np.linspace(0, 1, 100))), 300, 30, True),
}


@pytest.mark.compiles(40)  # numbers of the host that tracing converts one by one
@pytest.mark.parametrize("name", COUNTS)
def test_what_a_play_does_and_holds(name):
    example, operations, alive, memory = COUNTS[name]
    [choice] = Played(plan_of(example)).choices.values()
    census = choice.census
    assert census.operations <= SLACK * operations and census.alive <= SLACK * alive, census
    assert (census.memory > 0) == memory and choice.form == ("loops" if memory else "written out")
    places = re.findall(r"\b(?:in|out|at|case)\d+ \+ (.*?)\]", choice.source.text)
    assert any("lane" in place for place in places)
    assert all(re.search(r"\(size_t\)(lane|point)\b", place) for place in places)  # counted in 64 bits


def long(x):
    """A program that adds up the squares of many numbers, a few thousand times."""
    y = jnp.broadcast_to(x[:1], (200,)) * jnp.arange(200, dtype=jnp.float32)
    for _ in range(2 * FEW // 200):
        y = jnp.sqrt(y) * y
    return y.sum()


def test_what_is_too_long_stays_in_memory(monkeypatch):
    monkeypatch.setattr(schedule, "MOST_STATEMENTS", FEW)
    assert fit_kernel("lanes", write_lane, jax.make_jaxpr(long)(X)).largest == 64
    with pytest.raises(TooLong):
        kernel_of(long, X, most=FEW)
    assert kernel_of(long, X).census.operations > FEW


def test_the_last_form_is_taken_whatever_its_length(monkeypatch):
    monkeypatch.setattr(schedule, "MOST_STATEMENTS", FEW)

    def function(x):
        for _ in range(2 * FEW):
            x = jnp.sin(x[:3] + 1)
        return x

    found = fit_kernel("lanes", write_lane, jax.make_jaxpr(function)(X))
    assert found.largest == APART[-1] and found.census.operations > 2 * FEW


def test_what_has_no_rule_is_no_kernel_and_says_so():
    traced = jax.make_jaxpr(lambda x: jax.lax.sort((x, 1 - x), num_keys=2)[1])(X)
    assert fit_kernel("lanes", write_lane, traced) == Fitted(traced, "there is no rule for sort by several keys")


def body_of(function, *args):
    run = Emitter()
    write_lane(run, jax.make_jaxpr(function)(*args))
    return schedule.without_unread(run.body)


def test_an_array_is_not_made_before_its_first_element_is_read():
    def array_by_array(x):  # eight numbers, then a function of each, then their sum, and something that nothing reads
        shifted = [x * (i + 1) for i in range(8)]
        return sum([jnp.sin(each) for each in shifted], jnp.zeros_like(x)), x + 1

    body = body_of(array_by_array, np.float32(1))
    other = schedule.few_alive(body)
    # as traced: x, eight multiples of it, a sine and the sum so far
    assert schedule.alive(body) >= 9 and schedule.alive(other) <= 5
    assert sorted(indent_lines(other)) == sorted(indent_lines(body)) and other != body


def test_arrays_lie_in_one_place_and_a_good_order_stays():
    def function(x):
        for _ in range(6):
            x = jnp.cumsum(x)
        return jnp.sort(x), x.sum()

    assert 0 < kernel_of(function, np.zeros(2 * LARGEST, np.float32)).census.memory < 5 * LARGEST
    body = body_of(lambda x: (jnp.sin(x * 2) + x, jnp.cos(x))[0], np.float32(1))
    assert schedule.few_alive(body) == body and "cos" not in "".join(indent_lines(body))


def test_what_a_loop_holds_counts_beside_what_waits_for_it():
    def function(x):
        return jax.lax.fori_loop(0, 5, lambda _, y: jnp.sin(y * 2 + jnp.cos(y)), x + 1) + x

    census = schedule.census_of(body_of(function, np.float32(1)))
    # x waits beside the counter; inside are y, two times y, and the cosine
    assert census.loops == 1 and 4 <= census.alive <= 6


def let(name, text="", size=0, changing=False, dtype=np.float32):
    return Let(Name(name, dtype), text, changing=changing or size > 0, size=size)


def loop(i, length, *body):
    return Block("ONCE for (;;)" if length is None else f"ONCE for (int {i} = 0; {i} < {length}; ++{i})", [*body], i,
                 length)  # fmt: skip


def lines(body):
    return [line.strip() for line in indent_lines(body)]


# Two numbers wait for a loop that fills an array, and one of them for a loop of unknown length, which has another one.
COUNTED = [
    let("v1", "in0[lane]"), let("v2", "v1 + 1"), let("v9", "v1 + 2"), let("a3", size=9),
    loop("i4", 9, let("v5", "v2 * v9"), Assign(Entry("a3", "i4"), "v5")),
    let("v6", "0", changing=True), let("a10", size=3),
    loop("i7", None, let("v8", Entry("a3", "v6")), "if (v8 > v2) break;", Assign("v6", "v6 + 1"),
         loop("i9", 4, Assign(Entry("a3", "i9"), "v8"))),
    Assign(Entry("a10", 1), "v6"), "out0[lane] = v6;",
]  # fmt: skip


def test_what_is_counted():
    # v2, v9 and v5 in the first loop; v2, v6 and v8 in the second one, which is run again and again
    assert schedule.census_of(COUNTED) == Census(operations=5, alive=3, memory=12, loops=3, touched=1 + 4)
    assert schedule.census_of(COUNTED[:6]) == Census(operations=4, alive=3, memory=9, loops=1, touched=9)
    for alive, touched in ((HELD - 9, 7), (HELD, 7), (HELD + 4, 15)):
        assert Census(1, alive, 2, 3, 7).in_memory == touched


def test_loops_of_which_turns_are_written_out():
    short, long = ([let(f"v{k}", "v0") for k in range(n)] for n in (500, 501))
    body = [
        loop("i1", 9, *short),
        loop("i2", 9, *long),
        loop("i3", 5, loop("i4", 5, "x;"), "y;"),
        loop("i5", None, "z;"),
    ]
    heads = [line for line in lines(schedule.unroll_inner_loops(body)) if "for" in line]
    assert [head[:4] for head in heads] == ["FOUR", "ONCE", "ONCE", "FOUR", "ONCE"]


def test_places_that_arrays_share():
    """The largest one first; another in its place only where it is of the same type and not needed at the same time."""

    def write(name):
        return Assign(Entry(name, 0), "v0")

    def read(name, k):
        return let(f"v{k}", Entry(name, 0))

    body = [
        let("a1", size=5), write("a1"), let("a2", size=9), write("a2"), read("a1", 1), read("a2", 2),
        let("a3", size=7), write("a3"), let("a4", size=4, dtype=np.int32), write("a4"), read("a3", 3), read("a4", 4),
        let("a5", size=1), write("a5"), read("a5", 5), let("a6", size=6), write("a6"), read("a6", 6),
    ]  # fmt: skip
    assert lines(schedule.sharing_memory(body)) == [
        "float a2[9];", "float a1[5];", "int a4[4];", "a1[0] = v0;", "a2[0] = v0;", "const float v1 = a1[0];",
        "const float v2 = a2[0];", "a2[0] = v0;", "a4[0] = v0;", "const float v3 = a2[0];", "const float v4 = a4[0];",
        "float a5[1];", "a5[0] = v0;", "const float v5 = a5[0];", "a2[0] = v0;", "const float v6 = a2[0];",
    ]  # fmt: skip


def test_an_array_that_another_begins_with_has_a_place_of_its_own():
    body = [
        let("a1", size=5),
        Assign(Entry("a1", 0), "v0"),
        let("a2", Entry("a1", 0), size=9),
        let("v3", Entry("a2", 0)),
    ]
    assert lines(schedule.sharing_memory(body))[:2] == ["float a2[9] = a1[0];", "float a1[5];"]


def test_what_needs_more_numbers_is_made_first():
    """v3 needs two at once and v9 one: made first, v9 would wait beside them."""
    body = [let("v9", "7"), let("v1", "1"), let("v2", "v1 + 1"), let("v3", "v2 + v1"), "out = v9 + v3;"]
    assert lines(schedule._by_need(body)) == [
        "const float v1 = 1;", "const float v2 = v1 + 1;", "const float v3 = v2 + v1;", "const float v9 = 7;",
        "out = v9 + v3;",
    ]  # fmt: skip


def test_variables_that_nothing_reads_go():
    """But for those that a loop, what follows it or a head reads; what changes stays."""
    body = [
        let("v1", "1"), let("v2", "v1 + 1"), let("v3", "v2 + 1"), let("v4", "0", changing=True), let("v5", "3"),
        Block("if (v5)", [let("v6", "v1 * 2"), let("v7", "v6"), Assign("v4", "v6")]), let("v8", "v4"), "out = v4;",
    ]  # fmt: skip
    assert lines(schedule.without_unread(body)) == [
        "const float v1 = 1;", "float v4 = 0;", "const float v5 = 3;", "if (v5) {", "const float v6 = v1 * 2;",
        "v4 = v6;", "}", "out = v4;",
    ]  # fmt: skip


@pytest.mark.parametrize("before, after, taken", [(8, 6, True), (8, 7, False), (4, 3, True)])
def test_another_order_must_spare_a_quarter(monkeypatch, before, after, taken):
    monkeypatch.setattr(schedule, "_by_need", lambda body: [*body, "other"])
    monkeypatch.setattr(schedule, "alive", lambda body: after if "other" in body else before)
    assert ("other" in schedule.few_alive(["x"])) == taken


SHORT, LONG = schedule.MOST_STATEMENTS, schedule.MOST_STATEMENTS + 1
FEW_ALIVE, MANY, TOO_MANY = schedule.MOST_ALIVE, schedule.MOST_ALIVE + 1, schedule.MOST_SPILLED + 1


@pytest.mark.parametrize("counts, largest", [
    ({256: (SHORT, FEW_ALIVE, 9)}, 256),
    ({256: (LONG, 1, 9), 64: (SHORT, FEW_ALIVE, 9)}, 64),
    ({256: None, 64: None, 16: None, 4: (LONG, TOO_MANY, 9)}, 4),
    # spilled numbers are touched twice a play: the first form that spills, unless a later one touches less
    ({256: (SHORT, MANY, 0), 64: (SHORT, FEW_ALIVE, 500)}, 256),
    ({256: (SHORT, MANY, 0), 64: (SHORT, FEW_ALIVE, 1)}, 64),
    ({256: (SHORT, MANY, 0), 64: (SHORT, MANY - 1, 2)}, 64),
    ({256: (SHORT, TOO_MANY, 0), 64: (SHORT, FEW_ALIVE, 5000)}, 64),
    ({256: (SHORT, TOO_MANY - 1, 0), 64: (SHORT, FEW_ALIVE, 5000)}, 256),
    ({256: (SHORT, 500, 0), 64: (SHORT, 400, 0), 16: (SHORT, FEW_ALIVE, 5000)}, 256),
    ({256: (SHORT, 500, 0), 64: (LONG, 1, 0), 16: (LONG, 1, 0), 4: (LONG, TOO_MANY, 100)}, 256),
])  # fmt: skip
def test_which_form_is_taken(monkeypatch, counts, largest):
    def write(stem, write, traced, largest, most):
        assert (stem, write, traced, most) == ("x", "write", "traced", np.inf if largest == 4 else 19_500)
        if counts[largest] is None:
            raise TooLong
        operations, alive, touched = counts[largest]
        return Fitted(traced, census=Census(operations, alive, 0, 0, touched), largest=largest)

    monkeypatch.setattr(schedule, "write_kernel", write)
    assert fit_kernel("x", "write", "traced").largest == largest
