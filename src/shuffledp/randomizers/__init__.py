"""Local randomizers: each user's value goes in, a deniable report comes out.

One file per family; `registry` has them by name. Laws are exact: draws compare whole numbers, and
every randomizer accounts for the very law that it draws. (Vectors are the exception, and say so.)
`shuffledp.testing` checks all of that, also of a randomizer of one's own.
"""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
