package prepare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/target"
)

// maxKeys bounds the keys of a table, whatever the adapter asks for.
const maxKeys = 5_000_000

// minKeyRoom is what the keys of all tables may take however large their sampled rows are.
const minKeyRoom = 1 << 20

// errEnoughKeys ends the reading of keys.
var errEnoughKeys = errors.New("there are more keys than a run takes")

// readKeys reads the keys that the adapter has a query for, and notes how many of the table's rows they are. Without
// them operations choose among the rows of the pool, if that has the key.
// They take at most so many bytes.
func (p *planner) readKeys(ctx context.Context, name string, t *tableState, room int) error {
	q := t.keys
	if q == nil {
		t.table.KnownKeys = knownWithout(t)
		p.noteKeys(name, t)
		return nil
	}
	var types []engine.ValueType
	for _, column := range q.Columns {
		typ := engine.ValueType("")
		for _, c := range t.table.Columns {
			if c.Name == column {
				typ = c.Type
			}
		}
		if typ == "" {
			return pluginFailed(p.adapter.Info(), "inspecting "+name,
				fmt.Errorf("it reads keys of the column %q, which the table does not have", column))
		}
		types = append(types, typ)
	}
	limit := maxQueryTimeout
	if q.TimeoutMs > 0 {
		limit = time.Duration(min(q.TimeoutMs, maxQueryTimeout.Milliseconds())) * time.Millisecond
	}
	p.report(engine.PrepareProgress{Step: "keys", Message: "Reading keys of the table " + name})
	packer := engine.NewKeyPacker(q.Columns, types, int(min(max(q.Limit, 1), maxKeys)), room)
	qctx, cancel := context.WithTimeout(ctx, limit+time.Second)
	defer cancel()
	read := 0
	err := target.ReadRows(qctx, p.database, q.SQL, limit, func(values []any) error {
		if read++; read > 4*maxKeys {
			return errEnoughKeys
		}
		return packer.Add(values)
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("reading keys: %w", ctx.Err())
	case err != nil:
		t.table.KnownKeys = knownWithout(t)
		p.note(fmt.Sprintf("The keys of the table %s could not be read (%s).", name,
			readable([]string{executions.Mask(p.database.Classify(err).Message)})[0]))
		p.noteKeys(name, t)
		return nil
	}
	if n := packer.Unusable(); n > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%d rows of %s are not looked up: their key is NULL, or a value that "+
			"operations cannot carry (a time of infinity, of years before 1 or after 9999; an integer beyond 64 bits).", n,
			name))
	}
	if keys := packer.Keys(); keys.Len() > 0 {
		if t.pool == nil {
			t.pool = &engine.Pool{Table: t.table.Name, Columns: []string{}, Rows: [][]any{}}
		}
		t.pool.Keys = keys
		t.table.KnownKeys = int64(keys.Len())
		t.lowered = packer.Lowered()
	}
	p.noteKeys(name, t)
	return nil
}

// keyRoom is how many bytes the keys of a table take at most: its share of what the tables before it, and the sampled
// rows of all of them, have left.
func keyRoom(state []tableState, at int) int {
	left, tables := engine.MaxPackedKeys, 0
	for i := range state {
		for _, pool := range []*engine.Pool{state[i].pool, state[i].values, state[i].free} {
			if pool != nil {
				left -= sizeOfRows(pool.Rows) + pool.Keys.Bytes()
			}
		}
		if i >= at && state[i].keys != nil {
			tables++
		}
	}
	// Rows alone are fewer than that; a few keys are known whatever they take.
	return max(left/max(tables, 1), minKeyRoom/max(len(state), 1))
}

// knownWithout is how many keys are known where none were read: those of the part without gaps, or else of the pool's
// rows, 0 where those do not hold the key.
func knownWithout(t *tableState) int64 {
	if t.table.Dense || len(t.table.Key) == 0 {
		return 0
	}
	if low, high := t.table.KeyMin, t.table.DenseMax; low != nil && high != nil && *high >= *low {
		return *high - *low + 1
	}
	if t.pool == nil {
		return 0
	}
	for _, k := range t.table.Key {
		found := false
		for _, c := range t.pool.Columns {
			found = found || c == k
		}
		if !found {
			return 0
		}
	}
	return int64(len(t.pool.Rows))
}

// note adds a sentence that belongs beside the figures, too.
func (p *planner) note(sentence string) {
	p.notes, p.remarks = append(p.notes, sentence), append(p.remarks, sentence)
}

// noteKeys says how many keys of how many rows operations choose among, where it is not all.
func (p *planner) noteKeys(name string, state *tableState) {
	t, spread := state.table, ", spread over all of it"
	if state.pool == nil || state.pool.Keys.Len() == 0 {
		spread = ""
	}
	if !state.anyShape {
		return // a workload of its own table computes its keys
	}
	// An estimate may be a little off.
	if t.KnownKeys == 0 || t.KnownKeys >= t.Rows || !t.RowsExact && t.KnownKeys > t.Rows-t.Rows/50 {
		return
	}
	why := "target.params.key_sample says how many are read."
	if state.lowered {
		why = fmt.Sprintf("More do not fit into what a node is sent (%d MB for the keys and rows of all tables together), "+
			"whatever target.params.key_sample says.", engine.MaxPackedKeys>>20)
	}
	p.note(fmt.Sprintf("Operations choose among %d keys of the %s%d rows of the table %s%s: the others are not asked "+
		"for. %s", t.KnownKeys, about(t.RowsExact), t.Rows, name, spread, why))
}
