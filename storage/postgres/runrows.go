package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// runRows says of each table which of its columns tell the rows of a run apart, in their order.
var runRows = map[string][]string{
	"run_status":                {"run_id"},
	"run_control_events":        {"sequence_id"},
	"worker_heartbeats":         {"worker_id"},
	"worker_metrics_snapshots":  {"worker_id", "tick"},
	"metrics_snapshots":         {`"timestamp"`},
	"warehouse_poll_snapshots":  {`"timestamp"`, "snapshot_id"},
	"find_max_step_history":     {"step_number"},
	"test_logs":                 {"seq"},
	"run_marks":                 {"at", "mark_id"},
	"run_notes":                 {"run_id"},
	"test_templates":            {"template_id"},
	"test_results":              {"test_id"},
	"query_execution_artifacts": {"name"},
}

// A page of rows is read before any is given on: whoever takes them may wait for another database, and a query that
// stayed open meanwhile would hold a connection and a snapshot.
const (
	runRowsPage  = 500
	runRowsBytes = 1 << 20
)

// RunRows implements snowflakeexport.Store.
func (s *Store) RunRows(ctx context.Context, runID, table string, each func(map[string]json.RawMessage) error) error {
	return s.RunRowsAfter(ctx, runID, table, nil, each)
}

// RunRowsAfter is RunRows, but for those up to a row, of which the columns are needed that tell rows apart; nil is before
// the first.
func (s *Store) RunRowsAfter(ctx context.Context, runID, table string, after map[string]json.RawMessage,
	each func(map[string]json.RawMessage) error) error {
	key, known := runRows[table]
	if !known {
		return fmt.Errorf("reading the rows of run %s: there is no table %s of runs", runID, table)
	}
	for {
		page, more, err := s.runRowsPage(ctx, runID, table, key, after)
		if err != nil {
			return err
		}
		for _, row := range page {
			after = row
			// The columns of the key are not among those that are changed, but for what each adds.
			given := maps.Clone(row)
			if err := s.withoutSecrets(given); err != nil {
				return fmt.Errorf("reading %s: %w", table, err)
			}
			if err := each(given); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// runRowsPage reads some rows of a run behind one; more tells whether others may follow.
func (s *Store) runRowsPage(ctx context.Context, runID, table string, key []string, after map[string]json.RawMessage) (
	page []map[string]json.RawMessage, more bool, err error) {
	from, behind, args := table+" t", "", []any{runID}
	columns := func(of string) string { return of + strings.Join(key, ", "+of) }
	if after != nil {
		last := map[string]json.RawMessage{}
		for _, name := range key {
			name = strings.Trim(name, `"`)
			last[name] = after[name]
		}
		text, err := json.Marshal(last)
		if err != nil {
			return nil, false, fmt.Errorf("reading %s: %w", table, err)
		}
		args = append(args, string(text))
		from += ", json_populate_record(NULL::" + table + ", $2::json) k"
		behind = " AND (" + columns("t.") + ") > (" + columns("k.") + ")"
	}
	where := "t.run_id = $1"
	if table == "test_templates" {
		where = "t.template_id = (SELECT template_id FROM run_status WHERE run_id = $1)"
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf("SELECT row_to_json(x)::text FROM (SELECT t.* FROM %s WHERE %s%s "+
		"ORDER BY %s LIMIT %d) x", from, where, behind, columns("t."), runRowsPage), args...)
	if err != nil {
		return nil, false, dberr.Failed("reading "+table, err)
	}
	defer rows.Close()
	for size := 0; size < runRowsBytes && rows.Next(); {
		var text []byte
		row := map[string]json.RawMessage{}
		err := rows.Scan(&text)
		if err == nil {
			err = json.Unmarshal(text, &row)
		}
		if err != nil {
			return nil, false, fmt.Errorf("reading %s: %w", table, err)
		}
		page, size = append(page, row), size+len(text)
		more = len(page) == runRowsPage || size >= runRowsBytes
	}
	rows.Close()
	return page, more, dberr.Failed("reading "+table, rows.Err())
}

// withoutSecrets takes out of a row what is sealed, and of a plan the rows that were sampled.
func (s *Store) withoutSecrets(row map[string]json.RawMessage) error {
	if plan := row["plan"]; len(plan) > 0 && string(plan) != "null" {
		p, err := s.readPlan("", plan, false)
		if err != nil {
			return err
		}
		if row["plan"], err = json.Marshal(p.Shown()); err != nil {
			return err
		}
	}
	for name, value := range row {
		if !bytes.Contains(value, []byte(sealedIn+`"`)) {
			continue
		}
		var document any
		d := json.NewDecoder(bytes.NewReader(value))
		d.UseNumber()
		if err := d.Decode(&document); err != nil {
			return err
		}
		text, err := json.Marshal(unsealed(document))
		if err != nil {
			return err
		}
		row[name] = text
	}
	return nil
}

// unsealed is a document without the members that hold sealed texts.
func unsealed(document any) any {
	switch v := document.(type) {
	case map[string]any:
		for name, member := range v {
			text, isText := member.(string)
			if _, sealed := keyring.KeyID(text); isText && sealed && strings.HasSuffix(name, sealedIn) {
				delete(v, name)
				continue
			}
			v[name] = unsealed(member)
		}
	case []any:
		for i := range v {
			v[i] = unsealed(v[i])
		}
	}
	return document
}

// LoadRunRows puts the rows of a run, as RunRows gave them, into an empty control store of which the role of the
// connection is a superuser. Rows give each with its table.
func (s *Store) LoadRunRows(ctx context.Context,
	rows func(each func(table string, row map[string]json.RawMessage) error) error) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		// Triggers would have the run live through its statuses, and foreign keys ask for what is not read back.
		if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
			return dberr.Failed("loading a run", err)
		}
		columns := map[string][]storedColumn{}
		return rows(func(table string, row map[string]json.RawMessage) error {
			if _, known := runRows[table]; !known {
				return fmt.Errorf("loading a run: there is no table %s of runs", table)
			}
			if columns[table] == nil {
				var err error
				if columns[table], err = storedColumns(ctx, tx, table); err != nil {
					return err
				}
			}
			var names []string
			for _, c := range columns[table] {
				value := row[c.name]
				if absent := len(value) == 0 || string(value) == "null"; c.nullable || !absent {
					names = append(names, pgx.Identifier{c.name}.Sanitize())
				}
			}
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			list := strings.Join(names, ", ")
			_, err = tx.Exec(ctx, "INSERT INTO "+table+" ("+list+") SELECT "+list+" FROM json_populate_record(NULL::"+table+
				", $1)", string(text))
			return dberr.Failed("loading "+table, err)
		})
	})
}

// storedColumn is a column that is not computed. One that is not nullable has a default where nothing is given for it.
type storedColumn struct {
	name     string
	nullable bool
}

func storedColumns(ctx context.Context, tx pgx.Tx, table string) ([]storedColumn, error) {
	rows, err := tx.Query(
		ctx,
		`SELECT attname, NOT attnotnull FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0
		AND NOT attisdropped AND attgenerated = ''`,
		table,
	)
	if err != nil {
		return nil, dberr.Failed("loading a run", err)
	}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c storedColumn, err error) {
		return c, row.Scan(&c.name, &c.nullable)
	})
	return columns, dberr.Failed("loading a run", err)
}
