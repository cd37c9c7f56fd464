"""The bundled tables have the counts they should; the simulations have the quantiles they say."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from cqrf.datasets import (
    load_boston_housing,
    load_pbc,
    make_aft,
    make_dependent_censoring,
    make_heteroscedastic,
    make_sine,
)

GENERATORS = [make_aft, make_heteroscedastic, make_sine, make_dependent_censoring]
MANY = 200_000
TAUS = np.array([0.1, 0.5, 0.9])


def censored_share(y):
    return 1 - y["event"].mean()


def narrow(generator, n_samples, seed=0):
    """Simulate with the covariates that matter and one that does not."""
    size = {} if generator is make_sine else {"n_features": 3}
    return generator(n_samples, **size, random_state=seed)


# Tables


def test_pbc_has_every_patient():
    pbc = load_pbc()
    assert pbc.X.shape == (418, 17)
    assert pbc.X.dtype == np.float64
    assert pbc.y["event"].sum() == 161
    assert pbc.y["time"][:2].tolist() == [400.0, 4500.0]
    assert np.isnan(pbc.X).any(axis=1).sum() == 142
    assert pbc.latent is None


def test_pbc_complete_cases_are_the_papers():
    pbc = load_pbc(complete_cases=True)
    assert pbc.X.shape == (276, 17)
    assert not np.isnan(pbc.X).any()
    assert round(100 * censored_share(pbc.y), 1) == 59.8


def test_pbc_covariates_leave_out_the_response():
    pbc = load_pbc()
    assert len(pbc.feature_names) == 17
    assert not {"id", "time", "status"} & set(pbc.feature_names)
    sex = pbc.X[:, pbc.feature_names.index("sex")]
    assert (np.sum(sex == 0), np.sum(sex == 1)) == (374, 44)


@pytest.mark.parametrize("complete_cases", [False, True])
def test_pbc_frame_holds_the_same_values(complete_cases):
    pytest.importorskip("pandas")
    plain = load_pbc(complete_cases=complete_cases)
    framed = load_pbc(complete_cases=complete_cases, as_frame=True)
    assert tuple(framed.X.columns) == plain.feature_names
    assert set(framed.X["sex"]) == {"f", "m"}
    numbers = framed.X.assign(sex=framed.X["sex"].map({"f": 0.0, "m": 1.0}))
    np.testing.assert_array_equal(numbers.to_numpy(dtype=float), plain.X)
    np.testing.assert_array_equal(framed.y, plain.y)


def test_pbc_frame_is_missing_where_the_file_is():
    pytest.importorskip("pandas")
    missing = load_pbc(as_frame=True).X.isna().sum()
    expected = {"trt": 106, "ascites": 106, "hepato": 106, "spiders": 106, "chol": 134}
    expected |= {"copper": 108, "alk.phos": 106, "ast": 106, "trig": 136}
    expected |= {"platelet": 11, "protime": 2, "stage": 6}
    assert missing[missing > 0].to_dict() == expected


def test_boston_housing_is_uncensored_unless_asked():
    boston = load_boston_housing()
    assert boston.X.shape == (506, 13)
    assert "medv" not in boston.feature_names
    assert boston.y["event"].all()
    np.testing.assert_array_equal(boston.y["time"], boston.latent)
    assert boston.latent.mean() == pytest.approx(22.5328, abs=1e-4)
    assert tuple(boston.X[0, :3]) == (0.00632, 18.0, 2.31)


def test_boston_housing_censored_by_twice_the_mean():
    tables = [load_boston_housing(censored=True, random_state=seed) for seed in range(100)]
    latent = load_boston_housing().latent
    expected = np.mean(1 - np.exp(-latent / (2 * latent.mean())))
    # One table's share has a standard deviation of about .02, the mean of 100 of .002.
    assert np.mean([censored_share(t.y) for t in tables]) == pytest.approx(expected, abs=0.01)
    for table in tables[:3]:
        np.testing.assert_array_equal(table.latent, latent)
        np.testing.assert_array_equal(table.y["event"], table.y["time"] == latent)
        assert np.all(table.y["time"] <= latent)


def test_boston_housing_frame_and_seed():
    pytest.importorskip("pandas")
    framed = load_boston_housing(censored=True, random_state=3, as_frame=True)
    plain = load_boston_housing(censored=True, random_state=3)
    assert tuple(framed.X.columns) == plain.feature_names
    np.testing.assert_array_equal(framed.X.to_numpy(), plain.X)
    np.testing.assert_array_equal(framed.y, plain.y)


@pytest.mark.parametrize("load", [load_pbc, load_boston_housing])
def test_tables_without_pandas(load, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(load().X, np.ndarray)
    with pytest.raises(ImportError, match="as_frame=False"):
        load(as_frame=True)


def test_tables_cannot_be_changed_by_accident():
    with pytest.raises(AttributeError):
        load_pbc().X = None


def test_importing_datasets_brings_no_heavy_package():
    code = (
        "import sys, cqrf; before = set(sys.modules); import cqrf.datasets;"
        "print(*{'pandas', 'sklearn', 'numba'} & (set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


# Simulations


@pytest.mark.parametrize(
    ("generator", "shape"),
    [
        (make_aft, (1000, 20)),
        (make_heteroscedastic, (2000, 40)),
        (make_sine, (300, 1)),
        (make_dependent_censoring, (2000, 20)),
    ],
)
def test_default_sizes(generator, shape):
    X, y, latent, quantile = generator(random_state=0)
    assert X.shape == shape
    assert X.dtype == latent.dtype == np.float64
    assert y.dtype == np.dtype([("event", "?"), ("time", "<f8")])
    assert len(y) == len(latent) == shape[0]
    assert quantile(X, 0.5).shape == (shape[0],)
    assert quantile(X, [0.5]).shape == (shape[0], 1)
    assert quantile(X, TAUS).shape == (shape[0], 3)


@pytest.mark.parametrize(
    ("generator", "low", "high"),
    [
        (make_aft, 0, 2),
        (make_heteroscedastic, -1, 1),
        (make_sine, 0, 2 * np.pi),
        (make_dependent_censoring, 0, 2),
    ],
)
def test_covariates_fill_their_range(generator, low, high):
    X = narrow(generator, 20_000).X
    width = high - low
    assert low <= X.min() < low + 0.001 * width
    assert high - 0.001 * width < X.max() <= high


# The shares are integrals over the models; their Monte Carlo error at this size is .001.
@pytest.mark.parametrize(
    ("generator", "share"),
    [
        (make_aft, 0.2234),
        (make_heteroscedastic, 0.1806),
        (make_sine, 0.2578),
        (make_dependent_censoring, 0.3933),
    ],
)
def test_censored_share(generator, share):
    assert censored_share(narrow(generator, MANY).y) == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("generator", GENERATORS)
def test_observed_is_the_smaller_of_two_times(generator):
    _, y, latent, _ = narrow(generator, 2000)
    np.testing.assert_array_equal(y["time"][y["event"]], latent[y["event"]])
    assert np.all(y["time"][~y["event"]] < latent[~y["event"]])


@pytest.mark.parametrize("generator", GENERATORS)
def test_latent_falls_below_its_quantile_with_probability_tau(generator):
    """At any x1, not only on average: the share below is counted in ten slices of x1."""
    X, _, latent, quantile = narrow(generator, MANY)
    below = latent[:, np.newaxis] <= quantile(X, TAUS)
    slices = np.array_split(np.argsort(X[:, 0]), 10)
    shares = np.array([below[rows].mean(axis=0) for rows in slices])
    error = np.sqrt(TAUS * (1 - TAUS) / (MANY / 10))
    assert np.all(np.abs(shares - TAUS) < 4.5 * error)


def test_quantiles_in_closed_form():
    z = 1.2815515655446004
    aft, hetero, sine, dependent = (narrow(g, 5).quantile for g in GENERATORS)
    for quantile in (aft, dependent):
        np.testing.assert_allclose(quantile([[1.5, 0.2]], 0.9), np.exp(1.5 + 0.3 * z))
    np.testing.assert_allclose(hetero([[0.0], [0.1]], 0.1), [10 - z, 10 - 2 * z])
    np.testing.assert_allclose(
        sine([[np.pi / 2]], [0.1, 0.5, 0.9]), [[3.5 - 0.3 * z, 3.5, 3.5 + 0.3 * z]]
    )


@pytest.mark.parametrize("generator", GENERATORS)
def test_quantile_survives_pickling_and_checks_its_input(generator):
    X, _, _, quantile = narrow(generator, 5)
    again = pickle.loads(pickle.dumps(quantile))
    np.testing.assert_array_equal(again(X, TAUS), quantile(X, TAUS))
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile(X, 1.2)
    with pytest.raises(ValueError, match="two dimensions"):
        quantile(X[:, 0], 0.5)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("source", [int, np.random.default_rng, np.random.RandomState])
def test_same_seed_same_data(generator, source):
    first, second = narrow(generator, 50, source(7)), narrow(generator, 50, source(7))
    for a, b in zip(first[:3], second[:3], strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.X, narrow(generator, 50, source(8)).X)


def test_a_source_moves_on_between_calls():
    source = np.random.default_rng(7)
    assert not np.array_equal(
        make_aft(50, random_state=source).X, make_aft(50, random_state=source).X
    )


@pytest.mark.parametrize("generator", [make_aft, make_heteroscedastic, make_sine])
def test_censoring_rate(generator):
    none, some, more = (
        generator(5000, censoring_rate=rate, random_state=0).y for rate in (0.0, 0.05, 0.5)
    )
    assert none["event"].all()
    assert 0 < censored_share(some) < censored_share(more)
    with pytest.raises(ValueError, match="censoring_rate"):
        generator(censoring_rate=-1.0)


def test_aft_ignores_its_noise_when_it_censors():
    X, y, _, _ = make_aft(MANY, 3, random_state=0)
    low, high = X[:, 1] < 0.2, X[:, 1] > 1.8
    assert censored_share(y[low]) == pytest.approx(censored_share(y[high]), abs=0.02)


def test_dependent_censoring_follows_x2_and_the_latent_time_does_not():
    X, y, latent, quantile = make_dependent_censoring(MANY, 3, random_state=0)
    low, high = X[:, 1] < 0.1, X[:, 1] > 1.9
    assert censored_share(y[low]) == pytest.approx(0.86, abs=0.02)
    assert censored_share(y[high]) == pytest.approx(0.06, abs=0.02)
    below = latent <= quantile(X, 0.5)
    assert below[low].mean() == pytest.approx(below[high].mean(), abs=0.03)
    assert abs(np.corrcoef(np.log(latent), X[:, 1])[0, 1]) < 0.01
    # Exponential: the rate of censoring is its count over the time at risk.
    means = [y["time"][rows].sum() / (~y["event"][rows]).sum() for rows in (low, high)]
    np.testing.assert_allclose(means, 7.4 * np.exp(2.0 * np.array([-0.95, 0.95])), rtol=0.1)


@pytest.mark.parametrize("generator", [make_aft, make_heteroscedastic, make_dependent_censoring])
def test_too_few_rows_or_columns(generator):
    with pytest.raises(ValueError, match="n_samples"):
        generator(0)
    with pytest.raises(ValueError, match="n_features"):
        generator(10, 0)


def test_dependent_censoring_needs_two_covariates():
    with pytest.raises(ValueError, match="at least 2"):
        make_dependent_censoring(10, 1)
