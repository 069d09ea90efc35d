package prepare

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// keyDatabase has so many keys: texts of a width.
type keyDatabase struct {
	fakeDatabase
	keys, width int
}

// ReadRows implements target.RowReader.
func (d keyDatabase) ReadRows(_ context.Context, _ string, _ time.Duration, row func([]any) error) error {
	for i := range d.keys {
		if err := row([]any{fmt.Sprintf("%0*d", d.width, i)}); err != nil {
			return err
		}
	}
	return nil
}

// readsKeys reads the keys of so many tables, and of sampled rows with them, as Plan does.
func readsKeys(t *testing.T, d keyDatabase, tables int, limit int64, rows [][]any) (*planner, []tableState) {
	t.Helper()
	p := &planner{resolved: &resolved{database: d}}
	state := make([]tableState, tables)
	for i := range state {
		state[i] = tableState{exists: true, anyShape: true, keys: &plugin.KeyQuery{SQL: "k", Columns: []string{"id"},
			Limit: limit}, table: &engine.Table{Name: fmt.Sprint("t", i), Key: []string{"id"}, Rows: int64(d.keys),
			RowsExact: true, Columns: []engine.Column{{Name: "id", Type: engine.TypeText}}}}
		if rows != nil {
			state[i].values = &engine.Pool{Table: state[i].table.Name, Columns: []string{"c"}, Rows: rows, Values: true}
		}
	}
	for i := range state {
		if err := p.readKeys(t.Context(), state[i].table.Name, &state[i], keyRoom(state, i)); err != nil {
			t.Fatal(err)
		}
		if state[i].pool == nil || state[i].table.KnownKeys < 1000 {
			t.Fatalf("table %d: %d keys are known", i, state[i].table.KnownKeys)
		}
	}
	return p, state
}

// TestTheKeysOfAPlanFitIntoAMessageToANode: the default sample of long texts is halved until it does, and so is one that
// the user asked for; what is left out is told.
func TestTheKeysOfAPlanFitIntoAMessageToANode(t *testing.T) {
	var values [][]any
	for range 40_000 {
		values = append(values, []any{strings.Repeat("v", 150)})
	}
	for _, c := range []struct {
		tables, keys, width int
		limit               int64
		rows                [][]any
		known               int64
	}{
		{1, 250_000, 100, 250_000, nil, 125_000},
		{1, 20_000, 100, 250_000, nil, 20_000},
		{1, 600_000, 40, 5_000_000, nil, 300_000},
		{3, 100_000, 100, 250_000, nil, 50_000},
		{2, 100_000, 100, 250_000, values, 12_500},
	} {
		p, state := readsKeys(t, keyDatabase{keys: c.keys, width: c.width}, c.tables, c.limit, c.rows)
		for i := range state {
			if err := p.keepSamples(state[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := (protocol.AssignRun{Plan: &engine.Plan{Pools: p.pools}}).Fits(); err != nil {
			text, _ := json.Marshal(p.pools)
			t.Errorf("%+v: %d bytes: %v", c.limit, len(text), err)
		}
		if state[0].table.KnownKeys != c.known {
			t.Errorf("%d tables of %d keys: %d are known", c.tables, c.keys, state[0].table.KnownKeys)
		}
		told := strings.Contains(
			strings.Join(p.remarks, " "),
			fmt.Sprintf("among %d keys of the %d rows", c.known, c.keys),
		) &&
			strings.Contains(strings.Join(p.remarks, " "), "More do not fit")
		if told != (c.known < int64(c.keys)) {
			t.Errorf("%d of %d keys are known, and it says %q", c.known, c.keys, p.remarks)
		}
	}
}
