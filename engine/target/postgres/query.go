package postgres

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
)

// Query runs one SQL text. Arguments travel as text and take the type the
// server infers for the parameter.
func (d *database) Query(ctx context.Context, sql string, args ...any) (*target.ResultSet, error) {
	c, err := d.borrow(ctx)
	if err != nil {
		return nil, err
	}
	defer d.give(c)
	rs, err := query(ctx, c, sql, args)
	if known := cmp.Or(explained(err), d.foreign(ctx, c, err)); known != nil {
		return nil, known
	}
	return rs, err
}

// Exec runs the texts one after the other and stops at the first that fails.
func (d *database) Exec(ctx context.Context, sql ...string) error {
	c, err := d.borrow(ctx)
	if err != nil {
		return err
	}
	defer d.give(c)
	for _, text := range sql {
		if err := execAll(ctx, c, text); err != nil {
			if known := cmp.Or(explained(err), d.foreign(ctx, c, err)); known != nil {
				return known
			}
			return fmt.Errorf("executing %q: %w", shorten(text), err)
		}
	}
	return nil
}

func shorten(s string) string {
	const limit = 200
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

func query(ctx context.Context, c *pgconn.PgConn, sql string, args []any) (*target.ResultSet, error) {
	// Ending ctx is how the rest of the rows is left unread; the connection ends with it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.Frontend().SetMaxBodyLen(target.MaxResult)
	defer c.Frontend().SetMaxBodyLen(0)
	values := make([][]byte, len(args))
	for i, a := range args {
		text, err := textArgument(a)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		values[i] = text
	}
	return readResult(c.ExecParams(ctx, sql, values, nil, nil, nil), target.MaxResult, cancel)
}

// readResult reads the rows of a result of at most so many bytes; cancel leaves the rest of it unread.
func readResult(r *pgconn.ResultReader, maxBytes int, cancel func()) (*target.ResultSet, error) {
	rs := &target.ResultSet{Columns: []string{}, Rows: [][]any{}}
	for _, f := range r.FieldDescriptions() {
		rs.Columns = append(rs.Columns, f.Name)
	}
	types := pgtype.NewMap()
	var decodeErr error
	size := 0
	for r.NextRow() {
		fields := r.FieldDescriptions()
		row := make([]any, len(fields))
		size += rowSize
		values := r.Values()
		if len(values) != len(fields) {
			cancel()
			_, _ = r.Close()
			return nil, errShape
		}
		for i, raw := range values {
			size += rowSize + len(raw)
			v, err := decodeText(types, fields[i].DataTypeOID, raw)
			if err != nil && decodeErr == nil {
				decodeErr = fmt.Errorf("reading column %s: %w", fields[i].Name, err)
			}
			row[i] = v
		}
		if size > maxBytes {
			cancel()
			_, _ = r.Close()
			return nil, fmt.Errorf("querying: %w", target.ErrTooLarge)
		}
		rs.Rows = append(rs.Rows, row)
	}
	var oversize *pgproto3.ExceededMaxBodyLenErr
	if _, err := r.Close(); errors.As(err, &oversize) {
		return nil, fmt.Errorf("querying: %w", target.ErrTooLarge)
	} else if err != nil {
		return nil, fmt.Errorf("querying: %w", err)
	}
	return rs, decodeErr
}

// errShape is of an answer with other columns than the question has: no Postgres gives one, but a target need not be
// one.
var errShape = errors.New("the server answered with other columns than were asked for, as no Postgres does")

// shaped refuses an answer of which a row has other columns than were asked for.
func shaped(rs *target.ResultSet, columns int) error {
	for _, row := range rs.Rows {
		if len(row) != columns {
			return errShape
		}
	}
	return nil
}

// eachRow runs one SQL text and calls row for each row of its result as it arrives.
func eachRow(ctx context.Context, c *pgconn.PgConn, sql string, row func(values []any) error) error {
	// Ending ctx is how the rest of the rows is left unread; the connection ends with it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.Frontend().SetMaxBodyLen(target.MaxResult)
	defer c.Frontend().SetMaxBodyLen(0)
	r := c.ExecParams(ctx, sql, nil, nil, nil, nil)
	types := pgtype.NewMap()
	var values []any
	for r.NextRow() {
		values = values[:0]
		fields := r.FieldDescriptions()
		if len(r.Values()) != len(fields) {
			cancel()
			_, _ = r.Close()
			return errShape
		}
		for i, raw := range r.Values() {
			v, err := decodeText(types, fields[i].DataTypeOID, raw)
			if err == nil {
				values = append(values, v)
				continue
			}
			cancel()
			_, _ = r.Close()
			return fmt.Errorf("reading column %s: %w", fields[i].Name, err)
		}
		if err := row(values); err != nil {
			cancel()
			_, _ = r.Close()
			return err
		}
	}
	if _, err := r.Close(); err != nil {
		return fmt.Errorf("querying: %w", err)
	}
	return nil
}

// rowSize is about what a row, and each value of it, takes besides its text.
const rowSize = 24

func textArgument(a any) ([]byte, error) {
	switch v := a.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(v), nil
	case []byte:
		return []byte(`\x` + hex.EncodeToString(v)), nil
	case bool:
		return strconv.AppendBool(nil, v), nil
	case int:
		return strconv.AppendInt(nil, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(nil, v, 10), nil
	case float64:
		return strconv.AppendFloat(nil, v, 'f', -1, 64), nil
	case json.Number:
		return []byte(v), nil
	case time.Time:
		return wire.AppendTime(nil, v), nil
	}
	return nil, fmt.Errorf("a %T cannot be sent", a)
}

// decodeText gives what target.ResultSet promises; types it does not know stay text.
func decodeText(types *pgtype.Map, oid uint32, raw []byte) (any, error) {
	if raw == nil {
		return nil, nil
	}
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		return strconv.ParseInt(string(raw), 10, 64)
	case pgtype.Float4OID, pgtype.Float8OID:
		return strconv.ParseFloat(string(raw), 64)
	case pgtype.BoolOID:
		return len(raw) == 1 && raw[0] == 't', nil
	case pgtype.TimestamptzOID, pgtype.TimestampOID, pgtype.DateOID:
		var t time.Time
		if types.Scan(oid, pgtype.TextFormatCode, raw, &t) == nil {
			return t.UTC(), nil
		} // else infinity, or before the common era: text
	}
	return string(raw), nil
}
