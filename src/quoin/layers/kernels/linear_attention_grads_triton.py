"""The gradients of linear attention as Triton kernels; linear_attention_triton.py says how they go."""

import triton
import triton.language as tl

from quoin.layers.kernels.features_triton import (
    LOWEST,
    dot,
    features_of,
    grad_of_input,
    load_directions,
    load_rows,
    store_rows,
)

__all__ = ["grad_keys", "grad_queries"]


@triton.jit
def grad_queries(
    Q, K, V, M, LS, W, S, Z, C, OUT, DEN, CUMMAX, DO, DQ, H, R, RZ, CR,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, m_b, m_h, m_n, w_f, o_b, o_h, o_n, do_b, do_h, do_n, dq_b, dq_h, dq_n,
    N, KEYS, HEADS, GROUP, D, F, VD, scale, log_features,
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
    # of the queries of this segment, for the keys before it: R = Σ_i φ(q_i) [g_i, h_i]ᵀ e^-c_i
    later, later_den, lowest = (
        tl.zeros((BF, BV), tl.float32),
        tl.zeros((BF,), tl.float32),
        tl.full((), LOWEST, tl.float32),
    )
    for block in range(BLOCKS):
        rows = (segment * BLOCKS + block) * BLOCK + order
        xq = load_rows(Q + b * q_b + h * q_h, q_n, rows, N, D, BD, EVEN)
        grad = load_rows(DO + b * do_b + h * do_h, do_n, rows, N, VD, BV, EVEN).to(tl.float32)
        output = load_rows(OUT + b * o_b + h * o_h, o_n, rows, N, VD, BV, EVEN).to(tl.float32)
        inverse = 1 / tl.load(DEN + (b * HEADS + h) * N + rows, mask=rows < N, other=1.0)
        grad_den = -tl.sum(grad * output, 1) * inverse
        tl.store(H + (b * HEADS + h) * N + rows, grad_den, mask=rows < N)
        low = (grad * inverse[:, None]).to(DOT)
        found = dot(low, tl.trans(sums), DOT, PRECISION) + grad_den[:, None] * total[None, :]
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
            pairs = dot(low, tl.trans(value), DOT, PRECISION) + grad_den[:, None]
            before = order[:, None] >= order[None, :]
            if SCALED:
                if KIND == 0:
                    log_scale = tl.load(LS + (b * kv_heads + g) * KEYS + rows, mask=seen, other=0.0)
                log_scale = tl.where(seen, log_scale, LOWEST)
                so_far = tl.load(CUMMAX + (b * kv_heads + g) * N + rows, mask=rows < N, other=0.0)
                pairs *= tl.exp(tl.minimum(log_scale[None, :] - so_far[:, None], 0.0))
                found *= tl.exp(largest - so_far)[:, None]
            pairs = tl.where(before, pairs, 0.0)
            found += dot(pairs, keys, DOT, PRECISION)
            if SCALED:
                new = tl.maximum(largest, tl.max(log_scale, 0))
                sums, total = sums * tl.exp(largest - new), total * tl.exp(largest - new)
                keys *= tl.exp(log_scale - new)[:, None]
                largest = new
            sums += dot(tl.trans(keys), value, DOT, PRECISION)
            total += tl.sum(keys, 0)
        queries, _ = features_of(xq, weight, weight_rest, scale, f < F, log_features, KIND, True, EVEN, DOT, PRECISION)
        dq = grad_of_input(found, xq, weight, weight_rest, scale, queries, KIND, True, DOT, PRECISION)
        store_rows(DQ + b * dq_b + h * dq_h, dq_n, rows, N, D, dq.to(DQ.dtype.element_ty), BD, EVEN)
        if not EVEN:
            queries = tl.where((rows < N)[:, None], queries, 0.0)
        if SCALED:
            depth = -tl.load(CUMMAX + (b * kv_heads + g) * N + rows, mask=rows < N, other=-LOWEST)
            new_lowest = tl.maximum(lowest, tl.max(depth, 0))
            later, later_den = later * tl.exp(lowest - new_lowest), later_den * tl.exp(lowest - new_lowest)
            queries *= tl.exp(depth - new_lowest)[:, None]
            lowest = new_lowest
        later += dot(tl.trans(queries), low, DOT, PRECISION)
        later_den += tl.sum(queries * grad_den[:, None], 0)
    place = (pair * tl.num_programs(0) + segment).to(tl.int64)
    tl.store(R + place * F * VD + f[:, None] * VD + v[None, :], later, mask=inside)
    tl.store(RZ + place * F + f, later_den, mask=f < F)
    if SCALED:
        tl.store(CR + place, lowest)


@triton.jit
def grad_keys(
    Q, K, V, M, LS, W, R, RZ, C, H, DEN, CUMMAX, DO, DK, DV,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, m_b, m_h, m_n, w_f, do_b, do_h, do_n,
    dk_b, dk_h, dk_n, dv_b, dv_h, dv_n,
    N, KEYS, HEADS, GROUP, D, F, VD, scale, log_features,
    KIND: tl.constexpr, MASKED: tl.constexpr, SCALED: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr, BD: tl.constexpr, BF: tl.constexpr, BV: tl.constexpr, EVEN: tl.constexpr,
    DOT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    segment, pair = tl.program_id(0), tl.program_id(1)
    kv_heads = HEADS // GROUP
    b, g = (pair // kv_heads).to(tl.int64), (pair % kv_heads).to(tl.int64)
    f, v = tl.arange(0, BF), tl.arange(0, BV)
    weight, weight_rest = load_directions(W, w_f, F, D, KIND, BF, BD, DOT)
    at = (b * kv_heads + g) * (tl.num_programs(0) if CAUSAL else 1) + (segment if CAUSAL else 0)
    inside = (f[:, None] < F) & (v[None, :] < VD)
    sums = tl.load(R + at * F * VD + f[:, None] * VD + v[None, :], mask=inside, other=0.0)
    total = tl.load(RZ + at * F + f, mask=f < F, other=0.0)
    largest = tl.load(C + at) if SCALED else 0.0
    order = tl.arange(0, BLOCK)
    for step in range(BLOCKS):
        rows = (segment * BLOCKS + BLOCKS - 1 - step) * BLOCK + order
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
        low = keys.to(DOT)
        if SCALED:
            if KIND == 0:
                log_scale = tl.load(LS + (b * kv_heads + g) * KEYS + rows, mask=seen, other=0.0)
            log_scale = tl.where(seen, log_scale, LOWEST)
            shrink = tl.exp(tl.minimum(log_scale + largest, 0.0))
        else:
            shrink = tl.full((BLOCK,), 1.0, tl.float32)
        dv = dot(low, sums, DOT, PRECISION) * shrink[:, None]
        dk = (dot(value, tl.trans(sums), DOT, PRECISION) + total[None, :]) * shrink[:, None]
        if CAUSAL:
            for member in range(GROUP):
                h = g * GROUP + member
                xq = load_rows(Q + b * q_b + h * q_h, q_n, rows, N, D, BD, EVEN)
                grad = load_rows(DO + b * do_b + h * do_h, do_n, rows, N, VD, BV, EVEN).to(tl.float32)
                grad *= (1 / tl.load(DEN + (b * HEADS + h) * N + rows, mask=rows < N, other=1.0))[:, None]
                grad_den = tl.load(H + (b * HEADS + h) * N + rows, mask=rows < N, other=0.0)
                queries, _ = features_of(
                    xq, weight, weight_rest, scale, f < F, log_features, KIND, True, EVEN, DOT, PRECISION
                )
                if not EVEN:
                    queries = tl.where((rows < N)[:, None], queries, 0.0)
                grad_low = grad.to(DOT)
                # transposed: keys down, queries across
                scores = dot(low, tl.trans(queries), DOT, PRECISION)
                pairs = dot(value, tl.trans(grad_low), DOT, PRECISION) + grad_den[None, :]
                after = order[None, :] >= order[:, None]
                if SCALED:
                    so_far = tl.load(CUMMAX + (b * kv_heads + g) * N + rows, mask=rows < N, other=-LOWEST)
                    weights = tl.exp(tl.minimum(log_scale[:, None] - so_far[None, :], 0.0))
                    scores, pairs = scores * weights, pairs * weights
                scores, pairs = tl.where(after, scores, 0.0), tl.where(after, pairs, 0.0)
                dv += dot(scores, grad_low, DOT, PRECISION)
                dk += dot(pairs, queries, DOT, PRECISION)
                if SCALED:
                    new = tl.maximum(largest, tl.max(-so_far, 0))
                    sums, total = sums * tl.exp(largest - new), total * tl.exp(largest - new)
                    queries *= tl.exp(-so_far - new)[:, None]
                    largest = new
                sums += dot(tl.trans(queries), grad_low, DOT, PRECISION)
                total += tl.sum(queries * grad_den[:, None], 0)
        dk = grad_of_input(dk, xk, weight, weight_rest, scale, keys, KIND, False, DOT, PRECISION)
        if MASKED:
            dk, dv = tl.where(seen[:, None], dk, 0.0), tl.where(seen[:, None], dv, 0.0)
        store_rows(DK + b * dk_b + g * dk_h, dk_n, rows, KEYS, D, dk.to(DK.dtype.element_ty), BD, EVEN)
        store_rows(DV + b * dv_b + g * dv_h, dv_n, rows, KEYS, VD, dv.to(DV.dtype.element_ty), BV, EVEN)
