"""A reward for every arm: when to name a biopsy, and when to ask for a second look.

    pip install scikit-learn
    python examples/reward_table.py [DIRECTORY]    under a minute; writes reward_table.png there (default: here)

The data are those of label_noise.py, as a table with what each of three answers is worth. The right name is worth 1, a
tumour that is missed 0, a false alarm 0.6, and a second look, which costs something and is always right, 0.8.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import jaxbandits as jb

ANSWERS = ["benign", "malignant", "second look"]


def worth():
    """The biopsies, with a column for each answer."""
    data = load_breast_cancer(as_frame=True)
    sick = data.target == 0
    benign, malignant = np.where(sick, 0.0, 1.0), np.where(sick, 1.0, 0.6)
    return data.data.assign(benign=benign, malignant=malignant, **{"second look": 0.8})


def study(horizon: int = 1707, seeds: int = 40):
    """The sweep: two learners that see the biopsy, and one that does not."""
    features, rewards = jb.read_table(worth(), rewards=ANSWERS)
    world = jb.environments.contextual_table(features=features, rewards=rewards)
    algorithms = {"LinUCB": "linucb", "Thompson sampling": "linear_thompson", "UCB1, sees no biopsy": "ucb1"}
    return jb.sweep(algorithms, world, horizon=horizon, seeds=seeds)


def draw(ds, directory: Path) -> None:
    """What a play is worth, over time, and regret against the best answer of every row."""
    caption = "569 biopsies, three passes, three answers. Worth of a play, over plays 1 to t."
    jb.plot.reward(ds, caption=caption, path=directory / "reward_table.png")
    print(((ds.best_reward - ds.regret) / ds.t).isel(t=-1).mean("seed").to_pandas().round(3).to_string())
    print(jb.table(ds))


if __name__ == "__main__":
    draw(study(), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
