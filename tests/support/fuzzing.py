"""Random tables and settings, and random damage to files."""

import hashlib
import json

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from cqrf._model.file_bytes import FOREST_FILE, PREAMBLE
from cqrf._model.queries import training_queries

NUMBERS = (0.0, 1.0, -1.0, 0.5, 1e-300, -1e300, 1e300, 3.0, 2.0**53, np.nan)
TIMES = (0.0, 1.0, 1.0 + 2**-52, 2.0, 3.5, 100.0, 1e-300, 1e200, -4.0)
LABELS = ("a", "b", "", "ä<b>", None)


@st.composite
def tables(draw, fewest=1, most=40):
    """A table as a frame, what is to be predicted, and how to fit."""
    rng = np.random.default_rng([draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 2**16))])
    n = draw(st.integers(fewest, most))
    rough = draw(st.booleans())

    def numbers(rows):
        return rng.choice(NUMBERS, rows) if rough else rng.normal(size=rows).round(1)

    def table(rows):
        columns = {f"x{j}": numbers(rows) for j in range(n_numbers)}
        columns |= {f"c{j}": rng.choice(np.array(LABELS, object), rows) for j in range(n_labels)}
        return pd.DataFrame(columns).astype(
            dict.fromkeys(columns.keys() - columns_of_numbers, "str")
        )

    n_numbers, n_labels = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    columns_of_numbers = {f"x{j}" for j in range(n_numbers)}
    time = rng.choice(TIMES, n) if rough else rng.exponential(2, n).round(1)
    event = rng.random(n) < draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    entry = None
    if draw(st.integers(0, 4)) == 0:
        entry = np.where(rng.random(n) < 0.5, -np.inf, time - rng.choice([1e-3, 0.5, 5.0], n))
        entry = np.where(entry < time, entry, -np.inf)
    weight = rng.choice([0.0, 0.5, 1.0, 7.0], n) if draw(st.integers(0, 3)) == 0 else None
    groups = rng.integers(0, 5, n) if draw(st.integers(0, 3)) == 0 else None
    return table(n), table(8), (time, event, entry), weight, groups


SETTINGS = st.fixed_dictionaries(
    {
        "n_estimators": st.integers(1, 9),
        "criterion": st.sampled_from(["censored_quantile", "quantile", "variance", "logrank"]),
        "honest": st.booleans(),
        "bootstrap": st.booleans(),
        "max_samples": st.sampled_from([0.3, 0.5, 1, None]),
        "max_features": st.sampled_from([None, 1, "sqrt"]),
        "min_samples_leaf": st.integers(1, 4),
        "min_samples_split": st.integers(2, 9),
        "min_child_fraction": st.sampled_from([0.0, 0.05, 0.4]),
        "max_depth": st.sampled_from([None, 1, 4]),
        "max_bins": st.sampled_from([2, 5, 255]),
        "censoring": st.sampled_from(["right", "right", "left"]),
        "random_state": st.integers(0, 1000),
    }
)
LEVELS = st.lists(
    st.one_of(st.floats(0.001, 0.999), st.sampled_from([1e-9, 0.25, 0.5, 1 - 1e-9])),
    min_size=1,
    max_size=4,
)


def raw_values(frame, columns):
    """Rows as plain values: floats, and labels as text or None."""
    lists = [
        [None if pd.isna(x) else str(x) for x in frame[name]]
        if levels is not None
        else frame[name].tolist()
        for name, levels in zip(frame.columns, columns.levels, strict=True)
    ]
    return list(zip(*lists, strict=True))


def units_drawn(forest):
    """Which rows of the table each tree has drawn, as the forest tells it."""
    queries = training_queries(forest.model_)
    bits = np.unpackbits(queries.in_bag, axis=1, bitorder="little")
    return bits[:, : len(forest.model_.forest.roots)].astype(bool)


def damage(data, rng):
    """The bytes with one to three changes of all kinds."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, length = int(rng.integers(0, len(data))), int(rng.integers(1, 40))
        match rng.integers(0, 8):
            case 0:
                data[at] ^= 1 << int(rng.integers(0, 8))
            case 1:
                data[at : at + length] = rng.bytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = rng.bytes(length)
            case 4:
                other = int(rng.integers(0, len(data)))
                data[at : at + length] = data[other : other + length]
            case 5:
                number = int(rng.choice([0, 1, 2**7, 2**8 - 1, 2**31, 2**32 - 1]))
                data[at : at + 4] = number.to_bytes(4, "little")
            case 6:
                data[at : at + 8] = np.float64(rng.choice([np.nan, np.inf, -1, 1e308])).tobytes()
            case 7:
                data[at : at + length] = bytes([int(rng.choice([0, 1, 127, 128, 255]))]) * length
        if len(data) < 2:
            break
    return bytes(data)


def seal(data, kind):
    """The bytes as a file whose mark, length and checksum are right."""
    body = data[PREAMBLE.size : -32]
    header_length = int.from_bytes(data[12:16], "little")
    length = PREAMBLE.size + len(body) + 32
    start = PREAMBLE.pack(kind.mark, kind.newest_format, header_length, length)
    return start + body + hashlib.sha256(start + body).digest()


def take_apart(data):
    """Header and sections of a file."""
    length = int.from_bytes(data[12:16], "little")
    header, sections = json.loads(data[PREAMBLE.size :][:length]), {}
    at = PREAMBLE.size + length + -length % 8
    for name, n_bytes in header["sections"].items():
        sections[name] = data[at : at + n_bytes]
        at += n_bytes + -n_bytes % 8
    return header, sections


def put_together(header, sections, kind):
    """A file whose mark, length and checksum are right, whatever is in it."""
    text = json.dumps(header).encode()
    body = b"".join(part + bytes(-len(part) % 8) for part in (text, *sections.values()))
    start = PREAMBLE.pack(kind.mark, kind.newest_format, len(text), 0)
    return seal(start + body + bytes(32), kind)


def damage_section(data, kind, rng):
    """The bytes with damage to one section; that of a forest in it has a right checksum again."""
    header, sections = take_apart(data)
    name = str(rng.choice([name for name in sections if len(sections[name]) > 1]))
    is_forest = sections[name].startswith(FOREST_FILE.mark)
    changed = damage(sections[name], rng)
    if is_forest and len(changed) > PREAMBLE.size + 32:
        changed = seal(changed, FOREST_FILE)
    sections[name] = changed
    header["sections"][name] = len(changed)
    return put_together(header, sections, kind)


def change_header(data, kind, rng):
    """The bytes with one value of the header changed."""
    header, sections = take_apart(data)
    places = [header, header["sections"], header["settings"]]
    place = places[rng.choice(3, p=[0.5, 0.4, 0.1])]
    name = str(rng.choice(list(place)))
    old = place[name]
    values = [0, -1, 1, 2**31, 2**63, 10**30, 0.5, "x", None, [], {}, True]
    if isinstance(old, int):
        values += [old + 1, old - 1, 2 * old, old + 8, old - 8]
    place[name] = values[rng.integers(0, len(values))]
    return put_together(header, sections, kind)
