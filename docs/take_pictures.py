"""Take the README's pictures from the real app: `make pictures`. Needs a Chromium, as the browser tests do."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser import harness  # noqa: E402  (found through the line above)

FOLDER = ROOT / "docs" / "pictures"
PATHS = {
    "self_attention": "/self_attention",
    "positional_encoding": "/positional_encoding",
    "transformer_block": "/transformer_block",
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    log_file = Path(tempfile.mkdtemp()) / "server.txt"
    with harness.running_server(log_file) as base, sync_playwright() as playwright:
        executable = harness.find_chromium(playwright)
        if executable is None:
            sys.exit("no Chromium found: install one, or name it in the variable CHROMIUM")
        browser = harness.launch(playwright, executable)
        for name, path in PATHS.items():
            visit = harness.visit(browser, base + path, "light", width=1280, height=900)
            file = FOLDER / f"{name}.png"
            visit.page.screenshot(path=file)
            print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")
            visit.page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
