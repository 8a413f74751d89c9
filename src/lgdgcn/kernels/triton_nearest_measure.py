# mypy: allow-untyped-defs, allow-incomplete-defs
# mypy: disable-error-code="assignment, misc, var-annotated"
# ruff: noqa: RUF005 (the compiler knows no other way to make a tuple longer)
"""Choosing the groups of points that can hold a nearest one, and measuring the points in them.

Sorted lists are tuples with one register per place: to insert is to compare with every place.
"""

import triton
import triton.language as tl

from lgdgcn.kernels.triton_nearest_bound import position, slack

__all__ = ["UNROLL", "measure_groups", "select_groups"]

UNROLL = tl.constexpr(8)  # bounds read at once; the number of groups is a multiple
_INFINITY = tl.constexpr(0x7F800000)  # its bits
_NOTHING = tl.constexpr(0x7FFFFFFF)  # sorts after the bits of every distance


@triton.jit(do_not_specialize=["first", "size"])
def select_groups(
    half, longest_square, lower, chosen, count, limit, first, size, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, K: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """List the groups that can hold one of the K nearest points, one query per thread."""
    slot = tl.program_id(0).to(tl.int64)
    job = first + tl.program_id(0)
    tiles = tl.cdiv(size, QUERIES)
    lane = tl.arange(0, QUERIES)
    query = job % tiles * QUERIES + lane
    row = (job // tiles).to(tl.int64) * padded + position(query, TILE, GROUP)
    square = 2.0 * tl.load(half + row)
    groups = padded // GROUP
    lower += slot * groups * QUERIES + lane
    longest_square += (job // tiles).to(tl.int64) * groups

    best = ()
    for _ in tl.static_range(K):
        best = best + (tl.full([QUERIES], float("inf"), tl.float32),)
    for start in range(0, groups, UNROLL):
        for ahead in tl.static_range(UNROLL):
            group = start + ahead
            error = slack(square + tl.load(longest_square + group), DEPTH)
            upper = tl.load(lower + group * QUERIES) + 2.0 * error
            # the query's own group is near because of the query itself
            usable = (upper < float("inf")) & (query // GROUP != group)
            value = tl.where(usable, upper, float("inf"))
            grown = ()
            for t in tl.static_range(K):
                grown = grown + (tl.minimum(best[t], value),)
                value = tl.maximum(best[t], value)
            best = grown
    most = best[K - 1]

    found = tl.zeros([QUERIES], tl.int32)
    chosen += slot * ROOM * QUERIES + lane
    for start in range(0, groups, UNROLL):
        for ahead in tl.static_range(UNROLL):
            near = tl.load(lower + (start + ahead) * QUERIES) <= most
            tl.store(chosen + found * QUERIES, start + ahead, near & (found < ROOM))
            found += near.to(tl.int32)
    tl.store(count + slot * QUERIES + lane, tl.where(query < size, found, 0))
    tl.store(limit + slot * QUERIES + lane, most)


@triton.jit
def _measure(
    best, place, whole, number, query, group, active, lane, size,
    WIDTH: tl.constexpr, GROUP: tl.constexpr, LANES: tl.constexpr, K: tl.constexpr,
    ORDERED: tl.constexpr,
):  # fmt: skip
    """Offer the points of a group to the sorted lists of their numbers.

    Unless the points are ORDERED a lane meets them in ascending order of their numbers, so of
    equally distant points the first one met stays first.
    """
    vector = tl.arange(0, 4)[None, :]
    of_query = (query // GROUP).to(tl.int64) * (GROUP * WIDTH) + query % GROUP * 4
    for start in range(0, GROUP, LANES):
        within = start + lane
        point = group * GROUP + within
        counts = active & (point < size) & (point != query)
        of_point = group.to(tl.int64) * (GROUP * WIDTH) + within * 4
        total = tl.zeros(query.shape, tl.float32)
        for j in tl.static_range(WIDTH // 4):
            skip = j * GROUP * 4 + vector
            a = tl.load(whole + of_query[:, None] + skip)
            b = tl.load(whole + of_point[:, None] + skip)
            total += tl.sum((a - b) * (a - b), 1)
        # as integers, the bits of distances sort like the distances
        bits = tl.where(total == total, total.to(tl.int32, bitcast=True), _INFINITY)
        bits = tl.where(counts, bits, _NOTHING)
        nearer, there = (), ()
        own = point
        if ORDERED:
            own = tl.load(number + point, counts, 0)
        down, at = bits, own  # what moves one place down the list
        for t in tl.static_range(K):
            before = bits < best[t]
            if ORDERED:
                before = before | ((bits == best[t]) & (own < place[t]))
            nearer = nearer + (tl.where(before, down, best[t]),)
            there = there + (tl.where(before, at, place[t]),)
            down = tl.where(before, best[t], down)
            at = tl.where(before, place[t], at)
        best, place = nearer, there
    return best, place


@triton.jit(do_not_specialize=["first", "size"])
def measure_groups(
    whole, number, lower, chosen, count, limit, index, distance, first, size, padded,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, K: tl.constexpr, ROOM: tl.constexpr,
    MEASURED: tl.constexpr, LANES: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    """Measure the points of the listed groups, LANES threads per query, and keep the K nearest.

    When ORDERED, number `[B, size]` says which of the given points stands at each place.
    """
    PARTS: tl.constexpr = QUERIES // MEASURED
    slot = (tl.program_id(0) // PARTS).to(tl.int64)
    job = first + tl.program_id(0) // PARTS
    tiles = tl.cdiv(size, QUERIES)
    set_ = (job // tiles).to(tl.int64)
    thread = tl.arange(0, MEASURED * LANES)
    lane = thread % LANES
    column = tl.program_id(0) % PARTS * MEASURED + thread // LANES
    query = job % tiles * QUERIES + column
    whole += set_ * padded * WIDTH
    if ORDERED:
        number += set_ * size
    lower += slot * (padded // GROUP) * QUERIES + column
    chosen += slot * ROOM * QUERIES + column
    found = tl.load(count + slot * QUERIES + column)
    most = tl.load(limit + slot * QUERIES + column)

    best, place = (), ()
    for _ in tl.static_range(K):
        best = best + (tl.full([MEASURED * LANES], _NOTHING, tl.int32),)
        place = place + (tl.zeros([MEASURED * LANES], tl.int32),)
    listed = tl.where(found > ROOM, 0, found)
    for turn in range(0, tl.max(listed, 0)):
        active = turn < listed
        group = tl.load(chosen + turn * QUERIES, active, 0)
        best, place = _measure(
            best, place, whole, number, query, group, active, lane, size,
            WIDTH, GROUP, LANES, K, ORDERED,
        )  # fmt: skip
    if tl.max(found, 0) > ROOM:
        for turn in range(0, tl.cdiv(size, GROUP)):
            active = (found > ROOM) & (tl.load(lower + turn * QUERIES) <= most)
            if tl.max(active.to(tl.int32), 0) > 0:
                group = tl.zeros_like(query) + turn
                best, place = _measure(
                    best, place, whole, number, query, group, active, lane, size,
                    WIDTH, GROUP, LANES, K, ORDERED,
                )  # fmt: skip

    # merge the lanes' lists by distance, then by index
    own = query
    if ORDERED:
        own = tl.load(number + query, query < size, 0)
    to = (set_ * size + own) * K + lane
    merged = best[0].to(tl.int64)
    for t in range(0, K):
        key = (best[0].to(tl.int64) << 32) + place[0]
        least = tl.min(tl.reshape(key, [MEASURED, LANES]), 1)
        least = tl.broadcast_to(least[:, None], [MEASURED, LANES])
        least = tl.reshape(least, [MEASURED * LANES])
        taken = key == least
        rest, there = (), ()
        for u in tl.static_range(K - 1):
            rest = rest + (tl.where(taken, best[u + 1], best[u]),)
            there = there + (tl.where(taken, place[u + 1], place[u]),)
        best = rest + (tl.where(taken, _NOTHING, best[K - 1]),)
        place = there + (place[K - 1],)
        merged = tl.where(lane == t % LANES, least, merged)
        if (t % LANES == LANES - 1) | (t == K - 1):
            mask = (query < size) & (lane <= t % LANES)
            bits = (merged >> 32).to(tl.int32)
            tl.store(index + to + t // LANES * LANES, merged & 0xFFFFFFFF, mask)
            tl.store(distance + to + t // LANES * LANES, bits.to(tl.float32, bitcast=True), mask)
