"""OrbitKV's client: finds, restores and saves KV blocks through the manager of this host.

>>> client = CacheManagerClient("/run/orbitkv/orbitkv.sock", instance="engine-0")
>>> chat = client.family(Family(...))
>>> with chat.query(keys) as match:
...     restored = match.restore(buffer)
>>> chat.save(keys[restored * 32:], blocks, parent=keys[(restored - 1) * 32 : restored * 32])
"""

from .blocks import BlockView
from .client import BlocksListed, CacheManagerClient, Events, FamilyHandle, SaveOutcome
from .errors import Code, OrbitKvError
from .family import KEY_BYTES, Family, key_chain
from .match import Match
from .residents import Residents

__all__ = [
    "KEY_BYTES",
    "BlockView",
    "BlocksListed",
    "CacheManagerClient",
    "Code",
    "Events",
    "Family",
    "FamilyHandle",
    "Match",
    "OrbitKvError",
    "Residents",
    "SaveOutcome",
    "key_chain",
]
__version__ = "0.1.0"
