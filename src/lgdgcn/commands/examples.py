"""What ``--help`` shows at the end of each verb."""

__all__ = ["BENCH", "EXPLORE", "MEASURE", "PREDICT", "REPRODUCE", "TRAIN", "TUNE"]

TRAIN = """
Examples:

  lgdgcn train synthetic --compare gcn,disengcn,lgdgcn-paper

  lgdgcn train cora --variant released --seeds 10

  lgdgcn train my-graph/ --factors 3 --epochs 500 --set dropout=0.3 --out runs/mine

  lgdgcn train cora --out runs/cora --resume
"""

PREDICT = """
Examples:

  lgdgcn predict runs/cora-lgdgcn --proba

  lgdgcn predict runs/mine --graph new-graph/ --edges --out predictions.csv
"""

MEASURE = """
Examples:

  lgdgcn measure runs/cora-lgdgcn

  lgdgcn measure runs/mine --out mine.json
"""

EXPLORE = """
Examples:

  lgdgcn explore runs/cora-lgdgcn --open

  lgdgcn explore runs/mine --out mine.html
"""

TUNE = """
Examples:

  lgdgcn tune cora --variant released --trials 200

  lgdgcn tune my-graph/ --set factors=3

  lgdgcn tune my-graph/ --model gcn --trials 50 --space my-space.toml

  lgdgcn tune cora --storage postgresql://user@host/studies --resume
"""

BENCH = """
Examples:

  lgdgcn bench

  lgdgcn bench --size pubmed --layers 1

  lgdgcn bench --scaling --out bench/
"""

REPRODUCE = """
Examples:

  lgdgcn reproduce --quick

  lgdgcn reproduce table2 fig-k --device cuda --out runs/paper
"""
