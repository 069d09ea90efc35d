package cli

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md")

// shared is the number of commands from which on a flag is described once, at the top of the page.
const shared = 4

// TestReference keeps the page of all commands and flags true to the program.
// After a change of flags: go test ./cli -run '^TestReference$' -update
func TestReference(t *testing.T) {
	t.Parallel()
	const path = "../docs/reference/cli.md"
	want := commandLinePage(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Error("docs/reference/cli.md is stale: go test ./cli -run '^TestReference$' -update")
	}
}

// commandTree is the program as its parser knows it.
func commandTree(t *testing.T) *kong.Kong {
	t.Helper()
	var c commands
	k, err := kong.New(&c, kong.Name("loadstone"), kong.Vars{"default_listen": defaultListen, "version": version})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func commandLinePage(t *testing.T) string {
	t.Helper()
	root := commandTree(t).Model.Node
	leaves := slices.DeleteFunc(root.Leaves(true), func(n *kong.Node) bool { return n.Hidden })
	count, described := map[string]int{}, map[string]string{}
	for _, n := range leaves {
		for _, f := range n.Flags {
			count[flagLine(f)]++
			described[f.Name] = flagLine(f)
		}
	}
	var b strings.Builder
	b.WriteString(`# Command line

Made from the program (` + "`go test ./cli -run '^TestReference$' -update`" + `). ` + "`loadstone COMMAND --help`" +
		` prints the same. Flags of an installation can also be set by a variable, as ` + "`--disk-reserve` by `LOADSTONE_DISK_RESERVE`" + `; variables with
other names are given here. The value of a secret or an address ` + "`--NAME`" + ` can be in a file, ` + "`--NAME-file`" + `, where
` + "`--help`" + ` lists it. [Exit codes](exit-codes.md).

` + "```sh\nloadstone run examples/first-run.yaml --out summary.json\n```" + `

## Common flags

` + "`--server`, `--server-ca` and `--token`" + ` are flags of: ` + withServer(leaves) + `.

`)
	for _, f := range root.Flags {
		if f.Name != "help" && f.Name != "version" {
			b.WriteString(flagLine(f))
		}
	}
	for _, name := range sortedKeys(described) {
		if count[described[name]] >= shared && name != "help" &&
			described[strings.TrimSuffix(name, "-file")] == described[name] {
			b.WriteString(described[name])
		}
	}
	for _, n := range leaves {
		writeCommand(&b, n, func(f *kong.Flag) bool { return count[flagLine(f)] >= shared })
	}
	return b.String()
}

func writeCommand(b *strings.Builder, n *kong.Node, common func(*kong.Flag) bool) {
	name := strings.TrimPrefix(n.FullPath(), "loadstone ")
	fmt.Fprintf(b, "\n## %s\n\n", name)
	b.WriteString(n.Help + "\n\n")
	for _, p := range n.Positional {
		fmt.Fprintf(b, "- `%s`: %s\n", p.Summary(), p.Help)
	}
	own, also := "", ""
	listed := []string{"server", "server-ca", "token"} // once for all commands
	for _, f := range n.Flags {
		switch {
		case f.Hidden || f.Name == "help" || isFileOf(n, f):
		case common(f) && slices.Contains(listed, f.Name):
		case common(f):
			also += ", `--" + f.Name + "`"
		default:
			own += flagLine(f)
		}
	}
	b.WriteString(own)
	if also != "" {
		fmt.Fprintf(b, "- also %s\n", strings.TrimPrefix(also, ", "))
	}
}

// withServer are the commands that ask a server.
func withServer(leaves []*kong.Node) string {
	var names []string
	for _, n := range leaves {
		if slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == "server-ca" }) {
			names = append(names, "`"+strings.TrimPrefix(n.FullPath(), "loadstone ")+"`")
		}
	}
	return strings.Join(names, ", ")
}

// isFileOf reports whether a flag names the file of another flag's value, as --token-file that of --token.
func isFileOf(n *kong.Node, f *kong.Flag) bool {
	base, is := strings.CutSuffix(f.Name, "-file")
	return is && slices.ContainsFunc(n.Flags, func(o *kong.Flag) bool { return o.Name == base })
}

// flagLine is one flag as an item of a list.
func flagLine(f *kong.Flag) string {
	line := "- `--" + f.Name
	if !f.IsBool() {
		line += "=" + cmp.Or(f.PlaceHolder, strings.ToUpper(f.Name[strings.LastIndex(f.Name, "-")+1:]))
	}
	line += "`"
	switch usual := "LOADSTONE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); {
	case len(f.Envs) == 1 && f.Envs[0] == usual:
	case len(f.Envs) > 0:
		line += " (`" + strings.Join(f.Envs, "`, `") + "`)"
	}
	if f.Help != "" {
		line += ": " + strings.NewReplacer(" (default: none)", "", " (default: the system's)", "").Replace(f.Help)
	}
	if f.HasDefault && f.Default != "" && !f.IsBool() && !strings.Contains(f.Help, f.Default) {
		line += " Default `" + f.Default + "`."
	}
	return line + "\n"
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
