"""How Sphinx makes the site; `make docs` (tools/docs.py) says of what."""

import re
import sys
from pathlib import Path

from docutils import nodes
from pygments.lexers import PythonLexer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import docs_pages
import docs_reference

from gradtape.version import GRADTAPE

project = "gradtape"
author = "the authors of gradtape"
release = GRADTAPE
html_title = f"gradtape {release}"

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["files"]
nitpicky = True  # a name of the reference that leads nowhere is an error

html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "_static")]
html_css_files = ["gradtape.css"]
html_search_scorer = str(Path(__file__).parent / "search.js")
html_copy_source = False
toc_object_entries = False  # each page of the reference begins with a table of its names
html_show_sphinx = html_show_copyright = False
html_use_index = True
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#b34700", "color-brand-content": "#b34700"},
    "dark_css_variables": {"color-brand-primary": "#ffa657", "color-brand-content": "#ffa657"},
}
pygments_style = "tango"
pygments_dark_style = "monokai"
# A signature on one line is easier to find than one on twenty.
maximum_signature_line_length = 200


def link_names(app, doctree, page):
    """`tf.reduce_sum` in the text of a page is a link to what the reference says about it."""
    objects = app.env.domaindata["py"]["objects"]
    spaces = {f"tf.{space}": f"api/{space}" for space in docs_reference.NAMESPACES if space}
    for node in list(doctree.findall(nodes.literal)):
        text = re.sub(r"^tape\.", "tf.GradientTape.", node.astext().partition("(")[0])
        name = names.get(text, text)
        inside = node.parent
        while inside is not None and not isinstance(inside, (nodes.reference, nodes.title)):
            inside = inside.parent
        if inside is not None or name not in objects and name not in spaces:
            continue
        there, anchor = (objects[name].docname, "#" + name) if name in objects else (spaces[name], "")
        uri = app.builder.get_relative_uri(page, there) if there != page else ""
        node.replace_self(nodes.reference("", "", node.deepcopy(), internal=True, refuri=uri + anchor))


def unbroken(app, doctree, page):
    """Percentages and dates of tables stay on one line."""
    for entry in doctree.findall(nodes.entry):
        for text in list(entry.findall(nodes.Text)):
            whole = re.sub(r"(\d) %", "\\1\u00a0%", text)
            whole = re.sub(r"\b(\d{4})-(\d\d)-(\d\d)\b", "\\1\u2011\\2\u2011\\3", whole)
            if whole != text:
                text.parent.replace(text, nodes.Text(whole))


names = docs_reference.aliases()


def setup(app):
    for language in (*docs_pages.SHOWN_ONLY, "ipython"):
        app.add_lexer(language, PythonLexer)
    app.connect("doctree-resolved", link_names)
    app.connect("doctree-resolved", unbroken)
