package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/loadstone-db/loadstone/cli"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// server is the API as far as the commands ask it, with one table of each name that was made.
type server struct {
	tables map[string]refresh.Table
	asked  []string
	// fails has refreshes fail, and stands leaves them undone.
	fails, stands bool
	nobody        string
	// unmade is how often a table is refused because one that it reads was not refreshed yet.
	unmade int
}

func (s *server) do(_ context.Context, method, path string, in, out any) error {
	s.asked = append(s.asked, method+" "+path)
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	rest := strings.TrimPrefix(path, "/api/v1/tables")
	switch {
	case method == "GET" && rest == "":
		var list []refresh.Table
		for _, t := range s.tables {
			list = append(list, t)
		}
		return tableAnswer(out, map[string]any{"tables": list, "nobody": s.nobody, "claims": []refresh.Claim{}})
	case method == "POST" && rest == "" && s.unmade > 0:
		s.unmade--
		return &engine.Error{Code: engine.CodeUnavailable, Message: "The table has not been refreshed yet."}
	case method == "POST" && rest == "":
		var t refresh.Table
		if err := json.Unmarshal(body, &t); err != nil {
			return err
		}
		t.Version, t.CreatedBy, t.Status, t.Kind = 1, "ada", refresh.Active, refresh.SQL
		s.tables[t.Name] = t
		return nil
	}
	name, verb, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	t, there := s.tables[strings.ReplaceAll(name, "%20", " ")]
	if !there {
		return &engine.Error{Code: engine.CodeNotFound, Message: "There is no such table."}
	}
	switch {
	case method == "GET" && verb == "":
		return tableAnswer(out, map[string]any{"table": t, "read_by": []string{"top"}})
	case method == "GET":
		lag := 1.5
		return tableAnswer(out, map[string]any{"refreshes": []refresh.Record{{Worker: verb, Rows: 9007199254740993,
			LagSeconds: &lag, Error: "no\x1b[31m"}, {Task: refresh.Task{Subtask: "part 01 of 02"}}}})
	case method == "PUT":
		version := t.Version
		if err := json.Unmarshal(body, &t); err != nil || t.Version != version || bytes.Contains(body, []byte(`"name"`)) {
			return &engine.Error{Code: engine.CodeConflict, Message: "not what was edited: " + string(body)}
		}
		t.Version++
	case verb == "refresh" && s.fails:
		t.Failures, t.Error = t.Failures+1, "no such column"
	case verb == "refresh" && !s.stands:
		t.AsOf = engine.At(time.Now())
	case method == "DELETE":
		delete(s.tables, t.Name)
		return nil
	}
	s.tables[t.Name] = t
	return nil
}

func tableAnswer(out any, v any) error {
	text, err := json.Marshal(v)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// run runs a command line, and returns what it has written and its exit code.
func (s *server) run(t *testing.T, args ...string) (message string, code int) {
	t.Helper()
	var commands cli.TableCommands
	parser, err := kong.New(&commands, kong.Exit(func(int) { t.Fatal("it wants to exit") }))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return err.Error(), terminal.ExitUsage
	}
	var out bytes.Buffer
	err = parsed.Run(&terminal.Env{Ctx: t.Context(), Stdout: &out, Stderr: &out}, cli.APICall(s.do))
	var failed *terminal.ExitError
	switch {
	case errors.As(err, &failed):
		return out.String() + failed.Error(), failed.Code
	case err != nil:
		return out.String() + err.Error(), terminal.ExitUsage
	}
	return out.String(), terminal.ExitPassed
}

func TestCommandsAboutTables(t *testing.T) {
	s := &server{tables: map[string]refresh.Table{}, nobody: "Nobody refreshes tables."}
	file := filepath.Join(t.TempDir(), "definition.sql")
	if err := os.WriteFile(file, []byte("SELECT 1 AS one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
		asks string
	}{
		{"list", 0, "Nobody refreshes tables.", "GET /api/v1/tables"},
		{"create a --definition SELECT", 0, "a was made", "POST /api/v1/tables"},
		{"create b --file " + file + " --target-lag 5 --mode FULL --partition-by RUN --partitions 4", 0, "b was made", ""},
		{"create c", 1, "--definition", ""},
		{"create c --definition SELECT --file " + file, 1, "can't be used together", ""},
		{"show b", 0, "target_lag_seconds: 5\nrefresh_mode: FULL\npartition_by: RUN\npartitions: 4\ndefinition: |",
			"GET /api/v1/tables/b"},
		{"show b", 0, "# read by        top\n", ""},
		{"show b --format json", 0, `"target_lag_seconds": 5`, ""},
		{"show nowhere", 1, "no such table", ""},
		{"refresh a", 0, "as soon as a worker takes it", "POST /api/v1/tables/a/refresh"},
		{"refresh a --wait 1m", 0, "a was refreshed", ""},
		{"refresh a --wait -1s", 1, "--wait", ""},
		{"suspend a", 0, "not refreshed any more", "POST /api/v1/tables/a/suspend"},
		{"resume a", 0, "refreshed again", "POST /api/v1/tables/a/resume"},
		{"history a --limit 7 --format csv", 0, ",9007199254740993,", "GET /api/v1/tables/a/history?limit=7"},
		{"history a --format json", 0, `"subtask":"part 01 of 02"`, ""},
		{"history a --limit 0", 1, "--limit", ""},
		{"drop a", 0, "a was dropped", "DELETE /api/v1/tables/a"},
		{"show b", 0, "# lag            none of 5 s: it has not been made yet\n", ""},
		{"list --format csv", 0, "\nb,SQL,ACTIVE,,5,,", ""},
		{"create d --definition SELECT --target-lag 7", 0, "d was made", ""},
		{"refresh d --wait 1m", 0, "d was refreshed", ""},
		{"list --format csv", 0, "\nd,SQL,ACTIVE,0,7,2", ""},
		{"show d", 0, "# lag            0 s of 7 s\n", ""},
	} {
		before := len(s.asked)
		message, code := s.run(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(message, c.says) ||
			c.asks != "" && !strings.Contains(strings.Join(s.asked[before:], "\n"), c.asks) {
			t.Errorf("%s: exit %d, %q, asked %q", c.args, code, message, s.asked[before:])
		}
		if strings.Contains(message, "\x1b") && !strings.Contains(c.args, "csv") && !strings.Contains(c.args, "json") {
			t.Errorf("%s lets control characters through", c.args)
		}
	}
	s.fails = true
	if output, code := s.run(t, "refresh", "b", "--wait", "1m"); code != terminal.ExitFailed ||
		!strings.Contains(output, "no such column") {
		t.Errorf("a refresh that fails: exit %d, %q", code, output)
	}
	s.fails, s.stands = false, true
	if reported, code := s.run(t, "refresh", "b", "--wait", "1ms"); code != terminal.ExitFailed ||
		!strings.Contains(reported, "is not refreshed after 1ms") {
		t.Errorf("a refresh that nobody makes: exit %d, %q", code, reported)
	}
}

// TestTablesAreAsAFileSays: what show prints is applied as it is; a second time nothing is changed; files that cannot
// be meant change nothing.
func TestTablesAreAsAFileSays(t *testing.T) {
	s := &server{tables: map[string]refresh.Table{}}
	apply := func(text string) (string, int) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "tables.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.run(t, "apply", "-f", file)
	}
	const two = "name: a b\ndefinition: |\n  SELECT 1 AS one,\n    2 AS two;\n---\nname: c\ndefinition: SELECT 3\n" +
		"target_lag_seconds: 5\n"
	for _, want := range []string{"a b was made.\nc was made.\n", "a b is as it should be.\nc is as it should be.\n"} {
		if message, code := apply(two); code != 0 || message != want {
			t.Errorf("exit %d, %q, want %q", code, message, want)
		}
	}
	shown, _ := s.run(t, "show", "a b")
	if output, code := apply(shown); code != 0 || output != "a b is as it should be.\n" {
		t.Errorf("what was shown: exit %d, %q\n%s", code, output, shown)
	}
	if reported, code := apply(
		strings.Replace(shown, "2 AS two", "3 AS two", 1),
	); code != 0 || reported != "a b was changed.\n" ||
		s.tables["a b"].Version != 2 ||
		!strings.Contains(s.tables["a b"].Definition, "3 AS two") {
		t.Errorf("exit %d, %q, %+v", code, reported, s.tables["a b"])
	}
	s.unmade = 2
	if said, code := apply("name: above\ndefinition: SELECT 5\n"); code != 0 || said != "above was made.\n" ||
		s.unmade != 0 {
		t.Errorf("over a table that is not refreshed yet: exit %d, %q", code, said)
	}
	if said, code := apply(`{"name": "j", "definition": "SELECT 4", "priority": 3}`); code != 0 ||
		s.tables["j"].Priority != 3 {
		t.Errorf("JSON: exit %d, %q", code, said)
	}
	for _, bad := range []string{"", "definition: SELECT 1", "name: x\ndefinition: SELECT 1\nfoo: 2", two + "---\nname: c",
		"name: [", "- 1", "name: x\ntarget_lag_seconds: soon"} {
		before := len(s.tables)
		if said, code := apply(bad); code != terminal.ExitUsage || len(s.tables) != before {
			t.Errorf("%q: exit %d, %q, %d tables", bad, code, said, len(s.tables))
		}
	}
}
