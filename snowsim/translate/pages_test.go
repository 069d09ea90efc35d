package translate

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/history"
)

// TestHistoryPages: pages by end time give every execution once, also where many end at
// one moment.
func TestHistoryPages(t *testing.T) {
	store := history.New(history.Options{Short: -1})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const n = 25_000
	for i := range n {
		end := now.Add(-time.Duration((n-i)/3) * time.Millisecond)
		r := history.Record{Context: history.Context{SessionID: 7, User: "ANNA", Warehouse: "WH"}, Text: "SELECT 1",
			QueryType: "SELECT", Start: end.Add(-20 * time.Millisecond), End: end}
		r.QueryID[0], r.QueryID[13], r.QueryID[14], r.QueryID[15] = 1, byte(i>>16), byte(i>>8), byte(i)
		store.Add(&r)
	}
	next := executions(store, history.Filter{Limit: -1, Now: now.Add(time.Minute)})
	seen := map[[16]byte]bool{}
	for r, ok := next(); ok; r, ok = next() {
		if seen[r.QueryID] {
			t.Fatal("an execution came twice")
		}
		seen[r.QueryID] = true
	}
	if len(seen) != n {
		t.Errorf("%d executions", len(seen))
	}
}
