"""How long programs may be, what is counted of them, and the order of their statements."""

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
from jaxbandits.kernels.schedule import APART, fit_kernel
from jaxbandits.kernels.text import TooLong, indent_lines

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
