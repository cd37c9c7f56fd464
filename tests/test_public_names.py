"""Every public name is there, in the package that is installed."""

import importlib
import importlib.metadata

import pytest

import cqrf


def test_the_package_has_its_public_names():
    for name in cqrf.__all__:
        assert getattr(cqrf, name) is not None


@pytest.mark.parametrize("module", sorted(cqrf._SUBMODULES))
def test_a_module_has_its_public_names(module):
    found = importlib.import_module(f"cqrf.{module}")
    for name in getattr(found, "__all__", ()):
        assert getattr(found, name) is not None


def test_the_version_is_that_of_the_installed_package():
    assert cqrf.__version__ == importlib.metadata.version("cqrf")
