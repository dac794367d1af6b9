"""Seeds of samples; `kernels/src/search/sampling.cpp` draws the numbers."""

_GAMMA = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def stream_seed(seed: int, sample: int) -> int:
    """Return the seed of one sample's own random stream; `seed` and `sample` are taken modulo 2 ** 64."""
    return mixed((mixed((seed + _GAMMA) & _MASK) + sample) & _MASK)


def mixed(word: int) -> int:
    """Return a word of 64 bits that depends on all bits of another.

    Of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    """
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return word ^ (word >> 31)
