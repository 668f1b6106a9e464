"""The lines to paste of exhibits that show trained models: small models are put where the pages look for theirs, and
the lines print what stands beside the picture."""

import pytest

from quoin.lab.catalog import PAGES
from quoin.lab.parts import digits, exhibits_of
from quoin.lab.parts.train_model import main

NEEDING = [pytest.param(each, id=f"{name}:{each.slug}") for name in PAGES for each in exhibits_of(name) if each.needs]
TEXT = "".join(map(chr, range(32, 127))) + "The end. the cat sat on the mat and the dog sat on the cat. " * 60
SMALL = {
    "diffusion-2d": {"epochs": 1, "num_examples": 400, "hidden_dim": 16, "num_timesteps": 60},
    "diffusion-digits": {"epochs": 1, "num_samples": 20, "channels": [8, 16]},
    "inductive-bias": {"num_rows": [100], "epochs": 1},
    "lstm-lm": {"epochs": 1, "embed_dim": 8, "hidden_dim": 8, "context_length": 16},
    "ngram": {"order": 4},
    "pixelcnn": {"epochs": 1, "num_samples": 4, "channels": 8, "num_layers": 2},
    "transformer-lm": {"epochs": 12, "lr": 0.01, "embed_dim": 8, "num_heads": 2, "num_layers": 1, "context_length": 16},
    "translate-dates": {"num_pairs": 40, "hidden_dim": 8, "embed_dim": 4, "epochs": 1},
    "vae": {"latent_dim": 2, "epochs": 1, "num_samples": 20, "num_importance_samples": 2, "hidden_dims": [16]},
}
OF_TEXT = ("ngram", "lstm-lm", "transformer-lm")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUOIN_CACHE", str(folder))
        yield folder


def train_small(model, folder):
    """The model of a page, by its name in the cache, trained on less."""
    if model.is_ready:
        return
    options = dict(SMALL[model.recipe])
    if model.recipe in OF_TEXT:
        text = folder / "text.txt"
        text.write_text(TEXT)
        options["data"] = f"text:{text}"
    draft = model.folder.with_name("draft")
    draft.mkdir(parents=True)
    main(draft, model.recipe, options, model.folder)


def test_every_exhibit_with_a_model_has_lines_or_is_the_readers_own():
    assert {model.recipe for each in NEEDING for model in each.values[0].needs.values()} == set(SMALL)


@pytest.mark.deep
@pytest.mark.parametrize("exhibit", NEEDING)
def test_the_lines_print_the_first_number(exhibit, cache, capsys):
    for model in exhibit.needs.values():
        train_small(model, cache)
    states = [{}, dict(exhibit.surprise_at)]
    states += [
        {"printed": each} for control in exhibit.controls if control.name == "printed" for each in control.options
    ]
    for state in states:
        view = exhibit.view(state)
        if not view.code:
            assert exhibit.yours
            continue
        assert 2 <= len(view.code.splitlines()) <= 10
        capsys.readouterr()
        exec(compile(view.code, exhibit.slug, "exec"), {})
        printed = capsys.readouterr().out.strip().splitlines()[-1]
        value = view.numbers[0].value
        assert (printed if isinstance(value, str) else digits(float(printed))) == view.numbers[0].text.split()[0]
