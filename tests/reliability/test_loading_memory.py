"""What loading a model file costs: a few times its size, however many columns it names."""

import hashlib
import json
import tracemalloc

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._model.file_bytes import FORMAT, MARK, PREAMBLE
from cqrf._model.file_sections import narrowest
from cqrf.datasets import make_treatment
from cqrf.effects import CensoredTreatmentForest

MOST_TIMES = 8


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Header and sections of the file of one tree that is one leaf, of one row and column."""
    path = tmp_path_factory.mktemp("one") / "one.cqrf"
    forest = CensoredQuantileForest(n_estimators=1, max_samples=None, honest=False)
    forest.set_params(random_state=0, working_model=None).fit([[1.0]], [3.0]).save(path)
    CensoredQuantileForest.load(path).predict([[1.0]])  # kernels are compiled before memory counts
    data = path.read_bytes()
    header_length = PREAMBLE.unpack_from(data)[2]
    header = json.loads(data[PREAMBLE.size :][:header_length])
    sections, at = {}, PREAMBLE.size + header_length + -header_length % 8
    for name, length in header["sections"].items():
        sections[name] = data[at : at + length]
        at += length + -length % 8
    return header, sections


def write_columns(parts, path, p, *, names=(), tables=(), edges=()):
    """The file with so many columns: names, levels and edges as given, all else empty."""
    header, sections = parts
    texts = [text.encode() for text in (*names, *(label for table in tables for label in table))]
    changed = sections | {
        "codes": np.full(p, 255, np.uint8),
        "kinds": np.full(p, 3 if tables else 0, np.uint8),
        "n_levels": np.array([len(table) for table in tables] or [0] * p, np.uint8),
        "n_edges": np.array([len(each) for each in edges] or [0] * p, np.uint8),
        "edges": np.array([value for each in edges for value in each], float),
        "importance": np.zeros(p),
        "split_on": np.array([p], narrowest(p)),
        "text_lengths": np.array([len(text) for text in texts], np.uint32),
        "text": np.frombuffer(b"".join(texts), np.uint8),
    }
    written = {
        name: bytes(memoryview(each).cast("B")) for name, each in changed.items() if len(each)
    }
    written = {name: written.get(name, b"") for name in sections}
    lengths = {name: len(each) for name, each in written.items()}
    told = header | {"n_features": p, "named": bool(names), "sections": lengths}
    text = json.dumps(told).encode()
    body = b"".join(part + bytes(-len(part) % 8) for part in (text, *written.values()))
    length = PREAMBLE.size + len(body) + 32
    data = PREAMBLE.pack(MARK, FORMAT, len(text), length) + body
    path.write_bytes(data + hashlib.sha256(data).digest())
    return length


def labels(first):
    return sorted(f"{number:x}" for number in range(first, first + 254))


MANY = 60_000
COLUMNS = {
    "empty columns": (MANY, {}),
    "an edge each": (MANY, {"edges": [[0.5]] * MANY}),
    "a name each": (MANY, {"names": [f"{number:x}" for number in range(MANY)]}),
    "one table of labels again and again": (400, {"tables": [labels(0)] * 400}),
    "tables of other labels": (400, {"tables": [labels(254 * j) for j in range(400)]}),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_many_columns_cost_a_few_times_the_file(case, parts, tmp_path):
    p, contents = COLUMNS[case]
    path = tmp_path / "m.cqrf"
    size = write_columns(parts, path, p, **contents)
    tracemalloc.start()
    forest = CensoredQuantileForest.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_TIMES * size
    model = forest.model_
    assert len(model.edges) == len(model.columns.levels) == forest.n_features_in_ == p
    for j in (0, 1, p - 1):
        expected = contents.get("tables", [None] * p)[j]
        assert model.columns.levels[j] == (None if expected is None else tuple(expected))
        if expected is not None:
            assert model.edges[j].tolist() == [k + 0.5 for k in range(253)]
        else:
            assert model.edges[j].tolist() == contents.get("edges", [[]] * p)[j]
    if "names" in contents:
        assert forest.feature_names_in_[-1] == contents["names"][-1]


@pytest.mark.slow
def test_a_treatment_forest_costs_what_its_curves_do(tmp_path):
    data = make_treatment("type1", 6000, random_state=0)
    forest = CensoredTreatmentForest(n_estimators=40, random_state=0, n_jobs=-1)
    forest.fit(data.X, data.y, treatment=data.treatment).save(tmp_path / "m.cqrf")
    tracemalloc.start()
    CensoredTreatmentForest.load(tmp_path / "m.cqrf")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6


def test_levels_and_edges_of_a_file_are_sequences(parts, tmp_path):
    tables = [("a", "ä", "\U0001f600"), (), ("b",)]
    write_columns(parts, tmp_path / "m.cqrf", 3, tables=tables)
    columns = CensoredQuantileForest.load(tmp_path / "m.cqrf").model_.columns
    assert columns.levels == tuple(tables)
    assert columns.levels != (*tables[:2], ("c",))
    assert columns.levels != tables[:2]
    assert columns.levels != 3
    assert columns.levels[-1] == ("b",)
    assert columns.levels[1:] == tuple(tables[1:])
    with pytest.raises(IndexError):
        columns.levels[3]
    edges = CensoredQuantileForest.load(tmp_path / "m.cqrf").model_.edges
    assert [each.tolist() for each in edges[:2]] == [[0.5, 1.5], []]
    assert columns == CensoredQuantileForest.load(tmp_path / "m.cqrf").model_.columns
