"""Where the paper's text and the authors' code differ, as a table of choices."""

from dataclasses import dataclass
from typing import Literal

from lgdgcn.nn.gaussian import Precision

__all__ = ["VARIANTS", "Variant"]


@dataclass(frozen=True)
class Variant:
    """The choices that tell one reading of LGD-GCN from another.

    Attributes:
        shared_projection: One projection before the first layer instead of one in every layer.
        uniform_start: The first routing iteration gives every factor the same weight.
        normalize_last: The last routing iteration ends with unit-length units, too.
        global_layers: Which layers have a latent graph, statistics and losses.
        normalization: How the latent graph averages.
        one_sided_weight: Weight of a latent edge that only one end lists.
        precision: What stands for the inverse covariance.
        statistics: When means and covariances are updated: ``"after_step"`` from the aggregated
            units of the updated network around the old mean (Alg. 2), or ``"before_loss"`` from
            the routed units around their new mean.
    """

    shared_projection: bool
    uniform_start: bool
    normalize_last: bool
    global_layers: Literal["every", "last"]
    normalization: Literal["symmetric", "row"]
    one_sided_weight: float
    precision: Precision
    statistics: Literal["after_step", "before_loss"]


VARIANTS = {
    "paper": Variant(
        shared_projection=False,
        uniform_start=False,
        normalize_last=True,
        global_layers="every",
        normalization="symmetric",
        one_sided_weight=1.0,
        precision="exact",
        statistics="after_step",
    ),
    "released": Variant(
        shared_projection=True,
        uniform_start=True,
        normalize_last=False,
        global_layers="last",
        normalization="row",
        one_sided_weight=0.5,
        precision="released",
        statistics="before_loss",
    ),
}
