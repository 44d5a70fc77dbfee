"""A factory is looked at once: what `Recipe` knows, binds and carries."""

import pickle
from functools import partial

import pytest

import jaxbandits as jb
from jaxbandits.recipe import Recipe, recipe_of
from jaxbandits.sweeps import arguments
from jaxbandits.sweeps.plan import plan

A, E = jb.algorithms, jb.environments
ARMS = E.bernoulli_arms(means=[0.2, 0.8])


def own(num_arms, horizon, twice: (lambda x: 2 * x) = None):
    """A factory by position, with an annotation that cannot be pickled."""
    return A.ucb1(num_arms=num_arms, horizon=horizon)


def test_dotted_keys_reach_the_base():
    recipe = recipe_of(partial(A.private_batched, base=partial(A.delayed, base=A.exp3), num_arms=2))
    assert recipe.takes("epsilon") and recipe.takes("base.horizon") and recipe.takes("base.base.mixing")
    assert not any(map(recipe.takes, ("num_arms", "base.base", "base.base.epsilon", "epsilon.mixing", "base.nothing")))
    assert all(map(recipe.takes, recipe.known_keys()))
    bound = recipe.bind({"base.base.mixing": 0.3, "base": partial(A.delayed, base=A.exp3_ix, delay=4), "epsilon": 2.0})
    assert (bound.name, bound.bound["epsilon"], recipe.bound.get("epsilon")) == ("private_batched", 2.0, None)
    inner = bound.factory.keywords["base"]
    assert (inner.func, inner.keywords["delay"]) == (A.delayed, 4)
    assert (inner.keywords["base"].func, inner.keywords["base"].keywords) == (A.exp3_ix, {"mixing": 0.3})
    assert not bound.takes("base.base.mixing")


def test_a_base_that_is_no_factory_is_refused_when_it_is_asked():
    recipe = recipe_of(partial(A.delayed, base=3))
    assert recipe.takes("horizon")
    for ask in (recipe.known_keys, lambda: recipe.takes("base.mixing"), lambda: recipe_of(max)):
        with pytest.raises(ValueError, match="is not a factory: give a function of keyword arguments"):
            ask()


def test_a_recipe_is_packed_as_its_factory():
    recipe = recipe_of(partial(own, 2, horizon=9))
    again = pickle.loads(pickle.dumps(recipe))
    assert (again.bound, again.name, again.factory.args) == ({"horizon": 9}, "own", (2,))
    assert again.factory().config["horizon"] == 9
    assert recipe_of(own).factory is own


def test_a_sweep_looks_once_at_every_factory(monkeypatch):
    looked = []
    monkeypatch.setattr(arguments, "recipe_of", lambda factory: looked.append(factory) or recipe_of(factory))
    grid = {"epsilon": [0.5, 1.0], "bonus_scale": [1.0, 2.0]}
    made = plan(["ucb1", A.ldp_ucb], ARMS, horizon=[10, 20], seeds=2, grid=grid, reward_adversary="huber")
    assert len(looked) == 4
    assert all(isinstance(recipe, Recipe) for recipe in made.given["algorithms"].values())
    assert [cell.algorithm.config for cell in plan(**made.given).cells] == [c.algorithm.config for c in made.cells]
    assert len(looked) == 5  # the called environment alone
