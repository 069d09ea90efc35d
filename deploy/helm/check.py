"""Holds what the Helm chart renders to the schemas of Kubernetes and KEDA, and to what the program knows.

usage: check.py HELM BINARY
"""

import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import jsonschema
import kubernetes_validate
import yaml

HELM, BINARY = sys.argv[1:3]
HERE = pathlib.Path(__file__).parent
CHART = HERE / "loadstone"
# The oldest that the chart admits and that has schemas, and the newest.
VERSIONS = ["1.25", "1.31", "1.37"]

KEDA = {"mode": "keda", "keda": {"tokenSecret": "scaler"}}
TABLES = {"database": {"existingSecret": "control"}, "tables": {"existingSecret": "tables"}}
S3 = {"results": "s3://bench/runs?region=eu-central-1", "database": {"existingSecret": "control"}}
MONITORED = {"podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}, "prometheusRule": {"enabled": True},
             "serviceMonitor": {"enabled": True, "tokenSecret": "scraper"}}
POD = {"podLabels": {"team": "perf"}, "podAnnotations": {"a/b": "c"}, "priorityClassName": "load", "nodeSelector": {"disk": "ssd"},
       "extraVolumes": [{"name": "ca", "configMap": {"name": "target-ca"}}],
       "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/target", "readOnly": True}],
       "env": [{"name": "LOADSTONE_LOG_LEVEL", "value": "debug"}]}
# What people would set, each to be rendered and judged.
ACCEPTED = {
    "nothing": {},
    "a database of one's own": {"database": {"existingSecret": "control", "key": "uri"}},
    "several servers": {"server": {"replicas": 3, "publicURL": "https://bench.example.com"}, **S3},
    "TLS of the server": {"server": {"tls": {"existingSecret": "page"}, "allowedHosts": ["bench.example.com"],
                                     "trustedProxies": ["10.0.0.0/8"]}},
    "KEDA, down to zero": {"autoscaling": KEDA},
    "KEDA over TLS": {"server": {"tls": {"existingSecret": "page"}}, "autoscaling": {
        "mode": "keda", "keda": {"tokenSecret": "scaler", "url": "https://bench.example.com/"}}},
    "KEDA over TLS, of refreshers, unchecked": {
        **TABLES, "server": {"tls": {"existingSecret": "page"}}, "autoscaling": {"keda": {"tokenSecret": "scaler", "unsafeSsl": True}},
        "refreshers": {"enabled": True, "autoscaling": {"mode": "keda"}}},
    "results on a volume of one's own": {"results": "/var/runs/bench", "server": {
        "extraVolumes": [{"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}}],
        "extraVolumeMounts": [{"name": "runs", "mountPath": "/var/runs"}]}},
    "HPA, down to one": {"autoscaling": {"mode": "hpa", "minReplicas": 1}},
    "an ingress": {"ingress": {"enabled": True, "className": "nginx", "host": "bench.example.com",
                               "annotations": {"a/b": "c"}, "tlsSecret": "bench-tls"}},
    "own certificates": {"tls": {"existingSecret": "nodes"}, "sealingKey": {"existingSecret": "key", "key": "k"}},
    "volumes of a class": {"server": {"persistence": {"storageClass": "fast"}},
                           "workers": {"persistence": {"enabled": True, "storageClass": "fast"}}},
    "io_uring": {"seccompProfile": {"type": "Localhost", "localhostProfile": "loadstone.json"}},
    "user ids given out": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}},
    "where pods go": {part: {"nodeSelector": {"disk": "ssd"}, "podAnnotations": {"a/b": "c"},
                             "tolerations": [{"key": "bench", "operator": "Exists"}],
                             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                                 "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}}
                      for part in ["server", "workers"]},
    "targets and peers": {"networkPolicy": {
        "ingressFrom": [{"namespaceSelector": {"matchLabels": {"team": "perf"}}}],
        "targets": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": 5432, "protocol": "TCP"}]}]}},
    "nothing that can be left out": {"networkPolicy": {"enabled": False}, "serviceAccount": {"create": False},
                                     "server": {"podDisruptionBudget": {"enabled": False}},
                                     "workers": {"podDisruptionBudget": {"enabled": False}}},
    "tables in a database of one's own": {**TABLES, "tables": {"existingSecret": "tables", "ownerKey": "o", "readerKey": "r"}},
    "refreshers": {**TABLES, "refreshers": {"enabled": True, "envFrom": [{"secretRef": {"name": "s3"}}],
                                            "env": [{"name": "LOADSTONE_INGEST", "value": "executions"}]}},
    "refreshers with an HPA": {**TABLES, "refreshers": {"enabled": True, "autoscaling": {"mode": "hpa", "minReplicas": 2}}},
    "refreshers alone, with KEDA, down to zero": {
        **TABLES, "results": S3["results"], "autoscaling": {"keda": KEDA["keda"]},
        "tables": {"existingSecret": "tables", "serverWorkers": 0},
        "refreshers": {"enabled": True, "autoscaling": {"mode": "keda"}, "nodeSelector": {"disk": "ssd"},
                       "tolerations": [{"key": "bench", "operator": "Exists"}], "podAnnotations": {"a/b": "c"}}},
    "traces of everything": {**TABLES, "refreshers": {"enabled": True}, "otlpEndpoint": "http://collector.traces:4318"},
    "metrics to two receivers": {"out": {
        "remoteWrite": {"urls": ["https://mimir.example.com/api/v1/push", "http://prometheus:9090/api/v1/write?a=b,c"], "user": "u",
                        "existingSecret": "receiver", "passwordKey": "p", "headersKey": "h", "caKey": "c"},
        "otlpMetrics": "http://collector:4318", "grafana": {"url": "https://grafana.example.com", "existingSecret": "marks"}}},
    "metrics with a token": {"out": {"remoteWrite": {"urls": ["https://vm.example.com/write"], "existingSecret": "receiver",
                                                     "tokenKey": "t"}}},
    "a Prometheus operator": {**TABLES, "refreshers": {"enabled": True}, "metrics": MONITORED},
    "metrics read from one namespace": {**TABLES, "refreshers": {"enabled": True}, "metrics": MONITORED, "networkPolicy": {
        "ingressFrom": [{"namespaceSelector": {"matchLabels": {"team": "perf"}}}],
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]}},
    "metrics over TLS": {"server": {"tls": {"existingSecret": "page"}}, "metrics": {**MONITORED, "serviceMonitor": {
        **MONITORED["serviceMonitor"], "tlsConfig": {"insecureSkipVerify": True}}}},
    "a schema job": {"database": {"existingSecret": "control", "schemaJob": {"enabled": True}}},
    "a schema job with another key of the same secret": {"database": {
        "existingSecret": "control", "key": "uri", "schemaJob": {"enabled": True}}},
    "a schema job with the servers' secret by its name": {"database": {
        "existingSecret": "control", "key": "uri", "schemaJob": {"enabled": True, "existingSecret": "control"}}},
    "a schema job of another role, with the usual key": {"database": {
        "existingSecret": "control", "key": "uri", "schemaJob": {"enabled": True, "existingSecret": "ddl"}}},
    "a schema job in a pool of its own, with an authority": {
        "server": {**POD, "tolerations": [{"key": "bench", "operator": "Exists"}], "envFrom": [{"secretRef": {"name": "pg"}}],
                   "env": [{"name": "PGSSLROOTCERT", "value": "/etc/target/ca.crt"}]},
        "database": {"existingSecret": "control", "schemaJob": {"enabled": True}}},
    "a schema job of another role": {"image": {"pullSecrets": ["registry"]}, "database": {
        "existingSecret": "control", "key": "uri", "schemaJob": {"enabled": True, "existingSecret": "ddl", "key": "owner"}}},
    "pods of one's own kind": {**TABLES, "refreshers": {"enabled": True, **POD}, "server": POD, "workers": {
        **POD, "envFrom": [{"configMapRef": {"name": "proxies"}}]}},
    "spread over zones": {"workers": {"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"a": "b"}}}]},
                          "server": {"topologySpreadConstraints": []}},
    "keys of S3": {"server": {"envFrom": [{"secretRef": {"name": "s3"}}],
                              "env": [{"name": "LOADSTONE_LIVE_RUNS", "value": "4"}]}, **S3},
}
# What cannot work, and the field that the refusal has to name.
REFUSED = {
    "server.replicas": {"server": {"replicas": 2}},
    "results": {"server": {"replicas": 2}, "database": {"existingSecret": "control"}},
    "results: more than one": {"server": {"replicas": 2, **POD}, "database": {"existingSecret": "control"}, "results": "/etc/target"},
    "results: a folder": {"server": POD, "results": "/etc/targets"},
    "autoscaling.keda.url": {"server": {"tls": {"existingSecret": "page"}}, "autoscaling": KEDA},
    "keda.url": {**TABLES, "server": {"tls": {"existingSecret": "page"}}, "autoscaling": {"keda": KEDA["keda"]},
                 "refreshers": {"enabled": True, "autoscaling": {"mode": "keda"}}},
    "autoscaling.keda.tokenSecret": {"autoscaling": {"mode": "keda"}},
    "refreshers.enabled": {"refreshers": {"enabled": True}},
    "tables.existingSecret": {"tables": {"existingSecret": "tables"}},
    "tables.serverWorkers": {**TABLES, "tables": {"existingSecret": "tables", "serverWorkers": 0}, "refreshers": {"enabled": True}},
    "refreshers.autoscaling.minReplicas": {**TABLES, "refreshers": {"enabled": True, "autoscaling": {"mode": "hpa"}}},
    "keda.tokenSecret": {**TABLES, "refreshers": {"enabled": True, "autoscaling": {"mode": "keda"}}},
    "autoscaling.minReplicas": {"autoscaling": {"mode": "hpa"}},
    "otlpEndpoint": {"otlpEndpoint": "collector.traces:4317"},
    "out.remoteWrite.existingSecret": {"out": {"remoteWrite": {"urls": ["http://a"], "tokenKey": "t"}}},
    "out.remoteWrite.tokenKey": {"out": {"remoteWrite": {"urls": ["http://a"], "existingSecret": "s"}}},
    "out.remoteWrite.urls": {"out": {"remoteWrite": {"user": "u"}}},
    "out.grafana.url": {"out": {"grafana": {"existingSecret": "s"}}},
    "otlpMetrics": {"out": {"otlpMetrics": "collector:4318"}},
    "ingress.host": {"ingress": {"enabled": True}},
    "server.podLabels": {"server": {"podLabels": {"app.kubernetes.io/name": "mine"}}},
    "workers.podLabels": {"workers": {"podLabels": {"helm.sh/chart": "mine"}}},
    "database.schemaJob.enabled": {"database": {"schemaJob": {"enabled": True}}},
    "metrics.serviceMonitor.tokenSecret": {"metrics": {"serviceMonitor": {"enabled": True}}},
    "interval": {"metrics": {"podMonitor": {"enabled": True, "interval": "often"}}},
    "podMonitors": {"metrics": {"podMonitors": {}}},
    "mode": {"autoscaling": {"mode": "sometimes"}},
    "waitForNodes": {"autoscaling": {"waitForNodes": "soon"}},
    "replica": {"server": {"replica": 2}},
    "capacity": {"workers": {"capacity": "many"}},
}

failures = []


def fail(case, what):
    failures.append(f"{case}: {what}")


def helm(values, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        # Without its makers' build flags helm takes itself for one of an old Kubernetes.
        return subprocess.run([HELM, *arguments, "--kube-version", "1.37.0", "--values", file.name], capture_output=True, text=True, check=False)


def crds():
    """The schemas of the resources of KEDA and the Prometheus operator by kind."""
    found = {}
    for path in sorted((HERE / "schemas").glob("*.yaml")):
        # A flag in the middle of an expression is Go's way.
        crd = yaml.safe_load(path.read_text().replace("^(?i)", "(?i)^"))
        for version in crd["spec"]["versions"]:
            found[crd["spec"]["names"]["kind"]] = version["schema"]["openAPIV3Schema"]
    return found


def unknown(value, schema, where):
    """What a schema does not know, which Kubernetes would drop without a word."""
    if isinstance(value, list):
        return [u for i, v in enumerate(value) for u in unknown(v, schema.get("items", {}), f"{where}[{i}]")]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    properties, more = schema.get("properties", {}), schema.get("additionalProperties")
    found = []
    for key, v in value.items():
        if key in properties:
            found += unknown(v, properties[key], f"{where}.{key}")
        elif isinstance(more, dict):
            found += unknown(v, more, f"{where}.{key}")
        elif where != "metadata" and properties:
            found.append(f"{where}.{key}")
    return found


def variables():
    """The environment variables that the program knows, by command."""
    known = {}
    for command in ["serve", "worker"]:
        text = subprocess.run([BINARY, command, "--help"], capture_output=True, text=True, check=True).stdout
        known[command] = set(re.findall(r"\$(LOADSTONE_\w+)", text)) | {"LOADSTONE_KEY"}
    for command in ["schema apply", "health"]:
        text = subprocess.run([BINARY, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
        known[command] = set(re.findall(r"\$(LOADSTONE_\w+)", text)) | set(re.findall(r"(--[a-z-]+)", text))
    return known


def judge_pod(case, where, pod, known):
    """What every pod of ours must have."""
    if pod["securityContext"].get("runAsNonRoot") is not True:
        fail(case, f"{where} may run as root")
    for c in pod["containers"]:
        security = c.get("securityContext", {})
        if (not security.get("readOnlyRootFilesystem") or security.get("allowPrivilegeEscalation") is not False or
                security.get("capabilities") != {"drop": ["ALL"]}):
            fail(case, f"{where} may do more than it needs: {security}")
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"]:
            if probe not in c:
                fail(case, f"{where} has no {probe}")
        if "requests" not in c["resources"]:
            fail(case, f"{where} asks for no resources")
        command = c["args"][0]
        for v in c["env"]:
            if v["name"].startswith("LOADSTONE_") and v["name"] not in known[command]:
                fail(case, f"{where} sets {v['name']}, which loadstone {command} does not know")
        mounts = {m["mountPath"] for m in c["volumeMounts"]}
        for v in c["env"]:
            path = v.get("value", "")
            if path.startswith("/etc/loadstone/") and path.rsplit("/", 1)[0] not in mounts:
                fail(case, f"{where} reads {path}, which is not mounted")
        drain = [int(a.removeprefix("--drain=").removesuffix("s")) for a in c["args"] if a.startswith("--drain=")]
        if command == "worker" and (not drain or pod["terminationGracePeriodSeconds"] < drain[0] + 45):
            fail(case, f"{where} is killed {pod['terminationGracePeriodSeconds']} s after SIGTERM and drains for {drain}")
        if not {"/data", "/tmp"} <= mounts:
            fail(case, f"{where} has no place to write: {mounts}")


def judge_like_server(case, where, pod, job):
    """A hook is scheduled where servers are, and the schema job reaches the database as they do."""
    values = ACCEPTED[case]
    server = values.get("server", {})
    for key in ["nodeSelector", "tolerations", "affinity", "priorityClassName"]:
        if pod.get(key) != server.get(key):
            fail(case, f"{where} has {key} {pod.get(key)}, and servers have {server.get(key)}")
    if not job:
        return
    c, database = pod["containers"][0], values["database"]
    own = database["schemaJob"].get("existingSecret", database["existingSecret"])
    usual = database.get("key", "url") if own == database["existingSecret"] else "url"
    wanted = (own, database["schemaJob"].get("key", usual))
    found = [(v["secret"]["secretName"], i["key"]) for v in pod["volumes"] for i in v.get("secret", {}).get("items", [])]
    if found != [wanted]:
        fail(case, f"{where} reads {found} of secrets, not {wanted}")
    if c.get("envFrom", []) != server.get("envFrom", []):
        fail(case, f"{where} has not the variables of servers: {c.get('envFrom')}")
    for there, key in [(c["env"], "env"), (c["volumeMounts"], "extraVolumeMounts"), (pod["volumes"], "extraVolumes")]:
        for one in server.get(key, []):
            if one not in there:
                fail(case, f"{where} lacks {one} of the servers' {key}")


def judge_short_pod(case, where, pod, known):
    """What a pod must have that ends by itself: a job, or a test."""
    if pod["securityContext"].get("runAsNonRoot") is not True or pod["restartPolicy"] != "Never":
        fail(case, f"{where} may run as root, or begins again and again")
    for c in pod["containers"]:
        security = c["securityContext"]
        if not security.get("readOnlyRootFilesystem") or security.get("capabilities") != {"drop": ["ALL"]}:
            fail(case, f"{where} may do more than it needs: {security}")
        command = " ".join(itertools.takewhile(lambda a: not a.startswith("--"), c["args"]))
        words = {v["name"] for v in c.get("env", []) if v["name"].startswith("LOADSTONE_")} | {a.split("=")[0] for a in c["args"] if a.startswith("--")}
        if command not in known or not words <= known[command]:
            fail(case, f"{where} runs loadstone {command} with {words}, which it does not know")
        mounts = {m["mountPath"] for m in c["volumeMounts"]}
        for v in c.get("env", []):
            if v["value"].startswith("/etc/loadstone/") and v["value"].rsplit("/", 1)[0] not in mounts:
                fail(case, f"{where} reads {v['value']}, which is not mounted")
    if pod.get("serviceAccountName"):
        fail(case, f"{where} is a hook and comes before its service account is there")


def matches(selector, labels):
    return selector.get("matchLabels", {}).items() <= labels.items()


def admits(case, documents, pod, port):
    """Whether the policies let some peer that is not one of the chart's pods reach a port of a pod."""
    policies = [d for d in documents if d["kind"] == "NetworkPolicy" and matches(d["spec"]["podSelector"], pod["metadata"]["labels"])]
    outside = [p for d in policies for p in d["spec"].get("ingress", []) if any(q["port"] == port for q in p.get("ports", []))]
    wanted = ACCEPTED.get(case, {}).get("networkPolicy", {}).get("metricsFrom", [])
    return not policies or any("from" not in p or (wanted and all(w in p["from"] for w in wanted)) for p in outside)


def judge_network(case, documents):
    """Each service, monitor, probe and policy names pods and ports that there are, and a scraper gets through."""
    pods = [d["spec"]["template"] for d in documents if d["kind"] in ["StatefulSet", "Deployment"]]
    ports = lambda pod: {p["name"] for c in pod["spec"]["containers"] for p in c["ports"]}
    for d in documents:
        where, spec = f"{d['kind']} {d['metadata']['name']}", d.get("spec", {})
        if d["kind"] == "Service":
            for pod in [p for p in pods if matches({"matchLabels": spec["selector"]}, p["metadata"]["labels"])]:
                for p in spec["ports"]:
                    if p["targetPort"] not in ports(pod):
                        fail(case, f"{where} leads to the port {p['targetPort']}, which its pods do not have")
        elif d["kind"] == "NetworkPolicy":
            for pod in [p for p in pods if matches(spec["podSelector"], p["metadata"]["labels"])]:
                for p in [q for rule in spec.get("ingress", []) for q in rule["ports"]]:
                    if p["port"] not in ports(pod):
                        fail(case, f"{where} opens the port {p['port']}, which its pods do not have")
        elif d["kind"] == "PodMonitor":
            found = [p for p in pods if matches(spec["selector"], p["metadata"]["labels"])]
            for e in spec["podMetricsEndpoints"]:
                if len(found) != 1 or e["port"] not in ports(found[0]) or not admits(case, documents, found[0], e["port"]):
                    fail(case, f"{where} scrapes {e['port']} of {len(found)} kinds of pods, or is kept out by a policy")
        elif d["kind"] == "ServiceMonitor":
            services = [s for s in documents if s["kind"] == "Service" and matches(spec["selector"], s["metadata"]["labels"])]
            for e in spec["endpoints"]:
                found = [p for s in services for p in pods if matches({"matchLabels": s["spec"]["selector"]}, p["metadata"]["labels"])]
                if (len(services) != 1 or services[0]["spec"].get("clusterIP") != "None" or
                        e["port"] not in {p["name"] for p in services[0]["spec"]["ports"]} or len(found) != 1 or
                        not admits(case, documents, found[0], services[0]["spec"]["ports"][0]["targetPort"])):
                    fail(case, f"{where} scrapes {len(services)} services, one by one each server, or is kept out by a policy")
        if d["kind"] == "ConfigMap":
            fail(case, f"{where}: what the chart makes is in secrets")
        for c in [c for p in pods for c in p["spec"]["containers"]]:
            for v in c.get("env", []):
                if re.search(r"PASSWORD|SECRET|TOKEN|KEY|_URL$", v["name"]) and not v["name"].endswith("_FILE") and (
                        not v.get("value", "/").startswith(("/", "http"))):
                    fail(case, f"{v['name']} has its value in the open")


def judge_spread(case, where, pod, component):
    """Constraints without a selector are for the pods of their part, and labels of people reach the pods."""
    part = {"server": "server", "worker": "workers", "refresher": "refreshers"}[component]
    values = ACCEPTED.get(case, {}).get(part, {})
    labels = pod["metadata"]["labels"]
    for c in pod["spec"].get("topologySpreadConstraints", []):
        if not matches(c["labelSelector"], labels) and c["labelSelector"] != {"matchLabels": {"a": "b"}}:
            fail(case, f"{where} is spread by the labels of others: {c}")
    wanted = len(values.get("topologySpreadConstraints", [1]))
    if len(pod["spec"].get("topologySpreadConstraints", [])) != wanted:
        fail(case, f"{where} has not {wanted} constraints")
    if pod["spec"].get("priorityClassName") != values.get("priorityClassName") or not (
            values.get("podLabels", {}).items() <= labels.items()):
        fail(case, f"{where} lacks the class or the labels of people")
    mounts = [m for c in pod["spec"]["containers"] for m in c["volumeMounts"]]
    claims = ["data"]
    for m in mounts:
        if m["name"] not in [v["name"] for v in pod["spec"]["volumes"]] + claims:
            fail(case, f"{where} mounts {m['name']}, which is no volume of it")
    for m in values.get("extraVolumeMounts", []):
        if m not in mounts:
            fail(case, f"{where} lacks the mount {m}")


def metric_names():
    """The names that the program gives to its metrics."""
    text = "".join(p.read_text() for folder in ["engine", "server", "cli", "storage"]
                   for p in (HERE.parent.parent / folder).rglob("*.go") if not p.name.endswith("_test.go"))
    return set(re.findall(r'"(loadstone_\w+)"', text))


def judge_files():
    """What is told in two places is the same: alerts, values and their schema, values and the README."""
    alerts = HERE.parent / "observability" / "alerts.yaml"
    if alerts.read_text() != (CHART / "alerts.yaml").read_text():
        fail("alerts", f"the chart's are not those of {alerts}: copy them")
    known = metric_names()
    for rule in [r for g in yaml.safe_load(alerts.read_text())["groups"] for r in g["rules"]]:
        for name in set(re.findall(r"loadstone_\w+", rule["expr"])):
            if name not in known and re.sub(r"_(bucket|sum|count)$", "", name) not in known:
                fail(rule["alert"], f"no metric is called {name}")
    if subprocess.run([sys.executable, str(HERE / "readme.py"), "--check"], check=False).returncode:
        fail("README.md", "is not what values.yaml says")
    definitions = json.loads((CHART / "values.schema.json").read_text())

    def walk(value, schema, path):
        if not isinstance(value, dict) or "properties" not in schema:
            return
        if schema.get("additionalProperties") is not False:
            fail("values.schema.json", f"{path} takes keys that nobody knows")
        for key in value.keys() ^ schema["properties"].keys():
            if (path, key) not in [("", "global")]:
                fail("values.schema.json", f"{path}.{key} is in one of values and schema alone")
        for key in value.keys() & schema["properties"].keys():
            walk(value[key], schema["properties"][key], f"{path}.{key}")

    walk(yaml.safe_load((CHART / "values.yaml").read_text()), definitions, "")


def mixed(n):
    """Values of several cases at once, in combinations that a seed chooses."""
    chance, names = random.Random(18), list(ACCEPTED)
    merge = lambda a, b: {k: merge(a[k], b[k]) if isinstance(a.get(k), dict) and isinstance(b.get(k), dict) else b.get(k, a.get(k))
                          for k in {**a, **b}}
    for _ in range(n):
        some = chance.sample(names, 3)
        values = {}
        for name in some:
            values = merge(values, ACCEPTED[name])
        yield " + ".join(some), values


def judge_traces(case, where, pod):
    """A collector that is set is told to everything, and to nothing when it is not."""
    wanted = ACCEPTED[case].get("otlpEndpoint", "")
    for c in pod["containers"]:
        told = [v["value"] for v in c["env"] if v["name"] == "LOADSTONE_OTLP_ENDPOINT"]
        if told != ([wanted] if wanted else []):
            fail(case, f"{where} sends its spans to {told}, not to {wanted!r}")


def judge_out(case, where, pod):
    """A server is told where metrics go, each file that it reads is one of a secret, and nobody else is told."""
    out = ACCEPTED[case].get("out", {}) if where.startswith("StatefulSet bench-loadstone") and "workers" not in where else {}
    write, grafana = out.get("remoteWrite", {}), out.get("grafana", {})
    wanted = [f"--remote-write={u}" for u in write.get("urls", [])]
    wanted += [f"--otlp-metrics={out['otlpMetrics']}"] if "otlpMetrics" in out else []
    wanted += [f"--grafana-url={grafana['url']}"] if "url" in grafana else []
    files = {"LOADSTONE_REMOTE_WRITE_TOKEN_FILE": "tokenKey", "LOADSTONE_REMOTE_WRITE_PASSWORD_FILE": "passwordKey",
             "LOADSTONE_REMOTE_WRITE_HEADERS_FILE": "headersKey", "LOADSTONE_REMOTE_WRITE_CA": "caKey"}
    read = {(write["existingSecret"], write[key]): name for name, key in files.items() if key in write}
    if "existingSecret" in grafana:
        read[grafana["existingSecret"], grafana.get("tokenKey", "token")] = "LOADSTONE_GRAFANA_TOKEN_FILE"
    for c in pod["containers"]:
        told = [a for a in c["args"] if a.startswith(("--remote-write", "--otlp-metrics", "--grafana-url"))]
        if told != wanted:
            fail(case, f"{where} is told {told}, not {wanted}")
        env = {v["name"]: v.get("value") for v in c["env"]}
        if env.get("LOADSTONE_REMOTE_WRITE_USER") != write.get("user"):
            fail(case, f"{where} sends as {env.get('LOADSTONE_REMOTE_WRITE_USER')}")
        mounts = {m["name"]: m["mountPath"] for m in c["volumeMounts"]}
        there = {f"{mounts.get(v['name'])}/{i['path']}": (v["secret"]["secretName"], i["key"])
                 for v in pod["volumes"] for i in v.get("secret", {}).get("items", [])}
        found = {there.get(env[name]): name for name in [*files, "LOADSTONE_GRAFANA_TOKEN_FILE"] if name in env}
        if found != read:
            fail(case, f"{where} reads {found} of secrets, not {read}")


def judge(case, documents, schemas, known):
    """What one rendering must be."""
    selectors, labels, names = [], [], set()
    for d in documents:
        kind, name = d["kind"], d["metadata"]["name"]
        where = f"{kind} {name}"
        if (kind, name) in names:
            fail(case, f"{where} is there twice")
        names.add((kind, name))
        if kind in schemas:
            try:
                jsonschema.validate(d, schemas[kind])
            except jsonschema.ValidationError as e:
                fail(case, f"{where}: {e.message}")
            for field in unknown({k: v for k, v in d.items() if k != "metadata"}, schemas[kind], ""):
                fail(case, f"{where}: its definition knows no {field}")
        else:
            for version in VERSIONS:
                try:
                    kubernetes_validate.validate(d, version, strict=True)
                except kubernetes_validate.ValidationError as e:
                    fail(case, f"{where}, Kubernetes {version}: {e.message}")
        if kind in ["StatefulSet", "Deployment"]:
            pod = d["spec"]["template"]
            labels.append(pod["metadata"]["labels"])
            selectors.append((where, d["spec"]["selector"]["matchLabels"]))
            judge_pod(case, where, pod["spec"], known)
            judge_spread(case, where, pod, pod["metadata"]["labels"]["app.kubernetes.io/component"])
            judge_traces(case, where, pod["spec"])
            judge_out(case, where, pod["spec"])
            if "serve" in [a for c in pod["spec"]["containers"] for a in c["args"]]:
                waits = [v["value"] for c in pod["spec"]["containers"] for v in c["env"]
                         if v["name"] == "LOADSTONE_WAIT_FOR_NODES"]
                if waits != (["10m"] if ACCEPTED[case].get("autoscaling", {}).get("mode") == "keda" else []):
                    fail(case, f"{where}: runs wait for nodes {waits}")
        elif kind in ["Job", "Pod"]:
            pod = d["spec"]["template"]["spec"] if kind == "Job" else d["spec"]
            judge_short_pod(case, where, pod, known)
            judge_like_server(case, where, pod, kind == "Job")
            if "helm.sh/hook" not in d["metadata"]["annotations"]:
                fail(case, f"{where} is no hook, and would stay")
        elif kind == "ScaledObject":
            trigger = d["spec"]["triggers"][0]["metadata"]
            wanted = "pending_refresh_count" if name.endswith("-refreshers") else "wanted_nodes"
            if trigger["valueLocation"] != wanted or d["spec"]["minReplicaCount"] != 0:
                fail(case, f"{where} scales by {trigger['valueLocation']} down to {d['spec']['minReplicaCount']}")
            keda = ACCEPTED[case].get("autoscaling", {}).get("keda", {})
            base = keda.get("url", "http://bench-loadstone.perf.svc:80").rstrip("/")
            if keda.get("unsafeSsl"):
                base = base.replace("http:", "https:")
            if (trigger["url"], trigger.get("unsafeSsl")) != (f"{base}/api/v1/scaling", "true" if keda.get("unsafeSsl") else None):
                fail(case, f"{where} asks {trigger['url']}, unsafeSsl {trigger.get('unsafeSsl')}")
        elif kind == "Service":
            selectors.append((where, d["spec"]["selector"]))
        elif kind == "PodDisruptionBudget":
            selectors.append((where, d["spec"]["selector"]["matchLabels"]))
        elif kind == "NetworkPolicy":
            selectors.append((where, d["spec"]["podSelector"]["matchLabels"]))
    judge_network(case, documents)
    budgets = {d["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] for d in documents if d["kind"] == "PodDisruptionBudget"}
    if case != "nothing that can be left out" and budgets != {one["app.kubernetes.io/component"] for one in labels}:
        fail(case, f"only {budgets} have a budget of disruptions")
    for where, selector in selectors:
        found = [one for one in labels if selector.items() <= one.items()]
        if len(found) != 1:
            fail(case, f"{where} selects {len(found)} kinds of pods")
    for d in documents:
        spec = d.get("spec", {})
        target = spec.get("scaleTargetRef")
        if target and (target["kind"], target["name"]) not in names:
            fail(case, f"{d['kind']} scales {target['name']}, which is not there")
        reference = [t.get("authenticationRef", {}).get("name") for t in spec.get("triggers", [])]
        for r in filter(None, reference):
            if ("TriggerAuthentication", r) not in names:
                fail(case, f"{d['kind']} asks as {r}, which is not there")


def main():
    schemas, known = crds(), variables()
    judge_files()
    for case, values in ACCEPTED.items():
        for command in [["lint", "--strict", str(CHART)], ["template", "bench", str(CHART), "--namespace", "perf"]]:
            done = helm(values, *command)
            if done.returncode:
                fail(case, f"helm {command[0]}: {done.stdout[-2000:]}{done.stderr}")
                break
        else:
            documents = [d for d in yaml.safe_load_all(done.stdout) if d]
            judge(case, documents, schemas, known)
            print(f"{case}: {len(documents)} resources")
    rendered = 0
    for case, values in mixed(40):
        done = helm(values, "template", "bench", str(CHART), "--namespace", "perf")
        if done.returncode == 0:
            rendered += 1
            for d in [d for d in yaml.safe_load_all(done.stdout) if d]:
                if d["kind"] not in schemas:
                    try:
                        kubernetes_validate.validate(d, VERSIONS[-1], strict=True)
                    except kubernetes_validate.ValidationError as e:
                        fail(case, f"{d['kind']} {d['metadata']['name']}: {e.message}")
        elif not re.search(r"(server|results|tables|refreshers|autoscaling|database|metrics|out)\.?\w*", done.stderr):
            fail(case, f"refused without the name of a field: {done.stderr}")
    print(f"{rendered} of 40 mixtures of them rendered, the others refused by name")
    for field, values in REFUSED.items():
        done = helm(values, "template", "bench", str(CHART))
        if not done.returncode:
            fail(field, f"values that cannot work were rendered: {values}")
        elif field not in done.stderr:
            fail(field, f"the refusal does not name it: {done.stderr}")
    for f in failures:
        print("FAIL", f, file=sys.stderr)
    print(f"{len(ACCEPTED)} sets of values rendered and judged with Kubernetes {', '.join(VERSIONS)}, {len(REFUSED)} refused")
    sys.exit(bool(failures))


main()
