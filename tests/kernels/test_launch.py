"""Which route calls a kernel, what is said where none does, and what NVRTC is asked for. No GPU is needed."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from laid_out import needs_cc

from jaxbandits.kernels import compilers, launch
from jaxbandits.kernels.launch import Gpu, absent_gpu


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
    assert "output_operand_alias" in text and launch.trial_kernel().name in text


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

    def __init__(self, result=0):
        self.options, self.result = [], result

    def nvrtcCreateProgram(self, program, text, *_):
        self.text = text.decode()
        return 0

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
    with pytest.raises(compilers.Missing, match=r"7\.0 is below 7\.5"):
        compilers.ptx("text", 70)
    monkeypatch.setattr(compilers, "library", lambda: Library(result=6))
    with pytest.raises(RuntimeError, match="line 3: no"):
        compilers.ptx("text", 75)
