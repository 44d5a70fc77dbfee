"""The text of a whole kernel: what it begins with, the program of one lane, and who calls that for which lane."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.kernels.prelude import PRELUDE
from jaxbandits.kernels.text import Statement, c_type, printed

BLOCK = 128  # threads of a block at most


class Argument(NamedTuple):
    """A pointer that a kernel is given."""

    name: str
    dtype: Any
    result: bool = False
    alone: bool = True  # an input in memory that no result lies in

    def __str__(self) -> str:
        kind = "unsigned char" if np.dtype(self.dtype).kind == "b" else c_type(self.dtype)
        return (
            f"{'' if self.result else 'const '}{kind}*{' __restrict__' * (self.alone and not self.result)} {self.name}"
        )


class Source(NamedTuple):
    """A kernel. Its first argument holds the number of lanes, then that of points, int32."""

    name: str
    text: str
    arguments: tuple[Argument, ...]  # inputs, then results


TEXT = """{prelude}
DEVICE void program(const int lane, const int point, {parameters}) {{
{body}
}}

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__({block}) {name}({parameters}) {{
  const int blocks = (limits[0] - 1) / (int)blockDim.x + 1;  /* of a point, whose lanes share their parameters */
  const int lane = blockIdx.x % blocks * blockDim.x + threadIdx.x;
  if (lane < limits[0]) program(lane, blockIdx.x / blocks, {names});
}}
#endif
"""


def kernel(stem: str, arguments: Sequence[Argument], body: Iterable[Statement] | str) -> Source:
    """The kernel around the program of one lane. Its name says what is in it."""
    lines = body if isinstance(body, str) else "\n".join(printed(body))
    given = {
        "prelude": PRELUDE, "parameters": ", ".join(map(str, arguments)), "names": ", ".join(x.name for x in arguments),
        "body": lines, "block": BLOCK,
    }  # fmt: skip
    mark = hashlib.sha256(TEXT.format(name="", **given).encode()).hexdigest()
    name = f"{stem}_{mark[:16]}"
    return Source(name, TEXT.format(name=name, **given), tuple(arguments))
