"""Adversary factories: keyword arguments in, `protocol.Adversary` out.

A run has two slots for an adversary (picture in `jaxbandits/protocol.py`):

- `reward_adversary` changes rewards on their way from the environment to the client: `huber`, `poison`, `budgeted`;
- `message_adversary` changes what a client sends to the server: `huber` (reports), `byzantine` (sums of agents).
"""

from jaxbandits.adversaries.budgeted import budgeted
from jaxbandits.adversaries.byzantine import byzantine, poison
from jaxbandits.adversaries.huber import huber
from jaxbandits.names import refuse_unknown

__all__ = ["huber", "byzantine", "poison", "budgeted"]
__getattr__ = refuse_unknown(__name__, __all__)
