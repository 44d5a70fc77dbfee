"""Forms of kernels that wait for a card's figures (`benchmarks/gpu_options.py`), played by `cc` beside today's."""

import re
from functools import partial

import gpu_options as options
import jax
import numpy as np
import pytest
from laid_out import Played, needs_cc, plan_of

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.catalogue import SmallSweep
from jaxbandits.kernels import launch, plays
from jaxbandits.kernels.launch import absent_gpu
from jaxbandits.spans import segment


class Laid(Played):
    """A case whose schedule is one span of windows of one play."""

    def __init__(self, algorithm, num_arms, environment=e.bernoulli_arms):
        super().__init__(plan_of(SmallSweep(algorithm, partial(environment, means=np.linspace(0.1, 0.9, num_arms)))))
        [(_, self.today)], [self.span] = self.choices.items(), self.group.schedule
        self.begun = partial(self.run, "begin", self.device, self.case, self.seeds)

    def where(self, first=0, windows=96):
        return segment(self.span, 0, first, windows, self.group.times)

    def advance(self, fit, form):
        return jax.jit(partial(plays.advance_by_kernel, fit, self.marks, form=form))

    def after(self, fit, form, *segments):
        """The lanes after some segments, or all plays."""
        lane, advance = self.begun(), self.advance(fit, form)
        for where in segments or (self.where(),):
            with options.with_route():
                lane = advance(self.case, self.seeds, lane, self.times, where)
        return lane


def assert_same_bits(ours, wanted):
    jax.tree.map(np.testing.assert_array_equal, ours, wanted)


@pytest.fixture(scope="module")
def hundred_arms():
    return Laid(a.ucb1, 100)


@needs_cc
def test_arrays_in_shared_memory(hundred_arms):
    """Of a hundred arms means, inverse roots and indices, which a play reads all of."""
    one = hundred_arms
    assert_same_bits(one.after(one.today, options.shared_form("cc")), one.after(one.today, "cc"))
    source, block = options.in_shared_memory(one.today.source)
    assert block == 3 * 4 * 100 * 32
    starts = re.findall(r"const (a\d+) = \(float\*\)shared \+ (\d+) \+ lane % 32;", source.text)
    # a thread's elements are 32 apart, so arrays that begin 100 times that apart share none, nor do threads
    assert [int(start) for _, start in starts] == [0, 3_200, 6_400]
    for name, _ in starts:
        assert all(place.endswith(") * 32") for place in re.findall(rf"\b{name}\[(.*?)\]", source.text))
    assert re.findall(r"^  int a\d+\[100\];", source.text, re.MULTILINE)  # counts: one element a play
    too_many = one.today.source._replace(text=one.today.source.text.replace("100", "700"))
    with pytest.raises(ValueError, match="268,800 bytes of a block: shared memory has 232,448"):
        options.in_shared_memory(too_many)


def test_what_a_card_is_told(hundred_arms):
    one = hundred_arms
    with absent_gpu(ptx=lambda text, capability: "shared" if "extern __shared__" in text else "none"):
        form = options.shared_form("kernel")
        given = one.case, one.seeds, jax.eval_shape(one.begun), one.times, one.where()
        with options.with_route():
            traced = one.advance(one.today, form).trace(*given)
            text = traced.lower(lowering_platforms=("cuda",)).as_text()
    for told in ('kernel_data = "shared"', "shared_mem_bytes = 38400", "grid_x = 4 :", "block_x = 32 :"):
        assert told in text
    assert options.SHARED not in launch.ROUTES  # nobody else takes it


@needs_cc
def test_one_loop_of_tries():
    """A twentieth of 74,000 first tries is refused."""
    one = Laid(a.thompson, 3)
    wanted, loop = one.after(one.today, "cc"), options.in_one_loop(one.run.parts, one.today)
    assert loop.census.operations < one.today.census.operations
    assert_same_bits(one.after(loop, "cc"), wanted)
    assert_same_bits(one.after(loop._replace(largest=4), options.shared_form("cc")), wanted)


@needs_cc
@pytest.mark.parametrize("form", ["cc", options.shared_form("cc")], ids=["blocks", "warps"])
@pytest.mark.parametrize("which", [(a.ucb1, 3), (a.exp3, 3, e.bernoulli_losses)], ids=["ucb1", "exp3"])
def test_one_launch(which, form):
    one = Laid(*which)
    wanted = one.after(one.today, "cc", one.where(0, 40), one.where(40, 56))
    whole = options.as_one_launch(one.run.parts, one.today, len(one.group.times))
    with options.with_route():
        ours = jax.jit(partial(options.play_whole, whole, form=form))(one.case, one.seeds, one.times, one.where())
    assert_same_bits(ours, wanted)
    np.testing.assert_array_equal(np.sum(ours.record.pulls_at, -1)[0], one.group.times)


def test_windows_that_end_early_are_not_one_launch(hundred_arms):
    counted = hundred_arms.today.traced._replace(kind="counted")
    with pytest.raises(ValueError, match="counted windows"):
        options.as_one_launch(hundred_arms.run.parts, hundred_arms.today._replace(traced=counted), 8)
