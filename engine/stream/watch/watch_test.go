package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	streamsql "github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sinks(names ...string) map[string][]catalog.Row {
	c := catalog.Contents{}
	for _, n := range names {
		name, kind, _ := strings.Cut(n, ":")
		c.Sinks = append(c.Sinks, catalog.Sink{Name: name, Type: kind})
	}
	return catalog.FromContents(c).Rows()
}

func told(events []watch.Event) string {
	var parts []string
	for _, e := range events {
		text := string(e.Kind)
		for _, r := range e.Rows {
			text += " " + string(r)
		}
		if e.Position != "" {
			text += " @" + e.Position
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// TestChanges: what comes into the answer, changes in it and leaves it, also by the condition; what the answer does not
// show is no change.
func TestChanges(t *testing.T) {
	v, err := watch.Parse("WATCH SELECT type, UPPER(name) AS n FROM Sinks WHERE type <> 'FILE'")
	must(t, err)
	if fmt.Sprint(v.Columns) != "[type n]" || v.Table != "sinks" && v.Table != "Sinks" {
		t.Errorf("%+v", v)
	}
	was := watch.ViewRows{}
	for i, step := range []struct {
		now  []string
		want string
	}{
		{[]string{"a:PRINT", "b:FILE"}, `CREATE {"n":"A","type":"PRINT"} @0`},
		{[]string{"a:PRINT", "b:FILE"}, ``},
		{[]string{"a:WEBHOOK", "b:PRINT"}, `UPDATE {"n":"A","type":"WEBHOOK"}; CREATE {"n":"B","type":"PRINT"} @2`},
		{[]string{"a:FILE", "b:PRINT"}, `DROP {"n":"A","type":"WEBHOOK"} @3`},
		{nil, `DROP {"n":"B","type":"PRINT"} @4`},
	} {
		now, err := v.Apply(t.Context(), memory.Limits{}.Open(memory.Holder{}, 0, nil), sinks(step.now...)["sinks"])
		must(t, err)
		if got := told(watch.Changes(was, now, fmt.Sprint(i))); got != step.want {
			t.Errorf("step %d tells %s, not %s", i, got, step.want)
		}
		was = now
	}
}

func TestEveryTableCanBeWatched(t *testing.T) {
	c := catalog.Contents{Workers: []catalog.Worker{{Host: "w", Slots: 2}},
		Queries: []catalog.Query{{ID: 1, Name: "q", Fragments: []catalog.Fragment{{Host: "w"}}}},
		Logical: []catalog.LogicalSource{{Name: "l"}}, Physical: []catalog.PhysicalSource{{ID: 1}},
		Sinks: []catalog.Sink{{Name: "s"}}}
	rows := catalog.FromContents(c).Rows()
	for table := range catalog.Tables {
		v, err := watch.Parse("WATCH SELECT * FROM " + table)
		must(t, err)
		a, err := v.Apply(t.Context(), memory.Limits{}.Open(memory.Holder{}, 0, nil), rows[table])
		must(t, err)
		if len(a) != 1 || len(v.Columns) != len(catalog.Tables[table]) || strings.Contains(fmt.Sprint(a), "key") {
			t.Errorf("%s shows %v", table, a)
		}
	}
}

func TestWhatCannotBeWatched(t *testing.T) {
	for sql, kind := range map[string]streamsql.Kind{
		"WATCH SELECT x FROM nowhere":                                       streamsql.BinderError,
		"WATCH SELECT x FROM queries":                                       streamsql.BinderError,
		"WATCH SELECT COUNT(*) AS n FROM queries":                           streamsql.BinderError,
		"WATCH SELECT name FROM queries WINDOW TUMBLING(since, SIZE 1 SEC)": streamsql.BinderError,
		"WATCH SELECT name FROM (SELECT name FROM queries)":                 streamsql.BinderError,
		"WATCH SELECT name FROM queries; WATCH SELECT name FROM sinks":      streamsql.BinderError,
		"SHOW QUERIES":                          streamsql.BinderError,
		"":                                      streamsql.BinderError,
		"WATCH SELECT name FROM queries INTO s": streamsql.ParserError,
		"WATCH name FROM queries":               streamsql.ParserError,
		"WATCH SELECT name FROM queries WHERE name": streamsql.BinderError,
	} {
		_, err := watch.Parse(sql)
		var e *streamsql.Error
		if !errors.As(err, &e) || e.Kind != kind || e.Line == 0 {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

// TestWhatWasIsKnown: rows of an earlier moment are what they were, until they are forgotten.
func TestWhatWasIsKnown(t *testing.T) {
	h := watch.History{}
	moments := map[int64]map[string]string{}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var names []string
		was := map[string]string{}
		for i := range 6 {
			if kind := random.IntN(4); kind > 0 {
				names = append(names, fmt.Sprintf("s%d:%d", i, kind))
				was[fmt.Sprintf("s%d", i)] = fmt.Sprint(kind)
			}
		}
		before := h.Moment
		if changed := h.Note(sinks(names...)); changed != (h.Moment == before+1) {
			t.Fatal("a change has no moment of its own")
		}
		moments[h.Moment] = was
	}
	for moment, want := range moments {
		rows, known := h.Rows("sinks", moment)
		got := map[string]string{}
		for _, r := range rows {
			got[r.Key] = r.Values[3].(string)
		}
		if !known || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("at %d it was %v, not %v", moment, got, want)
		}
	}
	for range 60 {
		var many []string
		for i := range 500 {
			many = append(many, fmt.Sprintf("m%d:%d", i, h.Moment))
		}
		h.Note(sinks(many...))
	}
	if _, known := h.Rows("sinks", 1); known {
		t.Error("everything is remembered")
	}
	if _, known := h.Rows("sinks", h.Moment); !known {
		t.Error("now is not known")
	}
	if _, known := h.Rows("sinks", h.Moment+1); known {
		t.Error("the future is known")
	}
}

// TestTheDesignsOwnExample: WATCH as the design writes it, whose workers have an id and a capacity.
func TestTheDesignsOwnExample(t *testing.T) {
	v, err := watch.Parse("WATCH SELECT id, state, capacity FROM workers WHERE state = 'ACTIVE';")
	must(t, err)
	c := catalog.Contents{Workers: []catalog.Worker{{Host: "w1", State: catalog.Active, Slots: 4},
		{Host: "w2", State: catalog.Unreachable, Slots: 8}}}
	a, err := v.Apply(
		t.Context(),
		memory.Limits{}.Open(memory.Holder{}, 0, nil),
		catalog.FromContents(c).Rows()["workers"],
	)
	must(t, err)
	if got := told(
		[]watch.Event{v.SnapshotEvent(a, "0")},
	); got != `SNAPSHOT {"capacity":4,"id":"w1","state":"ACTIVE"} @0` {
		t.Error(got)
	}
}

// TestNoRowIsComparedWithAnother: rows of a table have no order, so that what was before one says nothing.
func TestNoRowIsComparedWithAnother(t *testing.T) {
	for _, sql := range []string{"WATCH SELECT LAG(name) OVER () AS before FROM queries",
		"WATCH SELECT name, 'x' || LAG(name) OVER (PARTITION BY state) AS before FROM queries"} {
		_, err := watch.Parse(sql)
		var e *streamsql.Error
		if !errors.As(err, &e) || e.Kind != streamsql.BinderError || e.Line != 1 {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestAWatchHasBounds: one that takes long ends after a second, or with its reader, and one that shows very much is
// refused; its rows are evaluated anew at each change, while the others wait.
func TestAWatchHasBounds(t *testing.T) {
	long := strings.Repeat("a", 1<<18)
	var rows []catalog.Row
	for i := range 100 {
		q := catalog.Query{ID: int64(i), Name: fmt.Sprint("q", i), Statement: long}
		rows = append(rows, catalog.FromContents(catalog.Contents{Queries: []catalog.Query{q}}).Rows()["queries"]...)
	}
	slow := "WATCH SELECT name FROM queries WHERE statement LIKE '%" + long[:1<<17] + "b'"
	for statement, says := range map[string]string{slow: "takes more than 1s",
		"WATCH SELECT statement FROM queries": "shows more than 16 MiB"} {
		v, err := watch.Parse(statement)
		must(t, err)
		began := time.Now()
		_, err = v.Apply(t.Context(), memory.Limits{}.Open(memory.Holder{}, 0, nil), rows)
		var e *streamsql.Error
		if took := time.Since(began); !errors.As(err, &e) || e.Kind != streamsql.StateLimit ||
			!strings.Contains(e.Message, says) || took > 4*time.Second {
			t.Errorf("%.50s: %v after %v", statement, err, took)
		}
	}
	v, err := watch.Parse(slow)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := v.Apply(
		ctx,
		memory.Limits{}.Open(memory.Holder{}, 0, nil),
		rows,
	); !errors.Is(err, context.DeadlineExceeded) ||
		time.Since(began) > time.Second {
		t.Errorf("it went on for %v: %v", time.Since(began), err)
	}
}

// TestWhatIsRememberedOfRowsHasABound: statements that are made and dropped are not kept for ever.
func TestWhatIsRememberedOfRowsHasABound(t *testing.T) {
	h, long := watch.History{}, strings.Repeat("a", 1<<20)
	for i := range 100 {
		q := catalog.Query{ID: int64(i), Name: fmt.Sprint("q", i), Statement: long + fmt.Sprint(i)}
		h.Note(catalog.FromContents(catalog.Contents{Queries: []catalog.Query{q}}).Rows())
	}
	if _, known := h.Rows("queries", h.Moment-5); !known {
		t.Error("what was a moment ago is not known")
	}
	if _, known := h.Rows("queries", h.Moment-50); known {
		t.Error("50 MiB of what was are remembered")
	}
}

// TestARowIsCountedAsJSONBeforeItIsMade: one row may be much, and six times as much where JSON escapes it.
func TestARowIsCountedAsJSONBeforeItIsMade(t *testing.T) {
	q := catalog.Query{ID: 1, Name: "q", Statement: strings.Repeat("<", 1<<18)}
	rows := catalog.FromContents(catalog.Contents{Queries: []catalog.Query{q}}).Rows()["queries"]
	statement := func(columns int) string {
		text := "WATCH SELECT name"
		for i := range columns {
			text += fmt.Sprintf(", CONCAT(statement, '') AS s%d", i)
		}
		return text + " FROM queries"
	}
	limits := memory.Limits{Pool: memory.NewPool(128 << 20), Query: 96 << 20}
	account := limits.Open(memory.Holder{}, 0, nil)
	v, err := watch.Parse(statement(3))
	must(t, err)
	few, err := v.Apply(t.Context(), account, rows)
	must(t, err)
	if used := account.Used(); used != few.Size() || used < 3*6<<18 {
		t.Errorf("%d bytes are counted of a view of %d", used, few.Size())
	}
	many, err := watch.Parse(statement(20)) // 5 MiB, and 30 as JSON
	must(t, err)
	_, err = many.Apply(t.Context(), account, rows)
	var e *streamsql.Error
	if !errors.As(err, &e) || e.Kind != streamsql.StateLimit || !strings.Contains(e.Message, "shows more than 16 MiB") {
		t.Errorf("a row of 30 MiB: %v", err)
	}
	if used := account.Used(); used != few.Size() {
		t.Errorf("%d bytes are counted of a view of %d after a refusal", used, few.Size())
	}
	// What making the row takes is not there: nothing is made.
	small := memory.Limits{}.Open(memory.Holder{}, 8<<20, nil)
	if _, err = v.Apply(t.Context(), small, rows); !errors.As(err, &e) || e.Kind != streamsql.StateLimit ||
		!strings.Contains(e.Message, "the WATCH would hold more than 8 MiB") || small.Used() != 0 {
		t.Errorf("%v, with %d bytes", err, small.Used())
	}
}

// TestARowIsNoLongerThanItIsCounted: the answer is JSON in which each byte may be six.
func TestARowIsNoLongerThanItIsCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 39))
	for range 2000 {
		text := make([]byte, r.IntN(300))
		for i := range text {
			text[i] = byte(r.IntN(256))
			if r.IntN(3) == 0 {
				text[i] = "<>&\"\\\x00\x7f\n"[r.IntN(8)]
			}
		}
		text = append(text, "\u2028\u2029é😀"[:r.IntN(12)]...)
		encoded, err := json.Marshal(string(text))
		must(t, err)
		if counted := watch.EncodedSize(text); counted < len(encoded) || counted > 6*len(text)+2 {
			t.Fatalf("%q is %d bytes, counted as %d", text, len(encoded), counted)
		}
	}
}
