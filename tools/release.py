"""Make a release: set the version and the date, build, check, commit and tag. Nothing is uploaded.

Run as ``make release VERSION=1.2.0``, on a clean checkout of the branch. The package reads its
version from ``pyproject.toml``; ``CITATION.cff`` has that of the last release. Unless everything
succeeds, the files are left as they were, and there is no commit and no tag.
"""

import argparse
import datetime
import re
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
CHANGED = ("pyproject.toml", "CHANGELOG.md", "CITATION.cff")
VERSION_LINE = re.compile(r'^version = "([^"]*)"$', re.M)
UNRELEASED = "## Unreleased\n"


class ReleaseError(Exception):
    """Why no release was made."""


def read_version(pyproject: str) -> Version:
    """The version in the text of pyproject.toml."""
    found = VERSION_LINE.findall(pyproject)
    if len(found) != 1:
        raise ReleaseError(f"pyproject.toml has {len(found)} lines with a version, not one")
    return Version(found[0])


def set_version(pyproject: str, version: str) -> str:
    """The text of pyproject.toml with another version, which must be a later one."""
    before = read_version(pyproject)
    try:
        is_plain = str(Version(version)) == version
    except InvalidVersion:
        is_plain = False
    if not is_plain:
        raise ReleaseError(f"{version!r} is not a version such as 1.2.0 or 1.2.0rc1")
    if Version(version) <= before:
        raise ReleaseError(f"{version} is not later than {before}, the version of pyproject.toml")
    return VERSION_LINE.sub(f'version = "{version}"', pyproject)


def date_changes(changelog: str, version: str, date: datetime.date) -> str:
    """The text of the changelog, with what was unreleased under the version and its date."""
    before, heading, after = changelog.partition(UNRELEASED)
    if not heading or UNRELEASED in after:
        raise ReleaseError("CHANGELOG.md must have one heading '## Unreleased'")
    if not after.partition("\n## ")[0].strip():
        raise ReleaseError("CHANGELOG.md says nothing below '## Unreleased'")
    if f"\n## {version} " in after:
        raise ReleaseError(f"CHANGELOG.md has {version} already")
    return f"{before}{UNRELEASED}\n## {version} - {date.isoformat()}\n{after}"


def date_citation(citation: str, version: str, date: datetime.date) -> str:
    """The text of CITATION.cff with this version and the date of its release."""
    kept = re.sub(r"^(version|date-released): .*\n", "", citation, flags=re.M)
    return f"{kept}version: {version}\ndate-released: {date.isoformat()}\n"


def run(*command: str) -> str:
    """Run a command; what it prints is shown, and given back. A failure is a ReleaseError."""
    print("+", *command, flush=True)
    lines = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise ReleaseError(f"failed: {' '.join(command)}")
    return "".join(lines)


def check_repository(branch: str, tag: str) -> None:
    """Raise unless the branch is checked out, nothing has changed, and the tag is new."""
    if run("git", "status", "--porcelain"):
        raise ReleaseError("the checkout has changes: commit or remove them")
    here = run("git", "branch", "--show-current").strip()
    if here != branch:
        raise ReleaseError(f"this is branch {here!r}; releases are made from {branch!r}")
    if run("git", "tag", "--list", tag):
        raise ReleaseError(f"there is a tag {tag} already")


def build_and_check() -> None:
    """Build into dist/, check the files, and test the wheel in an empty environment."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "build")
    files = [str(path) for path in sorted((ROOT / "dist").iterdir())]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    run(sys.executable, "-m", "check_wheel_contents", str(ROOT / "dist"))
    run(str(Path(sys.executable).with_name("hadolint")), "Dockerfile")
    run(sys.executable, "tools/check_dist.py", "wheel")


def release(version: str, branch: str, date: datetime.date) -> None:
    """Make the release, or leave the checkout as it was."""
    tag = f"v{version}"
    before = {name: (ROOT / name).read_bytes() for name in CHANGED}
    pyproject, changelog, citation = (before[name].decode() for name in CHANGED)
    texts = (
        set_version(pyproject, version),
        date_changes(changelog, version, date),
        date_citation(citation, version, date),
    )
    check_repository(branch, tag)
    start = run("git", "rev-parse", "HEAD").strip()
    try:
        for name, text in zip(CHANGED, texts, strict=True):
            (ROOT / name).write_bytes(text.encode())
        build_and_check()
        run("git", "commit", "--quiet", "-m", f"Release {version}", "--", *CHANGED)
        run("git", "tag", "--annotate", tag, "-m", f"cqrf {version}")
    except BaseException:  # an interrupt too
        run("git", "reset", "--quiet", "--soft", start)
        run("git", "reset", "--quiet")
        for name, data in before.items():
            (ROOT / name).write_bytes(data)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        raise
    print(f"\ncqrf {version} is committed and tagged as {tag}; its files are in dist/.")
    print(f"Nothing was uploaded. To publish: git push origin {branch} {tag}; twine upload dist/*")


def main() -> None:
    """Read the arguments, and say in one line why a release was not made."""
    parser = argparse.ArgumentParser(description="Make a release; nothing is uploaded.")
    parser.add_argument("version", help="such as 1.2.0")
    parser.add_argument("--branch", default="main", help="that must be checked out (main)")
    arguments = parser.parse_args()
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        release(arguments.version, arguments.branch, today)
    except ReleaseError as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
