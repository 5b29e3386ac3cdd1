"""A load Job in the cluster: started, read while it runs, and awaited."""

import json
import secrets
from collections import Counter
from dataclasses import dataclass

from e2e.stories import workloads
from e2e.stories.access import Access, Object, StoryError, wait


@dataclass(frozen=True, slots=True)
class Load:
    """One running Job."""

    access: Access
    namespace: str
    name: str

    @classmethod
    def start(cls, access: Access, namespace: str, image: str, arguments: list[str]) -> "Load":
        """Create the Job and wait until its first request went out."""
        load = cls(access, namespace, f"load-{secrets.token_hex(3)}")
        access.apply(workloads.load_job(load.name, namespace, image, arguments))
        wait(f"the first requests of {load.name}", load.lines, 90)
        return load

    def pod(self) -> str | None:
        """Give the Job's pod, once there is one that has a container to read from."""
        for pod in self.access.list("v1", "Pod", self.namespace, f"cuvil-stories/load={self.name}"):
            if pod["status"].get("phase") in ("Running", "Succeeded", "Failed"):
                return str(pod["metadata"]["name"])
        return None

    def lines(self) -> list[Object]:
        """Give what the client printed up to now."""
        pod = self.pod()
        told = self.access.logs(self.namespace, pod) if pod else ""
        return [json.loads(line) for line in told.splitlines() if line.startswith("{")]

    def stop(self) -> Object:
        """End the Job early; gives the sums of the whole seconds seen."""
        lines = [line for line in self.lines() if "total" not in line]
        by_revision: Counter[str] = Counter()
        faults: Counter[str] = Counter()
        for line in lines:
            by_revision.update(line["by_revision"])
            faults.update({f"{fault} at {line['t']:.0f}": count for fault, count in line["faults"].items()})
        self.access.resource("Job", "batch/v1").delete(
            name=self.name, namespace=self.namespace, body={"propagationPolicy": "Background"}
        )
        ok, failed = (sum(line[key] for line in lines) for key in ("ok", "failed"))
        return {"ok": ok, "failed": failed, "by_revision": by_revision, "faults": faults}


def must_not_fail(total: Object) -> None:
    """Raise StoryError when any request failed or none was sent."""
    if total["failed"] or not total["ok"]:
        raise StoryError(f"{total['failed']} of {total['ok'] + total['failed']} requests failed: {total.get('faults')}")
