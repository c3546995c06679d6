from numba.core import caching as caching
from numba.core import event as event
