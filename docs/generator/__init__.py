"""The generated half of the site: what is read from the package and not written by hand. `docs/generate.py` runs it.

A page is Markdown under a path such as `notes/area-3.md`. Headings are Markdown, so that contents and search know them;
what comes from docstrings, titles and captions is HTML that was escaped here, so that no character of an equation is
taken for markup."""
