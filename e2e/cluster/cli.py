"""The command line: `python -m e2e.cluster up | down | status | load-image | kubeconfig | programs`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster import addons, images, lifecycle
from e2e.cluster.errors import ClusterError
from e2e.cluster.programs import MODULES, Programs
from e2e.cluster.progress import say
from e2e.cluster.settings import API_PORT, REGISTRY, REGISTRY_SERVICE, Settings, from_environment


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when something is not well, 2 on wrong usage, 130 on Ctrl-C."""
    arguments = _parser().parse_args(argv)
    # A user's PATH often lacks the folders of the administrator's programs.
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    try:
        return int(arguments.act(from_environment(state=arguments.state), arguments))
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cluster: {error}; see that nothing else works on {arguments.state or 'its folders'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; `up` goes on from here, `down` removes what is there", file=sys.stderr)
        return 130


def addresses(settings: Settings) -> dict[str, str]:
    """What a user of the cluster needs to know, by name."""
    return {
        "kubeconfig": str(settings.kubeconfig),
        "api": f"https://127.0.0.1:{API_PORT}",
        "gateway": addons.GATEWAY_URL,
        "prometheus": addons.PROMETHEUS_URL,
        "prometheus_in_cluster": "http://prometheus.monitoring.svc.cluster.local:9090",
        "alertmanager": addons.ALERTMANAGER_URL,
        "registry": REGISTRY,
        "registry_service": REGISTRY_SERVICE,
        "webhook": settings.webhook,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description="A real single-node Kubernetes cluster.")
    parser.add_argument(
        "--state", help="folder of everything it writes (default $CUVIL_CLUSTER_STATE or /var/lib/cuvil-cluster)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    _command(commands, "up", _up, "build what is missing, start what does not run, wait until all is ready")
    _command(commands, "down", _down, "remove the cluster and everything that it made")
    status = _command(commands, "status", _status, "tell each part's health and the addresses")
    status.add_argument("--json", action="store_true", help="as JSON")
    load = _command(
        commands, "load-image", _load, "put an image archive (OCI or docker) on the node and into the registry"
    )
    load.add_argument("archive", type=Path)
    load.add_argument("--name", help="NAME:TAG, when the archive has none")
    config = _command(
        commands, "kubeconfig", _kubeconfig, "print a kubeconfig's path; with --user write one for that user"
    )
    config.add_argument("--user", help="a user of this machine who becomes cluster administrator")
    config.add_argument("--out", type=Path, help="where to write it (default ~USER/.kube/cuvil-cluster.yaml)")
    programs = _command(
        commands, "programs", _programs, "build programs (kubectl, helm, promtool, …) and print their paths"
    )
    programs.add_argument("names", nargs="*", help="all of them when none is named")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, act: object, help_: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help_, description=help_)
    command.set_defaults(act=act)
    return command


def _up(settings: Settings, _: argparse.Namespace) -> int:
    lifecycle.up(settings)
    say("the cluster is ready")
    for name, address in addresses(settings).items():
        print(f"{name:24}{address}")
    return 0


def _down(settings: Settings, _: argparse.Namespace) -> int:
    lifecycle.down(settings)
    say("nothing of the cluster is left")
    return 0


def _status(settings: Settings, arguments: argparse.Namespace) -> int:
    if os.geteuid() != 0:
        raise ClusterError("telling the processes apart needs root: run this with sudo, or ask with kubectl")
    parts = lifecycle.status(settings)
    if arguments.json:
        health = {part.name: {"well": part.well, "note": part.note} for part in parts}
        print(json.dumps({"parts": health, "addresses": addresses(settings)}, indent=1))
    else:
        for part in parts:
            print(f"{'well' if part.well else 'DOWN'}  {part.name:26}{part.note}")
        for name, address in addresses(settings).items():
            print(f"      {name:26}{address}")
    return 0 if all(part.well for part in parts) else 1


def _load(settings: Settings, arguments: argparse.Namespace) -> int:
    print(images.load_archive(settings, arguments.archive, arguments.name))
    return 0


def _kubeconfig(settings: Settings, arguments: argparse.Namespace) -> int:
    if arguments.user:
        print(lifecycle.user_kubeconfig(settings, arguments.user, arguments.out))
    elif os.access(settings.kubeconfig, os.R_OK):
        print(settings.kubeconfig)
    elif settings.kubeconfig.exists():
        raise ClusterError(
            "only root may read it; get your own with `sudo python -m e2e.cluster kubeconfig --user $USER`"
        )
    else:
        raise ClusterError(f"there is no cluster in {settings.state}; start one with `python -m e2e.cluster up`")
    return 0


def _programs(settings: Settings, arguments: argparse.Namespace) -> int:
    programs = Programs(settings.programs)
    names = arguments.names or [program.name for module in MODULES for program in module.programs]
    programs.ensure(names)
    for name in names:
        print(programs.path(name))
    return 0
