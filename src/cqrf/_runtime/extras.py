"""Packages that come only with an extra of this package."""

from __future__ import annotations

from importlib.util import find_spec


def need(what: str, extra: str, *packages: str) -> None:
    """Raise an ImportError that names the extra, if one of its packages is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(
                f"{what} needs {package}: pip install 'cqrf[{extra}]'.", name=package
            )
