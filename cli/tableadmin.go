// This part is loadstone table: derived tables from the command line. It all goes through the API of a server.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TableCommands are those of loadstone table.
type TableCommands struct {
	List    TableList    `cmd:"" help:"List the derived tables, and report when no worker refreshes them."`
	Show    TableShow    `cmd:"" help:"Show a table's definition and state."`
	Create  TableCreate  `cmd:"" help:"Create a table from a SELECT over results."`
	Apply   TableApply   `cmd:"" help:"Create or change tables to match a file."`
	Refresh TableRefresh `cmd:"" help:"Refresh a table now."`
	Suspend TableSuspend `cmd:"" help:"Stop refreshing a table until it is resumed."`
	Resume  TableResume  `cmd:"" help:"Resume a suspended or failed table."`
	Drop    TableDrop    `cmd:"" help:"Drop a table that no other table reads."`
	History TableHistory `cmd:"" help:"List a table's refreshes, newest first."`
}

const tableBase = "/api/v1/tables"

func tablePath(name, more string) string { return tableBase + "/" + url.PathEscape(name) + more }

// FormatFlag is how a list is written.
type FormatFlag struct {
	Format string `enum:"table,csv,json,parquet" default:"table" help:"Output format: ${enum}."`
}

func (f FormatFlag) write(w io.Writer, began time.Time, columns []query.Column, rows [][]any) error {
	a := query.Answer{Columns: columns, Rows: rows, ElapsedMs: float64(time.Since(began).Microseconds()) / 1000}
	if err := WriteAnswer(w, f.Format, a); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// TableName is a command about one table.
type TableName struct {
	Name string `arg:"" help:"The table."`
}

// tableState is a table with who works on it.
type tableState struct {
	At      engine.Time       `json:"at"`
	Table   refresh.Table     `json:"table"`
	ReadBy  []string          `json:"read_by"`
	Pending []refresh.Pending `json:"pending"`
	Claims  []refresh.Claim   `json:"claims"`
}

func readTable(ctx context.Context, do APICall, name string) (s tableState, err error) {
	err = do(ctx, http.MethodGet, tablePath(name, ""), nil, &s)
	return s, err
}

// TableList is loadstone table list.
type TableList struct{ FormatFlag }

// Run writes a line for each table.
func (c TableList) Run(e *terminal.Env, do APICall) error {
	began := time.Now()
	var all struct {
		At     engine.Time
		Tables []refresh.Table
		Claims []refresh.Claim
		Nobody string
	}
	if err := do(e.Ctx, http.MethodGet, tableBase, nil, &all); err != nil {
		return err
	}
	working := map[string]int{}
	for _, claim := range all.Claims {
		working[claim.Table]++
	}
	var rows [][]any
	for _, t := range all.Tables {
		var behind any
		if lag, made := t.Lag(all.At); made {
			behind = formatNumber(lag)
		}
		rows = append(rows, []any{
			t.Name,
			string(t.Kind),
			string(t.Status),
			behind,
			formatNumber(
				t.TargetLagSeconds,
			),
			formatTime(t.AsOf),
			formatTime(t.NextDue),
			formatCount(int64(working[t.Name])),
			formatText(firstNonEmpty(t.Suspended, t.Error)),
		})
	}
	err := c.write(e.Stdout, began, []query.Column{{Name: "name", Type: "text"}, {Name: "kind", Type: "text"},
		{Name: "status", Type: "text"}, {Name: "lag_seconds", Type: "float8"}, {Name: "target_lag_seconds", Type: "float8"},
		{Name: "as_of", Type: "text"}, {Name: "next_refresh_due", Type: "text"}, {Name: "claims", Type: "int8"},
		{Name: "error", Type: "text"}}, rows)
	if err == nil && all.Nobody != "" {
		_, err = fmt.Fprintln(e.Stderr, terminal.StripControls(all.Nobody))
	}
	return err
}

// The values of an answer, as a query gives them: JSON has them as they are.
func formatNumber(n float64) any {
	b, err := json.Marshal(n)
	if err != nil {
		return nil
	}
	return json.Number(b)
}

func formatCount(n int64) any { return json.Number(strconv.FormatInt(n, 10)) }

func formatTime(t engine.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(engine.TimeLayout)
}

func formatText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// TableShow is loadstone table show.
type TableShow struct {
	TableName
	Format string `enum:"text,json" default:"text" help:"Output format: ${enum}."`
}

// Run writes all of a table. What it writes first can be applied.
func (c TableShow) Run(e *terminal.Env, do APICall) error {
	s, err := readTable(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return terminal.JSON(e.Stdout, s)
	}
	document, err := tableDocumentOf(s.Table).yaml()
	if err != nil {
		return err
	}
	var out strings.Builder
	_, _ = out.Write(document)
	line := func(what, format string, args ...any) {
		_, _ = fmt.Fprintf(&out, "# %-14s %s\n", what, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
	}
	t := s.Table
	line("status", "%s", t.Status)
	if t.Suspended != "" {
		line("suspended", "%s", t.Suspended)
	}
	if t.Error != "" {
		line("error", "%s", t.Error)
	}
	if lag, made := t.Lag(s.At); made {
		line("lag", "%.0f s of %.0f s", lag, t.TargetLagSeconds)
	} else {
		line("lag", "none of %.0f s: it has not been made yet", t.TargetLagSeconds)
	}
	if !t.AsOf.IsZero() {
		line("as of", "%v, in %.2f s", formatTime(t.AsOf), t.LastSeconds)
	}
	var list struct{ Refreshes []refresh.Record }
	if err := do(e.Ctx, http.MethodGet, tablePath(c.Name, "/history?limit=1"), nil, &list); err != nil {
		return err
	}
	for _, r := range list.Refreshes {
		line("last refresh", "%s", firstNonEmpty(r.Error, strings.TrimSpace(string(r.Mode)+"  "+strings.TrimPrefix(r.Note,
			string(r.Mode)+": "))))
	}
	line("reads", "%s", joinOrNone(t.Sources))
	line("read by", "%s", joinOrNone(s.ReadBy))
	for _, claim := range s.Claims {
		line("claim", "%s by %s since %v", claim.Subtask, claim.Worker, formatTime(claim.ClaimedAt))
	}
	if t.Owner != "" {
		line("refreshed for", "%s", t.Owner)
	}
	line("version", "%d, by %s", t.Version, firstNonEmpty(t.UpdatedBy, t.CreatedBy))
	_, err = io.WriteString(e.Stdout, terminal.StripControls(out.String()))
	return err
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func joinOrNone(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// tableAction does something with a table, and says so.
func tableAction(e *terminal.Env, do APICall, method, path string, message string, args ...any) error {
	if err := do(e.Ctx, method, path, nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Stdout, terminal.StripControls(fmt.Sprintf(message, args...)))
	return err
}

// TableSuspend is loadstone table suspend.
type TableSuspend struct{ TableName }

// Run suspends a table.
func (c TableSuspend) Run(e *terminal.Env, do APICall) error {
	return tableAction(e, do, http.MethodPost, tablePath(c.Name, "/suspend"), "%s is not refreshed any more.", c.Name)
}

// TableResume is loadstone table resume.
type TableResume struct{ TableName }

// Run lets a table be refreshed again.
func (c TableResume) Run(e *terminal.Env, do APICall) error {
	return tableAction(e, do, http.MethodPost, tablePath(c.Name, "/resume"), "%s is refreshed again.", c.Name)
}

// TableDrop is loadstone table drop.
type TableDrop struct{ TableName }

// Run drops a table.
func (c TableDrop) Run(e *terminal.Env, do APICall) error {
	return tableAction(e, do, http.MethodDelete, tablePath(c.Name, ""), "%s was dropped.", c.Name)
}

// TableRefresh is loadstone table refresh.
type TableRefresh struct {
	TableName
	Wait time.Duration `placeholder:"TIME" help:"Wait for the refresh, at most this long; exit code 2 if it has not finished."`
}

// refreshPollInterval is how often a table is looked at that is waited for.
const refreshPollInterval = 250 * time.Millisecond

// Run makes a table due, and waits for it when asked to.
func (c TableRefresh) Run(e *terminal.Env, do APICall) error {
	if c.Wait < 0 {
		return engine.InvalidField("--wait", fmt.Sprintf("is %s", c.Wait), "more than nothing, for example 5m")
	}
	before, err := readTable(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	if c.Wait == 0 {
		return tableAction(
			e,
			do,
			http.MethodPost,
			tablePath(c.Name, "/refresh"),
			"%s is refreshed as soon as a worker takes it.",
			c.Name,
		)
	}
	if err := do(e.Ctx, http.MethodPost, tablePath(c.Name, "/refresh"), nil, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.Ctx, c.Wait)
	defer cancel()
	for {
		now, err := readTable(ctx, do, c.Name)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case now.Table.AsOf.After(before.At.Time):
			_, err := fmt.Fprintf(
				e.Stdout,
				"%s was refreshed, in %.2f s.\n",
				terminal.StripControls(c.Name),
				now.Table.LastSeconds,
			)
			return err
		case now.Table.Failures > before.Table.Failures || now.Table.Status == refresh.Failed:
			return &terminal.ExitError{Code: terminal.ExitFailed, Err: errors.New("the refresh failed: " + now.Table.Error)}
		}
		select {
		case <-ctx.Done():
			return &terminal.ExitError{Code: terminal.ExitFailed,
				Err: fmt.Errorf("%s is not refreshed after %s; loadstone table list says whether somebody works", c.Name, c.Wait)}
		case <-time.After(refreshPollInterval):
		}
	}
}

// TableHistory is loadstone table history.
type TableHistory struct {
	TableName
	Limit int `default:"20" placeholder:"N" help:"Number of refreshes, 1 to 500."`
	FormatFlag
}

// Run writes a line for each refresh.
func (c TableHistory) Run(e *terminal.Env, do APICall) error {
	if c.Limit < 1 || c.Limit > 500 {
		return engine.InvalidField("--limit", fmt.Sprintf("is %d", c.Limit), "1 to 500")
	}
	began := time.Now()
	var list struct{ Refreshes []refresh.Record }
	if err := do(
		e.Ctx,
		http.MethodGet,
		tablePath(c.Name, fmt.Sprintf("/history?limit=%d", c.Limit)),
		nil,
		&list,
	); err != nil {
		return err
	}
	var rows [][]any
	for _, r := range list.Refreshes {
		var behind any
		if r.LagSeconds != nil {
			behind = formatNumber(*r.LagSeconds)
		}
		rows = append(
			rows,
			[]any{formatTime(r.StartedAt), formatNumber(r.EndedAt.Sub(r.StartedAt.Time).Seconds()), formatText(r.Subtask),
				formatText(string(r.Mode)), formatCount(r.Rows), formatCount(r.Bytes), behind, r.Worker, formatText(r.Note),
				formatText(r.Error)},
		)
	}
	return c.write(e.Stdout, began, []query.Column{{Name: "started_at", Type: "text"}, {Name: "seconds", Type: "float8"},
		{Name: "subtask", Type: "text"}, {Name: "refresh_mode", Type: "text"}, {Name: "row_count", Type: "int8"},
		{Name: "byte_count", Type: "int8"}, {Name: "lag_seconds", Type: "float8"}, {Name: "worker_id", Type: "text"},
		{Name: "note", Type: "text"}, {Name: "error", Type: "text"}}, rows)
}
