# mypy: allow-untyped-defs, allow-incomplete-defs
# mypy: disable-error-code="assignment, misc, var-annotated"
# ruff: noqa: RUF005 (the compiler knows no other way to make a tuple longer)
"""Nearest neighbours, kernel by kernel: prepare points, bound groups, select groups, measure.

With |q - p|^2 = |q|^2 - 2 (<q, p> - |p|^2 / 2), the nearest point of a group has the largest score
<q, p> - |p|^2 / 2. A matrix product computes the scores of all points at once. Vectors are split
into two float16 parts, so that three products on the tensor cores give <q, p> almost as float32
would; what they may miss is bounded by `_error_bound` and subtracted, so the bounds always hold.

A job is QUERIES queries of one set, counted through all sets. GROUP consecutive points share a
bound, TILE points are bounded at once; both divide the padded number of points. Sorted lists are
tuples with one register per entry, and inserting compares the new value with every entry.

Constants: DEPTH coordinates on the tensor cores (a power of two), WIDTH coordinates when measuring
(a multiple of four), K neighbours, LIST_SIZE groups in the list of a query.
"""

import triton
import triton.language as tl

__all__ = ["UNROLL", "bound_groups", "measure_groups", "prepare_points", "select_groups"]

UNROLL = tl.constexpr(8)  # bounds read at once; the number of groups is a multiple
_SAMPLE = tl.constexpr(128)  # points that choose centre and scale
_LONGEST = tl.constexpr(2.0**30)  # half squared length up to which float16 holds a vector
_INFINITY = tl.constexpr(0x7F800000)  # its bits
_NOTHING = tl.constexpr(0x7FFFFFFF)  # sorts after the bits of every distance


@triton.jit
def _tile_position(point, TILE: tl.constexpr, GROUP: tl.constexpr):
    """Where a tile keeps a point for the products: the i-th points of all groups side by side."""
    within = point % TILE
    return point - within + within % GROUP * (TILE // GROUP) + within // GROUP


@triton.jit
def _error_bound(squares, DEPTH: tl.constexpr):
    """At least the error of a squared distance, from the sum of the two squared lengths.

    Per 16 coordinates, in units of that sum: the matrix products truncate 20 terms, 2.4e-6 at
    most; the two float16 parts leave out 0.7e-6; sums of squares, centring and the last sums in
    float32 round by 1.7e-6: together less than 2^-17 = 7.6e-6. Vectors that are tiny at this scale
    are off by the constant.
    """
    return squares * (DEPTH // 16 * 2.0**-17) + DEPTH // 16 * 2.0**-24


# 1. prepare


@triton.jit(do_not_specialize=["size"])
def prepare_points(
    z, high, low, half_square, largest_square, given_points, size, width, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Fill one tile of one set in every form that bounding and measuring want."""
    tile = tl.program_id(0).to(tl.int64)
    tiles = padded // TILE
    points = z + tile // tiles * size * width
    column = tl.arange(0, DEPTH)
    exists = column[None, :] < width

    # Shift and scale, so that lengths are small and float16 is used well: any centre and scale
    # keep the bounds valid, a sample's keep them tight. The scale is a power of two, made from the
    # exponent bits of the spread, so that scaling rounds nothing.
    sampled = tl.arange(0, _SAMPLE).to(tl.int64) * tl.maximum(size // _SAMPLE, 1)
    mask = (sampled < size)[:, None] & exists
    sample = tl.load(points + sampled[:, None] * width + column[None, :], mask, 0.0)
    centre = tl.sum(sample, 0) / tl.minimum(size, _SAMPLE)
    centre = tl.where(tl.abs(centre) < float("inf"), centre, 0.0)[None, :]
    spread = tl.max(tl.max(tl.where(mask, tl.abs(sample - centre), 0.0), 1), 0)
    exponent = spread.to(tl.int32, bitcast=True) >> 23
    exponent = tl.minimum(tl.maximum(260 - exponent, 17), 177)  # spread becomes about 2^6
    scale = (exponent << 23).to(tl.float32, bitcast=True)

    # the tile's points [TILE, DEPTH], and half their squared lengths [TILE]
    row = tl.arange(0, TILE)
    inside = tile % tiles * TILE + row < size
    mask = inside[:, None] & exists
    start = points + tile % tiles * TILE * width
    given = tl.load(start + row[:, None] * width + column[None, :], mask, 0.0)
    centred = tl.where(mask, (given - centre) * scale, 0.0)
    square = 0.5 * tl.sum(centred * centred, 1)
    bounded = square < _LONGEST  # false for NaN
    centred = tl.where(bounded[:, None], centred, 0.0)

    # two float16 parts; points without a bound, and padding, get an infinite length
    coarse = centred.to(tl.float16)
    fine = (centred - coarse.to(tl.float32)).to(tl.float16)
    to = tile * TILE + _tile_position(row, TILE, GROUP)
    tl.store(high + to[:, None] * DEPTH + column[None, :], coarse)
    tl.store(low + to[:, None] * DEPTH + column[None, :], fine)
    tl.store(half_square + to, tl.where(inside & bounded, square, float("inf")))

    # per group [TILE // GROUP]: the largest squared length, for the error of its bound
    largest = tl.where(bounded, 2.0 * square, float("inf"))
    largest = tl.reshape(tl.where(inside, largest, 0.0), [TILE // GROUP, GROUP])
    group = tl.arange(0, TILE // GROUP)
    tl.store(largest_square + tile * (TILE // GROUP) + group, tl.max(largest, 1))

    # for measuring: the points as given, four coordinates of all points of a group side by side
    at = row // GROUP * (GROUP * WIDTH) + row % GROUP * 4
    vector = column // 4 * (GROUP * 4) + column % 4
    start = given_points + tile * TILE * WIDTH
    tl.store(start + at[:, None] + vector[None, :], given, (column < WIDTH)[None, :])


# 2. bound


@triton.jit(do_not_specialize=["first", "size"])
def bound_groups(
    high, low, half_square, lower, first, size, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr,
):  # fmt: skip
    """Fill lower `[jobs, groups, QUERIES]`: no point of the group is nearer to the query."""
    SHARE: tl.constexpr = TILE // GROUP  # groups of a tile
    job = first + tl.program_id(0)
    tiles = tl.cdiv(size, QUERIES)
    base = (job // tiles).to(tl.int64) * padded

    # the queries of this job [QUERIES, DEPTH]; they stay in registers
    query = tl.arange(0, QUERIES)
    column = tl.arange(0, DEPTH)
    row = base + _tile_position(job % tiles * QUERIES + query, TILE, GROUP)
    query_high = tl.load(high + row[:, None] * DEPTH + column[None, :])
    query_low = tl.load(low + row[:, None] * DEPTH + column[None, :])
    square = 2.0 * tl.load(half_square + row)
    least = square - _error_bound(square, DEPTH)  # |q|^2 and the query's share of the error
    groups = padded // GROUP
    lower += tl.program_id(0).to(tl.int64) * groups * QUERIES
    for start in range(0, padded, TILE):
        point = base + start + tl.arange(0, TILE)
        point_high = tl.trans(tl.load(high + point[:, None] * DEPTH + column[None, :]))
        point_low = tl.trans(tl.load(low + point[:, None] * DEPTH + column[None, :]))
        # |p|^2 / 2, less the point's share of the error
        offset = tl.load(half_square + point) * (1.0 - DEPTH // 16 * 2.0**-17)
        # scores [QUERIES, TILE]; small terms first: only the last product rounds at full size
        score = tl.dot(query_low, point_high)
        score = tl.dot(query_high, point_low, score)
        score = tl.dot(query_high, point_high, score) - offset[None, :]
        # the best score of every group, [QUERIES, SHARE]; NaN gives no bound
        best = tl.max(tl.reshape(score, [QUERIES, GROUP, SHARE]), 1)
        group = start // GROUP + tl.arange(0, SHARE)
        bound = least[:, None] - 2.0 * best
        bound = tl.where(bound == bound, bound, float("-inf"))
        tl.store(lower + group[None, :] * QUERIES + query[:, None], bound)


# 3. select


@triton.jit(do_not_specialize=["first", "size"])
def select_groups(
    half_square, largest_square, lower, chosen, count, limit, first, size, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, K: tl.constexpr, LIST_SIZE: tl.constexpr,
):  # fmt: skip
    """List the groups that can hold one of the K nearest points, one query per thread.

    A group's nearest point is at most as far as its upper bound, so the K groups with the smallest
    upper bounds have K points within the K-th of them, and no farther point can be among the
    nearest. Fills chosen `[jobs, LIST_SIZE, QUERIES]`, count and limit `[jobs, QUERIES]`.
    """
    slot = tl.program_id(0).to(tl.int64)
    job = first + tl.program_id(0)
    tiles = tl.cdiv(size, QUERIES)
    lane = tl.arange(0, QUERIES)
    query = job % tiles * QUERIES + lane
    row = (job // tiles).to(tl.int64) * padded + _tile_position(query, TILE, GROUP)
    square = 2.0 * tl.load(half_square + row)
    groups = padded // GROUP
    lower += slot * groups * QUERIES + lane
    largest_square += (job // tiles).to(tl.int64) * groups

    # the K smallest upper bounds, sorted; upper and lower bound are two errors apart
    best = ()
    for _ in tl.static_range(K):
        best = best + (tl.full([QUERIES], float("inf"), tl.float32),)
    for start in range(0, groups, UNROLL):
        for ahead in tl.static_range(UNROLL):
            group = start + ahead
            error = _error_bound(square + tl.load(largest_square + group), DEPTH)
            upper = tl.load(lower + group * QUERIES) + 2.0 * error
            # the query's own group is near because of the query itself
            usable = (upper < float("inf")) & (query // GROUP != group)
            value = tl.where(usable, upper, float("inf"))
            # insert: each entry keeps the smaller value and hands the larger one on
            grown = ()
            for t in tl.static_range(K):
                grown = grown + (tl.minimum(best[t], value),)
                value = tl.maximum(best[t], value)
            best = grown
    most = best[K - 1]

    # list the groups within the limit, and count also those that do not fit into the list
    found = tl.zeros([QUERIES], tl.int32)
    chosen += slot * LIST_SIZE * QUERIES + lane
    for start in range(0, groups, UNROLL):
        for ahead in tl.static_range(UNROLL):
            near = tl.load(lower + (start + ahead) * QUERIES) <= most
            tl.store(chosen + found * QUERIES, start + ahead, near & (found < LIST_SIZE))
            found += near.to(tl.int32)
    tl.store(count + slot * QUERIES + lane, tl.where(query < size, found, 0))
    tl.store(limit + slot * QUERIES + lane, most)


# 4. measure


@triton.jit
def _measure(
    best, index, given_points, given_index, query, group, active, lane, size,
    WIDTH: tl.constexpr, GROUP: tl.constexpr, LANES: tl.constexpr, K: tl.constexpr,
    ORDERED: tl.constexpr,
):  # fmt: skip
    """Compute the distances to the points of a group and insert them into the sorted lists.

    Unless the points are ORDERED a lane meets them in ascending order of their indices, so of
    equally distant points the first one met stays first.
    """
    vector = tl.arange(0, 4)[None, :]
    of_query = (query // GROUP).to(tl.int64) * (GROUP * WIDTH) + query % GROUP * 4
    for start in range(0, GROUP, LANES):
        # every thread has one point
        within = start + lane
        point = group * GROUP + within
        counts = active & (point < size) & (point != query)
        of_point = group.to(tl.int64) * (GROUP * WIDTH) + within * 4
        total = tl.zeros(query.shape, tl.float32)
        for j in tl.static_range(WIDTH // 4):
            skip = j * GROUP * 4 + vector
            a = tl.load(given_points + of_query[:, None] + skip)
            b = tl.load(given_points + of_point[:, None] + skip)
            total += tl.sum((a - b) * (a - b), 1)
        # as integers, the bits of distances sort like the distances; NaN counts as infinite
        bits = tl.where(total == total, total.to(tl.int32, bitcast=True), _INFINITY)
        bits = tl.where(counts, bits, _NOTHING)
        nearer, there = (), ()
        own = point
        if ORDERED:
            own = tl.load(given_index + point, counts, 0)
        # insert: from the first entry that comes later, everything moves down by one
        down, at = bits, own  # what moves to the next entry
        for t in tl.static_range(K):
            before = bits < best[t]
            if ORDERED:
                before = before | ((bits == best[t]) & (own < index[t]))
            nearer = nearer + (tl.where(before, down, best[t]),)
            there = there + (tl.where(before, at, index[t]),)
            down = tl.where(before, best[t], down)
            at = tl.where(before, index[t], at)
        best, index = nearer, there
    return best, index


@triton.jit(do_not_specialize=["first", "size"])
def measure_groups(
    given_points, given_index, lower, chosen, count, limit, index, distance, first, size, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, K: tl.constexpr, LIST_SIZE: tl.constexpr,
    MEASURED: tl.constexpr, LANES: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    """Measure the points of the listed groups, LANES threads per query, and keep the K nearest.

    When ORDERED, given_index `[B, size]` is the caller's index of each point. Fills index and
    distance `[B, size, K]`.
    """
    PARTS: tl.constexpr = QUERIES // MEASURED  # programs that share a job
    slot = (tl.program_id(0) // PARTS).to(tl.int64)
    job = first + tl.program_id(0) // PARTS
    tiles = tl.cdiv(size, QUERIES)
    set_ = (job // tiles).to(tl.int64)
    thread = tl.arange(0, MEASURED * LANES)
    lane = thread % LANES
    column = tl.program_id(0) % PARTS * MEASURED + thread // LANES
    query = job % tiles * QUERIES + column
    given_points += set_ * padded * WIDTH
    if ORDERED:
        given_index += set_ * size
    lower += slot * (padded // GROUP) * QUERIES + column
    chosen += slot * LIST_SIZE * QUERIES + column
    found = tl.load(count + slot * QUERIES + column)
    most = tl.load(limit + slot * QUERIES + column)

    # every thread keeps the K nearest of the points it met
    best, nearest = (), ()
    for _ in tl.static_range(K):
        best = best + (tl.full([MEASURED * LANES], _NOTHING, tl.int32),)
        nearest = nearest + (tl.zeros([MEASURED * LANES], tl.int32),)
    listed = tl.where(found > LIST_SIZE, 0, found)
    for turn in range(0, tl.max(listed, 0)):
        active = turn < listed
        group = tl.load(chosen + turn * QUERIES, active, 0)
        best, nearest = _measure(
            best, nearest, given_points, given_index, query, group, active, lane, size,
            WIDTH, GROUP, LANES, K, ORDERED,
        )  # fmt: skip
    # queries whose list was too short: all groups, by their bounds
    if tl.max(found, 0) > LIST_SIZE:
        for turn in range(0, tl.cdiv(size, GROUP)):
            active = (found > LIST_SIZE) & (tl.load(lower + turn * QUERIES) <= most)
            if tl.max(active.to(tl.int32), 0) > 0:
                group = tl.zeros_like(query) + turn
                best, nearest = _measure(
                    best, nearest, given_points, given_index, query, group, active, lane, size,
                    WIDTH, GROUP, LANES, K, ORDERED,
                )  # fmt: skip

    # merge the lanes' lists by distance, then by index: K times, take the least of their heads
    own = query
    if ORDERED:
        own = tl.load(given_index + query, query < size, 0)
    to = (set_ * size + own) * K + lane
    merged = best[0].to(tl.int64)
    for t in range(0, K):
        key = (best[0].to(tl.int64) << 32) + nearest[0]
        least = tl.min(tl.reshape(key, [MEASURED, LANES]), 1)
        least = tl.broadcast_to(least[:, None], [MEASURED, LANES])
        least = tl.reshape(least, [MEASURED * LANES])
        # the lane that had it moves its list up by one
        taken = key == least
        rest, there = (), ()
        for u in tl.static_range(K - 1):
            rest = rest + (tl.where(taken, best[u + 1], best[u]),)
            there = there + (tl.where(taken, nearest[u + 1], nearest[u]),)
        best = rest + (tl.where(taken, _NOTHING, best[K - 1]),)
        nearest = there + (nearest[K - 1],)
        # lane t keeps the t-th result until all lanes have one to store
        merged = tl.where(lane == t % LANES, least, merged)
        if (t % LANES == LANES - 1) | (t == K - 1):
            mask = (query < size) & (lane <= t % LANES)
            bits = (merged >> 32).to(tl.int32)
            tl.store(index + to + t // LANES * LANES, merged & 0xFFFFFFFF, mask)
            tl.store(distance + to + t // LANES * LANES, bits.to(tl.float32, bitcast=True), mask)
