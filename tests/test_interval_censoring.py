"""Forests of intervals: what the estimator promises, and what it refuses."""

import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cqrf import (
    BeyondFollowUpWarning,
    CensoredQuantileForest,
    ModelFileError,
    UnidentifiedQuantileWarning,
    censored,
    interval,
    metrics,
    tune,
)
from cqrf._model.file import read_model_file
from cqrf.calibration import assess_calibration
from cqrf.conformal import ConformalForest
from cqrf.effects import CensoredTreatmentForest
from cqrf.evaluation import evaluate
from cqrf.report import write_report
from oracles.intervals import em, violation
from support.commands import FAST, call, refused

mpl.use("agg")
INF = np.inf
LEVELS = [0.25, 0.5, 0.75]


def make_table(n=200, seed=0, n_visits=6, exact=0.1):
    """Times that depend on x0, seen at visits; some exact, some left- or right-censored."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4)).round(2)
    time = np.exp(X[:, 0] + 0.3 * rng.normal(size=n))
    visits = np.sort(rng.uniform(0, 5, (n, n_visits)), axis=1)
    visits = np.column_stack([np.full(n, -INF), visits, np.full(n, INF)])
    behind = (visits < time[:, np.newaxis]).sum(axis=1)
    lower, upper = visits[np.arange(n), behind - 1], visits[np.arange(n), behind]
    is_exact = rng.random(n) < exact
    lower[is_exact] = upper[is_exact] = time[is_exact]
    return X, lower, upper


def fit(X, lower, upper, *, fit_settings=None, **settings):
    settings = {"n_estimators": 20, "random_state": 1, **settings}
    y = interval(lower, upper)
    return CensoredQuantileForest(**settings).fit(X, y, **(fit_settings or {}))


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def forest(table):
    return fit(*table)


@pytest.fixture(scope="module")
def direct(table):
    """Without a working model, so that curves are those of the weights."""
    return fit(*table, working_model=None)


@pytest.fixture(scope="module")
def asked():
    return make_table(30, seed=5)[0]


def test_curves_are_the_maximum_likelihood_estimates_of_the_weights(direct, table, asked):
    _, lower, upper = table
    curves = direct.predict_survival(asked)
    for q, weight in enumerate(direct.weights(asked).toarray()):
        used = np.flatnonzero(weight)
        rows = list(zip(lower[used], upper[used], strict=True))
        intervals, _ = em(rows, weight[used], 1)
        ends = np.array([right for _, right in intervals])
        after = np.where(np.isinf(ends), 0.0, curves[q](ends, "extend"))
        masses = -np.diff(after, prepend=1.0)
        assert violation(rows, weight[used], intervals, masses) < 1e-7


@pytest.mark.parametrize("working_model", [None, "auto"])
def test_exact_and_right_censored_rows_give_the_ordinary_forest(table, asked, working_model):
    X, lower, upper = table
    event = np.isfinite(upper)
    time = np.where(event, upper, lower)
    ours = fit(X, time, np.where(event, time, INF), working_model=working_model)
    other = CensoredQuantileForest(n_estimators=20, random_state=1, working_model=working_model)
    other.fit(X, censored(time, event))
    assert ours.model_.lower is None
    for q in (LEVELS, 0.9):
        assert_array_equal(
            ours.predict(asked, q, unidentified="clip"),
            other.predict(asked, q, unidentified="clip"),
        )
    assert_array_equal(ours.weights(asked).toarray(), other.weights(asked).toarray())


def test_nearly_exact_intervals_give_nearly_the_ordinary_curves(table, asked):
    X, lower, upper = table
    event = np.isfinite(upper)
    time = np.where(event, upper, lower)
    close = fit(X, np.where(event, time - 1e-9, time), np.where(event, time, INF))
    assert close.model_.lower is not None
    exact = CensoredQuantileForest(n_estimators=20, random_state=1, working_model=None)
    exact.fit(X, censored(time, event))
    assert_allclose(  # the weights of either forest, the same rows
        close.predict(asked, 0.5), exact.predict(asked, 0.5), atol=0.6
    )


@pytest.mark.parametrize("which", ["forest", "direct"])
def test_bounds_hold_the_prediction(which, asked, request):
    forest = request.getfixturevalue(which)
    bounds = forest.predict_quantile_bounds(asked, LEVELS, unidentified="nan")
    predicted = forest.predict(asked, LEVELS, unidentified="nan")
    assert bounds.shape == (30, 3, 2)
    assert_array_equal(bounds[..., 1], predicted)
    known = ~np.isnan(predicted)
    assert (bounds[..., 0][known] <= predicted[known]).all()
    assert (bounds[..., 0][known] < predicted[known]).any()
    assert forest.predict_quantile_bounds(asked, 0.5, unidentified="clip").shape == (30, 2)


@pytest.mark.parametrize("working_model", [None, "auto"])
def test_no_bound_is_below_all_left_ends(table, asked, working_model):
    X = table[0]
    alike = fit(X, np.full(200, 1.0), np.full(200, 2.0), working_model=working_model)
    assert_array_equal(
        alike.predict_quantile_bounds(asked[:1], [0.1, 0.5]), [[[1.0, 2.0], [1.0, 2.0]]]
    )
    from_zero = fit(X, np.zeros(200), np.exp(X[:, 0]) + X[:, 1], working_model=working_model)
    bounds = from_zero.predict_quantile_bounds(asked, 0.1)
    assert (bounds[:, 0] == 0).all()
    lower, _ = from_zero.predict_survival_bounds(asked)
    assert_array_equal(lower([-0.1]), np.ones((30, 1)))


def test_rows_that_are_all_right_censored_are_refused(table):
    X, lower, _ = table
    with pytest.raises(ValueError, match=r"every row is censored .* no upper end is finite"):
        fit(X, np.maximum(lower, 0), np.full(200, INF))


def test_rows_that_are_all_left_censored_are_refused(table):
    X, _, upper = table
    upper = np.where(np.isfinite(upper), upper, 9.0)
    with pytest.raises(ValueError, match=r"every row is left-censored \(no lower end is finite\)"):
        fit(X, np.full(200, -INF), upper)
    weight = np.arange(200) > 0
    forest = CensoredQuantileForest(n_estimators=2)
    with pytest.raises(ValueError, match="every row is left-censored"):
        forest.fit(X, interval(np.where(weight, -INF, 0.0), upper), sample_weight=weight)


def test_survival_bounds(forest, asked):
    lower, upper = forest.predict_survival_bounds(asked)
    times = np.linspace(0.5, 4, 12)
    at = forest.predict_survival_bounds(asked, times, beyond="extend")
    assert at.shape == (30, 12, 2)
    assert_array_equal(at[..., 0], lower(times, "extend"))
    assert_array_equal(at[..., 1], forest.predict_survival(asked, times, beyond="extend"))
    assert (at[..., 0] <= at[..., 1] + 1e-12).all()
    assert (at[..., 0] < at[..., 1]).any()
    assert len(upper) == 30


def test_survival_bounds_beyond_what_is_known(forest, asked):
    for options, said in (
        ({}, "not known at some of these times"),
        ({"given": 1e6}, "no training row with weight has survived as long"),
    ):
        with pytest.warns(BeyondFollowUpWarning, match=said) as expected:
            forest.predict_survival(asked, [1e6], **options)
        with pytest.warns(BeyondFollowUpWarning, match=said) as caught:
            bounds = forest.predict_survival_bounds(asked, [1e6], **options)
        assert np.isnan(bounds).any()
        assert [str(each.message) for each in caught] == [str(each.message) for each in expected]
        assert [each.filename for each in caught] == [__file__]
    with pytest.raises(ValueError, match="times must be numbers; found <U3 values"):
        forest.predict_survival_bounds(asked, "abc")


def test_bounds_of_an_ordinary_forest_are_equal(table, asked):
    X, _, upper = table
    event = np.isfinite(upper)
    other = CensoredQuantileForest(n_estimators=20, random_state=1).fit(
        X, censored(np.where(event, upper, 5.0), event)
    )
    bounds = other.predict_quantile_bounds(asked, LEVELS, unidentified="clip")
    assert_array_equal(bounds[..., 0], bounds[..., 1])


def test_other_predictions(forest, asked):
    median = forest.predict(asked, 0.5)
    survival = forest.predict_survival(asked)
    assert_allclose(survival.first_at_most(0.5 + 1e-9), median)
    assert ((forest.max_quantile(asked) > 0.5) & (forest.max_quantile(asked) <= 1)).all()
    means = forest.predict_mean(asked, 3.0, beyond="extend")
    assert_allclose(means, survival.restricted_mean(3.0, beyond="extend"))
    remaining = forest.predict(asked, 0.5, given=0.5, unidentified="clip")
    assert remaining.shape == (30,)
    assert forest.predict_oob(0.5, unidentified="clip").shape == (200,)
    assert np.corrcoef(median, asked[:, 0])[0, 1] > 0.7


def test_labels_find_the_feature_that_matters():
    X, lower, upper = make_table(400, n_visits=8)
    assert fit(X, lower, upper).feature_importances_.argmax() == 0


def test_results_do_not_depend_on_threads(table, asked):
    one, two = (fit(*table, n_jobs=n).predict(asked, LEVELS) for n in (1, 2))
    assert_array_equal(one, two)


@pytest.mark.parametrize("working_model", [None, "auto"])
def test_weights_are_copies_of_rows(table, asked, working_model):
    X, lower, upper = table
    kept = np.arange(200) % 3 > 0
    settings = {"working_model": working_model, "max_samples": None, "honest": False}
    weighted = fit(X, lower, upper, fit_settings={"sample_weight": kept * 2.0}, **settings)
    alone = fit(X[kept], lower[kept], upper[kept], **settings)
    assert_allclose(weighted.predict(asked, 0.5), alone.predict(asked, 0.5))


def test_groups_missing_values_and_frames(table):
    X, lower, upper = table
    holes = np.where(np.arange(800).reshape(200, 4) % 7 == 0, np.nan, X)
    frame = pd.DataFrame(holes, columns=list("abcd"))
    y = pd.DataFrame({"lower": lower, "upper": upper})
    forest = CensoredQuantileForest(n_estimators=20, random_state=1).fit(
        frame, y, groups=np.arange(200) // 4
    )
    assert np.isfinite(forest.predict(frame, 0.5)).all()
    unit = forest.model_.sampling.unit_of_row[forest.model_.ranks]
    assert len(np.unique(unit)) == 50


@pytest.mark.parametrize("which", ["forest", "direct"])
def test_file(which, asked, tmp_path, request):
    forest = request.getfixturevalue(which)
    forest.save(tmp_path / "a.cqrf")
    loaded = CensoredQuantileForest.load(tmp_path / "a.cqrf")
    assert_array_equal(loaded.model_.lower, forest.model_.lower)
    assert_array_equal(
        loaded.predict_quantile_bounds(asked, LEVELS, unidentified="nan"),
        forest.predict_quantile_bounds(asked, LEVELS, unidentified="nan"),
    )
    loaded.save(tmp_path / "b.cqrf")
    assert (tmp_path / "a.cqrf").read_bytes() == (tmp_path / "b.cqrf").read_bytes()


@pytest.mark.parametrize("bad", ["above", "censored", "no_interval", "short"])
def test_a_file_whose_intervals_are_none_is_refused(bad, forest, tmp_path):
    from dataclasses import replace

    model = forest.model_
    lower, time, event = model.lower.copy(), model.rows.time, model.rows.event
    if bad == "above":
        lower[event.argmax()] = time[event.argmax()] + 1
    elif bad == "censored":
        lower[(~event).argmax()] -= 1
    elif bad == "no_interval":
        lower = time.copy()
    else:
        lower = lower[1:]
    broken = CensoredQuantileForest(**forest.get_params())
    broken.model_ = replace(model, lower=lower)
    broken.n_features_in_ = 4
    broken.save(tmp_path / "a.cqrf")
    with pytest.raises(ModelFileError, match="lower"):
        read_model_file(tmp_path / "a.cqrf")


def test_a_plot_shades_what_is_open(forest, asked):
    from cqrf.plots import plot_survival

    shaded = plot_survival(forest, asked[:2]).collections
    assert sum(each.get_alpha() == 0.3 for each in shaded) == 2


@pytest.mark.filterwarnings("ignore")
def test_report(forest, table, tmp_path):
    X, lower, upper = table
    page = write_report(forest, X, interval(lower, upper), tmp_path / "r.html").read_text()
    assert "known only to an interval" in page
    assert "Scores need times that are exact" in page


NOT_AVAILABLE = "not available for intervals: it needs times that are exact or censored on one side"


@pytest.mark.parametrize(
    "use",
    [
        lambda forest, X, y: forest.score(X, y),
        lambda forest, X, y: forest.score_oob(),
        lambda forest, X, y: metrics.censored_quantile_loss(y, y, np.ones((len(y), 1)), [0.5]),
        lambda forest, X, y: metrics.concordance_index(y, np.ones(len(y))),
        lambda forest, X, y: assess_calibration(forest),
        lambda forest, X, y: ConformalForest(forest).fit(X, y),
        lambda forest, X, y: tune(CensoredQuantileForest(n_estimators=20), X, y, n_trials=1),
        lambda forest, X, y: CensoredTreatmentForest(n_estimators=20).fit(
            X, y, treatment=np.arange(len(y)) % 2, propensity=0.5
        ),
    ],
)
def test_what_needs_exact_times_is_refused(use, forest, table):
    X, lower, upper = table
    with pytest.raises(ValueError, match=NOT_AVAILABLE):
        use(forest, X, interval(lower, upper))


def test_a_forest_of_intervals_is_scored_on_exact_rows(forest):
    X = make_table(100, seed=9)[0]
    time = np.exp(X[:, 0])
    exact = censored(time, np.arange(100) % 5 > 0)
    score = forest.score(X, exact)
    assert score == pytest.approx(evaluate(forest, X, exact)["skill"])
    assert score > 0


def test_entry_times_are_refused(table):
    X, lower, upper = table
    y = pd.DataFrame({"lower": lower, "upper": upper, "entry": np.zeros(200)})
    with pytest.raises(ValueError, match="entry beside lower and upper: entry times do not go"):
        CensoredQuantileForest().fit(X, y)


def test_dask_is_refused(table):
    pytest.importorskip("distributed")
    from cqrf.dask.partitions import Partition
    from cqrf.dask.reading import ReadingContext, read_partition

    X, lower, upper = table
    y = interval(lower, upper)
    with pytest.raises(ValueError, match=f"a forest on Dask is {NOT_AVAILABLE}"):
        read_partition(
            ReadingContext(CensoredQuantileForest(), None), Partition(0, X, y, None, None)
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"criterion": "logrank"}, "criterion='logrank' is not available for y with intervals"),
        ({"solver": "argmin", "working_model": None}, "solver='argmin' is not available"),
        ({"censoring_survival": "km", "working_model": None}, "censoring_survival='km' is not"),
        ({"bag_size": 2}, "bag_size=2 is not available"),
        ({"censoring": "left"}, "y has intervals, which say themselves on which side"),
    ],
)
def test_settings_that_are_refused(settings, message, table):
    with pytest.raises(ValueError, match=message):
        fit(*table, **settings)


def test_standard_errors_and_censoring_times_are_refused(forest, asked):
    with pytest.raises(ValueError, match="standard errors are not available for a forest of int"):
        forest.survival_standard_error(asked, [1.0])
    with pytest.raises(ValueError, match="a forest of intervals has no censoring time"):
        forest.predict_censoring(asked)
    with pytest.raises(ValueError, match="a forest of intervals has no censoring time"):
        forest.predict_censoring(asked, [1.0])
    with pytest.raises(ValueError, match="a forest of intervals reads quantiles off"):
        CensoredQuantileForest.predict(_with(forest, solver="argmin"), asked, 0.5)


def _with(forest, **settings):
    other = CensoredQuantileForest(**{**forest.get_params(), **settings})
    vars(other).update({name: x for name, x in vars(forest).items() if name.endswith("_")})
    return other


def write_csv(path, table):
    X, lower, upper = table
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["from"], frame["to"] = lower, upper
    frame.replace([INF, -INF], np.nan).to_csv(path, index=False)
    return frame


def test_command_line(table, tmp_path):
    frame = write_csv(tmp_path / "t.csv", table)
    ends = ["--lower", "from", "--upper", "to"]
    done = call("fit", tmp_path / "t.csv", *ends, "--out", tmp_path / "m.cqrf", *FAST)
    n_open = int((np.isfinite(table[2]) & (table[1] < table[2])).sum())
    n_left = int((np.isfinite(table[2]) & (table[1] <= 0) & (table[1] < table[2])).sum())
    assert n_left > 0
    assert f"({n_open} intervals, {n_left} of them left-censored)" in done.stderr
    assert f"events ({n_open} intervals), " in call("info", tmp_path / "m.cqrf").stdout
    info = json.loads(call("info", tmp_path / "m.cqrf", "--json").stdout)
    assert info["intervals"] == n_open
    loaded = CensoredQuantileForest.load(tmp_path / "m.cqrf")
    known = CensoredQuantileForest(n_estimators=20, random_state=0).fit(
        frame[list("abcd")], interval(*table[1:])
    )
    rows = frame[list("abcd")][:9]
    assert_array_equal(loaded.predict(rows, 0.5), known.predict(rows, 0.5))
    predict = ["predict", tmp_path / "m.cqrf", tmp_path / "t.csv"]
    call(*predict, "-q", ".5,.99", "--bounds", "--interval", ".5", "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    names = ["q0.5_lower", "q0.5_upper", "q0.99_lower", "q0.99_upper"]
    assert list(found) == [*names, "lower0.5", "upper0.5"]
    with pytest.warns(UnidentifiedQuantileWarning):
        bounds = known.predict_quantile_bounds(frame[list("abcd")], [0.5, 0.99])
    assert (bounds[:, 0, 0] < bounds[:, 0, 1]).any()
    assert_allclose(found[names], bounds.reshape(len(bounds), -1))
    wanted = "--bounds are those of --quantiles"
    assert wanted in refused(*predict, "--bounds", "-q", "", "--mean")
    said = call(*predict, "-q", ".5").stdout.splitlines()
    assert float(said[1]) == pytest.approx(known.predict(rows, 0.5)[0], rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lower", "from"], "give both --lower and --upper, or --time."),
        ([], "give --time, or --lower and --upper"),
        (["--lower", "from", "--upper", "to", "--time", "to"], "--time does not go with --lower"),
        (["--lower", "from", "--upper", "to", "--event", "a"], "--event does not go with --lower"),
        (["--lower", "from", "--upper", "to", "--censored", "0"], "--censored does not go with"),
        (["--lower", "to", "--upper", "from"], "column 'to' is above 'from'"),
        (["--lower", "none", "--upper", "to"], "has no column 'none'"),
    ],
)
def test_command_line_errors(options, message, table, tmp_path):
    write_csv(tmp_path / "t.csv", table)
    said = refused("fit", tmp_path / "t.csv", *options, "--out", tmp_path / "m.cqrf", *FAST)
    assert message in said


@pytest.mark.parametrize("command", ["tune", "conformal", "effects"])
@pytest.mark.parametrize("option", ["--lower", "--upper"])
def test_commands_without_intervals_say_so(command, option):
    said = refused(command, "t.csv", option, "from")
    assert "--lower and --upper are options of cqrf fit only: this command needs times" in said
