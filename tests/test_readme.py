"""What README shows works as it stands."""

import re
from pathlib import Path

from lgdgcn import config
from lgdgcn.metrics.catalogue import HEADLINE, MEASURES

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
WORDS = {5: "five", 12: "twelve", 14: "fourteen", 16: "sixteen"}


def test_the_python_examples_run(monkeypatch, capsys, tmp_path):
    first, second = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    whole = config.preset
    monkeypatch.setattr(config, "preset", lambda *key, **kind: {**whole(*key, **kind), "epochs": 2})
    names = {}
    exec(first, names)
    assert "(1000, 4, 16) (40172, 4)" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    exec(second.replace("epochs=50", "epochs=2"), names)
    assert "(2, 64) " in capsys.readouterr().out
    assert (tmp_path / "page.html").is_file()


def test_pictures_and_files_exist():
    root = Path(__file__).parents[1]
    for page in (root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).is_file(), f"{page.name}: {link}"
    tree = README.split("```\nsrc/lgdgcn/\n")[1].split("```")[0]
    for line in tree.splitlines():
        if line.startswith("  ") and not line.startswith("tests"):
            for name in line.strip().split("  ")[:2]:
                if name.endswith(("/", ".py")):
                    assert (root / "src/lgdgcn" / name).exists(), name


def test_the_headline_table_is_that_of_the_results():
    results = (Path(__file__).parents[1] / "docs/results.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:Cora|Citeseer|Pubmed|Synthetic).*$", README, re.MULTILINE)
    assert len(rows) >= 4
    assert all(row in results for row in rows)


def test_counts_are_those_of_the_code_and_the_results():
    text = " ".join(README.split())
    assert f"`measure` gives {WORDS[len(MEASURES)]} numbers" in text
    assert f"`train`, `reproduce` and `tune` report {WORDS[len(HEADLINE)]} of them" in text
    results = (Path(__file__).parents[1] / "docs/results.md").read_text(encoding="utf-8")
    claims = re.findall(r"Of (\d+ claims .*?)\.", results)
    assert len(claims) == 2
    assert all(f"of {sentence}" in text for sentence in claims)


def test_the_figures_of_the_results_exist():
    docs = Path(__file__).parents[1] / "docs"
    results = (docs / "results.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((figures/[^)]+)\)", results)
    assert links
    for link in links:
        assert (docs / link).is_file(), link
