"""Every randomizer of categories one report at a time, as a straightforward client would write it.

Each function returns a list of reports; `count` returns the support of each category.
"""

import math


def randomize(randomizer, codes, entropy):
    """Randomize one code after another."""
    generator = entropy.generator()
    make = _CLIENTS[randomizer.name]
    return [make(randomizer, code, generator) for code in codes.tolist()]


def count(randomizer, reports):
    """Count one report after another."""
    support = [0] * randomizer.domain_size
    supported = _SERVERS[randomizer.name]
    for report in reports:
        for category in supported(randomizer, report):
            support[category] += 1
    return support


def _response(code, k, epsilon0, generator):
    if generator.random() < math.exp(epsilon0) / (math.exp(epsilon0) + k - 1):
        return code
    other = int(generator.integers(k - 1))
    return other if other < code else other + 1


def _k_rr(randomizer, code, generator):
    return _response(code, randomizer.domain_size, randomizer.epsilon0, generator)


def _symmetric(randomizer, code, generator):
    flip = 1 / (1 + math.exp(randomizer.epsilon0 / 2))
    draws = generator.random(randomizer.domain_size).tolist()
    return [(draw < flip) != (i == code) for i, draw in enumerate(draws)]


def _optimized(randomizer, code, generator):
    other = 1 / (1 + math.exp(randomizer.epsilon0))
    draws = generator.random(randomizer.domain_size).tolist()
    return [draw < (0.5 if i == code else other) for i, draw in enumerate(draws)]


def _hash(code, seed, num_buckets):
    bucket = 0
    for weight in seed:
        bucket += weight * (code % num_buckets)
        code //= num_buckets
    return bucket % num_buckets


def _num_digits(k, num_buckets):
    digits = 1
    while num_buckets**digits < k:
        digits += 1
    return digits


def _hashing(randomizer, code, generator):
    g = getattr(randomizer, "num_buckets", 2)
    seed = generator.integers(g, size=_num_digits(randomizer.domain_size, g)).tolist()
    return seed, _response(_hash(code, seed, g), g, randomizer.epsilon0, generator)


def _subset(randomizer, code, generator):
    k, size = randomizer.domain_size, randomizer.subset_size
    include = size * math.exp(randomizer.epsilon0)
    others = [i for i in range(k) if i != code]
    generator.shuffle(others)
    if generator.random() < include / (include + k - size):
        return [code, *others[: size - 1]]
    return others[:size]


def _set_bits(_, bits):
    return [i for i, bit in enumerate(bits) if bit]


def _hashed_to(randomizer, report):
    seed, bucket = report
    g = getattr(randomizer, "num_buckets", 2)
    return [v for v in range(randomizer.domain_size) if _hash(v, seed, g) == bucket]


_CLIENTS = {
    "k-rr": _k_rr,
    "symmetric-unary": _symmetric,
    "optimized-unary": _optimized,
    "optimized-local-hashing": _hashing,
    "hadamard-response": _hashing,
    "subset-selection": _subset,
}

_SERVERS = {
    "k-rr": lambda _, report: [report],
    "symmetric-unary": _set_bits,
    "optimized-unary": _set_bits,
    "optimized-local-hashing": _hashed_to,
    "hadamard-response": _hashed_to,
    "subset-selection": lambda _, report: report,
}
