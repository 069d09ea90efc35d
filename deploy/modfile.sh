#!/usr/bin/env bash
# Prints the file for go build's -modfile with which the linker drops the methods that nothing calls
# (docs/decisions/0035-methods-that-nothing-calls.md). kong finds the methods Run, BeforeApply, … by a name that is a
# variable, and so the linker keeps every exported method of the program. The file replaces kong by a copy in which
# the names are constants. A version of kong that does not fit is refused here. grpcnotrace is a part of the same:
# golang.org/x/net/trace has a template, and templates find methods by name too.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=.cache/modfile-$(cat go.mod go.sum deploy/modfile.sh | sha256sum | cut -c1-16)
if [ -f "$dir/go.mod" ]; then
	echo "$PWD/$dir/go.mod"
	exit
fi
go mod download github.com/alecthomas/kong
kong=$(go list -m -f '{{.Dir}}' github.com/alecthomas/kong)
mkdir -p .cache
into=$(mktemp -d "$PWD/.cache/modfile.XXXXXX")
trap 'rm -rf "$into"' EXIT
mkdir "$into/kong"
cp "$kong"/*.go "$kong/go.mod" "$into/kong"
rm "$into"/kong/*_test.go
chmod -R u+w "$into"
# replaced FILE LINES EXPRESSION…
replaced() {
	local file=$1 lines=$2
	shift 2
	sed -i -E "$@" "$into/kong/$file"
	[ "$(diff "$kong/$file" "$into/kong/$file" | grep -c '^<')" = "$lines" ] ||
		{ echo "modfile.sh does not fit $kong/$file" >&2; exit 1; }
}
replaced callbacks.go 5 -e 's/\b(value|value\.Addr\(\))\.MethodByName\(name\)/namedMethod(\1, name)/' \
	-e 's/\bt\.MethodByName\(name\)/namedMethodOf(t, name)/'
cases=
for name in Run BeforeReset BeforeResolve BeforeApply AfterApply AfterRun; do
	cases+="case \"$name\": return x.MethodByName(\"$name\");"
done
cat >>"$into/kong/callbacks.go" <<GO

func namedMethod(x reflect.Value, name string) reflect.Value { switch name { $cases }; panic(name) }

func namedMethodOf(x reflect.Type, name string) (reflect.Method, bool) { switch name { $cases }; panic(name) }
GO
# Methods that begin with Provide are looked for among all; the commands have none.
replaced context.go 13 -e '/^\t\t\t\/\/ Try value and pointer to value\./,/^\t\t\t}$/d'
cp go.sum "$into/go.sum"
{ cat go.mod; echo "replace github.com/alecthomas/kong => ./$dir/kong"; } >"$into/go.mod"
# Another build may have been first; its directory is the same.
mv -T "$into" "$dir" 2>/dev/null || [ -f "$dir/go.mod" ]
echo "$PWD/$dir/go.mod"
