"""Kernels as plain Python give the forests and answers that they give when compiled, bit for bit.

Sample weights are the exception: NumPy adds single-precision scalars in single precision, compiled
code in double. There weights and curves agree to single precision; quantiles may fall on either
side of a tie.

The measurement of coverage sees kernels through this run: it cannot look into compiled code.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from support.small_forests import CASES, read_all


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Answers of all forests in a process that compiles nothing."""
    path = tmp_path_factory.mktemp("plain") / "answers.npz"
    tests = str(Path(__file__).parent)
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")])),
    }
    command = [sys.executable, "-m", "support.small_forests", str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with np.load(path) as answers:
        return dict(answers)


@pytest.mark.parametrize("case", CASES)
def test_compiled_kernels_and_plain_python_agree(case, plain):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = read_all(case)
    expected = {name: array for name, array in plain.items() if name.startswith(f"{case}: ")}
    assert {f"{case}: {name}" for name in compiled} == set(expected)
    weighted = "weights" in CASES[case][1]
    for name, array in compiled.items():
        if not weighted:
            np.testing.assert_array_equal(array, expected[f"{case}: {name}"], err_msg=name)
        elif name in ("times", "survival", "at times", "weights", "importance"):
            np.testing.assert_allclose(
                array, expected[f"{case}: {name}"], rtol=1e-5, atol=1e-6, err_msg=name
            )
