"""Learners from optax transformations: literal paths, bits that do not follow the lanes, and what is refused."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from dealt import dealt, others
from last_bits import assert_same
from planting import errors, planted
from reference import optimizers as literal
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.contract import operations
from jaxbandits.learners.from_optax import State
from jaxbandits.learners.transformations import begin, step

ROUNDS, DIM, RADIUS = 60, 4, 0.8


def gradients(seed, rounds=ROUNDS, dim=DIM, size=1.0):
    """Gradients [rounds, dim] with a drift, so that points leave the ball."""
    rng = np.random.default_rng(seed)
    return (size * (rng.normal(size=(rounds, dim)) + rng.normal(size=dim))).astype(np.float32)


@partial(jax.jit, static_argnums=0)
def played(learner, given):
    """Predictions [rounds, d] and the last state."""

    def play(state, gradient):
        return learner.update(state, gradient), learner.predict(state)

    last, points = jax.lax.scan(play, learner.init(), given)
    return points, last


def predictions(learner, given):
    return jax.tree.map(np.asarray, played(learner, given))


CASES = {
    "sgd": (optax.sgd(0.05), lambda m: m.sgd(0.05)),
    "momentum": (optax.sgd(0.05, momentum=0.9), lambda m: m.momentum(0.05, 0.9)),
    "adam": (optax.adam(0.05), lambda m: m.adam(0.05)),
    "adagrad": (optax.adagrad(0.3), lambda m: m.adagrad(0.3)),
    "decay": (optax.sgd(lambda count: 0.3 / (count + 1)), lambda m: m.decaying(0.3)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_path_is_the_literal_one(name):
    transformation, build = CASES[name]
    given = gradients(1)
    points, _ = predictions(jb.learners.from_optax(transformation, DIM, RADIUS), given)
    want = literal.predictions(literal.Projected(DIM, build(literal), theta_bound=RADIUS), given)
    np.testing.assert_allclose(points, want, rtol=2e-5, atol=2e-6)
    assert np.any(np.linalg.norm(points, axis=1) > 0.999 * RADIUS), "no point reached the edge of the ball"


@pytest.mark.parametrize(("name", "error"), errors([
    *((name, "- self.step(g", "- 2 * self.step(g") for name in CASES),
    *((name, "np.zeros(dim), 1", "np.zeros(dim), 2") for name in ("adam", "decay")),  # the others know no time
], literal))  # fmt: skip
def test_planted_errors_are_seen(name, error):
    """In the path that is compared above: 1e-3 is 50 times what separates the fast one from it."""
    path = lambda m: literal.predictions(m.Projected(DIM, CASES[name][1](m), theta_bound=RADIUS), gradients(1))
    assert np.abs(path(planted(*error)) - path(literal)).max() > 1e-3


STRICT = {
    "adam": optax.adam(0.1),
    "adamw": optax.adamw(0.1),
    "yogi": optax.yogi(0.1),
    "inject_hyperparams": optax.inject_hyperparams(optax.adam)(learning_rate=0.1),
    "schedule": optax.sgd(optax.cosine_decay_schedule(0.1, 20)),
    "every third": optax.MultiSteps(optax.sgd(0.1), 3).gradient_transformation(),
    "lamb": optax.lamb(0.1),
    "novograd": optax.novograd(0.1),
    "prodigy": optax.contrib.prodigy(),
    "schedule free": optax.contrib.schedule_free_sgd(0.1),
}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("name", dealt(STRICT, 8, always=["adam", "every third", "inject_hyperparams", "schedule"]))
def test_transformations_run_under_strict_promotion(name, dtype):
    with jax.enable_x64(dtype == jnp.float64), jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        learner = jb.learners.from_optax(STRICT[name], DIM, RADIUS, dtype=dtype)
        given = gradients(2).astype(dtype)
        points, last = predictions(learner, given)
        first = jax.eval_shape(learner.init)
        chex.assert_trees_all_equal_shapes_and_dtypes(first, jax.eval_shape(lambda: last))
        assert not any(x.weak_type for x in jax.tree.leaves(first))
    assert points.dtype == dtype and np.all(np.linalg.norm(points, axis=1) <= RADIUS * (1 + 1e-6))
    # the same numbers as optax itself, without the wrapping

    def unwrapped(carry, g):
        point, state = carry
        change, state = STRICT[name].update(g, state, point)
        new = point + change
        return (new * jnp.minimum(1, RADIUS / jnp.maximum(jnp.linalg.norm(new), 1e-30)), state), point

    with jax.enable_x64(dtype == jnp.float64), jax.numpy_dtype_promotion("standard"):
        point = np.zeros(DIM, dtype)
        begin = lambda: (jnp.asarray(point), STRICT[name].init(jnp.asarray(point)))
        want = jax.jit(lambda given: jax.lax.scan(unwrapped, begin(), given)[1])(given)
    np.testing.assert_allclose(points, np.asarray(want), rtol=1e-4, atol=1e-5)


BITWISE = {
    "sgd": optax.sgd(0.05),
    "momentum": optax.sgd(0.05, momentum=0.9, nesterov=True),
    "adam": optax.adam(0.05),
    "adagrad": optax.adagrad(0.3),
    "clip_by_global_norm": optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.05)),
    "lamb": optax.lamb(0.05),
    "novograd": optax.novograd(0.05),
}


@pytest.mark.parametrize("dim", [3, *others([40])])
@pytest.mark.parametrize("name", dealt(BITWISE, 8, always=["adam", "clip_by_global_norm"]))
def test_lanes_beside_it_change_no_bit(name, dim):
    learner = jb.learners.from_optax(BITWISE[name], dim, 1.0)
    given = np.stack([gradients(seed, dim=dim) for seed in range(64)])

    def lane(given):
        return jax.lax.fori_loop(0, ROUNDS, lambda i, state: learner.update(state, given[i]), learner.init())

    run = jax.jit(jax.vmap(lane))
    whole = jax.tree.map(np.asarray, run(given))
    for lanes in (8, 24):
        assert_same(run(given[:lanes]), jax.tree.map(lambda x, n=lanes: x[:n], whole))


def test_optax_alone_sums_by_the_number_of_lanes():
    """Why sums are taken in an order of our own: without it the same lane ends elsewhere in calls of other sizes."""
    clipped, adam = BITWISE["clip_by_global_norm"], BITWISE["adam"]
    given = np.stack([gradients(seed, dim=40) for seed in range(256)])

    def ends(transformation):
        def play(i, carry, given):
            change, state = transformation.update(given[i], carry[1], carry[0])
            return carry[0] + change, state

        def lane(given):
            start = jnp.zeros(40, jnp.float32)
            return jax.lax.fori_loop(0, ROUNDS, lambda i, c: play(i, c, given), (start, transformation.init(start)))[0]

        return jax.jit(jax.vmap(lane))

    with jax.numpy_dtype_promotion("standard"):
        for transformation, alike in ((clipped, False), (adam, True)):
            run = ends(transformation)
            assert np.array_equal(run(given)[:8], run(given[:8])) == alike


GROWING = optax.GradientTransformation(lambda x: x, lambda g, state, x=None: (g, (state, state)))
SHORT = optax.GradientTransformation(lambda x: (), lambda g, state, x=None: (g[:1], state))
REFUSED = [
    (optax.lbfgs(), r"transformation = GradientTransformationExtraArgs made by optax.*value_fn.*optax\.sgd\(0\.1\)"),
    (optax.polyak_sgd(), "'value'"),
    (optax.contrib.momo(), "'value'"),
    (optax.contrib.reduce_on_plateau(), "'value'"),
    (optax.noisy_sgd(0.1, key=0), "draws random numbers from a seed of its own"),
    (optax.MultiSteps(optax.sgd(0.1), 3), r"give what its gradient_transformation\(\) returns"),
    (optax.adam, r"call it first, as in optax\.adam\(0\.1\)"),
    ("adam", "transformation = 'adam' is no optax transformation"),
    (None, "transformation = None"),
    (GROWING, "changes the shapes or types of its state"),
    (SHORT, r"its update of a point of shape \(4,\)"),
]


@pytest.mark.parametrize(("transformation", "message"), REFUSED)
def test_what_does_not_fit_is_refused(transformation, message):
    with pytest.raises(ValueError, match=message):
        jb.learners.from_optax(transformation, DIM, RADIUS)


def test_other_shapes_of_gradients_are_refused():
    learner = jb.learners.from_optax(optax.sgd(0.1), 3, 1.0)
    with pytest.raises(ValueError, match="gradient has shape"):
        learner.update(learner.init(), jnp.ones((2, 3)))


def test_a_step_that_is_not_finite_is_not_taken():
    learner = jb.learners.from_optax(optax.sgd(0.1, momentum=0.9), 2, 1.0)
    update, predict = uncompiled(learner.update), uncompiled(learner.predict)
    state = update(uncompiled(learner.init)(), np.float32([1, 2]))
    for bad in (np.nan, np.inf):
        chex.assert_trees_all_equal(update(state, np.float32([bad, 1])), state)
    assert isinstance(state, State)
    far = update(state, np.float32([3e37, 0]))  # its square is infinite
    np.testing.assert_allclose(predict(far), [-1.0, 0.0], atol=1e-6)
    # what counts is the point, and not the gradient: a step may overflow, and a transformation may clean it
    wide, cleaned = optax.sgd(10.0), optax.chain(optax.zero_nans(), optax.sgd(0.1))
    for transformation, gradient, point in ((wide, [1e38, 0], [0, 0]), (cleaned, [np.nan, 1], [0, -0.1])):
        learner = jb.learners.from_optax(transformation, 2, 1.0)
        state = uncompiled(learner.update)(uncompiled(learner.init)(), np.float32(gradient))
        np.testing.assert_allclose(uncompiled(learner.predict)(state), point, rtol=1e-6)


def test_the_radius_is_data():
    @jax.jit
    def end(bound):
        learner = jb.learners.from_optax(optax.sgd(0.5), 2, bound)
        return learner.predict(learner.update(learner.init(), jnp.array([3.0, 4.0])))

    for bound in (0.5, 2.0):
        assert np.linalg.norm(end(bound)) == pytest.approx(bound, rel=1e-6)


def test_no_sum_of_a_step_is_left_to_xla():
    def branching(g, state, x=None):
        return jax.lax.cond(g[0] > 0, lambda g: g * jnp.sum(g), lambda g: -g, g), state

    point, again = jnp.zeros(4), jax.checkpoint(lambda g: g * jnp.sum(g))
    for update in (
        branching,
        lambda g, state, x=None: (g * jnp.vdot(g, g), state),
        lambda g, state, x=None: (again(g), state),
    ):
        made = optax.GradientTransformation(lambda x: (), update)
        program = jax.make_jaxpr(lambda g: step(made, g, begin(made, point), point))(point)  # noqa: B023
        assert not {"reduce_sum", "dot_general"} & {one.primitive.name for one in operations(program.eqns)}
