# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Every figure of the notes, drawn at first sight."""

import marimo

app = marimo.App(width="full", app_title="Gallery · Quoin lab")

with app.setup:
    from quoin.lab.parts.gallery import GalleryWidget
    from quoin.lab.parts.page import title


@app.cell
def _():
    title("Gallery", "Every figure of the notes. A click makes it large, with its numbers to change.")
    return


@app.cell
def _():
    GalleryWidget()
    return


if __name__ == "__main__":
    app.run()
