"""The questions of each page: one function per page, `ask`, which takes what the page has and returns its questions.

Each question asks for something that the page does not show, or that has to be worked out from what it shows, and
computes what is right with core, once it is asked for. All text is plain, and true at every setting.
"""
