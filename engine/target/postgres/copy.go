package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
)

// progressInterval is how often Load reports at most.
const progressInterval = 250 * time.Millisecond

// Load streams rows through one COPY, or through INSERTs where the server takes none, which is one transaction: all
// rows or none. The format is binary when every column's type has a binary path here.
// next runs on another goroutine than the caller's, never concurrently with
// itself and never after Load has returned.
func (d *database) Load(ctx context.Context, table string, columns []engine.Column, next func() (plugin.Rows, error),
	progress func(rows int64)) (int64, error) {
	if len(columns) == 0 {
		return 0, fmt.Errorf("loading %s: no columns", table)
	}
	c, err := d.borrow(ctx)
	if err != nil {
		return 0, err
	}
	defer d.give(c)
	names := make([]string, len(columns))
	for i, col := range columns {
		names[i] = pgx.Identifier{col.Name}.Sanitize()
	}
	list := strings.Join(names, ", ")
	description, err := c.Prepare(ctx, "", "SELECT "+list+" FROM "+table+" LIMIT 0", nil)
	if err != nil {
		return 0, fmt.Errorf("loading %s: %w", table, err)
	}
	r := &rowReader{ctx: ctx, next: next, columns: columns, oids: make([]uint32, len(columns)), types: pgtype.NewMap(),
		progress: progress, binary: true}
	for i, f := range description.Fields {
		r.oids[i] = f.DataTypeOID
		r.binary = r.binary && copiesBinary(f.DataTypeOID)
	}
	if ok, err := copies(ctx, c); err != nil {
		return 0, fmt.Errorf("loading %s: %w", table, err)
	} else if !ok {
		rows, err := r.insert(ctx, c, table, list)
		if err != nil {
			return 0, fmt.Errorf("loading %s: %w", table, err)
		}
		if progress != nil {
			progress(rows)
		}
		return rows, nil
	}
	if r.binary {
		r.buf = append(r.buf, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	}
	format := "text"
	if r.binary {
		format = "binary"
	}
	tag, err := c.CopyFrom(ctx, r, "COPY "+table+" ("+list+") FROM STDIN (FORMAT "+format+")")
	r.end()
	if r.err != nil {
		// The server only repeats that the client gave up.
		return 0, fmt.Errorf("loading %s: %w", table, r.err)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return 0, fmt.Errorf("loading %s: %w", table, err)
	}
	if progress != nil {
		progress(tag.RowsAffected())
	}
	return tag.RowsAffected(), nil
}

func copiesBinary(oid uint32) bool {
	switch oid {
	case pgtype.NumericOID, pgtype.JSONOID, pgtype.JSONBOID:
		return true
	}
	return wire.FormOf(oid) != wire.FormText
}

// rowReader encodes rows as COPY data, as the connection asks for them.
type rowReader struct {
	ctx      context.Context
	next     func() (plugin.Rows, error)
	columns  []engine.Column
	oids     []uint32
	types    *pgtype.Map
	progress func(int64)
	binary   bool

	mu   sync.Mutex
	over bool
	buf  []byte
	off  int
	rows int64
	told time.Time
	done bool
	err  error
}

// end waits for a Read under way and makes later ones fail: a COPY that the
// server or the context ends may leave its reading goroutine behind.
func (r *rowReader) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
}

func (r *rowReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return 0, io.ErrClosedPipe
	}
	for r.off == len(r.buf) {
		if r.err != nil {
			return 0, r.err
		}
		if r.done {
			return 0, io.EOF
		}
		r.buf, r.off = r.buf[:0], 0
		if r.err = r.fill(); r.err != nil {
			return 0, r.err
		}
	}
	n := copy(p, r.buf[r.off:])
	r.off += n
	return n, nil
}

func (r *rowReader) fill() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	rows, err := r.next()
	if err != nil {
		return err
	}
	if rows == nil {
		r.done = true
		if r.binary {
			r.buf = append(r.buf, 0xff, 0xff)
		}
		return nil
	}
	for i := range rows.Len() {
		if err := r.row(rows, i); err != nil {
			return err
		}
		r.rows++
	}
	r.report()
	return nil
}

// report tells the rows so far, now and then.
func (r *rowReader) report() {
	if now := time.Now(); r.progress != nil && now.Sub(r.told) >= progressInterval {
		r.told = now
		r.progress(r.rows)
	}
}

func (r *rowReader) row(rows plugin.Rows, i int) error {
	if r.binary {
		r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(len(r.columns)))
	}
	for c := range r.columns {
		v := rows.Value(i, c)
		var err error
		if r.binary {
			r.buf, err = appendCopyBinary(r.buf, r.types, r.oids[c], v)
		} else {
			if c > 0 {
				r.buf = append(r.buf, '\t')
			}
			r.buf, err = appendCopyText(r.buf, v)
		}
		if err != nil {
			return fmt.Errorf("row %d, column %s: %w", r.rows+1, r.columns[c].Name, err)
		}
	}
	if !r.binary {
		r.buf = append(r.buf, '\n')
	}
	return nil
}

// appendCopyBinary encodes one value. The direct paths are those of bulk data;
// pgtype knows the rest (text for a number, numerics, JSON …).
func appendCopyBinary(out []byte, types *pgtype.Map, oid uint32, v any) ([]byte, error) {
	f := wire.FormOf(oid)
	switch v := v.(type) {
	case nil:
		return append(out, 0xff, 0xff, 0xff, 0xff), nil
	case int64:
		if next, format := wire.AppendInt(out, v, f); format == wire.BinaryFormat || f == wire.FormRaw {
			return next, nil
		}
	case float64:
		if next, format := wire.AppendFloat(out, v, f); format == wire.BinaryFormat || f == wire.FormRaw {
			return next, nil
		}
	case string:
		if f == wire.FormRaw || f == wire.FormBytea {
			return append(binary.BigEndian.AppendUint32(out, uint32(len(v))), v...), nil
		}
	case []byte:
		if f == wire.FormRaw || f == wire.FormBytea || f == wire.FormUUID && len(v) == 16 {
			return append(binary.BigEndian.AppendUint32(out, uint32(len(v))), v...), nil
		}
	case bool:
		if f == wire.FormBool {
			b := byte(0)
			if v {
				b = 1
			}
			return append(out, 0, 0, 0, 1, b), nil
		}
	case time.Time:
		if f == wire.FormTimestamp || f == wire.FormDate {
			next, _ := wire.AppendTimestamp(out, v.UnixMicro(), f)
			return next, nil
		}
	}
	// The rest goes the way a bind goes: through the type's text input.
	at := len(out)
	text, err := textArgument(v)
	if err == nil {
		if b, ok := v.([]byte); ok {
			text = b
		}
		if f == wire.FormRaw {
			return append(binary.BigEndian.AppendUint32(out, uint32(len(text))), text...), nil
		}
		var next []byte
		if next, err = viaText(types, oid, string(text), append(out, 0, 0, 0, 0)); err == nil {
			return wire.PutLength(next, at), nil
		}
	}
	return out[:at], fmt.Errorf("the value %v does not fit the column's type", shorten(fmt.Sprint(v)))
}

// viaText appends the binary form of what the server would read from s.
func viaText(types *pgtype.Map, oid uint32, s string, out []byte) ([]byte, error) {
	if oid == pgtype.BoolOID {
		// pgtype takes whatever does not begin with t for false.
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "t", "true", "y", "yes", "on", "1":
			return append(out, 1), nil
		case "f", "false", "n", "no", "off", "0":
			return append(out, 0), nil
		}
		return nil, fmt.Errorf("%q is not a boolean", s)
	}
	t, ok := types.TypeForOID(oid)
	if !ok {
		return nil, fmt.Errorf("type %d is unknown", oid)
	}
	v, err := t.Codec.DecodeValue(types, oid, pgtype.TextFormatCode, []byte(s))
	if err != nil {
		return nil, err
	}
	return types.Encode(oid, pgtype.BinaryFormatCode, v, out)
}

func appendCopyText(out []byte, v any) ([]byte, error) {
	if v == nil {
		return append(out, `\N`...), nil
	}
	text, err := textArgument(v)
	if err != nil {
		return out, err
	}
	return wire.AppendEscaped(out, text)
}
