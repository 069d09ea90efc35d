package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// TestAnErrorOfSeveralFilesNamesItsOwn: who applies a group of files is told which of them is wrong, and the line as an
// editor counts it there.
func TestAnErrorOfSeveralFilesNamesItsOwn(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := file("first.sql", "CREATE SINK a TYPE PRINT;\nCREATE SINK b TYPE PRINT;\n")
	second := file("second.sql", "\nCREATE SINKK c TYPE PRINT;\n")
	list := file("list.yaml", "statements:\n  - CREATE SINK d TYPE PRINT\n  - CREATE SINK e TYPE NOSUCH\n")
	empty := file("empty.sql", "")
	// at is a server that refuses what begins with a text, at its place in the whole.
	at := func(what string) APICall {
		return func(_ context.Context, _, _ string, in, _ any) error {
			sql := in.(map[string]any)["sql"].(string)
			before, _, found := strings.Cut(sql, what)
			if !found {
				t.Fatalf("%q is not in %q", what, sql)
			}
			line := before[strings.LastIndexByte(before, '\n')+1:]
			whole, _, _ := strings.Cut(sql[len(before)-len(line):], "\n")
			return &engine.Error{Code: engine.CodeInvalid, Message: "ParserError: it is wrong", Fields: []engine.FieldError{
				{Field: "sql", Message: "it is wrong", Line: strings.Count(before, "\n") + 1, Column: len(line) + 1,
					Excerpt: whole + "\n" + strings.Repeat(" ", len(line)) + "^"}}}
		}
	}
	for name, c := range map[string]struct {
		files []string
		at    APICall
		want  string
	}{
		"the only file": {[]string{second}, at("SINKK"),
			second + ": ParserError: line 2, column 8: it is wrong\n  CREATE SINKK c TYPE PRINT;\n         ^"},
		"the second of two": {[]string{first, second}, at("SINKK"), second + ": ParserError: line 2, column 8: "},
		"the first of two":  {[]string{first, second}, at("SINK b"), first + ": ParserError: line 2, column 8: "},
		"a statement of a list": {[]string{first, list, second}, at("NOSUCH"),
			list + ", statement 2: ParserError: line 1, column 20: "},
		"no statement": {[]string{empty}, at("\x00"), empty + ": ParserError: line 1, column 1: "},
	} {
		if name == "no statement" {
			c.at = func(context.Context, string, string, any, any) error {
				return &engine.Error{Code: engine.CodeInvalid, Message: "ParserError: it is wrong", Fields: []engine.FieldError{
					{Field: "sql", Message: "it is wrong", Line: 3, Column: 1}}}
			}
		}
		var out bytes.Buffer
		e := &terminal.Env{Ctx: t.Context(), Stdout: &out, Stderr: &out, Log: zerolog.Nop()}
		err := ApplyFlags{FilesFlags: FilesFlags{File: c.files}}.Run(e, c.at)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"misspelt":      {"statments: []\n", `"statments" is no member`},
		"no list":       {"statements: CREATE\n", "statements is no list"},
		"no text":       {"statements: [{a: b}]\n", "statement 1 is no text"},
		"no YAML":       {"statements: [\n", "line 1: "},
		"no members":    {"- CREATE\n", "not YAML with members"},
		"nothing":       {"", "statements is no list"},
		"two of a name": {"statements: []\n\nstatements: []\n", `line 3: "statements" is there twice, first in line 1`},
		"two documents": {"statements: []\n---\nstatements: [DROP QUERY a]\n", "goes on after ---"},
	} {
		_, err := readYAMLStatements("list.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "list.yaml") ||
			strings.Contains(err.Error(), "Go") || strings.Contains(err.Error(), "[]") || strings.Contains(err.Error(), "map[") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
