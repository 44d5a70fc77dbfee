from .adversarial import (
    bandit_to_experts as bandit_to_experts,
)
from .adversarial import (
    batched_exp4 as batched_exp4,
)
from .adversarial import (
    delayed as delayed,
)
from .adversarial import (
    exp3 as exp3,
)
from .adversarial import (
    exp3_ix as exp3_ix,
)
from .adversarial import (
    exp4 as exp4,
)
from .adversarial import (
    ftpl as ftpl,
)
from .adversarial import (
    htinf as htinf,
)
from .adversarial import (
    hybrid_tsallis_inf as hybrid_tsallis_inf,
)
from .adversarial import (
    ldp_exp3 as ldp_exp3,
)
from .adversarial import (
    local_exp4 as local_exp4,
)
from .adversarial import (
    private_batched as private_batched,
)
from .adversarial import (
    tsallis_inf as tsallis_inf,
)
from .contextual import (
    adac_oful as adac_oful,
)
from .contextual import (
    bandit_combiner as bandit_combiner,
)
from .contextual import (
    cw_oful as cw_oful,
)
from .contextual import (
    doubling as doubling,
)
from .contextual import (
    epsilon_greedy as epsilon_greedy,
)
from .contextual import (
    hvt_linucb as hvt_linucb,
)
from .contextual import (
    jdp_linucb as jdp_linucb,
)
from .contextual import (
    ldp_linucb as ldp_linucb,
)
from .contextual import (
    linear_thompson as linear_thompson,
)
from .contextual import (
    linucb as linucb,
)
from .contextual import (
    online_ucb as online_ucb,
)
from .contextual import (
    robust_oful as robust_oful,
)
from .contextual import (
    shuffle_linucb as shuffle_linucb,
)
from .federated import (
    byzantine_ucb as byzantine_ucb,
)
from .federated import (
    isolated_linucb as isolated_linucb,
)
from .federated import (
    oracle_linucb as oracle_linucb,
)
from .linear import (
    adac_gope as adac_gope,
)
from .linear import (
    bogunovic_elimination as bogunovic_elimination,
)
from .linear import (
    median_elimination as median_elimination,
)
from .linear import (
    phased_elimination as phased_elimination,
)
from .linear import (
    private_elimination as private_elimination,
)
from .linear import (
    robust_elimination as robust_elimination,
)
from .linear import (
    trimmed_elimination as trimmed_elimination,
)
from .robust import (
    cr_ucb as cr_ucb,
)
from .robust import (
    crimed as crimed,
)
from .robust import (
    dprse as dprse,
)
from .robust import (
    huber_ucb as huber_ucb,
)
from .robust import (
    local_robust_elimination as local_robust_elimination,
)
from .robust import (
    prm_elimination as prm_elimination,
)
from .robust import (
    prm_thompson as prm_thompson,
)
from .robust import (
    prm_ucb as prm_ucb,
)
from .robust import (
    robust_ucb as robust_ucb,
)
from .stochastic import (
    adac_ucb as adac_ucb,
)
from .stochastic import (
    adap_kl_ucb as adap_kl_ucb,
)
from .stochastic import (
    adap_ucb as adap_ucb,
)
from .stochastic import (
    barbar as barbar,
)
from .stochastic import (
    dist_elimination as dist_elimination,
)
from .stochastic import (
    dp_imed as dp_imed,
)
from .stochastic import (
    dp_klucb as dp_klucb,
)
from .stochastic import (
    dp_se as dp_se,
)
from .stochastic import (
    dp_ts_ucb as dp_ts_ucb,
)
from .stochastic import (
    gdp_thompson as gdp_thompson,
)
from .stochastic import (
    gradient_bandit as gradient_bandit,
)
from .stochastic import (
    kl_ucb as kl_ucb,
)
from .stochastic import (
    lazy_dp_ts as lazy_dp_ts,
)
from .stochastic import (
    ldp_ucb as ldp_ucb,
)
from .stochastic import (
    moss as moss,
)
from .stochastic import (
    multilayer_elimination as multilayer_elimination,
)
from .stochastic import (
    stopping_elimination as stopping_elimination,
)
from .stochastic import (
    successive_elimination as successive_elimination,
)
from .stochastic import (
    thompson as thompson,
)
from .stochastic import (
    ucb1 as ucb1,
)
from .stochastic import (
    uniform as uniform,
)

__all__: list[str]
