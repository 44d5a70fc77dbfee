"""The two layouts of matrices and vectors: they agree, and above 8 features too no lane depends on others."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.checking.subject import Subject
from jaxbandits.numerics import eliminations, least_squares, packed

a = jb.algorithms
LEARNERS = {
    "linucb": a.linucb,
    "linucb, fixed": a.linucb,
    "cw_oful": partial(a.cw_oful, corruption_budget=5.0),
    "adac_oful": partial(a.adac_oful, rho=1.0),
    "hvt_linucb": partial(a.hvt_linucb, moment_scale=1.0, radius_scale=1e-3),
    "linear_thompson": a.linear_thompson,
    "epsilon_greedy": a.epsilon_greedy,
    "ldp_linucb": partial(a.ldp_linucb, epsilon=10.0),
    "ldp_instrument_ucb": partial(a.ldp_instrument_ucb, epsilon=10.0),
    "jdp_linucb": partial(a.jdp_linucb, epsilon=10.0),
    "shuffle_linucb": partial(a.shuffle_linucb, epsilon=10.0),
    "online_ucb": partial(a.online_ucb, epsilon=20.0),
}


@pytest.mark.parametrize("name", dealt(LEARNERS, 6, always=("online_ucb",)))
def test_calls_of_any_number_of_lanes_give_the_same_bits(name):
    contexts = {"contexts": "fixed"} if "fixed" in name else {}
    world = partial(jb.environments.contextual_linear, num_arms=7, dim=12, **contexts)
    subject = Subject(LEARNERS[name], world, horizon=40, seeds=16)
    few, *more = (subject.play_seeds(lanes=lanes) for lanes in (16, 128, 1024))
    for other in more:
        for array, x in few.items():
            np.testing.assert_array_equal(other[array], x, err_msg=array)
    assert len(np.unique(few["regret"][:, -1])) > 1


def everything(xs, ys, raw, limit):
    """Every function of `packed` on features [n, d], rewards [n] and an indefinite matrix [d, d], in one layout."""
    dim = xs.shape[1]

    def of_matrix(m):
        return m if dim > limit else [m[i, j] for i, j in packed.pairs(dim)]

    def entries(m):
        return packed.join_matrix_vector(tuple(m) if dim <= limit else m, packed.zero_vector(dim, xs.dtype))[:-dim]

    state = (packed.identity_times(dim, jnp.ones((), xs.dtype)), packed.zero_vector(dim, xs.dtype), ())
    for x, y in zip(xs, ys, strict=True):
        state = least_squares.rank_one(*state, packed.split_features(x), y)
    inverse, theta, _ = state
    x = packed.split_features(xs[0])
    numbers = packed.join_matrix_vector(inverse, theta)
    again, its_vector = packed.split_matrix_vector(numbers, dim)
    estimate = least_squares.ridge_estimate(again, its_vector, jnp.asarray(0.5, xs.dtype))
    definite = of_matrix(raw @ raw.T)
    return {
        "inner": packed.inner(x, theta),
        "quadratic_form": packed.quadratic_form(inverse, x),
        "symmetric_product": packed.stack_features(packed.symmetric_product(inverse, x)),
        "outer": entries(packed.outer(x)),
        "each": packed.stack_features(packed.map_features(lambda own, other: own - 2 * other, x, theta)),
        "rank_one": numbers,
        "ridge_scores": jnp.stack(least_squares.ridge_scores(again, its_vector, jnp.asarray(0.5, xs.dtype), x)),
        "ridge_estimate": packed.join_matrix_vector(*estimate),
        "symmetric_inverse": entries(eliminations.symmetric_inverse(of_matrix(raw + raw.T), dim)),
        "cholesky": packed.stack_features(packed.lower_product(eliminations.cholesky(definite, dim), x)),
    }


@pytest.mark.parametrize("dim", [1, 2, 5, 8, 11])
def test_the_two_layouts_agree(dim, monkeypatch):
    rng = np.random.default_rng(dim)
    given = rng.normal(size=(6, dim)), rng.normal(size=6), rng.normal(size=(dim, dim)) + 2 * np.eye(dim)
    found = []
    with jax.enable_x64(True):
        for limit in (0, 16):
            monkeypatch.setattr(packed, "MAX_UNROLLED_DIM", limit)
            found.append(uncompiled(partial(everything, limit=limit))(*given))
    for name, arrays in found[0].items():
        np.testing.assert_allclose(arrays, found[1][name], rtol=1e-8, atol=1e-9, err_msg=name)
    inverse = np.linalg.inv(np.eye(dim) + given[0].T @ given[0])
    np.testing.assert_allclose(found[0]["quadratic_form"], given[0][0] @ inverse @ given[0][0], rtol=1e-8)
