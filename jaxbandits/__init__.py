"""Batched simulation of private and robust bandits in JAX.

The public names are in `__init__.pyi`. Each is loaded when it is first used, so that `import jaxbandits` costs
little more than `import jax`.
"""

import lazy_loader

from jaxbandits.version import __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*__all__, "__version__"]
