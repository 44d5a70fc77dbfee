"""
Audit a privacy claim
=====================

:func:`jaxbandits.audit` plays an algorithm on two neighbouring inputs and tries to tell them apart. The claim says how
well anyone may do that: the dashed curve. A claim is refuted where even the upper bound of a
test's errors, the thin line, comes below the curve.
"""

import jaxbandits as jb

honest = jb.algorithms.ldp_ucb(num_arms=2, horizon=100, epsilon=1.0)
audit = jb.audit(honest, runs=20_000)
figure, data = jb.plot.trade_off(audit, caption="The noise that the claim needs.")
print(audit)

# %%
# Now the same algorithm with two thirds of its noise, which goes on claiming epsilon = 1. The audit finds out.

claim = honest.guarantee._replace(
    events=lambda params: honest.guarantee.events(honest.params),
    spend=lambda params: honest.guarantee.spend(honest.params),
)
cheat = honest._replace(params=honest.params._replace(mechanism_scale=2 / 3), guarantee=claim)
found = jb.audit(cheat, runs=20_000)
second, table = jb.plot.trade_off(found, caption="Two thirds of that noise: the test comes below the curve.")
print(found)
