"""
Your own data, with privacy
===========================

569 biopsies of scikit-learn, shown ten times over: who names them right when nobody's answer may be remembered as it
is? Everything is at its default but ``dim``: five principal components and a bias, since each feature adds noise.
"""

from functools import partial

from sklearn.datasets import load_breast_cancer

import jaxbandits as jb

data = load_breast_cancer(as_frame=True)
biopsies = partial(jb.environments.classification, features=data.data, labels=data.target, dim=6)
learners = {
    "no privacy": jb.algorithms.linucb,
    "a server is trusted": jb.algorithms.jdp_linucb,
    "nobody is trusted": jb.algorithms.ldp_linucb,
}
settings = {"horizon": 5690, "seeds": 30, "checkpoints": 40, "progress": False}
ds = jb.sweep(learners, biopsies, grid={"epsilon": [1, 10]}, **settings)
figure, data = jb.plot.reward(ds, select={"epsilon": 1}, caption="epsilon = 1, of one play")

# %%
# The share of right answers over all plays. Means, spreads and components of the features are outside of the guarantee.

((ds.best_reward - ds.regret) / ds.t).isel(t=-1).mean("seed").to_pandas().round(3)
