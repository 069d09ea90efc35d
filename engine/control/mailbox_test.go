package control_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
)

// policies says of every kind of message what docs/architecture.md says.
var policies = []struct {
	m      any
	policy control.Policy
}{
	{control.AssignRun{}, control.MustArrive},
	{control.RunEvent{}, control.MustArrive},
	{control.RunState{}, control.Latest},
	{control.ArtifactAck{}, control.MustArrive},
	{control.WorkerAck{}, control.MustArrive},
	{control.Drain{}, control.MustArrive},
	{control.Ping{}, control.Latest},
	{control.StatusAck{}, control.Latest},
	{control.Hello{}, control.Latest},
	{control.Status{}, control.Latest},
	{control.RunAccepted{}, control.MustArrive},
	{control.RunRejected{}, control.MustArrive},
	{control.WorkerState{Status: engine.WorkerRunning}, control.Latest},
	{control.WorkerState{Status: engine.WorkerFailed}, control.MustArrive},
	{control.Snapshot{}, control.MayDrop},
	{control.Snapshot{WorkerSnapshot: engine.WorkerSnapshot{StepOver: true}}, control.MustArrive},
	{control.Log{}, control.MayDrop},
	{control.WorkReady{}, control.MustArrive},
	{control.PluginWanted{}, control.MustArrive},
	{control.Pong{}, control.Latest},
}

// said is how docs/architecture.md names the policies.
var said = map[control.Policy]string{control.MustArrive: "must arrive", control.Latest: "the latest counts",
	control.MayDrop: "may be dropped"}

func TestEveryKindOfMessageHasItsPolicy(t *testing.T) {
	doc, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var covered []string
	for _, c := range policies {
		var got control.Policy
		switch m := c.m.(type) {
		case control.ToNode:
			got, _ = control.PolicyToNode(m)
		case control.FromNode:
			got, _ = control.PolicyFromNode(m)
		}
		name := reflect.TypeOf(c.m).Name()
		covered = append(covered, name)
		if got != c.policy {
			t.Errorf("%+v: policy %d, want %d", c.m, got, c.policy)
		}
		row := ""
		for line := range strings.Lines(string(doc)) {
			if strings.HasPrefix(line, "| `"+name+"`") {
				row = line
			}
		}
		if !strings.Contains(row, said[c.policy]) {
			t.Errorf("docs/architecture.md does not say of %s %q: %q", name, said[c.policy], row)
		}
	}
	for _, name := range kinds(t) {
		if !slices.Contains(covered, name) {
			t.Errorf("the policy of %s is not looked at", name)
		}
	}
}

// kinds are the names of all messages, as the source has them.
func kinds(t *testing.T) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "messages.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && (d.Name.Name == "toNode" || d.Name.Name == "fromNode") {
			names = append(names, d.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	if len(names) < 10 {
		t.Fatalf("only %v were found", names)
	}
	return names
}

// TestAMailboxKeepsWhatMustArriveInOrder for any sequence of messages.
func TestAMailboxKeepsWhatMustArriveInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dropped := 0
		b := control.NewMailbox(control.PolicyFromNode, func(control.FromNode) { dropped++ })
		var results []string
		logs, pongs, inside := 0, int64(0), 0
		n := rapid.IntRange(1, 2*control.MostWaiting).Draw(t, "messages")
		every := rapid.IntRange(1, 20).Draw(t, "every")
		for i := range n {
			switch i % every {
			case 0:
				results = append(results, string(rune('a'+i%26)))
				b.Put(control.WorkReady{WorkID: results[len(results)-1]})
			case 1:
				pongs++
				b.Put(control.Pong{Seq: pongs})
			default:
				logs++
				b.Put(control.Log{LogEntry: engine.LogEntry{Seq: int64(logs)}})
			}
		}
		last := int64(0)
		var got []string
		for m, ok := b.Take(); ok; m, ok = b.Take() {
			switch m := m.(type) {
			case control.WorkReady:
				got = append(got, m.WorkID)
			case control.Pong:
				if m.Seq != pongs {
					t.Fatalf("the pong %d of %d", m.Seq, pongs)
				}
			case control.Log:
				if m.Seq <= last {
					t.Fatalf("line %d after %d", m.Seq, last)
				}
				last = m.Seq
				inside++
			}
		}
		if !slices.Equal(got, results) {
			t.Fatalf("%d results of %d", len(got), len(results))
		}
		if inside != min(logs, control.MostWaiting) || dropped != logs-inside || inside > 0 && last != int64(logs) {
			t.Fatalf("%d lines of %d, %d dropped, the last is %d", inside, logs, dropped, last)
		}
	})
}

// TestAStalledNodeLosesNoEvent: what is decided while nobody reads arrives afterwards, whole
// and in order, and the pings of that time as one.
func TestAStalledNodeLosesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 3000
		server, node := control.Pipe(nil)
		b := control.NewMailbox(control.PolicyToNode, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Deliver(ctx, server.Send, nil) }()
		for i := range events {
			b.Put(control.RunEvent{Event: engine.Event{SequenceID: int64(i + 1)}})
			b.Put(control.Ping{Seq: int64(i)})
		}
		time.Sleep(10 * control.SendLimit)
		for want := int64(1); want <= events; want++ {
			m, err := node.Receive(ctx)
			if e, ok := m.(control.RunEvent); err != nil || !ok || e.Event.SequenceID != want {
				t.Fatalf("instead of event %d: %+v, %v", want, m, err)
			}
		}
		if m, err := node.Receive(ctx); err != nil || m != (control.Ping{Seq: events - 1}) {
			t.Fatalf("%+v, %v", m, err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("delivering ended with %v", err)
		}
	})
}

// TestWhatAClosedStreamDidNotTakeGoesWithTheNext: a message is in the mailbox or at the other end.
func TestWhatAClosedStreamDidNotTakeGoesWithTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := control.NewMailbox(control.PolicyFromNode, nil)
		for i := range 5 {
			b.Put(control.WorkReady{WorkID: string(rune('a' + i))})
		}
		var got []string
		for range 2 {
			server, node := control.Pipe(nil)
			ended := make(chan error, 1)
			go func() { ended <- b.Deliver(t.Context(), node.Send, nil) }()
			for len(got)%3 < 2 && b.Len() > 0 {
				m, err := server.Receive(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m.(control.WorkReady).WorkID)
				synctest.Wait()
			}
			_ = server.Close()
			if err := <-ended; !errors.Is(err, control.ErrClosed) {
				t.Fatalf("delivering over a closed stream: %v", err)
			}
			if len(got) == 2 {
				got = append(got, "|")
			}
		}
		if all := strings.Join(got, ""); all != "ab|cd" || b.Len() != 1 {
			t.Errorf("%s, and %d wait", all, b.Len())
		}
	})
}

// TestASiftedMailboxForgetsWhatItGaveAway: the rest keeps its order and its bounds.
func TestASiftedMailboxForgetsWhatItGaveAway(t *testing.T) {
	b := control.NewMailbox(control.PolicyFromNode, nil)
	line := func(run string) { b.Put(control.Log{LogEntry: engine.LogEntry{RunID: run}}) }
	state := func(run string, at int) {
		b.Put(control.WorkerState{RunID: run, WorkerID: "w", Status: engine.WorkerRunning, OpenConnections: at})
	}
	for i := range 3 {
		line("a")
		line("b")
		state("a", i)
		state("b", i)
	}
	b.Put(control.Pong{Seq: 1})
	given := b.Sift(func(m control.FromNode) bool { return control.RunOf(m) == "a" })
	if len(given) != 4 {
		t.Fatalf("given away: %+v", given)
	}
	state("a", 7) // the first of its subject again
	for range control.MostWaiting - 3 {
		line("c")
	}
	var runs []string
	n := 0
	for m, ok := b.Take(); ok; m, ok = b.Take() {
		if n++; control.RunOf(m) != "c" {
			runs = append(runs, control.RunOf(m))
		}
	}
	if want := []string{"b", "b", "b", "b", "", "a"}; !slices.Equal(runs, want) || n != control.MostWaiting+3 {
		t.Errorf("%d left, of %q, want %q", n, runs, want)
	}
}

// TestAMessageThatCanNeverBeSentHoldsUpNothing: it is told of, and what stands behind it goes out.
func TestAMessageThatCanNeverBeSentHoldsUpNothing(t *testing.T) {
	for name, never := range map[string]error{"too large": control.ErrTooLarge, "not written": control.ErrUnsendable} {
		b := control.NewMailbox(control.PolicyToNode, nil)
		b.Put(control.RunEvent{Event: engine.Event{SequenceID: 1}})
		b.Put(control.AssignRun{RunID: "r"})
		b.Put(control.RunEvent{Event: engine.Event{SequenceID: 2}})
		ctx, cancel := context.WithCancel(t.Context())
		var sent []int64
		var unsent []control.ToNode
		_ = b.Deliver(ctx, func(_ context.Context, m control.ToNode) error {
			e, ok := m.(control.RunEvent)
			if !ok {
				return never
			}
			if sent = append(sent, e.Event.SequenceID); len(sent) == 2 {
				cancel()
			}
			return nil
		}, func(m control.ToNode, err error) {
			if !errors.Is(err, never) {
				t.Errorf("%s: %v", name, err)
			}
			unsent = append(unsent, m)
		})
		if !slices.Equal(sent, []int64{1, 2}) || len(unsent) != 1 || b.Len() != 0 {
			t.Errorf("%s: sent %v, told of %d, %d wait", name, sent, len(unsent), b.Len())
		}
		cancel()
	}
}
