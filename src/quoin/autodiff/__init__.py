"""Record and differentiate operations: trace any function to its graph, forward values, backward adjoints, replay; a
small tape for teaching."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.autodiff.backprop import (
        RELU,
        SIGMOID,
        TANH,
        Activation,
        BackwardPass,
        ForwardPass,
        backward_pass,
        forward_pass,
    )
    from quoin.autodiff.derivatives import (
        Derivative,
        directional_derivative,
        directional_derivative_definition,
        gradient,
        gradient_definition,
        hessian,
        hessian_definition,
        jacobian,
        jacobian_definition,
        jvp,
        vjp,
    )
    from quoin.autodiff.differences import Differences, GradientCheck, check_gradient, finite_differences
    from quoin.autodiff.graph import Graph, Node, same_bits
    from quoin.autodiff.picture import plot_graph
    from quoin.autodiff.replay import replay
    from quoin.autodiff.rules import RULES, Rule
    from quoin.autodiff.tape import Var, backward, concatenate
    from quoin.autodiff.taylor import QuadraticModel, TaylorPolynomial, derivatives, quadratic_model, taylor
    from quoin.autodiff.trace import trace

__all__ = [
    "RELU",
    "RULES",
    "SIGMOID",
    "TANH",
    "Activation",
    "BackwardPass",
    "Derivative",
    "Differences",
    "ForwardPass",
    "GradientCheck",
    "Graph",
    "Node",
    "QuadraticModel",
    "Rule",
    "TaylorPolynomial",
    "Var",
    "backward",
    "backward_pass",
    "check_gradient",
    "concatenate",
    "derivatives",
    "directional_derivative",
    "directional_derivative_definition",
    "finite_differences",
    "forward_pass",
    "gradient",
    "gradient_definition",
    "hessian",
    "hessian_definition",
    "jacobian",
    "jacobian_definition",
    "jvp",
    "plot_graph",
    "quadratic_model",
    "replay",
    "same_bits",
    "taylor",
    "trace",
    "vjp",
]

export_lazily(__name__)
