"""Algorithm factories: keyword arguments in, `protocol.Algorithm` out. One algorithm a file, in six wings.

The names are in `__init__.pyi`, a line each: a file is loaded when its algorithm is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
