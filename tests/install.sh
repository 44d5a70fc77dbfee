#!/usr/bin/env bash
# install.sh PYTHON REQUIREMENT...: installs into the environment of that Python. uv takes a seventh of pip's time; pip follows
# where uv cannot, since it knows settings that uv does not, such as mirrors in pip.conf.
set -euo pipefail
python=$1
shift
"$python" -m pip install --quiet --disable-pip-version-check 'uv>=0.5'
"$python" -m uv pip install --quiet --python "$python" "$@" ||
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
