"""The preset "exact" of the private linear bandits: what is spent is what is asked for, in any unit of features, and
regret is that of a transcription played elsewhere (docs/formulas/ldp_contextual.md#exact-presets).
"""

import math
import re
from functools import partial
from pathlib import Path

import chex
import numpy as np
import pytest
from dealt import dealt, others
from planting import errors, planted
from plays import Lane, played

import jaxbandits as jb
from jaxbandits.mechanisms import amplified_epsilon, gaussian_epsilon, gaussian_scale, vector_epsilon
from jaxbandits.mechanisms.shuffle import VectorCode
from jaxbandits.sweeps.plan import plan
from jaxbandits.theory import exact_presets, exact_tuning
from jaxbandits.theory.linear_widths import moment_sensitivity

a = jb.algorithms
INF = math.inf
SHAPE = {"num_arms": 4, "dim": 5}
# label -> a factory at its defaults, but for the kind of statistics or of sums
PRIVATE = {
    "ldp_linucb": a.ldp_linucb,
    "jdp_linucb": a.jdp_linucb,
    "jdp_linucb, binary": partial(a.jdp_linucb, tree="binary"),
    "jdp_linucb, square_root": partial(a.jdp_linucb, tree="square_root"),
    "jdp_linucb, honaker": partial(a.jdp_linucb, tree="honaker"),
    "jdp_linucb, banded": partial(a.jdp_linucb, tree="banded"),
    "shuffle_linucb": a.shuffle_linucb,
    "shuffle_linucb, amplified": partial(a.shuffle_linucb, protocol="amplified"),
    **{
        f"{rule.__name__}, {statistics}": partial(rule, statistics=statistics)
        for rule in (a.linear_thompson, a.epsilon_greedy) for statistics in ("ldp", "jdp", "shuffle")
    },
}  # fmt: skip
CODED = {"shuffle_linucb", "linear_thompson, shuffle", "epsilon_greedy, shuffle"}  # a whole number of trials
LINEAR = {"ldp_linucb": a.ldp_linucb, "jdp_linucb": a.jdp_linucb, "shuffle_linucb": a.shuffle_linucb}


def horizons(label, *values):
    """Those that a form of running sums can have."""
    return [t for t in values if "square_root" not in label or t <= 1024]


def spent(algorithm, scale=1.0):
    """epsilon with the noise multiplied."""
    return algorithm.guarantee.spend(algorithm.params._replace(mechanism_scale=scale))[0]


@pytest.mark.parametrize("label", dealt(PRIVATE, 4, always=PRIVATE.keys() - CODED))
def test_the_default_spends_what_it_is_asked_for(label):
    for epsilon in (0.2, 1.0, 10.0):
        for horizon in horizons(label, 1, 1000, 20_000):
            norms = (0.5, 2.0) if label not in CODED else (2.0,) if horizon == 1000 else (0.5,)  # in units of which
            for norm in norms:
                made = PRIVATE[label](**SHAPE, horizon=horizon, epsilon=epsilon, feature_norm=norm)
                if label in CODED:
                    assert 0.9 * epsilon <= spent(made) <= epsilon * (1 + 1e-6)
                else:
                    assert spent(made) == pytest.approx(epsilon, rel=1e-6)
                assert spent(made, 2 / 3) > epsilon > spent(made, 3 / 2)


@pytest.mark.parametrize("label", PRIVATE)
def test_without_a_budget_there_is_no_noise(label):
    """Ridge L^2 and the width's limit: L B + R sqrt(2 log T + d log(1 + T / d))."""
    for horizon, norm in zip(horizons(label, 1, 1000, 20_000), (1.0, 2.0, 0.5), strict=False):
        made = PRIVATE[label](**SHAPE, horizon=horizon, epsilon=INF, feature_norm=norm)
        p, chosen = made.params.statistics, made.params.selection
        if label in CODED:
            assert p.code.trials == 0
        else:
            assert (p.diagonal, p.off_diagonal, p.vector) == (0.0, 0.0, 0.0)
        assert (p.ridge, p.ridge_root) == (norm**2, 0.0) and spent(made) == INF
        if label.partition(",")[0] in LINEAR:
            own = 0.5 * math.sqrt(2 * math.log(max(horizon, 2)) + 5 * math.log(1 + horizon / 5))
            assert chosen.base == pytest.approx(1 + own, rel=1e-12)  # L B = 1
            assert (chosen.quartic, chosen.slope) == (0.0, 0.0)


def doubled(epsilon):
    return partial(a.doubling, base=partial(a.online_ucb, epsilon=epsilon))


DELTAS = {
    **{label: factory for label, factory in PRIVATE.items() if horizons(label, 20_000)},
    "online_ucb": a.online_ucb,
    "doubling": lambda epsilon, **given: doubled(epsilon)(**given),
    "bandit_combiner": lambda epsilon, **given: a.bandit_combiner(
        bases=[doubled(epsilon), partial(a.online_ucb, epsilon=epsilon)], **given
    ),
    "byzantine_ucb": partial(a.byzantine_ucb, num_agents=3, privacy="tree"),
    **{f"{name}, {p}": partial(LINEAR[name], preset=p) for name in LINEAR for p in ("reference", "theory")},
}  # fmt: skip


def claims_the_default_delta(factory) -> bool:
    """min(1e-3, 1 / T), of what is spent and, where the params have it, of what may be."""
    for horizon, delta in ((100, 1e-3), (1000, 1e-3), (20_000, 5e-5)):
        made = factory(**SHAPE, horizon=horizon, epsilon=2.0)
        found, named = made.guarantee.spend(made.params), getattr(made.params, "statistics", made.params)
        named = getattr(named, "delta", delta)
        if (math.isfinite(found[0]) and found[1] != delta) or not np.all(np.asarray(named) == delta):
            return False
    return True


@pytest.mark.parametrize("label", DELTAS)
def test_delta_is_a_users_share_of_the_horizon(label):
    assert claims_the_default_delta(DELTAS[label])


@pytest.mark.planted("an algorithm's default delta", "min(1e-3, 1 / T)", "0.1")
def test_another_default_of_delta_is_noticed():
    assert not any(claims_the_default_delta(partial(factory, delta=0.1)) for factory in LINEAR.values())


@pytest.mark.parametrize(
    "rule", [a.jdp_linucb, *(partial(r, statistics="jdp") for r in (a.linear_thompson, a.epsilon_greedy))]
)
def test_the_shortcut_of_the_tree_has_no_exact_noise(rule):
    build = partial(rule, **SHAPE, horizon=50, tree="simplified")
    for preset in (None, "exact"):
        with pytest.raises(ValueError, match=r"tree = 'simplified' with preset = 'exact'.*infinite"):
            build(epsilon=1.0, preset=preset)
    assert spent(build(epsilon=1.0, preset="reference")) == INF
    assert build(epsilon=INF).params.statistics.diagonal == 0


def test_presets_and_budgets_share_a_program():
    """`preset` and epsilon are data: only what they make of the tree, the protocol and the window is not."""
    same = {
        "ldp_linucb": {}, "jdp_linucb": {"tree": "binary"}, "shuffle_linucb": {"protocol": "vector", "window": 20},
    }  # fmt: skip
    for name, static in same.items():
        build = partial(LINEAR[name], **SHAPE, horizon=500, **static)
        made = [build(epsilon=x, preset=p) for x in (0.2, 1.0, INF) for p in ("exact", "reference", "theory")]
        assert len({id(one.program) for one in made}) == 1
        assert len({one.schedule for one in made}) == 1
    jointly = partial(a.jdp_linucb, **SHAPE, horizon=500, epsilon=1.0)
    assert jointly().program is jointly(tree="blt").program
    assert jointly(preset="theory").program is jointly(tree="binary").program is not jointly().program


@pytest.mark.parametrize("label", ["ldp_linucb", "jdp_linucb", "shuffle_linucb", "epsilon_greedy, jdp"])
def test_a_grid_over_epsilon_is_one_program(label):
    contexts, grid = jb.environments.contextual_linear(**SHAPE), {"epsilon": [0.2, 1.0, 10.0, INF]}
    laid_out = plan({"x": PRIVATE[label]}, contexts, horizon=50, seeds=8, grid=grid)
    assert len(laid_out.cells) == 4 and len(laid_out.groups) == 1


def test_defaults_of_a_preset():
    for name, exact in {"ldp_linucb": 0.2, "shuffle_linucb": 0.2, "jdp_linucb": 0.05}.items():
        for preset, scale in {None: exact, "exact": exact, "reference": 1.0, "theory": 1.0}.items():
            build = partial(LINEAR[name], **SHAPE, horizon=500, epsilon=1.0, preset=preset)
            assert build().params.selection.radius_scale == scale
            for given in (0.7, 0.0):
                assert build(radius_scale=given).params.selection.radius_scale == given
    windows = [a.shuffle_linucb(**SHAPE, horizon=t, epsilon=5.0).schedule[0].slots for t in (1, 7, 400, 401, 20_000)]
    assert windows == [1, 7, 20, 21, 142]
    given = [a.ldp_linucb(**SHAPE, horizon=500, epsilon=1.0, feature_norm=2.0, theta_bound=b) for b in (None, 0.5, 1.0)]
    chex.assert_trees_all_equal(given[0].params, given[1].params)
    assert given[2].params.selection.base > given[0].params.selection.base


def in_other_units(algorithm, factor):
    """The algorithm, shown features that are `factor` times as long."""
    program = algorithm.program

    def act(params, state, draws, t, context):
        return program.act(params, state, draws, t, factor * context)

    def encode(params, note, draws, t, context, *rest):
        return program.encode(params, note, draws, t, factor * context, *rest)

    return algorithm._replace(program=program._replace(act=act, encode=encode))


UNITS = {
    "ldp_linucb": a.ldp_linucb,
    "jdp_linucb, binary": PRIVATE["jdp_linucb, binary"],
    "shuffle_linucb": partial(a.shuffle_linucb, window=6),
    "shuffle_linucb, amplified": partial(a.shuffle_linucb, protocol="amplified", window=6),
    "linear_thompson, jdp": PRIVATE["linear_thompson, jdp"],
}


@pytest.mark.parametrize("label", UNITS)
def test_features_have_no_unit(label):
    """Twice the features and twice L: the same actions from the same draws, with noise and without."""
    world = jb.environments.contextual_linear(num_arms=6, dim=3)
    build = partial(UNITS[label], num_arms=6, dim=3, horizon=36)
    actions = {}
    for norm in (1.0, 2.0):
        made = [in_other_units(build(epsilon=epsilon, feature_norm=norm), norm) for epsilon in (4.0, INF)]
        made[1] = made[1]._replace(program=made[0].program)
        runs = played([Lane(seed, one, world) for one in made for seed in range(3)], compiled=False, checkpoints=1)
        actions[norm] = np.array([run.history.action for run in runs])
    np.testing.assert_array_equal(actions[1.0], actions[2.0])
    noisy, silent = actions[1.0][:3], actions[1.0][3:]
    assert not np.array_equal(noisy, silent) and len(np.unique(noisy)) > 2


class Numbers:
    """Arguments of `exact_tuning` and what a literal program has for them, to the digits that are written."""

    def __init__(self, kind, horizon, dim, epsilon, delta, *, tolerance=2e-6, given=None, **values):
        self.arguments, self.given = (kind, horizon, dim, epsilon, delta), given or {}
        self.values, self.tolerance = values, tolerance


NUMBERS = {
    "local": Numbers(
        "local", 20_000, 5, 1.0, 5e-5, diagonal=7.11894831, off_diagonal=7.11894831 / math.sqrt(2), vector=7.11894831,
        ridge=1.0, ridge_root=22.51209, base=3.44310, quartic=17.43498, spend=1.0,
    ),
    "local, L = 2": Numbers(
        "local", 20_000, 5, 1.0, 5e-5, given={"feature_norm": 2.0}, diagonal=28.47579,
        off_diagonal=28.47579 / math.sqrt(2), vector=14.23790, ridge=4.0, ridge_root=90.04836, base=3.44310,
        quartic=17.43498,
    ),
    "joint, binary": Numbers(
        "joint", 20_000, 5, 1.0, 5e-5, given={"tree": "binary"}, diagonal=27.57157,
        off_diagonal=27.57157 / math.sqrt(2), vector=27.57157, ridge=653.46239, ridge_root=0.0, base=62.41756,
        quartic=0.0, spend=1.0,
    ),
    "joint, square_root": Numbers(
        "joint", 20_000, 5, 1.0, 5e-5, given={"tree": "square_root"}, diagonal=14.62186, ridge=190.94126, base=35.16919,
    ),
    "joint, 1023": Numbers("joint", 1023, 3, 1.0, 1 / 1023, given={"tree": "binary"}, diagonal=17.31439),
    "joint, 1024": Numbers("joint", 1024, 3, 1.0, 1 / 1024, given={"tree": "binary"}, diagonal=18.16142),
    "vector": Numbers(
        "vector", 20_000, 5, 1.0, 5e-5, given={"window": 20}, trials=1516, ridge=1.0, ridge_root=8.43356, base=3.60571,
        quartic=9.04463, spend=0.99977, tolerance=5e-6,
    ),
    "vector, long": Numbers("vector", 20_000, 5, 0.2, 5e-5, trials=26562),
    "vector, default": Numbers("vector", 20_000, 5, 1.0, 5e-5, trials=1353),
    "vector, short": Numbers("vector", 20_000, 5, 10.0, 5e-5, trials=27, spend=9.854, tolerance=1e-5),
    "amplified, few": Numbers("amplified", 20_000, 5, 1.0, 5e-5, given={"window": 20}, diagonal=7.11894831, spend=1.0),
    "amplified, many": Numbers(
        "amplified", 10**6, 5, 0.05, 1e-6, given={"window": 10**5}, diagonal=29.21, tolerance=1e-4
    ),
}  # fmt: skip


def ledger(kind, numbers, horizon, dim, delta, feature_norm=1.0, tree="blt", window=None):
    """What noise of these scales spends on a user who is replaced, by the package's mechanisms."""
    moved = moment_sensitivity(feature_norm, (numbers["diagonal"] / numbers["vector"]) ** 2)
    entries = dim * (dim + 1) // 2 + dim
    window = window or math.isqrt(horizon - 1) + 1
    if kind == "vector":
        code = VectorCode(1.0, max(2 * math.sqrt(window), dim, 4), window * numbers["trials"])
        return vector_epsilon(code, math.sqrt(4.5), entries, delta)
    if kind == "amplified":
        return amplified_epsilon(moved, numbers["diagonal"], window, entries, delta)
    sums = 1.0
    if kind == "joint" and tree == "square_root":
        sums = math.sqrt(np.sum(np.cumprod([1, *(1 - 1 / (2 * np.arange(1, horizon)))]) ** 2))
    elif kind == "joint":
        sums = math.sqrt(math.floor(math.log2(horizon)) + 1)  # nodes of the tree that a user is in
    return gaussian_epsilon(moved * sums, numbers["diagonal"], delta)


def wrong(module, labels=tuple(NUMBERS)):
    """Which numbers of a module's `exact_tuning` are not the written ones, or spend what they should not."""
    found = []
    for label in labels:
        row = NUMBERS[label]
        kind, horizon, dim, epsilon, delta = row.arguments
        numbers = module.exact_tuning(*row.arguments, **row.given)
        found += [(label, n) for n, x in row.values.items() if numbers[n] != pytest.approx(x, rel=row.tolerance)]
        true = ledger(kind, numbers, horizon, dim, delta, **row.given)
        if true != pytest.approx(epsilon, rel=1e-6 if kind != "vector" else 0.02) or true > epsilon * (1 + 1e-6):
            found.append((label, "ledger"))
    return found


def test_numbers_are_those_of_another_program():
    assert wrong(exact_presets) == []
    for (epsilon, delta), ratio in {
        (1.0, 1e-3): 0.3884012483, (1.0, 5e-5): 0.2979822652, (0.2, 1e-3): 0.1010284462,
    }.items():  # fmt: skip
        assert 1 / gaussian_scale(1.0, epsilon, delta, rule="analytic") == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize(
    ("label", "told", "error"),
    errors([
        ("local", "ledger", "moment_sensitivity(norm, norm**2)", "math.sqrt(2) * norm**2"),  # added, not replaced
        ("joint, binary", "ledger", "moment_sensitivity(norm, norm**2)", "math.sqrt(2) * norm**2"),
        ("local", "off_diagonal", "scale / math.sqrt(2)", "scale"),
        ("joint, binary", "off_diagonal", "scale / math.sqrt(2)", "scale"),
        ("local", "ridge_root", "math.sqrt(2 * dim)", "math.sqrt(dim)"),
        ("joint, binary", "ridge", "math.sqrt(2 * dim)", "math.sqrt(dim)"),
        # the deviation of a sum taken as the column norm
        ("joint, binary", "base", "math.sqrt((horizon + 1).bit_length() - 1)", "math.sqrt(horizon.bit_length())"),
        ("joint, 1024", "ledger", "max(horizon.bit_length(), 1)", "max((horizon - 1).bit_length(), 1)"),
        ("local, L = 2", "vector", "scale / norm", "scale"),
        # amplification of 20 users that no theorem has
        ("amplified, few", "ledger", "amplified_epsilon(moved, scale, users, entries_of_pair(dim), delta)",
            "gaussian_epsilon(moved, scale * math.sqrt(users), delta)"),
    ], exact_presets),
)  # fmt: skip
def test_a_planted_error_gives_other_numbers(label, told, error):
    assert (label, told) in wrong(planted(*error), [label])


NO_RUN = {"joint, square_root"}  # a form that keeps every draw


@pytest.mark.parametrize("label", [label for label in NUMBERS if label not in NO_RUN])
def test_factories_have_these_numbers(label):
    row = NUMBERS[label]
    kind, horizon, dim, epsilon, delta = row.arguments
    factory = {
        "local": a.ldp_linucb, "joint": a.jdp_linucb, "vector": a.shuffle_linucb,
        "amplified": partial(a.shuffle_linucb, protocol="amplified"),
    }[kind]  # fmt: skip
    made = factory(num_arms=20, dim=dim, horizon=horizon, epsilon=epsilon, **row.given)  # delta by default
    numbers, p = exact_tuning(*row.arguments, **row.given), made.params.statistics
    names = (*(() if kind == "vector" else ("diagonal", "off_diagonal", "vector")), "ridge", "ridge_root")
    assert p.delta == delta and {name: getattr(p, name) for name in names} == {name: numbers[name] for name in names}
    assert (made.params.selection.base, made.params.selection.quartic) == (numbers["base"], numbers["quartic"])
    assert (made.params.selection.slope, made.params.selection.offset, made.params.selection.growth) == (0, 0, 0)
    assert spent(made) == pytest.approx(numbers["spend"], rel=1e-9)
    if kind == "vector":
        assert p.code.trials == made.schedule[0].slots * numbers["trials"]


def test_a_larger_theta_widens_by_the_formula():
    for factory, kind, given, base, quartic in (
        (a.ldp_linucb, "local", {}, 5.44310, 39.61464),
        (a.jdp_linucb, "joint", {"tree": "binary"}, 147.67671, 0.0),
        (a.shuffle_linucb, "vector", {"window": 20}, 5.60571, 22.44292),
        # 20 users are not amplified: the local numbers
        (partial(a.shuffle_linucb, protocol="amplified"), "amplified", {"window": 20}, 5.44310, 39.61464),
    ):
        found = exact_tuning(kind, 20_000, 5, 1.0, 5e-5, theta_bound=3.0, **given)
        made = factory(**SHAPE, horizon=20_000, epsilon=1.0, theta_bound=3.0, **given).params.selection
        for width in ((found["base"], found["quartic"]), (made.base, made.quartic)):
            assert width == pytest.approx((base, quartic), rel=5e-6)


def test_a_larger_theta_widens_with_every_form_of_the_sums():
    """sqrt(rho) B + s D tail / sqrt(rho) + own, with s D read off the ridge rho = 1 + 2 s D sqrt(2 d)."""
    for tree in ("blt", "honaker", "square_root", "banded"):
        made = a.jdp_linucb(**SHAPE, horizon=1000, epsilon=1.0, theta_bound=3.0, tree=tree).params
        rho = made.statistics.ridge
        noise = (rho - 1) / (2 * math.sqrt(10)) * math.sqrt(9 * (1 + 1 / 5) / 2 + 1)
        tail = math.sqrt(5) + math.sqrt(2 * math.log(1000))
        own = 0.5 * math.sqrt(2 * math.log(1000) + 5 * math.log(1 + 1000 / (5 * rho)))
        wanted = 3 * math.sqrt(rho) + noise * tail / math.sqrt(rho) + own
        assert made.selection.base == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 7, 8, 100, 1023, 1024])
def test_nodes_of_the_binary_tree(horizon):
    """A user is in as many nodes as T has bits; the noisiest sum has as many as the most one-bits of a t <= T."""
    found = exact_presets.running_sums("binary", horizon)
    assert found.column_norm**2 == pytest.approx(len(bin(horizon)) - 2)
    assert found.deviation**2 == pytest.approx(max(bin(t).count("1") for t in range(1, horizon + 1)))


def test_running_sums_by_square_roots():
    assert exact_presets.running_sums("square_root", 20_000) == pytest.approx((2.05394, 2.05394), abs=5e-6)
    direct = math.sqrt(sum((math.comb(2 * j, j) / 4**j) ** 2 for j in range(300)))
    assert exact_presets.running_sums("square_root", 300).column_norm == pytest.approx(direct, rel=1e-12)
    assert exact_presets.running_sums("blt", 20_000) == pytest.approx((2.0507, 2.0616), abs=5e-5)


def test_trials_are_the_fewest_that_spend_at_most_epsilon():
    for epsilon, window in ((0.2, 20), (1.0, 142), (10.0, 20), (50.0, 142)):
        trials, levels = exact_presets.exact_trials(5, epsilon, 5e-5, window), exact_presets.levels_of(window, 5)
        codes = [VectorCode(1.0, levels, float(window * b)) for b in (trials, trials - 1)]
        enough, fewer = (vector_epsilon(code, math.sqrt(4.5), 20, 5e-5) for code in codes)
        assert enough <= epsilon < fewer
    # max(2 sqrt W, d, 4)
    assert [exact_presets.levels_of(w, d) for w, d in ((100, 5), (20, 12), (1, 2))] == [20, 12, 4]


@pytest.mark.parametrize("kind", ["local", "joint", "vector", "amplified"])
def test_tunings_have_no_unit_but_that_of_features(kind):
    """Three times L: nine times x x', three times x y; widths, trials and what is spent stay."""
    given = {"joint": {"tree": "binary"}, "local": {}}.get(kind, {"window": 20})
    one, far = (exact_tuning(kind, 2000, 5, 1.0, 5e-4, feature_norm=norm, **given) for norm in (1.0, 3.0))
    power = dict.fromkeys(("diagonal", "off_diagonal", "ridge", "ridge_root"), 2) | {"vector": 1}
    for name, x in one.items():
        assert far[name] == pytest.approx(3 ** power.get(name, 0) * x, rel=1e-6), name


def test_short_batches_are_not_amplified():
    """No theorem covers tens to thousands of users: the noise is the local one. 10^5 users need a fifth of it."""
    local = exact_tuning("local", 10**6, 5, 0.05, 1e-6)["diagonal"]
    scales = [exact_tuning("amplified", 10**6, 5, 0.05, 1e-6, window=w)["diagonal"] for w in (1, 20, 1000, 10**5)]
    assert scales[:3] == pytest.approx([local] * 3, rel=1e-12) and local == pytest.approx(146.9, rel=1e-3)
    assert scales[3] == pytest.approx(29.21, rel=1e-4)


def test_no_batch_is_amplified_more_than_64_times(monkeypatch):
    """And one that never is enough keeps the local noise."""
    scale = exact_presets.exact_scale.__wrapped__
    given = ("amplified", 3, 0.5, 1e-6, 1.0, 10**6)
    local = scale("local", *given[1:])
    for spent, share in ((0.1, 1 / 64), (0.9, 1.0)):
        monkeypatch.setattr(exact_presets, "epsilon_of_user", lambda *given, spent=spent: spent)
        assert scale(*given) == pytest.approx(local * share, rel=1e-12)


def test_trials_are_counted_over_all_users():
    told = []
    with pytest.raises(ValueError, match="needs more than 2\\^53 binomial trials"):
        exact_presets.fewest(lambda trials: told.append(trials) or math.inf, 0.5, 1.0, 2**33)
    assert 2**53 / 4 < told[-1] * 2**33 <= 2**53


def test_the_page_of_formulas_has_these_values():
    page = (Path(__file__).parents[2] / "docs/formulas/ldp_contextual.md").read_text()
    page = page.partition("(ldp-contextual-exact-presets)=")[2].partition("(ldp-contextual-reference-presets)=")[0]
    rows = {
        "LDP": ("local", {}),
        'JDP, `tree="blt"`': ("joint", {}),
        'JDP, `tree="binary"`': ("joint", {"tree": "binary"}),
        "SDP-Vec, batches of 142": ("vector", {}),
    }
    for label, (kind, given) in rows.items():
        x = exact_tuning(kind, 20_000, 5, 1.0, 5e-5, **given)
        numbers = x["trials"] or x["diagonal"], x["ridge"], x["ridge_root"], x["base"] + x["quartic"]
        (line,) = re.findall(rf"^\| {re.escape(label)} \|([^$\n]*)\|$", page, flags=re.M)
        for text, number in zip(line.split("|"), numbers, strict=True):
            text = text.strip().replace(",", "")
            assert f"{number:.{len(text.partition('.')[2])}f}" == text


# Means of final regret and their standard errors, from a literal program in float64 that shares no code and no draws
# with this package: 20 arms in five dimensions; everything else is the default of "exact", delta too.
REGRETS = {
    "ldp_linucb": (a.ldp_linucb, 2000, {1.0: (731.6, 14.6), 10.0: (351.1, 8.3)}),
    "jdp_linucb, binary": (
        partial(a.jdp_linucb, tree="binary"), 2000, {0.2: (641.2, 7.3), 1.0: (298.1, 4.0), 10.0: (74.8, 1.1)}
    ),
    "jdp_linucb, square_root": (partial(a.jdp_linucb, tree="square_root"), 1000, {1.0: (158.8, 3.0)}),
    "shuffle_linucb, 20": (partial(a.shuffle_linucb, window=20), 2000, {1.0: (521.4, 12.3), 10.0: (125.0, 2.4)}),
    "shuffle_linucb, 100": (partial(a.shuffle_linucb, window=100), 2000, {1.0: (299.3, 6.5)}),
    "shuffle_linucb, amplified": (
        partial(a.shuffle_linucb, protocol="amplified", window=20), 2000, {10.0: (343.1, 10.9)}
    ),
    "linear_thompson, jdp": (partial(a.linear_thompson, statistics="jdp", tree="binary"), 2000, {1.0: (301.5, 4.5)}),
    "epsilon_greedy, jdp": (partial(a.epsilon_greedy, statistics="jdp", tree="binary"), 2000, {1.0: (281.9, 5.4)}),
}  # fmt: skip
SEEDS = dict.fromkeys(REGRETS, 200) | {"jdp_linucb, square_root": 100}  # which keeps every draw, and is slow


@pytest.mark.parametrize("label", others(REGRETS, 6))
def test_regret_is_that_of_the_transcription(label):
    factory, horizon, wanted = REGRETS[label]
    seeds = SEEDS[label]
    world = partial(jb.environments.contextual_linear, num_arms=20, dim=5)
    found = jb.sweep(
        {"x": factory}, world, horizon=horizon, seeds=seeds, grid={"epsilon": list(wanted)}, checkpoints=1,
        progress=False,
    ).regret.sel(algorithm="x").isel(t=-1)  # fmt: skip
    for epsilon, (mean, error) in wanted.items():
        regret = found.sel(epsilon=epsilon).values
        own = regret.std(ddof=1) / math.sqrt(seeds)
        assert abs(regret.mean() - mean) < 4 * math.hypot(own, error), (epsilon, regret.mean(), own)
        assert math.hypot(own, error) < 0.05 * mean  # or the rule would say nothing
