"""Hidden Markov models at full speed: scaled messages, all blocks of a long sequence at once.

A step of the forward recursion waits for the one before, which a machine for large matrices does badly. So a sequence
is cut into blocks that run side by side, each from a guess of the message that enters it. The guesses are made by
running a while over the end of the block before, mostly enough for the chain to forget its start. Then they are
checked: the message that leaves a block must be the one that was assumed to enter the next, entry by entry, up to
rounding. Where it is not, it is the better guess and all run again; after as many runs as there are blocks it is exact
in any case. The check is a proof: multiplying by a non-negative matrix takes no two messages further apart in Hilbert's
metric max_i ln(x_i / y_i) - min_i ln(x_i / y_i), so errors at the cuts add up and never grow.

Messages are scaled to sum to one. A state less probable than the smallest float by more than all others thus counts as
impossible; if it matters later, the likelihoods found forwards and backwards differ, and the sequence goes to log space
(hmm.py). k states, n steps, s sequences, c blocks of each (`blocks`: s c of them), l steps of a block
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float64, Integer, Shaped
from torch import Tensor
from torch.autograd.function import once_differentiable

from quoin.errors import UserError, format_value
from quoin.prob.hmm import HiddenPosterior, check_possible, check_tables, posterior_unchecked
from quoin.prob.parallel_map import parallel_map
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["hmm_log_prob", "hmm_posterior"]

RESCALE = 8  # steps between two divisions by the sum
WARM_UP = 32  # steps before a block from which its first guess is made
LEAST_STEPS = 2 * WARM_UP  # of a block: a shorter one costs more to guess than to run
MANY_ROWS = 256  # messages that step together at the price of one
SETTLED = 64  # roundings that two messages may differ by to be the same
GROUP = 2**19  # numbers of a group of sequences worked on together: measured, a step takes twice as long at 2**20


def hmm_posterior(
    log_initial: Float[Tensor, "k"] | ArrayLike,
    log_transition: Float[Tensor, "k k"] | ArrayLike,
    log_emission: Float[Tensor, "*batch n k"] | ArrayLike,
    lengths: Integer[Tensor, "*batch"] | ArrayLike | None = None,
) -> HiddenPosterior:
    """`hmm_posterior_definition` by scaled messages, for sequences of the lengths given; without a gradient.

    Beyond a sequence's length its `log_emission` is not read and its posterior is zero.

    Args:
        log_initial: ln ν.
        log_transition: ln A.
        log_emission: ln b_t(j) = ln P(o_t | X_t = j) of the observations at hand, as `emission.log_prob` gives it.
        lengths: How many observations of each sequence count, from the first; all unless given.

    Notes: D5.1-10.
    """
    log_initial = float_tensor(log_initial, "log_initial", log_transition, log_emission, lengths)
    log_transition = float_tensor(log_transition, "log_transition", log_initial, log_emission, lengths)
    log_emission = float_tensor(log_emission, "log_emission", log_initial, log_transition, lengths)
    lengths = None if lengths is None else number_tensor(lengths, "lengths", log_initial, log_transition, log_emission)
    found = _posterior(log_initial, log_transition, log_emission, lengths)
    check_possible(found.log_prob)
    return found


def hmm_log_prob(
    log_initial: Float[Tensor, "k"] | ArrayLike,
    log_transition: Float[Tensor, "k k"] | ArrayLike,
    log_emission: Float[Tensor, "*batch n k"] | ArrayLike,
    lengths: Integer[Tensor, "*batch"] | ArrayLike | None = None,
) -> Float[Tensor, "*batch"]:
    """ln P(o) = ln sum_i α_{n-1}(i) by scaled messages; minus infinity, with a zero gradient, for what cannot happen.

    Its gradient is the posterior: ∂/∂ln b_t(i) = P[X_t = i | o], and ∂/∂ln A_ij the expected number of steps from
    i to j.

    Args:
        log_initial: ln ν.
        log_transition: ln A.
        log_emission: ln b_t(j) = ln P(o_t | X_t = j) of the observations at hand, as `emission.log_prob` gives it.
        lengths: How many observations of each sequence count, from the first; all unless given.

    Notes: D5.1-10.
    """
    log_initial = float_tensor(log_initial, "log_initial", log_transition, log_emission, lengths)
    log_transition = float_tensor(log_transition, "log_transition", log_initial, log_emission, lengths)
    log_emission = float_tensor(log_emission, "log_emission", log_initial, log_transition, lengths)
    lengths = None if lengths is None else number_tensor(lengths, "lengths", log_initial, log_transition, log_emission)
    return _LogProb.apply(log_initial, log_transition, log_emission, lengths)  # pyright: ignore[reportReturnType]


class _LogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, log_initial, log_transition, log_emission, lengths):
        found = _posterior(log_initial, log_transition, log_emission, lengths)
        ctx.save_for_backward(found.output, found.transitions)
        return found.log_prob

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):  # pyright: ignore[reportIncompatibleMethodOverride]
        states, transitions = ctx.saved_tensors
        (gradient,) = gradients
        states = states * gradient[..., None, None]
        steps = (
            (transitions * gradient[..., None, None]).flatten(0, -3).sum(dim=0)
            if gradient.ndim
            else transitions * gradient
        )
        return states[..., 0, :].reshape(-1, states.shape[-1]).sum(dim=0), steps, states, None


class Folded(NamedTuple):
    """How s sequences of n steps lie as l steps of s c blocks, filled up at their ends."""

    num_sequences: int
    num_steps: int
    num_blocks: int  # of a sequence
    valid: Bool[Tensor, "l blocks"] | None  # which steps are not filling; None where all are

    @property
    def block_steps(self) -> int:
        return -(-self.num_steps // self.num_blocks)

    def fold(self, x: Shaped[Tensor, "s n *event"]) -> Shaped[Tensor, "l blocks *event"]:
        filling = self.num_blocks * self.block_steps - self.num_steps
        if filling:
            x = torch.cat([x, x.new_zeros(len(x), filling, *x.shape[2:])], dim=1)
        return x.unflatten(1, (self.num_blocks, -1)).movedim(2, 0).flatten(1, 2).contiguous()

    def unfold(self, x: Shaped[Tensor, "l blocks *event"]) -> Shaped[Tensor, "s n *event"]:
        return x.unflatten(1, (self.num_sequences, self.num_blocks)).movedim(0, 2).flatten(1, 2)[:, : self.num_steps]


def folded(num_sequences: int, num_steps: int, lengths: Integer[Tensor, "s"] | None) -> Folded:
    """The layout for this many sequences, of the lengths given or all of n steps."""
    most = max(1, min(MANY_ROWS // num_sequences, num_steps // LEAST_STEPS))
    # Blocks without filling need no mask, which is worth a few blocks less.
    blocks = next((count for count in range(most, 3 * most // 4, -1) if num_steps % count == 0), most)
    layout = Folded(num_sequences, num_steps, blocks, None)
    if lengths is None and blocks * layout.block_steps == num_steps:
        return layout
    lengths = torch.full((num_sequences,), num_steps) if lengths is None else lengths
    return layout._replace(valid=layout.fold(torch.arange(num_steps, device=lengths.device) < lengths.unsqueeze(-1)))


class Group(NamedTuple):
    """Some of the sequences, as many as are worked on together."""

    selection: slice  # among all sequences
    rows: Shaped[Tensor, "s n ..."]
    lengths: Integer[Tensor, "s"] | None
    layout: Folded


def groups(rows: Shaped[Tensor, "s n ..."], lengths: Integer[Tensor, "s"] | None, num_states: int) -> Iterator[Group]:
    """All sequences of `rows` in groups."""
    size = max(1, GROUP // (rows.shape[1] * num_states))
    for first in range(0, len(rows), size):
        selection = slice(first, first + size)
        known = None if lengths is None else lengths[selection]
        yield Group(selection, rows[selection], known, folded(len(rows[selection]), rows.shape[1], known))


def check_lengths(
    lengths: Integer[Tensor, "*batch"] | None, shape: torch.Size, num_steps: int
) -> Integer[Tensor, "s"] | None:
    """The lengths of all sequences in a row, each from 1 to n."""
    if lengths is None:
        return None
    if (
        lengths.shape != shape
        or lengths.is_floating_point()
        or lengths.numel() == 0
        or lengths.min() < 1
        or lengths.max() > num_steps
    ):
        got = f"{format_value(lengths.tolist())} for {tuple(shape)} sequences"
        raise UserError(
            f"expected as lengths an integer from 1 to {num_steps} for each sequence, got {got}; count each one's steps"
        )
    return lengths.flatten()


@torch.no_grad()
def _posterior(
    log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, lengths: Tensor | None
) -> HiddenPosterior:
    check_tables(log_initial, log_transition, log_emission)
    *batch, n, k = log_emission.shape
    rows = log_emission.reshape(-1, n, k)
    lengths = check_lengths(lengths, log_emission.shape[:-2], n)
    states, transitions = torch.empty_like(rows), rows.new_empty(len(rows), k, k)
    log_prob = torch.empty(len(rows), dtype=torch.float64, device=rows.device)
    initial, transition = log_initial.exp(), log_transition.exp()

    def look(group: Group) -> None:
        selection, piece, _, layout = group
        got = messages(initial, transition, relative(layout.fold(piece)), layout)
        step = torch.cat([got.left[:-1], got.ends.unsqueeze(0)])
        step, after = layout.unfold(step.mT), layout.unfold(got.after.mT)
        states[selection] = layout.unfold((got.left * got.beta).mT)
        transitions[selection] = step[:, :-1].mT @ after[:, 1:] * transition
        log_prob[selection] = got.log_prob

    parallel_map(look, groups(rows, lengths, k))
    for row in log_prob.isnan().nonzero().flatten().tolist():  # impossible, or nearly so: log space decides
        steps = n if lengths is None else int(lengths[row])
        exact = posterior_unchecked(log_initial.double(), log_transition.double(), rows[row, :steps].double())
        states[row] = 0
        states[row, :steps], transitions[row], log_prob[row] = exact
    return HiddenPosterior(
        states.reshape(*batch, n, k), transitions.reshape(*batch, k, k), log_prob.to(log_emission.dtype).reshape(batch)
    )


class Relative(NamedTuple):
    """P(o | X = i) = e^log_scale weights_i, the largest weight being one, or all zero for what no state can emit."""

    weights: Float[Tensor, "*batch k"]
    log_scale: Float[Tensor, "*batch"]


def relative(log_emission: Float[Tensor, "*batch k"]) -> Relative:
    log_scale = log_emission.amax(dim=-1)
    log_scale = torch.where(log_scale == -torch.inf, 0, log_scale)
    return Relative((log_emission - log_scale.unsqueeze(-1)).exp_(), log_scale)


class Expected(NamedTuple):
    """Posterior of a group of sequences in blocks."""

    states: Float[Tensor, "l blocks k"]  # zero where there is no observation
    transitions: Float[Tensor, "k k"]  # of all sequences together
    log_prob: Float64[Tensor, "s"]  # NaN where scaled messages cannot decide


class Messages(NamedTuple):
    """All messages of a group as columns, which is how they step quickest, scaled so that their products
    are the posterior.

    P[X_t = i | o] = left_t(i) beta_t(i) and P[X_t = i, X_{t+1} = j | o] = left_t(i) A_ij after_{t+1}(j), but with
    `ends` for left_t where t + 1 is in the next block, which is not scaled alike.
    """

    left: Float[Tensor, "l k blocks"]
    beta: Float[Tensor, "l k blocks"]
    ends: Float[Tensor, "k blocks"]
    after: Float[Tensor, "l k blocks"]
    log_prob: Float64[Tensor, "s"]  # NaN where scaled messages cannot decide


def expected(
    initial: Float[Tensor, "k"], transition: Float[Tensor, "k k"], observed: Relative, layout: Folded
) -> Expected:
    """The posterior of a group in blocks."""
    left, beta, ends, after, log_prob = messages(initial, transition, observed, layout)
    inside = torch.bmm(left[:-1], after[1:].mT).sum(dim=0)
    across = ends[:, :-1] @ after[0][:, 1:].mT
    return Expected(left.mul_(beta).mT, (inside + across) * transition, log_prob)


def messages(
    initial: Float[Tensor, "k"], transition: Float[Tensor, "k k"], observed: Relative, layout: Folded
) -> Messages:
    """Forwards a message is α_t, in proportion to P(o_0 ... o_t, X_t = i); backwards b_t β_t, to P(o_t ...
    o_{n-1} | X_t = i).
    """
    s, c, valid = layout.num_sequences, layout.num_blocks, layout.valid
    weights, log_scale = observed
    if valid is not None:  # what is not observed leaves no information
        weights, log_scale = weights.masked_fill(~valid.unsqueeze(-1), 1), log_scale * valid
    weights = weights.mT.contiguous()
    alpha, forward = _swept(initial, transition.mT.contiguous(), weights, c, backwards=False)[1:]
    beta, after, backward = _swept(torch.ones_like(initial), transition.contiguous(), weights, c, backwards=True)
    heads = after[0].mT  # (s c, k)
    backward = backward + (heads[::c] @ initial).double().log()
    apart = (
        8 * len(initial) * layout.num_steps * torch.finfo(weights.dtype).eps
    )  # roundings of a sum of k at every step
    log_prob = torch.where((forward - backward).abs() <= apart, forward, torch.nan)
    log_prob = log_prob + log_scale.sum(dim=0, dtype=torch.float64).unflatten(0, (s, c)).sum(dim=-1)

    normalizers = (alpha * beta).sum(dim=-2, keepdim=True).reciprocal_()
    if valid is not None:
        there = valid.unsqueeze(-2)
        normalizers, after = normalizers * there, after * there
    left = alpha * normalizers
    last = alpha[-1].mT
    total = ((last @ transition) * heads.roll(-1, dims=0)).sum(dim=-1, keepdim=True)
    total[c - 1 :: c] = torch.inf  # no step leads from one sequence to the next
    return Messages(left, beta, (last / total).mT, after, log_prob)


def _swept(
    first: Tensor, matrix: Tensor, weights: Tensor, num_blocks: int, *, backwards: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The message that enters each step, the same times the step's weights, and ln P(o) (s,) as scaling took it
    away, in float64.
    """
    eps, tiny = torch.finfo(weights.dtype).eps, torch.finfo(weights.dtype).tiny
    entry = (first / first.sum()).unsqueeze(-1)
    guess = entry.expand_as(weights[0])
    if num_blocks > 1:
        tail = weights[:WARM_UP] if backwards else weights[-WARM_UP:]
        _, after, _ = _sweep(torch.full_like(weights[0], 1 / len(first)), matrix, tail, backwards)
        guess, _ = _onward(after, matrix, entry, num_blocks, backwards)
    rounds = 0
    while True:
        before, after, scales = _sweep(guess, matrix, weights, backwards)
        entering, sums = _onward(after, matrix, entry, num_blocks, backwards)
        # Below tiny / eps a float may have lost its digits. NaN ends the search: there is another way.
        settled = not bool(((entering - guess).abs() > SETTLED * eps * entering + tiny / eps).any())
        rounds += 1
        if settled or rounds == num_blocks:
            break
        guess = entering
    taken = scales.double().log().sum(dim=0) + sums.double().log()
    return before, after, taken.unflatten(0, (-1, num_blocks)).sum(dim=-1) + first.double().sum().log()


def _sweep(initial: Tensor, matrix: Tensor, weights: Tensor, backwards: bool) -> tuple[Tensor, Tensor, Tensor]:
    """before_t = M after_{t-1}, after_t = before_t w_t, side by side for all blocks; and the sums (-1, s c) that
    were divided out.
    """
    before, after = torch.empty_like(weights), torch.empty_like(weights)
    steps = list(zip(before.unbind(), after.unbind(), weights.unbind()))
    scales, last = [], initial
    for number, (b, a, w) in enumerate(reversed(steps) if backwards else steps, 1):
        if number == 1:
            b.copy_(initial)
        else:
            torch.mm(matrix, last, out=b)
        torch.mul(b, w, out=a)
        if number % RESCALE == 0 or number == len(steps):
            scales.append(a.sum(dim=-2, keepdim=True))
            a.div_(scales[-1])
        last = a
    return before, after, torch.stack(scales).squeeze(-2)


def _onward(after: Tensor, matrix: Tensor, entry: Tensor, num_blocks: int, backwards: bool) -> tuple[Tensor, Tensor]:
    """The messages that enter the blocks if those left them, each divided by its sum, and the sums (s c,), one where
    a sequence begins.
    """
    ends = matrix @ (after[0] if backwards else after[-1])  # (k, s c)
    ends = ends.roll(-1 if backwards else 1, dims=-1)  # to the block where they go
    ends[:, num_blocks - 1 if backwards else 0 :: num_blocks] = entry
    sums = ends.sum(dim=0)
    return ends / sums, sums
