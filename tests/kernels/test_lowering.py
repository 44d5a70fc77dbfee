"""Every program of a sweep lowers for a GPU and for a TPU. No device and no plugin is needed for that."""

import re
from functools import partial

import pytest
from dealt import dealt
from laid_out import Played, plan_of

from jaxbandits.catalogue import EVERYTHING
from jaxbandits.kernels.launch import absent_gpu
from jaxbandits.spans import segment

LANES = 128
# One of each family, and one of WITH_ESTIMATORS; each kernel over lanes is lowered in test_estimators.py.
QUICK = {"ucb1", "exp3", "linucb", "adap_ucb", "online_ucb"}
# Whose filter, median or learner is a kernel over lanes on a GPU.
WITH_ESTIMATORS = {"robust_elimination", "byzantine_ucb", "online_ucb", "poison"}
NAMES = dealt(EVERYTHING, 16, always=QUICK)


# In place of NVRTC, which need not be installed.
without_compiler = partial(absent_gpu, ptx=lambda text, capability: text)


def programs(name):
    """What a sweep of a case compiles, traced: (name, traced, whether it is a kernel)."""
    played = Played(plan_of(EVERYTHING[name]), seeds=LANES)
    run, case, seeds, times = played.run, played.case, played.seeds, played.times
    begin = run.functions["begin"].trace(case, seeds)
    yield "begin", begin, False
    lane = begin.out_info
    for kind, choice in played.choices.items():
        span = next(span for span in played.group.schedule if (span.slots, span.full, span.whole) == kind)
        given = case, seeds, lane, times, segment(span, 0, 0, 1, played.group.times)
        yield "advance", run.functions["advance"].trace(kind, *given), False
        if not choice.reason:
            with without_compiler():
                traced = run.functions["kernel"].trace(kind, "kernel", *given)
            yield "kernel", traced, True
    if any(span.close for span in played.group.schedule):
        yield "close", run.functions["close"].trace(case, seeds, lane), False
    yield "finish", run.functions["finish"].trace(case, lane), False


@pytest.mark.compiles(40)  # none of the programs: numbers of the host that tracing converts one by one
@pytest.mark.parametrize("name", NAMES)
def test_every_program_lowers(name):
    kinds, estimated = set(), 0
    for function, traced, is_kernel in programs(name):
        with without_compiler():
            text = traced.lower(lowering_platforms=("cuda",) if is_kernel else ("cuda", "tpu")).as_text()
        kinds.add(function)
        # the text of a kernel has functions of both types
        of_xla = re.sub(r'kernel_data = ".*?[^\\]"', "", text)
        assert "f64" not in of_xla, function  # nothing of a float32 sweep is computed in float64
        called = text.count("stablehlo.custom_call")
        if is_kernel:  # the whole stretch of plays is one kernel, and no loop is left outside of it
            assert text.count("@__gpu$xla.gpu.ptx(") == called == 1
            assert "stablehlo.while" not in text
        else:  # no library is called, which a compiler could not put together with the rest
            kernels = text.count("@__gpu$xla.gpu.ptx(")
            assert called == kernels + text.count("stablehlo.custom_call @Sharding"), function
            estimated += kernels
    assert kinds >= {"begin", "advance", "finish"}
    assert (estimated > 0) == (name in WITH_ESTIMATORS)
