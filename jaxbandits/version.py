"""The one place of the version, which is imported before everything else of the package."""

import time

__version__ = "0.2.0"
LOADED = time.time()  # the text of a file that changes later may not be that of the functions in memory
