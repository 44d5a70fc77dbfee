"""
A sweep in a file
=================

A configuration file says the same as a call, and its directory keeps what is finished. In a terminal this is
``jaxbandits run sweep.toml --out runs/sweep``.
"""

import tempfile
from pathlib import Path

import jaxbandits as jb
from jaxbandits.cli import main

SWEEP = """
horizon = 3000
seeds = 50

[environment]
name = "bernoulli_losses"
means = [0.3, 0.5, 0.5, 0.6]

[[algorithm]]
name = "private_batched"
label = "HTINF in batches"

[[algorithm]]
name = "ftpl"
label = "FTPL, no privacy"

[grid]
epsilon = [0.2, 1.0]
"""

directory = Path(tempfile.mkdtemp())
(directory / "sweep.toml").write_text(SWEEP)
main(["run", str(directory / "sweep.toml"), "--out", str(directory / "out"), "--quiet"])
print(*sorted(path.name for path in (directory / "out").iterdir()), sep="\n")

# %%
# The results are read back as a Dataset.

ds = jb.load(directory / "out")
figure, data = jb.plot.regret(ds, log="none")
