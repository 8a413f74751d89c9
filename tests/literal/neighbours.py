"""Nearest neighbours and their union as loops, straight from the definitions."""

import numpy as np


def nearest(z, k):
    z = np.asarray(z, dtype=np.float64)
    index = np.zeros((*z.shape[:2], k), dtype=np.int64)
    distance = np.zeros(index.shape)
    for b, points in enumerate(z):
        for i, point in enumerate(points):
            others = [
                (float(sum((point - other) ** 2)), j) for j, other in enumerate(points) if j != i
            ]
            for place, (square, j) in enumerate(sorted(others)[:k]):
                index[b, i, place], distance[b, i, place] = j, square
    return index, distance


def symmetrize(index, keep=None):
    sets, size, k = index.shape
    listed = {
        (b * size + i, b * size + int(index[b, i, e]))
        for b in range(sets)
        for i in range(size)
        for e in range(k)
        if (keep is None or keep[b, i, e]) and int(index[b, i, e]) != i
    }
    pairs = sorted(listed | {(j, i) for i, j in listed})
    row_ptr = [sum(i < row for i, _ in pairs) for row in range(sets * size + 1)]
    mutual = [(i, j) in listed and (j, i) in listed for i, j in pairs]
    return row_ptr, [j for _, j in pairs], mutual
