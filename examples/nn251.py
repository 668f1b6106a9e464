"""The 2-5-1 network, from its formula and from its module: 21 parameters, a function from R² to R.

python examples/nn251.py [plot.svg]
"""

import sys

import torch
from torch import nn

from quoin.inspect import intermediates
from quoin.models import MLP, mlp_definition, num_parameters
from quoin.plot import network

model = MLP([2, 5, 1], generator=torch.Generator().manual_seed(0))
x = torch.tensor([[1.0, -2.0]])

print(f"f: R^2 -> R with {num_parameters(model)} parameters, depth {model.depth}, width {model.width}")
for step in intermediates(model, x):
    print(f"{step.layer:<18} {[round(value, 3) for value in step.output[0].tolist()]}")

layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
by_formula = mlp_definition(x, [layer.weight for layer in layers], [layer.bias for layer in layers]).output
print(f"by formula {by_formula.item():.6f}, by module {model(x).item():.6f}")

if len(sys.argv) > 1:
    print(f"plotted: {network([2, 5, 1], title='The 2-5-1 network').save(sys.argv[1])}")
