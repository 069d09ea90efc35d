package snowflakeexport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// rowsPerPage are read at a time: those of a long run would be more than a result may be. Of rows without a bound of
// their length there are fewer, and where they are too much all the same, an eighth of them.
const rowsPerPage, longRowsPerPage, segmentRowsPerPage = 2000, 200, 8

// orders are the columns by which the rows of a run are told apart.
var orders = map[string]string{"RUN_CONTROL_EVENTS": "SEQUENCE_ID", "WORKER_HEARTBEATS": "WORKER_ID",
	"WORKER_METRICS_SNAPSHOTS": "WORKER_ID, TICK", "METRICS_SNAPSHOTS": "TIMESTAMP", Polls: "TIMESTAMP, SNAPSHOT_ID",
	"RUN_MARKS": "AT, MARK_ID", "RUN_NOTES": "RUN_ID",
	Steps: "STEP_NUMBER", "TEST_LOGS": "SEQ", Results: "TEST_ID", "RUN_STATUS": "RUN_ID",
	"QUERY_EXECUTION_ARTIFACTS": "NAME", Segments: "POSITION", Templates: "TEMPLATE_ID"}

// ReadRun calls each with the rows that an account has of a run, as the control store had them, and returns the run's
// segment, nil where there is none. A run that is not there, or not as a whole, is an error.
func ReadRun(ctx context.Context, a SQLAccount, cure, runID string,
	each func(table string, row map[string]json.RawMessage) error) (segment []byte, _ error) {
	s, err := CheckSchema(ctx, a, cure)
	if err != nil {
		return nil, err
	}
	if !s.tablesUsable() {
		return nil, &engine.Error{
			Code:    engine.CodeConflict,
			Message: "Runs cannot be read from the account.",
			Hint:    s.Problem,
		}
	}
	rs, err := a.Query(ctx, "SELECT MAX(FINGERPRINT) FROM TEST_RESULTS WHERE RUN_ID = ?", runID)
	if err != nil {
		return nil, fmt.Errorf("looking for run %s: %w", runID, err)
	}
	if len(rs.Rows) != 1 || rs.Rows[0][0] == nil {
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("The account does not have run %s.", runID),
			Hint: "a run is there when a server with --results-connection has taken it there as a whole: see the tab Export " +
				"of its page"}
	}
	for _, name := range RunTables {
		do := each
		if name == Segments {
			do = func(_ string, row map[string]json.RawMessage) error {
				var chunk []byte
				err := json.Unmarshal(row["content"], &chunk)
				segment = append(segment, chunk...)
				return err
			}
		}
		if err := theSchema().byName[name].read(ctx, a, runID, do); err != nil {
			return nil, fmt.Errorf("reading %s of run %s: %w", name, runID, err)
		}
	}
	return segment, nil
}

// rowsPerPage is how many rows of the table are asked for at first.
func (o *object) rowsPerPage() int {
	switch {
	case o.name == Segments:
		return segmentRowsPerPage
	case slices.ContainsFunc(o.columns, func(c column) bool { return c.kind == "VARIANT" }):
		return longRowsPerPage
	}
	return rowsPerPage
}

// Differences are the tables in which what the account has of a run is not what the control store has.
func (e *Export) Differences(ctx context.Context, runID string) (tables []string, _ error) {
	d, err := e.Detail(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("reading run %s: %w", runID, err)
	}
	there := map[string][]string{}
	if _, err := ReadRun(ctx, e.Account, e.Cure, runID, func(table string, row map[string]json.RawMessage) error {
		text, err := theSchema().byName[strings.ToUpper(table)].comparable(row)
		there[table] = append(there[table], text)
		return err
	}); err != nil {
		return nil, err
	}
	for _, name := range RunTables {
		if name == Segments || name == Templates {
			continue // a segment is compared by its checksum; templates belong to other runs, too
		}
		o, table := theSchema().byName[name], strings.ToLower(name)
		var want []string
		if err := e.Store.RunRows(ctx, runID, table, func(r map[string]json.RawMessage) error {
			complete(name, r, &d)
			text, err := o.comparable(r)
			want = append(want, text)
			return err
		}); err != nil {
			return nil, err
		}
		slices.Sort(want)
		slices.Sort(there[table])
		if !slices.Equal(want, there[table]) {
			tables = append(tables, name)
		}
	}
	return tables, nil
}

// comparable is a row as one text, whatever the order of members and the spelling of its numbers.
func (o *object) comparable(r Row) (string, error) {
	delete(r, "fingerprint") // which the account alone has
	text, err := o.element(r)
	if err != nil {
		return "", err
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("reading a row of %s: %w", o.name, err)
	}
	text, err = json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("reading a row of %s: %w", o.name, err)
	}
	return string(text), nil
}

func (o *object) read(ctx context.Context, a SQLAccount, runID string,
	each func(table string, row map[string]json.RawMessage) error) error {
	for from, limit := 0, o.rowsPerPage(); ; {
		rows, err := o.page(ctx, a, runID, o.columns, from, limit)
		switch {
		case errors.Is(err, target.ErrTooLarge) && limit > 1:
			limit = max(limit/8, 1)
			continue
		case errors.Is(err, target.ErrTooLarge):
			rows, err = o.longRow(ctx, a, runID, from)
		}
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := each(strings.ToLower(o.name), row); err != nil {
				return err
			}
		}
		if len(rows) < limit {
			return nil
		}
		from += len(rows)
	}
}

// longRow reads a row that is more than a result may be: its columns one by one.
func (o *object) longRow(
	ctx context.Context,
	a SQLAccount,
	runID string,
	at int,
) ([]map[string]json.RawMessage, error) {
	row := map[string]json.RawMessage{}
	for _, c := range o.columns {
		rows, err := o.page(ctx, a, runID, []column{c}, at, 1)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", c.name, err)
		}
		for _, r := range rows {
			maps.Copy(row, r)
		}
	}
	return []map[string]json.RawMessage{row}, nil
}

// page reads some rows of a run.
func (o *object) page(ctx context.Context, a SQLAccount, runID string, columns []column, from, limit int) (
	page []map[string]json.RawMessage, err error) {
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = c.name
		if c.kind == "VARIANT" {
			values[i] = "TO_JSON(" + c.name + ")" // by itself it is shown indented, most of it blanks
		}
	}
	where := "RUN_ID = ?"
	if o.name == Templates {
		where = "TEMPLATE_ID IN (SELECT TEMPLATE_ID FROM RUN_STATUS WHERE RUN_ID = ?)"
	}
	rs, err := a.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT %d OFFSET %d",
		strings.Join(values, ", "), o.name, where, orders[o.name], limit, from), runID)
	if err != nil {
		return nil, err
	}
	for _, values := range rs.Rows {
		row := map[string]json.RawMessage{}
		for i, c := range columns[:min(len(columns), len(values))] {
			text, err := c.json(values[i])
			if err != nil {
				return nil, err
			}
			if text != nil {
				row[strings.ToLower(c.name)] = text
			}
		}
		page = append(page, row)
	}
	return page, nil
}

// json is a value as RunRows has it, nil for NULL.
func (c column) json(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case time.Time:
		return json.Marshal(v.UTC().Format(time.RFC3339Nano))
	case string:
		if c.kind == "VARIANT" || strings.HasPrefix(c.kind, "NUMBER") {
			var text bytes.Buffer // numbers are texts to some accounts, and JSON may have blanks
			if err := json.Compact(&text, []byte(v)); err != nil {
				return nil, fmt.Errorf("the account answers %q for %s: %w", v, c.name, err)
			}
			return text.Bytes(), nil
		}
	}
	return json.Marshal(v)
}
