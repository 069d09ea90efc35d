package refresh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(seconds float64) engine.Time { return engine.At(noon.Add(time.Duration(seconds * 1e9))) }

func TestWhenATableIsDue(t *testing.T) {
	base := refresh.Table{Kind: refresh.SQL, Status: refresh.Active, Sources: []string{"runs"}, TargetLagSeconds: 60,
		CreatedAt: at(0), AsOf: at(100)}
	for name, c := range map[string]struct {
		change func(*refresh.Table)
		want   engine.Time
	}{
		"never refreshed":    {func(t *refresh.Table) { t.AsOf = engine.Time{} }, at(0)},
		"nothing changed":    {func(*refresh.Table) {}, engine.Time{}},
		"changed soon after": {func(t *refresh.Table) { t.BehindSince = at(110) }, at(160)},
		"changed long after": {func(t *refresh.Table) { t.BehindSince = at(500) }, at(500)},
		"takes long":         {func(t *refresh.Table) { t.BehindSince, t.LastSeconds = at(110), 5 }, at(150)},
		"waits for workers": {func(t *refresh.Table) {
			t.BehindSince, t.LastSeconds, t.WaitSeconds = at(110), 2, 5
		}, at(146)},
		"takes longer than allows": {func(t *refresh.Table) { t.BehindSince, t.LastSeconds = at(101), 600 }, at(130)},
		"reads nothing":            {func(t *refresh.Table) { t.Sources = nil }, at(160)},
		"suspended": {func(t *refresh.Table) { t.BehindSince, t.Status = at(110), refresh.Suspended },
			engine.Time{}},
		"failed": {func(t *refresh.Table) { t.BehindSince, t.Status = at(110), refresh.Failed },
			engine.Time{}},
		"takes runs in": {func(t *refresh.Table) { t.BehindSince, t.Kind = at(110), refresh.Ingest },
			engine.Time{}},
	} {
		table := base
		c.change(&table)
		if got := refresh.Due(table); !got.Equal(c.want.Time) {
			t.Errorf("%s: due %s, want %s", name, got, c.want)
		}
	}
}

// TestTheEndOfARunMakesDueAtOnce: what follows runs, also through another table, need not wait for its lag, and is not
// refreshed all the time either.
func TestTheEndOfARunMakesDueAtOnce(t *testing.T) {
	table := func(name, source string, lag, took float64, asOf, behind engine.Time) refresh.Table {
		return refresh.Table{Name: name, Kind: refresh.SQL, Status: refresh.Active, Sources: []string{source},
			TargetLagSeconds: lag, LastSeconds: took, AsOf: asOf, BehindSince: behind}
	}
	runs := refresh.Table{Name: "runs", Kind: refresh.Ingest, Status: refresh.Active, TargetLagSeconds: 20}
	for name, c := range map[string]struct {
		tables []refresh.Table
		want   engine.Time
	}{
		"a run has ended":         {[]refresh.Table{table("t", "runs", 60, 0.1, at(0), at(20))}, at(20)},
		"another one right after": {[]refresh.Table{table("t", "runs", 60, 0.1, at(20), at(21))}, at(25)},
		"of a short lag":          {[]refresh.Table{table("t", "runs", 6, 0.1, at(20), at(21))}, at(22)},
		"of a long lag":           {[]refresh.Table{table("t", "runs", 3600, 0.1, at(0), at(20))}, at(300)},
		"what takes long":         {[]refresh.Table{table("t", "runs", 60, 6, at(0), at(20))}, at(30)},
		"what takes longer":       {[]refresh.Table{table("t", "runs", 60, 600, at(0), at(20))}, at(30)},
		"of many that take long": {[]refresh.Table{table("t", "runs", 60, 0.1, at(0), at(20)), table("u", "runs", 60, 8,
			at(0), at(20))}, at(40.5)},
		"through another": {[]refresh.Table{table("t", "u", 60, 0.1, at(0), at(20)), table("u", "runs", 60, 0.1, at(0),
			engine.Time{})}, at(20)},
		"nothing has changed": {[]refresh.Table{table("t", "runs", 60, 0.1, at(0), engine.Time{})}, engine.Time{}},
		"it follows no runs":  {[]refresh.Table{table("t", "u", 60, 0.1, at(0), at(20))}, at(59.8)},
		"never refreshed":     {[]refresh.Table{table("t", "runs", 60, 0.1, engine.Time{}, at(20))}, engine.Time{}},
		"two that read in turn": {[]refresh.Table{table("t", "u", 60, 0.1, at(0), at(20)), table("u", "t", 60, 0.1, at(0),
			at(20))}, at(59.8)},
	} {
		if got := refresh.DueTimes(append(c.tables, runs))["t"]; !got.Equal(c.want.Time) {
			t.Errorf("%s: due %s, want %s", name, got, c.want)
		}
	}
}

func TestFailuresPauseLongerAndEnd(t *testing.T) {
	var last time.Duration
	for n := 1; n < refresh.MaxFailures; n++ {
		pause, failed := refresh.AfterFailure(n)
		if failed || pause <= last {
			t.Errorf("after failure %d: %s, %v", n, pause, failed)
		}
		last = pause
	}
	if _, failed := refresh.AfterFailure(refresh.MaxFailures); !failed {
		t.Error("a table may fail for ever")
	}
}

func TestAHolderStopsBeforeItsClaimExpires(t *testing.T) {
	const ttl = refresh.ClaimTTL
	selfStop := refresh.SelfStop(ttl)
	if selfStop >= ttl || refresh.HeartbeatInterval(ttl)*2 >= selfStop {
		t.Error("the times do not fit together")
	}
	h := refresh.NewClaimLease(noon, ttl)
	h.Confirm(noon.Add(-time.Second)) // an answer that was overtaken
	if want := noon.Add(selfStop); !h.Expires().Equal(want) {
		t.Errorf("ends %s, want %s", h.Expires(), want)
	}
	h.Confirm(noon.Add(time.Minute))
	if want := noon.Add(time.Minute + selfStop); !h.Expires().Equal(want) {
		t.Errorf("ends %s, want %s", h.Expires(), want)
	}
}

// TestPlansOfAnyState: whatever the state, a plan has a task once at most, nothing that is in the queue, nothing
// that is not due, no table before one that it reads; and carrying plans out ends with nothing that is due.
func TestPlansOfAnyState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := drawState(t)
		for range 2*len(state.Tables) + 2 {
			plan := refresh.Plan(state)
			checkPlan(t, state, plan)
			if len(plan.Enqueue)+len(state.Pending) == 0 {
				for _, table := range state.Tables {
					if due := refresh.Due(table); !due.IsZero() && !due.After(state.Now.Time) {
						t.Fatalf("%s is due, and nobody refreshes it", table.Name)
					}
				}
				return
			}
			// All of the queue is refreshed.
			for _, p := range append(plan.Enqueue, state.Pending...) {
				for i := range state.Tables {
					if state.Tables[i].Name == p.Table && p.Subtask == "" {
						state.Tables[i].AsOf, state.Tables[i].BehindSince = state.Now, engine.Time{}
					}
				}
				state.Runs[p.Table] = slices.DeleteFunc(state.Runs[p.Table], func(run string) bool { return run == p.Subtask })
			}
			state.Pending = nil
		}
		t.Fatal("there is always something left to do")
	})
}

func drawState(t *rapid.T) refresh.State {
	state := refresh.State{Now: at(1000), Runs: map[string][]string{}}
	for i := range rapid.IntRange(1, 7).Draw(t, "tables") {
		table := refresh.Table{Name: fmt.Sprint("t", i), Kind: refresh.SQL, Priority: i % 3,
			TargetLagSeconds: rapid.Float64Range(1, 900).Draw(t, "lag"),
			Status: rapid.SampledFrom([]refresh.Status{refresh.Active, refresh.Active, refresh.Active, refresh.Suspended,
				refresh.Failed}).Draw(t, "status"), CreatedAt: at(0), LastSeconds: rapid.Float64Range(0, 100).Draw(t, "took")}
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			table.Kind = refresh.Ingest
			state.Runs[table.Name] = []string{"a", "b"}[:rapid.IntRange(0, 2).Draw(t, "runs")]
		}
		for j := range i {
			if rapid.Bool().Draw(t, "reads") {
				table.Sources = append(table.Sources, fmt.Sprint("t", j))
			}
		}
		if rapid.Bool().Draw(t, "refreshed") {
			table.AsOf = at(rapid.Float64Range(0, 1000).Draw(t, "as of"))
			if rapid.Bool().Draw(t, "behind") {
				table.BehindSince = at(rapid.Float64Range(0, 1000).Draw(t, "behind since"))
			}
		}
		if table.Kind == refresh.SQL && rapid.IntRange(0, 3).Draw(t, "pending") == 0 {
			state.Pending = append(state.Pending, refresh.Pending{Task: refresh.Task{Table: table.Name}})
		}
		state.Tables = append(state.Tables, table)
	}
	return state
}

func checkPlan(t *rapid.T, state refresh.State, plan refresh.Schedule) {
	in := map[refresh.Task]bool{}
	for _, p := range state.Pending {
		in[p.Task] = true
	}
	for _, p := range plan.Enqueue {
		if in[p.Task] {
			t.Fatalf("%v is in the queue twice", p.Task)
		}
		in[p.Task] = true
	}
	for _, p := range plan.Enqueue {
		i := slices.IndexFunc(state.Tables, func(table refresh.Table) bool { return table.Name == p.Table })
		table := state.Tables[i]
		if table.Status != refresh.Active || p.Due.After(state.Now.Time) || p.Priority != table.Priority {
			t.Fatalf("%+v of %+v", p, table)
		}
		for _, source := range table.Sources {
			if p.Subtask == "" && in[refresh.Task{Table: source}] {
				t.Fatalf("%s goes before %s, which it reads", p.Table, source)
			}
		}
	}
}

func TestWhatNoTableCanBe(t *testing.T) {
	good := refresh.Table{Name: "nightly", Kind: refresh.SQL, Definition: "SELECT 1", TargetLagSeconds: 60,
		Mode: refresh.Auto}
	for field, c := range map[string]struct {
		change func(*refresh.Table)
	}{
		"":             {func(*refresh.Table) {}},
		"name":         {func(t *refresh.Table) { t.Name = "a/b" }},
		"name ":        {func(t *refresh.Table) { t.Name = "\u202egnp" }},
		"   ":          {func(t *refresh.Table) { t.Name = `"ä" 😀 ` + strings.Repeat("x", 49) }},
		"definition":   {func(t *refresh.Table) { t.Definition = " " }},
		"partitions":   {func(t *refresh.Table) { t.Partitions = 2 }},
		"partitions ":  {func(t *refresh.Table) { t.PartitionBy, t.Partitions = refresh.ByRun, refresh.MaxPartitions+1 }},
		" ":            {func(t *refresh.Table) { t.PartitionBy, t.Partitions = refresh.ByRun, refresh.MaxPartitions }},
		"refresh_mode": {func(t *refresh.Table) { t.Mode = refresh.Incremental }},
		"  ":           {func(t *refresh.Table) { t.Mode, t.PartitionBy = refresh.Incremental, refresh.ByDay }},
	} {
		table := good
		c.change(&table)
		err := refresh.Check(table)
		field = strings.TrimSpace(field)
		if (err == nil) != (field == "") || err != nil && !strings.Contains(err.Error(), field) {
			t.Errorf("%q: %v", field, err)
		}
	}
}
