"""Neighbours drawn one after the other, in plain Python."""


def mix(x):
    x &= 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)


def sample(row_ptr, nodes, fan_out, key):
    """The drawn entries of every node's row, a list each."""
    drawn = []
    for node in nodes:
        start, stop = row_ptr[node], row_ptr[node + 1]
        degree = stop - start
        if not fan_out or degree <= fan_out:
            drawn.append(list(range(start, stop)))
            continue
        own = mix((node & 0xFFFFFFFF) ^ (key & 0xFFFFFFFF))
        own = mix(own + (key >> 32) + (node >> 32) * 0x9E3779B9)
        chosen = set()
        for draw, last in enumerate(range(degree - fan_out, degree)):
            value = (mix(own + 0x9E3779B9 * (draw + 1)) * (last + 1)) >> 32
            chosen.add(last if value in chosen else value)
        drawn.append(sorted(start + value for value in chosen))
    return drawn
