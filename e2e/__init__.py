"""End-to-end stories and the cluster that they run on.

Holds: one test file a user story, and `cluster/`, the embedded single-node cluster.
Takes: a Kubernetes cluster (the embedded one, or any kubeconfig context) → gives: each story's verdict.
Must not: be imported by the product or by `tests/` of the product's rooms.
"""
