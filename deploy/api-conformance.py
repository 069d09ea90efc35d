"""Gives a server something to answer about, and its OpenAPI document the ids of it.

usage: api-conformance.py fill URL TOKEN DOCUMENT PLUGIN.wasm   writes DOCUMENT anew
       api-conformance.py judge DOCUMENT REQUESTS.har           fails where an id was never answered
"""

import hashlib
import json
import re
import sys
import time
import urllib.request

TEMPLATE = """name: {name}
target: {{connection: playground, table_name: conformance, prepare: {{rows: 500}}}}
workload: {{plugin: mix, load_mode: QPS, target_qps: 50, concurrent_connections: 2, warmup_seconds: 0, duration_seconds: 2, seed: 1}}
thresholds: [p95_ms < 5000]
tags: {{made-for: conformance}}
"""
MATRIX = TEMPLATE.replace(
    "target: {{connection: playground, table_name: conformance, prepare: {{rows: 500}}}}",
    "matrix: {{targets: [{{connection: playground, table_name: conformance}}, {{connection: playground, table_name: conformance_too}}]}}",
)
# What each of these may be asked for is an answer of its own kind, which no 2xx begins.
NOT_PLAIN = {"watch-run", "tests-watch-run"}
# The node of this run is on the server's machine and has not joined: it has no certificate.
NOT_THERE = {"revoke-node"}
# Retrying or stopping what a Postgres has not is a conflict; so is starting a run again.
MAY_CONFLICT = {"retry-enrichment", "stop-enrichment", "start-run", "stop-run", "tests-start-run", "tests-stop-run",
                "start-matrix", "stop-matrix", "update-template", "update-connection", "drain-node"}


def call(url, token, method, path, body=None, media="application/json"):
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, method=method)
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("Content-Type", media)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{method} {path}: {refusal.code} {refusal.read().decode()[:2000]}")
    return json.loads(text) if text else None


def until(what, ask, done):
    for _ in range(300):
        found = ask()
        if done(found):
            return found
        time.sleep(0.2)
    sys.exit(f"{what} did not end within a minute: {json.dumps(found)[:2000]}")


def fill(url, token, path, plugin):
    ends = ("COMPLETED", "FAILED", "CANCELLED")

    def ask(method, where, body=None, media="application/json"):
        return call(url, token, method, where, body, media)

    def template(name, text=TEMPLATE):
        return ask("POST", "/api/templates", {"source": text.format(name=name)})["template_id"]

    kept = template("conformance")
    run = ask("POST", "/api/runs", {"template_id": kept, "start": True})["run_id"]
    detail = until("The run", lambda: ask("GET", f"/api/runs/{run}"), lambda d: d["status"] in ends and d["phase"] == "" and d["summary"])
    if detail["status"] != "COMPLETED":
        sys.exit("The run is " + detail["status"])
    several = template("conformance of several", MATRIX)
    matrix = ask("POST", "/api/matrices", {"template_id": several, "start": True})["matrix_id"]
    until("The matrix", lambda: ask("GET", f"/api/matrices/{matrix}"), lambda m: m["status"] in ends)

    def connection(name):
        return ask("POST", "/api/connections", {"name": name, "driver": "postgres", "dsn": "postgres://nobody@127.0.0.1:1/none"})["connection_id"]

    def upload(name):
        # The same plugin by another name of as many letters is another plugin.
        with open(plugin, "rb") as file:
            wasm = file.read().replace(b"tpcb", name)
        ask("POST", "/api/plugins", wasm, "application/wasm")
        return hashlib.sha256(wasm).hexdigest()

    prepared = lambda: ask("POST", "/api/runs", {"template_id": kept})["run_id"]  # noqa: E731
    # The server has waited for it when it started.
    node = next(n["node_id"] for n in ask("GET", "/api/v1/nodes")["nodes"] if n["node_id"] and not n["local"])
    ids = {
        "runs": ([run], [prepared(), prepared()]),
        "matrices": ([matrix], [ask("POST", "/api/matrices", {"template_id": several})["matrix_id"]]),
        "templates": ([kept], [template("to be deleted")]),
        "connections": ([connection("conformance")], [connection("to be deleted")]),
        "nodes": ([node], [node]),
        "plugins": ([upload(b"tpca"), "mix", "mix@1.0.0"], [upload(b"tpcz")]),
    }
    # What is started, stopped or connected to is neither the run that others read nor one that is deleted.
    of_their_own = {"start-run": prepared(), "stop-run": prepared(), "tests-start-run": prepared(), "tests-stop-run": prepared(),
                "start-matrix": ask("POST", "/api/matrices", {"template_id": several})["matrix_id"],
                "stop-matrix": ask("POST", "/api/matrices", {"template_id": several})["matrix_id"]}
    of_their_own["test-connection"] = next(c["connection_id"] for c in ask("GET", "/api/connections")["connections"] if c["name"] == "playground")
    with open(path) as file:
        document = json.load(file)
    bodies = {
        "create-run": {"template_id": kept}, "tests-create-run": {"template_id": kept}, "preflight": {"template_id": kept},
        "create-matrix": {"template_id": several}, "create-template": {"source": TEMPLATE.format(name="made by an example")},
        "validate-template": {"source": TEMPLATE.format(name="validated")},
        "update-template": {"source": TEMPLATE.format(name="conformance"), "version": 1},
        "create-connection": {"name": "made by an example", "driver": "postgres", "dsn": "postgres://nobody@127.0.0.1:1/none"},
        "test-dsn": {"driver": "postgres", "dsn": "postgres://nobody@127.0.0.1:1/none"},
    }
    for where, operations in document["paths"].items():
        noun = where.removeprefix("/api/").removeprefix("v1/").split("/")[0] if where.startswith("/api/") else ""
        read, doomed = ids.get("runs" if noun in ("tests", "runs") and "from-template" not in where else "templates" if "from-template" in where else noun, (None, None))
        for method, operation in operations.items():
            name = operation["operationId"]
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and read:
                    use = list(doomed if method == "delete" else [of_their_own[name]] if name in of_their_own else read)
                    if name.startswith("tests-") and method == "delete":
                        use = doomed[1:]
                    elif method == "delete":
                        use = doomed[:1]
                    parameter["schema"] = {"type": "string", "enum": use + ["no-such-thing"]}
                    parameter["example"] = use[0]
                if name == "compare-runs" and parameter["name"] in ("a", "b"):
                    parameter["schema"]["items"]["enum"] = [run]
                    parameter["example"] = [run]
            if name in bodies:
                operation["requestBody"]["content"]["application/json"]["example"] = bodies[name]
    with open(path, "w") as file:
        json.dump(document, file)


def judge(path, har):
    """Every operation that takes an id has to have answered about one."""
    with open(path) as file:
        document = json.load(file)
    with open(har) as file:
        entries = json.load(file)["log"]["entries"]
    seen = {}
    for entry in entries:
        where = re.sub(r"^https?://[^/]+|\?.*$", "", entry["request"]["url"])
        seen.setdefault((entry["request"]["method"], where), set()).add(entry["response"]["status"])
    unanswered, answered = [], 0
    for where, operations in document["paths"].items():
        form = re.compile(re.sub(r"\\?\{[a-z_]+\\?\}", "[^/]+", where) + "$")
        for method, operation in operations.items():
            name = operation["operationId"]
            if "{" not in where and name != "compare-runs" or name in NOT_PLAIN | NOT_THERE or name == "delete-token":
                continue
            codes = set().union(*(c for (m, w), c in seen.items() if m == method.upper() and form.match(w)), set())
            if any(200 <= c < 300 for c in codes) or name in MAY_CONFLICT and 409 in codes:
                answered += 1
            else:
                unanswered.append(f"{method.upper()} {where}: {sorted(codes)}")
    print(f"{len(entries)} requests; {answered} operations with an id were answered about something that is there.")
    if unanswered:
        sys.exit("Never answered about anything that is there:\n  " + "\n  ".join(unanswered))


if __name__ == "__main__":
    {"fill": fill, "judge": judge}[sys.argv[1]](*sys.argv[2:])
