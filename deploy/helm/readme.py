"""Writes the chart's README.md from values.yaml: each value with its default and the comment above it.

usage: readme.py [--check]
"""

import pathlib
import re
import sys

import yaml

CHART = pathlib.Path(__file__).parent / "loadstone"
HEAD = """# Loadstone's Helm chart

Servers, workers and, where wanted, refreshers of [Loadstone](../../../README.md). What it makes of a cluster is told in
[deployment](../../../docs/operate/deploy.md#kubernetes). This file is made from [values.yaml](values.yaml) by `deploy/helm/readme.py`.

```sh
helm install bench deploy/helm/loadstone --namespace perf --create-namespace \\
  --set image.repository=registry.example/loadstone --set image.tag=0.2.0
helm test bench --namespace perf
```

Values that the chart does not know are refused, and so are values that cannot work together, with the name of the field.

## Values
"""
KEY = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):(.*)$")


def comments(lines):
    """The comment above each key of block style, by path."""
    found, path, said = {}, [], []
    for line in lines:
        if line.lstrip().startswith("#"):
            said.append(line.strip().lstrip("# "))
            continue
        key = KEY.match(line)
        if key:
            depth = len(key[1]) // 2
            path = [*path[:depth], key[2]]
            found[tuple(path)] = " ".join(said)
        said = []
    return found


def leaves(value, path=()):
    """The values that people set: everything but maps that have a comment or a default of their own inside."""
    if isinstance(value, dict) and value and path[-1:] not in [("requests",), ("limits",)]:
        for key, v in value.items():
            yield from leaves(v, (*path, key))
    else:
        yield path, value


def default(value):
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6).strip().removesuffix("\n...").strip()
    return "`" + text.replace("|", "\\|") + "`"


def render():
    text = (CHART / "values.yaml").read_text()
    said, out, part = comments(text.splitlines()), [HEAD], None
    for path, value in leaves(yaml.safe_load(text)):
        if path[0] != part:
            part = path[0]
            out.append(f"\n### {part}\n\n{said.get((part,), '')}".rstrip() + "\n\n| value | default | what it is |\n| --- | --- | --- |\n")
        # What is said of a map is said of what is in it, once.
        words = [said.pop(path[:n], "") for n in range(2, len(path) + 1)]
        if len(path) == 1:
            words = [""]
        out.append(f"| `{'.'.join(path)}` | {default(value)} | {' '.join(w for w in words if w).replace('|', chr(92) + '|')} |\n")
    return "".join(out)


def main():
    target, text = CHART / "README.md", render()
    if sys.argv[1:] == ["--check"]:
        if not target.exists() or target.read_text() != text:
            sys.exit(f"{target} is not what values.yaml says: run python3 deploy/helm/readme.py")
    else:
        target.write_text(text)


if __name__ == "__main__":
    main()
