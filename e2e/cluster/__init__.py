"""A real single-node Kubernetes cluster built from pinned Go modules and Debian packages.

Holds: what to build (`programs`, `images`), what to run (`pki`, `network`, `cgroups`, `processes`, `node`, `addons`),
what to check first (`preflight`), what to remove (`cleanup`), and the command line (`cli`).
Takes: a Linux machine with root, Python and a package mirror → gives: a kubeconfig, a Gateway, Prometheus,
Alertmanager and an OCI registry at the addresses that `settings` names.
Must not: import the product, need anything outside Python's standard library, leave anything behind after `down`.
"""
