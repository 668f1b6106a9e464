"""Cases for `quoin.prob`, distributions of real numbers: normal ones, mixtures, densities, samples, processes,
diffusion.

`points` cases leave the distribution in float64 and try the points alone.
"""

import torch
from torch.distributions import Normal, Poisson

from quoin.prob import (
    BrownianMotion,
    Density,
    DiagonalNormal,
    DiagonalNormals,
    EpsilonPrediction,
    Exponential,
    ExponentialLatent,
    FullNormals,
    GaussianDenoiser,
    GaussianFlow,
    GaussianMixtureDistribution,
    GaussianRandomWalk,
    GaussianTransition,
    KernelChain,
    KernelDensity,
    Level,
    MultivariateNormal,
    NoiseSchedule,
    ProbabilitySpace,
    SamplePrediction,
    SphericalNormals,
    TiedNormals,
    TriangularNormal,
    VPrediction,
    add_noise,
    add_noise_definition,
    check_regular,
    check_settled,
    condition_density,
    condition_normal,
    condition_normal_definition,
    covariance,
    decorrelation,
    diffusion_score,
    effective_sample_size,
    effective_sample_size_definition,
    energy_distance,
    energy_test,
    exceedance,
    expectation,
    exponential_elbo,
    exponential_elbo_optimum,
    importance_log_evidence_definition,
    independence_gap_of_density,
    integrate,
    integration_by_parts,
    iwae_bound,
    kernel_density_definition,
    kl_normal,
    kl_normal_definition,
    kl_standard_normal,
    kl_standard_normal_definition,
    line_quadrature,
    linear_path,
    linear_path_velocity,
    log_likelihood,
    lp_error,
    make_denoiser,
    mc_log_evidence_definition,
    median_heuristic,
    mixture_density_definition,
    mle,
    modes_1d,
    normal_density_1d,
    normal_expectation,
    normal_log_prob_definition,
    normal_moment,
    polynomial_moment,
    posterior_step,
    posterior_step_definition,
    product_density,
    rbf_mixture_kernel,
    reparameterize_definition,
    responsibilities_definition,
    running_means,
    scaled_sums,
    set_probability_gap,
    squared_frechet_definition,
    squared_frechet_of_samples,
    squared_mmd,
    squared_mmd_definition,
    support_edges,
    tail_exceedance,
    typewriter,
    typewriter_interval,
    variance,
    weak_gap,
    wick,
    wick_definition,
)
from quoin.tensor import GaussianKernel, rbf_kernel

MEAN, SPREAD = [3, 100], [[4, 0], [0, 9]]  # as truth values a unit matrix, which is a covariance too
POINTS, OTHERS = [[0, 100], [5, 101], [7, 90]], [[1, 99], [20, 120], [3, 7], [2, 2]]
MEANS, WEIGHTS = [[3, 100], [0, 90]], [0.25, 0.75]
LONG = [[4, 200, 3, 100], [100, 3, 2, 1]]


def f64(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def _normal(x):
    return MultivariateNormal(x(MEAN), x(SPREAD))


def _of_normal(name, call):
    """A method in numbers of one dtype throughout, and of points beside a distribution in float64."""
    return {name: lambda x: call(_normal(x), x), f"{name} points": lambda x: call(_normal(f64), x)}


def _pair(law):
    return [law.mean, law.covariance]


def _of_components(family, spread):
    name = family.__name__
    return {
        f"{name}.log_prob": lambda x: family(x(MEANS), x(spread)).log_prob(x(POINTS).unsqueeze(-2)),
        f"{name}.log_prob points": lambda x: family(f64(MEANS), f64(spread)).log_prob(x(POINTS).unsqueeze(-2)),
        f"{name}.place": lambda x: family(x(MEANS), x(spread)).transform(x([[3, 2]]), torch.tensor([1])),
        f"{name}.around": lambda x: family.isotropic_at(x(MEANS)).log_prob(x(MEANS)),
        f"{name}.moved": lambda x: family(x(MEANS), x(spread)).affine(x([3, 200]), x([2, 2])).means,
    }


def _mixture(x):
    return GaussianMixtureDistribution(x(WEIGHTS), DiagonalNormals(x(MEANS), x([[4, 9], [16, 25]])))


def _parts(x):
    return x(WEIGHTS), x(MEANS), x([SPREAD, SPREAD])


def _line_mixture(x):
    return GaussianMixtureDistribution(x([0.5, 0.5]), SphericalNormals(x([[0], [100]]), x([4, 9])))


def _schedule(x):
    return NoiseSchedule(x([0.25, 0.5]))


def _box():
    return Density(lambda a, b: a + b, (0, 1), (0, 1))


def _level(x):
    return Level(x(0.75), x(0.625))


def _of_samples(name, call):
    return {name: lambda x: call(x(POINTS), x(OTHERS))}


CASES = {
    "check_regular": lambda x: check_regular(x([[200, 3], [3, 100]])),
    "integrate": lambda x: integrate(lambda t: t, x([100, 200])),
    "normal_log_prob_definition": lambda x: normal_log_prob_definition(x([[3, 100], [4, 98]]), x(MEAN), x(SPREAD)),
    **_of_normal("MultivariateNormal.log_prob", lambda law, x: law.log_prob(x(POINTS))),
    **_of_normal("MultivariateNormal.mgf", lambda law, x: law.mgf(x([[0, 0], [1, 0]]))),
    **_of_normal("MultivariateNormal.affine", lambda law, x: _pair(law.affine(x([[2, 100], [0, 1]]), x([200, 1])))),
    **_of_normal("MultivariateNormal.condition", lambda law, x: _pair(law.condition([1], x([90])))),
    **_of_normal("MultivariateNormal.add_independent", lambda law, x: _pair(law.add_independent(_normal(x)))),
    **_of_normal("MultivariateNormal.join_independent", lambda law, x: _pair(law.join_independent(_normal(x)))),
    "condition_normal": lambda x: condition_normal(x(MEAN), x(SPREAD), [1], x([90])),
    "condition_normal_definition": lambda x: condition_normal_definition(x(MEAN), x(SPREAD), [1], x([90])),
    "DiagonalNormal.log_prob": lambda x: DiagonalNormal(x(MEAN), x([0, 2])).log_prob(x(POINTS)),
    "DiagonalNormal.log_prob points": lambda x: DiagonalNormal(f64(MEAN), f64([0, 2])).log_prob(x(POINTS)),
    "DiagonalNormal.log_prob log_std": lambda x: DiagonalNormal(f64(MEAN), x([0, 2])).log_prob(f64(POINTS)),
    "DiagonalNormal.entropy": lambda x: DiagonalNormal(f64(MEAN), x([0, 200])).entropy(),
    "DiagonalNormal.transform": lambda x: DiagonalNormal(x(MEAN), x([0, 2])).transform(x([3, 2])),
    "DiagonalNormal.transform log_std": lambda x: DiagonalNormal(f64(MEAN), x([0, 2])).transform(f64([3, 2])),
    "TriangularNormal.log_prob": lambda x: TriangularNormal(x(MEAN), x([[2, 0], [1, 3]])).log_prob(x(POINTS)),
    "TriangularNormal.log_prob points": lambda x: TriangularNormal(f64(MEAN), f64([[2, 0], [1, 3]])).log_prob(
        x(POINTS)
    ),
    "TriangularNormal.log_prob factor": lambda x: TriangularNormal(f64(MEAN), x([[2, 0], [1, 3]])).log_prob(
        f64(POINTS)
    ),
    "TriangularNormal.entropy": lambda x: TriangularNormal(f64(MEAN), x([[2, 0], [100, 3]])).entropy(),
    "TriangularNormal.transform": lambda x: TriangularNormal(x(MEAN), x([[2, 0], [1, 3]])).transform(x([3, 2])),
    "TriangularNormal.transform scale_tril": lambda x: TriangularNormal(f64(MEAN), x([[2, 0], [1, 3]])).transform(
        f64([3, 2])
    ),
    "reparameterize_definition": lambda x: reparameterize_definition(x(MEAN), x(SPREAD), x([3, 2])),
    "kl_normal": lambda x: kl_normal(x(MEAN), x(SPREAD), x([5, 90]), x([[9, 0], [0, 4]])),
    "kl_normal means": lambda x: kl_normal(x(MEAN), f64(SPREAD), x([5, 90]), f64([[9, 0], [0, 4]])),
    "kl_normal_definition": lambda x: kl_normal_definition(x(MEAN), x(SPREAD), x([5, 90]), x([[9, 0], [0, 4]])),
    "kl_normal_definition means": lambda x: kl_normal_definition(
        x(MEAN), f64(SPREAD), x([5, 90]), f64([[9, 0], [0, 4]])
    ),
    "kl_standard_normal": lambda x: kl_standard_normal(x([3, 100]), x([0, 1])),
    "kl_standard_normal log_std": lambda x: kl_standard_normal(f64([3, 100]), x([0, -100])),
    "kl_standard_normal_definition": lambda x: kl_standard_normal_definition(x([3, 100]), x([1, 90])),
    "squared_frechet_definition": lambda x: squared_frechet_definition(
        x(MEAN), x(SPREAD), x([5, 90]), x([[9, 0], [0, 4]])
    ),
    "squared_frechet_definition means": lambda x: squared_frechet_definition(
        x([100, 3]), f64(SPREAD), x([0, 90]), f64([[9, 0], [0, 4]])
    ),
    "decorrelation": lambda x: decorrelation(x(SPREAD)),
    "wick": lambda x: wick(x(SPREAD), [0, 0, 1, 1]),
    "wick_definition": lambda x: wick_definition(x([[40, 20], [20, 90]]), [0, 0, 1, 1]),
    "normal_moment": lambda x: normal_moment(x([3, 2]), x(SPREAD), [0, 0, 1]),
    "polynomial_moment": lambda x: polynomial_moment({(0, 0): 2.0, (1,): x(3)}, x([3, 2]), x(SPREAD)),
    "normal_expectation": lambda x: normal_expectation(lambda z: z.sum(-1) ** 2, _normal(x), num_nodes=3),
    "integration_by_parts": lambda x: integration_by_parts(lambda z: z.sum(-1), _normal(x), num_nodes=3).derivatives,
    **_of_components(FullNormals, [[[4, 2], [2, 9]], [[1, 0], [0, 1]]]),
    **_of_components(TiedNormals, [[4, 2], [2, 9]]),
    **_of_components(DiagonalNormals, [[4, 9], [16, 25]]),
    **_of_components(SphericalNormals, [4, 9]),
    "GaussianMixtureDistribution.log_prob": lambda x: _mixture(x).log_prob(x(POINTS)),
    "GaussianMixtureDistribution.log_prob points": lambda x: _mixture(f64).log_prob(x(POINTS)),
    "GaussianMixtureDistribution.responsibilities": lambda x: _mixture(x).responsibilities(x(POINTS)),
    "GaussianMixtureDistribution.responsibilities points": lambda x: _mixture(f64).responsibilities(x(POINTS)),
    "GaussianMixtureDistribution.affine": lambda x: _mixture(f64).affine(x([3, 200]), x([2, 2])).components.covariances,
    "modes_1d": lambda x: modes_1d(_line_mixture(x), num_points=101),
    "mixture_density_definition": lambda x: mixture_density_definition(x([[3, 99]]), *_parts(x)),
    "mixture_density_definition points": lambda x: mixture_density_definition(x([[3, 99]]), *_parts(f64)),
    "responsibilities_definition": lambda x: responsibilities_definition(x([[3, 99]]), *_parts(x)),
    "responsibilities_definition points": lambda x: responsibilities_definition(x([[3, 99]]), *_parts(f64)),
    "Exponential.log_prob": lambda x: Exponential(x(3)).log_prob(x([0, 2, 200])),
    "Exponential.log_prob points": lambda x: Exponential(f64(3)).log_prob(x([0, 2, 200])),
    "Exponential.transform": lambda x: Exponential(f64(3)).transform(x([0, 2, 200])),
    "ExponentialLatent.log_likelihood": lambda x: ExponentialLatent(f64(3)).log_likelihood(x([0, 100]), x([20, 2])),
    "ExponentialLatent.log_evidence": lambda x: ExponentialLatent(f64(3)).log_evidence(x([0, 100])),
    "exponential_elbo": lambda x: exponential_elbo(x(2), x(3), x([0, 100])),
    "exponential_elbo points": lambda x: exponential_elbo(f64(2), f64(3), x([0, 100])),
    "exponential_elbo_optimum": lambda x: exponential_elbo_optimum(x([1, 100])),
    "effective_sample_size": lambda x: effective_sample_size(x([-100, 3, 2])),
    "effective_sample_size_definition": lambda x: effective_sample_size_definition(x([100, 3, 20])),
    "iwae_bound": lambda x: iwae_bound(x([-100, 3, 2])),
    "mc_log_evidence_definition": lambda x: mc_log_evidence_definition(ExponentialLatent(f64(3)), x(2), x([3, 1, 4])),
    "importance_log_evidence_definition": lambda x: importance_log_evidence_definition(
        ExponentialLatent(f64(3)), Exponential(f64(2)), x(2), x([3, 1, 4])
    ),
    "normal_density_1d": lambda x: normal_density_1d(x([0, 3, 101]), x(100), x(2)),
    "normal_density_1d points": lambda x: normal_density_1d(x([0, 3, 101]), 100.0, 2.5),
    "Density.__call__": lambda x: Density(lambda z: z / 2, (0, 2))(x([0, 1, 200])),
    "Density.probability": lambda x: Density(lambda z: z / 2, (0, 2)).probability(x([1, 2]).tolist()),
    "Density.expectation": lambda x: Density(lambda z: z / 2, x([0, 2])).expectation(),
    "Density.marginal": lambda x: _box().marginal(0)(x([0, 1, 200])),
    "condition_density": lambda x: condition_density(_box(), {1: x(1)})(x([0, 1])),
    "independence_gap_of_density": lambda x: independence_gap_of_density(
        Density(lambda a, b: a + b, x([0, 1]), x([0, 1])), 0
    ),
    "product_density": lambda x: product_density(Density(lambda z: z / 2, (0, 2)), Density(lambda z: z / 2, (0, 2)))(
        x([1]), x([2])
    ),
    "line_quadrature": lambda x: line_quadrature(x([0, 1, 100]), 20),
    "check_settled": lambda x: check_settled(x([0] * 9 + [200, 100] + [0] * 9), x([1] * 20)),
    "support_edges": lambda x: support_edges(Normal(x(100), x(3))),
    "expectation": lambda x: expectation(Normal(x(100), x(3))),
    "expectation counts": lambda x: expectation(Poisson(x(3))),
    "expectation table": lambda x: expectation(ProbabilitySpace([3, 200], x([0.25, 0.75]))),
    "variance": lambda x: variance(Normal(x(100), x(20))),
    "variance table": lambda x: variance(ProbabilitySpace([3, 200], x([0.25, 0.75]))),
    "covariance": lambda x: covariance(ProbabilitySpace([3, 200], x([0.25, 0.75])), lambda w: w, lambda w: 2 * w),
    "covariance sure": lambda x: covariance(ProbabilitySpace([3, 200], x([0, 1])), lambda w: w, lambda w: 2 * w),
    "log_likelihood": lambda x: log_likelihood(Normal(x(100), x(20)), x([90, 100, 101])),
    "log_likelihood data": lambda x: log_likelihood(Normal(f64(100), f64(3)), x([90, 100, 101])),
    "mle": lambda x: [mle(Normal, x([90, 100, 101])).loc, mle(Normal, x([90, 100, 101])).scale],
    "mle counts": lambda x: mle(Poisson, x([90, 100, 101])).rate,
    "kernel_density_definition": lambda x: kernel_density_definition(
        x(POINTS), x([[0, 99], [5, 100]]), GaussianKernel(), 2.0
    ),
    "KernelDensity.log_prob": lambda x: KernelDensity(x([[0, 99], [5, 100]]), GaussianKernel(), 2.0).log_prob(
        x(POINTS)
    ),
    "KernelDensity.log_prob points": lambda x: KernelDensity(f64([[0, 99], [5, 100]]), GaussianKernel(), 2.0).log_prob(
        x(POINTS)
    ),
    "GaussianTransition.log_prob": lambda x: GaussianTransition(x(SPREAD)).log_prob(x([3, 100]), x([5, 90])),
    "GaussianTransition.log_prob points": lambda x: GaussianTransition(f64(SPREAD)).log_prob(x([3, 100]), x([5, 90])),
    "KernelChain.log_prob": lambda x: KernelChain(_normal(x), GaussianTransition(x(SPREAD))).log_prob(x([POINTS])),
    "KernelChain.log_prob points": lambda x: KernelChain(_normal(f64), GaussianTransition(f64(SPREAD))).log_prob(
        x([POINTS])
    ),
    "GaussianRandomWalk.log_prob": lambda x: GaussianRandomWalk(x(MEAN), x(SPREAD)).log_prob(
        x([[3, 100], [5, 101], [7, 90]])
    ),
    "GaussianRandomWalk.log_prob points": lambda x: GaussianRandomWalk(f64(MEAN), f64(SPREAD)).log_prob(
        x([[3, 100], [5, 101], [7, 90]])
    ),
    "GaussianRandomWalk.distribution": lambda x: _pair(GaussianRandomWalk(x(MEAN), x(SPREAD)).distribution(100)),
    "BrownianMotion.covariance": lambda x: BrownianMotion().covariance(x([0, 1, 100])),
    "BrownianMotion.sample_paths": lambda x: BrownianMotion().sample_paths(x([0, 1, 100]), generator=torch.Generator())[
        :, :1
    ],
    **_of_samples("energy_distance", energy_distance),
    **_of_samples(
        "energy_test", lambda a, b: energy_test(a, b, num_permutations=3, generator=torch.Generator()).output
    ),
    **_of_samples("squared_mmd", lambda a, b: squared_mmd(a, b, [10.0, 20.0])),
    **_of_samples(
        "squared_mmd_definition", lambda a, b: squared_mmd_definition(a, b, lambda x, y: rbf_kernel(x, y, 0.0001))
    ),
    **_of_samples("rbf_mixture_kernel", lambda a, b: rbf_mixture_kernel([10.0, 20.0])(a, b[:3])),
    **_of_samples("squared_frechet_of_samples", squared_frechet_of_samples),
    "median_heuristic": lambda x: median_heuristic(x(OTHERS)),
    "running_means": lambda x: running_means(x(LONG)),
    "scaled_sums": lambda x: scaled_sums(x(LONG)),
    "exceedance": lambda x: exceedance(x(LONG), x([0, 90]), 50.0),
    "tail_exceedance": lambda x: tail_exceedance(x(LONG), x([0, 90]), 50.0),
    "lp_error": lambda x: lp_error(x(LONG), x([0, 90]), 2),
    "lp_error limit": lambda x: lp_error(f64(LONG), x([0, 90]), 2),
    "weak_gap": lambda x: weak_gap(x([0, 100, 200]), x([90, 3]), [lambda z: z]),
    "weak_gap cosine": lambda x: weak_gap(x([0, 100, 200]), x([90, 3]), [torch.cos]),
    "set_probability_gap": lambda x: set_probability_gap(x([0, 100, 200]), x([90, 3]), lambda z: z > 50),
    "typewriter": lambda x: typewriter(torch.tensor([1, 2, 3]), x([0, 1, 0])),
    "typewriter places": lambda x: typewriter(x([1, 2, 3, 100]), torch.tensor(0.3)),
    "typewriter_interval": lambda x: typewriter_interval(x([1, 2, 3, 100])),
    "NoiseSchedule": lambda x: NoiseSchedule(x([0.25, 0.5])).signal,
    "NoiseSchedule.level": lambda x: _schedule(f64).level(1, x(POINTS)),
    "NoiseSchedule.level each": lambda x: _schedule(f64).level(torch.tensor([1, 2, 0]), x(POINTS)),
    "NoiseSchedule.level times": lambda x: _schedule(f64).level(x([1, 2, 0]), f64(POINTS)),
    "add_noise": lambda x: add_noise(_schedule(f64), x(POINTS), 1, x([[3, 2], [1, 0], [0, 200]])),
    "add_noise each": lambda x: add_noise(
        _schedule(f64), x(POINTS), torch.tensor([1, 2, 0]), x([[3, 2], [1, 0], [0, 200]])
    ),
    "add_noise times": lambda x: add_noise(_schedule(f64), f64(POINTS), x([1, 2, 0]), f64(POINTS)),
    "add_noise_definition": lambda x: add_noise_definition(x(POINTS), x([0.25, 0.5]), x([POINTS, POINTS])),
    "add_noise_definition points": lambda x: add_noise_definition(x(POINTS), f64([0.25, 0.5]), x([POINTS, POINTS])),
    "posterior_step": lambda x: posterior_step(_schedule(f64), x(POINTS), x(POINTS), 2, 1),
    "posterior_step times": lambda x: posterior_step(
        _schedule(f64), f64(POINTS), f64(POINTS), x([2, 2, 1]), x([1, 1, 0])
    ),
    "posterior_step_definition": lambda x: posterior_step_definition(_schedule(f64), x(POINTS), x(POINTS), 2),
    "diffusion_score": lambda x: diffusion_score(x(POINTS), _level(f64)),
    "make_denoiser": lambda x: make_denoiser(lambda z, t: z, _schedule(f64), EpsilonPrediction())(
        x(POINTS), torch.tensor([1, 2, 1])
    ),
    "GaussianDenoiser": lambda x: GaussianDenoiser(_normal(x), _schedule(f64))(x(POINTS), torch.tensor([1, 2, 1])),
    "GaussianDenoiser points": lambda x: GaussianDenoiser(_normal(f64), _schedule(f64))(
        x(POINTS), torch.tensor([1, 2, 1])
    ),
    "GaussianDenoiser times": lambda x: GaussianDenoiser(_normal(f64), _schedule(f64))(f64(POINTS), x([1, 2, 1])),
    "SamplePrediction": lambda x: SamplePrediction().denoised(x(POINTS), x(POINTS), _level(f64)),
    "EpsilonPrediction": lambda x: EpsilonPrediction().denoised(x(POINTS), x(POINTS), _level(f64)),
    "VPrediction": lambda x: [
        VPrediction().target(x(POINTS), x(POINTS), _level(f64)),
        VPrediction().denoised(x(POINTS), x(POINTS), _level(f64)),
    ],
    "linear_path": lambda x: linear_path(x(POINTS), x(POINTS), x([0, 1, 0])),
    "linear_path points": lambda x: linear_path(x(POINTS), x(POINTS), f64([0.25, 0.5, 1])),
    "linear_path_velocity": lambda x: linear_path_velocity(x(POINTS), x([[200, 1], [3, 2], [100, 3]])),
    "GaussianFlow": lambda x: GaussianFlow(_normal(x))(x(POINTS), x([0.25, 0.5, 1])),
    "GaussianFlow points": lambda x: GaussianFlow(_normal(f64))(x(POINTS), f64([0.25, 0.5, 1])),
}

# Times and places: the int64 answer is the right one.
WHOLE = {
    "NoiseSchedule.level times",
    "add_noise times",
    "posterior_step times",
    "GaussianDenoiser times",
    "typewriter places",
    "typewriter_interval",
}
