"""Compiled draws of `shuffledp.core.bit_generator`: words from a buffer, refilled when it is empty.

NumPy calls these through C function pointers, with the address of the state as only argument.
The state is an array of `STATE_WORDS` words: how many of the buffer's words are used, the address
of a C function that refills it, that of one that takes a new key, that of the number of forks, how
many there were when the key was taken, then the buffer.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from shuffledp.core.compiled import njit

BUFFER_WORDS = 4096
USED, REFILL, NEW_KEY, FORKS, FORKS_SEEN, BUFFER = range(6)
STATE_WORDS = BUFFER + BUFFER_WORDS

_ONE = np.uint64(1)
_NONE = np.uint64(0)


@intrinsic
def _call(_typing_context: Any, _address: Any) -> Any:
    """Call the C function ``void f(void)`` at an address.

    Naming the function as a constant instead would compile its address in, which forbids caching
    and a refill function for each generator.
    """

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        function_type = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.inttoptr(arguments[0], function_type.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.uint64), code


@intrinsic
def _load(_typing_context: Any, _address: Any) -> Any:
    """Load the word at an address."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

    return types.uint64(types.uint64), code


@njit
def _next_word(state: NDArray[np.uint64]) -> np.uint64:
    """Return the next word of the keystream.

    A refill that fails cannot raise through C. So the last two words are erased first and must
    have been overwritten, or it is tried again: used words are never handed out a second time.
    (Two zero words in the keystream, once in 2^128, merely cost another refill.)

    In a child process the first draw takes a new key; it is tried again in the same way.
    """
    while _load(state[FORKS]) != state[FORKS_SEEN]:
        _call(state[NEW_KEY])
    used = state[USED]
    if used == BUFFER_WORDS:
        state[STATE_WORDS - 2] = _NONE
        state[STATE_WORDS - 1] = _NONE
        while state[STATE_WORDS - 2] == _NONE and state[STATE_WORDS - 1] == _NONE:
            _call(state[REFILL])
        used = _NONE
    state[USED] = used + _ONE
    return np.uint64(state[np.uint64(BUFFER) + used])


# numba refuses to keep compiled code where no folder may be written to.
_IS_KEPT = _next_word.stats.cache_path is not None  # type: ignore[attr-defined]  # compiled


@cfunc(types.uint64(types.voidptr), cache=_IS_KEPT)
def next_uint64(state: Any) -> np.uint64:
    """Return a word."""
    return _next_word(carray(state, (STATE_WORDS,), np.uint64))


@cfunc(types.uint32(types.voidptr), cache=_IS_KEPT)
def next_uint32(state: Any) -> np.uint32:
    """Return the upper half of a word; the lower half is not used."""
    return np.uint32(_next_word(carray(state, (STATE_WORDS,), np.uint64)) >> np.uint64(32))


@cfunc(types.float64(types.voidptr), cache=_IS_KEPT)
def next_double(state: Any) -> float:
    """Return the upper 53 bits of a word as a multiple of 2^-53 in [0, 1)."""
    return (_next_word(carray(state, (STATE_WORDS,), np.uint64)) >> np.uint64(11)) * 2.0**-53
