#!/usr/bin/env bash
# Builds the image from the Dockerfile as it is, and runs it as a platform would: a server and two
# workers under another user's id, without any capability, on a root that cannot be written to. The
# workers carry a first run, all end on SIGTERM, and go on in new containers with the same volumes.
# usage: deploy/image/test.sh
# It needs root, buildah, podman, runc and debootstrap (make installs them), and a network. The images
# stay in .cache/image, so that a second build is quick.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=$PWD/.cache/image
mkdir -p "$cache"
files=$(ulimit -Hn)
storage=(--root "$(realpath -m "$cache/storage")" --runroot /run/loadstone-image --storage-driver overlay)
buildah=(buildah "${storage[@]}")
podman=(podman "${storage[@]}" --runtime runc --cgroup-manager cgroupfs)
image=localhost/loadstone:test
work=$(mktemp -d)
names=(loadstone-server loadstone-worker-1 loadstone-worker-2 loadstone-target)
volumes=(loadstone-data loadstone-w1 loadstone-w2 loadstone-other)
passed=0

finish() {
	local status=$?
	if [ $status != 0 ]; then
		for name in "${names[@]}"; do
			echo "--- the end of what $name said"
			"${podman[@]}" logs --tail 30 "$name" 2>&1 || true
		done
	fi
	"${podman[@]}" rm --force --time 5 "${names[@]}" >/dev/null 2>&1 || true
	"${podman[@]}" volume rm --force "${volumes[@]}" >/dev/null 2>&1 || true
	rm -rf "$work"
	exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

passes() { passed=$((passed + 1)); printf 'PASS %s\n' "$*"; }
fails() { printf 'FAIL %s\n' "$*" >&2; exit 1; }

# until_true SECONDS COMMAND… waits for a command to succeed.
until_true() {
	local limit=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $limit ] || return 1
		sleep 0.5
	done
}

# contained NAME VOLUME ARGUMENTS… starts a container as a strict platform would.
contained() {
	local name=$1 volume=$2
	shift 2
	"${podman[@]}" run --detach --name "$name" --network host --user 12345:0 --read-only --tmpfs /tmp \
		--cap-drop ALL --security-opt no-new-privileges --ulimit "nofile=$files:$files" --ulimit nproc=8192:8192 \
		--volume "$volume:/data" "${options[@]}" "$image" "$@" >/dev/null
}

inside() { "${podman[@]}" exec "$@"; }

echo "Making the images that the Dockerfile begins with."
BUILDAH="${buildah[*]}" deploy/image/bases.sh "$cache/bases"
echo "Building the image; the first time this takes some minutes."
"${buildah[@]}" bud --isolation chroot --pull-never --layers --ulimit "nofile=$files:$files" \
	--build-arg VERSION="$(git describe --tags --always --dirty 2>/dev/null || echo image-test)" -t "$image" . >"$cache/build.log" 2>&1 ||
	{ tail -n 30 "$cache/build.log" >&2; fails "the image cannot be built"; }
passes "the Dockerfile builds as it is: $("${buildah[@]}" images --format '{{.Size}}' "$image")"

# The ports of this script lie below those that the kernel gives to connections by itself.

options=()
version=$("${podman[@]}" run --rm --network none --ulimit "nofile=$files:$files" --ulimit nproc=8192:8192 "$image" --version)
passes "the image says its version: $version"

# A database under load that the workers reach: Postgres of the same image, as another container.
options=(--entrypoint sh)
contained loadstone-target loadstone-other -c '
	set -e
	bin=$(echo /usr/lib/postgresql/*/bin)
	export LD_PRELOAD=$(ls /usr/lib/*/libnss_wrapper.so) NSS_WRAPPER_PASSWD=/tmp/passwd NSS_WRAPPER_GROUP=/etc/group
	echo "bench:x:12345:0::/tmp:/bin/sh" >/tmp/passwd
	[ -d /data/pg ] || "$bin/initdb" --pgdata /data/pg --username bench --auth trust >/dev/null
	exec "$bin/postgres" -D /data/pg -c listen_addresses=127.0.0.1 -c port=25432 -c unix_socket_directories=/tmp'
until_true 60 inside loadstone-target sh -c 'exec $(echo /usr/lib/postgresql/*/bin)/pg_isready -h 127.0.0.1 -p 25432' ||
	fails "the Postgres of the image does not start"
target=postgres://bench@127.0.0.1:25432/postgres

serve() {
	options=(--env LOADSTONE_LISTEN=127.0.0.1:28080 --env LOADSTONE_LOCAL_CAPACITY=0 --env LOADSTONE_CALIBRATE=off
		--env "LOADSTONE_NODES=127.0.0.1:29091,127.0.0.1:29092")
	contained loadstone-server loadstone-data serve
	until_true 90 inside loadstone-server loadstone health || fails "the server is not healthy after 90 s"
}
work() { # NUMBER [VARIABLE=VALUE]
	options=(--env "LOADSTONE_WORKER_LISTEN=127.0.0.1:2909$1" --env "LOADSTONE_LISTEN=127.0.0.1:2919$1"
		--env "LOADSTONE_WORKER_METRICS_LISTEN=127.0.0.1:2919$1" ${2:+--env "$2"})
	contained "loadstone-worker-$1" "loadstone-w$1" worker
}
# run carries a template's run over the server, and keeps its summary.
run() {
	"${podman[@]}" exec --interactive loadstone-server sh -c 'cat > /tmp/run.yaml && loadstone run /tmp/run.yaml --allow-writes --quiet --out /tmp/run.json \
		--server http://127.0.0.1:28080 --token-file /tmp/token >&2 && cat /tmp/run.json'
}

serve
passes "the server is healthy as user 12345:0, without capabilities, on a read-only root"
if inside loadstone-server sh -c 'echo x >/usr/local/bin/x' 2>/dev/null; then fails "the root can be written to"; fi
inside loadstone-server sh -c 'loadstone token image-test --scope admin >/tmp/token' || fails "no API token can be made in the container"
join=$(inside loadstone-server loadstone node token --uses 2 2>/dev/null) || fails "no node token can be made in the container"
work 1 "LOADSTONE_JOIN=$join"
work 2 "LOADSTONE_JOIN=$join"
for n in 1 2; do
	until_true 60 inside "loadstone-worker-$n" loadstone health || fails "worker $n is not healthy after 60 s"
done
passes "two workers have joined by a token"

template="name: image
target: {connection: {driver: postgres, dsn: \"$target\"}, table_name: orders, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, concurrent_connections: 4, warmup_seconds: 1, duration_seconds: 5}
scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}"
run <<<"$template" >"$work/first.json" || fails "the first run does not complete: $(tail -c 500 "$work/first.json")"
grep -q '"balanced": *true' "$work/first.json" || fails "the account of the first run is not balanced"
grep -q '"status": *"COMPLETED"' "$work/first.json" || fails "the first run did not complete"
passes "a run that both workers carry completes, and its account is balanced"

for name in loadstone-worker-1 loadstone-worker-2 loadstone-server; do
	began=$SECONDS
	"${podman[@]}" stop --time 60 "$name" >/dev/null
	code=$("${podman[@]}" inspect --format '{{.State.ExitCode}}' "$name")
	[ "$code" = 0 ] || fails "$name ends with $code on SIGTERM"
	[ $((SECONDS - began)) -lt 45 ] || fails "$name takes $((SECONDS - began)) s to end"
	"${podman[@]}" rm "$name" >/dev/null
done
passes "workers and server end with 0 on SIGTERM"

# An upgrade: another image, the same volumes. The workers need no token any more.
container=$("${buildah[@]}" from --pull-never "$image")
"${buildah[@]}" config --label upgraded=true "$container"
"${buildah[@]}" commit --quiet --rm "$container" localhost/loadstone:next >/dev/null
image=localhost/loadstone:next
serve
work 1
work 2
for n in 1 2; do
	until_true 60 inside "loadstone-worker-$n" loadstone health || fails "worker $n is not healthy after the upgrade"
done
kept=$(inside loadstone-server sh -c 'loadstone token image-test-2 --scope admin | tee /tmp/token' | tail -1)
curl --silent --fail --header "Authorization: Bearer $kept" http://127.0.0.1:28080/api/runs >"$work/runs.json" ||
	fails "the runs cannot be listed after the upgrade"
grep -q '"COMPLETED"' "$work/runs.json" || fails "the run is gone after the upgrade"
run <<<"$template" >"$work/second.json" || fails "no run completes after the upgrade"
passes "new containers go on with the same volumes: the run is there, and another completes on the workers that joined before"

# A volume that the user may not write to: a sentence, and no restart loop that says nothing.
options=(--env LOADSTONE_LISTEN=127.0.0.1:28081)
if "${podman[@]}" run --rm --network host --user 12345:12345 --read-only --tmpfs /tmp --cap-drop ALL \
	--ulimit "nofile=$files:$files" --ulimit nproc=8192:8192 --tmpfs /data:mode=0755 "${options[@]}" "$image" serve >"$work/refused" 2>&1; then
	fails "the server starts on a volume that it cannot write to"
fi
grep -q /data "$work/refused" || fails "the refusal does not name the folder: $(cat "$work/refused")"
passes "a volume that cannot be written to is refused by name"

# Everywhere without TLS: refused, with the cures.
options=()
if "${podman[@]}" run --rm --network host --user 12345:0 --read-only --tmpfs /tmp --tmpfs /data --cap-drop ALL \
	--ulimit "nofile=$files:$files" --ulimit nproc=8192:8192 "$image" serve >"$work/plain" 2>&1; then
	fails "the server speaks plain HTTP on all addresses without being told to"
fi
grep -q -- --insecure-http "$work/plain" || fails "the refusal does not name the cures: $(cat "$work/plain")"
passes "plain HTTP beyond loopback is refused unless it is asked for"

echo "$passed passed, 0 failed"
