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
SELECT = "SELECT run_id, qps FROM run_summary"
MATRIX = TEMPLATE.replace(
    "target: {{connection: playground, table_name: conformance, prepare: {{rows: 500}}}}",
    "matrix: {{targets: [{{connection: playground, table_name: conformance}}, {{connection: playground, table_name: conformance_too}}]}}",
)
# What each of these may be asked for is an answer of its own kind, which no 2xx begins.
NOT_PLAIN = {"watch-run", "tests-watch-run"}
# The node of this run is on the server's machine and has not joined: it has no certificate. Nobody has a second factor.
NOT_THERE = {"revoke-node", "reset-totp"}
# Retrying or stopping what a Postgres has not is a conflict; so is starting a run again, changing the load of one that
# is over, and saving a version that was saved since.
MAY_CONFLICT = {"retry-enrichment", "stop-enrichment", "start-run", "stop-run", "tests-start-run", "tests-stop-run",
                "start-matrix", "stop-matrix", "update-template", "update-connection", "drain-node", "update-table", "save-query",
                "change-load"}


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

    def user(name):
        return ask("POST", "/api/users", {"name": name, "role": "viewer"})["user"]["user_id"]

    def table(name):
        return ask("POST", "/api/v1/tables", {"name": name, "definition": SELECT})["name"]

    def share():
        return ask("POST", f"/api/runs/{run}/shares", {})

    def mark(text):
        return ask("POST", f"/api/v1/runs/{run}/marks", {"text": text, "at": detail["summary"]["measured_from"]})["mark_id"]

    def api_token(name):
        return ask("POST", "/api/auth/tokens", {"name": name})["token_id"]

    def query(name):
        return ask("PUT", f"/api/v1/queries/{name}", {"sql": "SELECT 1"})["name"]

    hook = ask("PUT", "/api/v1/notifications", {"version": 0, "hooks": [
        {"name": "conformance", "kind": "webhook", "events": ["finished"], "url": "https://127.0.0.1:1/hook"}]})["hooks"][0]["id"]
    # What an operation with an id is asked about, and what a deletion is: nothing that others read.
    ids = {
        "runs": ([run], [prepared(), prepared()]),
        "matrices": ([matrix], [ask("POST", "/api/matrices", {"template_id": several})["matrix_id"]]),
        "templates": ([kept], [template("to be deleted")]),
        "connections": ([connection("conformance")], [connection("to be deleted")]),
        "nodes": ([node], [node]),
        "plugins": ([upload(b"tpca"), "mix", "mix@1.0.0"], [upload(b"tpcz")]),
        "users": ([user("conformance")], [user("deleted")]),
        "tables": ([table("conformance")], [table("dropped")]),
        "queries": ([query("conformance")], [query("deleted")]),
        "notifications": ([hook], []),
        "shares": ([], [share()["share_id"]]),
        "shared": ([share()["url"].rsplit("/", 1)[1]], []),
        "node-tokens": ([], [ask("POST", "/api/v1/node-tokens", {})["token_id"]]),
        "node-addresses": ([], [ask("POST", "/api/v1/node-addresses", {"address": "127.0.0.1:9"})["address"]]),
        "query-users": ([], [ask("POST", "/api/v1/query-users", {"name": "conformance"})["name"].removeprefix("query_")]),
        "auth": ([], [api_token("to be deleted")]),
        "tokens": ([], [api_token("to be ended")]),
    }
    # A template with a baseline, whose baseline is dropped.
    based = template("with a baseline")
    first = ask("POST", "/api/runs", {"template_id": based, "start": True})["run_id"]
    until("The run of the baseline", lambda: ask("GET", f"/api/runs/{first}"), lambda d: d["status"] in ends and d["phase"] == "" and d["summary"])
    ask("PUT", f"/api/templates/{based}/baseline", {"run_id": first})
    # What is started, stopped or connected to is neither the run that others read nor one that is deleted.
    of_their_own = {"start-run": prepared(), "stop-run": prepared(), "tests-start-run": prepared(), "tests-stop-run": prepared(),
                "start-matrix": ask("POST", "/api/matrices", {"template_id": several})["matrix_id"],
                "stop-matrix": ask("POST", "/api/matrices", {"template_id": several})["matrix_id"],
                "tests-delete-run": ids["runs"][1][1], "drop-baseline": based, "delete-mark": run}
    of_their_own["test-connection"] = next(c["connection_id"] for c in ask("GET", "/api/connections")["connections"] if c["name"] == "playground")
    marks = {"change-mark": mark("to be changed"), "delete-mark": mark("to be deleted")}
    with open(path) as file:
        document = json.load(file)
    bodies = {
        "create-run": {"template_id": kept}, "tests-create-run": {"template_id": kept}, "preflight": {"template_id": kept},
        "create-matrix": {"template_id": several}, "create-template": {"source": TEMPLATE.format(name="made by an example")},
        "validate-template": {"source": TEMPLATE.format(name="validated")},
        "update-template": {"source": TEMPLATE.format(name="conformance"), "version": 1},
        "create-connection": {"name": "made by an example", "driver": "postgres", "dsn": "postgres://nobody@127.0.0.1:1/none"},
        "update-table": {"definition": SELECT, "version": 1}, "save-query": {"sql": "SELECT 2", "version": 1},
        "change-user": {"role": "operator"}, "change-mark": {"text": "changed", "at": detail["summary"]["measured_from"]}, "set-baseline": {"run_id": run},
        "test-dsn": {"driver": "postgres", "dsn": "postgres://nobody@127.0.0.1:1/none"},
    }
    for where, operations in document["paths"].items():
        noun = where.removeprefix("/api/").removeprefix("v1/").removeprefix("/").split("/")[0]
        read, doomed = ids.get("runs" if noun in ("tests", "runs") and "from-template" not in where else "templates" if "from-template" in where else noun, ([], []))
        for method, operation in operations.items():
            name = operation["operationId"]
            for parameter in operation.get("parameters", []):
                use = [of_their_own[name]] if name in of_their_own else doomed[:1] if method == "delete" else read
                if parameter["name"] == "mark":
                    use = [marks[name]]
                if parameter["in"] == "path" and use:
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
            if "{" not in where and name != "compare-runs" or name in NOT_PLAIN | NOT_THERE:
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
