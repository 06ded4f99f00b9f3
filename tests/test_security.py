"""What a visitor types, links or sends is never code, markup or a path; and no other site may speak for a visitor."""

import ast
import asyncio
import re
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote_plus, urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from benchmarks.clients import visit
from tests.browser.harness import running_server
from tests.conftest import ROOT
from tests.test_together import run
from ui.navigation import ENTRIES

FILES = [ROOT / "app.py", *(path for folder in ("core", "ui", "pages") for path in (ROOT / folder).rglob("*.py"))]
MARKUP = ("<img src=x onerror=alert(1)>", r"$\frac{17}{23}$", "**bold**", ":material/home:", ":red[x]", "[a](//b.c)")
# Elements that show a text as it is. Plotly reads some tags: the pages escape words for it, and other tests look there.
AS_TYPED = {"text", "text_input", "text_area", "code", "plotly_chart", "arrow_data_frame", "slider"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("server") / "log.txt") as base:
        yield base


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call, with the last part of the name of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", "")), node


def imported(tree: ast.AST) -> set[str]:
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_runs_from_data_and_no_text_becomes_html(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert not imported(tree) & {"pickle", "shelve", "marshal", "dill", "joblib", "subprocess", "importlib"}
    for name, call in calls(tree):
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        bare = isinstance(call.func, ast.Name)
        assert not (bare and name in {"eval", "exec", "compile", "open", "__import__"}), ast.unparse(call)
        assert not {"unsafe_allow_html", "unsafe_allow_javascript"} & keywords.keys(), ast.unparse(call)
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == "np.load":
            assert ast.unparse(keywords["allow_pickle"]) == "False"
        if ast.unparse(call.func) == "st.html":  # the page's own styles: constants, put together
            used = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)} - {"st", "controls"}
            assert all(name.isupper() for name in used), ast.unparse(call)
            assert not any(isinstance(node, ast.JoinedStr) for node in ast.walk(call)), ast.unparse(call)


def test_markup_in_a_sentence_reaches_no_element_that_reads_markup(server: str) -> None:
    async def look() -> None:
        for entry in ENTRIES:
            sentence = quote_plus(" ".join(MARKUP))
            async with visit(server, f"/{entry.name}?sentence={sentence}&stage={quote_plus(MARKUP[2])}") as visitor:
                assert visitor.exceptions == []
                for element in visitor.shown.values():
                    kind = element.WhichOneof("type")
                    found = [text for text in MARKUP if text in str(element).replace("\\\\", "\\")]
                    assert not found or kind in AS_TYPED, (entry.name, kind, found)
                if entry.name in ("home", "self_attention"):
                    assert any("**" in text and "bold" in text for text in visitor.texts())  # it was used

    run(look())


@pytest.mark.parametrize("path", ["/../app.py", "/..%2fapp.py", "/static/..%2f..%2fapp.py", "/media/..%2fapp.py"])
@pytest.mark.parametrize("wanted", ["app.py", "../../etc/passwd"])
def test_no_file_is_read_by_its_path(path: str, wanted: str, server: str) -> None:
    connection = HTTPConnection(urlsplit(server).netloc, timeout=10)
    connection.request("GET", path.replace("app.py", wanted))
    answer = connection.getresponse().read()
    assert b"root:" not in answer
    assert (ROOT / "app.py").read_bytes() not in answer


def test_the_settings_leave_the_protection_on() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert not {
        "enableCORS",
        "enableXsrfProtection",
        "corsAllowedOrigins",
        "cookieSecret",
        "enableStaticServing",
    } & set(config.get("server", {}))
    for path in (ROOT / "Dockerfile", ROOT / "deploy" / "compose.yaml"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"enable(CORS|Xsrf)|ENABLE_(CORS|XSRF)|CORS_ALLOWED", text)
        assert not re.search(r"STREAMLIT_SERVER_COOKIE_SECRET[:=] *[^$\s]", text)


def test_another_site_may_not_open_a_websocket(server: str) -> None:
    async def knock(origin: str) -> None:
        address = server.replace("http", "ws", 1) + "/_stcore/stream"
        async with connect(address, subprotocols=["streamlit"], origin=origin):  # type: ignore[arg-type, list-item]
            await asyncio.sleep(0)

    run(knock(server))
    with pytest.raises(InvalidStatus, match="403"):
        run(knock("http://elsewhere.example"))


def test_another_site_may_not_send_or_read(server: str) -> None:
    upload = urllib.request.Request(
        f"{server}/_stcore/upload_file/session/file", b"x", {"Origin": "http://elsewhere.example"}, method="PUT"
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(upload)
    look = urllib.request.Request(f"{server}/_stcore/health", headers={"Origin": "http://elsewhere.example"})
    with urllib.request.urlopen(look) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] not in ("*", "http://elsewhere.example")
