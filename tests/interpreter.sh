#!/usr/bin/env bash
# Prints the first Python that runs, can make virtual environments and has the first of the given versions that is here:
# on the path, or among pyenv's. Each is run, as a version manager's shim may exist without its version. Prints nothing otherwise.
for version in "$@"; do
    for python in "python$version" python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
        "$python" -c 'import ensurepip, sys, venv; sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1])' "$version" >/dev/null 2>&1 &&
            { echo "$python"; exit; }
    done
done
