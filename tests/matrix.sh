#!/usr/bin/env bash
# Runs mypy and the tests on each pair of versions given as PYTHON-JAX, such as 3.11-0.10, in an environment of its own
# in .venv-matrix/PYTHON-JAX. A pair whose Python is not here is passed over with a line. Fails when a pair fails or none ran.
set -uo pipefail
cd "$(dirname "$0")/.."
ran=0 summary=()
failed=0

for pair in "$@"; do
    python=$(bash tests/interpreter.sh "${pair%-*}")
    home=$PWD/.venv-matrix/$pair jax=${pair#*-}
    if [ -z "$python" ]; then
        summary+=("$pair: no Python ${pair%-*} with venv was found")
        continue
    fi
    echo "== Python ${pair%-*}, jax $jax"
    ran=$((ran + 1))
    [ -x "$home/bin/python" ] || "$python" -m venv --clear "$home"
    if [ ! "$home/.installed" -nt pyproject.toml ]; then
        bash tests/install.sh "$home/bin/python" -e '.[dev]' "jax==$jax.*" "jaxlib==$jax.*" &&
            touch "$home/.installed" || { summary+=("$pair: failed to install"); failed=1; continue; }
    fi
    versions=$("$home/bin/python" -c 'import platform, jax; print("Python", platform.python_version(), "jax", jax.__version__)')
    export JAX_COMPILATION_CACHE_DIR=$home/xla-cache JAXBANDITS_CACHE=$home/xla-cache
    if "$home/bin/python" -m mypy --cache-dir "$home/mypy-cache" &&
        "$home/bin/python" -m pytest -n "${WORKERS:-2}" --dist loadgroup -m "not pages" -o cache_dir="$home/pytest-cache"; then
        summary+=("$pair: passed ($versions)")
    else
        summary+=("$pair: failed ($versions)") failed=1
    fi
done

printf '%s\n' "${summary[@]}"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
