package snowflakeexport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// rowsPerPage are read at a time: those of a long run would be more than a result may be.
const rowsPerPage = 2000

// orders are the columns by which the rows of a run are told apart.
var orders = map[string]string{"RUN_CONTROL_EVENTS": "SEQUENCE_ID", "WORKER_HEARTBEATS": "WORKER_ID",
	"WORKER_METRICS_SNAPSHOTS": "WORKER_ID, TICK", "METRICS_SNAPSHOTS": "TIMESTAMP", Polls: "TIMESTAMP, SNAPSHOT_ID",
	Steps: "STEP_NUMBER", "TEST_LOGS": "SEQ", Results: "TEST_ID", "RUN_STATUS": "RUN_ID",
	"QUERY_EXECUTION_ARTIFACTS": "NAME", Segments: "POSITION", Templates: "TEMPLATE_ID"}

// ReadRun calls each with the rows that an account has of a run, as the control store had them, and returns the run's
// segment, nil where there is none. A run that is not there, or not as a whole, is an error.
func ReadRun(ctx context.Context, a SQLAccount, connection, runID string,
	each func(table string, row map[string]json.RawMessage) error) (segment []byte, _ error) {
	s, err := CheckSchema(ctx, a, connection)
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

func (o *object) read(ctx context.Context, a SQLAccount, runID string,
	each func(table string, row map[string]json.RawMessage) error) error {
	names := make([]string, len(o.columns))
	for i, c := range o.columns {
		names[i] = c.name
	}
	where := "RUN_ID = ?"
	if o.name == Templates {
		where = "TEMPLATE_ID IN (SELECT TEMPLATE_ID FROM RUN_STATUS WHERE RUN_ID = ?)"
	}
	for page := 0; ; page++ {
		rs, err := a.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT %d OFFSET %d",
			strings.Join(names, ", "), o.name, where, orders[o.name], rowsPerPage, page*rowsPerPage), runID)
		if err != nil {
			return err
		}
		for _, values := range rs.Rows {
			row := map[string]json.RawMessage{}
			for i, v := range values {
				text, err := o.columns[i].json(v)
				if err != nil {
					return err
				}
				if text != nil {
					row[strings.ToLower(o.columns[i].name)] = text
				}
			}
			if err := each(strings.ToLower(o.name), row); err != nil {
				return err
			}
		}
		if len(rs.Rows) < rowsPerPage {
			return nil
		}
	}
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
			var text bytes.Buffer // accounts indent JSON
			if err := json.Compact(&text, []byte(v)); err != nil {
				return nil, fmt.Errorf("the account answers %q for %s: %w", v, c.name, err)
			}
			return text.Bytes(), nil
		}
	}
	return json.Marshal(v)
}
