"""What the paper claims of its tables and figures, what we do, and how each claim is checked."""

from dataclasses import dataclass

from lgdgcn.reproduce.figure_checks import (
    best_around,
    more_in_blocks,
    rises_then_falls,
    stable_then_falls,
)
from lgdgcn.reproduce.finding import Check, together
from lgdgcn.reproduce.table_checks import (
    attains,
    beats,
    finds_factors,
    lead_shrinks,
    reaches,
    routes,
)

__all__ = ["CLAIMS", "Claim"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, one it rests on or one of ours, and its check.

    Attributes:
        exhibit: Name of the table or figure whose numbers decide.
        text: The claim.
        where: Where in the paper, or that it is ours.
        check: What decides.
    """

    exhibit: str
    text: str
    where: str
    check: Check

    @property
    def is_ours(self) -> bool:
        """Whether it is about what the paper does not have."""
        return self.where == OURS


OURS = "ours"
STANDARD, RANDOM = "Standard split", "Random splits"
SHARP = "Sharp LGD-GCN"
PUBLISHED, GENERATED = "Micro-F1, published graphs", "Micro-F1, our generator"
OTHERS = ("MLP", "MoNet", "GCN", "GAT", "APPNP", "GCNII", "DisenGCN")
DEGREE, FACTORS = "{} neighbours", "{} factors"
FIRST_LAYER, SECOND_LAYER = "LGD-GCN (1st layer)", "LGD-GCN (2nd layer)"
FOUR, EIGHT = "Four factors", "Eight factors"
F1, ATTRIBUTION = "Micro-F1", "Edge attribution"
BLUNT = ("LGD-GCN (paper)", "LGD-GCN (released)")
SHARPENED = ("LGD-GCN (paper), τ = 0.1", "LGD-GCN (released), τ = 0.1")


def finds(label: str) -> Check:
    """Edges go to their factors as often as we aimed for."""
    return together(
        attains(FOUR, label, ATTRIBUTION, 60, FOUR), attains(EIGHT, label, ATTRIBUTION, 45, EIGHT)
    )


def improves(label: str, *rivals: str, columns: tuple[str, ...] = (F1, ATTRIBUTION)) -> Check:
    """A row of the sharp variant's table is above another one, on both graphs."""
    return together(
        *(beats(group, label, *rivals, columns=columns, case=f"{group}, {{}}")
          for group in (FOUR, EIGHT))
    )  # fmt: skip


CLAIMS = [
    Claim("table1", "DisenGCN beats GCN at every neighbourhood size (Micro-F1).",
          "Table 1", beats("Micro-F1", "DisenGCN", "GCN", case=DEGREE)),
    Claim("table1", "Its lead shrinks with the neighbourhood, from about 5 points to 1.",
          "Table 1", lead_shrinks("Micro-F1", "DisenGCN", "GCN", "40", "6")),
    Claim("table1", "LGD-GCN makes up for what DisenGCN lacks on sparse graphs.",
          "argued in “Limitations of DisenGCN”, measured here",
          beats("Micro-F1", "LGD-GCN", "DisenGCN", columns=("10", "6"), case=DEGREE)),
    Claim("table2", "LGD-GCN beats DisenGCN on the standard split.",
          "Table 2", beats(STANDARD, "LGD-GCN", "DisenGCN")),
    Claim("table2", "LGD-GCN beats DisenGCN on random splits.",
          "Table 2", beats(RANDOM, "LGD-GCN", "DisenGCN")),
    Claim("table2", "LGD-GCN is the best of all on the standard split, APPNP and GCNII included.",
          "Table 2; APPNP and GCNII are ours", beats(STANDARD, "LGD-GCN", *OTHERS)),
    Claim("table2", "LGD-GCN is the best of all on random splits, APPNP and GCNII included.",
          "Table 2; APPNP and GCNII are ours", beats(RANDOM, "LGD-GCN", *OTHERS)),
    Claim("table2", "LGD-GCN reaches the accuracy printed for the standard split.",
          "Table 2", reaches(STANDARD, "LGD-GCN")),
    Claim("table2", "LGD-GCN reaches the accuracy printed for random splits.",
          "Table 2", reaches(RANDOM, "LGD-GCN")),
    Claim("table2", "DisenGCN reaches the accuracy quoted for the standard split.",
          "Table 2, quoted there from other work", reaches(STANDARD, "DisenGCN")),
    Claim("table3", "LGD-GCN beats DisenGCN for every number of factors (published graphs).",
          "Table 3", beats(PUBLISHED, "LGD-GCN", "DisenGCN", case=FACTORS)),
    Claim("table3", "LGD-GCN beats DisenGCN for every number of factors (our generator).",
          "Table 3", beats(GENERATED, "LGD-GCN", "DisenGCN", case=FACTORS)),
    Claim("table3", "DisenGCN beats GCN and MLP for every number of factors.",
          "Table 3", beats(PUBLISHED, "DisenGCN", "GCN", "MLP", case=FACTORS)),
    Claim("table3", "LGD-GCN reaches the Micro-F1 printed, taking the m highest-scoring labels.",
          "Table 3", reaches(PUBLISHED, "LGD-GCN", case=FACTORS)),
    Claim("table3", "LGD-GCN reaches the Micro-F1 printed, taking labels above 0.5.",
          "Table 3", reaches("Micro-F1 at 0.5, published graphs", "LGD-GCN", case=FACTORS)),
    Claim("table3", "LGD-GCN gives edges to the factors that made them.",
          "the premise of disentangling, measured here",
          finds_factors(PUBLISHED, "LGD-GCN", case=FACTORS)),
    Claim("table3", "Sharp LGD-GCN beats LGD-GCN for every number of factors (published graphs).",
          OURS, beats(PUBLISHED, SHARP, "LGD-GCN", case=FACTORS)),
    Claim("table3", "Sharp LGD-GCN beats LGD-GCN for every number of factors (our generator).",
          OURS, beats(GENERATED, SHARP, "LGD-GCN", case=FACTORS)),
    Claim("table3", "Sharp LGD-GCN gives edges to the factors that made them.",
          OURS, finds_factors(PUBLISHED, SHARP, case=FACTORS)),
    Claim("table4", "The space loss helps.", "Table 4", beats(STANDARD, "space", "none")),
    Claim("table4", "The diversity loss helps, without latent graphs.",
          "Table 4", beats(STANDARD, "space + diversity", "space")),
    Claim("table4", "The diversity loss helps, with latent graphs.",
          "Table 4, except on Pubmed", beats(STANDARD, "all", "space + latent graphs")),
    Claim("table4", "Latent graphs help, without the diversity loss.",
          "Table 4", beats(STANDARD, "space + latent graphs", "space")),
    Claim("table4", "Latent graphs help, with the diversity loss.",
          "Table 4", beats(STANDARD, "all", "space + diversity")),
    Claim("table4", "All parts together beat none of them.",
          "Table 4", beats(STANDARD, "all", "none")),
    Claim("table4", "Routing matters: uniform routing does worse.",
          "the premise of disentangling, measured here",
          beats(STANDARD, "all", "all, uniform routing")),
    Claim("table4", "Routing happens: edges are given to some factors rather than to all alike.",
          "the premise of disentangling, measured here", routes(STANDARD, "all")),
    Claim("table4", "Latent graphs matter at test time, not only in training.",
          "implied by the model, measured here",
          beats(STANDARD, "all", "all, latent graphs off at test time")),
    Claim("sharp", "Sharp routing gives edges to the factors that made them: at least 60 % of them "
          "with four factors, 45 % with eight.", OURS, finds("Sharp")),
    Claim("sharp", "With four factors these are even 80 %.",
          OURS, attains(FOUR, "Sharp", ATTRIBUTION, 80, FOUR)),
    Claim("sharp", "The paper's and the released variant reach 60 and 45 %, too.",
          OURS, together(*map(finds, BLUNT))),
    Claim("sharp", "Its Micro-F1 is above the best of the paper's and the released variant.",
          OURS, improves("Sharp", *BLUNT, *SHARPENED, columns=(F1,))),
    Claim("sharp", "More edges go to their factors than in the best of these.",
          OURS, improves("Sharp", *BLUNT, *SHARPENED, columns=(ATTRIBUTION,))),
    Claim("sharp", "A sharper softmax alone (τ = 0.1) does it: 60 and 45 % of the edges.",
          OURS, together(*map(finds, SHARPENED))),
    Claim("sharp", "A sharper softmax alone brings more edges to their factors than τ = 1.",
          OURS, together(*(improves(sharpened, blunt, columns=(ATTRIBUTION,))
                           for sharpened, blunt in zip(SHARPENED, BLUNT, strict=True)))),
    Claim("sharp", "The edge loss matters.",
          OURS, improves("Sharp", "Sharp without edge loss")),
    Claim("sharp", "The label groups matter.",
          OURS, improves("Sharp", "Sharp without label groups")),
    Claim("sharp", "Sharp probabilities matter: τ = 1 does worse.",
          OURS, improves("Sharp", "Sharp, τ = 1")),
    Claim("sharp", "More than one round of votes matters.",
          OURS, improves("Sharp", "Sharp, one round of votes")),
    Claim("sharp", "The paper's space loss improves it further.",
          OURS, improves("Sharp with space loss", "Sharp")),
    Claim("sharp", "The paper's diversity loss improves it further.",
          OURS, improves("Sharp with diversity loss", "Sharp")),
    Claim("sharp", "The paper's latent graphs improve it further.",
          OURS, improves("Sharp with latent graphs", "Sharp")),
    Claim("sharp", "It need not know the number of factors: 60 and 45 % with twice the channels.",
          OURS, finds("Sharp, twice the channels")),
    Claim("fig-correlation", "Features of LGD-GCN are more block-wise than those of DisenGCN.",
          "figure of the features' correlation",
          more_in_blocks(FIRST_LAYER, "DisenGCN (1st layer)")),
    Claim("fig-correlation", "Blocks are denser in the second layer than in the first.",
          "figure of the features' correlation", more_in_blocks(SECOND_LAYER, FIRST_LAYER)),
    Claim("fig-correlation", "Latent graphs make the blocks stronger.",
          "figure of the features' correlation",
          more_in_blocks(SECOND_LAYER, "LGD-GCN without latent graphs (2nd layer)")),
    Claim("fig-lambda", "Accuracy on Cora goes up with λ_space first, then drops.",
          "figure of λ_space", rises_then_falls("λ_space on Cora")),
    Claim("fig-lambda", "Accuracy on Citeseer goes up with λ_space first, then drops.",
          "figure of λ_space, shown only", rises_then_falls("λ_space on Citeseer")),
    Claim("fig-lambda", "λ_div on Citeseer is robust up to 0.1; beyond it accuracy drops.",
          "figure of λ_div", stable_then_falls("λ_div on Citeseer", 0.1)),
    Claim("fig-k", "Accuracy on Cora is stable for k up to 8, then deteriorates.",
          "figure of k", stable_then_falls("k on Cora", 8)),
    Claim("fig-k", "Accuracy on Citeseer is stable for k up to 10, then deteriorates.",
          "figure of k", stable_then_falls("k on Citeseer", 10)),
    Claim("fig-factors", "The best number of channels is around eight, the true one.",
          "figure of M", best_around("M on the graph with eight", 6, 10)),
]  # fmt: skip
