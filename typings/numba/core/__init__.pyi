from numba.core import event as event
