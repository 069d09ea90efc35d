package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// statementsPath is where statements of the catalog of streams are carried out.
const statementsPath = "/api/v1/streams/statements"

type statementResults struct {
	Results []struct {
		Done    string     `json:"done"`
		Columns []string   `json:"columns"`
		Rows    [][]string `json:"rows"`
	} `json:"results"`
}

// ConfirmFlags confirm what statements write to.
type ConfirmFlags struct {
	Confirm []string `name:"confirm-production" placeholder:"NAME" sep:"none" help:"Name of a production connection that statements may write to. Repeatable."`
}

// statementsRequest is a group of statements, with the production connections that were confirmed.
func statementsRequest(sql string, confirm []string) map[string]any {
	in := map[string]any{"sql": sql}
	if len(confirm) > 0 {
		in["confirm_production"] = confirm
	}
	return in
}

// isStreamStatement reports whether a text is for the catalog of streams: a SELECT with an INTO of its own, which
// queries of results never have, whether or not the rest of it can be read, or a statement that results do not know.
func isStreamStatement(sql string) bool {
	l, depth := sqltext.Lexer{SQL: sql}, 0
	for first := true; ; first = false {
		t, ok, err := l.Next()
		if err != nil || !ok || t.Is(";") {
			return false
		}
		word := t.Upper()
		if first {
			switch word {
			case "CREATE", "DROP", "GET", "WATCH", "RESUME":
				return true
			case "SHOW":
				shown, ok, err := l.Next()
				return err != nil || !ok || showsEntity(shown.Upper())
			case "EXPLAIN", "SELECT":
			default:
				return false
			}
		}
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case word == "INTO" && depth == 0:
			return true
		}
	}
}

// showsEntity reports whether SHOW is of the catalog of streams, by the word behind it, also where that is misspelt.
// Others are settings of Postgres.
func showsEntity(word string) bool {
	if strings.ContainsAny(word, "_.") {
		return false
	}
	for _, begin := range []string{"LOG", "PHY", "SOU", "SIN", "QUE", "WOR", "NOD", "BY", "WITH", ";"} {
		if strings.HasPrefix(word, begin) {
			return true
		}
	}
	return false
}

// executeStatements carries a group out; what it gave, or what was done, is the answer.
func executeStatements(ctx context.Context, do APICall, sql string, confirm []string) (a query.Answer, err error) {
	var results statementResults
	if err := do(ctx, http.MethodPost, statementsPath, statementsRequest(sql, confirm), &results); err != nil {
		return a, withSourceLine(err)
	}
	for _, r := range results.Results {
		if r.Done != "" {
			r.Columns, r.Rows = []string{"done"}, [][]string{{r.Done}}
		}
		a.Columns, a.Rows = nil, nil // a group has one answer, that of its last statement
		for _, name := range r.Columns {
			a.Columns = append(a.Columns, query.Column{Name: name, Type: "text"})
		}
		for _, row := range r.Rows {
			values := make([]any, len(row))
			for i, v := range row {
				values[i] = v
			}
			a.Rows = append(a.Rows, values)
		}
	}
	return a, nil
}

// withSourceLine is an error with the place that it is about, and the caret under it.
func withSourceLine(err error) error {
	e := engine.AsError(err)
	if len(e.Fields) != 1 || e.Fields[0].Line == 0 {
		return err
	}
	at, f := *e, e.Fields[0]
	at.Message = fmt.Sprintf("%sline %d, column %d: %s", strings.TrimSuffix(e.Message, f.Message), f.Line, f.Column,
		f.Message)
	if f.Excerpt != "" {
		at.Message += "\n  " + strings.ReplaceAll(f.Excerpt, "\n", "\n  ")
	}
	if e.Hint != "" {
		at.Message += "\n  hint: " + e.Hint
	}
	at.Hint, at.Fields = "", nil
	return &at
}
