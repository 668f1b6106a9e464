# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Tensors: an einsum string is a program, and rank is not order. Area 1 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Tensors · Quoin lab")

with app.setup:
    import math

    import torch
    from jaxtyping import Float
    from torch import Tensor

    from quoin.errors import UserError
    from quoin.lab.parts import Number, Picture, View, digits, exhibit, head, play, rest
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.controls import RIGHT, Handle, Slider, Step, Switch, Text, printed_choice
    from quoin.lab.parts.tensor_pictures import (
        UNREACHED,
        ball,
        draw_discs,
        draw_legs,
        length,
        parse_legs,
        parse_matrix,
        rank_of_the_limit,
        two_terms,
    )
    from quoin.notes.claims.linear_algebra import p_norm_takes_moduli
    from quoin.notes.claims.tensors import (
        batch_index_is_not_summed,
        bmm_multiplies_matrices,
        zero_pure_tensors_have_rank_zero,
    )
    from quoin.tensor import (
        bmm_definition,
        cp_decompose,
        cp_tensor,
        det,
        eigendecomposition,
        einsum_definition,
        einsum_multiplications,
        gershgorin_discs,
        growth_rates,
        matrix_rank,
        norm,
        norm_definition,
        power_iteration,
        pure_tensor,
    )

    STEPS = 20
    EXPONENTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 1000.0)  # the last is ∞


@app.cell
def _():
    head("tensors")
    return


@app.function
@exhibit(
    "Legs",
    ids="D1.2-3 D1.2-4 D1.2-5 D1.2-6 D1.2-7 D1.2-8 Z11.19 DE14 ZE26",
    intro="Type an einsum and the shapes of its tensors. What the output lacks is summed.",
    controls=(
        Text("spec", "einsum", "bik,bkj->bij", 40),
        Text("shapes", "shapes", "3 2 4, 3 4 2", 60),
        printed_choice({"DE14": "sum what repeats", "ZE26": "BMM multiplies entries"}),
    ),
    surprise="Sum what repeats, and the batch index b is summed too: three products melt into one.",
    surprise_at={"printed": "DE14"},
    definition=(einsum_definition, bmm_definition),
)
def legs(spec: str, shapes: str, printed: str) -> View:
    """The boxes and legs of an einsum on random tensors, and what it costs."""
    indexed, sizes, given = parse_legs(spec, shapes)
    repeats = printed == "DE14"
    done = parse_legs(spec.split("->")[0], shapes)[0] if repeats else indexed
    generator = torch.Generator().manual_seed(0)
    operands = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in given]
    right = form_of(batch_index_is_not_summed, False)(spec, *operands)
    result, note = right, ""
    if printed == "ZE26":
        result, note = entrywise(operands, right)
    elif repeats:
        result = form_of(batch_index_is_not_summed, True)(spec, *operands)
    cost = einsum_multiplications(spec, *given)
    shape = "none" if result is None else " × ".join(map(str, result.shape)) or "a number"
    summed = [index for index in sizes if index not in done.output]
    picture = Picture(f"{spec}: summed over {', '.join(summed) or 'nothing'}; the result is {shape}.", height=350)
    draw_legs(picture, indexed.terms, done.output, sizes, "printed" if repeats else "model")
    wrong = printed != RIGHT
    return View(
        picture,
        [
            Number("products taken", str(cost)),
            Number("shape of the result", shape, printed=wrong),
            Number("its order", "none" if result is None else str(result.ndim), printed=wrong),
        ],
        reached=repeats and result is not None and result.shape != right.shape,
        note=note,
        code=(
            "from quoin.tensor import einsum_multiplications\n"
            f"shapes = {given!r}\n"
            f"print(einsum_multiplications({spec!r}, *shapes))"
        ),
    )


@app.function
def entrywise(
    operands: list[Float[Tensor, "..."]], right: Float[Tensor, "..."]
) -> tuple[Float[Tensor, "..."] | None, str]:
    """What comes of operands multiplied entry by entry, as printed of BMM, and how far that is from their einsum."""
    if len(operands) != 2:
        raise UserError(f"expected two tensors for a BMM, got {len(operands)}; write a spec of two")
    try:
        result = form_of(bmm_multiplies_matrices, True)(*operands)
    except UserError:
        first, second = (" × ".join(map(str, each.shape)) for each in operands)
        return None, f"Entry by entry, {first} and {second} have no product; matrix by matrix they have."
    if result.shape != right.shape:
        return result, "Entry by entry the result has another shape."
    return result, f"Entry by entry it is off by up to {float((result - right).abs().max()):.3g}."


@app.cell
def _():
    play(legs)
    return


@app.function
@exhibit(
    "Balls",
    ids="Z2.1 Z2.2 Z2.3 Z2.4 Z2.5 ZE1 ZE2 ZE3",
    intro="All vectors of p-norm 1. Drag x and y: is the straight way x + y the shorter one?",
    controls=(
        Handle("x", "x", (-0.05, 1.0), (-1.6, -1.6), (1.6, 1.6)),
        Handle("y", "y", (1.0, 0.05), (-1.6, -1.6), (1.6, 1.6)),
        Slider("p", "p", default=2.0, choices=EXPONENTS, last="∞"),
        Switch("printed", "as printed: without bars"),
    ),
    surprise="Below p = 1 the ball caves in, and the way over x is shorter than the straight one: no norm.",
    surprise_at={"p": 0.5},
    definition=norm_definition,
)
def balls(x: tuple[float, float], y: tuple[float, float], p: float, printed: bool) -> View:
    """The unit ball of a p, and a triangle of x, y and their sum."""
    p = math.inf if p == EXPONENTS[-1] else p
    a, b = (torch.tensor(each, dtype=torch.float64) for each in (x, y))
    direct, detour = length(a + b, p), length(a, p) + length(b, p)
    without = float(form_of(p_norm_takes_moduli, True)(a, p)) if printed and math.isfinite(p) else length(a, p)
    picture = Picture(f"p = {digits(p)}: straight {digits(direct)}, by x {digits(detour)}.")
    axes = picture.axes((-2.6, 2.6), (-1.8, 1.8), equal=True)
    axes.polygon(ball(p, False), "model 14%", edge="model", label="length at most 1")
    if printed:
        odd = ball(p, True)
        axes.line([each[0] for each in odd], [each[1] for each in odd], "printed", label="length 1, as printed")
    end = (x[0] + y[0], x[1] + y[1])
    axes.arrow((0, 0), end, "change" if direct > detour + 1e-12 else "ink", label="x + y")
    axes.arrow((0, 0), x, "hand")
    axes.arrow(x, end, "hand")
    axes.line([0, y[0]], [0, y[1]], "hand", width=1, dashed=True)
    axes.handle("x", *x, label="x")
    axes.handle("y", *y, label="y")
    axes.text(*x, "x", "hand", dy=-14)
    axes.text(*y, "y", "hand", dy=24)
    axes.text(*end, "x + y", "ink", dy=-8)
    return View(
        picture,
        [
            Number("‖x‖ + ‖y‖ − ‖x + y‖", round(detour - direct, 12)),
            Number("‖x‖", without, printed=printed),
            Number("‖x + y‖", direct),
        ],
        reached=direct > detour + 1e-9,
        note="Without bars x = (−1, 1) has length 0 at p = 1." if printed else "",
        code=(
            "import torch\n"
            "from quoin.lab.parts.tensor_pictures import length\n"
            f"x, y, p = torch.tensor({list(x)!r}).double(), torch.tensor({list(y)!r}).double(), float({str(p)!r})\n"
            "print(round(length(x, p) + length(y, p) - length(x + y, p), 12))"
        ),
    )


@app.cell
def _():
    play(balls)
    return


@app.function
@exhibit(
    "A rank you cannot reach",
    ids="D1.2-12 D1.2-13 D1.2-14 D1.2-15 DE13",
    intro="Two pure tensors, growing against each other, against a tensor of rank 3. Make ε small.",
    controls=(
        Slider("epsilon", "ε", 1e-4, 1.0, 0.5, log=True),
        Switch("printed", "as printed: every pure tensor has rank 1"),
    ),
    surprise="What is missing goes to 0 and the terms to infinity: two are as near as you like, and never enough.",
    surprise_at={"epsilon": 1e-4},
    definition=(cp_decompose, cp_tensor),
)
def unreachable_rank(epsilon: float, printed: bool) -> View:
    """Two rank-one terms whose sum tends to a tensor of rank 3."""
    found = two_terms(epsilon)
    terms = [pure_tensor(*(factor[:, term] for factor in found.factors)) for term in range(2)]
    form = form_of(zero_pure_tensors_have_rank_zero, printed)
    e = torch.tensor([1.0, 0.0], dtype=torch.float64)
    picture = Picture(
        f"At ε = {digits(epsilon)} two terms of size {digits(found.component_norm)} miss by {digits(found.residual)}."
    )
    most = max(float(term.abs().max()) for term in terms)
    names = ("first term", "second term", "their sum", "aim, rank 3")
    for place, (name, table) in enumerate(zip(names, (*terms, terms[0] + terms[1], UNREACHED))):
        axes = picture.axes((0, 1), (0, 1), box=(20, 32 + 92 * place, 320, 58), title=name, bare=True)
        axes.cells(table.flatten(1), most=most if place < 2 else 1.0, numbers=True)
    sizes = torch.logspace(-4, 0, 41, dtype=torch.float64).tolist()
    curves = [two_terms(each) for each in sizes]
    log = picture.axes((1e-4, 1), (1e-5, 1e5), box=(400, 34, 225, 310), x_log=True, y_log=True, x_label="ε")
    log.line(sizes, [each.residual for each in curves], "change")
    log.line(sizes, [each.component_norm for each in curves], "model")
    log.points([epsilon], [found.residual], "change", size=6)
    log.points([epsilon], [found.component_norm], "model", size=6)
    log.text(2e-4, 3e4, "size of a term", "model")
    log.text(1e-2, 3e-4, "what is missing", "change")
    return View(
        picture,
        [
            Number("missing, relative", found.residual),
            Number("largest term, relative", found.component_norm),
            Number("rank of 0 ⊗ e₁ ⊗ e₁", str(form([0 * e, e, e])), printed=True)
            if printed
            else Number("rank of the aim", str(rank_of_the_limit())),
        ],
        reached=found.residual < 1e-3 and found.component_norm > 1e3 and rank_of_the_limit() == 3,
        note="A table shows 2 × 2 × 2 numbers, its two layers beside each other.",
        code=(
            "from quoin.lab.parts.tensor_pictures import two_terms\n"
            f"found = two_terms({epsilon!r})\n"
            "print(found.residual)"
        ),
    )


@app.cell
def _():
    play(unreachable_rank)
    return


@app.function
def directions(A: Float[Tensor, "2 2"]) -> int:
    """How many real directions a 2 × 2 matrix keeps; all of them count as two."""
    try:
        values = eigendecomposition(A).values
    except UserError:
        return 1
    return 2 if float(values.imag.abs().max()) < 1e-9 else 0


@app.function
@exhibit(
    "Again and again",
    ids="Z13.1 Z13.2",
    intro="Drag the columns of a matrix. Each step applies it to a vector and scales that to length 1.",
    controls=(
        Handle("first", "first column", (1.6, 0.0), (-2.0, -2.0), (2.0, 2.0)),
        Handle("second", "second column", (1.0, 1.0), (-2.0, -2.0), (2.0, 2.0)),
        Step("steps", "steps", most=STEPS, default=6),
    ),
    surprise="The shear [[1, 1], [0, 1]] keeps one direction only, and every vector creeps towards it.",
    surprise_at={"first": [1.0, 0.0]},
    definition=(power_iteration, gershgorin_discs),
)
def again_and_again(first: tuple[float, float], second: tuple[float, float], steps: int) -> View:
    """The image of the circle, the iterates of a vector, Gershgorin's discs."""
    A = torch.tensor([first, second], dtype=torch.float64).mT.contiguous()
    kept = directions(A)
    vector = torch.tensor([-0.6, 0.8], dtype=torch.float64)
    growth = float(growth_rates(A, vector, max(steps, 1))[-1])
    try:
        found = digits(float(power_iteration(A, max_iter=300, generator=torch.Generator().manual_seed(0)).value))
    except UserError:
        found = "none in 300 steps"
    picture = Picture(f"The matrix keeps {kept} directions; largest eigenvalue: {found}.")
    plane = picture.axes((-2.4, 2.4), (-2.4, 2.4), box=(30, 30, 330, 330), title="columns, circle, its image, iterates")
    angles = torch.linspace(0, 2 * math.pi, 73, dtype=torch.float64)
    circle = torch.stack([angles.cos(), angles.sin()])
    plane.line(circle[0], circle[1], "faint", width=1.4)
    plane.line((A @ circle)[0], (A @ circle)[1], "model", width=1.8)
    for step in range(steps + 1):
        plane.arrow((0, 0), vector.tolist(), "hidden" if step < steps else "ink", width=1.2 if step < steps else 2.6)
        moved = A @ vector
        vector = moved / norm(moved) if float(norm(moved)) > 0 else moved
    plane.handle("first", *first, label="first column")
    plane.handle("second", *second, label="second column")
    plane.text(*first, "1", "hand", dy=-12)
    plane.text(*second, "2", "hand", dy=-12)
    discs, values = gershgorin_discs(A), torch.linalg.eigvals(A).tolist()
    plot = picture.axes((-5, 5), (-5, 5), box=(410, 30, 220, 220), title="Gershgorin discs")
    draw_discs(plot, discs.centers.tolist(), discs.radii.tolist(), values)
    return View(
        picture,
        [
            Number("growth in the last step", growth),
            Number("largest eigenvalue", found),
            Number("eigenvectors, independent", str(kept)),
        ],
        reached=kept == 1,
        code=(
            "import torch\n"
            "from quoin.tensor import growth_rates\n"
            f"A = torch.tensor({A.tolist()!r}, dtype=torch.float64)\n"
            "start = torch.tensor([-0.6, 0.8], dtype=torch.float64)\n"
            f"print(float(growth_rates(A, start, {max(steps, 1)})[-1]))"
        ),
    )


@app.cell
def _():
    play(again_and_again)
    return


@app.function
@exhibit(
    "Yours: a matrix",
    intro="Paste a matrix, a row on each line, to eight by eight.",
    controls=(Text("matrix", "matrix", "4 1 0\n1 3 -1\n0 2 -2", 2000, rows=6),),
    definition=(matrix_rank, gershgorin_discs),
    yours=True,
)
def yours(matrix: str) -> View:
    """A matrix as cells, its rank, determinant and eigenvalues in their discs."""
    A = parse_matrix(matrix)
    rows, columns = A.shape
    rank = int(matrix_rank(A))
    picture = Picture(f"A {rows} by {columns} matrix of rank {rank}.")
    axes = picture.axes((0, 1), (0, 1), box=(20, 30, 280, 280), title="matrix", bare=True)
    axes.cells(A, numbers=True)
    numbers = [Number("rank", str(rank)), Number("order", str(A.ndim))]
    if rows == columns:
        discs, values = gershgorin_discs(A), torch.linalg.eigvals(A)
        reach = 1.1 * float((discs.centers.abs() + discs.radii).max()) or 1.0
        plot = picture.axes(
            (-reach, reach), (-reach, reach), box=(360, 30, 270, 270), title="eigenvalues in their discs"
        )
        draw_discs(plot, discs.centers.tolist(), discs.radii.tolist(), values.tolist())
        numbers = [numbers[0], Number("det", float(det(A))), Number("largest |λ|", float(values.abs().max()))]
    return View(picture, numbers, note="" if rows == columns else "Not square: it has no eigenvalues.")


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("tensors")
    return


if __name__ == "__main__":
    app.run()
