// Package sample makes what a plugin is tried on without a database: tables out of its own
// declaration, keys of them, and a feed.
package sample

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Rows is how many rows a sample table has that does not say it itself.
const Rows = 10_000

// Tables make the tables that a workload declares, as if its own number of
// rows had been loaded, or 10 000 where it leaves that open.
func Tables(declared []plugin.LogicalTable) []engine.Table {
	tables := []engine.Table{}
	for _, t := range declared {
		lo, hi := int64(1), int64(Rows)
		if t.Rows > 0 || t.Empty {
			hi = t.Rows
		}
		table := engine.Table{Name: t.Name, PhysicalName: t.Name, Key: append([]string{}, t.Key...), Rows: hi,
			RowsExact: true,
			Columns:   []engine.Column{}}
		for _, c := range t.Columns {
			table.Columns = append(table.Columns,
				engine.Column{Name: c.Name, Type: c.Type, DBType: string(c.Type), Nullable: c.Nullable})
			if len(t.Key) == 1 && t.Key[0] == c.Name && c.Type == engine.TypeI64 && hi > 0 {
				table.KeyMin, table.KeyMax, table.Dense = &lo, &hi, true
			}
		}
		tables = append(tables, table)
	}
	return tables
}

// Pools gives sampled keys of the tables whose keys are not one dense integer:
// those of the plugin's own sample rows, where it makes some.
func Pools(ctx context.Context, w plugin.Workload, params json.RawMessage, declared []plugin.LogicalTable,
	tables []engine.Table) []engine.Pool {
	pools, room := []engine.Pool{}, maxPools
	for n, t := range tables {
		if t.Dense || len(t.Key) == 0 || declared[n].ComputedKeys {
			continue
		}
		p := engine.Pool{Table: t.Name, Columns: t.Key}
		rows, err := w.Rows(ctx, params, n, 0, 100)
		for i := range 100 {
			if err == nil && i >= rows.Len() || room <= 0 {
				break
			}
			var row []any
			for _, k := range t.Key {
				for at, c := range t.Columns {
					switch {
					case c.Name != k:
					case err == nil:
						row = append(row, poolValue(rows.Value(i, at)))
					default:
						row = append(row, sampleValue(c.Type, i))
					}
				}
			}
			for _, v := range row {
				room -= sizeOf(v)
			}
			p.Rows = append(p.Rows, row)
		}
		pools = append(pools, p)
	}
	return pools
}

// maxPools is how many bytes of sampled keys a stream is opened with.
const maxPools = 1 << 20

// sizeOf is about how long a key is as JSON.
func sizeOf(v any) int {
	if s, ok := v.(string); ok {
		return len(s) + 2
	}
	return 20
}

// poolValue writes a value as an adapter's sample holds it.
func poolValue(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UnixMicro()
	case []byte:
		return hex.EncodeToString(v)
	}
	return v
}

func sampleValue(t engine.ValueType, i int) any {
	switch t {
	case engine.TypeI64, engine.TypeF64:
		return i
	case engine.TypeTimestamp:
		return 1_704_067_200_000_000 + int64(i)*1_000_000
	case engine.TypeBool:
		return i%2 == 0
	case engine.TypeBytes:
		return fmt.Sprintf("%08x", i)
	}
	return fmt.Sprintf("key-%04d", i)
}
