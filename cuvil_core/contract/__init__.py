"""The words that the two halves of Cuvil exchange.

Holds: exit codes, the termination message, the compile request, the artifact manifest, the validation report, the
serving settings: frozen dataclasses with JSON in and out; the names of a serving pod's metrics.
Takes nothing and gives no behaviour. Must not import NumPy, the compiler or any third party: the operator and the
runtime image import this room alone.
"""

from cuvil_core.contract.exit_codes import ExitCode
from cuvil_core.contract.manifest import CompileRequest, InputSpec, Manifest, Segment, TensorSpec
from cuvil_core.contract.metrics import RequestOutcome, ServingMetric
from cuvil_core.contract.outcome import Outcome, ResolvedModel, StoredArtifact
from cuvil_core.contract.report import LatencyReport, MemoryReport, OutputError, ValidationReport
from cuvil_core.contract.serving import ServingSettings
from cuvil_core.contract.signature import signature_text

__all__ = [
    "CompileRequest",
    "ExitCode",
    "InputSpec",
    "LatencyReport",
    "Manifest",
    "MemoryReport",
    "Outcome",
    "OutputError",
    "RequestOutcome",
    "ResolvedModel",
    "Segment",
    "ServingMetric",
    "ServingSettings",
    "StoredArtifact",
    "TensorSpec",
    "ValidationReport",
    "signature_text",
]
