"""Exports a torchvision network with disturbed seeded weights to ONNX: `export_torchvision.py NAME FILE`.

Fresh weights hide errors (norms are the identity, biases are zero), so one-dimensional parameters and running
statistics are drawn at random first. Batch, height and width are symbolic. Runs in an environment that has torch.
"""

import sys

import torch
import torchvision


def disturb(network: torch.nn.Module, seed: int) -> None:
    """Draw norms, gains and biases near their usual values instead of exactly at them."""
    source = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        if parameter.ndim <= 1:
            near = 1.0 if name.endswith("weight") else 0.0
            parameter.data = near + 0.1 * torch.randn(parameter.shape, generator=source)
    for name, statistic in network.named_buffers():
        if name.endswith("running_mean"):
            statistic.copy_(0.1 * torch.randn(statistic.shape, generator=source))
        if name.endswith("running_var"):
            statistic.copy_(0.8 + 0.4 * torch.rand(statistic.shape, generator=source))


def main(name: str, out: str) -> None:
    """Write the network NAME to the file OUT, opset 18."""
    torch.manual_seed(0)
    network = torchvision.models.get_model(name, weights=None).eval()
    disturb(network, seed=0)
    example = torch.randn(2, 3, 224, 256)
    shapes = {"x": {0: torch.export.Dim("N"), 2: torch.export.Dim("H", min=32), 3: torch.export.Dim("W", min=32)}}
    program = torch.onnx.export(
        network,
        (example,),
        dynamo=True,
        dynamic_shapes=shapes,
        input_names=["x"],
        output_names=["logits"],
        opset_version=18,
    )
    program.save(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
