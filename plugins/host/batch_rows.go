package host

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// batchRows are decoded sample rows.
type batchRows struct {
	batch plugin.Batch
	width int
}

var _ plugin.Rows = (*batchRows)(nil)

func (r *batchRows) Len() int { return len(r.batch.Ops) }

// Value returns column c of row i. It panics when there is no such value.
func (r *batchRows) Value(i, c int) any {
	v := r.batch.Args[i*r.width+c]
	switch v.Type {
	case "i64":
		return v.I
	case "f64":
		return v.F
	case "text":
		return string(r.batch.Bytes(v))
	case "bytes":
		return r.batch.Bytes(v)
	case "bool":
		return v.I == 1
	case "timestamp":
		return time.UnixMicro(v.I).UTC()
	}
	return nil
}

// decodeRows checks a batch of sample rows against the columns of its table. The rows keep data.
func decodeRows(data []byte, columns []plugin.LogicalColumn, limit int) (plugin.Rows, error) {
	nops, err := abi.Header(data)
	if err != nil {
		return nil, err
	}
	if nops == 0 || int64(nops) > int64(limit) {
		return nil, fmt.Errorf("it holds %d rows, 1 to %d were asked for", nops, limit)
	}
	types := make([]uint8, len(columns))
	for i, c := range columns {
		types[i], _ = abi.ParseType(string(c.Type))
	}
	r := &batchRows{width: len(columns)}
	r.batch.Data = data
	r.batch.Ops = make([]plugin.Op, 0, min(int(nops), len(data)/3+1))
	r.batch.Args = make([]plugin.Value, 0, min(int(nops)*len(columns), len(data)+1))
	pos := abi.HeaderSize
	for i := 0; i < int(nops); i++ {
		if len(data)-pos < 3 {
			return nil, fmt.Errorf("row %d is cut off", i)
		}
		// The statement of a row says nothing and is not looked at.
		nargs := int(data[pos+2])
		pos += 3
		if nargs != len(columns) {
			return nil, fmt.Errorf("row %d has %d values, the table has %d columns", i, nargs, len(columns))
		}
		r.batch.Ops = append(r.batch.Ops, plugin.Op{FirstArg: uint32(len(r.batch.Args)), NArgs: uint16(nargs)})
		for c, want := range types {
			var v plugin.Value
			if v, pos, err = readValue(data, pos, want); err != nil {
				return nil, fmt.Errorf("row %d, column %q: %w", i, columns[c].Name, err)
			}
			if v.Type == "" && !columns[c].Nullable {
				return nil, fmt.Errorf("row %d, column %q: NULL in a column that is not nullable", i, columns[c].Name)
			}
			r.batch.Args = append(r.batch.Args, v)
		}
	}
	if pos != len(data) {
		return nil, fmt.Errorf("%d bytes follow the last row", len(data)-pos)
	}
	return r, nil
}
