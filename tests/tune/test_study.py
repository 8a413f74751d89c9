"""Studies: new ones, ones that go on, and searches that differ."""

from pathlib import Path

import optuna
import pytest

from lgdgcn.errors import InputError
from lgdgcn.search.study import check_name, open_study
from tune.processes import SPACE, opened


@pytest.fixture
def storage(tmp_path) -> str:
    return str(tmp_path / "study.db")


def refused(storage: object, match: str, *, name: str = "study", resume: bool = False) -> str:
    with pytest.raises(InputError, match=match) as caught:
        open_study(name, str(storage), space=SPACE, resume=resume)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# The same study, or another


def test_a_study_goes_on_where_it_was(storage):
    study = opened(storage, resume=False)
    study.tell(study.ask(), 0.5)
    again = opened(storage)
    assert [t.value for t in again.trials] == [0.5]
    assert again.direction == optuna.study.StudyDirection.MAXIMIZE
    assert again.user_attrs["search"] == SPACE


def test_resume_is_needed_for_an_old_study_and_refused_for_a_new_one(storage):
    refused(storage, "no study study in .*study.* leave out --resume", resume=True)
    opened(storage, resume=False)
    refused(storage, "already exists in .*: add --resume to go on, or choose another --storage")
    refused(storage, "no study other in", name="other", resume=True)


def test_refused_resume_leaves_no_file(tmp_path):
    refused(tmp_path / "new" / "study.db", "no study", resume=True)
    refused(f"sqlite:///{tmp_path}/new/study.db", "no study", resume=True)
    assert not list(tmp_path.iterdir())


def test_another_search_is_refused_with_what_differs(storage):
    opened(storage, resume=False)
    other = {"model": "gat", "space": {"x": (0, 2)}, "seeds": 3}
    with pytest.raises(InputError) as caught:
        open_study("study", storage, space=other, resume=True)
    for part in ('model: "gcn" -> "gat"', "space.x: [0, 1] -> [0, 2]", "seeds: (absent) -> 3"):
        assert part in str(caught.value)


def test_lists_and_tuples_are_the_same_search(storage):
    open_study("study", storage, space={"x": (0, 1), "path": Path("a")}, resume=False)
    open_study("study", storage, space={"x": [0, 1], "path": "a"}, resume=True)


def test_study_of_another_program_is_refused(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=address, study_name="study")
    study.tell(study.ask(), 1.0)
    refused(address, "not made by lgdgcn tune", resume=True)


def test_start_killed_before_the_search_was_noted(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=address, study_name="study", direction="maximize")
    assert opened(address).user_attrs["search"] == SPACE


@pytest.mark.parametrize("name", ["", "a/b", "ä", "a b", "x" * 65, "a\n", "../up", "a;b", "a\0"])
def test_names_outside_the_alphabet(name, tmp_path):
    with pytest.raises(InputError, match="1 to 64 letters"):
        open_study(name, str(tmp_path / "study.db"), space=SPACE, resume=False)
    assert not list(tmp_path.iterdir())


def test_names_inside_the_alphabet():
    for name in ("a", "Cora-lgd_gcn.v2", "x" * 64):
        check_name(name)


def test_optuna_is_quiet(storage, capfd, recwarn):
    study = opened(storage, resume=False)
    study.tell(study.ask(), 1.0)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
