"""The only source of randomness: an AES-256-CTR keystream, keyed by the operating system.

Why AES-CTR: an adversary that predicts the draws of a randomizer or of a shuffler undoes their
privacy, so a statistical generator is not enough; and with AES instructions the cryptographic one
is also the faster.
"""

import hashlib
import os  # contract: no other module of core may; keys come from here, and forks are seen here
import threading
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

KEY_BYTES = 32
WORD_BYTES = 8

# Small requests are served from a buffer that grows up to this size, large ones in pieces of it: it
# fits the second-level cache beside the zeros that are encrypted, and makes a call's overhead
# negligible. A stream with few draws costs little.
_PIECE_BYTES = 1 << 18
_FIRST_BUFFER_BYTES = 1 << 9

#: Zero bytes, whose encryption in counter mode is the keystream itself.
ZEROS = memoryview(bytes(_PIECE_BYTES))

# Blocks of a keystream never repeat, blocks of a random string would: after 2^b blocks this tells
# them apart with advantage at most 2^(2b - 129) (birthday bound, 128-bit blocks). A new key every
# 2^36 blocks (1 TiB) keeps it below 2^-57 per key, besides the advantage against AES itself.
_BLOCKS_PER_KEY = 1 << 36
_BYTES_PER_KEY = 16 * _BLOCKS_PER_KEY


# Number of forks made through Python between this process and the first.
_num_forks = 0

# Held while a stream is renewed in a child process; renewed itself by each fork.
_renewing = threading.Lock()


def _count_fork() -> None:
    """Run in the child after each fork, to mark all earlier state as stale."""
    # The lock may have been held by another thread of the parent.
    global _num_forks, _renewing  # noqa: PLW0603
    _num_forks += 1
    _renewing = threading.Lock()


# Windows has no fork, and no such function.
getattr(os, "register_at_fork", lambda **_: None)(after_in_child=_count_fork)


def _process() -> tuple[int, int]:
    """Return a key that differs between a process and its children: forks, and process id."""
    return _num_forks, os.getpid()


def _read_operating_system(num_bytes: int) -> bytes:
    """Return bytes of the operating system's generator, the origin of all secrets."""
    return os.urandom(num_bytes)


def start_keystream(key: bytes) -> "CipherContext":
    """Return a cipher whose encryption of zeros is the AES-256-CTR keystream of ``key``.

    The counter starts at 0: each key serves one keystream only, so no nonce is needed.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()


def derived_key(root: bytes, label: bytes, index: int) -> bytes:
    """Return a key that belongs to ``root``, ``label`` and ``index`` alone."""
    return hashlib.sha256(b"shuffledp " + label + root + index.to_bytes(8, "little")).digest()


class Entropy:
    """A stream of independent, uniform 64-bit words.

    Make one with `from_operating_system` (deployments, and the default everywhere) or with
    `from_seed` (reproducible simulation, which protects nobody: the seed reveals every draw). One
    object may be shared by threads; `spawn` gives each its own without waiting.

    Notes
    -----
    Source: AES-256 in counter mode (FIPS 197, NIST SP 800-38A section 6.5), counter from 0, a
    fresh key for each object and after every 2^36 blocks (1 TiB). Telling 2^b blocks of one key
    from random ones has advantage at most 2^(2b - 129) if AES is a pseudo-random permutation:
    here below 2^-57.

    No word is handed out twice, not even when an exception such as `KeyboardInterrupt` strikes in
    the middle of a call, and not in a child process: each draw compares the process and its number
    of forks with those of the key, and a child draws a new one, also after a fork that does not go
    through Python. The exception is a virtual machine restored from a snapshot, which no
    process can notice.

    Seeded streams depend on the seed only, not on how the draws are cut into calls. After a fork
    parent and child both continue the same seeded stream: give a child its own with `spawn`.
    Words are in the machine's byte order, so seeded results are the same on machines of the same
    byte order.

    Cost: 1 to 2 ns a word in bulk, 2 to 3 microseconds a call.

    References
    ----------
    Bellare, Desai, Jokipii, Rogaway, "A concrete security treatment of symmetric encryption",
    FOCS 1997 (counter mode; with the PRP/PRF switching lemma).

    Examples
    --------
    >>> entropy = Entropy.from_operating_system()
    >>> entropy.words(3).shape
    (3,)
    >>> bool((Entropy.from_seed(7).words(5) == Entropy.from_seed(7).words(5)).all())
    True
    """

    def __init__(self, root: bytes | None, *, is_simulation: bool = False) -> None:
        """Start a stream; use the ``from_*`` constructors instead."""
        self._root = root
        self._is_simulation = is_simulation
        self._num_keys = 0
        self._num_children = 0
        self._lock = threading.Lock()
        self._cipher: CipherContext | None = None
        self._bytes_left = 0  # under the present key: none, so the first draw takes a key
        self._buffer = np.empty(0, dtype=np.uint8)
        self._position = 0  # bytes of the buffer handed out
        self._owner = _process()

    @classmethod
    def from_operating_system(cls) -> Self:
        """Return a stream keyed by the operating system's generator.

        Returns
        -------
        Entropy
            Independent of every other; secret; not reproducible.
        """
        return cls(None)

    @classmethod
    def from_seed(cls, seed: SupportsIndex) -> Self:
        """Return a reproducible stream, for simulation only.

        Parameters
        ----------
        seed : int
            Any whole number >= 0. Different seeds give independent streams.

        Returns
        -------
        Entropy
            With ``is_simulation`` true. Its key is SHA-256("shuffledp simulation" || seed in
            decimal digits).

        Raises
        ------
        ParameterError
            If ``seed`` is not a whole number >= 0.
        """
        number = require_at_least("seed", seed, 0)
        root = hashlib.sha256(f"shuffledp simulation{number}".encode()).digest()
        return cls(root, is_simulation=True)

    @classmethod
    def from_key(cls, key: bytes) -> Self:
        """Return the stream of a secret key, for draws that must repeat when they are replayed.

        Parameters
        ----------
        key : bytes
            32 bytes that nobody else knows, from the operating system or `derived_key`; for one
            purpose only, since the same key gives the same words.

        Returns
        -------
        Entropy
            As secret as the key; parent and child process both continue it after a fork.

        Raises
        ------
        ParameterError
            If the key has another length.
        """
        if len(key) != KEY_BYTES:
            raise ParameterError(f"key has {len(key)} bytes: give {KEY_BYTES}")
        return cls(bytes(key))

    @classmethod
    def choose(cls, seed: SupportsIndex | None) -> Self:
        """Return `from_seed` if a seed is given, else `from_operating_system`.

        Parameters
        ----------
        seed : int or None
            See `from_seed`.

        Returns
        -------
        Entropy
            ``is_simulation`` is true if a seed is given.
        """
        return cls.from_operating_system() if seed is None else cls.from_seed(seed)

    @property
    def is_simulation(self) -> bool:
        """True if the stream comes from a seed, so that it protects nobody."""
        return self._is_simulation

    def words(self, count: SupportsIndex) -> NDArray[np.uint64]:
        """Return fresh independent words, uniform on [0, 2^64).

        Parameters
        ----------
        count : int
            Number of words, >= 0.

        Returns
        -------
        ndarray of uint64, shape (count,)
            A new array; it shares memory with nothing.

        Raises
        ------
        ParameterError
            If ``count`` is not a whole number >= 0.
        """
        out = np.empty(require_at_least("count", count, 0), dtype=np.uint64)
        self._fill_bytes(out.view(np.uint8))
        return out

    def generator(self) -> np.random.Generator:
        """Return a statistical NumPy generator, for simulations and numerics: nothing private.

        Returns
        -------
        numpy.random.Generator
            PCG64, seeded with 256 bits of a stream of its own. Its draws reveal the next ones, so
            no privacy may rest on them: use `words` for that. After a fork parent and child draw
            the same.

        Examples
        --------
        >>> Entropy.from_seed(1).generator().permutation(4).sum()
        np.int64(6)
        """
        return np.random.Generator(np.random.PCG64(self.spawn().words(KEY_BYTES // WORD_BYTES)))

    def spawn(self) -> "Entropy":
        """Return an independent stream with its own key, for another thread or worker.

        Returns
        -------
        Entropy
            Keyed by the operating system, or by this stream's seed or key and the number of
            streams spawned before.
        """
        if self._root is None:
            return Entropy(None)
        self.renew_after_fork()
        with self._lock:
            index = self._num_children
            self._num_children += 1
        child = derived_key(self._root, b"child", index)
        return Entropy(child, is_simulation=self._is_simulation)

    def for_block(self, number: int) -> "BlockEntropy":
        """Return the start of the stream of a block of rows, which another process may open.

        The words of a block do not depend on the process that draws them. Block 0 has this stream's
        own first words: a stream whose blocks are drawn must not be drawn from itself.
        """
        root = self._root
        if root is not None and number:
            root = derived_key(root, b"block", number)
        return BlockEntropy(root, self._is_simulation)

    def renew_after_fork(self) -> None:
        """Forget, in a child process, the words that the parent may hand out.

        A stream that can be repeated keeps its place: only the lock is renewed, which another
        thread of the parent may have held.
        """
        process = _process()
        if self._owner == process:
            return
        with _renewing:
            if self._owner != process:  # no other thread of the child was first
                self._lock = threading.Lock()
                if self._root is None:
                    self._position = self._buffer.size
                    self._bytes_left = 0
                self._owner = process

    def _fill_bytes(self, target: NDArray[np.uint8]) -> None:
        """Overwrite ``target``, from the buffer if it is small."""
        self.renew_after_fork()
        with self._lock:
            held = min(target.size, self._buffer.size - self._position)
            self._take(target[:held])
            rest = target[held:]
            if 2 * rest.size > _PIECE_BYTES:
                self._generate(rest)
            elif rest.size:
                self._refill(rest.size)
                self._take(rest)

    def _take(self, target: NDArray[np.uint8]) -> None:
        """Copy from the buffer, first marking the bytes as handed out."""
        start = self._position
        self._position = start + target.size
        target[:] = self._buffer[start : start + target.size]

    def _refill(self, at_least: int) -> None:
        """Fill the exhausted buffer; an interruption skips words at worst."""
        buffer = self._buffer
        if buffer.size < _PIECE_BYTES:
            size = max(_FIRST_BUFFER_BYTES, 4 * buffer.size, 2 * at_least)
            buffer = np.empty(min(size, _PIECE_BYTES), dtype=np.uint8)
        self._generate(buffer)
        self._buffer = buffer
        self._position = 0

    def _generate(self, target: NDArray[np.uint8]) -> None:
        """Overwrite ``target`` with the next bytes of the keystream, past the buffer."""
        view = target.data
        done = 0
        while done < target.size:
            if self._cipher is None or self._bytes_left == 0:
                self._cipher = start_keystream(self._next_key())
                self._bytes_left = _BYTES_PER_KEY
            size = min(target.size - done, _PIECE_BYTES, self._bytes_left)
            self._bytes_left -= size
            self._cipher.update_into(ZEROS[:size], view[done : done + size])
            done += size

    def _next_key(self) -> bytes:
        """Return the key of the next 2^36 blocks."""
        if self._root is None:
            return _read_operating_system(KEY_BYTES)
        index = self._num_keys
        self._num_keys += 1
        return self._root if index == 0 else derived_key(self._root, b"key", index)

    def __repr__(self) -> str:
        return "Entropy(simulation)" if self.is_simulation else "Entropy(operating system)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ParameterError(
            "an Entropy cannot be pickled or copied, for the copy would hand out the same words "
            "again: call spawn(), or make a new one in the other process"
        )


class BlockEntropy(NamedTuple):
    """Start of one block's stream; without a root, a new stream of the operating system."""

    root: bytes | None
    is_simulation: bool

    def open(self) -> Entropy:
        """Return the stream; with a root it is the same at each call, so draw from it only once."""
        return Entropy(self.root, is_simulation=self.is_simulation)

    def __repr__(self) -> str:
        return "BlockEntropy(...)"


def draw_below(entropy: Entropy, size: int, bound: int) -> NDArray[np.uint64]:
    """Return independent whole numbers, exactly uniform on [0, bound), bound in [1, 2^64 - 1].

    The leading bits of a word are redrawn where they are not below the bound.
    """
    bits = (bound - 1).bit_length()
    if bits == 0:
        return np.zeros(size, dtype=np.uint64)
    shift, limit = np.uint64(8 * WORD_BYTES - bits), np.uint64(bound)
    out = entropy.words(size) >> shift
    wrong = np.flatnonzero(out >= limit)
    while wrong.size:
        again = entropy.words(wrong.size) >> shift
        out[wrong] = again
        wrong = wrong[again >= limit]
    return out
