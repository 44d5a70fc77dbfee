"""The text of a whole kernel: what every one begins with, the program of one lane, and who calls that for which lane.

What a kernel begins with are the words that CUDA and C call otherwise, and functions of numbers. Functions of floats
are written once and made for each type: another type, or vectors of lanes, would be another line. Division and square
roots are exact, products and sums are not fused in C and may be on a GPU (docs/decisions.md#kernels-in-c).
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from jaxbandits.kernels.text import c_type

BLOCK = 128  # threads of a block at most
# Functions of floats, as the C library has them but for some.
FUNCTIONS = """exp exp2 expm1 log log1p sin cos tan tanh atan2 sqrt rsqrt cbrt erf erfc lgamma logistic floor ceil round
rint abs pow rem nextafter""".split()
OTHERWISE = {"rsqrt": "1 / sqrt##f(x)", "logistic": "1 / (1 + exp##f(-x))", "abs": "fabs##f(x)", "rem": "fmod##f(x, y)"}
OF_TWO = {"atan2", "pow", "rem", "nextafter"}


def _function(name: str) -> str:
    given, passed = ("T x, T y", "x, y") if name in OF_TWO else ("T x", "x")
    return f"DEVICE T {name}_##s({given}) {{ return {OTHERWISE.get(name, f'{name}##f({passed})')}; }} \\\n"


PRELUDE = (
    r"""
#ifdef __CUDACC__
#define DEVICE static __device__ __forceinline__
#define TABLE static const
#define ONCE _Pragma("unroll 1")
#define FOUR _Pragma("unroll 4")
#define BITS_f32(x) __float_as_uint(x)
#define BITS_f64(x) ((unsigned long long)__double_as_longlong(x))
#define OF_BITS_f32(x) __uint_as_float(x)
#define OF_BITS_f64(x) __longlong_as_double((long long)(x))
#define COUNT_ONES(x) __popcll(x)
#define LEADING_ZEROS(x) __clzll(x)
#define NAN_f32 OF_BITS_f32(0x7fc00000u)
#define INF_f32 OF_BITS_f32(0x7f800000u)
#define NAN_f64 OF_BITS_f64(0x7ff8000000000000ull)
#define INF_f64 OF_BITS_f64(0x7ff0000000000000ull)
#else
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#define DEVICE static inline
#define TABLE static const
#define ONCE
#define FOUR
DEVICE unsigned BITS_f32(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
DEVICE unsigned long long BITS_f64(double x) { unsigned long long y; memcpy(&y, &x, 8); return y; }
DEVICE float OF_BITS_f32(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
DEVICE double OF_BITS_f64(unsigned long long x) { double y; memcpy(&y, &x, 8); return y; }
#define COUNT_ONES(x) __builtin_popcountll(x)
#define LEADING_ZEROS(x) ((x) ? __builtin_clzll(x) : 64)
#define NAN_f32 __builtin_nanf("")
#define INF_f32 __builtin_inff()
#define NAN_f64 __builtin_nan("")
#define INF_f64 __builtin_inf()
#endif

/* Of a float type: its name, the ending of names here, that of the C library, and the unsigned type of its bits. */
#define FUNCTIONS(T, s, f, U) \
"""
    + "".join(map(_function, FUNCTIONS))
    + r"""DEVICE bool is_finite_##s(T x) { return fabs##f(x) < INF_##s; } \
/* NaN where either is */ \
DEVICE T max_##s(T a, T b) { return a > b || a != a ? a : b; } \
DEVICE T min_##s(T a, T b) { return a < b || a != a ? a : b; } \
/* the order of sorting: equals stay, NaN comes last */ \
DEVICE bool before_##s(T a, T b) { return a < b || (b != b && a == a); } \
DEVICE int to_i32_##s(T x) { return x != x ? 0 : x >= (T)0x1p31 ? 2147483647 : x < (T)-0x1p31 ? -2147483647 - 1 \
  : (int)x; } \
DEVICE unsigned to_u32_##s(T x) { return !(x > 0) ? 0u : x >= (T)0x1p32 ? 4294967295u : (unsigned)x; } \
DEVICE long long to_i64_##s(T x) { return x != x ? 0 : x >= (T)0x1p63 ? 9223372036854775807ll \
  : x < (T)-0x1p63 ? -9223372036854775807ll - 1 : (long long)x; } \
DEVICE unsigned long long to_u64_##s(T x) { return !(x > 0) ? 0u : x >= (T)0x1p64 ? 18446744073709551615ull \
  : (unsigned long long)x; }

FUNCTIONS(float, f32, f, unsigned)
FUNCTIONS(double, f64, , unsigned long long)

/* The inverse of erf by M. Giles, "Approximating the erfinv function" (2010), with the polynomials that XLA takes. */
DEVICE float erf_inv_f32(float x) {
  const float w0 = -log1p_f32(-x * x);
  const bool small = w0 < 5;
  const float w = small ? w0 - 2.5f : sqrt_f32(w0) - 3;
  float p = small ? 2.81022636e-08f : -0.000200214257f;
  p = (small ? 3.43273939e-07f : 0.000100950558f) + p * w;
  p = (small ? -3.5233877e-06f : 0.00134934322f) + p * w;
  p = (small ? -4.39150654e-06f : -0.00367342844f) + p * w;
  p = (small ? 0.00021858087f : 0.00573950773f) + p * w;
  p = (small ? -0.00125372503f : -0.0076224613f) + p * w;
  p = (small ? -0.00417768164f : 0.00943887047f) + p * w;
  p = (small ? 0.246640727f : 1.00167406f) + p * w;
  p = (small ? 1.50140941f : 2.83297682f) + p * w;
  return abs_f32(x) == 1 ? x * INF_f32 : p * x;
}
DEVICE double erf_inv_f64(double x) {
  TABLE double near[] = {-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
    1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15,
    -4.0545662729752068639e-14, -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11,
    -5.4154120542946279317e-11, 1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
    4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,
    -0.00074070253416626697512, -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356};
  TABLE double middle[] = {2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
    1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06,
    1.2475304481671778723e-05, -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,
    -0.0003550375203628474796, 0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
    -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635};
  TABLE double far[] = {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
    -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08,
    -6.7711997758452339498e-08, 2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06,
    -1.9681778105531670567e-05, 7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
    1.0103004648645343977, 4.8499064014085844221};
  const double w0 = -log1p_f64(-x * x);
  const double* c = w0 < 6.25 ? near : w0 < 16 ? middle : far;
  const int n = w0 < 6.25 ? 23 : w0 < 16 ? 19 : 17;
  const double w = w0 < 6.25 ? w0 - 3.125 : w0 < 16 ? sqrt_f64(w0) - 3.25 : sqrt_f64(w0) - 5;
  double p = c[0];
  for (int i = 1; i < n; ++i) p = c[i] + p * w;
  return abs_f64(x) == 1 ? x * INF_f64 : p * x;
}
"""
)
KERNEL_TEMPLATE = """{prelude}
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


# How a kernel is given arrays: an input, one in whose memory a result may lie, a result.
INPUT, CARRIED, RESULT = "const {}* __restrict__ {}", "const {}* {}", "{}* {}"


def pointers(how: str, name: str, arrays: Iterable[Any]) -> list[str]:
    """Arguments of a kernel that point at arrays. Truth values are bytes there."""
    types = ["unsigned char" if x.dtype == bool else c_type(x.dtype) for x in arrays]
    return [how.format(kind, f"{name}{k}") for k, kind in enumerate(types)]


class Source(NamedTuple):
    """The text of a kernel. Its first argument holds the number of lanes, then that of points, int32."""

    name: str
    text: str
    arguments: tuple[str, ...]  # inputs, then results, as `pointers` has them


def kernel(stem: str, arguments: Sequence[str], body: str) -> Source:
    """The kernel around the program of one lane. Its name says what is in it."""
    parameters, names = ", ".join(arguments), ", ".join(x.split()[-1] for x in arguments)
    text = partial(KERNEL_TEMPLATE.format, prelude=PRELUDE, parameters=parameters, names=names, body=body, block=BLOCK)
    name = f"{stem}_{hashlib.sha256(text(name='').encode()).hexdigest()[:16]}"
    return Source(name, text(name=name), tuple(arguments))
