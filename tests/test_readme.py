"""What the README promises: its commands, its pictures, and links that open as they are."""

import re
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.conftest import ROOT
from tests.pages.charts import open_page, texts

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"http://localhost:8501/([^)\s]+)", README)


def test_every_file_named_is_there():
    for name in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("link", LINKS)
def test_a_lessons_link_opens_without_a_correction(link):
    parts = urlsplit(link)
    wanted = {name: values[0] for name, values in parse_qs(parts.query).items()}

    at = open_page(parts.path, **wanted)

    assert not at.exception
    assert dict(at.query_params) == wanted  # a correction or a default would have changed it
    assert "showing" not in texts(at)


def test_there_are_links_to_every_page():
    assert {urlsplit(link).path for link in LINKS} == {path.stem for path in (ROOT / "pages").glob("*.py")} - {"home"}


COMMANDS = [path.stem for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_of_the_benchmarks_explains_itself(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--help"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("usage:")
