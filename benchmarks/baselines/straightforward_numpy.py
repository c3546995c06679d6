"""Every randomizer of categories in plain NumPy, as a straightforward server would write it."""

import math

import numpy as np


def randomize(randomizer, codes, entropy):
    """Randomize all codes at once."""
    return _CLIENTS[randomizer.name](randomizer, codes.astype(np.int64), entropy.generator())


def count(randomizer, reports):
    """Count all reports at once."""
    if randomizer.name == "k-rr":
        return np.bincount(reports, minlength=randomizer.domain_size)
    if isinstance(reports, tuple):
        seeds, buckets = reports
        g = getattr(randomizer, "num_buckets", 2)
        hashes = seeds @ _digits(np.arange(randomizer.domain_size), g, seeds.shape[1]).T % g
        return (hashes == buckets[:, None]).sum(axis=0)
    return reports.sum(axis=0)


def _response(codes, k, epsilon0, generator):
    keep = generator.random(codes.size) < math.exp(epsilon0) / (math.exp(epsilon0) + k - 1)
    others = (codes + generator.integers(1, k, codes.size)) % k
    return np.where(keep, codes, others)


def _k_rr(randomizer, codes, generator):
    return _response(codes, randomizer.domain_size, randomizer.epsilon0, generator)


def _symmetric(randomizer, codes, generator):
    flip = 1 / (1 + math.exp(randomizer.epsilon0 / 2))
    bits = generator.random((codes.size, randomizer.domain_size)) < flip
    bits[np.arange(codes.size), codes] ^= True
    return bits


def _optimized(randomizer, codes, generator):
    bits = generator.random((codes.size, randomizer.domain_size)) < 1 / (
        1 + math.exp(randomizer.epsilon0)
    )
    bits[np.arange(codes.size), codes] = generator.random(codes.size) < 0.5
    return bits


def _digits(codes, g, num_digits):
    return codes[:, None] // g ** np.arange(num_digits) % g


def _hashing(randomizer, codes, generator):
    g = getattr(randomizer, "num_buckets", 2)
    num_digits = max(1, math.ceil(math.log(randomizer.domain_size, g) - 1e-9))
    seeds = generator.integers(g, size=(codes.size, num_digits))
    hashes = (seeds * _digits(codes, g, num_digits)).sum(axis=1) % g
    return seeds, _response(hashes, g, randomizer.epsilon0, generator)


def _subset(randomizer, codes, generator):
    k, size = randomizer.domain_size, randomizer.subset_size
    include = size * math.exp(randomizer.epsilon0)
    includes = generator.random(codes.size) < include / (include + k - size)
    keys = generator.random((codes.size, k))
    keys[np.arange(codes.size), codes] = np.where(includes, -1.0, 2.0)
    chosen = np.argpartition(keys, size - 1, axis=1)[:, :size]
    bits = np.zeros((codes.size, k), dtype=bool)
    np.put_along_axis(bits, chosen, True, axis=1)
    return bits


_CLIENTS = {
    "k-rr": _k_rr,
    "symmetric-unary": _symmetric,
    "optimized-unary": _optimized,
    "optimized-local-hashing": _hashing,
    "hadamard-response": _hashing,
    "subset-selection": _subset,
}
