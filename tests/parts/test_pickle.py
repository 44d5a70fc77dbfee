"""Built parts to other processes: as their factories and arguments, or refused in words."""

import copy
import pickle

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.protocol import Algorithm, Environment

PARTS = {
    **{name: lambda name=name: catalogue.case(name)[0] for name in catalogue.ALGORITHMS},
    **{name: row.environment for name, row in catalogue.ENVIRONMENTS.items()},
    **{name: row.reward_adversary or row.message_adversary for name, row in catalogue.ADVERSARIES.items()},
}


def test_every_part_of_the_catalogue_comes_back_as_it_was():
    for name, build in PARTS.items():
        part = build()
        again = pickle.loads(pickle.dumps(part))
        functions = {Algorithm: "program", Environment: "world"}.get(type(part), "attack")
        assert getattr(again, functions) is getattr(part, functions), name
        jax.tree.map(np.testing.assert_array_equal, again.params, part.params)
        assert repr(again) == repr(part), name


def test_a_part_that_is_not_its_factorys_is_refused():
    made = jb.algorithms.ucb1(num_arms=2, horizon=10)
    assert copy.deepcopy(made) is made
    for field, value in (("params", made.params._replace(bonus_scale=2.0)), ("plays_on", "row"), ("rewards", None)):
        with pytest.raises(TypeError, match="ucb1 cannot be pickled, it was changed by _replace"):
            pickle.dumps(made._replace(**{field: value}))
    world = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    with pytest.raises(TypeError, match="bernoulli_arms cannot be pickled, it was changed"):
        pickle.dumps(world._replace(facts=world.facts | {"means": np.array([0.3, 0.8])}))
