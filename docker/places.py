"""Where services run as plain processes: folders for their volumes, addresses for their names."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from compose_file import Service

APP = "/fedlap"
_ROOT = Path(__file__).parents[1]


class Loopback:
    """All services at 127.0.0.1, each port of each at a free one.

    Parameters
    ----------
    root
        Folder of volumes and containers.
    services
        All services, by name.
    """

    def __init__(self, root: Path, services: Mapping[str, Service]) -> None:
        self.root, self.services = root.absolute(), services
        self._ports: dict[tuple[str, str], str] = {}

    def __enter__(self) -> "Loopback":
        for service in self.services.values():
            self._furnish(service)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        return

    def prefix(self, service: Service) -> list[str]:
        """Words before the command of a service."""
        return []

    def translate(self, service: Service, word: str) -> str:
        """A word of a command or an environment, with the paths and addresses of this machine."""
        return self._addresses(service, self._paths(service, word))

    def words(self, service: Service, words: Sequence[str]) -> list[str]:
        """A whole command."""
        done = [self.translate(service, word) for word in words]
        for index in range(1, len(words)):
            if words[index - 1] == "--port":
                done[index] = self._port(service.name, words[index])
        return done

    def home(self, service: Service) -> Path:
        """What stands for the root folder of the service's container."""
        return self.root / "containers" / service.name

    def _furnish(self, service: Service) -> None:
        """Volumes appear at the paths where the container has them."""
        for path, volume in {**service.mounts, APP: ""}.items():
            target = self.root / "volumes" / volume if volume else _ROOT
            target.mkdir(parents=True, exist_ok=True, mode=0o700)
            link = self.home(service) / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(target)
        (self.home(service) / service.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _paths(self, service: Service, word: str) -> str:
        tops = {path.split("/")[1] for path in (*service.mounts, APP)}
        known = rf"(?<![\w./-])/(?={'|'.join(map(re.escape, sorted(tops)))})(?=\w+(?:[/'\s]|$))"
        return re.sub(known, f"{self.home(service)}/", word)

    def _addresses(self, service: Service, word: str) -> str:
        names = "|".join(map(re.escape, self.services))

        def there(found: re.Match[str]) -> str:
            name = service.name if found[1] == "127.0.0.1" else found[1]
            return f"127.0.0.1:{self._port(name, found[2])}"

        word = re.sub(rf"(?<![\w-])({names}|127\.0\.0\.1):(\d+)", there, word)
        return "127.0.0.1" if word == "0.0.0.0" else word

    def _port(self, name: str, port: str) -> str:
        if (name, port) not in self._ports:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._ports[name, port] = str(free.getsockname()[1])
        return self._ports[name, port]


class Namespaces(Loopback):
    """Each party in a network namespace of its own, where the names and ports are the real ones.

    Needs root and the command `ip`. A party is who owns a volume: its services share an address,
    and a bridge joins the parties.
    """

    def __init__(self, root: Path, services: Mapping[str, Service]) -> None:
        super().__init__(root, services)
        self._tag = f"demo{os.getpid() % 1_000_000}"
        self._net = f"10.{os.getpid() % 200 + 40}.{os.getpid() // 200 % 250}"
        self._parties = sorted({self._party(service) for service in services.values()})

    def __enter__(self) -> "Namespaces":
        super().__enter__()
        try:
            self._join()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for party in self._parties:
            _ip("netns", "del", self._space(party), must=False)
            shutil.rmtree(Path("/etc/netns") / self._space(party), ignore_errors=True)
        _ip("link", "del", self._tag, must=False)

    def prefix(self, service: Service) -> list[str]:
        """Enter the namespace of the party."""
        return ["ip", "netns", "exec", self._space(self._party(service))]

    def words(self, service: Service, words: Sequence[str]) -> list[str]:
        """A whole command; only paths change."""
        return [self.translate(service, word) for word in words]

    def translate(self, service: Service, word: str) -> str:
        """A word with the paths of this machine."""
        return self._paths(service, word)

    def _party(self, service: Service) -> str:
        return next(iter(service.mounts.values()))

    def _space(self, party: str) -> str:
        return f"{self._tag}-{party}"

    def _join(self) -> None:
        hosts = "127.0.0.1 localhost\n" + "".join(
            f"{self._net}.{self._parties.index(self._party(each)) + 1} {each.name}\n"
            for each in self.services.values()
        )
        _ip("link", "add", self._tag, "type", "bridge")
        _ip("link", "set", self._tag, "up")
        for number, party in enumerate(self._parties, 1):
            space = self._space(party)
            inside, outside = f"{self._tag}i{number}", f"{self._tag}o{number}"
            folder = Path("/etc/netns") / space
            folder.mkdir(parents=True)
            (folder / "hosts").write_text(hosts, encoding="utf-8")
            _ip("netns", "add", space)
            _ip("link", "add", outside, "type", "veth", "peer", "name", inside)
            _ip("link", "set", outside, "master", self._tag, "up")
            _ip("link", "set", inside, "netns", space)
            within = ("netns", "exec", space, "ip")
            _ip(*within, "addr", "add", f"{self._net}.{number}/24", "dev", inside)
            _ip(*within, "link", "set", inside, "up")
            _ip(*within, "link", "set", "lo", "up")


def _ip(*words: str, must: bool = True) -> None:
    subprocess.run(["ip", *words], check=must, capture_output=not must)
