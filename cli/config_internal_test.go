package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/loadstone-db/loadstone/cli/terminal"
)

// parseWith parses arguments with a configuration file.
func parseWith(t *testing.T, file string, args ...string) (*commands, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--config", path)
	defaults, err := readConfig(args)
	if err != nil {
		return nil, err
	}
	c := new(commands)
	parser, err := newProgram(c, append(defaults, kong.Exit(func(int) { t.Error("it exits") }))...)
	if err == nil {
		_, err = parser.Parse(args)
	}
	return c, err
}

// TestConfigurationFile: a flag comes before a variable, a variable before the file, and the file before the default;
// what stands below a command comes before what stands above.
func TestConfigurationFile(t *testing.T) {
	const file = `
server: https://bench.example
token-file: /run/token
log-level: warn
json: true
runs:
  list: {limit: 7, tag: ["a:1", "b:2"]}
`
	for _, name := range []string{"LOADSTONE_SERVER", "LOADSTONE_TOKEN", "LOADSTONE_TOKEN_FILE"} {
		t.Setenv(name, "")
		_ = os.Unsetenv(name)
	}
	c, err := parseWith(t, file, "runs", "list")
	if err != nil {
		t.Fatal(err)
	}
	l := c.Runs.List
	if c.Runs.Server != "https://bench.example" || c.Runs.TokenFile != "/run/token" || c.LogLevel != "warn" ||
		l.Limit != 7 || len(l.Tag) != 2 || !l.JSON {
		t.Errorf("%+v, %+v", c.Runs, c.LogLevel)
	}
	if c, err = parseWith(t, file, "runs", "list", "--limit=3", "--server", "http://other", "--token", "t"); err != nil ||
		c.Runs.List.Limit != 3 || c.Runs.Server != "http://other" || c.Runs.TokenFile != "" {
		t.Errorf("%+v, %v", c.Runs, err)
	}
	t.Setenv("LOADSTONE_SERVER", "http://variable")
	t.Setenv("LOADSTONE_TOKEN", "t")
	if c, err = parseWith(t, file, "runs", "list"); err != nil || c.Runs.Server != "http://variable" ||
		c.Runs.TokenFile != "" || c.Runs.Token != "t" {
		t.Errorf("%+v, %v", c.Runs, err)
	}
	if c, err = parseWith(t, "", "templates", "list"); err != nil || c.LogLevel != "info" {
		t.Errorf("an empty file: %v", err)
	}
}

// TestConfigurationFilesThatAreRefused say the file and what is wrong with it.
func TestConfigurationFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{
		"sever: x":             "sever is no flag",
		"run: {srver: x}":      "run.srver is no flag",
		"nothing: {server: x}": "nothing is no command",
		"config: x":            "config is no flag",
		"- a":                  "cannot be used",
		"server: [":            "line 1",
		"run: {list: {a: 1}}":  "run.list is no command",
	} {
		_, err := parseWith(t, file, "version")
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "config.yaml") {
			t.Errorf("%q: %v, want %q", file, err, says)
		}
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if _, err := readConfig([]string{"--config=" + path}); err == nil {
		t.Error("a file that is not there is taken")
	}
	for file, secret := range map[string]bool{
		"runs: {token: lst_x}": true,
		"run: {set: ['target.connection.dsn=postgres://u:pw@h/db']}":            true,
		"gate: {base: ['target.connection.dsn=host=h password=pw']}":            true,
		"gate: {candidate: 'target.connection.dsn=user:p%40w@account/db'}":      true,
		"serve: {database-url-file: /run/url, results-database-url: postgres:}": true,
		"token-file: /run/token\nserver: https://bench.example:8443":            false,
		"run: {set: ['target.connection.dsn=postgres://u@h:5432/db']}":          false,
		"serve: {tls-key: /etc/key.pem, listen: ':8443'}":                       false,
		"runs: {list: {tag: ['team:db', 'owner:ada']}}":                         false,
	} {
		if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := readConfig([]string{"--config", path})
		if refused := err != nil && strings.Contains(err.Error(), "chmod 600"); refused != secret {
			t.Errorf("%q that others read: %v", file, err)
		}
	}
}

// program runs the command line in this process.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = start(context.Background(), func() {}, func() {}, terminal.Settings{}, args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestTheProgramExplainsItself: alone, by help, and by help of a command; commands and flags are in groups, the common
// flags first.
func TestTheProgramExplainsItself(t *testing.T) {
	t.Parallel()
	_, alone, _ := program(t)
	code, help, _ := program(t, "help")
	if code != 0 || alone != help || !strings.Contains(alone, "loadstone serve") || strings.Contains(alone, "\x1b") {
		t.Errorf("%d %s", code, alone)
	}
	at := -1
	for _, g := range commandGroups {
		i := strings.Index(alone, g.Title)
		if i <= at {
			t.Errorf("%s is not in its place", g.Title)
		}
		at = i
	}
	if strings.Contains(alone, "Commands:") || strings.Contains(alone, "null-target") {
		t.Errorf("a command has no group, or is hidden:\n%s", alone)
	}
	for line := range strings.Lines(alone) {
		if len([]rune(line)) > 81 {
			t.Errorf("a line is wider than a terminal: %q", line)
		}
	}
	_, of, _ := program(t, "help", "serve")
	_, same, _ := program(t, "serve", "--help")
	if of != same {
		t.Error("help of a command is not its --help")
	}
	common, tls := strings.Index(of, "--listen"), strings.Index(of, "TLS and addresses:")
	if common < 0 || tls < common || strings.Index(of, "--tls-cert") < tls ||
		strings.Index(of, "Every command:") < strings.Index(of, "Telemetry:") {
		t.Errorf("the flags of serve:\n%s", of)
	}
	if code, _, errs := program(t, "help", "nothing"); code != terminal.ExitUsage || !strings.Contains(errs, "nothing") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestCompletion: commands, flags, values, and files where there is nothing else.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		has  string // first words of lines
		not  string
	}{
		{[]string{"ser"}, "serve", "run"},
		{[]string{""}, "schedules", "null-target"},
		{[]string{"schedules", "p"}, "pause", "delete"},
		{[]string{"runs", "list", "--li"}, "--limit=", "--json"},
		{[]string{"run", "--qui"}, "--quiet", "--quiet="},
		{[]string{"--log-level", "w"}, "warn", "error"},
		{[]string{"serve", "--log-format=t"}, "--log-format=text", "json"},
		{[]string{"completion", "f"}, "fish", "zsh"},
		{[]string{"user", "invite", "ada", "--role="}, "--role=viewer", "viewer"},
	} {
		_, out, _ := program(t, append([]string{completeWord}, c.args...)...)
		words := map[string]bool{}
		for line := range strings.Lines(out) {
			word, _, ok := strings.Cut(line, "\t")
			words[word] = ok
		}
		if !words[c.has] || words[c.not] {
			t.Errorf("%q: %q", c.args, out)
		}
	}
	if _, out, _ := program(t, completeWord, "apply", "-f", ""); out != "" {
		t.Errorf("a file: %q", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, _ := program(t, "completion", shell); code != 0 || !strings.Contains(out, completeWord) {
			t.Errorf("%s: %d %s", shell, code, out)
		}
	}
}

// TestTheManualPage has every command and flag that help shows.
func TestTheManualPage(t *testing.T) {
	t.Parallel()
	code, page, _ := program(t, "man")
	if code != 0 || !strings.HasPrefix(page, ".TH LOADSTONE 1 ") {
		t.Fatalf("%d %.200s", code, page)
	}
	for _, n := range commandTree(t).Model.Leaves(true) {
		if n.Hidden {
			continue
		}
		if !strings.Contains(page, ".SS "+roff(n.FullPath())) {
			t.Errorf("%s is missing", n.FullPath())
		}
		for _, f := range n.Flags {
			if !f.Hidden && !strings.Contains(page, roff("--"+f.Name)) {
				t.Errorf("%s --%s is missing", n.FullPath(), f.Name)
			}
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "'") ||
			strings.HasPrefix(line, ".") && !strings.Contains(".TH .SH .SS .TP .PP .nf .fi .B .I", strings.Fields(line)[0]) {
			t.Errorf("a line is taken for a request: %q", line)
		}
	}
}
