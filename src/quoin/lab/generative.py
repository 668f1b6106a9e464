# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Generative models: undo noise, fool a critic, predict pixel by pixel. Area 19 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Generative models · Quoin lab")

with app.setup:
    import itertools
    import math

    import torch

    from quoin import generate, losses, prob
    from quoin.lab.parts import (
        Choice,
        DragPoints,
        File,
        Handle,
        Number,
        Paint,
        Picture,
        Slider,
        Step,
        TrainedModel,
        View,
        cloud_learner,
        exhibit,
        head,
        model_lines,
        noise_pictures,
        play,
        read_table,
        rest,
    )
    from quoin.lab.parts.run_data import complete_upper_half, guided_digits, normalized_test_points, solver_states
    from quoin.layers import masked_conv2d_definition
    from quoin.metrics import density_and_coverage_definition, nearest_distances
    from quoin.runs import Run

    RING = tuple((round(2 * math.cos(a), 2), round(1.4 * math.sin(a), 2)) for a in (0.2, 0.9, 1.7, 2.5, 3.1, 3.9, 4.6))
    MOONS = TrainedModel("diffusion-2d", {"epochs": 120}, seconds=20)
    DIGITS = TrainedModel("diffusion-digits", {"epochs": 25, "num_samples": 200}, seconds=25)
    PIXELS = TrainedModel("pixelcnn", {"epochs": 25, "num_samples": 100}, seconds=30)
    SOLVERS = {"DDIM": (generate.sample_ddim, 1), "DDPM": (generate.sample_ddpm, 1), "Heun": (generate.sample_heun, 2)}
    HALF = "00022000 00310200 00000200 00002000"  # the beginning of a 2
    LEVELS = (0.0, 5 / 16, 11 / 16, 1.0)  # of the four inks, in sixteenths as the data have them
    BUMP = torch.linspace(-4, 9, 261, dtype=torch.float64)


@app.cell
def _():
    head("generative")
    return


@app.function
@exhibit(
    "Dissolve",
    ids="D0-T",
    intro="Drag the points or place others, and add noise. Arrows lead from noisy points to the denoiser's best guess.",
    controls=(
        DragPoints("points", "points", RING, (-3, -2), (3, 2), 30, 2),
        Slider("t", "time t of 100", 1, 100, 25, 1),
    ),
    surprise="At large t every arrow points at the mean: the best guess is an average, not a sample.",
    surprise_at={"t": 100},
    definition=(prob.add_noise_definition, prob.make_denoiser),
)
def dissolve(points: list[tuple[float, ...]], t: int) -> View:
    """A few points under noise, and what the exact denoiser of these points makes of it."""
    data = torch.tensor([each[:2] for each in points], dtype=torch.float64)
    noise = torch.randn(60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    clean = data[torch.arange(60) % len(data)]
    noisy = prob.add_noise(noise_pictures.SCHEDULE, clean, t, noise)
    guess = noise_pictures.guesses(data, noisy, t).clean
    away = (guess - data.mean(dim=0)).square().sum(dim=-1).mean().sqrt()
    spread = (data - data.mean(dim=0)).square().sum(dim=-1).mean().sqrt().clamp_min(1e-9)
    level = noise_pictures.SCHEDULE.level(t, data)
    picture = Picture(f"{len(data)} points at time {t}; guesses lie {float(away / spread):.2f} of the spread away.")
    axes = picture.axes((-3.3, 3.3), (-2.2, 2.2), box=(10, 10, 620, 400), equal=True, bare=True)
    noise_pictures.draw_guesses(axes, noisy, guess, data.mean(dim=0))
    axes.points_to_drag("points", points)
    return View(
        picture,
        [
            Number("guesses' spread over the data's", float(away / spread)),
            *(Number(name, float(getattr(level, name))) for name in ("signal", "noise")),
        ],
        reached=float(away / spread) < 0.2,
        code=(
            "import torch\n"
            "from quoin.prob import GaussianMixtureDistribution, SphericalNormals, add_noise, cosine_beta_schedule\n"
            f"data = torch.tensor({data.tolist()!r}, dtype=torch.float64)\n"
            "noise = torch.randn(60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)\n"
            f"schedule, n, t = cosine_beta_schedule(100), len(data), {t}\n"
            "noisy, level = add_noise(schedule, data[torch.arange(60) % n], t, noise), schedule.level(t, data)\n"
            "normals = SphericalNormals(level.signal * data, level.noise.square().expand(n))\n"
            "guess = GaussianMixtureDistribution(torch.ones(n).double() / n, normals).responsibilities(noisy) @ data\n"
            "far = lambda x: (x - data.mean(dim=0)).square().sum(dim=-1).mean().sqrt()\n"
            "print(float(far(guess) / far(data)))"
        ),
    )


@app.cell
def _():
    play(dissolve)
    return


@app.function
@exhibit(
    "Walk back",
    ids="D0-T D5.2-9",
    intro="Drag your noise (green): eight walks begin there. Grey are test points, blue other walks.",
    controls=(
        Handle("noise", "your noise", (0.6, 1.1), (-3.0, -3.0), (3.0, 3.0)),
        Choice("solver", "solver", tuple(SOLVERS)),
        Slider("steps", "steps", default=20, choices=(2, 5, 10, 20, 50)),
    ),
    surprise="Under DDIM the same noise ends at the same point; under DDPM eight walks end in eight places.",
    surprise_at={"solver": "DDPM"},
    definition=(generate.sample_ddim, generate.sample_ddpm),
    needs={"run": MOONS},
)
def walk_back(noise: tuple[float, float], solver: str, steps: int, run: Run) -> View:
    """Paths of a trained diffusion model from noise to two moons."""
    start = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    start[:8] = torch.tensor(noise)
    walk, evaluations = SOLVERS[solver]
    states, real = solver_states(run, walk, start, steps), normalized_test_points(run)[:800]
    spread = float((states[-1, :8] - states[-1, :8].mean(dim=0)).square().sum(dim=-1).mean().sqrt())
    mmd = float(prob.squared_mmd(states[-1, 8:], real, [0.1, 0.3, 1.0]))
    picture = Picture(f"{solver} in {steps} steps: eight walks from one noise end {spread:.2f} apart.")
    axes = noise_pictures.draw_walks(picture, states, real[:300])
    axes.handle("noise", *noise, label="your noise")
    return View(
        picture,
        [
            Number("eight walks end apart by", spread),
            Number("squared MMD to test points", mmd),
            Number("evaluations of the network", steps * evaluations),
        ],
        reached=spread > 0.1,
        code=model_lines.walk_lines(noise, walk.__name__, steps),
    )


@app.cell
def _():
    play(walk_back)
    return


@app.function
@exhibit(
    "Ask for a digit",
    ids="D5.2-5 D0-T",
    intro="Sixteen digits of one class, all that were drawn. Raise the guidance.",
    controls=(
        Slider("digit", "digit", 0, 9, 8, 1),
        Slider("guidance", "guidance scale", 0.0, 5.0, 1.0, 0.5),
    ),
    surprise="With more guidance all are true to their class, and all alike.",
    surprise_at={"guidance": 4.0},
    definition=(generate.classifier_free_guidance_definition, density_and_coverage_definition),
    needs={"run": DIGITS},
)
def ask_for_a_digit(digit: int, guidance: float, run: Run) -> View:
    """Samples of one class by a guided diffusion model, judged by their nearest test digits."""
    found, plain = guided_digits(run, digit, guidance), guided_digits(run, digit, 1.0)
    picture = Picture(f"Sixteen samples of {digit} at guidance {guidance:g}; pixels vary by {found.spread:.3f}.")
    noise_pictures.draw_digits(picture, found.images, 4, (120, 10, 400, 400))
    return View(
        picture,
        [
            Number("nearest test digit is of the class", found.right),
            Number("test digits of the class covered", found.coverage),
            Number("deviation of a pixel", found.spread),
        ],
        reached=guidance > 1 and found.right > 0.9 and found.spread < 0.85 * plain.spread,
        note=f"At guidance 1: {plain.right:.2f}, {plain.coverage:.2f} and {plain.spread:.3f}. Covered: a sample is as "
        "near as the fifth neighbour.",
        code=model_lines.digit_lines(digit, guidance),
    )


@app.cell
def _():
    play(ask_for_a_digit)
    return


@app.function
@exhibit(
    "The judge",
    ids="D5.2-7",
    intro="Drag the generator's bump (blue) along p (grey). The line is the best discriminator D.",
    controls=(Slider("place", "place of the bump", 0.0, 6.0, 1.5, 0.05),),
    surprise="Far apart D is flat at 0 where the fakes are: ln(1 − D) has no slope left, −ln D has.",
    surprise_at={"place": 5.0},
    definition=(losses.optimal_discriminator, losses.saturating_loss, losses.non_saturating_loss_definition),
)
def best_discriminator(place: float) -> View:
    """Two normal densities, the optimal discriminator between them, and the slopes of two losses of the generator."""
    real, fake = (torch.distributions.Normal(torch.tensor(mean).double(), 1.0) for mean in (0.0, place))
    p, p_fake = real.log_prob(BUMP).exp(), fake.log_prob(BUMP).exp()
    critic = losses.optimal_discriminator(p, p_fake)
    moved = torch.tensor(place, dtype=torch.float64, requires_grad=True)
    nodes = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(400).double() + 0.5) / 400)
    logits = real.log_prob(moved + nodes) - fake.log_prob(moved + nodes)  # D's, which stays while G moves
    slopes = [
        float(torch.autograd.grad(loss(logits).mean(), moved, retain_graph=True)[0])
        for loss in (losses.saturating_loss, losses.non_saturating_loss)
    ]
    apart = float(prob.jensen_shannon_divergence(p / p.sum(), p_fake / p_fake.sum()))
    picture = Picture(f"The generator at {place:.2f}: slopes {slopes[0]:.3f} and {slopes[1]:.3f}.")
    axes = picture.axes((-4, 9), (0, 1.05), box=(46, 14, 580, 350), x_label="x")
    axes.line(BUMP, p, "faint", width=3, label="p")
    axes.line(BUMP, p_fake, "model", width=3, label="the generator's density")
    axes.line(BUMP, critic, "ink", width=2, label="D(x)")
    axes.text(-3.9, 0.93, "D(x)", "ink")
    for loss, height, slope in (("ln(1 − D)", 0.62, slopes[0]), ("−ln D", 0.54, slopes[1])):
        length = math.copysign(min(abs(slope), 5.0), slope)
        axes.arrow((place, height), (place - length, height), "change")
        axes.text(place + 0.15, height - 0.012, f"{loss}: {slope:.3f}", "change")
    axes.handle("place", place, 0.4, label="place of the bump", along="x")
    return View(
        picture,
        [
            Number("Jensen–Shannon", apart, f"of {math.log(2):.3f} nats"),
            Number("slope of ln(1 − D)", slopes[0]),
            Number("slope of −ln D", slopes[1]),
        ],
        reached=abs(slopes[0]) < 0.05 and abs(slopes[1]) > 1,
        code=(
            "import torch\n"
            "from torch.distributions import Normal\n"
            "from quoin.prob import jensen_shannon_divergence\n"
            "x = torch.linspace(-4, 9, 261, dtype=torch.float64)\n"
            f"p, q = (Normal(torch.tensor(mean).double(), 1.0).log_prob(x).exp() for mean in (0.0, {place!r}))\n"
            "print(float(jensen_shannon_divergence(p / p.sum(), q / q.sum())))"
        ),
    )


@app.cell
def _():
    play(best_discriminator)
    return


@app.function
@exhibit(
    "What may a pixel see?",
    ids="D5.2-8",
    intro="Drag the pixel. Pixels are drawn row by row, so each may depend on those before it.",
    controls=(
        Handle("pixel", "pixel", (4.5, 3.5), (0.0, 0.0), (9.0, 9.0), whole=True),
        Choice("stack", "layers", ("two stacks", "plain masks")),
        Slider("layers", "number of layers", 1, 4, 3, 1),
    ),
    surprise="Plain masks leave a blind spot above on the right, however many layers; two stacks have none.",
    surprise_at={"stack": "plain masks"},
    definition=masked_conv2d_definition,
)
def pixel_sees(pixel: tuple[float, float], stack: str, layers: int) -> View:
    """The receptive field of a pixel in two kinds of masked convolutions, by gradients."""
    row, column = min(8, int(9 - pixel[1])), min(8, int(pixel[0]))
    seen = noise_pictures.seen_pixels(stack == "plain masks", layers, row, column)
    reach = 1 + layers
    blind = [
        (i, j)
        for i, j in itertools.product(range(9), repeat=2)
        if (i, j) < (row, column) and max(row - i, abs(column - j)) <= reach and not seen[i, j]
    ]
    picture = Picture(f"Pixel {row + 1}, {column + 1} sees {int(seen.sum())} pixels; {len(blind)} are hidden from it.")
    axes = noise_pictures.draw_field(picture, seen, blind, (row, column))
    axes.handle("pixel", column + 0.5, 8.5 - row, label="pixel")
    return View(
        picture,
        [Number("blind pixels", str(len(blind))), Number("seen", int(seen.sum()))],
        reached=len(blind) > 0,
        code=(
            "import torch\n"
            "from quoin.models import GatedPixelCNN, PixelCNN\n"
            f"sizes = dict(channels=8, num_layers={layers}, kernel_size=3, first_kernel_size=3)\n"
            f"kind = {'PixelCNN' if stack == 'plain masks' else 'GatedPixelCNN'}\n"
            "model = kind((1, 9, 9), 2, generator=torch.Generator().manual_seed(0), **sizes).double()\n"
            "x = torch.full((1, 1, 9, 9), 0.5, dtype=torch.float64, requires_grad=True)\n"
            f"seen = torch.autograd.grad(model.logits(x)[0, :, {row}, {column}].square().sum(), x)[0][0, 0] != 0\n"
            f"near = [(i, j) for i in range(9) for j in range(9) if max({row} - i, abs({column} - j)) <= {reach}]\n"
            f"print(sum(p < ({row}, {column}) and not seen[p] for p in near))"
        ),
    )


@app.cell
def _():
    play(pixel_sees)
    return


@app.function
@exhibit(
    "Pixel by pixel",
    ids="D5.2-8",
    intro="Paint the upper half: the model draws the rest, row by row, eight times over.",
    controls=(
        Paint("ink", "upper half", 4, 8, 4, tuple(map(int, HALF.replace(" ", "")))),
        Slider("temperature", "temperature", 0.1, 2.0, 1.0, 0.1),
    ),
    surprise="Cold, all eight are one digit: each pixel takes its likeliest level. Warm, they differ.",
    surprise_at={"temperature": 0.1},
    definition=generate.complete_pixels,
    needs={"run": PIXELS},
)
def pixel_by_pixel(ink: list[int], temperature: float, run: Run) -> View:
    """Eight completions of a half-painted digit, by a gated PixelCNN."""
    half = tuple(LEVELS[level] for level in ink)
    images, bits = complete_upper_half(run, half, temperature)
    spread = float(images[:, 4:].std(dim=0).mean())
    picture = Picture(f"Eight completions at temperature {temperature:g} vary by {spread:.3f}.", height=260)
    board = picture.axes((0, 8), (0, 4), box=(20, 40, 200, 100), bare=True, title="yours: the upper half")
    board.paint("ink", ink, 4, 8, roles=("paper", "hand 33%", "hand 66%", "hand"))
    noise_pictures.draw_digits(picture, images, 4, (250, 40, 380, 340))
    measured = run.metrics.get("test_bits_per_dimension", math.nan) if run.metrics else math.nan
    return View(
        picture,
        [
            Number("deviation of a pixel below", spread),
            Number("these eight", bits, "bits per dimension"),
            Number("test digits", measured, "bits per dimension"),
        ],
        reached=spread < 0.1,
        code=model_lines.pixel_lines(half, temperature),
    )


@app.cell
def _():
    play(pixel_by_pixel)
    return


@app.function
@exhibit(
    "Yours: a cloud to learn",
    ids="D0-T",
    intro="Two columns of your CSV file as a cloud. A step is 40 updates of a network; blue: what it makes of noise.",
    controls=(
        File("file", "CSV file", (".csv",)),
        Choice("denoiser", "denoiser", ("a network that learns", "exact, of these rows")),
        Step("steps", "40 updates", cloud_learner.STEPS),
    ),
    surprise="The exact denoiser leads to your rows: it knows them by heart. A network smooths: it makes new ones.",
    surprise_at={"denoiser": "exact, of these rows"},
    definition=(losses.denoising_loss, generate.sample_ddim),
    yours=True,
)
def your_cloud(file: bytes | None, denoiser: str, steps: int) -> View:
    """Samples of a small diffusion model of the reader's rows, beside rows that it has not seen."""
    names, rows = read_table(file).first_numbers(2) if file is not None else (("x", "y"), cloud_learner.two_moons())
    cloud, exact = cloud_learner.split_cloud(rows), denoiser.startswith("exact")
    states, found = cloud_learner.paths_to(cloud.train, None if exact else steps)
    mmd = float(prob.squared_mmd(states[-1], cloud.held_out, [0.1, 0.3, 1.0]))
    near = [float(nearest_distances(each, cloud.train).median()) for each in (states[-1], cloud.held_out)]
    picture = Picture(f"200 samples beside {len(cloud.held_out)} rows held out: squared MMD {mmd:.4f}.")
    cloud_learner.draw_learning(picture, cloud.train, states, found, names)
    return View(
        picture,
        [
            Number("squared MMD to rows held out", mmd),
            Number("samples to nearest row learnt", near[0], "std"),
            Number("held-out rows to it", near[1], "std"),
        ],
        reached=exact and near[0] < 0.5 * near[1],
        note=f"{len(cloud.train)} rows learnt (green), {len(cloud.held_out)} held out; columns over their deviations. "
        "A file is not in the link.",
    )


@app.cell
def _():
    play(your_cloud)
    return


@app.cell
def _():
    rest("generative")
    return


if __name__ == "__main__":
    app.run()
