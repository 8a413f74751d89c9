"""Whether two graphs are the same in every bit, and a folder and its packed graph."""

import warnings

import torch

from lgdgcn.data.packing import pack
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError, LGDWarning


def differences(one, other):
    """Names of the attributes in which two graphs differ."""
    a, b = one.to_dict(), other.to_dict()
    for values in (a, b):
        values.pop("node_codes", None)  # of rare values, which a packed graph does not keep
    return [key for key in {**a, **b} if key not in a or key not in b or not equal(a[key], b[key])]


def equal(a, b):
    if not torch.is_tensor(a):
        return type(a) is type(b) and a == b
    if a.layout != b.layout or a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.layout == torch.sparse_csr:
        parts = ("crow_indices", "col_indices", "values")
        return all(torch.equal(getattr(a, part)(), getattr(b, part)()) for part in parts)
    return torch.equal(a.nan_to_num(-7), b.nan_to_num(-7))


def attempt(read):
    """What reading gives: a graph or an error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LGDWarning)
        try:
            result = read()
        except InputError as error:
            result = error
    said = [str(one.message) for one in caught if issubclass(one.category, LGDWarning)]
    return result, list(dict.fromkeys(said))


def check_same(folder, target, roles=None, encoding=None, features=None):
    """Read a folder and its packed graph; returns the graph, or the error of both."""
    expected, said = attempt(
        lambda: read_graph(
            folder, features=features, require_labels=False, roles=roles, encoding=encoding
        )
    )

    def packed():
        memory = None if any(folder.glob("*.np[yz]")) else "8GB"  # which is for tables
        graph = pack(folder, target, roles, encoding, memory=memory, overwrite=True)
        graph.check_hashes()
        return graph.to_data(features=features, require_labels=False)

    found, also_said = attempt(packed)
    if isinstance(expected, InputError):
        assert isinstance(found, InputError), f"only the folder is refused: {expected}"
        return expected, found
    assert not isinstance(found, InputError), f"only the packed graph is refused: {found}"
    assert differences(expected, found) == []
    assert sorted(also_said) == sorted(said)
    return expected, found
