"""What a result looks like: figures, theory overlays, tables and the HTML report."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules={"layout", "output", "page", "plot"})
