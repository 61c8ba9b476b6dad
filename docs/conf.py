"""Settings of the documentation site. Nothing is fetched: neither in the build nor by the pages."""

import sys
from pathlib import Path

from foresail import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Foresail"
author = "The Foresail developers"
copyright = "The Foresail developers"  # noqa: A001 - the name is Sphinx's
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated_reference"]
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_rtype = False
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Foresail"
html_show_sourcelink = False
html_copy_source = False
