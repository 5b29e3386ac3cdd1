"""A folder of compiled artifacts, shared by all processes of a user.

Holds: keys, the store with its locks, its index and its size bound. Takes a key and a way to build → gives an open
artifact, built at most once at a time. Must not compile, load code, or trust a file it has not checked; a cache that
cannot be written is no error.
"""

from cuvil_core.cache.key import cache_key
from cuvil_core.cache.store import Cache, Entry, Obtained, cache_dir

__all__ = ["Cache", "Entry", "Obtained", "cache_dir", "cache_key"]
