# mypy: allow-untyped-defs, allow-incomplete-defs
"""Lower bounds of the distances from queries to groups of points, by matrix products.

With |q - p|^2 = |q|^2 - 2 (<q, p> - |p|^2 / 2), the nearest point of a group has the largest score
<q, p> - |p|^2 / 2. Vectors are split into two float16 parts, so that three products give <q, p>
almost as float32 would; what they may miss is subtracted.
"""

import triton
import triton.language as tl

__all__ = ["bound_groups", "position", "prepare_points", "slack"]

_SAMPLE = tl.constexpr(128)  # points that choose centre and scale
_LONGEST = tl.constexpr(2.0**30)  # half squared length up to which float16 holds a vector


@triton.jit
def position(place, TILE: tl.constexpr, GROUP: tl.constexpr):
    """Where a tile keeps a point when bounding."""
    within = place % TILE
    return place - within + within % GROUP * (TILE // GROUP) + within // GROUP


@triton.jit
def slack(squares, DEPTH: tl.constexpr):
    """At least the error of a squared distance, from the sum of the two squared lengths.

    Per 16 coordinates, in units of that sum: the matrix products truncate 20 terms, 2.4e-6 at
    most; the two float16 parts leave out 0.7e-6; sums of squares, centring and the last sums in
    float32 round by 1.7e-6: together less than 2^-17 = 7.6e-6. Vectors that are tiny at this scale
    are off by the constant.
    """
    return squares * (DEPTH // 16 * 2.0**-17) + DEPTH // 16 * 2.0**-24


@triton.jit(do_not_specialize=["size"])
def prepare_points(
    z, high, low, half, longest_square, whole, size, width, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Fill one tile of one set in every form that bounding and measuring want."""
    tile = tl.program_id(0).to(tl.int64)
    tiles = padded // TILE
    points = z + tile // tiles * size * width
    column = tl.arange(0, DEPTH)
    exists = column[None, :] < width

    # any centre and scale keep the bounds valid; a sample's keep them tight
    sampled = tl.arange(0, _SAMPLE).to(tl.int64) * tl.maximum(size // _SAMPLE, 1)
    mask = (sampled < size)[:, None] & exists
    sample = tl.load(points + sampled[:, None] * width + column[None, :], mask, 0.0)
    centre = tl.sum(sample, 0) / tl.minimum(size, _SAMPLE)
    centre = tl.where(tl.abs(centre) < float("inf"), centre, 0.0)[None, :]
    spread = tl.max(tl.max(tl.where(mask, tl.abs(sample - centre), 0.0), 1), 0)
    exponent = spread.to(tl.int32, bitcast=True) >> 23
    exponent = tl.minimum(tl.maximum(260 - exponent, 17), 177)  # spread becomes about 2^6
    scale = (exponent << 23).to(tl.float32, bitcast=True)

    row = tl.arange(0, TILE)
    inside = tile % tiles * TILE + row < size
    mask = inside[:, None] & exists
    start = points + tile % tiles * TILE * width
    given = tl.load(start + row[:, None] * width + column[None, :], mask, 0.0)
    centred = tl.where(mask, (given - centre) * scale, 0.0)
    square = 0.5 * tl.sum(centred * centred, 1)
    bounded = square < _LONGEST  # false for NaN
    centred = tl.where(bounded[:, None], centred, 0.0)
    coarse = centred.to(tl.float16)
    fine = (centred - coarse.to(tl.float32)).to(tl.float16)
    to = tile * TILE + position(row, TILE, GROUP)
    tl.store(high + to[:, None] * DEPTH + column[None, :], coarse)
    tl.store(low + to[:, None] * DEPTH + column[None, :], fine)
    tl.store(half + to, tl.where(inside & bounded, square, float("inf")))

    longest = tl.where(bounded, 2.0 * square, float("inf"))
    longest = tl.reshape(tl.where(inside, longest, 0.0), [TILE // GROUP, GROUP])
    group = tl.arange(0, TILE // GROUP)
    tl.store(longest_square + tile * (TILE // GROUP) + group, tl.max(longest, 1))
    at = row // GROUP * (GROUP * WIDTH) + row % GROUP * 4
    vector = column // 4 * (GROUP * 4) + column % 4
    start = whole + tile * TILE * WIDTH
    tl.store(start + at[:, None] + vector[None, :], given, (column < WIDTH)[None, :])


@triton.jit(do_not_specialize=["first", "size"])
def bound_groups(
    high, low, half, lower, first, size, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr,
):  # fmt: skip
    """Fill lower `[jobs, groups, QUERIES]`: no point of the group is nearer to the query."""
    SHARE: tl.constexpr = TILE // GROUP  # groups of a tile
    job = first + tl.program_id(0)
    tiles = tl.cdiv(size, QUERIES)
    base = (job // tiles).to(tl.int64) * padded
    query = tl.arange(0, QUERIES)
    column = tl.arange(0, DEPTH)
    row = base + position(job % tiles * QUERIES + query, TILE, GROUP)
    query_high = tl.load(high + row[:, None] * DEPTH + column[None, :])
    query_low = tl.load(low + row[:, None] * DEPTH + column[None, :])
    square = 2.0 * tl.load(half + row)
    least = square - slack(square, DEPTH)
    groups = padded // GROUP
    lower += tl.program_id(0).to(tl.int64) * groups * QUERIES
    for start in range(0, padded, TILE):
        point = base + start + tl.arange(0, TILE)
        point_high = tl.trans(tl.load(high + point[:, None] * DEPTH + column[None, :]))
        point_low = tl.trans(tl.load(low + point[:, None] * DEPTH + column[None, :]))
        offset = tl.load(half + point) * (1.0 - DEPTH // 16 * 2.0**-17)  # its share of the slack
        # small terms first: only the last product rounds at full size
        score = tl.dot(query_low, point_high)
        score = tl.dot(query_high, point_low, score)
        score = tl.dot(query_high, point_high, score) - offset[None, :]
        best = tl.max(tl.reshape(score, [QUERIES, GROUP, SHARE]), 1)
        group = start // GROUP + tl.arange(0, SHARE)
        bound = least[:, None] - 2.0 * best
        bound = tl.where(bound == bound, bound, float("-inf"))
        tl.store(lower + group[None, :] * QUERIES + query[:, None], bound)
