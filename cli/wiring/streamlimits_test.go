package wiring

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
)

// fixedBound is said of a limit that no option raises.
const fixedBound = "the bound is fixed"

// TestLimitsNameTheirOptions: the error of each limit of streams that is met names the flags, settings and clauses that
// raise it, and these are there; or it says that there is none.
func TestLimitsNameTheirOptions(t *testing.T) {
	const nothing = "SELECT event FROM run_events"
	planned := func() *plan.Plan {
		s, err := sql.ParseSelect(nothing)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Bind(nothing, s, system.Schemas{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	query := func(total bool) error {
		q := flow.New(planned(), flow.Options{Origins: []int{1}, Now: time.Now})
		return q.StateLimit(&memory.ExceededError{Limit: 64 << 20, Total: total}, "windows")
	}
	view, err := watch.Parse("WATCH SELECT name FROM queries")
	if err != nil {
		t.Fatal(err)
	}
	group := func(text string) error {
		c := catalog.FromContents(catalog.Contents{})
		c.SetAuthor(catalog.Author{Name: "ada"}, time.Now())
		c.SetDefaultHost(catalog.Server, 1)
		parsed, err := sql.Parse(text)
		if err != nil {
			return err
		}
		return c.Bound(func() error {
			for _, p := range parsed {
				if _, err := c.Apply(text, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "CREATE WORKER w%d;", i)
	}
	for name, c := range map[string]struct {
		err     error
		options []string
	}{
		"the memory of a query":     {query(false), []string{"QUERY.MEMORY_MIB", "--streams-query-memory"}},
		"the memory of all queries": {query(true), []string{"--streams-memory"}},
		"the memory of a watch":     {view.Exceeded(&memory.ExceededError{Limit: 1 << 20}), []string{"--streams-query-memory"}},
		"a watch and all queries": {view.Exceeded(&memory.ExceededError{Limit: 1 << 20, Total: true}),
			[]string{"--streams-memory"}},
		"slots": {group("CREATE LOGICAL SOURCE a(x INT64); CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a' AS " +
			"SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE); CREATE SINK s TYPE PRINT; SELECT x FROM a INTO s; SELECT x FROM a INTO s"),
			[]string{"NUM_SLOTS"}},
		"workers":  {group(many.String()), nil},
		"series":   {seriesExceeded(), []string{"SINK.SERIES"}},
		"overload": {overloaded(connector.RunEvents), []string{"ON OVERFLOW DROP"}},
	} {
		var e *sql.Error
		if !errors.As(c.err, &e) {
			t.Errorf("%s: %v is no limit that was met", name, c.err)
			continue
		}
		if len(c.options) == 0 != strings.Contains(e.Hint, fixedBound) {
			t.Errorf("%s: %q has to say that it is fixed, or to name an option", name, e.Hint)
		}
		for _, o := range c.options {
			if !strings.Contains(e.Hint, o) {
				t.Errorf("%s: %q does not name %s", name, e.Hint, o)
			}
			if !optionExists(o) {
				t.Errorf("%s: there is no %s", name, o)
			}
		}
	}
}

// optionExists reports whether there is a flag, a setting or a clause.
func optionExists(option string) bool {
	if flag, is := strings.CutPrefix(option, "--"); is {
		flags := reflect.TypeFor[StreamMemoryFlags]()
		for i := range flags.NumField() {
			if flags.Field(i).Tag.Get("name") == flag {
				return true
			}
		}
		return false
	}
	if slices.Contains(connector.Keywords(), option) {
		return true
	}
	queries := map[string]string{"QUERY.MEMORY_MIB": "SELECT event FROM run_events SET(256 AS QUERY.MEMORY_MIB)",
		"ON OVERFLOW DROP": "SELECT event FROM run_events ON OVERFLOW DROP"}
	if text, is := queries[option]; is {
		s, err := sql.ParseSelect(text)
		if err == nil {
			_, err = plan.Bind(text, s, system.Schemas{})
		}
		return err == nil
	}
	const worker = "CREATE OR REPLACE WORKER w SET(32 AS NUM_SLOTS)"
	parsed, err := sql.Parse(worker)
	if err == nil {
		_, err = catalog.FromContents(catalog.Contents{}).Apply(worker, parsed[0])
	}
	return option == "NUM_SLOTS" && err == nil
}

// seriesExceeded is the error of a METRIC sink with more sets of labels than it may have.
func seriesExceeded() error {
	columns := []column.Column{{Name: "l", Type: column.TextType}, {Name: "v", Type: column.Int64Type}}
	s := (&connector.Metrics{}).Open("q", connector.Config{"SINK.METRIC": "m", "SINK.SERIES": int64(1)}, columns)
	defer func() { _ = s.Close() }()
	b := &column.Batch{}
	b.Reset(columns)
	for _, label := range []string{"a", "b"} {
		b.Cols[0].AppendText([]byte(label))
		b.Cols[1].AppendInt(1)
		b.N++
	}
	return s.Write(b)
}

// overloaded is the error of a query that does not read a stream.
func overloaded(stream string) error {
	hub := &system.Hub{}
	source := hub.Open(stream, nil)
	defer func() { _ = source.Close() }()
	for range 1000 {
		hub.Publish(stream, func(b *column.Batch) {
			for i := range b.Cols {
				b.Cols[i].AppendNull()
			}
			b.N++
		})
	}
	for b := (&column.Batch{}); ; {
		if err := source.Read(b); err != nil {
			return err
		}
	}
}
