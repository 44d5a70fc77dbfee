"""Every public factory passes the rules of `jaxbandits.check`, and keeps what only the package promises."""

import chex
import jax
import numpy as np
import pytest
from cases import KINDS, SEEDS
from dealt import dealt

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.checking.check import findings_of
from jaxbandits.checking.rules import RULES, differences, guarantee, short_audit, windows
from jaxbandits.checking.subject import Subject
from jaxbandits.contract import operations
from jaxbandits.mechanisms.composition import claimed_epsilon
from jaxbandits.protocol import Span
from jaxbandits.sweeps.engines import one_call
from jaxbandits.sweeps.engines.calls import Call
from jaxbandits.sweeps.identity import _lane_program
from jaxbandits.sweeps.plan import Cell
from jaxbandits.sweeps.storage.store import BegunCall

CASES, ALGORITHMS = catalogue.EVERYTHING, catalogue.ALGORITHMS
TRACED, PLAYED = RULES[: RULES.index(differences)], RULES[RULES.index(short_audit) + 1 :]
FEW = 2  # kinds of windows: histories of designs with more take long to compile


def breaches(subject, rules, but=()):
    """What a case breaks of some rules."""
    return [(rule.__name__, *each) for rule in rules if rule.__name__ not in but for each in findings_of(rule, subject)]


def test_every_environment_and_adversary_has_a_case():
    assert set(catalogue.ENVIRONMENTS) == set(jb.environments.__all__)
    assert set(catalogue.ADVERSARIES) == set(jb.adversaries.__all__)


@pytest.mark.parametrize("name", CASES)
def test_traces_keep_the_contract(subject, name, unless_pinned):
    assert breaches(subject, TRACED, but=("guarantee",)) == []


@pytest.mark.parametrize("name", CASES)
def test_plays_keep_the_contract(subject, name, unless_pinned):
    # calls of any number of lanes: tests/engine/test_bits.py
    assert breaches(subject, PLAYED, but=("chunks", "actions", "windows", "bad_rewards")) == []
    final = subject.play_seeds()["regret"][:, -1]
    assert final.shape == (SEEDS,)
    assert len(np.unique(final)) > 1 or name in ("fixed_gap_losses", "lemma51_losses")


@pytest.mark.parametrize("name", dealt(ALGORITHMS, 8, always=KINDS))
def test_actions_keep_the_contract(subject, name):
    kinds = {(span.slots, span.full, span.whole) for span in subject.cell.algorithm.schedule}
    if len(kinds) <= FEW:
        assert breaches(subject, PLAYED, but=("plays", "chunks", "lane_alone", "checkpoints", "windows")) == []


def two_spans(*, num_arms, horizon):
    """Plays are counted on from one span to the next."""
    uniform = jb.algorithms.uniform(num_arms=num_arms, horizon=horizon)
    return uniform._replace(schedule=(Span(1, horizon // 2), Span(2, horizon // 4)))


def test_a_saved_lane_goes_on_in_a_later_span(monkeypatch):
    goes_on(Subject(two_spans, catalogue.arms, horizon=64).current, monkeypatch)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_saved_lane_goes_on(subject, name, unless_pinned, monkeypatch):
    """A call taken up from what it saved, in the middle of every span, ends like one that was never interrupted."""
    goes_on(subject.current, monkeypatch)


def goes_on(laid_out, monkeypatch):
    saved, steps = {}, 7

    def segments(windows, begin, done=0):
        for first in range(done, windows, steps):
            yield first, min(steps, windows - first)

    def keep(span, window, leaves, last=False):
        saved.setdefault(span, []).append((window, leaves()))

    monkeypatch.setattr(one_call, "segments", segments)
    task, device = Call(0, (0,), 0, SEEDS, SEEDS), jax.local_devices()[0]
    whole = one_call.play_call(task, laid_out, device, keep=keep)
    assert saved
    for span in {min(saved), max(saved)}:
        window, leaves = saved[span][len(saved[span]) // 2]
        begun = BegunCall(("key",), 0, SEEDS, SEEDS, span, window), leaves
        again = one_call.play_call(task, laid_out, device, begun=begun)
        chex.assert_trees_all_equal(whole, again, strict=True)


LIBRARY_CALLS = set("dot_general cholesky eigh lu qr svd triangular_solve schur householder_product".split())


@pytest.mark.parametrize("name", CASES)
def test_no_linear_algebra_library_is_called(subject, name, unless_pinned):
    """A GPU's bitwise promise covers programs without such calls: docs/determinism.md names none of this release."""
    program, _ = _lane_program(subject.plan.groups[0], subject.case())
    used = {one.primitive.name for one in operations(program.eqns)}
    assert "add" in used and not used & LIBRARY_CALLS, used & LIBRARY_CALLS
    product = jax.make_jaxpr(lambda x: x @ x)(np.ones((3, 3), np.float32))
    assert "dot_general" in {one.primitive.name for one in operations(product.eqns)}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_guarantees_keep_the_contract(subject, name, unless_pinned):
    assert breaches(subject, [guarantee]) == []


@pytest.mark.parametrize("name", ALGORITHMS)
def test_guarantees_are_well_formed(subject, name):
    algorithm = subject.cell.algorithm
    claim, params = algorithm.guarantee, algorithm.params
    assert algorithm.config["horizon"] == CASES[name].horizon
    if claim.model != "none":
        epsilon, delta = claim.spend(params)
        assert (0 < epsilon < np.inf and 0 <= delta < 1) or claimed_epsilon(algorithm) == np.inf
        halved = claim.spend(params._replace(mechanism_scale=0.5 * params.mechanism_scale))[0]
        assert delta > 0 or halved == pytest.approx(2 * epsilon)


@pytest.mark.parametrize("name", catalogue.ENVIRONMENTS)
def test_a_fixed_policy_sees_the_same_rewards_under_every_window(subject, name):
    assert breaches(subject, [windows]) == []


@pytest.mark.parametrize("name", ["exp3"])
def test_lane_cell_is_a_plain_tuple(subject, name):
    """Cells hold host data only: planning does not start the accelerator."""
    cell = subject.cell
    assert isinstance(cell, Cell) and not any(isinstance(x, jax.Array) for x in jax.tree.leaves(cell.algorithm.params))
