"""`python -m jaxbandits` is `jaxbandits`."""

import sys

from jaxbandits.cli import main

sys.exit(main())
