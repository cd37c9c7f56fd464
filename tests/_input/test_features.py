"""Tables as people bring them: frames, categories, missing values."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from cqrf import CensoredQuantileForest
from cqrf._input.features import read_features
from cqrf._input.target import read_target
from cqrf._model.skill import compute_skill
from cqrf.datasets import load_pbc, make_aft
from cqrf.metrics import concordance_index, quantile_loss

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]


def small(**settings):
    few = {"n_estimators": 30, "max_samples": 0.5, "random_state": 0}
    return CensoredQuantileForest(**{**few, **settings})


@pytest.fixture(scope="module")
def pbc():
    return load_pbc(as_frame=True)


@pytest.fixture(scope="module")
def forest(pbc):
    return small().fit(pbc.X, pbc.y)


def test_every_frame_gives_the_same_forest(pbc, forest):
    expected = forest.predict(pbc.X, 0.1)
    assert forest.feature_names_in_.tolist() == list(pbc.X.columns)
    for convert in (pl.from_pandas, pa.Table.from_pandas, OnlyInterchange, OnlyCapsule):
        X = convert(pbc.X)
        again = small().fit(X, pbc.y)
        np.testing.assert_array_equal(again.predict(X, 0.1), expected)


class Stranger:
    """A frame of a library that nobody has heard of."""

    def __init__(self, frame):
        self.frame = pa.Table.from_pandas(frame)
        self.shape = self.frame.shape

    def __len__(self):
        return len(self.frame)


class OnlyInterchange(Stranger):
    """It has the dataframe interchange protocol."""

    def __dataframe__(self, *args, **kwargs):
        return self.frame.__dataframe__(*args, **kwargs)


class OnlyCapsule(Stranger):
    """It has the Arrow stream protocol."""

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


def test_every_type_of_category_is_the_same(pbc, forest):
    expected = forest.predict(pbc.X, 0.1)
    text = pl.from_pandas(pbc.X)
    for X in (
        pbc.X.assign(sex=pd.Categorical(pbc.X["sex"], categories=["f", "m"])),
        pbc.X.assign(sex=pd.Categorical(pbc.X["sex"], categories=["m", "f"])),
        pbc.X.assign(sex=pd.Categorical(pbc.X["sex"], categories=["z", "m", "f"])),
        pbc.X.assign(sex=pbc.X["sex"].astype("string")),
        text.with_columns(pl.col("sex").cast(pl.Categorical)),
        text.with_columns(pl.col("sex").cast(pl.Enum(["m", "f"]))),
    ):
        np.testing.assert_array_equal(small().fit(X, pbc.y).predict(X, 0.1), expected)


@pytest.mark.parametrize("working_model", [None, "auto"])
def test_numbers_booleans_and_dates_are_numbers(working_model):
    few = small(working_model=working_model)
    n = 200
    rng = np.random.default_rng(0)
    x = rng.permutation(n)
    time = 1.0 + x
    columns = {
        "integer": x,
        "float32": x.astype(np.float32),
        "date": np.datetime64("2020-01-01") + x.astype("timedelta64[D]"),
        "duration": x.astype("timedelta64[s]"),
        "nullable": pd.array(x, dtype="Int64"),
    }
    predictions = {
        name: few.fit(pd.DataFrame({"x": values}), time).predict(pd.DataFrame({"x": values}))
        for name, values in columns.items()
    }
    expected = predictions["integer"]
    if working_model is not None:  # it standardises: seconds since 1970 round differently
        np.testing.assert_allclose(predictions.pop("date"), expected, rtol=1e-9)
    for predicted in predictions.values():
        np.testing.assert_array_equal(predicted, expected)
    assert np.corrcoef(expected, time)[0, 1] > 0.9
    flags = pd.DataFrame({"x": x > 100})
    two = np.unique(few.fit(flags, time).predict(flags))
    assert len(two) == 2


def test_the_callers_frame_is_never_changed(pbc):
    X = pbc.X.copy()
    small().fit(X, pbc.y).predict(X, 0.1)
    pd.testing.assert_frame_equal(X, pbc.X)


def test_names_are_checked(pbc, forest):
    with pytest.raises(ValueError, match="same order"):
        forest.predict(pbc.X[pbc.X.columns[::-1]], 0.1)
    with pytest.raises(ValueError, match="now missing:\n- age"):
        forest.predict(pbc.X.drop(columns="age"), 0.1)
    with pytest.raises(ValueError, match="must be a frame"):
        forest.predict(np.ones((2, 17)), 0.1)
    with pytest.raises(
        ValueError, match="column 'sex' held categories in fit but holds numbers now"
    ):
        forest.predict(pbc.X.assign(sex=1.0), 0.1)
    with pytest.raises(
        ValueError, match="column 'age' held numbers in fit but holds categories now"
    ):
        forest.predict(pbc.X.assign(age="old"), 0.1)
    with pytest.raises(ValueError, match="column 'nested'"):
        small().fit(pl.DataFrame({"nested": [[1], [2]]}), [1.0, 2.0])


def test_too_many_levels_name_the_column():
    names = [f"level {i}" for i in range(300)]
    with pytest.raises(ValueError, match="column 'city' has 300 levels"):
        small().fit(pd.DataFrame({"city": names}), np.arange(300.0))
    most = pd.DataFrame({"city": names[:254]})
    small().fit(most, np.arange(254.0)).predict(most)


def test_an_unseen_level_is_missing_with_one_warning(pbc, forest):
    row = pbc.X.iloc[[0, 1]]
    with pytest.warns(UserWarning, match="column 'sex': 'unknown'") as said:
        unseen = forest.predict(row.assign(sex="unknown"), 0.1)
    assert len(said) == 1
    assert said[0].filename == __file__
    np.testing.assert_array_equal(unseen, forest.predict(row.assign(sex=None), 0.1))


def test_a_column_without_a_single_value_is_missing_whatever_its_type(pbc, forest):
    row = pbc.X.iloc[[0, 1]]
    expected = forest.predict(row.assign(sex=None), 0.1)
    np.testing.assert_array_equal(forest.predict(row.assign(sex=np.nan), 0.1), expected)
    nothing = pl.from_pandas(row).with_columns(pl.lit(None).alias("sex"))
    np.testing.assert_array_equal(forest.predict(nothing, 0.1), expected)


def test_numeric_missing_is_fitted_and_predicted(pbc, forest):
    assert pbc.X.isna().to_numpy().any()
    assert np.isfinite(forest.predict(pbc.X, 0.1)).all()
    X = np.array([[1.0, np.nan], [np.nan, np.nan]] * 20)
    assert np.isfinite(small().fit(X, np.arange(40.0)).predict(X)).all()


def test_missing_at_predict_only_follows_the_larger_child():
    """One split, 30 rows on one side and 70 on the other: NaN goes to the 70."""
    x = np.repeat([0.0, 1.0], [30, 70])
    time = np.where(x == 0, 1.0, 10.0) + np.linspace(0, 0.5, 100)
    forest = small(honest=False, max_samples=None, max_depth=1).fit(x[:, None], time)
    large, small_side, missing = forest.predict([[1.0], [0.0], [np.nan]])
    assert missing == large > 9 > small_side


def test_missing_goes_where_it_splits_better():
    """Rows that miss x behave like those with small x: they must share their side."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=400)
    time = np.where(x < 0.5, 1.0, 10.0) + rng.uniform(size=400)
    gone = (x < 0.5) & (rng.uniform(size=400) < 0.5)
    forest = small().fit(np.where(gone, np.nan, x)[:, None], time)
    assert forest.predict([[np.nan]])[0] < 2.5
    flipped = small().fit(np.where(x > 0.5, np.nan, x)[:, None], time)
    assert flipped.predict([[np.nan]])[0] > 9
    # the missing alone against the rest
    alone = np.where(x < 0.5, np.nan, rng.uniform(size=400))
    assert small().fit(alone[:, None], time).predict([[np.nan], [0.5]]) == pytest.approx(
        [1.5, 10.5], abs=0.5
    )


def test_pbc_as_it_is_scores_no_less_than_without_its_incomplete_rows(pbc):
    """Skill and concordance out of bag, on the complete rows, for a forest of all rows."""
    complete = pbc.X.notna().all(axis=1).to_numpy()
    levels = np.array([0.25, 0.5, 0.75])
    target = read_target(pbc.y[complete])
    figures = []
    for seed in range(3):
        every = small(n_estimators=300, random_state=seed).fit(pbc.X, pbc.y)
        some = small(n_estimators=300, random_state=seed).fit(pbc.X[complete], pbc.y[complete])
        of_all = every.predict_oob(levels, unidentified="clip")[complete]
        of_some = some.predict_oob(levels, unidentified="clip")
        figures.append(
            [
                [
                    compute_skill(some.model_, predicted, target, levels),
                    concordance_index(target, predicted.mean(axis=1)),
                ]
                for predicted in (of_all, of_some)
            ]
        )
    all_rows, complete_rows = np.mean(figures, axis=0)
    assert (all_rows >= complete_rows).all()
    assert (complete_rows > [0.15, 0.8]).all()


def test_gaps_cost_little_on_complete_rows():
    """A fifth of X deleted at random: within a tenth of the loss without gaps."""
    ratios = []
    for seed in range(3):
        train, test = (make_aft(1000, 10, random_state=s) for s in (seed, 100 + seed))
        rng = np.random.default_rng(seed)
        holes = np.where(rng.uniform(size=train.X.shape) < 0.2, np.nan, train.X)
        losses = []
        for X in (train.X, holes):
            forest = small(n_estimators=200).fit(X, train.y)
            predicted = forest.predict(test.X, LEVELS, unidentified="clip")
            losses.append(quantile_loss(test.latent[:, None], predicted, LEVELS).mean())
        ratios.append(losses[1] / losses[0])
    assert np.mean(ratios) < 1.1


def test_gaps_at_predict_no_worse_than_imputing():
    losses = {"own": [], "imputed": []}
    for seed in range(3):
        train, test = (make_aft(1000, 10, random_state=s) for s in (seed, 100 + seed))
        rng = np.random.default_rng(seed)
        tables = [np.where(rng.uniform(size=X.shape) < 0.2, np.nan, X) for X in (train.X, test.X)]
        own = small(n_estimators=200).fit(tables[0], train.y)
        pipeline = make_pipeline(SimpleImputer(), small(n_estimators=200)).fit(tables[0], train.y)
        for name, model in (("own", own), ("imputed", pipeline)):
            predicted = model.predict(tables[1], quantiles=LEVELS, unidentified="clip")
            losses[name].append(quantile_loss(test.latent[:, None], predicted, LEVELS).mean())
    assert np.mean(losses["own"]) <= np.mean(losses["imputed"])


@pytest.mark.parametrize("working_model", [None, "auto"])
@pytest.mark.parametrize(
    ("strategy", "share", "draw"),
    [
        # one column in twenty, rarely missing: two cuts around the mean gain little each
        ("mean", 0.1, lambda rng, shape: rng.normal(size=shape)),
        # the imputed value is one that complete rows have too
        ("median", 0.5, lambda rng, shape: rng.integers(0, 3, size=shape).astype(float)),
        ("most_frequent", 0.3, lambda rng, shape: (rng.normal(size=shape) > 0).astype(float)),
    ],
)
def test_informative_gaps_are_used(strategy, share, draw, working_model):
    """Those who miss the first column live longer; filling it in hides who they are.

    A working model has coefficients of the other 19 columns too. Their noise is in the error of
    every row, whatever is done about gaps: with it only the rows with gaps are compared.
    """
    few = small(n_estimators=100, working_model=working_model)
    own, imputed = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        late = rng.uniform(size=(2, 1000)) < share
        latent = np.exp(1.5 * late + 0.3 * rng.normal(size=late.shape))
        X = draw(rng, (2, 1000, 20))
        X[late, 0] = np.nan
        filled = make_pipeline(SimpleImputer(strategy=strategy), clone(few))
        compared = late[1] if working_model else slice(None)
        for model, errors in ((few, own), (filled, imputed)):
            predicted = model.fit(X[0], latent[0]).predict(X[1])
            errors.append(np.abs(predicted - np.exp(1.5 * late[1]))[compared].mean())
    assert np.mean(own) < 0.5 * np.mean(imputed)


def test_native_categories_beat_ordinal_codes():
    """Fifty levels with effects in no order."""
    rng = np.random.default_rng(0)
    effect = rng.normal(size=50)
    losses = {"native": [], "ordinal": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        level = rng.integers(0, 50, size=(2, 1500))
        noise = rng.uniform(size=(2, 1500, 4))
        latent = np.exp(effect[level] + 0.3 * rng.normal(size=level.shape))
        seen = np.minimum(latent[0], rng.exponential(10.0, 1500))
        y = np.column_stack([seen, latent[0] <= seen])
        for name in losses:
            frames = []
            for part in range(2):
                frame = pd.DataFrame(noise[part], columns=list("abcd"))
                frame["city"] = level[part]
                if name == "native":
                    frame["city"] = frame["city"].map("city {}".format)
                frames.append(frame)
            predicted = (
                small(n_estimators=100)
                .fit(frames[0], y)
                .predict(frames[1], LEVELS, unidentified="clip")
            )
            losses[name].append(quantile_loss(latent[1][:, None], predicted, LEVELS).mean())
    assert np.mean(losses["native"]) < 0.95 * np.mean(losses["ordinal"])


@pytest.mark.parametrize("criterion", ["censored_quantile", "quantile", "variance", "logrank"])
def test_categories_and_gaps_with_every_criterion(pbc, criterion):
    forest = small(criterion=criterion).fit(pbc.X, pbc.y)
    assert forest.score_oob() > 0.1


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_mean_the_same_in_every_unit_and_gaps_are_missing(unit):
    rng = np.random.default_rng(0)
    days = rng.permutation(200).astype("timedelta64[D]")
    dates = (np.datetime64("2020-01-01") + days).astype(f"datetime64[{unit}]")
    spans = days.astype(f"timedelta64[{unit}]")
    dates[:5], spans[:5] = "NaT", "NaT"
    time = 1.0 + days.astype(float)
    frame = pd.DataFrame({"date": dates, "span": spans})
    matrix, _ = read_features(small(), frame)
    expected = np.column_stack([days, days]).astype(float) * 86400 + [18262 * 86400, 0]
    expected[:5] = np.nan
    np.testing.assert_array_equal(matrix, expected)
    forest = small().fit(frame, time)
    np.testing.assert_array_equal(
        forest.predict(frame), forest.predict(frame.astype({"date": "datetime64[ns]"}))
    )
    with pytest.raises(ValueError, match="column 'date' held dates in fit but holds numbers now"):
        forest.predict(frame.assign(date=1.0))
    by_day = pl.DataFrame(
        {"date": dates.astype("datetime64[ms]"), "span": spans.astype("timedelta64[ms]")}
    )
    by_day = by_day.with_columns(pl.col("date").cast(pl.Date))
    np.testing.assert_array_equal(forest.predict(by_day), forest.predict(frame))


def test_objects_that_are_numbers_are_numbers():
    frame = pd.DataFrame({"x": np.arange(300.0)}).astype(object)
    frame.iloc[3, 0] = None
    matrix, columns = read_features(small(), frame)
    assert columns.kinds == ("number",)
    np.testing.assert_array_equal(np.isnan(matrix[:, 0]), np.arange(300) == 3)


def test_frames_that_cannot_be_read_say_so():
    with pytest.raises(ValueError, match=r"X\.collect\(\)"):
        small().fit(pl.LazyFrame({"x": [1.0, 2.0]}), [1.0, 2.0])
    with pytest.raises(ValueError, match="array of dates"):
        small().fit(np.array([["2020-01-01"], ["2020-01-02"]], dtype="datetime64[D]"), [1.0, 2.0])
