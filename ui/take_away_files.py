"""What a reader takes away: files made of a page's arrays, tables and figures. Nothing is drawn here."""

import csv
import io
import re
from collections.abc import Mapping
from html import escape
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import plotly.graph_objects as go

_LONGEST_NAME = 100  # characters, without ending

_HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ font: 17px sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; }}
p {{ overflow-wrap: anywhere; }}</style>
</head>
<body>
<h1>{title}</h1>
<p>{told}</p>
{chart}
<p>{settings}</p>
</body>
</html>
"""


def file_name(page: str, link: Mapping[str, str], what: str = "") -> str:
    """A name for a file, without ending: page, what of it, and the settings that differ from the page's own.

    A setting that finds no room is left out whole: half of its value would be another value.
    """
    made = _plain(f"{page}_{what}" if what else page)
    for setting in (_plain(f"{name}-{value}") for name, value in link.items()):
        made += f"_{setting}" if len(made) + 1 + len(setting) <= _LONGEST_NAME else ""
    return made


def _plain(text: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", text).rstrip("-_.")


def url(base: str, link: Mapping[str, str]) -> str:
    """The link to this state. Args: base: the page's address without settings."""
    return base.split("?")[0] + (f"?{urlencode(link)}" if link else "")


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The arrays by name, as `np.load` reads them."""
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def table_csv(frame: pd.DataFrame) -> bytes:
    """A table with its row and column names, in full precision; with a mark that tells spreadsheets it is UTF-8."""
    return frame.to_csv(quoting=csv.QUOTE_NONNUMERIC).encode("utf-8-sig", errors="replace")


def html(chart: go.Figure, title: str, told: str, settings: str) -> bytes:
    """One page with the figure, to be opened without a network: plotly.js is in it.

    Args:
        title, told, settings: plain text for the heading, the description and the line below the figure.
    """
    drawn = go.Figure(chart).update_layout(template="plotly_white", autosize=True)
    return _HTML.format(
        title=escape(title),
        told=escape(told),
        settings=escape(settings),
        chart=drawn.to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False}),
    ).encode(errors="replace")
