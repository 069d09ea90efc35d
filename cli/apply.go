package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"gopkg.in/yaml.v3"
)

// ApplyFlags are those of loadstone apply.
type ApplyFlags struct {
	FilesFlags
	ConfirmFlags
}

// Help is shown by --help.
func (ApplyFlags) Help() string {
	return `Makes connections, templates, schedules and continuous queries what the files say. Applying the same files again
changes nothing; what no file names stays. A folder is read with its folders, by the names of the files.

A file has one of these:

- kind: connection, with name, driver, dsn, production and access; ${NAME} in the dsn is a variable of the environment.
  Without production or access, they stay as they are; so does paused of a schedule
- a template, as loadstone run takes it
- kind: schedule, with name, template, cron, time_zone, paused and confirm_production
- stream SQL (.sql), or a list named statements (.yaml): all statements of all files are carried out, or none.
  CREATE OR REPLACE puts what a file has in the place of what is there, and IF NOT EXISTS leaves it.

  loadstone apply -f bench/ --dry-run
  loadstone apply -f rules.sql`
}

// maxStatementsBytes is how large the files may be together.
const maxStatementsBytes = 1 << 20

// applyPiece is a part of what is applied, and what it is called: a file, or a statement of one.
type applyPiece struct{ name, text string }

// statementDivider ends the statements of a piece, on lines of its own.
const statementDivider = "\n;\n"

// Run carries the files out, and says what was done.
func (f ApplyFlags) Run(e *terminal.Env, do APICall) error { return f.apply(e, do, "", f.Confirm) }

// applyStatements carries pieces of stream SQL out as one group, and says what was done.
func applyStatements(e *terminal.Env, do APICall, pieces []applyPiece, confirm []string) error {
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.text + statementDivider)
	}
	var results statementResults
	request := statementsRequest(text.String(), confirm)
	request["keep_equal"] = true
	if err := do(e.Ctx, http.MethodPost, statementsPath, request, &results); err != nil {
		return atPiece(pieces, err)
	}
	for _, r := range results.Results {
		if r.Done != "" {
			_, _ = fmt.Fprintln(e.Stdout, r.Done)
			continue
		}
		for _, row := range r.Rows {
			_, _ = fmt.Fprintln(e.Stdout, strings.Join(row, "\t"))
		}
	}
	return nil
}

// duplicateMember is what YAML says of a member that is there twice, among what it says of Go's types.
var duplicateMember = regexp.MustCompile(`line (\d+): mapping key ("[^"\n]*") already defined at line (\d+)`)

// readYAMLStatements reads the statements of a YAML file.
func readYAMLStatements(name string, source []byte) ([]applyPiece, error) {
	wrong := func(what string, cause error) error {
		return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The bundle %s cannot be read: %s.", name, what),
			Hint: "write a list of texts named statements", Cause: cause}
	}
	var doc, more map[string]any
	documents := yaml.NewDecoder(bytes.NewReader(source))
	if err := documents.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		what := "it is not YAML with members by name"
		if why, ok := strings.CutPrefix(err.Error(), "yaml: line "); ok { // others speak of Go's types
			what = "line " + why
		} else if twice := duplicateMember.FindStringSubmatch(err.Error()); twice != nil {
			what = fmt.Sprintf("line %s: %s is there twice, first in line %s", twice[1], twice[2], twice[3])
		}
		return nil, wrong(what, err)
	}
	if err := documents.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, wrong("it goes on after ---, and one bundle is one document", err)
	}
	for member := range doc {
		if member != "statements" {
			return nil, wrong(fmt.Sprintf("%q is no member of one", member), nil)
		}
	}
	list, ok := doc["statements"].([]any)
	if !ok {
		return nil, wrong("statements is no list", nil)
	}
	pieces := make([]applyPiece, 0, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, wrong(fmt.Sprintf("statement %d is no text", i+1), nil)
		}
		pieces = append(pieces, applyPiece{fmt.Sprintf("%s, statement %d", name, i+1), text})
	}
	return pieces, nil
}

// atPiece is an error with the piece that it is about, and the line as it is counted there.
func atPiece(pieces []applyPiece, err error) error {
	e := engine.AsError(err)
	if len(e.Fields) != 1 || e.Fields[0].Line == 0 {
		return err
	}
	first := 1
	for i, p := range pieces {
		lines := strings.Count(p.text, "\n") + 1
		next := first + strings.Count(p.text+statementDivider, "\n")
		if e.Fields[0].Line < next || i == len(pieces)-1 {
			there := *e
			there.Fields = []engine.FieldError{e.Fields[0]}
			// What is missing at the end is missed behind the divider, which nobody wrote.
			there.Fields[0].Line = min(e.Fields[0].Line-first+1, lines)
			message := *engine.AsError(withSourceLine(&there))
			message.Message = p.name + ": " + message.Message
			return &message
		}
		first = next
	}
	return err
}
