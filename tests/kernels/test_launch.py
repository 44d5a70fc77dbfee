"""Which route calls a kernel, what is said where none does, and what NVRTC is asked for. No GPU is needed."""

import itertools
import re
import zlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import needs_cc

from jaxbandits.kernels import compilers, launch, over_lanes
from jaxbandits.kernels.launch import Gpu, absent_gpu
from jaxbandits.kernels.source import PRELUDE


def gpu(platform_version="cuda 12090", platform="gpu", capability="7.5"):
    """A device that is not here."""
    client = SimpleNamespace(platform_version=platform_version)
    return SimpleNamespace(platform=platform, client=client, compute_capability=capability, device_kind="Tesla T4")


@pytest.fixture
def devices(monkeypatch):
    """What JAX finds on this machine; nothing was found out yet."""
    found = [gpu()]
    monkeypatch.setattr(launch, "_here", [])
    monkeypatch.setattr(jax, "local_devices", lambda: found)
    return found


@pytest.mark.filterwarnings("error")
def test_the_first_route_that_runs_a_kernel_of_one_line_is_taken_once(devices, monkeypatch):
    tried = []

    def runs(gpu, device):
        tried.append(gpu.route)
        if len(tried) == 1:
            raise NotImplementedError("No FFI handler registered for __gpu$xla.gpu.ptx")
        return True

    monkeypatch.setattr(launch, "_runs", runs)
    assert launch.here() == launch.here() == Gpu(75, list(launch.ROUTES)[1])
    assert launch.form_on(devices[0]) == "kernel"
    assert tried == list(launch.ROUTES)


def test_where_no_route_runs_plays_are_scanned_which_is_said_once(devices, monkeypatch):
    def fails(gpu, device):
        raise compilers.Missing("NVRTC is not installed")

    monkeypatch.setattr(launch, "_runs", fails)
    with pytest.warns(RuntimeWarning, match="no kernel runs on Tesla T4.*NVRTC is not installed") as said:
        assert launch.here() is launch.here() is None
        assert launch.form_on(devices[0]) == "scan"
    assert len(said) == 1 and "\n" not in str(said[0].message)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("device", [gpu("rocm 60300"), gpu("TPU v5e", "tpu"), jax.devices("cpu")[0]])
def test_nothing_is_tried_where_there_is_no_such_gpu(devices, device, monkeypatch):
    devices[:] = [device]
    monkeypatch.setattr(launch, "_runs", lambda *_: pytest.fail("tried"))
    assert launch.form_on(device) == "scan" and launch.here() is None
    with launch.force_form("cc"):
        assert launch.form_on(device) == "cc"
    assert launch.form_on(device) == "scan"


def test_only_an_accelerator_that_takes_ptx_is_asked(devices, monkeypatch):
    monkeypatch.setattr(launch, "_runs", lambda *_: True)
    assert launch.wants_kernel("cuda", "kernel") and launch.wants_kernel("cpu", "cc")
    assert not any(launch.wants_kernel(platform, "kernel") for platform in ("rocm", "tpu"))
    assert not launch.wants_kernel("cuda", "xla")


def test_the_call_says_what_is_run_and_where():
    shape = jax.ShapeDtypeStruct((300, 2), np.int32)

    def program(limits, x):  # of 300 lanes of two points
        route = Gpu(80, "XLA's target for PTX", lambda text, capability: f"for {capability}")
        return launch.call_kernel(launch.trial_kernel(), (300, 2), [limits, x], [shape], {1: 0}, route)[0]

    traced = jax.jit(program).trace(jax.ShapeDtypeStruct((2,), np.int32), shape)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "@__gpu$xla.gpu.ptx(" in text and 'kernel_data = "for 80"' in text and 'kernel_type = "ptx"' in text
    # three blocks of 128 threads for each of two points
    assert "grid_x = 6 : i32" in text and "block_x = 128 : i32" in text and "grid_y = 1 : i32" in text
    assert "shared_mem_bytes = 0 : i32" in text
    assert "output_operand_alias" in text and launch.trial_kernel().name in text


def test_blocks_are_of_whole_warps():
    sizes = {(1, 1): (1, 32), (32, 3): (3, 32), (33, 2): (2, 64), (128, 1): (1, 128), (129, 3): (6, 128)}
    assert {lanes: launch._grid(lanes) for lanes in sizes} == sizes


def test_every_lane_of_every_point_has_one_thread():
    text = launch.trial_kernel().text
    patterns = r"const int blocks = (.*?);", r"const int lane = (.*?);", r"if \((.*?)\) program\(lane, (.*?), limits"
    [blocks], [lane], [(inside, point)] = (re.findall(pattern, text) for pattern in patterns)

    def value(expression, names):
        return eval(expression.replace("(int)", "").replace("/", "//"), dict(names))

    for lanes, points in ((1, 1), (33, 2), (128, 3), (300, 2)):
        number, threads = launch._grid((lanes, points))
        played = []
        for at in np.ndindex(number, threads):
            sizes = zip(("blockIdx", "threadIdx", "blockDim"), (*at, threads), strict=True)
            names = {"limits": [lanes]} | {name: SimpleNamespace(x=size) for name, size in sizes}
            names["blocks"] = value(blocks, names)
            names["lane"] = value(lane, names)
            if value(inside, names):
                played.append((names["lane"], value(point, names)))
        assert sorted(played) == sorted(itertools.product(range(lanes), range(points)))


def test_the_call_by_jaxlib(monkeypatch):
    told = []

    class Triton:
        def TritonKernel(self, *args):
            told.append(args)
            return "kernel"

        def create_array_parameter(self, *args):
            return args

        def TritonKernelCall(self, *args):
            told.append(args)
            return SimpleNamespace(to_proto=lambda name, data: name.encode() + data)

    monkeypatch.setattr(launch, "triton_calls", Triton)
    gpu = Gpu(86, "jaxlib's handler for PTX", lambda text, capability: f"for {capability}")
    source = launch.trial_kernel()
    target, given = launch.ROUTES[gpu.route](gpu, source, (300, 2), 2, 3)
    assert target == "triton_kernel_call_ffi" and given["name"] == source.name
    assert zlib.decompress(given["opaque"]) == source.name.encode()
    assert told == [(source.name, 4, 1, 0, "for 86", "", 86), ("kernel", 6, 1, 1, [(0, 16)] * 5)]
    _, given = launch.ROUTES["XLA's target for PTX"](gpu, source, (300, 2), 2, 3)
    assert given["output_indices"] == (2, 3, 4)  # results come after the inputs


def test_kernels_that_differ_in_their_arguments_alone_have_names_of_their_own():
    made = [launch.kernel("x", ["const int* limits", f"{kind}* y"], "  y[lane] = 0;") for kind in ("int", "float")]
    assert made[0].name != made[1].name


def test_the_words_of_cuda_mean_what_those_of_c_mean():
    """No compiler of these tests reads them."""
    cuda = PRELUDE.partition("#ifdef __CUDACC__")[2].partition("#else")[0]
    words = dict(re.findall(r"#define (\w+)(?:\(x\))? (.*)", cuda))
    for kind, bits, number in (("f32", np.uint32, np.float32), ("f64", np.uint64, np.float64)):
        for name, value in (("INF", np.inf), ("NAN", np.nan)):
            [digits] = re.findall(rf"^OF_BITS_{kind}\((0x[0-9a-f]+)u(?:ll)?\)$", words[f"{name}_{kind}"])
            np.testing.assert_array_equal(bits(int(digits, 16)).view(number), value)
    moves = {
        "BITS_f32": "__float_as_uint(",
        "OF_BITS_f32": "__uint_as_float(",
        "BITS_f64": "__double_as_longlong(",
        "OF_BITS_f64": "__longlong_as_double(",
        "COUNT_ONES": "__popcll(",
        "LEADING_ZEROS": "__clzll(",
    }
    assert all(moved in words[name] for name, moved in moves.items())  # bits, not values, by CUDA's names


def test_the_oldest_of_some_gpus_and_what_failed(devices, monkeypatch):
    """Devices that take no PTX are not counted."""
    devices[:] = [gpu("rocm 6", capability="5.0"), gpu(capability="8.9"), gpu(platform="cuda", capability="7.5")]
    monkeypatch.setattr(
        launch, "_runs", lambda found, device: device is devices[1] and found.route.startswith("jaxlib")
    )
    assert launch.here() == Gpu(75, "jaxlib's handler for PTX")

    def fails(found, device):
        if found.route.startswith("jaxlib"):
            raise ValueError
        return False

    monkeypatch.setattr(launch, "_here", [])
    monkeypatch.setattr(launch, "_runs", fails)
    with pytest.warns(RuntimeWarning) as said:
        assert launch.here() is None
    assert str(said[0].message) == (
        "no kernel runs on Tesla T4, so plays are scanned, which is slower: XLA's target for PTX gives wrong numbers; "
        "jaxlib's handler for PTX: ValueError"
    )
    with pytest.raises(RuntimeError, match="no kernel runs on this machine"):
        launch.call_kernel(launch.trial_kernel(), (1, 1), [], [], {}, "kernel")
    assert not launch.wants_kernel("cuda", "kernel")


@needs_cc
def test_a_kernel_that_gives_wrong_numbers_does_not_run(monkeypatch):
    source = launch.trial_kernel()
    wrong = launch.kernel("one_line", source.arguments, "  y[lane] = x[lane] + (lane < 300);")
    monkeypatch.setattr(launch, "trial_kernel", lambda: wrong)
    assert not launch._runs("cc", jax.devices("cpu")[0])
    with pytest.raises(RuntimeError, match=r"^cc does not compile a kernel: .*wrong_.*.c"):
        compilers.by_cc(launch.kernel("wrong", source.arguments, "  nothing"))


def test_what_is_no_kernel_over_lanes():
    """Lanes are counted in 31 bits, in one axis or in two; arrays without elements and unknown operations are left."""

    def form(function, *shape, depth=1, kind="cc"):
        about = function, depth, jax.tree.structure((0,))
        return over_lanes.form(about, [jax.ShapeDtypeStruct(shape, np.float32)], "cpu", kind)

    assert form(jnp.square, 3, 2**31 - 1) and form(jnp.square, 3, 2**16, 2**14, depth=2)
    assert not form(jnp.square, 3, 2**31) and not form(jnp.square, 3, 2**16, 2**15, depth=2)
    assert not form(jnp.square, 0, 8) and not form(jnp.square, 3, 8, kind="xla") and not form(jax.lax.digamma, 3, 8)


def test_what_is_absent_is_lowered_for_and_nothing_is_run(monkeypatch):
    monkeypatch.setattr(launch, "_find_gpu", lambda: pytest.fail("looked"))
    with absent_gpu(75, ptx=lambda text, capability: text):
        assert launch.here().capability == 75 and launch.form_on(jax.devices("cpu")[0]) == "scan"


@needs_cc
def test_the_kernel_of_one_line_by_the_c_compiler():
    assert launch._runs("cc", jax.devices("cpu")[0])


PTX = b'.version 9.1\n.target sm_75\n\t.pragma "used_bytes_mask 15";\nret;\n'


class Library:
    """NVRTC as far as it is called."""

    def __init__(self, result=0, made=0):
        self.options, self.result, self.made, self.destroyed = [], result, made, 0

    def nvrtcCreateProgram(self, program, text, *given):
        assert given == (b"kernel.cu", 0, None, None)
        self.text = text.decode()
        return self.made

    def nvrtcDestroyProgram(self, program):
        self.destroyed += 1

    def nvrtcCompileProgram(self, program, number, options):
        self.options = [options[k].decode() for k in range(number)]
        return self.result

    def __getattr__(self, name):  # sizes, and what has them
        said = PTX if "PTX" in name else b"line 3: no"

        def get(program, to=None):
            if "Size" in name:
                to._obj.value = len(said) + 1
            elif to is not None:
                to.value = said

        return get


def test_ptx_names_an_old_version_and_the_device_that_it_is_for(monkeypatch):
    library = Library()
    monkeypatch.setattr(compilers, "library", lambda: library)
    for capability, target, version in ((75, 75, "6.4"), (86, 80, "7.0"), (90, 90, "7.8"), (120, 90, "7.8")):
        assert compilers.ptx("text", capability) == f".version {version}\n.target sm_75\nret;\n"
        assert library.options == [f"--gpu-architecture=compute_{target}", *compilers.OPTIONS]
        assert library.text == "text"
    assert library.destroyed == 4
    with pytest.raises(compilers.Missing, match=r"7\.0 is below 7\.5"):
        compilers.ptx("text", 70)
    refuses = Library(result=6)
    monkeypatch.setattr(compilers, "library", lambda: refuses)
    with pytest.raises(RuntimeError, match=r"^NVRTC does not compile a kernel: line 3: no$"):
        compilers.ptx("text", 75)
    assert refuses.destroyed == 1
    monkeypatch.setattr(compilers, "library", lambda: Library(made=1))
    with pytest.raises(RuntimeError, match="makes no program"):
        compilers.ptx("text", 75)


def test_where_nvrtc_is_looked_for(monkeypatch, tmp_path):
    """The newest wheel first, then what the system finds."""
    for version in (11, 12, 13):
        (tmp_path / f"v{version}/lib").mkdir(parents=True)
        (tmp_path / f"v{version}/lib/libnvrtc.so.{version}").touch()
    tried = []

    def load(path):
        tried.append(path.removeprefix(f"{tmp_path}/"))
        if path != "libnvrtc.so.12":
            raise OSError
        return "library"

    find = compilers.library.__wrapped__
    monkeypatch.setattr(compilers.ctypes, "CDLL", load)
    where = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: where if name == "nvidia" else None)
    assert find() == "library"
    wheels = [f"v{version}/lib/libnvrtc.so.{version}" for version in (13, 12, 11)]
    assert tried == [*wheels, "libnvrtc.so.13", "libnvrtc.so.12"]
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(compilers.ctypes, "CDLL", lambda path: load("x"))
    with pytest.raises(compilers.Missing, match=r"^NVRTC is not installed \(pip install"):
        find()
