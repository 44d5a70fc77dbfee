#!/usr/bin/env bash
# Do the lowest versions that pyproject.toml allows do? Installs them, of everything that is named there, into .venv-matrix/lowest
# with the oldest Python, and runs what uses those libraries most: searches, files, tables, pictures and the command line.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/.venv-matrix/lowest
python=$(bash tests/interpreter.sh 3.11)
[ -n "$python" ] || { echo "lowest: no Python 3.11 with venv was found" >&2; exit 1; }
if [ ! "$home/.installed" -nt pyproject.toml ]; then
    "$python" -m venv --clear "$home"
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.5'
    "$home/bin/python" -m uv pip install --quiet --python "$home/bin/python" --resolution lowest-direct \
        -e '.[accounting,data,export,tune]' 'pytest>=8.3,<9.2' 'pytest-xdist>=3.6' 'filelock>=3.13'
    touch "$home/.installed"
fi
export JAX_COMPILATION_CACHE_DIR=$home/xla-cache JAXBANDITS_CACHE=$home/xla-cache
"$home/bin/python" -c '
import importlib.metadata, re
for line in importlib.metadata.requires("jaxbandits"):
    if "extra" not in line:
        name = re.match(r"[\w-]+", line)[0]
        print(name, importlib.metadata.version(name), end="; ")
'
echo
"$home/bin/python" -m pytest -q -n "${WORKERS:-2}" --dist loadgroup -o cache_dir="$home/pytest-cache" --durations=0 --durations-min=10 \
    tests/sweeps/test_tune.py tests/sweeps/test_concat.py tests/sweeps/test_paths.py tests/sweeps/test_streams.py \
    tests/pages/test_statistics.py tests/pages/test_cli.py tests/pages/test_plot.py tests/environments/test_data.py \
    jaxbandits/reports jaxbandits/searching jaxbandits/sweeps jaxbandits/statistics.py jaxbandits/joining.py
