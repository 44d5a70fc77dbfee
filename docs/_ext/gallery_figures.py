"""Which pictures of an example the gallery shows: every figure that a block of it gives a name."""

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def figures(block, block_vars, gallery_conf) -> str:
    """Save the figures that are new since the last block, and return the text that shows them."""
    names = block_vars["example_globals"]
    shown = names.setdefault("_shown_figures", [])
    paths = []
    for figure in [value for value in names.values() if isinstance(value, Figure)]:
        if all(figure is not other for other in shown):
            shown.append(figure)
            path = next(block_vars["image_path_iterator"])
            figure.savefig(path, dpi=200, facecolor="white")
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
