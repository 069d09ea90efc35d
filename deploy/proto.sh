#!/bin/bash
# The messages between servers and nodes: lint, what would break those that are
# released, and whether the Go that is committed is what buf makes of them. With
# "generate" it makes that Go. buf is fetched with npm, once, and so outside make lint test.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.75.0
go=${GO:-go}
made=engine/cluster/rpc/pb

buf=.cache/buf-$version/node_modules/.bin/buf
if [ ! -x "$buf" ]; then
	npm install --prefix ".cache/buf-$version" --no-fund --no-audit --loglevel=error --no-update-notifier "@bufbuild/buf@$version"
fi
mkdir -p .cache/bin
GOFLAGS= "$go" build -o .cache/bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc

if [ "${1:-}" = generate ]; then
	"$buf" generate
	exit
fi
"$buf" lint
"$buf" format --diff --exit-code
"$buf" generate --output .cache/proto
for file in "$made"/*.pb.go; do
	if ! cmp -s "$file" ".cache/proto/$file"; then
		echo "$file is not what buf makes of control.proto: deploy/proto.sh generate" >&2
		exit 1
	fi
done
# Against the last release that has it, or else what is committed.
against=HEAD
for tag in $(git tag --list 'v*' --sort=-v:refname); do
	if git cat-file -e "$tag:$made/control.proto" 2>/dev/null; then
		against=$tag
		break
	fi
done
if git cat-file -e "$against:$made/control.proto" 2>/dev/null; then
	"$buf" breaking --against ".git#ref=$against"
fi
