package protocol_test

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
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// policies says of every kind of message what docs/contribute/architecture.md says.
var policies = []struct {
	m      any
	policy protocol.Policy
}{
	{protocol.AssignRun{}, protocol.MustArrive},
	{protocol.RunEvent{}, protocol.MustArrive},
	{protocol.RunState{}, protocol.Latest},
	{protocol.ArtifactAck{}, protocol.MustArrive},
	{protocol.WorkerAck{}, protocol.MustArrive},
	{protocol.Drain{}, protocol.MustArrive},
	{protocol.Ping{}, protocol.Latest},
	{protocol.StatusAck{}, protocol.Latest},
	{protocol.Hello{}, protocol.Latest},
	{protocol.Status{}, protocol.Latest},
	{protocol.RunAccepted{}, protocol.MustArrive},
	{protocol.RunRejected{}, protocol.MustArrive},
	{protocol.WorkerState{Status: engine.WorkerRunning}, protocol.Latest},
	{protocol.WorkerState{Status: engine.WorkerFailed}, protocol.MustArrive},
	{protocol.Snapshot{}, protocol.MayDrop},
	{protocol.Snapshot{WorkerSnapshot: engine.WorkerSnapshot{StepOver: true}}, protocol.MustArrive},
	{protocol.Log{}, protocol.MayDrop},
	{protocol.WorkReady{}, protocol.MustArrive},
	{protocol.PluginRequest{}, protocol.MustArrive},
	{protocol.Pong{}, protocol.Latest},
}

// said is how docs/contribute/architecture.md names the policies.
var said = map[protocol.Policy]string{protocol.MustArrive: "must arrive", protocol.Latest: "the latest counts",
	protocol.MayDrop: "may be dropped"}

func TestEveryKindOfMessageHasItsPolicy(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/contribute/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var covered []string
	for _, c := range policies {
		var got protocol.Policy
		switch m := c.m.(type) {
		case protocol.ToNode:
			got, _ = protocol.PolicyToNode(m)
		case protocol.FromNode:
			got, _ = protocol.PolicyFromNode(m)
		}
		name := reflect.TypeOf(c.m).Name()
		covered = append(covered, name)
		if got != c.policy {
			t.Errorf("%+v: policy %d, want %d", c.m, got, c.policy)
		}
		row := ""
		for line := range strings.Lines(string(doc)) {
			if strings.HasPrefix(line, "- `"+name+"`") {
				row = line
			}
		}
		if !strings.Contains(row, said[c.policy]) {
			t.Errorf("docs/contribute/architecture.md does not say of %s %q: %q", name, said[c.policy], row)
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
		b := protocol.NewMailbox(protocol.PolicyFromNode, func(protocol.FromNode) { dropped++ })
		var results []string
		logs, pongs, inside := 0, int64(0), 0
		n := rapid.IntRange(1, 2*protocol.MaxWaiting).Draw(t, "messages")
		every := rapid.IntRange(1, 20).Draw(t, "every")
		for i := range n {
			switch i % every {
			case 0:
				results = append(results, string(rune('a'+i%26)))
				b.Put(protocol.WorkReady{WorkID: results[len(results)-1]})
			case 1:
				pongs++
				b.Put(protocol.Pong{Seq: pongs})
			default:
				logs++
				b.Put(protocol.Log{LogEntry: engine.LogEntry{Seq: int64(logs)}})
			}
		}
		last := int64(0)
		var got []string
		for m, ok := b.Take(); ok; m, ok = b.Take() {
			switch m := m.(type) {
			case protocol.WorkReady:
				got = append(got, m.WorkID)
			case protocol.Pong:
				if m.Seq != pongs {
					t.Fatalf("the pong %d of %d", m.Seq, pongs)
				}
			case protocol.Log:
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
		if inside != min(logs, protocol.MaxWaiting) || dropped != logs-inside || inside > 0 && last != int64(logs) {
			t.Fatalf("%d lines of %d, %d dropped, the last is %d", inside, logs, dropped, last)
		}
	})
}

// TestAStalledNodeLosesNoEvent: what is decided while nobody reads arrives afterwards, whole
// and in order, and the pings of that time as one.
func TestAStalledNodeLosesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 3000
		server, node := protocol.Pipe(nil)
		b := protocol.NewMailbox(protocol.PolicyToNode, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Deliver(ctx, server.Send, nil) }()
		for i := range events {
			b.Put(protocol.RunEvent{Event: engine.Event{SequenceID: int64(i + 1)}})
			b.Put(protocol.Ping{Seq: int64(i)})
		}
		time.Sleep(10 * protocol.SendTimeout)
		for want := int64(1); want <= events; want++ {
			m, err := node.Receive(ctx)
			if e, ok := m.(protocol.RunEvent); err != nil || !ok || e.Event.SequenceID != want {
				t.Fatalf("instead of event %d: %+v, %v", want, m, err)
			}
		}
		if m, err := node.Receive(ctx); err != nil || m != (protocol.Ping{Seq: events - 1}) {
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
		b := protocol.NewMailbox(protocol.PolicyFromNode, nil)
		for i := range 5 {
			b.Put(protocol.WorkReady{WorkID: string(rune('a' + i))})
		}
		var got []string
		for range 2 {
			server, node := protocol.Pipe(nil)
			ended := make(chan error, 1)
			go func() { ended <- b.Deliver(t.Context(), node.Send, nil) }()
			for len(got)%3 < 2 && b.Len() > 0 {
				m, err := server.Receive(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m.(protocol.WorkReady).WorkID)
				synctest.Wait()
			}
			_ = server.Close()
			if err := <-ended; !errors.Is(err, protocol.ErrClosed) {
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
	b := protocol.NewMailbox(protocol.PolicyFromNode, nil)
	line := func(run string) { b.Put(protocol.Log{LogEntry: engine.LogEntry{RunID: run}}) }
	state := func(run string, at int) {
		b.Put(protocol.WorkerState{RunID: run, WorkerID: "w", Status: engine.WorkerRunning, OpenConnections: at})
	}
	for i := range 3 {
		line("a")
		line("b")
		state("a", i)
		state("b", i)
	}
	b.Put(protocol.Pong{Seq: 1})
	given := b.RemoveMatching(func(m protocol.FromNode) bool { return protocol.RunIDOf(m) == "a" })
	if len(given) != 4 {
		t.Fatalf("given away: %+v", given)
	}
	state("a", 7) // the first of its subject again
	for range protocol.MaxWaiting - 3 {
		line("c")
	}
	var runs []string
	n := 0
	for m, ok := b.Take(); ok; m, ok = b.Take() {
		if n++; protocol.RunIDOf(m) != "c" {
			runs = append(runs, protocol.RunIDOf(m))
		}
	}
	if want := []string{"b", "b", "b", "b", "", "a"}; !slices.Equal(runs, want) || n != protocol.MaxWaiting+3 {
		t.Errorf("%d left, of %q, want %q", n, runs, want)
	}
}

// TestAMessageThatCanNeverBeSentHoldsUpNothing: it is told of, and what stands behind it goes out.
func TestAMessageThatCanNeverBeSentHoldsUpNothing(t *testing.T) {
	for name, never := range map[string]error{"too large": protocol.ErrTooLarge, "not written": protocol.ErrUnsendable} {
		b := protocol.NewMailbox(protocol.PolicyToNode, nil)
		b.Put(protocol.RunEvent{Event: engine.Event{SequenceID: 1}})
		b.Put(protocol.AssignRun{RunID: "r"})
		b.Put(protocol.RunEvent{Event: engine.Event{SequenceID: 2}})
		ctx, cancel := context.WithCancel(t.Context())
		var sent []int64
		var unsent []protocol.ToNode
		_ = b.Deliver(ctx, func(_ context.Context, m protocol.ToNode) error {
			e, ok := m.(protocol.RunEvent)
			if !ok {
				return never
			}
			if sent = append(sent, e.Event.SequenceID); len(sent) == 2 {
				cancel()
			}
			return nil
		}, func(m protocol.ToNode, err error) {
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
