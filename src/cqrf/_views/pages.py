"""Files of the pages: each application has an ``assets`` folder, and so does this package."""

from __future__ import annotations

from importlib.resources import files


def read_asset(package: str, name: str) -> str:
    """Text of a file in the ``assets`` folder of a package, with LF line ends."""
    text = (files(package) / "assets" / name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def read_shared_asset(name: str) -> str:
    """Text of a file that report and server share."""
    return read_asset("cqrf._views", name)
