"""The comparison on labelled data: its kinds, and what is measured of each."""

import csv

import numpy as np
import pytest
from calibration import labelled
from calibration.labelled_files import MissingDataError, sampled
from calibration.labelled_kinds import Kind
from calibration.labelled_sets import ALL
from calibration.peers import suitable

TABLE = "docs/number-of-clusters.csv"


def three_blobs():
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0.0, 5.0], [20.0, 0.0, 5.0], [0.0, 20.0, 5.0]])
    classes = np.repeat([0, 1, 2], 40)
    return means[classes] + rng.normal(size=(120, 3)) * [1.0, 1.0, 0.0], classes


def no_file():
    raise MissingDataError("there is no file")


def test_no_kind_has_the_name_of_another():
    names = [(kind.heading, kind.name) for kind in ALL]
    assert len(set(names)) == len(names)


def test_table_in_the_guide_has_the_kinds_of_the_sets(request):
    with open(request.config.rootpath / TABLE) as file:
        found = [(row["set"], row["data"], row["family"]) for row in csv.DictReader(file)]
    assert found == [(kind.heading, kind.name, kind.family) for kind in ALL]


def test_constant_columns_are_left_out():
    X, classes = Kind("", "blobs", "auto", three_blobs).rows()
    assert X.shape == (120, 2)
    assert classes.shape == (120,)


def test_rows_and_classes_are_sampled_together():
    X = np.arange(50.0)[:, None]
    rows, classes = sampled(X, np.arange(50), "word", most=20)
    np.testing.assert_array_equal(rows[:, 0], classes)
    assert len(np.unique(classes)) == 20
    np.testing.assert_array_equal(sampled(X, np.arange(50), "word", most=20)[1], classes)


def test_all_methods_find_distant_blobs():
    row = labelled.measure(Kind("", "blobs", "auto", three_blobs))
    assert (row["rows"], row["columns"], row["classes"], row["found"]) == (120, 2, 3, 3)
    for method in labelled.methods_of([row]):
        assert row[method] > 0.95, method


def test_kind_without_its_file_is_left_out_and_named(capsys):
    assert labelled.measure_all([Kind("fifth", "lost", "auto", no_file)], False) == []
    assert "fifth, lost: left out, there is no file" in capsys.readouterr().out


def test_what_is_not_measured_stays_in_the_table(tmp_path):
    first, second = (
        {"set": kind.heading, "data": kind.name, "predictive": 0.5, "hdbscan": 0.25}
        for kind in ALL[:2]
    )
    path = tmp_path / "table.csv"
    labelled.write_table([first, second], path)
    measured = {"set": first["set"], "data": first["data"], "predictive": 0.75}
    assert labelled.with_known([measured], path) == [first | {"predictive": 0.75}, second]


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_roots_of_counts_suit_other_methods(family):
    X = np.array([[1.0, 3.0], [4.0, 12.0]])
    expected = X if family == "poisson" else [[0.25, 0.75], [0.25, 0.75]]
    np.testing.assert_allclose(suitable(X, family) ** 2, expected)
