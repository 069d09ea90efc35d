package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
)

// isWatch reports whether a text is a WATCH.
func isWatch(sql string) bool {
	words := strings.Fields(sql)
	return len(words) > 0 && strings.EqualFold(words[0], "WATCH")
}

// watchTable writes what happens to the rows of a WATCH until ctx or the server ends: a line for each, which is the
// event and its row, or as JSON one object.
func watchTable(ctx context.Context, do APICall, sql, format string, to io.Writer) error {
	err := do(ctx, http.MethodGet, "/api/v1/streams/watch?sql="+url.QueryEscape(sql), nil,
		func(answer io.Reader) error {
			lines := bufio.NewScanner(answer)
			lines.Buffer(nil, 256<<20)
			kind := ""
			var columns []string
			for lines.Scan() {
				name, value, _ := strings.Cut(lines.Text(), ": ")
				switch name {
				case "event":
					kind = value
				case "data":
					if err := writeEvent(to, format, kind, value, &columns); err != nil {
						return err
					}
				}
			}
			if ctx.Err() != nil {
				return ctx.Err() // whoever watched has seen enough
			}
			return &engine.Error{Code: engine.CodeUnavailable, Message: "The server has ended the watch.", Cause: lines.Err(),
				Hint: "watch again"}
		})
	if err == nil {
		return nil
	}
	return withSourceLine(err)
}

// formatCell is a value as a table has it, on one line.
func formatCell(v any) string {
	if v == nil {
		return ""
	}
	return terminal.OneLine(fmt.Sprint(v))
}

func writeEvent(to io.Writer, format, kind, data string, columns *[]string) error {
	if kind == "error" {
		var p struct {
			Code         engine.Code
			Detail, Hint string
		}
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		return &engine.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint}
	}
	if format == "json" {
		_, err := fmt.Fprintln(to, data)
		return err
	}
	var e watch.Event
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if e.Columns != nil {
		*columns = e.Columns
		if _, err := fmt.Fprintln(to, "event\t"+strings.Join(e.Columns, "\t")); err != nil {
			return err
		}
	}
	for _, row := range e.Rows {
		var values map[string]any
		d := json.NewDecoder(strings.NewReader(string(row)))
		d.UseNumber()
		if err := d.Decode(&values); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		cells := []string{kind}
		for _, c := range *columns {
			cells = append(cells, formatCell(values[c]))
		}
		if _, err := fmt.Fprintln(to, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}
