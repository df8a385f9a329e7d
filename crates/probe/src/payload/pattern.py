"""Test data with exactly known results: integers small enough that sums over all ranks are exact in the type, in any
order of addition."""

CHUNK = 1 << 22  # elements filled or compared at a time, so that the check needs little memory beyond the buffers
STEP_BY_INDEX, STEP_BY_RANK = 7, 13
# Odd primes, so that data shifted by a power of two elements does not match by chance.
MODULI = (251, 127, 61, 31, 13, 7, 5, 3)
EXACT_BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
POISON = -1  # no pattern contains it, so elements that an operation did not write are found


def modulus_for(dtype, ranks):
    """The largest modulus whose sums over `ranks` ranks are exact; None if there is none."""
    limit = 1 << EXACT_BITS[dtype]
    return next((modulus for modulus in MODULI if (modulus - 1) * ranks <= limit), None)


def pattern(torch, device, rank, modulus, start, end):
    """A rank's data from element `start` to `end`, exclusive."""
    index = torch.arange(start, end, dtype=torch.int64, device=device)
    return (index * STEP_BY_INDEX + rank * STEP_BY_RANK) % modulus


def fill(torch, tensor, rank, modulus):
    for start in range(0, tensor.numel(), CHUNK):
        end = min(start + CHUNK, tensor.numel())
        tensor[start:end] = pattern(torch, tensor.device, rank, modulus, start, end)


def wrong_values(torch, tensor, segments, modulus):
    """{wrong, first, expected, got}: the number of wrong elements, and the first of them. Each segment names the ranks
    whose data that piece of the tensor must be the sum of."""
    found = {"wrong": 0, "first": None, "expected": None, "got": None}
    for segment in segments:
        for start in range(0, segment.length, CHUNK):
            end = min(start + CHUNK, segment.length)
            expected = sum(pattern(torch, tensor.device, rank, modulus, segment.source + start, segment.source + end)
                           for rank in segment.ranks)
            got = tensor[segment.start + start:segment.start + end]
            wrong = (got != expected.to(got.dtype)).nonzero()
            if len(wrong) and not found["wrong"]:
                first = int(wrong[0])
                # As text, because the value may be NaN.
                found.update(first=segment.start + start + first, expected=str(int(expected[first])),
                             got=str(float(got[first])))
            found["wrong"] += len(wrong)
    return found
