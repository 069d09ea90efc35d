#!/usr/bin/env bash
# Runs the commands of the pages: every block of sh of docs/start, docs/guides and docs/reference, beside the examples; and
# the tutorial of docs/extend/write-a-workload.md in an empty folder, with a server of its own. usage: deploy/tutorial.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
page=$PWD/docs/extend/write-a-workload.md
work=$(mktemp -d)
chmod 755 "$work"
server=
stop() {
	if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
		kill -TERM "$server"
		wait "$server" || true
	fi
	rm -rf "$work"
}
trap stop EXIT

mkdir "$work/bin" "$work/empty" "$work/blocks" "$work/pages"
ln -s "$PWD/examples" "$work/pages/examples"
ln -s "$binary" "$work/bin/loadstone"
export PATH="$work/bin:$PATH" XDG_DATA_HOME="$work/data"
awk -v to="$work/blocks/" '
	/^## / { inside = /^## From nothing to an uploaded workload/ }
	!inside { next }
	/^```sh$/ { file = sprintf("%s%02d", to, ++n); next }
	/^```$/ { file = "" }
	file { print > file }
' "$page"
[ "$(cat "$work"/blocks/* | wc -l)" -ge 10 ] || { echo "docs/extend/write-a-workload.md has no tutorial" >&2; exit 1; }

# serve starts the server as the tutorial does, and signs in as the page does.
serve() {
	loadstone serve >"$work/out" 2>"$work/log" &
	server=$!
	local link=
	for _ in $(seq 600); do
		link=$(sed -n 's/^ *Open: *//p' "$work/out")
		[ -n "$link" ] && break
		kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; echo "the server ended before it was ready" >&2; exit 1; }
		sleep 0.1
	done
	[ -n "$link" ] || { cat "$work/log" >&2; echo "the server was not ready within 60 s" >&2; exit 1; }
	export LOADSTONE_SERVER=${link%/signin*}
	LOADSTONE_TOKEN=$(node --input-type=module - "$LOADSTONE_SERVER" "${link##*token=}" <<-'JS'
		const [base, token] = process.argv.slice(2);
		const post = async (path, body, headers) => {
		  const r = await fetch(base + path, { method: 'POST', headers: { 'Content-Type': 'application/json', Origin: base, ...headers }, body: JSON.stringify(body) });
		  if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
		  return r;
		};
		const cookie = (await post('/api/auth/signin', { token })).headers.get('set-cookie').split(';')[0];
		console.log((await (await post('/api/auth/tokens', { name: 'tutorial', scope: 'admin' }, { Cookie: cookie })).json()).secret);
	JS
	)
	export LOADSTONE_TOKEN
}

ran=0
for page in docs/start/*.md docs/guides/*.md docs/reference/*.md; do
	awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$page" >"$work/commands"
	[ -s "$work/commands" ] || continue
	ran=$((ran + 1))
	sed "s|^|$page \$ |" "$work/commands"
	# Exit codes 3 and 4 are verdicts of figures, which are the machine's; the commands have worked.
	sed -i '1i loadstone() { command loadstone "$@" || { local code=$?; [ "$code" -eq 3 ] || [ "$code" -eq 4 ] || return "$code"; }; }' "$work/commands"
	(cd "$work/pages" && bash -euo pipefail "$work/commands") >"$work/out" 2>&1 ||
		{ tail -30 "$work/out" >&2; echo "the commands of $page do not work" >&2; exit 1; }
done
[ "$ran" -ge 5 ] || { echo "$ran pages have commands" >&2; exit 1; }

cd "$work/empty"
for block in "$work"/blocks/*; do
	sed 's/^/$ /' "$block"
	if [ "$(cat "$block")" = "loadstone serve" ]; then
		serve
	else
		# The blocks share one shell, as a reader's do.
		. "$block"
	fi
done

# What the tutorial promises is there.
loadstone plugin list --json | node -e '
	const list = JSON.parse(require("fs").readFileSync(0, "utf8")).filter((p) => p.name === "shelf").map((p) => `${p.version} ${p.state}`).sort();
	require("assert").deepStrictEqual(list, ["1.0.0 disabled", "1.1.0 enabled"]);'
echo "The tutorial does what it says."
