package snowflakeexport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// transactions are the tables that hold what the control store knows of a run, under the names that it has there in
// lower case, those of one transaction together. TEST_RESULTS comes last: its row says that everything is there.
var transactions = [][]string{
	{"RUN_STATUS", "RUN_CONTROL_EVENTS", "WORKER_HEARTBEATS", Polls, Steps, "RUN_MARKS", "RUN_NOTES",
		"QUERY_EXECUTION_ARTIFACTS"},
	{"WORKER_METRICS_SNAPSHOTS"},
	{"METRICS_SNAPSHOTS", "TEST_LOGS", Segments},
	{Templates, Results},
}

// RunTables are all of them.
var RunTables = slices.Concat(transactions...)

// Row is a row of the control store: JSON values by the names of columns, in lower case.
type Row map[string]json.RawMessage

// set puts a value into the row; what cannot be written as JSON, as NaN, is left out.
func (r Row) set(name string, value any) {
	if text, err := json.Marshal(value); err == nil {
		r[name] = text
	}
}

// bytesPerInsert is about how long the rows of one INSERT are, as JSON.
const bytesPerInsert = 1 << 20

// insertInto is the statement that takes rows of a table as a JSON array, whose elements have a member c0, c1 … for
// each column: VALUES takes no expressions such as PARSE_JSON, and an array bind no VARIANT.
func (o *object) insertInto() string {
	names, values := make([]string, len(o.columns)), make([]string, len(o.columns))
	for i, c := range o.columns {
		names[i] = c.name
		at := "f.VALUE:c" + strconv.Itoa(i)
		switch c.kind {
		case "VARIANT":
			values[i] = at
		case "TIMESTAMP_NTZ":
			values[i] = "TO_TIMESTAMP_NTZ(" + at + "::NUMBER(38,0), 6)"
		default:
			values[i] = at + "::" + c.kind
		}
	}
	return "INSERT INTO " + o.name + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM TABLE(FLATTEN(INPUT => PARSE_JSON(?))) f"
}

// element writes a row as an element of the array; times become microseconds since the epoch of Unix.
func (o *object) element(r Row) ([]byte, error) {
	b := []byte{'{'}
	for i, c := range o.columns {
		value, there := r[strings.ToLower(c.name)]
		if !there || len(value) == 0 || string(value) == "null" {
			continue
		}
		if c.kind == "TIMESTAMP_NTZ" {
			var at time.Time
			if err := json.Unmarshal(value, &at); err != nil {
				return nil, fmt.Errorf("reading %s of %s: %w", c.name, o.name, err)
			}
			value = strconv.AppendInt(nil, at.UnixMicro(), 10)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, `"c`...), strconv.Itoa(i)...)
		b = append(append(b, `":`...), value...)
	}
	return append(b, '}'), nil
}

// arrays reads the rows of a run in a table as JSON arrays of about bytesPerInsert.
func (e *Export) arrays(ctx context.Context, d *engine.RunDetail, o *object, each func(array []byte) error) error {
	rows := e.Store.RunRows
	if o.name == Segments {
		rows = e.segmentRows
	}
	err := o.inArrays(func(each func(map[string]json.RawMessage) error) error {
		return rows(ctx, d.RunID, strings.ToLower(o.name), func(r map[string]json.RawMessage) error {
			complete(o.name, r, d)
			return each(r)
		})
	}, each)
	if err != nil {
		return fmt.Errorf("reading %s of run %s: %w", o.name, d.RunID, err)
	}
	return nil
}

// inArrays writes rows as JSON arrays of about bytesPerInsert.
func (o *object) inArrays(rows func(each func(map[string]json.RawMessage) error) error,
	each func(array []byte) error) error {
	var array bytes.Buffer
	end := func() error {
		if array.Len() == 0 {
			return nil
		}
		array.WriteByte(']')
		err := each(array.Bytes())
		array.Reset()
		return err
	}
	if err := rows(func(r map[string]json.RawMessage) error {
		text, err := o.element(r)
		if err != nil {
			return err
		}
		if array.Len()+len(text) > bytesPerInsert {
			if err := end(); err != nil {
				return err
			}
		}
		if array.Len() == 0 {
			array.WriteByte('[')
		} else {
			array.WriteByte(',')
		}
		array.Write(text)
		return nil
	}); err != nil {
		return err
	}
	return end()
}

// segmentChunk is how much of a segment is in a row, before base64.
const segmentChunk = 600_000

// segmentRows are the rows of the run's segment: it has the kinds and statements of each second, with their
// distributions, and is no table by itself.
func (e *Export) segmentRows(_ context.Context, runID, _ string, each func(map[string]json.RawMessage) error) error {
	n := 0
	for chunk := range slices.Chunk(e.segment, segmentChunk) {
		r := Row{}
		r.set("run_id", runID)
		r.set("position", n)
		r.set("content", chunk)
		if err := each(r); err != nil {
			return err
		}
		n++
	}
	return nil
}

// readSegment reads the segment of a run, unless it, or a newer one, is still to be made. A run may have none.
func (e *Export) readSegment(ctx context.Context, runID string) error {
	// What is not pending now has left its segment: the other way around a segment could come in between.
	pending, err := e.IngestPending(ctx, runID)
	if err != nil {
		return err
	}
	if pending {
		return errIngestPending
	}
	e.segment, err = e.Record.LatestSegmentContent(ctx, runID)
	if errors.Is(err, store.ErrNotFound) {
		e.segment, err = nil, nil
	}
	return err
}

// digest tells whether the rows of a run have changed.
func (e *Export) digest(ctx context.Context, d *engine.RunDetail) (string, error) {
	sum := sha256.New()
	for _, name := range RunTables {
		if !e.schema.Has(name) {
			continue // which makes it another than that with them
		}
		sum.Write([]byte(name))
		if err := e.arrays(ctx, d, theSchema().byName[name], hashed(sum)); err != nil {
			return "", err
		}
	}
	return fingerprint(sum), nil
}

func fingerprint(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:16]) }

func hashed(sum hash.Hash) func([]byte) error {
	return func(array []byte) error { _, err := sum.Write(array); return err }
}

// writeRows replaces the rows of a run in one table, and adds what it writes to a digest: it may be newer than what the
// digest before was of.
func (e *Export) writeRows(ctx context.Context, t target.Tx, d *engine.RunDetail, o *object, sum hash.Hash) error {
	if o.name == Segments && e.segment == nil || o.name == Templates && d.TemplateID == "" {
		return nil // what was taken there before is better than nothing
	}
	if err := wipeRows(ctx, t, o.name, d); err != nil {
		return err
	}
	insert := o.insertInto()
	return e.arrays(ctx, d, o, func(array []byte) error {
		sum.Write(array)
		return t.Exec(ctx, insert, string(array))
	})
}

// wipeRows removes the rows of a run. A template is that of other runs, too: its row is replaced under a lock, and
// stays when a run goes.
func wipeRows(ctx context.Context, t target.Tx, table string, d *engine.RunDetail) error {
	if table != Templates {
		return t.Exec(ctx, "DELETE FROM "+table+" WHERE RUN_ID = ?", d.RunID)
	}
	if err := t.Exec(ctx, "UPDATE "+Runs+" SET EPOCH = EPOCH WHERE RUN_ID = '"+Templates+"'"); err != nil {
		return err
	}
	return t.Exec(ctx, "DELETE FROM "+Templates+" WHERE TEMPLATE_ID = ?", d.TemplateID)
}
