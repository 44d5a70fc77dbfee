"""The notebooks as pages: what they say, run and show as it is kept in them, with the file to download and, once the
project has an address, a link that opens it in Colab. Nothing runs.

The pages are written into `notebooks/` before Sphinx looks for files.
"""

import base64
import json
import re
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# The first cell is the same in all of them.
INSTALL = """```{dropdown} The first cell, which installs jaxbandits where it is missing
:::{code-block} python
:class: no-search
%s
:::
```
"""


def text(path: Path, colab: str | None, pictures: dict[str, bytes]) -> str:
    """A notebook as Markdown; its pictures are added to `pictures`. colab: the address of the notebooks there."""
    install, title, *cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    links = [f"{{download}}`Download this notebook <../../notebooks/{path.name}>`"]
    links += [f"[open it in Colab]({colab}{path.name})"] if colab else []
    heading, _, rest = "".join(title["source"]).partition("\n")
    parts = [heading, " · ".join(links), rest, INSTALL % "".join(install["source"])]
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", source))
            continue
        parts.append(fenced("{code-block} python", source))
        parts += [shown(output, path.stem, pictures) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def shown(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """What a cell has printed or drawn."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = f"{name}-{sum(one.startswith(f'{name}-') for one in pictures) + 1}.png"
        pictures[picture] = base64.b64decode("".join(data["image/png"]))
        return f"![What the cell draws]({picture})"
    if "text/html" in data:
        return fenced("{raw} html", '<div class="notebook-output">' + "".join(data["text/html"]) + "</div>")
    return fenced("{code-block} text\n:class: notebook-output", "".join(output.get("text") or data["text/plain"]))


def fenced(language: str, content: str) -> str:
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", content)), default=0))
    return f"{ticks}{language}\n{content.rstrip()}\n{ticks}"


def overview(paths: list[Path]) -> str:
    """The page that lists them, each with its first sentence."""
    words = "As they were run, to read here or to run yourself: each page has its file, for Jupyter and for Colab."
    rows = ["# Notebooks", "", words, ""]
    for path in paths:
        heading, _, rest = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][1]["source"]).partition("\n")
        first = re.match(r".*?[.?!](?=\s|$)", " ".join(rest.split()))
        rows.append(f"- [{heading.lstrip('# ')}]({path.stem}.md): {first[0] if first else ''}")
    names = "\n".join(path.stem for path in paths)
    return "\n".join(rows) + f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def write(app, config) -> None:
    """Write the pages and pictures, where they changed."""
    repository = config.repository
    colab = runpy.run_path(str(ROOT / ".github/publish.py"))["colab"](repository) if repository else None
    folder = Path(app.srcdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    paths, files = sorted((ROOT / "notebooks").glob("*.ipynb")), {}
    for path in paths:
        files |= {f"{path.stem}.md": text(path, colab, files).encode()}
    files["index.md"] = overview(paths).encode()
    for old in {one.name for one in folder.iterdir()} - set(files):
        (folder / old).unlink()
    for name, content in files.items():
        if not (folder / name).exists() or (folder / name).read_bytes() != content:
            (folder / name).write_bytes(content)


def setup(app):
    app.add_config_value("repository", None, "env")
    app.connect("config-inited", write)
    return {"parallel_read_safe": True}
