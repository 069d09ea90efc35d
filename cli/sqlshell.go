// This part asks a server's results with SQL: one statement, or one after another from a terminal or a
// file; and writes answers as a table, CSV, JSON or Parquet.

package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// SQLShell executes statements, one after another.
type SQLShell struct {
	Ask      func(ctx context.Context, sql string) (query.Answer, error)
	Format   string
	Out, Err io.Writer
}

// Execute executes one statement and writes its answer.
func (s *SQLShell) Execute(ctx context.Context, sql string) error {
	answer, err := s.Ask(ctx, sql)
	if err != nil {
		return err
	}
	if err := WriteAnswer(s.Out, s.Format, answer); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if answer.Truncated {
		_, _ = fmt.Fprintf(s.Err, "There are more than %d rows; --max-rows asks for more.\n", len(answer.Rows))
	}
	return nil
}

// Read executes what it reads: a statement ends with a semicolon, the last with the text. \q ends it, \d lists tables.
func (s *SQLShell) Read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var text string
	for lines.Scan() {
		switch strings.TrimSpace(lines.Text()) {
		case `\q`:
			return nil
		case `\d`:
			text = listTables
		default:
			text += lines.Text() + "\n"
			if !statementComplete(text) {
				continue
			}
		}
		if err := s.Execute(ctx, text); err != nil {
			return err
		}
		text = ""
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading statements: %w", err)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return s.Execute(ctx, text)
}

const listTables = `SELECT table_schema, table_name, string_agg(column_name, ', ' ORDER BY ordinal_position) AS columns
	FROM information_schema.columns WHERE table_schema IN ('tables', 'rollup') GROUP BY 1, 2 ORDER BY 1 DESC, 2`

// statementComplete reports whether a text ends with the semicolon of a statement, not with one inside a quotation.
func statementComplete(text string) bool {
	tokens, err := sqltext.Tokens(text, sqltext.DialectOf("postgres"))
	return err == nil && len(tokens) > 0 && tokens[len(tokens)-1].Is(";")
}

// WriteAnswer writes an answer in a format.
func WriteAnswer(w io.Writer, format string, a query.Answer) error {
	if format == "table" {
		return writeTable(w, a)
	}
	if !terminal.IsTerminal(w) {
		return query.Write(w, format, a)
	}
	// What is in the results is not for the terminal to obey, other than in a file.
	var text bytes.Buffer
	if err := query.Write(&text, format, a); err != nil {
		return err
	}
	_, err := io.WriteString(w, terminal.StripControls(text.String()))
	return err
}

// maxCellWidth is how much of a value a table shows.
const maxCellWidth = 80

func writeTable(out io.Writer, a query.Answer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	cell := func(s string) string {
		s = terminal.StripControls(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))
		if utf8.RuneCountInString(s) > maxCellWidth {
			s = string([]rune(s)[:maxCellWidth-1]) + "…"
		}
		return s
	}
	var names []string
	for _, c := range a.Columns {
		names = append(names, cell(c.Name))
	}
	_, _ = fmt.Fprintln(w, strings.Join(names, "\t"))
	for _, row := range a.Rows {
		var cells []string
		for _, v := range row {
			s, _ := query.Text(v)
			cells = append(cells, cell(s))
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	rows := "rows"
	if len(a.Rows) == 1 {
		rows = "row"
	}
	_, err := fmt.Fprintf(out, "(%d %s, %.0f ms)\n", len(a.Rows), rows, a.ElapsedMs)
	return err
}
