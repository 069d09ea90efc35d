package coordinator_test

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

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes are feeds whose sources and sinks tests hold in their hands.
type pipes struct {
	hub system.Hub
	mu  sync.Mutex
	// refuse is what opening a sink gives.
	refuse error
	// late keeps sinks from opening until it is closed.
	late   chan struct{}
	opened int
	open   int
	rows   []string
}

func (p *pipes) Source(_ context.Context, s catalog.PhysicalSource, columns []column.Column) (connector.Source, error) {
	return p.hub.Open(s.Config.String("SOURCE.STREAM"), columns), nil
}

func (p *pipes) Sink(
	ctx context.Context,
	_ catalog.Query,
	_ catalog.Sink,
	columns []column.Column,
) (connector.Sink, error) {
	p.mu.Lock()
	late := p.late
	p.opened++
	refuse := p.refuse
	p.mu.Unlock()
	if late != nil {
		select {
		case <-late:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if refuse != nil {
		return nil, refuse
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	s := &sink{of: p}
	var err error
	s.Sink, err = connector.OpenSink(connector.Print, connector.Config{"SINK.INPUT_FORMAT": "CSV"}, columns, nil, taker{p})
	return s, err
}

type sink struct {
	connector.Sink
	of *pipes
}

// taker keeps what is written.
type taker struct{ of *pipes }

func (w taker) Write(text []byte) (int, error) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.of.rows = append(w.of.rows, strings.Fields(string(text))...)
	return len(text), nil
}

func (s *sink) Close() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.open--
	return nil
}

func (p *pipes) counts() (opened, open int, rows []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened, p.open, slices.Clone(p.rows)
}

func begin(t *testing.T, k catalog.Store, p *pipes, owner string) *coordinator.Coordinator {
	t.Helper()
	c, err := coordinator.Open(t.Context(), coordinator.Options{Store: k, Connectors: p, Owner: owner,
		Sources: system.Sources, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func execute(t *testing.T, c *coordinator.Coordinator, sql string) {
	t.Helper()
	if _, err := c.Execute(t.Context(), sql, catalog.Author{Name: "ada"}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestSourcesOfTheProductStay: nobody takes a source away that queries of everybody read, or mixes rows into it.
func TestSourcesOfTheProductStay(t *testing.T) {
	t.Parallel()
	k := &catalogtest.Store{}
	c := begin(t, k, &pipes{}, "one")
	contents, err := k.CatalogContents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	statements := []string{"DROP LOGICAL SOURCE run_events", "DROP LOGICAL SOURCE RUN_EVENTS",
		"CREATE PHYSICAL SOURCE FOR run_events TYPE FILE SET('x.csv' AS SOURCE.FILE_PATH)"}
	for _, p := range contents.Physical {
		statements = append(statements, fmt.Sprintf("DROP PHYSICAL SOURCE %d", p.ID))
	}
	for _, text := range statements {
		_, err := c.Execute(t.Context(), text, catalog.Author{Name: "ada"}, nil)
		if seen := coordinator.StatementError(err); !engine.HasCode(seen, engine.CodeForbidden) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// What a user has made goes away, also where it reads the same stream.
	execute(t, c, "CREATE LOGICAL SOURCE mine(timestamp TIMESTAMP, runId TEXT, event TEXT, status TEXT, phase TEXT, "+
		"reason TEXT); CREATE PHYSICAL SOURCE FOR mine TYPE SYSTEM SET('run_events' AS SOURCE.STREAM)")
	if contents, err = k.CatalogContents(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, c, fmt.Sprintf("DROP PHYSICAL SOURCE %d; DROP LOGICAL SOURCE mine", contents.LastSourceID))
}

// eventually waits until a query is in a state; "" is gone.
func eventually(t *testing.T, k *catalogtest.Store, name string, want catalog.State) catalog.Query {
	t.Helper()
	var last catalog.Query
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		contents, err := k.CatalogContents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = catalog.Query{}
		for _, q := range contents.Queries {
			if q.Name == name {
				last = q
			}
		}
		if last.State == want {
			return last
		}
	}
	t.Fatalf("%s is %q, not %q: %+v", name, last.State, want, last)
	return last
}

const sinks = "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId, event FROM run_events INTO s"

func tell(p *pipes, event string) {
	p.hub.Publish(connector.RunEvents, func(b *column.Batch) {
		for i := range b.Cols {
			switch i {
			case 0:
				b.Cols[i].AppendInt(time.Now().UnixMicro())
			case 2:
				b.Cols[i].AppendText([]byte(event))
			default:
				b.Cols[i].AppendText([]byte("r"))
			}
		}
		b.N++
	})
}

// TestFromCreateToDrop: a query runs, its rows reach the sink, and it is gone when it is dropped.
func TestFromCreateToDrop(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", " GRACEFUL"} {
		k, p := &catalogtest.Store{}, &pipes{}
		c := begin(t, k, p, "one")
		execute(t, c, sinks)
		eventually(t, k, "q", catalog.Running)
		tell(p, "START")
		execute(t, c, "DROP QUERY q"+mode)
		eventually(t, k, "q", "")
		_, open, rows := p.counts()
		if open != 0 || mode != "" && !reflect.DeepEqual(rows, []string{"r,START"}) {
			t.Errorf("%q: %d sinks are open, rows %q", mode, open, rows)
		}
		if p.hub.HasReaders(connector.RunEvents) {
			t.Error("it is read on")
		}
		// Its name is free again, and it runs again.
		execute(t, c, "CREATE QUERY q AS SELECT runId FROM run_events INTO s")
		if q := eventually(t, k, "q", catalog.Running); q.ID != 2 {
			t.Errorf("%+v", q)
		}
	}
}

// TestAcceptedBeforeAnythingIsOpened: a client does not wait for what a query reads and writes.
func TestAcceptedBeforeAnythingIsOpened(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{late: make(chan struct{})}
	c := begin(t, k, p, "one")
	execute(t, c, sinks)
	eventually(t, k, "q", catalog.Deploying)
	// Dropped while it is deployed, it is cancelled.
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", "")
	if _, open, _ := p.counts(); open != 0 {
		t.Errorf("%d sinks are open", open)
	}
}

// TestErrorsThatStay: the query FAILED, says why, and is kept until it is dropped.
func TestErrorsThatStay(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{refuse: fmt.Errorf("%w: there is no such folder", coordinator.ErrUnusable)}
	c := begin(t, k, p, "one")
	execute(t, c, sinks)
	if q := eventually(t, k, "q", catalog.Failed); !strings.Contains(q.Failure, "no such folder") {
		t.Errorf("%+v", q)
	}
	if opened, _, _ := p.counts(); opened != 1 {
		t.Errorf("it was tried %d times", opened)
	}
	if p.hub.HasReaders(connector.RunEvents) {
		t.Error("its source is open")
	}
	_, err := c.Execute(t.Context(), "CREATE QUERY q AS SELECT runId FROM run_events INTO s", catalog.Author{}, nil)
	var e *sql.Error
	if !errors.As(err, &e) || e.Kind != sql.AlreadyExists {
		t.Errorf("%v", err)
	}
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", "")
}

// TestErrorsThatPass: what cannot be reached is tried again until it can.
func TestErrorsThatPass(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{refuse: errors.New("connection refused")}
	c := begin(t, k, p, "one")
	execute(t, c, sinks)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if opened, _, _ := p.counts(); opened >= 2 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("it was tried %d times", opened)
		}
	}
	p.mu.Lock()
	p.refuse = nil
	p.mu.Unlock()
	if q := eventually(t, k, "q", catalog.Running); q.Fragments[0].Attempts < 3 {
		t.Errorf("%+v", q.Fragments)
	}
}

// TestASlowQueryFails: who tells rows does not wait for who reads them.
func TestASlowQueryFails(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{}
	c := begin(t, k, p, "one")
	execute(t, c, sinks)
	eventually(t, k, "q", catalog.Running)
	p.mu.Lock() // the sink takes nothing now
	for range 2000 {
		tell(p, "START")
	}
	p.mu.Unlock()
	if q := eventually(t, k, "q", catalog.Failed); !strings.Contains(q.Failure, "Overloaded") {
		t.Errorf("%+v", q)
	}
}

// TestAnotherServerGoesOn: when a server is gone its queries run at another, once.
func TestAnotherServerGoesOn(t *testing.T) {
	t.Parallel()
	k, one, two := &catalogtest.Store{}, &pipes{}, &pipes{}
	first := begin(t, k, one, "one")
	execute(t, first, sinks)
	eventually(t, k, "q", catalog.Running)
	begin(t, k, two, "two")
	if opened, _, _ := two.counts(); opened != 0 {
		t.Error("it runs twice")
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, open, _ := one.counts(); open != 0 {
		t.Error("it runs where the server has ended")
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, open, _ := two.counts(); open == 1 {
			break
		} else if time.Now().After(end) {
			t.Fatal("nobody goes on")
		}
	}
	if q := eventually(t, k, "q", catalog.Running); q.Owner != "two" || q.Epoch != 2 {
		t.Errorf("%+v", q)
	}
}

// TestQuietCatalog: once everything is as it is desired, nothing is written.
func TestQuietCatalog(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{}
	c := begin(t, k, p, "one")
	execute(t, c, sinks)
	eventually(t, k, "q", catalog.Running)
	time.Sleep(100 * time.Millisecond)
	before := k.Writes()
	time.Sleep(1500 * time.Millisecond)
	if after := k.Writes(); after != before {
		t.Errorf("it was written %d times", after-before)
	}
}

// TestACrashAtAnyStep: whichever write is the last one before a server ends, the next server brings things to what is
// desired.
func TestACrashAtAnyStep(t *testing.T) {
	t.Parallel()
	for last := range 8 {
		k, p := &catalogtest.Store{}, &pipes{}
		c := begin(t, k, p, "one")
		left := last
		k.Fail(func(call string) error {
			if left--; left < 0 {
				return errors.New("the process has ended before " + call)
			}
			return nil
		})
		accepted, err := c.Execute(t.Context(), sinks, catalog.Author{}, nil)
		time.Sleep(20 * time.Millisecond)
		_, dropping := c.Execute(t.Context(), "DROP QUERY q", catalog.Author{}, nil)
		time.Sleep(20 * time.Millisecond)
		_ = c.Close(context.Background())
		k.Fail(nil)
		next := begin(t, k, p, "one")
		want := catalog.Running
		if err != nil || dropping == nil {
			want = ""
		}
		eventually(t, k, "q", want)
		if _, open, _ := p.counts(); want == "" && open != 0 || open > 1 {
			t.Errorf("after %d writes (accepted %v) %d sinks are open", last, accepted != nil, open)
		}
		_ = next.Close(context.Background())
	}
}

// saved are connections by name that have a table t; it counts what is asked of it.
type saved struct {
	grants map[string]catalog.ConnectionGrant
	asked  []string
}

func (s *saved) Grant(_ context.Context, connection string) catalog.ConnectionGrant {
	s.asked = append(s.asked, "may "+connection)
	g := s.grants[connection]
	g.Ref = connection
	return g
}

func (s *saved) Describe(_ context.Context, id, schema, name string) (postgres.Table, error) {
	s.asked = append(s.asked, "table "+id+" "+schema+"."+name)
	return postgres.Table{Schema: "public", Name: name}, nil
}

// TestStatementsAreCheckedBeforeTheyAreApplied: each connection and table is asked for once, between two looks at the
// catalog; what is wrong is said of the first statement that is.
func TestStatementsAreCheckedBeforeTheyAreApplied(t *testing.T) {
	t.Parallel()
	k, denied := &catalogtest.Store{}, errors.New("not yours")
	a := catalog.ConnectionGrant{Exists: true, ID: "1", Name: "a", Driver: "postgres"}
	s := &saved{grants: map[string]catalog.ConnectionGrant{"a": a, "1": a,
		"b": {Exists: true, ID: "2", Name: "b", Driver: "postgres"}, "theirs": {Err: denied}}}
	c, err := coordinator.Open(t.Context(), coordinator.Options{Store: k, Connectors: &pipes{}, Owner: "one",
		Sources: system.Sources, Tables: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	changes := 0
	k.Fail(func(call string) error {
		if call == "ChangeCatalog" {
			changes++
		}
		return nil
	})
	const to = "CREATE SINK %s TYPE POSTGRES SET('%s' AS SINK.CONNECTION, 't' AS SINK.TABLE);"
	text := fmt.Sprintf(to+to+to, "x", "a", "y", "b", "z", "a")
	if _, err := c.Execute(t.Context(), text, catalog.Author{}, s); err != nil {
		t.Fatal(err)
	}
	if asked := strings.Join(s.asked, ", "); asked != "may a, table 1 .t, may b, table 2 .t" || changes != 2 {
		t.Errorf("asked %s, and changed the catalog %d times", asked, changes)
	}
	s.asked = nil
	var refused *sql.Error
	_, err = c.Execute(t.Context(), "CREATE QUERY q AS SELECT runId FROM run_events INTO x", catalog.Author{}, s)
	if asked := strings.Join(s.asked, ", "); asked != "may 1, table 1 public.t" || !errors.As(err, &refused) {
		t.Errorf("asked %s: %v", asked, err)
	}
	for text, want := range map[string]string{
		fmt.Sprintf(to, "w", "theirs"):                                denied.Error(),
		fmt.Sprintf("CREATE SINK x TYPE PRINT;"+to, "w", "theirs"):    "AlreadyExists",
		fmt.Sprintf(to+"CREATE SINK w TYPE PRINT;", "w", "elsewhere"): "there is no connection elsewhere",
	} {
		if _, err := c.Execute(t.Context(), text, catalog.Author{}, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// customer has one connection, whose table has two columns; it is restricted to one user.
type customer struct {
	owner      string
	production bool
	confirmed  bool
	user       string
}

func (s *customer) Grant(_ context.Context, connection string) catalog.ConnectionGrant {
	if s.user != s.owner {
		return catalog.ConnectionGrant{Ref: connection, Err: errors.New("the connection is not " + s.user + "'s")}
	}
	return catalog.ConnectionGrant{Ref: connection, Exists: true, ID: "1", Name: "shop", Driver: "postgres",
		Production: s.production, Confirmed: s.confirmed}
}

func (*customer) Describe(context.Context, string, string, string) (postgres.Table, error) {
	return postgres.Table{Schema: "public", Name: "t", Version: 150000,
		Columns: []postgres.Column{{Name: "x", Type: "bigint", Base: "int8"}}}, nil
}

// sourceless are connectors that cannot open any source.
type sourceless struct{ *pipes }

func (sourceless) Source(context.Context, catalog.PhysicalSource, []column.Column) (connector.Source, error) {
	return nil, errors.New("there is none")
}

// TestWhoReplacesASourceWritesWhereItsQueriesWrite: the rows of a source that somebody puts in the place of another one
// go into the tables of its queries with the rights, and the confirmation, of who has said so, or not at all; and what
// does not fit a table is refused there and then.
func TestWhoReplacesASourceWritesWhereItsQueriesWrite(t *testing.T) {
	t.Parallel()
	k, shop := &catalogtest.Store{}, &customer{owner: "ann"}
	c := openOver(t, coordinator.Options{Store: k, Connectors: sourceless{&pipes{}}, Owner: "one", Tables: shop})
	as := func(user, text string) error {
		t.Helper()
		shop.user = user
		_, err := c.Execute(t.Context(), text, catalog.Author{Name: user, UserID: "id of " + user}, shop)
		return err
	}
	const source = "CREATE OR REPLACE PHYSICAL SOURCE FOR a TYPE FILE SET('%s.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)"
	if err := as("ann", "CREATE LOGICAL SOURCE a(x INT32, y TEXT);"+fmt.Sprintf(source, "ann")+
		";CREATE SINK s TYPE POSTGRES SET('shop' AS SINK.CONNECTION, 't' AS SINK.TABLE);"+
		"CREATE QUERY q AS SELECT x FROM a INTO s; CREATE SINK p TYPE PRINT; CREATE QUERY r AS SELECT x FROM a INTO p"); err != nil {
		t.Fatal(err)
	}
	creators := func() string {
		t.Helper()
		all, err := k.CatalogContents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := all.Physical[0].Config.String("SOURCE.FILE_PATH")
		for _, q := range all.Queries {
			text += fmt.Sprintf(" %s %s %s %q", q.Name, q.CreatedBy, q.CreatedByID, q.Confirmed)
		}
		return text
	}
	before := creators()
	var refused *sql.Error
	for _, text := range []string{fmt.Sprintf(source, "bob"), "CREATE OR REPLACE LOGICAL SOURCE a(x INT16, y TEXT)"} {
		if err := as("bob", text); !errors.As(err, &refused) || refused.Kind != sql.ReferencedQueryExists ||
			!strings.Contains(refused.Message, "the query q could not go on: the connection is not bob's") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := as("ann", "CREATE OR REPLACE LOGICAL SOURCE a(x TEXT, y TEXT)"); !errors.As(err, &refused) ||
		refused.Kind != sql.ReferencedQueryExists || !strings.Contains(refused.Message, "t.x is bigint") {
		t.Errorf("%v", err)
	}
	if is := creators(); is != before {
		t.Errorf("half of what was refused is kept: %s", is)
	}
	shop.owner, shop.production = "bob", true
	if err := as("bob", fmt.Sprintf(source, "bob")); !errors.Is(err, catalog.ErrUnconfirmed) {
		t.Errorf("nobody has confirmed it: %v", err)
	}
	shop.confirmed = true
	if err := as("bob", fmt.Sprintf(source, "bob")); err != nil {
		t.Fatal(err)
	}
	// The other query writes to nothing of anybody's.
	if is := creators(); is != `bob.csv q bob id of bob ["1"] r ann id of ann []` {
		t.Error(is)
	}
	// A sink that writes nowhere has nobody confirm it.
	if err := as("eve", "CREATE OR REPLACE SINK s TYPE PRINT"); err != nil {
		t.Fatal(err)
	}
	if is := creators(); is != `bob.csv q bob id of bob [] r ann id of ann []` {
		t.Error(is)
	}
}
