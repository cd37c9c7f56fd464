"""Tests that call kernels directly carry the marker ``kernel``.

Together they would compile every kernel for every kind of rows, criterion and number of levels,
which takes minutes. ``make test`` therefore runs them as plain Python (NUMBA_DISABLE_JIT=1), and
``make test-slow`` runs them compiled. ``tests/test_plain_python.py`` checks that both give the same
bits.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNEL_TESTS = (
    "criteria",
    "test_grower.py",
    "test_histograms.py",
    "test_layout.py",
    "test_splitting.py",
)
COMPILED_ONLY = ("criteria/test_registry.py",)  # how a new criterion is compiled


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            path = item.path.relative_to(HERE)
            if path.parts[0] in KERNEL_TESTS and path.as_posix() not in COMPILED_ONLY:
                item.add_marker(pytest.mark.kernel)
