package snowflake

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/loadstone-db/loadstone/engine/target"
)

var _ target.Streamer = (*database)(nil)

// Stream implements target.Streamer. Its memory is the parts of the result that
// gosnowflake fetches ahead.
func (d *database) Stream(ctx context.Context, sql string, args []any, columns func(names []string) error,
	row func(values []any) error) error {
	if transfersFiles(sql) {
		return errFileTransfer
	}
	values := make([]driver.NamedValue, 0, len(args))
	var mode bindMode
	for i, a := range args {
		var err error
		if values, err = mode.appendArgument(values, a); err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	// What a caller refuses is not the session's fault, and is returned as it is.
	var refused error
	err := d.withSession(ctx, func(s session) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // so that parts of the result that nobody reads are not fetched
		rows, err := s.QueryContext(ctx, sql, values)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // what it leaves is not fetched
		types, err := columnTypes(rows)
		if err != nil {
			return err
		}
		if refused = columns(rows.Columns()); refused != nil {
			return nil
		}
		raw, out := make([]driver.Value, len(types)), make([]any, len(types))
		for {
			if err := rows.Next(raw); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			for i, v := range raw {
				out[i], _ = types[i].value(v)
			}
			if refused = row(out); refused != nil {
				return nil
			}
		}
	})
	if refused != nil {
		return refused
	}
	if err != nil {
		return d.userError("querying", err)
	}
	return nil
}
