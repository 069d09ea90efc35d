"""Holds the ECS task definition to the model of the API, the rules of Fargate, the image and the program.

usage: check.py BINARY

What must be refused stands in BROKEN: each is a change to the definition that has to be found.
"""

import copy
import json
import pathlib
import re
import subprocess
import sys

import botocore.loaders
import botocore.model
import botocore.validate

BINARY = sys.argv[1]
HERE = pathlib.Path(__file__).parent
# CPU units and the MiB of memory that go with them on Fargate: least, most, step.
FARGATE = {256: (512, 2048, 512), 512: (1024, 4096, 1024), 1024: (2048, 8192, 1024), 2048: (4096, 16384, 1024),
           4096: (8192, 30720, 1024), 8192: (16384, 61440, 4096), 16384: (32768, 122880, 8192)}
# What other programs read of a container's environment.
OTHERS = {"TMPDIR"}
# The seconds that a worker needs behind its drain, to end its run workers and hand over what they recorded.
HANDOVER = 45
# What nobody may read in the definition: it is shown to whoever may describe the task.
SECRET = {"LOADSTONE_JOIN", "LOADSTONE_NODE_TOKEN", "LOADSTONE_RESULTS_DATABASE_URL"}


def shape():
    model = botocore.loaders.Loader().load_service_model("ecs", "service-2")
    return botocore.model.ServiceModel(model, "ecs").operation_model("RegisterTaskDefinition").input_shape


def enums(value, of, path):
    """The values that are none of those that the API knows: botocore leaves them to the service."""
    if of.type_name == "structure":
        for name, member in value.items():
            if name in of.members:
                yield from enums(member, of.members[name], f"{path}.{name}")
    elif of.type_name == "list":
        for i, member in enumerate(value):
            yield from enums(member, of.member, f"{path}[{i}]")
    elif getattr(of, "enum", None) and value not in of.enum:
        yield f"{path} is {value}, and none of {of.enum}"


def image():
    """The user and the volumes of the Dockerfile's last stage."""
    last = (HERE.parent.parent / "Dockerfile").read_text().split("\nFROM ")[-1]
    return re.search(r"^USER (\S+)", last, re.M)[1], set(re.findall(r"^VOLUME (\S+)", last, re.M))


def judge(task, of, known, user, owned):
    """What is wrong with a definition."""
    report = botocore.validate.ParamValidator().validate(task, of)
    if report.has_errors():
        yield from report.generate_report().splitlines()
        return
    yield from enums(task, of, "task")
    least, most, step = FARGATE.get(int(task.get("cpu", 0)), (0, -1, 1))
    memory = int(task.get("memory", 0))
    if not least <= memory <= most or (memory - least) % step:
        yield f"Fargate has no {task.get('cpu')} CPU units with {memory} MiB"
    if task.get("networkMode") != "awsvpc":
        yield "a task on Fargate has a network interface of its own (awsvpc)"
    volumes = {v["name"] for v in task.get("volumes", [])}
    for c in task["containerDefinitions"]:
        environment = {e["name"]: e["value"] for e in c.get("environment", [])}
        secrets = {s["name"] for s in c.get("secrets", [])}
        if secrets and "executionRoleArn" not in task:
            yield "without an execution role nobody may read the secrets"
        for name in set(environment) | secrets:
            if name not in known | OTHERS:
                yield f"the program knows no {name}"
        if SECRET & set(environment):
            yield f"{SECRET & set(environment)} stands where everybody can read it"
        if "LOADSTONE_JOIN" not in secrets:
            yield "the worker has no token to join with"
        asked = c.get("command", [])
        drain = re.fullmatch(r"--drain=(\d+)s", asked[-1]) if len(asked) == 2 and asked[0] == "worker" else None
        if not drain:
            yield f"the program is asked for {asked}, and not for worker with --drain in seconds"
        elif int(drain[1]) + HANDOVER > c.get("stopTimeout", 30):
            yield f"it is killed {HANDOVER} s after its drain, or sooner, while it hands over"
        if c.get("user") != user:
            yield f"it runs as {c.get('user')}, and the image is made for {user}"
        if not c.get("readonlyRootFilesystem") or c.get("linuxParameters", {}).get("capabilities") != {"drop": ["ALL"]}:
            yield "it may do more than it needs"
        if not 30 <= c.get("stopTimeout", 30) <= 120:
            yield "Fargate waits 120 s at most for the end of a container"
        port = int(environment.get("LOADSTONE_WORKER_LISTEN", ":0").rpartition(":")[2])
        if [m["containerPort"] for m in c.get("portMappings", [])] != [port]:
            yield f"it listens on {port}, and the ports are {c.get('portMappings')}"
        mounted = {m["containerPath"]: m["sourceVolume"] for m in c.get("mountPoints", [])}
        for path, volume in mounted.items():
            if volume not in volumes:
                yield f"there is no volume {volume}"
            if path not in owned:
                yield f"{path} is no volume of the image: on Fargate it belongs to root, and the worker cannot write to it"
        for name in ["LOADSTONE_DATA_DIR", "TMPDIR"]:
            if not any(environment.get(name, "/tmp").startswith(path) for path in mounted):
                yield f"{name} is on the root, which is read-only"


def container(**changes):
    def change(task):
        for key, value in changes.items():
            task["containerDefinitions"][0][key] = value
    return change


def without(name):
    return lambda task: task.pop(name)


def environment(name, value):
    return lambda task: task["containerDefinitions"][0]["environment"].append({"name": name, "value": value})


# A change, and a word of what has to be said of it.
BROKEN = {
    "an unknown field": (lambda t: t.update(networkmode="awsvpc"), "networkmode"),
    "a wrong type": (container(essential="yes"), "essential"),
    "a field missing": (without("family"), "family"),
    "an unknown value": (lambda t: t.update(requiresCompatibilities=["FARGATES"]), "FARGATES"),
    "memory that does not go with the CPU": (lambda t: t.update(memory="4096"), "4096 MiB"),
    "no execution role": (without("executionRoleArn"), "execution role"),
    "an unknown variable": (environment("LOADSTONE_LISTENS", "x"), "LOADSTONE_LISTENS"),
    "the token where all can read it": (environment("LOADSTONE_JOIN", "x"), "everybody can read"),
    "no token": (container(secrets=[]), "token to join"),
    "another port": (container(portMappings=[{"containerPort": 9091}]), "9090"),
    "a volume that is not there": (container(mountPoints=[{"sourceVolume": "x", "containerPath": "/data"}]), "no volume x"),
    "a folder of root's": (container(mountPoints=[{"sourceVolume": "data", "containerPath": "/tmp"}]), "belongs to root"),
    "nothing to write to": (container(mountPoints=[]), "read-only"),
    "another user": (container(user="0:0"), "0:0"),
    "capabilities": (container(linuxParameters={}), "more than it needs"),
    "a long drain": (container(command=["worker", "--drain=100s"]), "while it hands over"),
    "a long stop": (container(stopTimeout=300), "120 s"),
    "another command": (container(command=["serve"]), "serve"),
}


def once(pairs):
    """An object of JSON, whose names have to differ: of two the later one counts, and nobody says so."""
    names = [name for name, _ in pairs]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        sys.exit(f"worker.json: {', '.join(twice)} is there twice")
    return dict(pairs)


def main():
    task = json.loads((HERE / "worker.json").read_text(), object_pairs_hook=once)
    text = subprocess.run([BINARY, "worker", "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"\$(LOADSTONE_\w+)", text))
    user, owned = image()
    of = shape()
    failed = [f"worker.json: {p}" for p in judge(task, of, known, user, owned)]
    for name, (change, word) in BROKEN.items():
        broken = copy.deepcopy(task)
        change(broken)
        said = list(judge(broken, of, known, user, owned))
        if not any(word in s for s in said):
            failed.append(f"{name} is not found: {said}")
    if failed:
        sys.exit("\n".join(failed))
    print(f"The ECS task definition is as the API, Fargate, the image and the program want it; {len(BROKEN)} wrong ones "
          "are refused.")


main()
