// This part explains the program: groups of commands and flags, the completion of shells, and the manual page.

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/loadstone-db/loadstone/cli/terminal"
)

// description leads the help of the program.
const description = `Loadstone finds out what a database table can take.

  loadstone serve                           the page, with a sample database
  loadstone run examples/first-run.yaml     one run in this terminal
  loadstone help COMMAND                    a command with its flags

Documents: docs/start/first-run.md; defaults of flags: docs/operate/configure.md`

// commandGroups are the groups of commands, and flagGroups those of flags, in their order.
var (
	commandGroups = []kong.Group{
		{Key: "run", Title: "Measure:"},
		{Key: "serve", Title: "Serve:"},
		{Key: "manage", Title: "Manage a server:"},
		{Key: "results", Title: "Query results:"},
		{Key: "operate", Title: "Keep an installation:"},
		{Key: "snowflake", Title: "Snowflake:"},
		{Key: "program", Title: "This program:"},
	}
	flagGroups = []struct {
		title string
		names string // of flags, and beginnings of names that end in *
	}{
		{"Server to ask", "server server-ca token token-file"},
		{"Data and results", "data-dir database-url* results* disk-reserve prices ingest query-*"},
		{"TLS and addresses", "tls-* http-listen insecure-http trusted-proxies allowed-hosts public-url security-contact " +
			"session-idle cert key client-ca insecure"},
		{"Single sign-on", "oidc-*"},
		{"Nodes", "nodes* local-capacity wait-for-nodes spool-budget refresh-workers"},
		{"Telemetry", "otlp-* remote-write* grafana-*"},
		{"Plugins and limits", "plugin plugin-memory plugins-memory streams-* calibrate allow-targets"},
		{"Every command", "help version config log-level log-format"},
	}
)

// flagGroup is the group of a flag; nil for those that a command is about, which come first.
func flagGroup(_ kong.Visitable, flag *kong.Flag) *kong.Group {
	for _, g := range flagGroups {
		if slices.ContainsFunc(strings.Fields(g.names), func(name string) bool {
			begin, open := strings.CutSuffix(name, "*")
			return flag.Name == name || open && strings.HasPrefix(flag.Name, begin)
		}) {
			return &kong.Group{Key: g.title, Title: g.title + ":"}
		}
	}
	return nil
}

// newProgram is the parser of the command line.
func newProgram(c *commands, more ...kong.Option) (*kong.Kong, error) {
	k, err := kong.New(c, append([]kong.Option{
		kong.Name("loadstone"),
		kong.Description(description),
		kong.Vars{"default_listen": defaultListen, "version": versionLine()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, NoAppDescFormat: true,
			FlagsLast: true}),
		kong.Help(printHelp),
		kong.ExplicitGroups(commandGroups),
		kong.AutoGroup(flagGroup),
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("building the command line: %w", err)
	}
	return k, nil
}

// printHelp has the flags of every command after those of the command. Nothing is parsed after help.
func printHelp(o kong.HelpOptions, k *kong.Context) error {
	if at := k.Selected(); at != nil {
		at.Flags, k.Model.Flags = append(at.Flags, k.Model.Flags...), nil
	}
	if err := kong.DefaultHelpPrinter(o, k); err != nil {
		return fmt.Errorf("printing help: %w", err)
	}
	return nil
}

// helpArguments turns "loadstone" and "loadstone help COMMAND" into requests for help.
func helpArguments(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// helpCommand stands in the list of commands; helpArguments takes its place.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// Run is never called.
func (helpCommand) Run() error { return nil }

// completeWord is the first argument by which completion scripts ask for candidates.
const completeWord = "__complete"

// CompletionCommand is loadstone completion.
type CompletionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by --help.
func (CompletionCommand) Help() string {
	return `Load it when a shell starts:

  bash:  source <(loadstone completion bash)                              in ~/.bashrc
  zsh:   source <(loadstone completion zsh)                               in ~/.zshrc, after compinit
  fish:  loadstone completion fish > ~/.config/fish/completions/loadstone.fish`
}

// completionScripts ask the program for candidates: each line of the answer is one, with a tab and its help.
var completionScripts = map[string]string{
	"bash": `_loadstone() {
  local line
  COMPREPLY=()
  while IFS=$'\t' read -r line _; do
    COMPREPLY+=("$line")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _loadstone loadstone
`,
	"zsh": `#compdef loadstone
_loadstone() {
  local -a candidates
  local word help
  while IFS=$'\t' read -r word help; do
    candidates+=("${word//:/\\:}:$help")
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#candidates} )); then _describe loadstone candidates; else _files; fi
}
compdef _loadstone loadstone
`,
	"fish": `function __loadstone_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c loadstone -a '(__loadstone_complete)'
`,
}

// Run prints the script.
func (c CompletionCommand) Run(e *terminal.Env) error {
	_, err := io.WriteString(e.Stdout, completionScripts[c.Shell])
	return err
}

// completeArguments prints what the last of the arguments can become. Without candidates, a shell completes files.
func completeArguments(w io.Writer, args []string) int {
	k, err := newProgram(new(commands))
	if err != nil {
		return terminal.ExitUsage
	}
	if len(args) == 0 {
		args = []string{""}
	}
	last := args[len(args)-1]
	node, flag, positionals := commandAt(k.Model.Node, args[:len(args)-1])
	for _, c := range candidates(node, flag, positionals, last) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", c[0], terminal.OneLine(c[1]))
	}
	return terminal.ExitPassed
}

// commandAt goes down the tree of commands along arguments: to the command, to the flag whose value comes next, and how
// many positional arguments the command has by then.
func commandAt(node *kong.Node, args []string) (at *kong.Node, awaited *kong.Flag, positionals int) {
	at = node
	for _, arg := range args {
		switch {
		case awaited != nil:
			awaited = nil
		case strings.HasPrefix(arg, "-"):
			if name, _, valued := strings.Cut(strings.TrimLeft(arg, "-"), "="); !valued {
				awaited = valueFlag(at, name)
			}
		default:
			i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == arg && !n.Hidden })
			if i >= 0 {
				at = at.Children[i]
			} else {
				positionals++
			}
		}
	}
	return at, awaited, positionals
}

// valueFlag is the flag of a name that takes a value; nil where there is none.
func valueFlag(at *kong.Node, name string) *kong.Flag {
	for _, level := range at.AllFlags(false) {
		for _, f := range level {
			if (f.Name == name || f.Short != 0 && string(f.Short) == name) && !f.IsBool() {
				return f
			}
		}
	}
	return nil
}

// candidates are words with their help that begin with a text.
func candidates(at *kong.Node, awaited *kong.Flag, positionals int, begin string) [][2]string {
	name, _, valued := strings.Cut(strings.TrimLeft(begin, "-"), "=")
	var all [][2]string
	switch {
	case awaited != nil:
		all = valuesOf(awaited.Value, "")
	case strings.HasPrefix(begin, "--") && valued:
		if f := valueFlag(at, name); f != nil {
			all = valuesOf(f.Value, "--"+name+"=")
		}
	case strings.HasPrefix(begin, "-"):
		all = flagWords(at)
	default:
		for _, n := range at.Children {
			if !n.Hidden {
				all = append(all, [2]string{n.Name, n.Help})
			}
		}
		if positionals < len(at.Positional) {
			all = append(all, valuesOf(at.Positional[positionals], "")...)
		}
	}
	return slices.DeleteFunc(all, func(c [2]string) bool { return !strings.HasPrefix(c[0], begin) })
}

// valuesOf are the values that a flag or an argument can have, where it has a few.
func valuesOf(v *kong.Value, prefix string) (all [][2]string) {
	for _, word := range v.EnumSlice() {
		if word != "" {
			all = append(all, [2]string{prefix + word, ""})
		}
	}
	return all
}

// flagWords are the flags of a command, as they are typed.
func flagWords(at *kong.Node) (all [][2]string) {
	for _, f := range slices.Concat(at.AllFlags(true)...) {
		word := "--" + f.Name
		if !f.IsBool() {
			word += "="
		}
		all = append(all, [2]string{word, f.Help})
	}
	return all
}

// manCommand is loadstone man.
type manCommand struct{}

// Help is shown by --help.
func (manCommand) Help() string {
	return `Read it, or install it:

  loadstone man | man -l -
  loadstone man > /usr/local/share/man/man1/loadstone.1`
}

// Run prints the manual page.
func (manCommand) Run(e *terminal.Env) error {
	k, err := newProgram(new(commands))
	if err != nil {
		return err
	}
	_, err = io.WriteString(e.Stdout, manualPage(k.Model))
	return err
}

// roff is a text as a manual page has it.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// manualPage is the program as a manual page.
func manualPage(app *kong.Application) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH LOADSTONE 1 "" "loadstone %s" "Loadstone"`, roff(version))
	line(".SH NAME\nloadstone \\- find out what a database table can take")
	line(".SH SYNOPSIS\n.B loadstone\n.I COMMAND\n[\\fIFLAGS\\fR]")
	line(".SH DESCRIPTION\n.nf\n%s\n.fi", roff(app.Help))
	for _, g := range commandGroups {
		line(".SH %s", roff(strings.ToUpper(strings.TrimSuffix(g.Title, ":"))))
		for _, top := range app.Children {
			if top.Hidden || top.Group == nil || top.Group.Key != g.Key {
				continue
			}
			for _, n := range leavesOf(top) {
				manualCommand(line, n)
			}
		}
	}
	line(".SH FLAGS OF EVERY COMMAND")
	manualFlags(line, app.Flags)
	line(".SH FILES\n.TP\n\\fI~/.config/loadstone/config.yaml\\fR\nDefaults of flags; see docs/operate/configure.md.")
	return b.String()
}

// manualCommand writes a command of the manual page.
func manualCommand(line func(format string, args ...any), n *kong.Node) {
	line(".SS %s", roff(n.FullPath()+argumentsOf(n)))
	line("%s", roff(n.Help))
	if n.Detail != "" {
		line(".PP\n.nf\n%s\n.fi", roff(n.Detail))
	}
	for _, p := range n.Positional {
		line(".TP\n\\fI%s\\fR\n%s", roff(p.Summary()), roff(p.Help))
	}
	manualFlags(line, slices.Concat(n.AllFlags(true)[1:]...))
}

// manualFlags writes flags of the manual page.
func manualFlags(line func(format string, args ...any), list []*kong.Flag) {
	for _, f := range list {
		if f.Hidden {
			continue
		}
		name := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Short != 0 {
			name = `\fB` + roff("-"+string(f.Short)) + `\fR, ` + name
		}
		if !f.IsBool() {
			name += `=\fI` + roff(cmp.Or(f.PlaceHolder, strings.ToUpper(f.Name))) + `\fR`
		}
		help := f.Help
		if len(f.Envs) > 0 {
			help += " (" + strings.Join(f.Envs, ", ") + ")"
		}
		line(".TP\n%s\n%s", name, roff(terminal.OneLine(help)))
	}
}

// argumentsOf are the positional arguments of a command, as its synopsis has them.
func argumentsOf(n *kong.Node) (text string) {
	for _, p := range n.Positional {
		text += " " + p.Summary()
	}
	return text
}

// leavesOf are the commands below a command, or itself.
func leavesOf(n *kong.Node) []*kong.Node {
	if len(n.Children) == 0 {
		return []*kong.Node{n}
	}
	var all []*kong.Node
	for _, c := range n.Children {
		if !c.Hidden {
			all = append(all, leavesOf(c)...)
		}
	}
	return all
}
