"""For each concept page one standalone script that computes the page's arrays, with numpy alone.

`SCRIPTS[page](settings, arrays)` writes it for the settings of the page; the arrays are those that the page took from
core, for a script that has to write down what nothing draws.
"""

from collections.abc import Callable, Mapping

import numpy as np

from ui.control_kinds import Settings
from ui.scripts import multi_head_attention, positional_encoding, recurrence, self_attention, transformer_block

SCRIPTS: dict[str, Callable[[Settings, Mapping[str, np.ndarray]], str]] = {
    "recurrence": recurrence.write,
    "self_attention": self_attention.write,
    "positional_encoding": positional_encoding.write,
    "multi_head_attention": multi_head_attention.write,
    "transformer_block": transformer_block.write,
}
