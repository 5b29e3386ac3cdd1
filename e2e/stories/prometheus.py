"""Asks the cluster's Prometheus, through the API server."""

from dataclasses import dataclass

from e2e.stories.access import Access

SERVICE = "prometheus-operated:9090"


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The one Prometheus of a namespace."""

    access: Access
    namespace: str = "monitoring"

    def samples(self, query: str) -> list[tuple[dict[str, str], float, float]]:
        """Evaluate an instant query: (labels, scrape time, value) a series."""
        answer = self.access.through_service(self.namespace, SERVICE, "api/v1/query", {"query": query})
        return [(row["metric"], float(row["value"][0]), float(row["value"][1])) for row in answer["data"]["result"]]

    def number(self, query: str) -> float | None:
        """Evaluate a query of one series; None where there is none or it is NaN."""
        found = self.samples(query)
        return found[0][2] if found and found[0][2] == found[0][2] else None

    def series(self, query: str, start: float, end: float, step: float = 1.0) -> list[tuple[float, float]]:
        """Evaluate a range query of one series: (time, value) without NaN."""
        answer = self.access.through_service(
            self.namespace,
            SERVICE,
            "api/v1/query_range",
            {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"},
        )
        rows = answer["data"]["result"]
        return [(float(at), float(v)) for at, v in rows[0]["values"] if v != "NaN"] if rows else []

    def raw(self, selector: str) -> list[tuple[dict[str, str], float, float]]:
        """Evaluate a range selector: (labels, scrape time, value) of every sample, without interpolation."""
        answer = self.access.through_service(self.namespace, SERVICE, "api/v1/query", {"query": selector})
        return [
            (row["metric"], float(at), float(value)) for row in answer["data"]["result"] for at, value in row["values"]
        ]
