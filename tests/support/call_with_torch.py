"""Calls an artifact with torch tensors: `call_with_torch.py ARTIFACT INPUTS`, in an environment that has torch.

INPUTS is an npz file with array `x` and the expected output `y`. Ends with an AssertionError where torch differs.
"""

import sys

import numpy as np
import torch

import cuvil


def main(artifact: str, inputs: str) -> None:
    """Pass a tensor plainly, strided, with a gradient and of a wrong type."""
    with np.load(inputs) as held:
        x, y = held["x"], torch.from_numpy(held["y"])
    module = cuvil.load(artifact)
    plain = torch.from_numpy(x)
    strided = plain.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert not strided.is_contiguous()
    for tensor in plain, strided, plain.clone().requires_grad_():
        answer = module(tensor)
        assert isinstance(answer, torch.Tensor) and not answer.requires_grad
        assert torch.equal(answer, y)
    for wrong in plain.double(), plain.bfloat16():
        try:
            module(wrong)
        except cuvil.InputError as refusal:
            assert "wanted" in str(refusal), refusal
        else:
            raise AssertionError(f"{wrong.dtype} was taken")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
