"""Write the first cell of every notebook, run the notebooks, and keep what they print and draw.

    python notebooks/refresh.py                    # all of them, at full size: minutes
    python notebooks/refresh.py byzantine_agents   # some of them
    python notebooks/refresh.py --cell             # the first cells only, nothing runs

The address that the first cell installs from is `Repository` in `[project.urls]` of pyproject.toml, and no other place
has it. Without one the cell says what to do instead. Every notebook reads JAXBANDITS_SMALL: with it, as in the tests,
sizes are small. The site reads the first cell where only what builds it is installed: functions import what they need.
"""

import argparse
import base64
import io
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CELL_SECONDS = 600  # a cell that takes longer is an error
NUM_COLOURS = 64  # of a kept picture: curves and texts look the same in a third of the bytes

FIRST_CELL = '''\
# @title Install jaxbandits where it is missing { display-mode: "form" }
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = "@REPOSITORY@"  # from pyproject.toml, by notebooks/refresh.py
SMALL = bool(os.environ.get("JAXBANDITS_SMALL"))  # small sizes, for a quick look


def accelerator():
    """The extra that fits this machine, or an empty string: CUDA 13 needs driver 580 and compute capability 7.5."""
    if any(Path("/dev").glob("accel[0-9]*")) or "TPU_ACCELERATOR_TYPE" in os.environ:
        return "tpu"
    query = ["nvidia-smi", "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True) if shutil.which("nvidia-smi") else None
    if answer is None or answer.returncode or not answer.stdout.strip():
        return ""
    driver, capability = answer.stdout.splitlines()[0].split(",")
    return "cuda13" if int(driver.split(".")[0]) >= 580 and float(capability) >= 7.5 else "cuda12"


if importlib.util.find_spec("jaxbandits") is None:
    folders = [Path.cwd(), *Path.cwd().parents]
    checkout = next((f for f in folders if (f / "jaxbandits/protocol.py").exists()), None)
    checkout = next(Path.cwd().glob("jaxbandits-*.whl"), checkout)  # of a release, beside its notebooks
    if checkout is None and not REPOSITORY:
        raise SystemExit(
            "jaxbandits is not installed, and its repository has no public address yet. Copy the repository to this "
            "machine (on Colab: upload it as a ZIP file and run `!unzip FILE.zip`), go into it with `%cd FOLDER`, and "
            "run this cell again."
        )
    extra = accelerator()
    source = str(checkout) if checkout else f"git+{REPOSITORY}"
    wanted = f"jaxbandits[{extra}] @ {source if REPOSITORY and not checkout else Path(source).as_uri()}"
    wanted = wanted.replace("[]", "")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", wanted], check=True)
    if "jax" in sys.modules:
        raise SystemExit("jaxbandits is installed. Restart the session, then run this cell again.")
    importlib.invalidate_caches()

import jax

device = jax.devices()[0]
if device.platform == "cpu":
    print(f"No accelerator: everything runs on {os.cpu_count()} CPU cores.")
else:
    print(f"Accelerator: {len(jax.devices())} x {device.device_kind}.")\
'''


def first_cell() -> str:
    """The cell that every notebook starts with, with the address that pyproject.toml has."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    return FIRST_CELL.replace("@REPOSITORY@", project.get("urls", {}).get("Repository", ""))


def paths() -> list[Path]:
    """The notebooks, in order of their names."""
    return sorted(HERE.glob("*.ipynb"))


def with_first_cell(path: Path) -> Any:
    """The notebook with the present first cell."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0]["source"] = first_cell()
    return notebook


def write(notebook: Any, path: Path) -> None:
    import nbformat

    nbformat.write(notebook, path)


def run(notebook: Any, folder: Path) -> None:
    """Run all cells in `folder`, in a kernel of their own; raise where one fails."""
    from nbclient import NotebookClient

    NotebookClient(notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(folder)}}).execute()


def smaller(picture: str) -> str:
    """A PNG in base64 with a palette."""
    from PIL import Image

    file = io.BytesIO()
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    image.quantize(NUM_COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def without_noise(notebook: Any) -> None:
    """Take out what differs from run to run, bars of progress, times and ids, and make pictures small."""
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"].pop("execution", None)
        if cell["cell_type"] == "code":
            cell["outputs"] = [o for o in cell["outputs"] if o.get("name") != "stderr"]
            for output in cell["outputs"]:
                if "image/png" in output.get("data", {}):
                    output["data"]["image/png"] = smaller(output["data"]["image/png"])
    notebook["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def write_first_cells() -> None:
    """Write the first cell of every notebook, and run nothing."""
    for path in paths():
        write(with_first_cell(path), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks; the default: all")
    parser.add_argument("--cell", action="store_true", help="write the first cells only")
    arguments = parser.parse_args()
    if arguments.cell:
        return write_first_cells()
    for path in paths():
        if arguments.names and path.stem not in arguments.names:
            continue
        notebook = with_first_cell(path)
        run(notebook, HERE)
        without_noise(notebook)
        write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
