"""One artifact behind the Open Inference Protocol v2 over REST.

Holds: the protocol's reading and writing (pure), the bounded queue before the model, metrics, admission of the
artifact, the HTTP routes and the server's life from start to drain. Takes ServingSettings and an artifact → gives
answers and metrics. Must not compile, know Kubernetes, or run a model on the event loop; holds no switch that delays
or fails requests.
"""
