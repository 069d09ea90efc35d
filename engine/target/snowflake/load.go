package snowflake

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Load inserts rows by array binds: one INSERT for thousands of rows, whose values
// travel in the request. All statements are one transaction.
//
// gosnowflake can write larger binds to a file, upload it to a temporary stage and have
// Snowflake read it from there. That is not used: it takes a privilege (CREATE STAGE),
// requests to a cloud's storage and temporary files, and sample data in quantity is made
// on the server by the adapters, with GENERATOR. Statements below the size from which
// gosnowflake would do so by itself are as fast one by one.
const (
	// loadValues is how many values one statement has at most; gosnowflake's own threshold is 65280.
	loadValues = 64_000
	// loadBytes bounds their text.
	loadBytes = 8 << 20
)

// batch collects rows by column.
type batch struct {
	columns []engine.Column
	values  [][]any
	rows    int
	bytes   int
}

func newBatch(columns []engine.Column) *batch {
	return &batch{columns: columns, values: make([][]any, len(columns))}
}

func (b *batch) full() bool { return (b.rows+1)*len(b.columns) > loadValues || b.bytes >= loadBytes }

func (b *batch) reset() {
	for i := range b.values {
		b.values[i] = b.values[i][:0]
	}
	b.rows, b.bytes = 0, 0
}

func (b *batch) add(rows plugin.Rows, r int) error {
	for c := range b.columns {
		v := rows.Value(r, c)
		switch x := v.(type) {
		case nil, int64, float64, bool:
			b.bytes += 10
		case int:
			v = int64(x)
			b.bytes += 10
		case string:
			b.bytes += len(x)
		case []byte:
			b.bytes += 2 * len(x)
		case time.Time:
			v = x.UTC()
			b.bytes += 20
		case fmt.Stringer: // json.Number, decimals
			v = x.String()
			b.bytes += 20
		default:
			return fmt.Errorf("column %s: a %T cannot be loaded", b.columns[c].Name, v)
		}
		b.values[c] = append(b.values[c], v)
	}
	b.rows++
	return nil
}

// mixed reports that the values of a column have more than one type: gosnowflake
// gives an array one type, that of its last value. They travel as text then.
func mixed(values []any) bool {
	kind := 0
	for _, v := range values {
		k := 0
		switch v.(type) {
		case nil:
			continue
		case int64:
			k = 1
		case float64:
			k = 2
		case bool:
			k = 3
		case string:
			k = 4
		case []byte:
			k = 5
		case time.Time:
			k = 6
		}
		if kind != 0 && kind != k {
			return true
		}
		kind = k
	}
	return false
}

// textOf writes a value as Snowflake reads it from text.
func textOf(v any) any {
	switch v := v.(type) {
	case int64, bool:
		return fmt.Sprint(v)
	case float64:
		return floatText(v)
	case time.Time:
		return v.Format("2006-01-02 15:04:05.999999999")
	case []byte:
		return fmt.Sprintf("%X", v)
	}
	return v
}

func (b *batch) binds() ([]driver.NamedValue, error) {
	out := make([]driver.NamedValue, len(b.values))
	for i, values := range b.values {
		if mixed(values) {
			for j, v := range values {
				values[j] = textOf(v)
			}
		}
		array, err := sf.Array(values, sf.TimestampNTZType)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", b.columns[i].Name, err)
		}
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: array}
	}
	return out, nil
}

// quoteName writes a column's name, which is as the database has it.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// insertInto is the statement of Load. table is as the adapter wrote it, quoted where it has to be.
func insertInto(table string, columns []engine.Column) string {
	var names, marks strings.Builder
	for i, c := range columns {
		if i > 0 {
			names.WriteString(", ")
			marks.WriteString(", ")
		}
		names.WriteString(quoteName(c.Name))
		marks.WriteString("?")
	}
	return "INSERT INTO " + table + " (" + names.String() + ") VALUES (" + marks.String() + ")"
}

// Load copies rows into a table; see the comment above.
func (d *database) Load(ctx context.Context, table string, columns []engine.Column, next func() (plugin.Rows, error),
	progress func(rows int64)) (int64, error) {
	if len(columns) == 0 {
		return 0, errors.New("loading: the table has no columns to write")
	}
	s, err := d.borrow(ctx, false)
	if err != nil {
		return 0, err
	}
	n, err := d.load(ctx, s, insertInto(table, columns), newBatch(columns), next, progress)
	d.give(s, err)
	if err != nil {
		return 0, d.userError("loading", err)
	}
	return n, nil
}

func (d *database) load(ctx context.Context, s session, insert string, b *batch, next func() (plugin.Rows, error),
	progress func(rows int64)) (total int64, err error) {
	defer func() {
		if err == nil || breaksSession(err) {
			return // the session goes, and its transaction with it
		}
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if _, failed := s.ExecContext(undo, "ROLLBACK", nil); failed != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", errNotUndone, failed))
		}
	}()
	// Also a BEGIN whose answer is an error may have been executed.
	if _, err := s.ExecContext(ctx, "BEGIN", nil); err != nil {
		return 0, err
	}
	flush := func() error {
		if b.rows == 0 {
			return nil
		}
		args, err := b.binds()
		if err != nil {
			return err
		}
		r, err := s.ExecContext(ctx, insert, args)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n != int64(b.rows) {
			return fmt.Errorf("%d rows were sent and %d inserted: %w", b.rows, n, errors.Join(err, errIncomplete))
		}
		total += int64(b.rows)
		b.reset()
		if progress != nil {
			progress(total)
		}
		return nil
	}
	for {
		rows, err := next()
		if err != nil {
			return 0, err
		}
		if rows == nil {
			break
		}
		for r := range rows.Len() {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			if b.full() {
				if err := flush(); err != nil {
					return 0, err
				}
			}
			if err := b.add(rows, r); err != nil {
				return 0, err
			}
		}
	}
	if err := flush(); err != nil {
		return 0, err
	}
	if _, err := s.ExecContext(ctx, "COMMIT", nil); err != nil {
		return 0, err
	}
	return total, nil
}

var (
	errIncomplete = errors.New("the account inserted another number of rows")
	errNotUndone  = errors.New("what was executed could not be taken back at once; it goes with the session")
)
