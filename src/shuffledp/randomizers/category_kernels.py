"""Compiled loops of the randomizers of categories: drawing reports and counting them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit
from shuffledp.core.numerics.uniform_kernels import bounded_integer


@njit(cache=True, nogil=True)
def randomize_block(
    codes: NDArray[Any],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    k: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report i from true code i and word i: symbol number min(w // T, k - 1) past the truth.

    Numbering the symbols from the one after the truth, around the circle, puts the truth itself
    last, as number k - 1. So "other symbol number w // T if w < (k - 1) T, else the truth" needs
    no branch on the word, which no processor could predict.
    """
    last = k - np.uint64(1)
    reciprocal = 1.0 / np.float64(threshold)
    limit = np.float64(last)
    for i in range(codes.size):
        word = words[i]
        # A product in place of a 64-bit division. Below 2^32 its error is under 1e-5, so that the
        # whole part is off by at most one, and the exact products below put that right.
        step = np.uint64(min(np.float64(word) * reciprocal, limit))
        product = step * threshold  # at most (k - 1) T < 2^64
        if product > word:
            step -= np.uint64(1)
        elif step < last and word - product >= threshold:
            step += np.uint64(1)
        report = np.uint64(codes[i]) + np.uint64(1) + step
        if report >= k:
            report -= k
        out[i] = report


@njit(cache=True, nogil=True)
def count_codes(codes: NDArray[Any], tables: NDArray[np.int64]) -> None:
    """Add one to ``tables[i mod rows, codes[i]]`` for each i; the caller has checked the codes.

    With several rows (a power of two), equal codes in a row do not wait for each other's sums.
    """
    mask = tables.shape[0] - 1
    for i in range(codes.size):
        tables[i & mask, codes[i]] += 1


_ONE = np.uint64(1)
_NONE = np.uint64(0)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
# Bit planes of the vertical counters below; they are emptied before they can overflow.
NUM_PLANES = 12
_CHUNKS_PER_FLUSH = (1 << (NUM_PLANES - 3)) - 1


@njit(cache=True, nogil=True)
def fill_bernoulli(
    words: NDArray[np.uint64], threshold: np.uint64, lanes: NDArray[np.uint64]
) -> int:
    """Fill ``lanes`` with bits that are 1 with probability exactly T / 2^64, and independent.

    Each of the 64 positions of a lane word stands for its own uniform 64-bit number w, of which
    the j-th word drawn holds the j-th most significant digit. Digit by digit from the top, w is
    compared with T: the first digit where they differ decides w < T, so a position is undecided
    after j digits with probability 2^-j only, and about 8 words decide all 64 (E max of 64
    geometric variables = 7.3) where drawing every w in full would take 64. Digits of T from its
    last 1 on cannot make w < T any more, so they end the comparison too. The law is the same as
    with all 64 digits: those left out cannot change the answer, and are independent of it.

    Returns the number of lane words filled. It stops *before* a lane word for which the words could
    run out: giving up half-way would favour lanes that are decided early.
    """
    num_digits = 64
    while (threshold >> np.uint64(64 - num_digits)) & _ONE == _NONE:
        num_digits -= 1
    used = 0
    for lane in range(lanes.size):
        if words.size - used < num_digits:
            return lane
        below = _NONE
        undecided = _ALL
        for digit in range(num_digits):
            word = words[used]
            used += 1
            if (threshold >> np.uint64(63 - digit)) & _ONE:
                below |= undecided & ~word
                undecided &= word
            else:
                undecided &= ~word
            if undecided == _NONE:
                break
        lanes[lane] = below
    return lanes.size


@njit(cache=True, nogil=True)
def flip_true_bits(rows: NDArray[np.uint8], codes: NDArray[np.uint32]) -> None:
    """Flip bit ``codes[i]`` of row i."""
    for i in range(codes.size):
        code = codes[i]
        rows[i, code >> np.uint32(3)] ^= np.uint8(1) << np.uint8(code & np.uint32(7))


@njit(cache=True, nogil=True)
def replace_true_bits(
    rows: NDArray[np.uint8], codes: NDArray[np.uint32], coins: NDArray[np.uint64]
) -> None:
    """Put bit i of ``coins`` at bit ``codes[i]`` of row i."""
    for i in range(codes.size):
        code = codes[i]
        coin = np.uint8((coins[i >> 6] >> np.uint64(i & 63)) & _ONE)
        place = np.uint8(code & np.uint32(7))
        byte = rows[i, code >> np.uint32(3)] & ~(np.uint8(1) << place)
        rows[i, code >> np.uint32(3)] = byte | (coin << place)


@njit(cache=True, nogil=True)
def _full_add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return sum and carry of 64 one-bit additions of three terms."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@njit(cache=True, nogil=True)
def _flush(planes: NDArray[np.uint64], totals: NDArray[np.int64]) -> None:
    """Add the vertical counters to ``totals``, shape (width, 64), and set them to zero."""
    for j in range(planes.shape[1]):
        for plane in range(NUM_PLANES):
            bits = planes[plane, j]
            for position in range(64):
                bit = (bits >> np.uint64(position)) & _ONE
                totals[j, position] += np.int64(bit << np.uint64(plane))
            planes[plane, j] = _NONE


@njit(cache=True, nogil=True)
def add_column_sums(
    rows: NDArray[np.uint64], planes: NDArray[np.uint64], totals: NDArray[np.int64]
) -> None:
    """Add the number of ones in each bit column of ``rows``, shape (8 m, width), to ``totals``.

    ``planes``, shape (NUM_PLANES, width), holds 64 counters a word "vertically": plane p has bit
    p of each. Seven full adders take eight rows to one carry of weight 8 (Harley and Seal's
    carry-save tree), so that a word costs a few operations instead of 64 additions.
    """
    width = rows.shape[1]
    planes[:] = _NONE
    chunks_held = 0
    for start in range(0, rows.shape[0], 8):
        for j in range(width):
            ones, two_a = _full_add(planes[0, j], rows[start, j], rows[start + 1, j])
            ones, two_b = _full_add(ones, rows[start + 2, j], rows[start + 3, j])
            twos, four_a = _full_add(planes[1, j], two_a, two_b)
            ones, two_a = _full_add(ones, rows[start + 4, j], rows[start + 5, j])
            ones, two_b = _full_add(ones, rows[start + 6, j], rows[start + 7, j])
            twos, four_b = _full_add(twos, two_a, two_b)
            fours, carry = _full_add(planes[2, j], four_a, four_b)
            planes[0, j] = ones
            planes[1, j] = twos
            planes[2, j] = fours
            for plane in range(3, NUM_PLANES):
                held = planes[plane, j]
                planes[plane, j] = held ^ carry
                carry &= held
        chunks_held += 1
        # The planes hold up to 8 (2^9 - 1) + 7; one more carry of 8 a chunk still fits until then.
        if chunks_held == _CHUNKS_PER_FLUSH:
            _flush(planes, totals)
            chunks_held = 0
    _flush(planes, totals)


_ONE_BYTE = np.uint8(1)


@njit(cache=True, nogil=True)
def place_members(
    rows: NDArray[np.uint8],
    codes: NDArray[np.uint32],
    coins: NDArray[np.uint64],
    half_words: NDArray[np.uint32],
    threshold: np.uint64,
    num_others: int,
    subset_size: int,
    placed: int,
) -> int:
    """Draw the members of each row's subset one after another, as far as the half words go.

    ``rows`` start empty. Member s of row i is number ``placed`` = i * subset_size + s, so that
    one integer says how far the work has come: it is given, and the new one is returned.

    The others of a row, that is all categories but its code, are numbered from 0 to
    num_others - 1; the code's own place is taken by category num_others. Member 0 is a uniform
    one of the first num_others - subset_size + 1 others, or the code itself if ``coins[i]`` is
    below the threshold. The members after it follow Floyd's algorithm (Bentley, Floyd, 1987): for
    j from num_others - subset_size + 1 on, take a uniform one of the others 0 ... j, or j itself
    if that one is in already. With member 0 among them the others taken are a uniform subset of
    subset_size; the steps after it alone make a uniform subset of subset_size - 1.

    A refused half word leaves no trace, so going on with fresh ones is exact.
    """
    row = placed // subset_size
    step = placed % subset_size
    smallest_bound = num_others - subset_size + 1
    used = 0
    while row < codes.size:
        code = np.int64(codes[row])
        while step < subset_size:
            if used == half_words.size:
                return row * subset_size + step
            chosen = bounded_integer(half_words[used], np.uint64(smallest_bound + step))
            used += 1
            if chosen < 0:
                continue
            member = num_others if chosen == code else chosen
            if step == 0:
                if coins[row] < threshold:
                    member = code
            elif (rows[row, member >> 3] >> np.uint8(member & 7)) & _ONE_BYTE:
                latest = smallest_bound + step - 1
                member = num_others if latest == code else latest
            rows[row, member >> 3] |= _ONE_BYTE << np.uint8(member & 7)
            step += 1
        row += 1
        step = 0
    return row * subset_size


# Bit i is the parity of the four bits of i.
_PARITIES = np.uint64(0x6996)


@njit(cache=True, nogil=True)
def randomize_binary_block(
    codes: NDArray[np.uint32],
    words: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    threshold: np.uint64,
    shift: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report 2 j + b: row j from the top bits of word i, b the parity of j & x, or flipped.

    It is flipped if coin i is below T, as in k-RR with two categories.
    """
    for i in range(codes.size):
        row = words[i] >> shift
        bits = row & np.uint64(codes[i])
        bits ^= bits >> np.uint64(16)
        bits ^= bits >> np.uint64(8)
        bits ^= bits >> np.uint64(4)
        parity = (_PARITIES >> (bits & np.uint64(15))) & _ONE
        out[i] = (row << _ONE) | (parity ^ np.uint64(coins[i] < threshold))


@njit(cache=True, nogil=True)
def add_signs(codes: NDArray[Any], differences: NDArray[np.int64]) -> None:
    """Add 1 at row j for each report 2 j, and -1 for each report 2 j + 1."""
    for i in range(codes.size):
        code = np.int64(codes[i])
        differences[code >> 1] += 1 - 2 * (code & 1)


_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def hash_block(
    codes: NDArray[np.uint32],
    words: NDArray[np.uint64],
    g: np.uint64,
    num_digits: int,
    buckets: NDArray[np.uint32],
) -> None:
    """Replace word w by the seed floor(w g^m / 2^64), and write the bucket of each code.

    Multiplying a word by g pushes the next digit of the seed out at the top, the most significant
    first. Digits of codes come in the same order; (x + 1/2) / g^j is at least 1 / (2 g^j) from a
    whole number, and a product with the reciprocal is exact to 2^-51 of itself, so that its whole
    part is right for all x below 2^49: the codes are below 2^32, the sums below m g^2 <= 2^43.
    """
    # Signed where floats are made of them: processors have no instruction for unsigned ones.
    powers = np.empty(num_digits, dtype=np.int64)
    reciprocals = np.empty(num_digits, dtype=np.float64)
    power = np.int64(1)
    for place in range(num_digits - 1, -1, -1):
        powers[place] = power
        reciprocals[place] = 1.0 / np.float64(power)
        power *= np.int64(g)
    reciprocal = 1.0 / np.float64(g)
    for i in range(codes.size):
        word = words[i]
        rest = np.int64(codes[i])
        seed = np.uint64(0)
        total = np.int64(0)
        for place in range(num_digits):
            # Upper half of the 128-bit product; g < 2^21, so that no partial product overflows.
            carried = ((word & _LOW_HALF) * g) >> _HALF
            digit = ((word >> _HALF) * g + carried) >> _HALF
            word *= g
            seed = seed * g + digit
            code_digit = np.int64((np.float64(rest) + 0.5) * reciprocals[place])
            rest -= code_digit * powers[place]
            total += np.int64(digit) * code_digit
        words[i] = seed
        buckets[i] = total - np.int64(g) * np.int64((np.float64(total) + 0.5) * reciprocal)


@njit(cache=True, nogil=True)
def write_inverses(inverses: NDArray[np.int64]) -> None:
    """Write 1/i mod g at index i, for a prime g, the size of the array; 0 at index 0.

    g = (g div i) i + (g mod i), so that 1/i = -(g div i) / (g mod i) mod g.
    """
    g = inverses.size
    inverses[0] = 0
    inverses[1] = 1
    for i in range(2, g):
        inverses[i] = g - (g // i) * inverses[g % i] % g


@njit(cache=True, nogil=True)
def _digit_product(first: np.int64, second: np.int64, g: np.int64) -> np.int64:
    """Return the sum of the products of the digits in base g, mod g."""
    total = np.int64(0)
    while first > 0 and second > 0:
        total += (first % g) * (second % g)
        first //= g
        second //= g
    return total % g


@njit(cache=True, nogil=True)
def add_reports(
    codes: NDArray[Any],
    weights: NDArray[np.int64],
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add the weight of each report to its cell in each block of its level.

    See `linear_hashing` for levels and blocks. From one block to the next the lowest digit
    of the block's number grows by one, and the cell moves on by a constant, save for a carry.
    """
    g = np.int64(inverses.size)
    for i in range(codes.size):
        seed = np.int64(codes[i] // np.uint64(g))
        bucket = np.int64(codes[i] % np.uint64(g))
        if seed == 0:
            table[offsets[offsets.size - 1] + np.int64(bucket != 0)] += weights[i]
            continue
        level = 0
        while seed % g == 0:
            seed //= g
            level += 1
        inverse = inverses[seed % g]
        bucket = bucket * inverse % g
        seed //= g
        cell = offsets[level]
        block_size = block_sizes[level]
        stride = g
        while stride < block_size:
            cell += (seed % g) * inverse % g * stride
            seed //= g
            stride *= g
        step = (seed % g) * inverse % g
        for first in range(0, num_blocks[level], g):
            place = bucket - _digit_product(seed // g, first // g, g) * inverse % g
            for block in range(first, min(first + g, num_blocks[level])):
                if place < 0:
                    place += g
                table[cell + block * block_size + place] += weights[i]
                place -= step


@njit(cache=True, nogil=True)
def _load_doubled(
    level: NDArray[np.int64], base: int, stride: int, g: int, rows: NDArray[np.int64]
) -> None:
    """Copy g rows of g cells, each twice over, so that a rotation of a row is a slice of it."""
    for a in range(g):
        for z in range(g):
            count = level[base + a * stride + z]
            rows[2 * g * a + z] = count
            rows[2 * g * a + g + z] = count


@njit(cache=True, nogil=True)
def transform_digit(
    level: NDArray[np.int64], g: int, stride: int, num_blocks: int, rows: NDArray[np.int64]
) -> None:
    """Turn one digit of the seed into the same digit of the category, in place.

    ``level[.., a, .., z]`` has stride ``stride`` for the digit a and 1 for the bucket z. It becomes
    ``level[.., v, .., z] = sum over a of level[.., a, .., (z + a v) mod g]``. ``rows`` has room for
    2 g^2 cells.
    """
    sums = np.empty(g, dtype=np.int64)
    for block in range(num_blocks):
        for base in range(block * g * stride, block * g * stride + stride, g):
            _load_doubled(level, base, stride, g, rows)
            for v in range(g):
                sums[:] = 0
                shift = 0
                for a in range(g):
                    first = 2 * g * a + shift
                    for z in range(g):
                        sums[z] += rows[first + z]
                    shift += v
                    if shift >= g:
                        shift -= g
                for z in range(g):
                    level[base + v * stride + z] = sums[z]
