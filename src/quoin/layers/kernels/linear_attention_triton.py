"""Attention with scores φ(q)·φ(k) in two passes over the keys, as Triton kernels.

The sequence is cut into segments, which run side by side, and a segment into blocks, one after another.

    1. segment_sums     S = Σ_j φ(k_j) v_jᵀ and z = Σ_j φ(k_j) of each segment
    2. scan_sums        the same of all segments before (or, for gradients of keys, after) each one
    3. attend           each segment goes on from there: within a block scores are written out, what came before it is S
                        and z, which stay in registers

so that queries, values and outputs cross the memory once, keys and values twice, and nothing else of their size is
written. Gradients go the same way: those of queries forwards with S, those of keys and values backwards with
R = Σ_i φ(q_i) [g_i, h_i]ᵀ over the queries i that come after, where g_i = ∂L/∂o_i / den_i and
h_i = -(∂L/∂o_i · o_i) / den_i are the gradients of numerator and denominator. All sums are in float32.

A key's features may have a logarithmic scale of their own (`Features.log_scale`). c_i is the largest that query i sees;
sums carry the largest of theirs, so that no exponential overflows.

    N positions, D key width, F features, V value width; BLOCK positions of a block
"""

import triton
import triton.language as tl

from quoin.layers.kernels.features_triton import LOWEST, dot, features_of, load_directions, load_rows, store_rows

__all__ = ["attend", "scan_sums", "segment_sums"]


@triton.jit
def segment_sums(
    K, V, M, LS, W, S, Z, C,
    k_b, k_h, k_n, v_b, v_h, v_n, m_b, m_h, m_n, w_f,
    N, KV_HEADS, D, F, VD, scale, log_features,
    KIND: tl.constexpr, MASKED: tl.constexpr, SCALED: tl.constexpr,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr, BD: tl.constexpr, BF: tl.constexpr, BV: tl.constexpr, EVEN: tl.constexpr,
    DOT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    segment, pair = tl.program_id(0), tl.program_id(1)
    b, h = (pair // KV_HEADS).to(tl.int64), (pair % KV_HEADS).to(tl.int64)
    f, v = tl.arange(0, BF), tl.arange(0, BV)
    weight, weight_rest = load_directions(W, w_f, F, D, KIND, BF, BD, DOT)
    sums, total, largest = tl.zeros((BF, BV), tl.float32), tl.zeros((BF,), tl.float32), tl.full((), LOWEST, tl.float32)
    for block in range(BLOCKS):
        rows = (segment * BLOCKS + block) * BLOCK + tl.arange(0, BLOCK)
        x = load_rows(K + b * k_b + h * k_h, k_n, rows, N, D, BD, EVEN)
        value = load_rows(V + b * v_b + h * v_h, v_n, rows, N, VD, BV, EVEN)
        seen = rows < N
        if MASKED:
            seen = seen & (tl.load(M + b * m_b + h * m_h + rows * m_n, mask=rows < N, other=0) != 0)
            x, value = tl.where(seen[:, None], x, 0.0), tl.where(seen[:, None], value, 0.0)
        features, log_scale = features_of(
            x, weight, weight_rest, scale, f < F, log_features, KIND, False, EVEN, DOT, PRECISION
        )
        if MASKED or not EVEN:
            features = tl.where(seen[:, None], features, 0.0)
        if SCALED:
            if KIND == 0:
                log_scale = tl.load(LS + pair.to(tl.int64) * N + rows, mask=seen, other=0.0)
            log_scale = tl.where(seen, log_scale, LOWEST)
            new = tl.maximum(largest, tl.max(log_scale, 0))
            shrink = tl.exp(largest - new)
            sums, total, largest = sums * shrink, total * shrink, new
            features *= tl.exp(log_scale - new)[:, None]
        sums += dot(tl.trans(features), value, DOT, PRECISION)
        total += tl.sum(features, 0)
    at = (pair * tl.num_programs(0) + segment).to(tl.int64)
    inside = (f[:, None] < F) & (v[None, :] < VD)
    tl.store(S + at * F * VD + f[:, None] * VD + v[None, :], sums, mask=inside)
    tl.store(Z + at * F + f, total, mask=f < F)
    if SCALED:
        tl.store(C + at, largest)


@triton.jit
def scan_sums(
    S, Z, C, S_OUT, Z_OUT, C_OUT, SEGMENTS, F, VD,
    REVERSE: tl.constexpr, SCALED: tl.constexpr, BF: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """From the sums of each segment those of all before it (REVERSE: after it); a program has BF features."""
    pair = tl.program_id(1).to(tl.int64)
    f, v = tl.program_id(0) * BF + tl.arange(0, BF), tl.arange(0, BV)
    inside = (f[:, None] < F) & (v[None, :] < VD)
    sums, total, largest = tl.zeros((BF, BV), tl.float32), tl.zeros((BF,), tl.float32), tl.full((), LOWEST, tl.float32)
    for step in range(SEGMENTS):
        at = pair * SEGMENTS + (SEGMENTS - 1 - step if REVERSE else step)
        place, place_z = at * F * VD + f[:, None] * VD + v[None, :], at * F + f
        here, here_z = tl.load(S + place, mask=inside, other=0.0), tl.load(Z + place_z, mask=f < F, other=0.0)
        tl.store(S_OUT + place, sums, mask=inside)
        tl.store(Z_OUT + place_z, total, mask=f < F)
        if SCALED:
            tl.store(C_OUT + at, largest, mask=tl.program_id(0) == 0)
            here_c = tl.load(C + at)
            new = tl.maximum(largest, here_c)
            sums, total = sums * tl.exp(largest - new), total * tl.exp(largest - new)
            here, here_z = here * tl.exp(here_c - new), here_z * tl.exp(here_c - new)
            largest = new
        sums += here
        total += here_z


@triton.jit
def attend(
    Q, K, V, M, LS, W, S, Z, C, OUT, DEN, CUMMAX,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, m_b, m_h, m_n, w_f, o_b, o_h, o_n,
    N, KEYS, HEADS, GROUP, D, F, VD, scale, log_features, tiny,
    KIND: tl.constexpr, MASKED: tl.constexpr, SCALED: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr, BD: tl.constexpr, BF: tl.constexpr, BV: tl.constexpr, EVEN: tl.constexpr,
    DOT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    segment, pair = tl.program_id(0), tl.program_id(1)
    b, h = (pair // HEADS).to(tl.int64), (pair % HEADS).to(tl.int64)
    g, kv_heads = h // GROUP, HEADS // GROUP
    f, v = tl.arange(0, BF), tl.arange(0, BV)
    weight, weight_rest = load_directions(W, w_f, F, D, KIND, BF, BD, DOT)
    at = (b * kv_heads + g) * (tl.num_programs(0) if CAUSAL else 1) + (segment if CAUSAL else 0)
    inside = (f[:, None] < F) & (v[None, :] < VD)
    sums = tl.load(S + at * F * VD + f[:, None] * VD + v[None, :], mask=inside, other=0.0)
    total = tl.load(Z + at * F + f, mask=f < F, other=0.0)
    largest = tl.load(C + at) if SCALED else 0.0
    order = tl.arange(0, BLOCK)
    for block in range(BLOCKS):
        rows = (segment * BLOCKS + block) * BLOCK + order
        xq = load_rows(Q + b * q_b + h * q_h, q_n, rows, N, D, BD, EVEN)
        queries, _ = features_of(xq, weight, weight_rest, scale, f < F, log_features, KIND, True, EVEN, DOT, PRECISION)
        low = queries.to(DOT)
        gathered = dot(low, sums, DOT, PRECISION)
        den = tl.sum(queries * total[None, :], 1)
        if CAUSAL:
            xk = load_rows(K + b * k_b + g * k_h, k_n, rows, KEYS, D, BD, EVEN)
            value = load_rows(V + b * v_b + g * v_h, v_n, rows, KEYS, VD, BV, EVEN)
            seen = rows < KEYS
            if MASKED:
                seen = seen & (tl.load(M + b * m_b + g * m_h + rows * m_n, mask=rows < KEYS, other=0) != 0)
                xk, value = tl.where(seen[:, None], xk, 0.0), tl.where(seen[:, None], value, 0.0)
            keys, log_scale = features_of(
                xk, weight, weight_rest, scale, f < F, log_features, KIND, False, EVEN, DOT, PRECISION
            )
            if MASKED or not EVEN:
                keys = tl.where(seen[:, None], keys, 0.0)
            scores = dot(low, tl.trans(keys), DOT, PRECISION)
            before = order[:, None] >= order[None, :]
            if SCALED:
                if KIND == 0:
                    log_scale = tl.load(LS + (b * kv_heads + g) * KEYS + rows, mask=seen, other=0.0)
                log_scale = tl.where(seen, log_scale, LOWEST)
                so_far = tl.maximum(tl.max(tl.where(before, log_scale[None, :], LOWEST), 1), largest)
                scores *= tl.exp(tl.minimum(log_scale[None, :] - so_far[:, None], 0.0))
                shrink = tl.exp(largest - so_far)
                gathered *= shrink[:, None]
                den *= shrink
                # every head of the group writes the same
                tl.store(CUMMAX + (b * kv_heads + g) * N + rows, so_far, mask=rows < N)
            scores = tl.where(before, scores, 0.0)
            gathered += dot(scores, value, DOT, PRECISION)
            den += tl.sum(scores, 1)
            if SCALED:
                new = tl.maximum(largest, tl.max(log_scale, 0))
                sums, total = sums * tl.exp(largest - new), total * tl.exp(largest - new)
                keys *= tl.exp(log_scale - new)[:, None]
                largest = new
            sums += dot(tl.trans(keys), value, DOT, PRECISION)
            total += tl.sum(keys, 0)
        den = tl.where(tl.abs(den) >= tiny, den, 1.0)
        tl.store(DEN + (b * HEADS + h) * N + rows, den, mask=rows < N)
        store_rows(
            OUT + b * o_b + h * o_h,
            o_n,
            rows,
            N,
            VD,
            (gathered * (1 / den)[:, None]).to(OUT.dtype.element_ty),
            BV,
            EVEN,
        )
