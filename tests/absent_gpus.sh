#!/usr/bin/env bash
# Compiles programs for GPUs that are not here, under the newest JAX that pyproject.toml allows, in an environment of its
# own: a release that no longer takes our kernels fails here first. One line where that environment cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/.venv-matrix/newest
programs="ucb1 adap_ucb online_ucb spectral_filter"

python=$(bash tests/interpreter.sh 3.13 3.12)
[ -n "$python" ] || { echo "absent GPUs: passed over, no Python 3.13 or 3.12 was found"; exit 0; }
[ -x "$home/bin/python" ] || "$python" -m venv --clear "$home"
# each time: the newest JAX may be another one than yesterday
{
    bash tests/install.sh "$home/bin/python" --upgrade -e . &&
        jax=$("$home/bin/python" -c 'import importlib.metadata as m; print(m.version("jax"))') &&
        bash tests/install.sh "$home/bin/python" "jax-cuda13-plugin==$jax" "jax-cuda13-pjrt==$jax" \
            nvidia-cuda-nvrtc nvidia-cuda-nvcc nvidia-cuda-nvdisasm
} >"$home/install.log" 2>&1 || { echo "absent GPUs: passed over, $(tail -1 "$home/install.log")"; exit 0; }
unset PYTHONPATH
export JAXBANDITS_CACHE=$home/xla-cache
for target in t4 a100 h100; do
    # shellcheck disable=SC2086
    "$home/bin/python" benchmarks/gpu_static.py --target "$target" --json "$home/$target.json" $programs >"$home/$target.md"
    "$home/bin/python" - "$home/$target.json" <<'PYTHON'
import importlib.metadata, json, sys
found = json.load(open(sys.argv[1]))
for row in found["rows"]:
    assert row["form"] == "kernel" and row["host_syncs_per_segment"] == 0 and row["registers"] > 0, row
    # a stretch of plays is one kernel, with few beside it that lay lanes out
    assert row["kernels_per_play"] < (0.01 if row["of"] == "play" else 40), row
names = ", ".join(row["name"] for row in found["rows"])
print(f"absent GPUs: jax {importlib.metadata.version('jax')} compiles {names} for {found['target']}")
PYTHON
done
