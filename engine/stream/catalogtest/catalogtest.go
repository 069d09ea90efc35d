// Package catalogtest is the conformance suite of catalog.Store.
package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// host is the worker on which queries of the suite run, with so many slots.
const (
	host  = "server"
	slots = 5
)

const infrastructure = `CREATE WORKER sink SET(9001 AS GRPC_PORT, 4 AS NUM_SLOTS);
	CREATE WORKER edge SET('sink' AS PEERS);
	CREATE LOGICAL SOURCE a(ts TIMESTAMP NOT NULL, x DECIMAL(10, 2), Name TEXT);
	CREATE PHYSICAL SOURCE FOR a TYPE TCP SET('localhost' AS SOURCE.SOCKET_HOST, 5000 AS SOURCE.SOCKET_PORT,
		'JSON' AS PARSER.TYPE, true AS PARSER.HEADER);
	CREATE PHYSICAL SOURCE FOR a TYPE FILE ON edge SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
	DROP PHYSICAL SOURCE 2;
	CREATE SINK s(x FLOAT64) TYPE FILE SET('s.csv' AS SINK.FILE_PATH, true AS SINK.APPEND)`

// Apply carries statements out over a store, as one group.
func Apply(ctx context.Context, k catalog.Store, text string) error {
	parsed, err := sql.Parse(text)
	if err != nil {
		return err
	}
	return k.ChangeCatalog(ctx, catalog.ScopeOf(parsed), func(c *catalog.Catalog) error {
		c.SetAuthor(catalog.Author{Name: "ada", UserID: "u1"}, time.Date(2030, 1, 2, 3, 4, 5, 678000, time.UTC))
		c.SetDefaultHost(host, slots)
		for _, p := range parsed {
			if _, err := c.Apply(text, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// Run runs the suite; open returns an empty store.
func Run(t *testing.T, open func(t *testing.T) catalog.Store) {
	for name, test := range map[string]func(*testing.T, catalog.Store){
		"what is kept is read": persistence, "all or nothing": atomic, "owners": owners, "life": life, "slots": capacity,
		"spread": spread, "needs": needs, "workers": workers, "hearing": watching,
		"groups": groups,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func contents(t *testing.T, k catalog.Store) catalog.Contents {
	t.Helper()
	c, err := k.CatalogContents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func persistence(t *testing.T, k catalog.Store) {
	var want catalog.Contents
	must(t, Apply(t.Context(), k, infrastructure))
	must(t, Apply(t.Context(), k, "CREATE QUERY q AS SELECT x FROM a INTO s"))
	must(t, k.ChangeCatalog(t.Context(), catalog.Scope{All: true}, func(c *catalog.Catalog) error {
		want = c.Contents()
		return nil
	}))
	got := contents(t, k)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nnot\n%+v", got, want)
	}
	if len(got.Workers) != 3 || len(got.Physical) != 1 || got.Physical[0].ID != 1 || got.LastSourceID != 2 {
		t.Errorf("%+v", got)
	}
	p := got.Physical[0].Config
	if p.Int("SOURCE.SOCKET_PORT") != 5000 || !p.Bool("PARSER.HEADER") || p.String("PARSER.TUPLE_DELIMITER") != "\n" {
		t.Errorf("settings %v", p)
	}
	if c := got.Logical[0].Columns; len(c) != 3 || !c[0].NotNull || c[1].Type.String() != "DECIMAL(10, 2)" ||
		c[2].Name != "Name" {
		t.Errorf("columns %+v", c)
	}
	q := got.Queries[0]
	if q.Name != "q" || q.State != catalog.Pending || q.Desired != catalog.Running || q.CreatedBy != "ada" ||
		q.Epoch != 0 || len(q.Fragments) != 1 || !strings.Contains(q.Fragments[0].Plan, "Scan a") ||
		len(q.Sources) != 1 || q.Sink != "s" || q.CreatedAt.Year() != 2030 {
		t.Errorf("query %+v", q)
	}
	// What is made anew under its name is another one.
	must(t, Apply(t.Context(), k, `CREATE SINK z TYPE PRINT`))
	must(t, Apply(t.Context(), k, `DROP SINK z; CREATE SINK z(y INT64) TYPE PRINT`))
	for _, s := range contents(t, k).Sinks {
		if s.Name == "z" && len(s.Columns) != 1 {
			t.Errorf("the old sink is there: %+v", s)
		}
	}
	for _, refused := range []string{"DROP LOGICAL SOURCE a", "DROP PHYSICAL SOURCE 1", "DROP SINK s",
		"DROP WORKER sink"} {
		if err := Apply(t.Context(), k, refused); err == nil {
			t.Errorf("%s was done", refused)
		}
	}
}

func atomic(t *testing.T, k catalog.Store) {
	must(t, Apply(t.Context(), k, infrastructure))
	before := contents(t, k)
	if err := Apply(t.Context(), k, "CREATE SINK b TYPE PRINT; CREATE SINK B TYPE PRINT"); err == nil {
		t.Error("two sinks have one name")
	}
	if after := contents(t, k); !reflect.DeepEqual(before, after) {
		t.Errorf("half of a group is kept: %+v", after)
	}
	// Of two groups that conflict one is accepted, at whatever moment they meet.
	for round := range 5 {
		var group sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			group.Go(func() {
				errs[i] = Apply(t.Context(), k,
					fmt.Sprintf("CREATE SINK mine%d_%d TYPE PRINT; CREATE SINK one%d TYPE PRINT", round, i, round))
			})
		}
		group.Wait()
		accepted := 0
		for _, err := range errs {
			var e *sql.Error
			switch {
			case err == nil:
				accepted++
			case !errors.As(err, &e) || e.Kind != sql.AlreadyExists:
				t.Errorf("the other group is refused with %v", err)
			}
		}
		if accepted != 1 {
			t.Errorf("%d groups were accepted", accepted)
		}
	}
	if n := len(contents(t, k).Sinks); n != 11 {
		t.Errorf("there are %d sinks", n)
	}
}

const lease = time.Minute

func owners(t *testing.T, k catalog.Store) {
	must(t, Apply(t.Context(), k, infrastructure+"; CREATE QUERY q AS SELECT x FROM a INTO s"))
	if n, err := k.ClaimQueries(t.Context(), "one", 30*time.Millisecond); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	old := contents(t, k).Queries[0]
	if old.Owner != "one" || old.Epoch != 1 {
		t.Fatalf("%+v", old)
	}
	if n, err := k.ClaimQueries(t.Context(), "one", lease); n != 0 || err != nil {
		t.Error("its own query is claimed again", n, err)
	}
	if n, err := k.ClaimQueries(t.Context(), "two", lease); n != 0 || err != nil {
		t.Error("another's query is claimed", n, err)
	}
	if _, err := k.ClaimQueries(t.Context(), "one", -time.Second); err != nil {
		t.Fatal(err)
	}
	if n, err := k.ClaimQueries(t.Context(), "two", lease); n != 1 || err != nil {
		t.Fatal("a query that nobody looks after is not claimed", n, err)
	}
	old.State = catalog.Deploying
	if err := k.AdvanceQuery(t.Context(), old); !errors.Is(err, store.ErrFenced) {
		t.Errorf("its former owner moves it: %v", err)
	}
	if q := contents(t, k).Queries[0]; q.State != catalog.Pending || q.Epoch != 2 || q.Owner != "two" {
		t.Errorf("%+v", q)
	}
}

func life(t *testing.T, k catalog.Store) {
	must(t, Apply(t.Context(), k, infrastructure+"; CREATE QUERY q AS SELECT x FROM a INTO s"))
	if _, err := k.ClaimQueries(t.Context(), "one", lease); err != nil {
		t.Fatal(err)
	}
	q := contents(t, k).Queries[0]
	q.State, q.Since, q.Failure = catalog.Deploying, time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), "it is slow"
	q.Fragments[0].State, q.Fragments[0].Attempts, q.Fragments[0].Failure = catalog.FragmentFailed, 3, "refused"
	q.Fragments[0].RetryAt = q.Since.Add(time.Second)
	must(t, k.AdvanceQuery(t.Context(), q))
	// Who has not seen that may not decide by what was there before, nor take it away.
	for _, state := range []catalog.State{catalog.Failed, catalog.Deploying, catalog.Stopped} {
		late := q
		if late.State = state; !errors.Is(k.AdvanceQuery(t.Context(), late), store.ErrFenced) {
			t.Errorf("an old revision becomes %s", state)
		}
	}
	q.Revision++
	if got := contents(t, k).Queries[0]; !reflect.DeepEqual(got, q) {
		t.Errorf("read\n%+v\nnot\n%+v", got, q)
	}
	// The name is taken until the query is gone, whoever drops it; what it refers to stays as long.
	must(t, Apply(t.Context(), k, "DROP QUERY q GRACEFUL"))
	if got := contents(t, k).Queries[0]; got.Desired != catalog.Stopped || !got.Graceful {
		t.Errorf("%+v", got)
	}
	var e *sql.Error
	err := Apply(t.Context(), k, "CREATE QUERY Q AS SELECT x FROM a INTO s")
	if !errors.As(err, &e) || e.Kind != sql.NameLocked {
		t.Errorf("the name is given out: %v", err)
	}
	if err := Apply(t.Context(), k, "DROP SINK s"); !errors.As(err, &e) || e.Kind != sql.ReferencedQueryExists {
		t.Errorf("the sink is dropped: %v", err)
	}
	if err := k.AdvanceQuery(t.Context(), q); !errors.Is(err, store.ErrFenced) {
		t.Errorf("its owner moves it without having seen that it was dropped: %v", err)
	}
	q.Revision++
	q.State = catalog.Stopped
	must(t, k.AdvanceQuery(t.Context(), q))
	if err := k.AdvanceQuery(t.Context(), q); !errors.Is(err, store.ErrFenced) {
		t.Errorf("what is gone is moved: %v", err)
	}
	must(t, Apply(t.Context(), k, "CREATE QUERY q AS SELECT x FROM a INTO s"))
	if got := contents(t, k).Queries; len(got) != 1 || got[0].ID != q.ID+1 || got[0].Epoch != 0 {
		t.Errorf("%+v", got)
	}
}

// spread: nodes come and go, and so do fragments of a query that reads what each of them tells of itself; others stay
// as they are.
func spread(t *testing.T, k catalog.Store) {
	must(t, Apply(t.Context(), k, infrastructure+"; CREATE QUERY fixed AS SELECT x FROM a INTO s"))
	must(t, Apply(t.Context(), k, system.Sources))
	must(t, Apply(t.Context(), k, "CREATE SINK out TYPE PRINT; CREATE QUERY wide AS SELECT COUNT(*) AS n FROM executions "+
		"WINDOW TUMBLING(timestamp, SIZE 1 SEC) INTO out"))
	if _, err := k.ClaimQueries(t.Context(), "one", lease); err != nil {
		t.Fatal(err)
	}
	active, draining := map[string]bool{"server": true}, map[string]bool{}
	spreads := func(owner string, want ...string) {
		t.Helper()
		before := contents(t, k)
		must(t, k.ChangeCatalog(t.Context(), catalog.Scope{All: true}, func(c *catalog.Catalog) error {
			c.Spread(owner, func(host string) bool { return active[host] },
				func(host string) bool { return !draining[host] })
			return nil
		}))
		after := contents(t, k)
		if !reflect.DeepEqual(before.Queries[0], after.Queries[0]) {
			t.Errorf("another query has changed: %+v", after.Queries[0])
		}
		var got []string
		for _, f := range after.Queries[1].Fragments {
			got = append(got, fmt.Sprint(f.Host, f.Attempts))
			if tail := strings.Contains(f.Plan, "Merge partial aggregates"); tail != (f.Host == "server" && len(want) > 1) {
				t.Errorf("%s does %s", f.Host, f.Plan)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("it has the fragments %v, not %v", got, want)
		}
	}
	spreads("one", "server0")
	must(t, k.SetWorkers(t.Context(), []catalog.Worker{{Host: "n1", Slots: 2, State: catalog.Active},
		{Host: "n2", Slots: 2, State: catalog.Active}}))
	active["n1"] = true
	spreads("two", "server0") // which is not its owner
	active["n2"], draining["n2"] = true, true
	spreads("one", "n10", "server0")
	delete(active, "n2")
	draining["n1"] = true
	spreads("one", "n10", "server0") // it has it already
	clear(draining)
	q := contents(t, k).Queries[1]
	for i := range q.Fragments {
		q.Fragments[i].Attempts = int64(3 - i) // those of n1 are 3
	}
	must(t, k.AdvanceQuery(t.Context(), q))
	active["n1"], active["n2"] = false, true
	spreads("one", "n23", "server3") // no attempt is earlier than one that was
	// One without a slot gets none.
	must(t, k.SetWorkers(t.Context(), []catalog.Worker{{Host: "n3", Slots: 1, State: catalog.Active}}))
	must(t, Apply(t.Context(), k, "CREATE PHYSICAL SOURCE FOR a TYPE FILE ON n3 SET('a.csv' AS SOURCE.FILE_PATH, "+
		"'CSV' AS PARSER.TYPE); CREATE QUERY there AS SELECT x FROM a INTO s"))
	active["n3"] = true
	spreads("one", "n23", "server3")
	must(t, Apply(t.Context(), k, "DROP QUERY wide"))
	active["n2"] = false
	spreads("one", "n23", "server3") // until each is known to be gone
}

// capacity: many at once never take more slots than there are.
func capacity(t *testing.T, k catalog.Store) {
	must(t, Apply(t.Context(), k, infrastructure))
	var group sync.WaitGroup
	errs := make([]error, 2*slots)
	for i := range errs {
		group.Go(func() {
			errs[i] = Apply(t.Context(), k, fmt.Sprintf("CREATE QUERY q%d AS SELECT x FROM a INTO s", i))
		})
	}
	group.Wait()
	accepted := 0
	for _, err := range errs {
		var e *sql.Error
		switch {
		case err == nil:
			accepted++
		case !errors.As(err, &e) || e.Kind != sql.InsufficientCapacity:
			t.Errorf("refused with %v", err)
		}
	}
	if n := len(contents(t, k).Queries); accepted != slots || n != slots {
		t.Errorf("%d queries were accepted, %d are there, for %d slots", accepted, n, slots)
	}
	// One that waits for its next attempt keeps its slot, and one that has ended before the others, with which it would
	// begin anew; one that has been given up has none.
	if _, err := k.ClaimQueries(t.Context(), "one", lease); err != nil {
		t.Fatal(err)
	}
	q := contents(t, k).Queries[0]
	for _, is := range []struct {
		state    catalog.State
		fragment catalog.FragmentState
		full     bool
	}{{catalog.Deploying, catalog.FragmentFailed, true}, {catalog.Running, catalog.FragmentTerminated, true},
		{catalog.Terminating, catalog.FragmentFailed, false}} {
		q.State, q.Fragments[0].State = is.state, is.fragment
		must(t, k.AdvanceQuery(t.Context(), q))
		q.Revision++
		var e *sql.Error
		err := Apply(t.Context(), k, "CREATE QUERY one_more AS SELECT x FROM a INTO s")
		full := errors.As(err, &e) && e.Kind == sql.InsufficientCapacity
		if full != is.full {
			t.Errorf("%s, its fragment %s, and another query gives %v", is.state, is.fragment, err)
		}
	}
}

// needs: a change that names one query, or none, knows which names and slots the others take.
func needs(t *testing.T, k catalog.Store) {
	must(t, Apply(t.Context(), k, infrastructure+"; CREATE QUERY `Query-2` AS SELECT x FROM a INTO s"))
	must(t, Apply(t.Context(), k, "SELECT x FROM a INTO s; SELECT x FROM a INTO s"))
	must(t, Apply(t.Context(), k, "CREATE QUERY mine AS SELECT x FROM a INTO s"))
	var e *sql.Error
	err := Apply(t.Context(), k, "CREATE QUERY MINE AS SELECT x FROM a INTO s")
	if !errors.As(err, &e) || e.Kind != sql.AlreadyExists {
		t.Errorf("a name is given out twice: %v", err)
	}
	must(t, Apply(t.Context(), k, "DROP QUERY Mine"))
	for _, q := range contents(t, k).Queries {
		if (q.Desired == catalog.Stopped) != (q.Name == "mine") {
			t.Errorf("%+v", q)
		}
	}
	for _, refused := range []string{"DROP SINK s", "DROP PHYSICAL SOURCE 1", "DROP WORKER server"} {
		if err := Apply(t.Context(), k, refused); !errors.As(err, &e) || e.Kind != sql.ReferencedQueryExists {
			t.Errorf("%s: %v", refused, err)
		}
	}
	must(t, Apply(t.Context(), k, "SELECT x FROM a INTO s"))
	if err := Apply(t.Context(), k, "SELECT x FROM a INTO s"); !errors.As(err, &e) ||
		e.Kind != sql.InsufficientCapacity {
		t.Errorf("there are more queries than slots: %v", err)
	}
	names := map[string]bool{}
	for _, q := range contents(t, k).Queries {
		names[strings.ToLower(q.Name)] = true
	}
	if len(names) != slots {
		t.Errorf("names %v", names)
	}
	// Of those that a change does not look at it knows what they take.
	take := func(needs catalog.Scope) (u catalog.Usage) {
		must(t, k.ChangeCatalog(t.Context(), needs, func(c *catalog.Catalog) error {
			all := c.Contents()
			u = all.Unread
			for _, q := range all.Queries {
				u.Queries, u.Bytes = u.Queries+1, u.Bytes+q.Bytes()
			}
			u.ByUser = nil
			return nil
		}))
		return u
	}
	some, every := take(catalog.Scope{Names: []string{"mine"}}), take(catalog.Scope{All: true})
	if !reflect.DeepEqual(some, every) || every.Queries != slots {
		t.Errorf("queries take %+v, and %+v where all are read", some, every)
	}
}

func workers(t *testing.T, k catalog.Store) {
	must(t, Apply(t.Context(), k, infrastructure))
	must(t, k.SetWorkers(t.Context(), []catalog.Worker{{Host: "new", Slots: 3, State: catalog.Active},
		{Host: "Edge", Slots: 9, State: catalog.Unreachable}}))
	states := map[string]string{}
	for _, w := range contents(t, k).Workers {
		states[w.Host] = fmt.Sprint(w.State, w.Slots, w.Peers)
	}
	if want := map[string]string{"server": "ACTIVE5 []", "sink": "UNREACHABLE4 []", "edge": "UNREACHABLE1 [sink]",
		"new": "ACTIVE3 []"}; !reflect.DeepEqual(states, want) {
		t.Errorf("%v", states)
	}
}

func watching(t *testing.T, k catalog.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	heard, done := make(chan struct{}, 100), make(chan error, 1)
	go func() { done <- k.WatchCatalog(ctx, func() { heard <- struct{}{} }) }()
	wait := func(what string) {
		select {
		case <-heard:
		case <-time.After(20 * time.Second):
			t.Error("nothing was heard of " + what)
		}
	}
	wait("the beginning")
	must(t, Apply(t.Context(), k, infrastructure))
	wait("a change")
	must(t, Apply(t.Context(), k, "CREATE QUERY q AS SELECT x FROM a INTO s"))
	wait("a query")
	if _, err := k.ClaimQueries(t.Context(), "one", lease); err != nil {
		t.Fatal(err)
	}
	wait("a claim")
	must(t, k.AdvanceQuery(t.Context(), contents(t, k).Queries[0]))
	wait("a state")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// groups: a group drops and creates under one name, and CREATE OR REPLACE puts something else in the place of what is
// there; what is read afterwards is what the group made of it. What is the same is left as it was.
func groups(t *testing.T, k catalog.Store) {
	sorted := func(c catalog.Contents) catalog.Contents {
		slices.SortFunc(c.Sinks, func(a, b catalog.Sink) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(c.Logical, func(a, b catalog.LogicalSource) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(c.Workers, func(a, b catalog.Worker) int { return strings.Compare(a.Host, b.Host) })
		slices.SortFunc(c.Physical, func(a, b catalog.PhysicalSource) int { return int(a.ID - b.ID) })
		for i := range c.Queries {
			slices.Sort(c.Queries[i].Sources)
			c.Queries[i].Fragments = slices.Clone(c.Queries[i].Fragments)
			for n := range c.Queries[i].Fragments {
				f := &c.Queries[i].Fragments[n]
				f.Plan = strings.TrimSuffix(f.Plan, "\n")
			}
		}
		return c
	}
	apply := func(text string) (is catalog.Contents, done []string) {
		t.Helper()
		parsed, err := sql.Parse(text)
		must(t, err)
		scope := catalog.ScopeOf(parsed)
		scope.All = true
		var want catalog.Contents
		must(t, k.ChangeCatalog(t.Context(), scope, func(c *catalog.Catalog) error {
			done = nil
			c.SetAuthor(catalog.Author{Name: "bob", UserID: "u2", KeepEqual: true}, time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC))
			c.SetDefaultHost(host, slots)
			for _, p := range parsed {
				r, err := c.Apply(text, p)
				if err != nil {
					return err
				}
				done = append(done, r.Done)
			}
			want = c.Clone().Contents()
			return nil
		}))
		is = sorted(contents(t, k))
		// A list without values is nil or not.
		if want = sorted(want); fmt.Sprintf("%+v", is) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: read\n%+v\nnot\n%+v", text, is, want)
		}
		return is, done
	}
	must(t, Apply(t.Context(), k, infrastructure))
	const create = "CREATE QUERY q AS SELECT x FROM a INTO s"
	must(t, Apply(t.Context(), k, create))
	_, err := k.ClaimQueries(t.Context(), "one", time.Minute)
	must(t, err)
	q := contents(t, k).Queries[0]
	q.State, q.Fragments[0].State, q.Fragments[0].Attempts = catalog.Running, catalog.FragmentRunning, 3
	must(t, k.AdvanceQuery(t.Context(), q))
	before := sorted(contents(t, k))
	// Dropped and created as it was, or only created again, everything is as it was.
	const all = `CREATE LOGICAL SOURCE a(ts TIMESTAMP NOT NULL, x DECIMAL(10, 2), Name TEXT);
		CREATE PHYSICAL SOURCE FOR a TYPE TCP SET('localhost' AS SOURCE.SOCKET_HOST, 5000 AS SOURCE.SOCKET_PORT,
			'JSON' AS PARSER.TYPE, true AS PARSER.HEADER);
		CREATE SINK s(x FLOAT64) TYPE FILE SET('s.csv' AS SINK.FILE_PATH, true AS SINK.APPEND);` + create
	for _, same := range []string{all, "CREATE WORKER IF NOT EXISTS edge SET(7 AS NUM_SLOTS);" + all,
		"DROP QUERY q; DROP SINK s; DROP PHYSICAL SOURCE 1; DROP LOGICAL SOURCE a;" + all,
		strings.ReplaceAll(all, "CREATE ", "CREATE OR REPLACE "), "SELECT x FROM a INTO s"} {
		if is, done := apply(same); !reflect.DeepEqual(is, before) {
			t.Errorf("%s: %q makes\n%+v\nof\n%+v", same, done, is, before)
		}
	}
	// The schema evolves: all is made anew under the same names, and the query keeps its id.
	is, done := apply(`DROP QUERY q; DROP SINK s; DROP PHYSICAL SOURCE 1; DROP LOGICAL SOURCE a;
		CREATE LOGICAL SOURCE a(ts TIMESTAMP, x FLOAT64, y TEXT);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('b.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
		CREATE SINK s(x FLOAT64, y TEXT) TYPE FILE SET('t.csv' AS SINK.FILE_PATH); CREATE QUERY q AS SELECT x, y FROM a INTO s`)
	if n := is.Queries; len(n) != 1 || n[0].ID != q.ID || n[0].State != catalog.Pending ||
		n[0].Desired != catalog.Running ||
		n[0].Fragments[0].Attempts != 3 ||
		n[0].CreatedBy != "bob" ||
		!n[0].CreatedAt.After(q.CreatedAt) ||
		n[0].Revision <= q.Revision ||
		done[len(done)-1] != "replaced the query q" {
		t.Errorf("%q: %+v", done, n)
	}
	if err := k.AdvanceQuery(t.Context(), q); !errors.Is(err, store.ErrFenced) {
		t.Errorf("what was decided of the query before is kept: %v", err)
	}
	// What others use is replaced under them, or the reason is told why it cannot be.
	is, _ = apply(
		`CREATE OR REPLACE PHYSICAL SOURCE FOR a TYPE FILE SET('c.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
		CREATE OR REPLACE LOGICAL SOURCE a(x FLOAT64, y TEXT, z INT8); CREATE OR REPLACE SINK s TYPE PRINT;
		CREATE OR REPLACE WORKER sink SET(9002 AS GRPC_PORT, 8 AS NUM_SLOTS)`,
	)
	if n := is.Queries[0]; n.Statement != "SELECT x, y FROM a INTO s" || !n.CreatedAt.After(q.CreatedAt) ||
		!slices.Contains(n.Sources, is.LastSourceID) || len(is.Sinks[0].Columns) > 0 || n.CreatedBy != "bob" {
		t.Errorf("%+v", is)
	}
	before = sorted(contents(t, k))
	for text, kind := range map[string]sql.Kind{
		"CREATE OR REPLACE LOGICAL SOURCE a(x FLOAT64)":                         sql.ReferencedQueryExists,
		"CREATE OR REPLACE SINK s(x FLOAT64) TYPE PRINT":                        sql.ReferencedQueryExists,
		"CREATE SINK s TYPE GUARDRAIL":                                          sql.AlreadyExists,
		"CREATE QUERY q AS SELECT y FROM a INTO s":                              sql.AlreadyExists,
		"CREATE OR REPLACE QUERY q AS SELECT nothing FROM a INTO s":             sql.BinderError,
		"CREATE OR REPLACE WORKER edge SET('sink' AS PEERS, 'server' AS PEERS)": sql.InvalidTopology,
		"DROP SINK s": sql.ReferencedQueryExists,
		"DROP QUERY q; DROP SINK s; CREATE QUERY q AS SELECT x FROM a INTO s": sql.SinkDoesNotExistForQuery,
	} {
		err := Apply(t.Context(), k, text)
		var e *sql.Error
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%s: %v", text, err)
		}
		if after := sorted(contents(t, k)); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: half of a group is kept: %+v", text, after)
		}
	}
	// What a query that was dropped has used goes in the same group, and it ends as it would.
	is, _ = apply(
		"DROP QUERY q; DROP SINK s; DROP PHYSICAL SOURCE " + fmt.Sprint(is.LastSourceID) + "; DROP LOGICAL SOURCE a",
	)
	if n := is.Queries[0]; len(is.Sinks) > 0 || len(is.Logical) > 0 || n.Sink != "" || n.Desired != catalog.Stopped {
		t.Errorf("%+v", is)
	}
	q = is.Queries[0]
	q.State = catalog.Stopped
	must(t, k.AdvanceQuery(t.Context(), q))
	if n := contents(t, k).Queries; len(n) > 0 {
		t.Errorf("%+v", n)
	}
}
