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

// Commands are those of loadstone table.
type Commands struct {
	List    TableList `cmd:"" help:"List the derived tables, and say when nobody refreshes them."`
	Show    Show      `cmd:"" help:"Show a table: its definition, and how it stands."`
	Create  Create    `cmd:"" help:"Make a table of a SELECT over results."`
	Apply   Apply     `cmd:"" help:"Make or change the tables of a file, so that they are as it says."`
	Refresh Refresh   `cmd:"" help:"Refresh a table now."`
	Suspend Suspend   `cmd:"" help:"Refresh a table no more, until it is resumed."`
	Resume  Resume    `cmd:"" help:"Let a table be refreshed again that was suspended or has failed."`
	Drop    Drop      `cmd:"" help:"Drop a table that no other one reads."`
	History History   `cmd:"" help:"What became of a table's refreshes, newest first."`
}

const tableBase = "/api/v1/tables"

func of(name, more string) string { return tableBase + "/" + url.PathEscape(name) + more }

// Format is how a list is written.
type Format struct {
	Format string `enum:"table,csv,json,parquet" default:"table" help:"How the answer is written: ${enum}."`
}

func (f Format) write(w io.Writer, began time.Time, columns []query.Column, rows [][]any) error {
	a := query.Answer{Columns: columns, Rows: rows, ElapsedMs: float64(time.Since(began).Microseconds()) / 1000}
	if err := Write(w, f.Format, a); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// Named is a command about one table.
type Named struct {
	Name string `arg:"" help:"The table."`
}

// state is a table with who works on it.
type state struct {
	At      engine.Time       `json:"at"`
	Table   refresh.Table     `json:"table"`
	ReadBy  []string          `json:"read_by"`
	Pending []refresh.Pending `json:"pending"`
	Claims  []refresh.Claim   `json:"claims"`
}

func read(ctx context.Context, do Do, name string) (s state, err error) {
	err = do(ctx, http.MethodGet, of(name, ""), nil, &s)
	return s, err
}

// TableList is loadstone table list.
type TableList struct{ Format }

// Run writes a line for each table.
func (c TableList) Run(e *terminal.Env, do Do) error {
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
			behind = tableNumber(lag)
		}
		rows = append(rows, []any{t.Name, string(t.Kind), string(t.Status), behind,
			tableNumber(t.TargetLagSeconds), stamp(t.AsOf), stamp(t.NextDue), tableCount(int64(working[t.Name])), text(t.Error)})
	}
	err := c.write(e.Stdout, began, []query.Column{{Name: "name", Type: "text"}, {Name: "kind", Type: "text"},
		{Name: "status", Type: "text"}, {Name: "lag_seconds", Type: "float8"}, {Name: "target_lag_seconds", Type: "float8"},
		{Name: "as_of", Type: "text"}, {Name: "next_refresh_due", Type: "text"}, {Name: "claims", Type: "int8"},
		{Name: "error", Type: "text"}}, rows)
	if err == nil && all.Nobody != "" {
		_, err = fmt.Fprintln(e.Stderr, terminal.Harmless(all.Nobody))
	}
	return err
}

// The values of an answer, as a query gives them: JSON has them as they are.
func tableNumber(n float64) any {
	b, err := json.Marshal(n)
	if err != nil {
		return nil
	}
	return json.Number(b)
}

func tableCount(n int64) any { return json.Number(strconv.FormatInt(n, 10)) }

func stamp(t engine.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(engine.TimeLayout)
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Show is loadstone table show.
type Show struct {
	Named
	Format string `enum:"text,json" default:"text" help:"How it is written: ${enum}."`
}

// Run writes all of a table. What it writes first can be applied.
func (c Show) Run(e *terminal.Env, do Do) error {
	s, err := read(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return terminal.JSON(e.Stdout, s)
	}
	document, err := documentOf(s.Table).yaml()
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
	if t.Error != "" {
		line("error", "%s", t.Error)
	}
	if lag, made := t.Lag(s.At); made {
		line("lag", "%.0f s of %.0f s", lag, t.TargetLagSeconds)
	} else {
		line("lag", "none of %.0f s: it has not been made yet", t.TargetLagSeconds)
	}
	if !t.AsOf.IsZero() {
		line("as of", "%v, in %.2f s", stamp(t.AsOf), t.LastSeconds)
	}
	var list struct{ Refreshes []refresh.Record }
	if err := do(e.Ctx, http.MethodGet, of(c.Name, "/history?limit=1"), nil, &list); err != nil {
		return err
	}
	for _, r := range list.Refreshes {
		line("last refresh", "%s", first(r.Error, strings.TrimSpace(string(r.Mode)+"  "+strings.TrimPrefix(r.Note,
			string(r.Mode)+": "))))
	}
	line("reads", "%s", tableNone(t.Sources))
	line("read by", "%s", tableNone(s.ReadBy))
	for _, claim := range s.Claims {
		line("claim", "%s by %s since %v", claim.Subtask, claim.Worker, stamp(claim.ClaimedAt))
	}
	line("version", "%d, by %s", t.Version, first(t.UpdatedBy, t.CreatedBy))
	_, err = io.WriteString(e.Stdout, terminal.Harmless(out.String()))
	return err
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func tableNone(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// act does something with a table, and says so.
func act(e *terminal.Env, do Do, method, path string, said string, args ...any) error {
	if err := do(e.Ctx, method, path, nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Stdout, terminal.Harmless(fmt.Sprintf(said, args...)))
	return err
}

// Suspend is loadstone table suspend.
type Suspend struct{ Named }

// Run suspends a table.
func (c Suspend) Run(e *terminal.Env, do Do) error {
	return act(e, do, http.MethodPost, of(c.Name, "/suspend"), "%s is not refreshed any more.", c.Name)
}

// Resume is loadstone table resume.
type Resume struct{ Named }

// Run lets a table be refreshed again.
func (c Resume) Run(e *terminal.Env, do Do) error {
	return act(e, do, http.MethodPost, of(c.Name, "/resume"), "%s is refreshed again.", c.Name)
}

// Drop is loadstone table drop.
type Drop struct{ Named }

// Run drops a table.
func (c Drop) Run(e *terminal.Env, do Do) error {
	return act(e, do, http.MethodDelete, of(c.Name, ""), "%s was dropped.", c.Name)
}

// Refresh is loadstone table refresh.
type Refresh struct {
	Named
	Wait time.Duration `placeholder:"TIME" help:"Wait until it is refreshed, so long at most; exit code 2 when it is not then."`
}

// again is how often a table is looked at that is waited for.
const again = 250 * time.Millisecond

// Run makes a table due, and waits for it when asked to.
func (c Refresh) Run(e *terminal.Env, do Do) error {
	if c.Wait < 0 {
		return engine.InvalidField("--wait", fmt.Sprintf("is %s", c.Wait), "more than nothing, for example 5m")
	}
	before, err := read(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	if c.Wait == 0 {
		return act(e, do, http.MethodPost, of(c.Name, "/refresh"), "%s is refreshed as soon as a worker takes it.", c.Name)
	}
	if err := do(e.Ctx, http.MethodPost, of(c.Name, "/refresh"), nil, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.Ctx, c.Wait)
	defer cancel()
	for {
		now, err := read(ctx, do, c.Name)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case now.Table.AsOf.After(before.At.Time):
			_, err := fmt.Fprintf(e.Stdout, "%s was refreshed, in %.2f s.\n", terminal.Harmless(c.Name), now.Table.LastSeconds)
			return err
		case now.Table.Failures > before.Table.Failures || now.Table.Status == refresh.Failed:
			return &terminal.Error{Code: terminal.ExitFailed, Err: errors.New("the refresh failed: " + now.Table.Error)}
		}
		select {
		case <-ctx.Done():
			return &terminal.Error{Code: terminal.ExitFailed,
				Err: fmt.Errorf("%s is not refreshed after %s; loadstone table list says whether somebody works", c.Name, c.Wait)}
		case <-time.After(again):
		}
	}
}

// History is loadstone table history.
type History struct {
	Named
	Limit int `default:"20" placeholder:"N" help:"How many refreshes, 1 to 500."`
	Format
}

// Run writes a line for each refresh.
func (c History) Run(e *terminal.Env, do Do) error {
	if c.Limit < 1 || c.Limit > 500 {
		return engine.InvalidField("--limit", fmt.Sprintf("is %d", c.Limit), "1 to 500")
	}
	began := time.Now()
	var list struct{ Refreshes []refresh.Record }
	if err := do(e.Ctx, http.MethodGet, of(c.Name, fmt.Sprintf("/history?limit=%d", c.Limit)), nil, &list); err != nil {
		return err
	}
	var rows [][]any
	for _, r := range list.Refreshes {
		var behind any
		if r.LagSeconds != nil {
			behind = tableNumber(*r.LagSeconds)
		}
		rows = append(rows, []any{stamp(r.StartedAt), tableNumber(r.EndedAt.Sub(r.StartedAt.Time).Seconds()), text(r.Subtask),
			text(string(r.Mode)), tableCount(r.Rows), tableCount(r.Bytes), behind, r.Worker, text(r.Note),
			text(r.Error)})
	}
	return c.write(e.Stdout, began, []query.Column{{Name: "started_at", Type: "text"}, {Name: "seconds", Type: "float8"},
		{Name: "subtask", Type: "text"}, {Name: "refresh_mode", Type: "text"}, {Name: "row_count", Type: "int8"},
		{Name: "byte_count", Type: "int8"}, {Name: "lag_seconds", Type: "float8"}, {Name: "worker_id", Type: "text"},
		{Name: "note", Type: "text"}, {Name: "error", Type: "text"}}, rows)
}
