# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""What the notes print wrongly: each printed form beside the right one, failing."""

import marimo

app = marimo.App(width="full", app_title="Errata · Quoin lab")

with app.setup:
    from quoin import notes
    from quoin.lab.exhibit_index import exhibit_links
    from quoin.lab.parts.errata_rows import FOUND_RIGHT, errata_tags
    from quoin.lab.parts.page import title
    from quoin.lab.parts.widget import ItemsWidget, LinesWidget

    TEACH_MOST = ("DE56", "DE19", "ZE25", "DE32", "DE48")


@app.cell
def _():
    title(
        "Errata",
        "Unfold a row: the right form is checked here and now, and the printed one must fail, with its counterexample.",
    )
    return


@app.cell
def _():
    errata = {entry.id: entry for entry in notes.entries() if entry.id[1] == "E"}
    first = [errata[id] for id in TEACH_MOST]
    return errata, first


@app.cell
def _(first):
    ItemsWidget("Five that teach most", first, exhibit_links(printed=True))
    return


@app.cell
def _(errata):
    ItemsWidget(
        "All of them",
        list(errata.values()),
        exhibit_links(printed=True),
        filtered=True,
        tags=errata_tags(),
    )
    return


@app.cell
def _():
    LinesWidget("Looked at and found right", FOUND_RIGHT)
    return


if __name__ == "__main__":
    app.run()
