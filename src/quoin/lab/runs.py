# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Your runs: curves that grow, and each trained model to be asked. `quoin lab RUN...` opens it."""

import marimo

app = marimo.App(width="full", app_title="Runs · Quoin lab")

with app.setup:
    import marimo as mo

    from quoin.lab.parts.open_runs import open_paths, run_names
    from quoin.lab.parts.page import title
    from quoin.lab.parts.run_views import run_exhibits
    from quoin.lab.parts.widget import ExhibitWidget


@app.cell
def _():
    paths = open_paths(str(mo.query_params().get("run", "")))
    sentence = (
        ", ".join(run_names(paths))
        or "No run is open. Close the lab and begin it with: quoin lab RUN (the folder of a run)."
    )
    title("Runs", sentence)
    return (paths,)


@app.cell
def _(paths):
    mo.vstack([ExhibitWidget(each) for each in run_exhibits(paths)] if paths else [])
    return


if __name__ == "__main__":
    app.run()
