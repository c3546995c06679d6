"""A NumPy bit generator on an AES-256-CTR keystream, behind `Entropy.generator`."""

import ctypes
import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from shuffledp.core import keystream_kernels as kernels
from shuffledp.core.entropy import FORKS, KEY_BYTES, WORD_BYTES, ZEROS, Entropy, start_keystream
from shuffledp.core.errors import ParameterError

_CALL_TYPE = ctypes.CFUNCTYPE(None)
_STATE_REFUSED = (
    "the state of a keystream generator cannot be read, set, pickled or copied, for the draws "
    "would repeat: call Entropy.generator() for another one"
)


class _CInterface(ctypes.Structure):
    """NumPy's ``bitgen_t``: how its compiled distributions ask for words."""

    _names = ("state", "next_uint64", "next_uint32", "next_double", "next_raw")
    _fields_ = tuple((name, ctypes.c_void_p) for name in _names)


def _address_in_capsule(capsule: object) -> int:
    """Return the address of the ``bitgen_t`` that NumPy allocated."""
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return int(get_pointer(capsule, b"BitGenerator"))


def _address_of(function: object) -> int:
    """Return the address at which C code calls a function of `_CALL_TYPE`."""
    return ctypes.c_size_t.from_buffer(function).value  # type: ignore[arg-type]  # ctypes' own


class KeystreamBitGenerator(np.random.BitGenerator):
    """Uniform words for NumPy's distributions, from a keystream of its own.

    Parameters
    ----------
    entropy : Entropy
        Where keys come from: 256 bits of it key the keystream. It must belong to this generator
        alone; `Entropy.generator` sees to that.

    Notes
    -----
    A child process takes a new key at its first draw. A fork that does not go through Python is
    not noticed here, as it is by `Entropy`: draws that protect somebody come from there.

    The buffer is refilled by a C function pointer on ``cipher.update_into`` itself. No line of
    Python runs in between, so neither a signal handler nor Ctrl-C can strike in the middle of a
    draw, where an exception could not be raised and would be lost.

    The key is never changed: after 2^b blocks the keystream is told from random words with
    advantage at most 2^(2b - 129), which is 2^-33 after 2^48 blocks, a month of nothing but
    drawing.

    Cost: about 4 ns a word beyond NumPy's own.
    """

    def __init__(self, entropy: Entropy) -> None:
        # NumPy wants a seed sequence; this one is never used, and `seed_seq` refuses to show it.
        super().__init__(0)
        self._entropy = entropy
        self._state_words = np.empty(kernels.STATE_WORDS, dtype=np.uint64)
        self._take_key()
        # By a proxy: a reference to itself would keep it alive.
        take_key = partial(KeystreamBitGenerator.take_key_in_child, weakref.proxy(self))
        self._new_key = _CALL_TYPE(take_key)
        self._state_words[kernels.NEW_KEY] = _address_of(self._new_key)
        self._state_words[kernels.FORKS] = FORKS.ctypes.data
        interface = _CInterface.from_address(_address_in_capsule(self.capsule))
        interface.state = self._state_words.ctypes.data
        interface.next_uint64 = kernels.next_uint64.address
        interface.next_uint32 = kernels.next_uint32.address
        interface.next_double = kernels.next_double.address
        interface.next_raw = kernels.next_uint64.address

    def _take_key(self) -> None:
        """Take a key and forget the words in the buffer."""
        cipher = start_keystream(self._entropy.words(KEY_BYTES // WORD_BYTES).tobytes())
        buffer = self._state_words[kernels.BUFFER :].view(np.uint8).data
        # Kept as an attribute, for compiled code knows only its address.
        self._refill = _CALL_TYPE(partial(cipher.update_into, ZEROS[: buffer.nbytes], buffer))
        self._state_words[kernels.USED] = kernels.BUFFER_WORDS
        self._state_words[kernels.REFILL] = _address_of(self._refill)
        self._state_words[kernels.FORKS_SEEN] = FORKS[0]

    def take_key_in_child(self) -> None:
        """Take a new key at the first draw of a child process; a simulation keeps its place."""
        if self._entropy.is_simulation:
            self._state_words[kernels.FORKS_SEEN] = FORKS[0]
        else:
            self._take_key()

    def spawn(self, n_children: SupportsIndex) -> list["KeystreamBitGenerator"]:
        """Return independent bit generators; what ``Generator.spawn`` calls."""
        return [KeystreamBitGenerator(self._entropy.spawn()) for _ in range(n_children)]

    @property
    def state(self) -> Mapping[str, Any]:
        """Refused: whoever holds the state could draw the same words again."""
        raise ParameterError(_STATE_REFUSED)

    @state.setter
    def state(self, _value: Mapping[str, Any]) -> None:
        raise ParameterError(_STATE_REFUSED)

    @property
    def seed_seq(self) -> NoReturn:
        """Refused: the keystream does not come from a seed sequence."""
        raise ParameterError("a keystream generator has no seed sequence: call spawn() instead")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ParameterError(_STATE_REFUSED)
