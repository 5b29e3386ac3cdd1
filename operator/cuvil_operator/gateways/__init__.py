"""The doors to the network: Kubernetes, Prometheus and the clock.

Holds: consumer-side Protocols, their real, dry-run and fake forms, the table of resources, the write fence and limiter.
Takes documents (JSON as dicts) and queries → gives documents, samples or a typed failure.
Must not know phases, canaries or what a document means: it moves documents and says truly how that went.
"""
