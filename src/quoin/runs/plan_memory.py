"""The memory of one process of a run by kind, as DDP and FSDP2 divide it, and the bytes that processes exchange."""

from dataclasses import dataclass

from quoin.runs.plan_task import CountedStep

__all__ = ["Communication", "Memory", "communication", "memory_of_process"]


@dataclass(frozen=True)
class Memory:
    """Bytes of one process, by kind. Not all live at once, so that the peak may be less than their sum."""

    weights: int
    gradients: int
    optimizer_state: int
    activations: int  # kept for the backward pass of one micro-batch
    copies: int  # of the weights in half precision, where autocast keeps them
    buffers: int  # of the model, and the moving average of the weights
    gathered: int  # weights that FSDP has whole for a while
    peak: int

    def kinds(self) -> dict[str, int]:
        """By the name that a table shows."""
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "optimizer state": self.optimizer_state,
            "activations": self.activations,
            "weights in half precision": self.copies,
            "buffers": self.buffers,
            "gathered weights": self.gathered,
        }


def memory_of_process(step: CountedStep, num_processes: int, *, shard: bool) -> Memory:
    """What a process holds of a step that was counted on its rows.

    DDP keeps all of the model in each process, and the gradients for good: they lie in the buckets that are exchanged.
    FSDP2 keeps a fraction 1/N of weights, gradients, optimizer state and moving average; of the weights it gathers
    those outside any block, the block that is computed and the next one, with the gradients of one block; in half
    precision, where that was chosen, so that there are no other copies.
    """
    if not shard or num_processes == 1:
        kept = step.gradients if num_processes > 1 and step.is_before_gradients else 0
        return Memory(
            step.weights,
            step.gradients,
            step.optimizer_state,
            step.activations,
            step.copies,
            step.buffers,
            gathered=0,
            peak=step.peak + kept,
        )
    fractions = [
        -(-each // num_processes) for each in (step.weights, step.gradients, step.optimizer_state, step.buffers)
    ]
    block, outside = step.blocks
    gathered = min(outside + 3 * block, 2 * step.weights) // (2 if step.copies else 1)
    # What the step makes without gradients: theirs is the fraction above. Before they are there, nothing is taken off.
    passing = step.made - step.copies
    if not step.is_before_gradients:
        passing = max(step.activations, passing - step.gradients)
    weights, gradients, state, buffers = fractions
    peak = sum(fractions) + passing + gathered
    return Memory(weights, gradients, state, step.activations, 0, buffers, gathered, peak)


@dataclass(frozen=True)
class Communication:
    """Bytes that a process sends in a step, how, and in what fraction of the computation it can be hidden."""

    num_bytes: int
    how: str
    hidden: float

    def seconds(self, link: float) -> float:
        return self.num_bytes / link

    def exposed(self, link: float, compute: float) -> float:
        """Seconds that a step waits where the exchange goes on beside the computation."""
        return max(0.0, self.seconds(link) - self.hidden * compute)


def communication(step: CountedStep, num_processes: int, *, shard: bool) -> Communication:
    """Of rings: an all-reduce sends each byte 2 (N - 1) / N times, an all-gather or reduce-scatter half of that.

    DDP reduces the gradients once in a step, beside the backward pass, which is two thirds of it. FSDP2 gathers the
    weights in the forward pass and again in the backward pass, and scatters the gradients, in every micro-batch, beside
    all of the computation; in half precision, where that was chosen.
    """
    ring = (num_processes - 1) / num_processes
    if num_processes == 1:
        return Communication(0, "none", 1.0)
    if not shard:
        return Communication(round(2 * ring * step.gradients), "all-reduce of the gradients", 2 / 3)
    sent = ring * (2 * step.weights + step.gradients) / (2 if step.copies else 1)
    return Communication(
        round(sent * step.num_pieces), "all-gather of the weights twice, reduce-scatter of the gradients", 1.0
    )
