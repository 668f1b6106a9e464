# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Latent variables: EM and the VAE raise one lower bound. Area 18 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Latent variables · Quoin lab")

with app.setup:
    import math
    from typing import Any, cast

    import torch

    from quoin import losses, prob
    from quoin.lab.parts import (
        RIGHT,
        DragPoints,
        Handle,
        Number,
        Paint,
        Picture,
        Slider,
        Step,
        Switch,
        TrainedModel,
        View,
        exhibit,
        head,
        latent_pictures,
        play,
        printed_choice,
        rest,
    )
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.elbo_forms import LINE, SEEN, decoder_losses, gradient_cloud, gradient_forms
    from quoin.lab.parts.em_states import COVARIANCE, MEANS, em_states, encoded_digits
    from quoin.lab.parts.model_lines import bound_lines, plane_lines
    from quoin.lab.parts.two_hills import draw_hills, two_hills
    from quoin.models import em_step, em_step_definition
    from quoin.notes.claims.elbo import bound_with_its_divergence, exact_noise
    from quoin.notes.claims.latent import divergence_to_the_standard_normal
    from quoin.runs import Run

    POINTS = ((-1.6, 0.4), (-1.2, 0.9), (-0.9, 0.2), (-1.4, -0.3), (-0.7, 0.7), (-1.9, 0.1), (-1.1, -0.1))
    POINTS += ((0.7, -0.9), (1.1, -1.3), (0.4, -1.4), (0.9, -0.5), (1.5, -0.9), (1.2, -1.7), (1.9, 1.7))
    FLOOR = 0.02
    ZERO = (
        "00122000 00232310 01300220 01200220 01200220 01200220 00313200 00122000"  # a digit to begin with, by rows
    ).replace(" ", "")
    VAE_2 = TrainedModel("vae", {"latent_dim": 2, "num_samples": 200, "num_importance_samples": 100}, seconds=12)


@app.cell
def _():
    head("latent")
    return


@app.function
@exhibit(
    "Whose point is it?",
    ids="D6-9 D6-10 DE54",
    intro="Place or drag points. By turns the E-step shares the points out, the M-step moves the ellipses.",
    controls=(
        DragPoints("points", "points", POINTS, (-3, -3), (3, 3), 40, 4),
        Step("step", "E, M by turns", 40, 8),
        Switch("floor", "least variance 0.02", True),
    ),
    surprise="The likelihood never falls. Without the floor a component shrinks onto a point or a line, "
    "and the likelihood goes to infinity.",
    surprise_at={"floor": False},
    definition=(em_step_definition, em_step),
)
def whose_point(points: list[tuple[float, ...]], step: int, floor: bool) -> View:
    """EM of three normal components, half a step at a time."""
    given = tuple((x, y) for x, y, *_ in points)
    found = em_states(given, step // 2, FLOOR if floor else 0.0)
    x = torch.tensor(given, dtype=torch.float64)
    last = len(found.mixtures) - 1
    seen = found.mixtures[last if step % 2 or found.collapsed else max(last - 1, 0)]
    responsibilities = seen.responsibilities(x).tolist() if step else [[1 / 3] * 3] * len(x)
    mixture, likelihood = found.mixtures[-1], found.log_likelihoods[-1]
    least = float(torch.linalg.eigvalsh(mixture.components.covariance_matrices).min().clamp_min(0).sqrt())
    picture = Picture(
        f"{len(x)} points and three components after {last} steps of EM: {likelihood:.3f} nats a point.", height=470
    )
    axes = picture.axes((-3, 3), (-3, 3), box=(30, 10, 410, 410), equal=True)
    latent_pictures.draw_ellipses(axes, mixture)
    axes.points_to_drag("points", points, roles=[latent_pictures.mixed_role(each) for each in responsibilities])
    latent_pictures.draw_stairs(picture, found.log_likelihoods, 20, (490, 40, 140, 340))
    return View(
        picture,
        [
            Number("log-likelihood of a point", likelihood, "nats"),
            Number("smallest standard deviation", least),
            Number("next step", "no variance left: ∞" if found.collapsed else ("M" if step % 2 else "E")),
        ],
        reached=found.collapsed,
        code=(
            "import torch\n"
            "from quoin.models import em_step\n"
            "from quoin.prob import FullNormals, GaussianMixtureDistribution\n"
            f"x = torch.tensor({given!r}, dtype=torch.float64)\n"
            f"means, wide = torch.tensor({MEANS!r}, dtype=x.dtype), {COVARIANCE} * torch.eye(2, dtype=x.dtype)\n"
            "normals = FullNormals(means, wide.repeat(3, 1, 1))\n"
            "mixture = GaussianMixtureDistribution(torch.full((3,), 1 / 3, dtype=x.dtype), normals)\n"
            f"for _ in range({last}):\n"
            f"    mixture = em_step(mixture, x, min_variance={FLOOR if floor else 0.0}).output\n"
            "print(float(mixture.log_prob(x).mean()))"
        ),
    )


@app.cell
def _():
    play(whose_point)
    return


@app.function
@exhibit(
    "One peak or two?",
    ids="D6-9 D6-9c",
    intro="Two components of equal weight (sky) and their sum. Drag the mean at the right towards the other.",
    controls=(
        Handle("apart", "the second mean", (1.5, 0.0), (0.1, 0.0), (4.0, 0.0)),
        Slider("sigma", "σ of both", 0.3, 2.0, 1.0, step=0.05),
    ),
    surprise="Two components need not show: up to 2σ apart their sum has one peak, exactly then.",
    surprise_at={"apart": [0.95, 0.0]},
    definition=prob.modes_1d,
)
def one_peak_or_two(apart: tuple[float, float], sigma: float) -> View:
    """The density of two equal normals on the line, and its peaks."""
    distance = 2 * apart[0]  # the means are at minus and plus what is dragged
    mixture, peaks = two_hills(distance, sigma)
    picture = Picture(f"Means {distance / sigma:.2f} σ apart: {len(peaks)} {'peak' if len(peaks) == 1 else 'peaks'}.")
    draw_hills(picture, mixture, peaks)
    return View(
        picture,
        [Number("peaks", str(len(peaks))), Number("means apart by", distance / sigma, "σ")],
        reached=len(peaks) == 1,
        code=(
            "from quoin.lab.parts.two_hills import two_hills\n"
            f"mixture, peaks = two_hills({distance!r}, {sigma!r})\n"
            "print(len(peaks))"
        ),
    )


@app.cell
def _():
    play(one_peak_or_two)
    return


@app.function
@exhibit(
    "The bound and the gap",
    ids="D6-17 D6-18 D6-19 D6-20 M29 D6-26 DE56",
    intro="Drag q over the posterior. The two bars always add up to ln p(x).",
    controls=(
        Handle("q", "q: mean and deviation", (0.0, 0.4), (-2.5, 0.1), (3.0, 2.0)),
        Switch("printed", "as printed: plus D(prior‖q)"),
    ),
    surprise="The printed Approach 2 rises above ln p(x), which no lower bound can.",
    surprise_at={"printed": True},
    definition=(losses.elbo_definition, losses.elbo_analytic_kl, losses.elbo_groupings),
)
def the_bound(q: tuple[float, float], printed: bool) -> View:
    """The bound of a linear model of one latent number, for a normal q."""
    mean, std = q
    belief = prob.TriangularNormal(torch.tensor([mean]).double(), torch.tensor([[std]]).double())
    truth, evidence = LINE.posterior(SEEN), float(LINE.log_evidence(SEEN))
    right, wrong = (
        float(losses.elbo_analytic_kl(LINE, belief, SEEN, exact_noise(1), kl=form(belief)))
        for form in (bound_with_its_divergence.right, bound_with_its_divergence.printed)
        if form is not None
    )
    z = torch.linspace(-3, 3.5, 131, dtype=torch.float64)
    curves = {
        "prior p(z)": (prob.MultivariateNormal(torch.zeros(1).double(), torch.eye(1).double()), "faint"),
        "posterior p(z | x)": (truth, "hidden"),
        "q(z)": (belief, "model"),
    }
    tables = [each.log_prob(z.unsqueeze(-1)).softmax(dim=0) for each, _ in curves.values()]
    tables[2] = torch.where(tables[2] < 1e-50, 0, tables[2])  # where q all but ends it is taken to end
    tables[2] = tables[2] / tables[2].sum()
    six = torch.stack(losses.elbo_groupings(tables[0], LINE.log_likelihood(SEEN, z.unsqueeze(-1)).exp(), tables[2]))
    picture = Picture(
        f"q = N({mean:.2f}, {std:.2f}²): bound {right:.3f}, ln p(x) {evidence:.3f}, gap {evidence - right:.3f} nats.",
        height=450,
    )
    top = picture.axes((-3, 3.5), (0, 1.25), box=(30, 14, 600, 220), y_ticks=False)
    for place, (name, (distribution, role)) in enumerate(curves.items()):
        top.line(z, distribution.log_prob(z.unsqueeze(-1)).exp(), role, width=2.4, label=name)
        top.text(-2.95, 1.15 - 0.1 * place, name, role)
    sizes = picture.axes((-3, 3.5), (0, 2.2), box=top.box, bare=True)  # a handle's height is the deviation
    sizes.line([mean - std, mean + std], [std, std], "model", width=1.4)
    sizes.handle("q", mean, std, label="q: mean and deviation")
    latent_pictures.draw_bound(picture, right, evidence, wrong if printed else None, (30, 300, 600, 100))
    return View(
        picture,
        [
            Number("bound", wrong if printed else right, "nats", printed=printed),
            Number("ln p(x)", evidence, "nats"),
            Number("six ways to write it differ by", float(six.max() - six.min()), "nats"),
        ],
        reached=printed and wrong > evidence,
        code=bound_lines(mean, std, printed),
    )


@app.cell
def _():
    play(the_bound)
    return


@app.function
@exhibit(
    "One gradient, five ways",
    ids="D6-24 D6-25 D6-26 D6-27 DE55 DE60",
    intro="Each dot estimates one gradient from m samples of q, 200 times over. Narrow q.",
    controls=(
        Slider("m", "samples m", default=4, choices=(2, 4, 8, 16, 32, 64)),
        Slider("sigma", "standard deviation of q", 0.1, 2.0, 1.6),
        printed_choice({"DE60": "noise times σ²", "DE55": "the sum over m divided by N"}),
    ),
    surprise="All have one mean; the score's spread grows as q narrows, the reparametrised one's shrinks. "
    "The printed σ² makes the noise smaller than q's own.",
    surprise_at={"sigma": 0.2},
    definition=(losses.elbo_reinforce, losses.elbo_reparameterized, losses.elbo_bonnet_price),
)
def four_gradients(m: int, sigma: float, printed: str) -> View:
    """Estimates of the bound's gradient in the mean of q, by five ways of writing it."""
    noise = torch.randn(m, 200, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    clouds = {name: gradient_cloud(form, sigma, noise) for name, form in gradient_forms(printed).items()}
    at = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    bound = LINE.elbo(SEEN, at, sigma**2 * torch.eye(1, dtype=torch.float64))
    exact = float(torch.autograd.grad(bound, at)[0])
    score, path = (float(clouds[name].std()) for name in list(clouds)[:3:2])
    picture = Picture(
        f"200 estimates each, from {m} samples: the score's deviate by {score:.3g}, reparametrised ones by {path:.3g}."
    )
    wrong = {"DE60": ("reparametrised",), "DE55": tuple(clouds)}.get(printed, ())
    latent_pictures.draw_clouds(picture, clouds, exact, wrong)
    return View(
        picture,
        [
            Number("deviation, score", score, printed=printed == "DE55"),
            Number("reparametrised", path, printed=printed != RIGHT),
            Number("exact gradient", exact),
        ],
        reached=printed == RIGHT and score > 5 * path,
        note=f"One point, N = 1: every estimate is {m} times too large." if printed == "DE55" else "",
        code=(
            "import torch\n"
            "from quoin.losses import elbo_reinforce\n"
            "from quoin.models import PPCA\n"
            "from quoin.prob import DiagonalNormal\n"
            "model = PPCA(torch.ones(1, 1).double(), torch.zeros(1).double(), 0.7).requires_grad_(False)\n"
            f"noise = torch.randn({m}, 200, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)\n"
            "mean = torch.zeros(200, 1, dtype=torch.float64, requires_grad=True)\n"
            f"q = DiagonalNormal(mean, torch.full_like(mean, {math.log(sigma)!r}))\n"
            f"bound = {m if printed == 'DE55' else 1} * elbo_reinforce(model, q, torch.tensor([1.5]).double(), noise)\n"
            "print(float(torch.autograd.grad(bound.sum(), mean)[0].std()))"
        ),
    )


@app.cell
def _():
    play(four_gradients)
    return


@app.function
@exhibit(
    "The latent plane",
    ids="D6-23 D6-28 D6-29 D6-30 DE59 DE61",
    intro="Move over the plane of two latents. Numerals are test digits; on the right is what is decoded there.",
    controls=(
        Handle("z", "z", (0.0, 2.6), (-4.0, -4.0), (4.0, 4.0)),
        printed_choice({"DE61": "KL with + log σ²", "DE59": "the loss with + ln p(x | z)"}),
    ),
    surprise="Between two classes lie digits that are both; far out there is nothing to be like.",
    surprise_at={"z": [4.0, 4.0]},
    definition=(losses.gaussian_vae_loss_definition, prob.kl_standard_normal_definition),
    needs={"run": VAE_2},
)
def latent_plane(z: tuple[float, float], printed: str, run: Run) -> View:
    """The plane of a VAE with two latents."""
    digits, model = encoded_digits(run), cast("Any", run.model)
    with torch.no_grad():
        image = model.decode_mean(torch.tensor([z]))[0, 0]
    away = (digits.means - torch.tensor(z)).norm(dim=-1)
    near = digits.classes[away.argsort()[:10]]
    counts = near.bincount(minlength=10).sort(descending=True)
    form = form_of(divergence_to_the_standard_normal, printed == "DE61")
    kl = float(form(digits.means, digits.stds).mean())  # pyright: ignore[reportOptionalCall]
    measured = run.metrics.get("test_bits_per_dimension", math.nan) if run.metrics else math.nan
    alike = f"nearest: {int(counts.values[0])} of 10 are a {int(counts.indices[0])}"
    picture = Picture(f"At z = {z[0]:.2f}, {z[1]:.2f}; {alike}.", height=440)
    axes = latent_pictures.draw_plane(picture, digits.means, digits.classes, (46, 10, 380, 380))
    axes.handle("z", *z, label="z")
    large = picture.axes(box=(456, 40, 176, 176), bare=True, title="decoded here")
    large.image(image)
    picture.text(456, 250, alike, size=13)
    picture.text(456, 272, f"the nearest is {float(away.min()):.2f} away", size=13)
    shown = [Number("mean KL(q‖prior)", kl, "nats", printed=printed == "DE61"), Number("bits per dimension", measured)]
    note = "Two latents cost bits: eight reach about 3.4 per dimension."
    if printed == "DE59":
        right, wrong = decoder_losses(run, False), decoder_losses(run, True)
        shown = [
            Number("loss", wrong.trained, "nats", printed=True),
            Number("loss of one mean image", wrong.mean_image, "nats", printed=True),
        ]
        note = f"As it is right: {right.trained:.1f}, and {right.mean_image:.1f} for one mean image whatever z is."
    return View(
        picture,
        [*shown, Number("nearest test digit", float(away.min()))],
        reached=float(away.min()) > 0.8 or int(counts.values[1]) >= 3,
        code=plane_lines(printed),
        note=note,
    )


@app.cell
def _():
    play(latent_plane)
    return


@app.function
@exhibit(
    "Yours: a digit",
    ids="D6-14 D6-16",
    intro="Paint a digit: the encoder places it, the decoder draws it again.",
    controls=(
        Paint("ink", "digit", 8, 8, 4, tuple(map(int, ZERO))),
        Slider("m", "importance samples", default=64, choices=(1, 4, 16, 64, 256)),
    ),
    definition=prob.iwae_bound,
    needs={"run": VAE_2},
    yours=True,
)
def your_digit(ink: list[int], m: int, run: Run) -> View:
    """A painted digit's place, its reconstruction, and bounds of its evidence."""
    x = torch.tensor(ink, dtype=torch.float32).reshape(1, 1, 8, 8) / 3
    digits, model = encoded_digits(run), cast("Any", run.model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        q = model.encoder(x)
        again = model.decode_mean(q.mean)[0, 0]
        latent = q.transform(q.sample_noise((m,), generator=generator))
        weights = model.log_joint(x, latent) - q.log_prob(latent)
    bound, iwae = float(weights.mean()), float(prob.iwae_bound(weights)[0])
    picture = Picture(f"Your digit at {q.mean[0, 0]:.2f}, {q.mean[0, 1]:.2f} in the plane of latents.", height=440)
    axes = latent_pictures.draw_plane(picture, digits.means, digits.classes, (46, 10, 360, 360))
    axes.points(q.mean[:, 0], q.mean[:, 1], "hand", size=8)
    picture.axes(box=(440, 40, 170, 170), bare=True, title="yours").paint(
        "ink", ink, 8, 8, roles=("paper", "hand 33%", "hand 66%", "hand")
    )
    picture.axes(box=(440, 250, 170, 170), bare=True, title="decoded again").image(again)
    nats = 64 * math.log(2)  # of 64 pixels; a level of ink is 1 / 16 wide, log2 16 = 4 bits
    return View(
        picture,
        [
            Number("IWAE bound", 4 - iwae / nats, "bits a pixel"),
            Number("ELBO", 4 - bound / nats, "bits a pixel"),
            Number("KL(q‖prior)", float(prob.kl_standard_normal(q.mean, q.log_std)[0]), "nats"),
        ],
        note="With more samples the bound rises, so the bits fall. A painted digit costs more than a test digit.",
    )


@app.cell
def _():
    play(your_digit)
    return


@app.cell
def _():
    rest("latent")
    return


if __name__ == "__main__":
    app.run()
