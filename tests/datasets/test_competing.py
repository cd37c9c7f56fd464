"""Competing risks: the simulation has the incidences it says, the tables have their causes."""

import numpy as np
import pytest

from cqrf.datasets import load_mgus2, load_pbc, make_competing_risks

MANY = 200_000


def share_by(simulation, times, cause):
    """Share of the rows with a latent event of the cause by each time."""
    is_early = simulation.latent[:, np.newaxis] <= times
    return (is_early & (simulation.latent_cause == cause)[:, np.newaxis]).mean(axis=0)


@pytest.mark.parametrize("cause", [1, 2])
def test_incidences_are_those_of_the_latent_times(cause):
    simulation = make_competing_risks(MANY, 3, random_state=0)
    times = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    for side in (False, True):  # in halves of the covariate space
        half = (simulation.X[:, [0, 1, 2]] > [1, 1, 1]).sum(axis=1) >= 2
        rows = half == side
        part = simulation._replace(
            latent=simulation.latent[rows], latent_cause=simulation.latent_cause[rows]
        )
        expected = simulation.incidence(simulation.X[rows], times, cause=cause).mean(axis=0)
        np.testing.assert_allclose(share_by(part, times, cause), expected, rtol=0, atol=0.006)


def test_both_causes_at_once_add_up_to_one():
    simulation = make_competing_risks(50, random_state=0)
    both = simulation.incidence(simulation.X, [1.0, 3.0, np.inf])
    assert both.shape == (50, 2, 3)
    for place, cause in enumerate((1, 2)):
        np.testing.assert_array_equal(
            both[:, place], simulation.incidence(simulation.X, [1.0, 3.0, np.inf], cause=cause)
        )
    np.testing.assert_allclose(both[:, :, -1].sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert (simulation.incidence(simulation.X, [-1.0, 0.0]) == 0).all()


def test_quantiles_invert_the_incidence():
    X, *_, incidence, quantile = make_competing_risks(200, random_state=0)
    levels = np.array([0.1, 0.3, 0.6])
    for cause in (1, 2):
        found = quantile(X, levels, cause=cause)
        most = incidence(X, [np.inf], cause=cause)
        np.testing.assert_array_equal(np.isinf(found), most <= levels)
        for row in range(len(X)):
            known = np.isfinite(found[row])
            at = incidence(X[[row]], found[row][known], cause=cause)[0]
            np.testing.assert_allclose(at, levels[known], rtol=0, atol=1e-12)
    assert quantile(X, 0.1, cause=1).shape == (200,)


def test_causes_have_their_own_covariates():
    _, _, _, _, incidence, _ = make_competing_risks(1, random_state=0)
    rows = [[0.5, 1.0, 1.0], [1.5, 1.0, 1.0], [0.5, 1.5, 1.0]]
    first, second = incidence(rows, [2.0])[:, :, 0].T
    assert first[1] < first[0] == first[2]
    assert second[2] > second[0] == second[1]


def test_rows_are_censored_as_said():
    simulation = make_competing_risks(MANY, 3, random_state=0)
    y = simulation.y
    assert y["event"].mean() == pytest.approx(0.64, abs=0.005)
    shares = [y["event"][part].mean() for part in (simulation.X[:, 1] <= 1, simulation.X[:, 1] > 1)]
    assert shares[0] < shares[1] - 0.1
    np.testing.assert_array_equal(y["cause"] > 0, y["event"])
    seen = y["event"]
    np.testing.assert_array_equal(y["cause"][seen], simulation.latent_cause[seen])
    np.testing.assert_array_equal(y["time"][seen], simulation.latent[seen])
    again = make_competing_risks(MANY, 3, random_state=0)
    np.testing.assert_array_equal(again.y, y)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: make_competing_risks(10, 2), "n_features at least 3; found 10 and 2"),
        (lambda s: s.incidence([[1.0, 1.0]], [1.0]), r"3 columns; found shape \(1, 2\)"),
        (lambda s: s.incidence(s.X, [np.nan]), "without NaN"),
        (lambda s: s.incidence(s.X, [1.0], cause=3), "cause=3 is unknown; choose 1 or 2"),
        (lambda s: s.quantile(s.X, 1.0, cause=1), "between 0 and 1"),
    ],
)
def test_mistakes_are_named(call, said):
    with pytest.raises(ValueError, match=said):
        call(make_competing_risks(5, 3, random_state=0))


def test_mgus2_has_every_patient_and_both_causes():
    table = load_mgus2()
    assert table.X.shape == (1384, 5)
    assert table.feature_names == ("age", "sex", "hgb", "creat", "mspike")
    causes, counts = np.unique(table.y["cause"], return_counts=True)
    assert dict(zip(causes.tolist(), counts.tolist())) == {"": 409, "death": 860, "malignancy": 115}
    assert np.isnan(table.X).any(axis=1).sum() == 46
    assert table.y["time"][:3].tolist() == [30.0, 25.0, 46.0]
    assert table.X[0].tolist() == [88.0, 0.0, 13.1, 1.3, 0.5]
    frame = load_mgus2(as_frame=True).X
    assert frame["sex"].value_counts().to_dict() == {"M": 753, "F": 631}
    np.testing.assert_array_equal(frame["creat"].to_numpy(), table.X[:, 3])


def test_pbc_tells_transplants_from_deaths_if_asked():
    plain, told = load_pbc(), load_pbc(causes=True)
    causes, counts = np.unique(told.y["cause"], return_counts=True)
    assert dict(zip(causes.tolist(), counts.tolist())) == {"": 232, "death": 161, "transplant": 25}
    np.testing.assert_array_equal(told.y["cause"] == "death", plain.y["event"])
    np.testing.assert_array_equal(told.X, plain.X)
