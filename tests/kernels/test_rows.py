"""Many rows of a block are read and written at once, and come back as they were."""

import jax
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxbandits.kernels.forms import absent_gpu
from jaxbandits.kernels.lane_rows import FEW_ROWS, MOST_ROWS, at_once, filled_up, read_rows, write_rows

LANES, BLOCK = 64, 32


def turned(x, rows, interpret):
    """Rows [M, n, S] in a kernel: row k, with k added, becomes row n - 1 - k."""

    def kernel(ref, out):
        read = [x + k for k, x in enumerate(read_rows(ref, BLOCK)[:rows])]
        write_rows(out, read[::-1])

    block = pl.BlockSpec((1, x.shape[1], BLOCK), lambda m, s: (m, 0, s))
    return pl.pallas_call(
        kernel, grid=(x.shape[0], LANES // BLOCK), in_specs=[block], out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=interpret,
        compiler_params=None if interpret else triton.CompilerParams(num_warps=1, num_stages=1),
    )(x)  # fmt: skip


ROWS = [1, FEW_ROWS, FEW_ROWS + 1, 40, MOST_ROWS, MOST_ROWS + 1, 150]


@pytest.mark.parametrize("rows, dtype", [*((rows, np.int32) for rows in ROWS), (FEW_ROWS + 1, np.float32)])
def test_rows_come_back(rows, dtype):
    x = np.random.default_rng(0).integers(0, 999, size=(2, rows, LANES)).astype(dtype)
    filled = jax.eval_shape(lambda x: filled_up(x, BLOCK), x)
    assert filled.shape[1] % at_once(rows, BLOCK) == 0 and filled.shape[1] < rows + MOST_ROWS
    ours = jax.jit(lambda x: turned(filled_up(x, BLOCK), rows, True)[:, :rows])(x)
    np.testing.assert_array_equal(ours, (x + np.arange(rows, dtype=dtype)[:, None])[:, ::-1])


def test_many_rows_are_few_loads_and_stores():
    x = jax.ShapeDtypeStruct((2, 192, LANES), np.float32)
    with absent_gpu():
        lowered = jax.jit(lambda x: turned(x, 150, False)).trace(x).lower(lowering_platforms=("cuda",))
    assert "triton" in lowered.as_text()
    assert str(jax.make_jaxpr(lambda x: turned(x, 150, True))(x)).count("split[") == 3


def test_a_block_of_one_lane_reads_its_rows_one_by_one():
    assert at_once(150, 1) == 1 and jax.eval_shape(lambda x: filled_up(x, 1), np.zeros((2, 150, 1))).shape == (
        2,
        150,
        1,
    )
