package derived_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/storage/derived/derivedtest"
)

// atEdges are executions of three seconds of which many end within a microsecond of a second's edge, on either side;
// some began before the run did. They are of two workers, three statements, with errors, transactions and a warm-up.
func atEdges(n int, start time.Time) *rollup.Executions {
	random := rand.New(rand.NewPCG(15, 4))
	e := &rollup.Executions{}
	e.Kind.Values, e.Statement.Values = []string{"POINT_LOOKUP", "UPDATE"}, []string{"get", "put", "pay"}
	e.Worker.Values = []string{"worker-0", "worker-1"}
	e.Class.Values, e.Code.Values = []string{"TIMEOUT", "OTHER"}, []string{"57014"}
	for i := range n {
		elapsed := 1 + random.Int64N(40e6)
		ended := start.UnixNano() + random.Int64N(3e9)
		switch i % 4 {
		case 0: // just behind an edge, where cutting digits off moves it before that
			ended = start.UnixNano() + random.Int64N(4)*1e9 + random.Int64N(1000)
		case 1: // just before one
			ended = start.UnixNano() + (1+random.Int64N(3))*1e9 - 1 - random.Int64N(1000)
		case 2:
			if i%20 == 2 {
				ended = start.UnixNano() - random.Int64N(1e6)
			}
		}
		failed, code := int32(-1), int32(-1)
		if random.IntN(5) == 0 {
			failed, code = int32(random.IntN(2)), int32(random.IntN(2)-1)
		}
		due := ended - elapsed
		e.DueNs, e.StartedNs = append(e.DueNs, due), append(e.StartedNs, due)
		e.ElapsedNs, e.ElapsedMs = append(e.ElapsedNs, elapsed), append(e.ElapsedMs, float64(elapsed)/1e6)
		e.LagMs, e.WaitMs, e.DecodeNs = append(e.LagMs, 0), append(e.WaitMs, 0), append(e.DecodeNs, 0)
		e.Connection, e.Seq = append(e.Connection, 0), append(e.Seq, int32(i))
		e.Step, e.Retries = append(e.Step, 0), append(e.Retries, 0)
		e.Rows, e.Position = append(e.Rows, int32(random.IntN(9))), append(e.Position, int32(random.IntN(3)/2))
		e.Warmup, e.Success = append(e.Warmup, ended < start.UnixNano()+5e8), append(e.Success, failed < 0)
		e.RolledBack = append(e.RolledBack, false)
		e.Kind.Index = append(e.Kind.Index, int32(random.IntN(2)))
		e.Statement.Index = append(e.Statement.Index, int32(random.IntN(3)))
		e.Worker.Index = append(e.Worker.Index, int32(random.IntN(2)))
		e.Class.Index, e.Code.Index = append(e.Class.Index, failed), append(e.Code.Index, code)
		e.Message.Index, e.QueryID.Index = append(e.Message.Index, -1), append(e.QueryID.Index, -1)
	}
	return e
}

// TestSecondsAreThoseOfTheExecutions: single executions that are put into seconds as docs/reference/sql-tables.md says are the
// roll-ups, second by second, though times have whole microseconds there and the record has nanoseconds.
func TestSecondsAreThoseOfTheExecutions(t *testing.T) {
	d, owner, reader := open(t)
	start := noon.Add(188451 * time.Microsecond)
	e := atEdges(20_000, start)
	r, _ := oneRun("edges", 1)
	r.Run.StartTime = engine.At(start)
	r.Seconds = rollup.New(start)
	r.Seconds.Add(&e.Batch)
	if n := len(r.Seconds.Run); n < 4 {
		t.Fatalf("%d seconds", n)
	}
	c := claim("runs", "edges", 1)
	if err := d.Begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := stageAndPut(t.Context(), d, c, r, e); err != nil {
		t.Fatal(err)
	}
	differences, err := derivedtest.CompareSeconds(t.Context(), reader, "edges")
	if err != nil || len(differences) > 0 {
		t.Errorf("%d differences, %v; the first: %s", len(differences), err,
			strings.Join(differences[:min(len(differences), 6)], "\n"))
	}
	// No time is a microsecond off.
	rows, err := reader.Query(t.Context(), "SELECT seq, due_at FROM executions WHERE run_id = 'edges'")
	if err != nil {
		t.Fatal(err)
	}
	later := 0
	for rows.Next() {
		var seq int64
		var due time.Time
		if err := rows.Scan(&seq, &due); err != nil {
			t.Fatal(err)
		}
		off := due.UnixNano() - e.DueNs[seq]
		if off <= -1000 || off >= 1000 {
			t.Errorf("execution %d was due at %v, which is %d ns off", seq, due, off)
		}
		if off > 0 {
			later++
		}
	}
	if err := rows.Err(); err != nil || later < 1000 {
		t.Errorf("%d of the executions needed their time, %v", later, err)
	}
	// The comparison itself finds one that is elsewhere.
	moved := 0
	for e.Position[moved] != 0 || e.DueNs[moved] < start.Add(2*time.Second).UnixNano() {
		moved++
	}
	if _, err := owner.Exec(t.Context(), "UPDATE rollup.executions SET due_at = due_at - interval '1 s' WHERE seq = $1",
		moved); err != nil {
		t.Fatal(err)
	}
	differences, err = derivedtest.CompareSeconds(t.Context(), reader, "edges")
	for _, relation := range []string{"run_seconds", "kind_seconds", "worker_seconds", "statement_seconds"} {
		if !slices.ContainsFunc(differences, func(s string) bool { return strings.HasPrefix(s, relation) }) {
			t.Errorf("nothing differs in %s: %v, %v", relation, differences, err)
		}
	}
}

// TestTheRuleOfSecondsIsWrittenDown: what the tests compute with is what users read.
func TestTheRuleOfSecondsIsWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/sql-tables.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := strings.Join(strings.Fields(string(text)), " "); !strings.Contains(words, derivedtest.Second) {
		t.Errorf("docs/reference/sql-tables.md lacks %s", fmt.Sprintf("%q", derivedtest.Second))
	}
}
