"""For each concept page one standalone script that computes the page's arrays, with numpy alone."""

from ui.scripts import recurrence, self_attention

SCRIPTS = {
    "recurrence": recurrence.write,
    "self_attention": self_attention.write,
}
