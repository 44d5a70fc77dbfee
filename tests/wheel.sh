#!/usr/bin/env bash
# Builds the wheel, installs it where the source tree cannot be imported, and runs the quickstart in an empty directory.
# The libraries come from the development environment through a .pth line, so nothing but the build is downloaded:
# a directory named in a .pth file does not have its own .pth files read, so the editable install stays out of reach.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${PYTHON:-.venv/bin/python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m build --wheel --installer uv --outdir "$work/dist" . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
"$python" -m venv --without-pip "$work/venv"
"$python" -m pip --python "$work/venv/bin/python" install --quiet --disable-pip-version-check --no-deps "$work"/dist/*.whl
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/libraries.pth"

mkdir "$work/empty"
cp examples/quickstart.toml "$work/empty/"
cd "$work/empty"
unset PYTHONPATH
"$work/venv/bin/python" - "$site" <<'PYTHON'
import pathlib, sys
import jaxbandits
home = pathlib.Path(jaxbandits.__file__).parent
assert home == pathlib.Path(sys.argv[1]) / "jaxbandits", f"imported from {home}"
assert (home / "py.typed").exists(), "py.typed is missing from the wheel"
from jaxbandits import stubs
for package in stubs.PACKAGES:
    stub = home.parent / package.replace(".", "/") / "__init__.pyi"
    assert "def " in stub.read_text(encoding="utf-8"), f"the stub of {package} is missing from the wheel"
from jaxbandits import provenance
assert provenance.records(), "provenance.toml is missing from the wheel"
PYTHON
"$work/venv/bin/jaxbandits" run quickstart.toml --out out --seeds 16
for file in config.toml results.nc summary.csv provenance.json; do
    test -s "out/$file" || { echo "the run left no $file" >&2; exit 1; }
done
# What `new` writes comes from files of the wheel.
"$work/venv/bin/jaxbandits" new my_algorithm
"$work/venv/bin/jaxbandits" check my_algorithm:my_algorithm
echo "wheel: ok"
