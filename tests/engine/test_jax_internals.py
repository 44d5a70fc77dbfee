"""What is taken from JAX's private rooms: one module goes there, and each thing does what we take it for.

A test that fails under a new JAX names what moved.
"""

import ast
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable
from jax.extend.core import Primitive
from jax_config import use_config

import jaxbandits
from jaxbandits import jax_internals
from jaxbandits.sweeps.compilation.compilation_cache import without_jax_cache

PACKAGE = Path(jaxbandits.__file__).parent
ROOMS = ("jax._src", "jax.interpreters")


def rooms_of(text):
    """The private modules that a file imports, or walks into from `jax`."""
    names = []
    for x in ast.walk(ast.parse(text)):
        if isinstance(x, ast.Import):
            names += [alias.name for alias in x.names]
        elif isinstance(x, ast.ImportFrom):
            names += [f"{x.module}.{alias.name}" for alias in x.names]
        elif isinstance(x, ast.Attribute) and x.attr in ("_src", "interpreters"):
            names.append(ast.unparse(x))
    return [name for name in names if name.startswith(ROOMS)]


def test_no_other_file_goes_there():
    texts = {path.name: path.read_text() for path in PACKAGE.rglob("*.py")}
    near = {name: text for name, text in texts.items() if "_src" in text or "interpreters" in text}
    assert [name for name, text in near.items() if rooms_of(text)] == ["jax_internals.py"]
    for text in ("from jax import _src", "import jax.interpreters.mlir as m", "def f():\n    jax._src.core.Trace"):
        assert rooms_of(text)


def test_dce_jaxpr_leaves_out_what_nothing_reads():
    program = jax.make_jaxpr(lambda x: (jnp.sin(x), jnp.cos(x)))(1.0)
    lean, read = jax_internals.dce_jaxpr(program.jaxpr, [True, False], True)
    assert [equation.primitive.name for equation in lean.eqns] == ["sin"] and len(lean.outvars) == 1
    assert list(read) == [True]


def test_an_operation_of_our_own_has_rules_for_derivatives_vmap_and_lowering():
    twice = Primitive("twice")
    twice.def_abstract_eval(lambda x: x)
    jax_internals.ad.primitive_jvps[twice] = lambda arrays, tangents: (twice.bind(*arrays), twice.bind(*tangents))
    jax_internals.ad.primitive_transposes[twice] = lambda cotangent, x: [3 * cotangent]
    jax_internals.primitive_batchers[twice] = lambda arrays, axes: (twice.bind(*arrays) + 1, axes[0])
    jax_internals.register_lowering(twice, jax_internals.lower_fun(lambda x: 2 * x, multiple_results=False))
    assert jax.jit(twice.bind)(jnp.float32(3)) == 6
    np.testing.assert_array_equal(jax.jit(jax.vmap(twice.bind))(jnp.float32([3, 4])), [7, 9])
    assert jax.jit(lambda x: jax.jvp(twice.bind, (x,), (x,))[1])(jnp.float32(5)) == 10
    assert jax.jit(jax.grad(twice.bind))(jnp.float32(5)) == 3


def test_load_program_reads_what_jax_wrote():
    x = jnp.arange(3, dtype=jnp.float32)
    with without_jax_cache():  # what came out of that cache cannot be written
        compiled = jax.jit(lambda x: {"twice": 2 * x}).lower(x).compile()
    found = jax_internals.load_program(*serialize_executable.serialize(compiled), jax.devices()[0])(x)
    np.testing.assert_array_equal(found["twice"], [0, 2, 4])


class Planted:
    def __reduce__(self):
        return print, ("called",)


def test_load_program_calls_nothing_else(capsys):
    structure = jax.tree.structure(())
    for content in (pickle.dumps(Planted(), protocol) for protocol in range(6)):
        with pytest.raises(pickle.UnpicklingError, match="no part of a compiled program"):
            jax_internals.load_program(content, structure, structure, jax.devices()[0])
    assert not capsys.readouterr().out
    for name in [("jax._src.stages", "ArgInfo.__init__.__globals__"), ("builtins", "eval"), ("os", "system")]:
        assert name not in jax_internals.CLASSES_OF_A_PROGRAM


def test_replace_cache_is_what_jax_reads_and_writes(tmp_path):
    class Files(dict):
        path = _path = tmp_path

        def put(self, key, value):
            self[key] = value

    settings = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    files = Files()
    try:
        jax_internals.replace_cache(files)
        with use_config(settings):
            jax.jit(lambda x: x * 5 - 2).lower(1.0).compile()
            assert files and not list(tmp_path.iterdir())
            jax_internals.replace_cache()
            jax.jit(lambda x: x * 7 - 3).lower(1.0).compile()
            assert len(files) == 1 and list(tmp_path.iterdir())
    finally:
        jax_internals.replace_cache()


def test_triton_calls_is_the_module_with_jaxlibs_handler():
    found = jax_internals.triton_calls()
    if any(device.platform == "gpu" for device in jax.devices()):
        assert {"TritonKernel", "TritonKernelCall", "create_array_parameter"} <= set(dir(found))
    else:  # JAX's plugin for CUDA fills it
        assert found.__name__ == "jaxlib.gpu_triton"
