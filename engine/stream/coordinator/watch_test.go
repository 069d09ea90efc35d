package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
)

// TestWatch: a watch begins with all, tells what changes, tells a slow reader of many changes as one, goes on behind a
// position, and ends with its reader.
func TestWatch(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{}
	c := begin(t, k, p, "one")
	execute(t, c, "CREATE SINK s TYPE PRINT")
	view := func() *watch.View {
		v, err := watch.Parse("WATCH SELECT name, type FROM sinks")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan watch.Event, 100), make(chan error, 1)
	slow := make(chan struct{})
	go func() {
		ended <- c.Watch(ctx, "", view(), "", func(list []watch.Event) error {
			for _, e := range list {
				events <- e
			}
			if len(list) > 0 && strings.Contains(string(list[0].Rows[0]), "wait") {
				<-slow
			}
			return nil
		})
	}()
	next := func(want string) watch.Event {
		t.Helper()
		select {
		case e := <-events:
			if got := fmt.Sprintf("%s %s", e.Kind, e.Rows); got != want {
				t.Fatalf("%s, not %s", got, want)
			}
			return e
		case <-time.After(10 * time.Second):
			t.Fatalf("no %s", want)
		}
		return watch.Event{}
	}
	first := next(`SNAPSHOT [{"name":"s","type":"PRINT"}]`)
	if fmt.Sprint(first.Columns) != "[name type]" || first.Position == "" {
		t.Errorf("%+v", first)
	}
	began := time.Now()
	execute(t, c, "CREATE SINK wait TYPE GUARDRAIL")
	last := next(`CREATE [{"name":"wait","type":"GUARDRAIL"}]`)
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
	for i := range 20 {
		execute(t, c, fmt.Sprintf("CREATE SINK m%d TYPE PRINT", i))
		execute(t, c, fmt.Sprintf("DROP SINK m%d", i))
	}
	execute(t, c, "DROP SINK wait; CREATE SINK wait TYPE PRINT; DROP SINK s")
	close(slow)
	next(`DROP [{"name":"s","type":"PRINT"}]`)
	next(`UPDATE [{"name":"wait","type":"PRINT"}]`)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	// Whoever comes back hears what has changed since; whose position nobody knows gets all.
	stop := errors.New("enough")
	for after, want := range map[string]string{last.Position: "RESUMED []; DROP; UPDATE",
		first.Position: "RESUMED []; DROP; CREATE", "elsewhere.7": "SNAPSHOT", last.Position + "9": "SNAPSHOT"} {
		err := c.Watch(t.Context(), "", view(), after, func(list []watch.Event) error {
			var got []string
			for _, e := range list {
				text := string(e.Kind)
				if e.Kind == watch.Resumed {
					text += fmt.Sprintf(" %s", e.Rows)
				}
				got = append(got, text)
			}
			if strings.Join(got, "; ") != want {
				t.Errorf("behind %s: %q, not %q", after, got, want)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("%v", err)
		}
	}
}

// deaf hears nothing of changes, as one whose connection was cut without a word.
type deaf struct{ *catalogtest.Store }

func (deaf) WatchCatalog(ctx context.Context, heard func()) error {
	heard()
	<-ctx.Done()
	return ctx.Err()
}

// TestAWatchBeginsWithWhatIsThere, not with what another watcher was told a moment ago: another server may have told
// more to who comes from there.
func TestAWatchBeginsWithWhatIsThere(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{}
	other := begin(t, k, p, "one")
	c := begin(t, deaf{k}, p, "two")
	first := func() string {
		t.Helper()
		v, err := watch.Parse("WATCH SELECT name FROM sinks")
		if err != nil {
			t.Fatal(err)
		}
		var all string
		enough := errors.New("enough")
		if err := c.Watch(t.Context(), "", v, "", func(list []watch.Event) error {
			all = fmt.Sprintf("%s", list[0].Rows)
			return enough
		}); !errors.Is(err, enough) {
			t.Fatal(err)
		}
		return all
	}
	if got := first(); got != "[]" {
		t.Fatal(got)
	}
	execute(t, other, "CREATE SINK s TYPE PRINT")
	if got := first(); got != `[{"name":"s"}]` {
		t.Errorf("it begins with %s", got)
	}
}

// TestWhatWatchesShowHasAnOwner: what they keep counts in the memory of the process and for their user, who may not
// have it all, and a query that needs it gets it.
func TestWhatWatchesShowHasAnOwner(t *testing.T) {
	limits := memory.Limits{Pool: memory.NewPool(90 << 20)}
	c := openOver(t, coordinator.Options{Store: &catalogtest.Store{}, Connectors: &pipes{}, Owner: "one", Memory: limits})
	var sinks strings.Builder
	for i := range 40 {
		fmt.Fprintf(&sinks, "CREATE SINK s%d TYPE PRINT;", i)
	}
	execute(t, c, sinks.String())
	v, err := watch.Parse("WATCH SELECT name || '" + strings.Repeat("a", 100_000) + "' AS long FROM sinks") // 4 MB
	if err != nil {
		t.Fatal(err)
	}
	v.Timeout = time.Hour // of a machine that is busy, too
	open := func(ctx context.Context, user string) <-chan error {
		t.Helper()
		begun, ended := make(chan bool, 100), make(chan error, 2)
		go func() {
			ended <- c.Watch(ctx, user, v, "", func(events []watch.Event) error {
				if len(events) > 0 {
					begun <- true
				}
				return nil
			})
		}()
		select {
		case <-begun:
		case err := <-ended:
			ended <- err
		case <-time.After(time.Minute):
			t.Fatal("no answer")
		}
		return ended
	}
	refused := func(err error, says string) {
		t.Helper()
		var e *sql.Error
		if !errors.As(err, &e) || e.Kind != sql.StateLimit || !strings.Contains(e.Message, says) || e.Hint == "" {
			t.Errorf("it ended with %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 10)
	for range 8 {
		of := open(ctx, "eve")
		go func() { ended <- <-of }()
	}
	select {
	case err := <-open(ctx, "eve"):
		refused(err, "your watches of the catalog would show more than 32 MiB together")
	case <-time.After(time.Minute):
		t.Error("a user's watches show more than they may")
	}
	other := open(ctx, "bob")
	if used := limits.Pool.Used(); used < 9*4_000_000 {
		t.Errorf("%d bytes are counted of nine views", used)
	}
	query := limits.Open(memory.Holder{Owner: "dan"}, 0, nil)
	if err := query.Grow(60 << 20); err != nil || query.Stopped() {
		t.Errorf("a query does not get what watches hold: %v", err)
	}
	// Enough of hers end, who has the most.
	for range 2 {
		select {
		case err := <-ended:
			refused(err, "need the memory of the WATCH")
		case <-time.After(time.Minute):
			t.Fatal("no watch has ended")
		}
	}
	query.Close()
	open(ctx, "eve") // what has ended counts no longer
	select {
	case err := <-ended:
		t.Errorf("more have ended than had to: %v", err)
	case err := <-other:
		t.Errorf("another user's has ended: %v", err)
	default:
	}
	cancel()
	for end := time.Now().Add(time.Minute); limits.Pool.Used() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are counted of no watch", limits.Pool.Used())
		}
	}
}
