package refresh_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TestATableThatIsNotMadeYetIsNotAMistake: who reads a table before its first refresh hears that, and anything else as
// it is.
func TestATableThatIsNotMadeYetIsNotAMistake(t *testing.T) {
	tables := []refresh.Table{{Name: "new", Status: refresh.Active}, {Name: "bad", Status: refresh.Failed},
		{Name: "Daily", Status: refresh.Active}, {Name: "old", Status: refresh.Active, AsOf: at(1)}}
	for message, want := range map[string]engine.Code{
		`relation "new" does not exist`:         engine.CodeUnavailable,
		`relation "tables.new" does not exist`:  engine.CodeUnavailable,
		`relation "Daily" does not exist`:       engine.CodeUnavailable,
		`relation "bad" does not exist`:         engine.CodeConflict,
		`relation "old" does not exist`:         engine.CodeInvalid,
		`relation "elsewhere" does not exist`:   engine.CodeInvalid,
		`column "new" does not exist`:           engine.CodeInvalid,
		`relation "new" does not exist, indeed`: engine.CodeInvalid,
	} {
		err := refresh.ExplainMissing(engine.InvalidField("definition", message, ""), refresh.State{Tables: tables})
		if !engine.HasCode(err, want) || (want != engine.CodeInvalid) != strings.Contains(err.Error(), "refreshed yet") {
			t.Errorf("%s: %v", message, err)
		}
	}
	other := errors.New("away")
	if err := refresh.ExplainMissing(other, refresh.State{Tables: tables}); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
}

// TestWhoAsksATableThatIsBeingMadeWaits: as long as somebody is about to make it, a moment where nobody has said so,
// and not at all for what does not come.
func TestWhoAsksATableThatIsBeingMadeWaits(t *testing.T) {
	worker := []refresh.Worker{{Kinds: []refresh.Kind{refresh.SQL}}}
	other := []refresh.Worker{{Kinds: []refresh.Kind{refresh.Ingest}}}
	table := refresh.Table{Name: "new", Kind: refresh.SQL, Status: refresh.Active}
	with := func(change func(*refresh.Table)) refresh.Table { t := table; change(&t); return t }
	absent := engine.InvalidField("sql", `relation "new" does not exist`, "")
	for about, c := range map[string]struct {
		err     error
		table   refresh.Table
		workers []refresh.Worker
		asked   int
		waits   time.Duration
		says    string
	}{
		"it is being made": {absent, table, worker, 51, 10 * time.Second, "Try again in a moment"},
		"nobody makes it":  {absent, table, other, 11, 2 * time.Second, "Nobody refreshes tables"},
		"it was made since": {absent, with(func(t *refresh.Table) { t.AsOf = at(1) }), worker, 2, 200 * time.Millisecond,
			"does not exist"},
		"it has failed once": {absent, with(func(t *refresh.Table) { t.Error = "division by zero" }), worker, 1, 0,
			"division by zero"},
		"it is suspended": {absent, with(func(t *refresh.Table) { t.Status = refresh.Suspended }), worker, 1, 0,
			"SUSPENDED"},
		"of another table": {engine.InvalidField("sql", `relation "x" does not exist`, ""), table, worker, 1, 0,
			`"x"`},
		"of something else": {errors.New("away"), table, worker, 1, 0, "wrong"},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				err := refresh.AwaitBuilt(t.Context(), func(context.Context) (refresh.State, error) {
					return refresh.State{Tables: []refresh.Table{c.table}, Workers: c.workers}, nil
				}, func() error { asked++; return c.err })
				if waited := time.Since(began); asked != c.asked || waited != c.waits {
					t.Errorf("it asks %d times in %v, want %d in %v", asked, waited, c.asked, c.waits)
				}
				if got := engine.ErrorText(err); !strings.Contains(got, c.says) {
					t.Error(got)
				}
				if err := refresh.AwaitBuilt(t.Context(), nil, func() error { return nil }); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestATableThatIsMadeBetweenTheQuestionAndTheLookIsAskedOnceMore: also where it has waited before, and for each of the
// tables that a query reads.
func TestATableThatIsMadeBetweenTheQuestionAndTheLookIsAskedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const a, b, waited = 15, 25, 30 // the looks at which the tables are made
		looks := 0
		state := func(context.Context) (refresh.State, error) {
			looks++
			tables := []refresh.Table{{Name: "a", Kind: refresh.SQL, Status: refresh.Active},
				{Name: "b", Kind: refresh.SQL, Status: refresh.Active}}
			for i, made := range []int{a, b} {
				if looks >= made {
					tables[i].AsOf = at(1)
				}
			}
			return refresh.State{Tables: tables, Workers: []refresh.Worker{{Kinds: []refresh.Kind{refresh.SQL}}}}, nil
		}
		err := refresh.AwaitBuilt(t.Context(), state, func() error {
			switch { // as of before the look
			case looks < a:
				return engine.InvalidField("sql", `relation "a" does not exist`, "")
			case looks < b:
				return engine.InvalidField("sql", `relation "b" does not exist`, "")
			}
			return nil
		})
		if err != nil || looks > waited {
			t.Errorf("after %d looks: %v", looks, err)
		}
	})
}

// TestWhatAFirstRefreshWaitsForIsSaid: a moment is promised where somebody is free to begin it, and nowhere else.
func TestWhatAFirstRefreshWaitsForIsSaid(t *testing.T) {
	const moment = "in a moment"
	busy := refresh.Worker{Kinds: []refresh.Kind{refresh.SQL}, Waits: "a run is carried on this machine"}
	free := refresh.Worker{Kinds: []refresh.Kind{refresh.SQL}}
	with := func(workers ...refresh.Worker) refresh.State { return refresh.State{Workers: workers} }
	claimed := func(table string) refresh.State {
		s := with(free)
		s.Claims = []refresh.Claim{{Task: refresh.Task{Table: table}, ClaimedAt: at(1)}}
		return s
	}
	for about, c := range map[string]struct {
		state refresh.State
		due   engine.Time
		says  string
	}{
		"nobody has it yet":      {with(busy, free), at(0), moment},
		"it is under way":        {claimed("new"), at(0), "under way for 41s"},
		"another is under way":   {claimed("x"), at(0), moment},
		"it is not due":          {with(free), at(132), "due in 1m30s"},
		"all who could are busy": {with(busy), at(0), "waits: a run is carried on this machine"},
	} {
		c.state.Now = at(42)
		c.state.Tables = []refresh.Table{{Name: "new", Kind: refresh.SQL, Status: refresh.Active, NextDue: c.due}}
		absent := engine.InvalidField("sql", `relation "new" does not exist`, "")
		got := engine.ErrorText(refresh.ExplainMissing(absent, c.state))
		if !strings.Contains(got, c.says) || (c.says != moment) == strings.Contains(got, moment) {
			t.Errorf("%s: %s", about, got)
		}
	}
}
