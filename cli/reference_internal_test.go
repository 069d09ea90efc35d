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
const shared = 2

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
	k, err := newProgram(new(commands))
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
			line := flagLine(f)
			if count[line]++; count[line] > count[described[f.Name]] {
				described[f.Name] = line // the most common description
			}
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

` + "`--server`, `--server-ca`, `--token` and `--data-dir`" + ` are flags of every command that asks a server. *The data flags* are ` + dataFlags + `.

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

// dataFlags are those of every command that works on a data directory.
const dataFlags = "`--database-url`, `--data-dir`, `--disk-reserve`, `--results`, `--prices`, `--plugin`, " +
	"`--results-cache`, `--plugin-memory`, `--plugins-memory`"

func writeCommand(b *strings.Builder, n *kong.Node, common func(*kong.Flag) bool) {
	name := strings.TrimPrefix(n.FullPath(), "loadstone ")
	fmt.Fprintf(b, "\n## %s\n\n", name)
	b.WriteString(n.Help + "\n\n")
	for _, p := range n.Positional {
		switch line := fmt.Sprintf("- `%s`: %s\n", p.Summary(), p.Help); line {
		case "- `<name>`: The user's name.\n", "- `<name>`: Its name, or its id.\n", "- `<run>`: The run's id.\n":
		default:
			b.WriteString(line)
		}
	}
	own, also := "", ""
	listed := []string{"server", "server-ca", "token"} // once for all commands
	for _, f := range n.Flags {
		switch {
		case f.Hidden || f.Name == "help" || isFileOf(n, f):
		case common(f) && slices.Contains(listed, f.Name), f.Name == "data-dir" && asksServer(n):
		case common(f):
			also += ", `--" + f.Name + "`"
		default:
			own += flagLine(f)
		}
	}
	b.WriteString(own)
	if also != "" {
		fmt.Fprintf(b, "- also %s\n", strings.Replace(strings.TrimPrefix(also, ", "), dataFlags, "the data flags", 1))
	}
}

// asksServer reports whether a command has the flags that name a server, or the data directory of one.
func asksServer(n *kong.Node) bool {
	return slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == "server-ca" }) &&
		!slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == "plugin-memory" })
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
