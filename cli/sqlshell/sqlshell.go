// Package sqlshell asks a server's results with SQL: one statement, or one after another from a terminal or a
// file; and writes answers as a table, CSV, JSON or Parquet.
package sqlshell

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/query"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// Shell executes statements, one after another.
type Shell struct {
	Ask    func(ctx context.Context, sql string) (query.Answer, error)
	Format string
	// Interactive prompts, and goes on after an error.
	Interactive bool
	Out, Err    io.Writer
}

// Execute executes one statement and writes its answer.
func (s *Shell) Execute(ctx context.Context, sql string) error {
	answer, err := s.Ask(ctx, sql)
	if err != nil {
		return err
	}
	if err := Write(s.Out, s.Format, answer); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if answer.Truncated {
		_, _ = fmt.Fprintf(s.Err, "There are more than %d rows; --max-rows asks for more.\n", len(answer.Rows))
	}
	return nil
}

// Read executes what it reads: a statement ends with a semicolon, the last with the text. \q ends it, \d lists tables.
func (s *Shell) Read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var text string
	prompt := func() {
		if s.Interactive {
			_, _ = fmt.Fprint(s.Out, map[bool]string{true: "loadstone=> ", false: "        -> "}[strings.TrimSpace(text) == ""])
		}
	}
	for prompt(); lines.Scan(); prompt() {
		switch strings.TrimSpace(lines.Text()) {
		case `\q`:
			return nil
		case `\d`:
			text = listTables
		default:
			text += lines.Text() + "\n"
			if !complete(text) {
				continue
			}
		}
		if err := s.Execute(ctx, text); err != nil {
			if !s.Interactive || ctx.Err() != nil {
				return err
			}
			_, _ = fmt.Fprintln(s.Err, terminal.Harmless(engine.AsError(err).Error()))
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

// complete reports whether a text ends with the semicolon of a statement, not with one inside a quotation.
func complete(text string) bool {
	tokens, err := sqltext.Tokens(text, sqltext.DialectOf("postgres"))
	return err == nil && len(tokens) > 0 && tokens[len(tokens)-1].Is(";")
}

// Write writes an answer in a format.
func Write(w io.Writer, format string, a query.Answer) error {
	switch format {
	case "csv":
		return writeCSV(w, a)
	case "json":
		return writeJSON(w, a)
	case "parquet":
		return writeParquet(w, a)
	default:
		return writeTable(w, a)
	}
}

// text is a value as people read it; null is told by ok.
func text(v any) (s string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	default:
		document, err := json.Marshal(v)
		return string(document), err == nil
	}
}

// widest is how much of a value a table shows.
const widest = 80

func writeTable(out io.Writer, a query.Answer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	cell := func(s string) string {
		s = terminal.Harmless(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))
		if utf8.RuneCountInString(s) > widest {
			s = string([]rune(s)[:widest-1]) + "…"
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
			s, _ := text(v)
			cells = append(cells, cell(s))
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "(%d rows, %.0f ms)\n", len(a.Rows), a.ElapsedMs)
	return err
}

func writeCSV(out io.Writer, a query.Answer) error {
	w := csv.NewWriter(out)
	record := make([]string, len(a.Columns))
	for i, c := range a.Columns {
		record[i] = c.Name
	}
	errs := w.Write(record)
	for _, row := range a.Rows {
		for i, v := range row {
			record[i], _ = text(v)
		}
		errs = errors.Join(errs, w.Write(record))
	}
	w.Flush()
	return errors.Join(errs, w.Error())
}

// writeJSON writes an object for each row, a line each.
func writeJSON(out io.Writer, a query.Answer) error {
	w := bufio.NewWriter(out)
	for _, row := range a.Rows {
		for i, v := range row {
			name, err := json.Marshal(a.Columns[i].Name)
			if err != nil {
				return err
			}
			value, err := json.Marshal(v)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(w, "%s%s:%s", map[bool]string{true: "{", false: ","}[i == 0], name, value)
		}
		_, _ = w.WriteString("}\n")
	}
	return w.Flush()
}

// writeParquet writes numbers and booleans as such, everything else as text; all columns may be null.
func writeParquet(out io.Writer, a query.Answer) error {
	group := parquet.Group{}
	for i, c := range a.Columns {
		if _, twice := group[c.Name]; twice || c.Name == "" {
			return engine.InvalidField("sql", fmt.Sprintf("gives column %d the name %q", i+1, c.Name),
				"in Parquet each column has a name of its own: … AS name")
		}
		group[c.Name] = parquet.Optional(node(c.Type))
	}
	schema := parquet.NewSchema("answer", group)
	w := parquet.NewWriter(out, schema)
	for _, row := range a.Rows {
		values := make(parquet.Row, len(row))
		for i, v := range row {
			leaf, _ := schema.Lookup(a.Columns[i].Name)
			values[leaf.ColumnIndex] = parquetValue(a.Columns[i].Type, v, leaf.ColumnIndex)
		}
		if _, err := w.WriteRows([]parquet.Row{values}); err != nil {
			return err
		}
	}
	return w.Close()
}

func node(typ string) parquet.Node {
	switch typ {
	case "bool":
		return parquet.Leaf(parquet.BooleanType)
	case "int2", "int4", "int8":
		return parquet.Leaf(parquet.Int64Type)
	case "float4", "float8", "numeric":
		return parquet.Leaf(parquet.DoubleType)
	}
	return parquet.String()
}

func parquetValue(typ string, v any, column int) parquet.Value {
	s, ok := text(v)
	if !ok {
		return parquet.NullValue().Level(0, 0, column)
	}
	value := parquet.ByteArrayValue([]byte(s))
	switch typ {
	case "bool":
		value = parquet.BooleanValue(s == "true")
	case "int2", "int4", "int8":
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return parquet.NullValue().Level(0, 0, column)
		}
		value = parquet.Int64Value(n)
	case "float4", "float8", "numeric":
		n, err := strconv.ParseFloat(s, 64) // Infinity and NaN too
		if err != nil {
			return parquet.NullValue().Level(0, 0, column)
		}
		value = parquet.DoubleValue(n)
	}
	return value.Level(0, 1, column)
}
