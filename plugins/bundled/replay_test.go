package bundled_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/worker/replay"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

const replayed = `"statements":[{"id":"find","sql":"SELECT :b, :a","binds":[{"name":"a","type":"i64"},{"name":"b"}]}]`

// openReplay opens the replay plugin on a CSV text.
func openReplay(t *testing.T, params, text string) (plugin.Stream, []plugin.Statement) {
	t.Helper()
	ctx := context.Background()
	w, err := hosttest.Bundled(t).Workload(ctx, "replay")
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Statements(ctx, json.RawMessage(params), nil)
	if err != nil {
		t.Fatal(err)
	}
	var frozen []engine.Statement
	for _, s := range list {
		frozen = append(frozen, engine.Statement{ID: s.ID, Kind: s.Kind, SQL: s.SQL["postgres"], Binds: s.Binds,
			Columns: s.Columns, Writes: s.Writes})
	}
	req := plugin.OpenRequest{KeySlots: 4, Params: json.RawMessage(params)}
	if text != "" {
		req.Feed = replay.NewCSV(text, frozen, 0, 1)
	}
	s, err := w.Open(ctx, req, frozen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, list
}

// TestReplayThroughWasm feeds the compiled plugin thousands of lines, in several
// chunks, and finds each at its time.
func TestReplayThroughWasm(t *testing.T) {
	t.Parallel()
	const lines = 3000
	var text strings.Builder
	for i := range lines {
		if i%10 == 9 {
			fmt.Fprintf(&text, "%v,BEGIN\n%v,find,%d,x\n%v,find,%d,y\n%v,COMMIT\n", float64(i)/8, float64(i)/8, i, float64(i)/8,
				i, float64(i)/8)
			continue
		}
		fmt.Fprintf(&text, "%v,find,%d,\"v,%d\"\n", float64(i)/8, i, i)
	}
	for speed, scale := range map[string]float64{"1": 1, "0.5": 2, "3": 1.0 / 3, "0": 0} {
		s, list := openReplay(t, `{"speed":`+speed+`,`+replayed+`}`, text.String())
		if list[0].SQL["postgres"] != "SELECT $2, $1" {
			t.Fatalf("the SQL is %s", list[0].SQL["postgres"])
		}
		var b plugin.Batch
		var at time.Duration
		next, ended := 0, false
		for !ended {
			err := s.Fill(&b, 64)
			if ended = errors.Is(err, plugin.ErrEnded); err != nil && !ended {
				t.Fatal(err)
			}
			for i, op := range b.Ops {
				at += op.Delay
				if op.Statement != 0 || i > 0 && b.Ops[i-1].Statement == 0 && next%10 == 0 && next > 0 &&
					b.Args[op.FirstArg].I == int64(next-1) {
					continue // a control statement, or the second one of a transaction
				}
				if got := b.Args[op.FirstArg].I; got != int64(next) {
					t.Fatalf("operation %d where %d is due", got, next)
				}
				due := time.Duration(float64(next) / 8 * scale * float64(time.Millisecond))
				if off := (at - due).Abs(); off > 2*time.Microsecond {
					t.Fatalf("speed %s: operation %d at %v, due at %v", speed, next, at, due)
				}
				next++
			}
		}
		if next != lines {
			t.Errorf("speed %s: %d of %d operations", speed, next, lines)
		}
	}
}

func TestReplayNeedsAFeed(t *testing.T) {
	t.Parallel()
	s, _ := openReplay(t, `{`+replayed+`}`, "")
	var b plugin.Batch
	if err := s.Fill(&b, 64); err == nil || !errors.Is(err, plugin.ErrFailed) ||
		!strings.Contains(err.Error(), "set workload.feed") {
		t.Errorf("without a feed: %v", err)
	}
	s, _ = openReplay(t, `{`+replayed+`}`, "0,find,1,a\n1,find,two,b\n")
	if err := s.Fill(&b, 64); err == nil || !strings.Contains(err.Error(), `line 2: a of find: "two" is not of type i64`) {
		t.Errorf("a malformed line: %v", err)
	}
}
