package replay

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// counting is a workload whose operation n of slot s is find with the value
// 1000·s + n, and each tenth a transaction of two.
type counting struct{ plugin.Workload }

func (counting) Info() plugin.Info { return plugin.Info{} }

func (counting) Open(_ context.Context, req plugin.OpenRequest, _ []engine.Statement) (plugin.Stream, error) {
	return &countingStream{next: int64(req.KeySlot) * 1000, seed: req.Seed}, nil
}

type countingStream struct{ next, seed int64 }

func (s *countingStream) Fill(b *plugin.Batch, most int) error {
	b.Reset()
	put := func(statement uint16, n int64) {
		op := plugin.Op{Statement: statement, FirstArg: uint32(len(b.Args))}
		if statement < plugin.StatementBegin {
			op.NArgs = 1
			b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: n})
		}
		b.Ops = append(b.Ops, op)
	}
	for len(b.Ops) < most {
		if s.next%10 == 9 {
			put(plugin.StatementBegin, 0)
			put(0, s.next)
			put(0, s.next)
			put(plugin.StatementCommit, 0)
		} else {
			put(0, s.next)
		}
		s.next++
	}
	return nil
}

func (s *countingStream) Close() error { return nil }

// largeStream gives operations with texts of 64 KB.
type largeStream struct{ batches int }

func (s *largeStream) Fill(b *plugin.Batch, most int) error {
	b.Reset()
	s.batches++
	b.Data = append(b.Data, make([]byte, 64<<10)...)
	for i := range most {
		b.Ops = append(b.Ops, plugin.Op{FirstArg: uint32(i), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeText, Len: 64 << 10})
	}
	return nil
}

func (s *largeStream) Close() error { return nil }

// past is a recorded run of two workers.
type past struct {
	plugin.Host
	status engine.Status
	list   []Execution
}

func (p *past) Workload(context.Context, string) (plugin.Workload, error) { return counting{}, nil }

func (p *past) Run(context.Context, string) (engine.Run, error) {
	return engine.Run{Status: p.status,
		Scenario: engine.Scenario{Workload: engine.Workload{Seed: 7, Params: json.RawMessage(`{}`)}}}, nil
}

func (p *past) Results(context.Context, string) ([]engine.RunResult, error) {
	zero, one := 0, 1
	return []engine.RunResult{{Plan: &engine.Plan{Statements: statements[:1], KeySlots: 8}},
		{WorkerID: "a", WorkerGroupID: &zero}, {WorkerID: "b", WorkerGroupID: &one}}, nil
}

func (p *past) Executions(_ context.Context, _ string, fn func(Execution) error) error {
	for _, e := range p.list {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// TestARecordedRunIsMadeAgain records two workers' streams, mixed up as files are,
// and finds every value again at its time, whatever the number of replaying workers.
func TestARecordedRunIsMadeAgain(t *testing.T) {
	const n = 700
	p := &past{status: engine.StatusCompleted}
	want := map[int64]time.Duration{}
	for i := range int64(n) {
		for slot, worker := range []string{"a", "b"} {
			due := i*1_000_000 + int64(slot)*300_000
			want[int64(slot)*1000+i] = time.Duration(due)
			p.list = append(p.list, Execution{Worker: worker, Statement: "find", Transaction: i%10 == 9,
				Due: 1_700_000_000_000_000_000 + due, Seq: uint32(i)})
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(p.list), func(i, j int) { p.list[i], p.list[j] = p.list[j], p.list[i] })
	r := &Recordings{Store: p, Executions: p, Plugins: p}
	// The statement has another place in the new plan.
	plan := &engine.Plan{Statements: []engine.Statement{statements[2], statements[0]}}
	for _, of := range []int{1, 3} {
		got := map[int64]time.Duration{}
		for share := range of {
			f, err := r.Feed(t.Context(), "run", plan, share, of)
			if err != nil {
				t.Fatal(err)
			}
			var b plugin.Batch
			var at time.Duration
			for f.Next(&b) == nil {
				for _, op := range b.Ops {
					at += op.Delay
					if op.Statement == 1 {
						got[b.Args[op.FirstArg].I] = at
					}
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 2*n {
			t.Fatalf("%d values, expected %d", len(got), 2*n)
		}
		for value, due := range want {
			if got[value] != due {
				t.Fatalf("%d workers: %d at %v, recorded at %v", of, value, got[value], due)
			}
		}
	}
}

func TestWhatCannotBeReplayed(t *testing.T) {
	p := &past{status: engine.StatusRunning, list: []Execution{{Worker: "a", Statement: "find"}}}
	r := &Recordings{Store: p, Executions: p, Plugins: p}
	plan := &engine.Plan{Statements: statements}
	refused := func(says string) {
		t.Helper()
		if _, err := r.Feed(t.Context(), "run", plan, 0, 1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, expected %q", err, says)
		}
	}
	refused("the run is RUNNING")
	p.status = engine.StatusCompleted
	plan.Statements = statements[1:]
	refused("no statement find")
	plan.Statements = statements
	p.list = nil
	refused("no recorded executions")
	p.list = []Execution{{Worker: "stranger", Statement: "find"}}
	refused("is not known")
	// A statement that the stream never gives ends in an error, not in a hang.
	p.list = []Execution{{Worker: "a", Statement: "nowhere"}}
	f, err := r.Feed(t.Context(), "run", plan, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b plugin.Batch
	if err := f.Next(&b); err == nil || !strings.Contains(err.Error(), "gives other operations") {
		t.Error(err)
	}
	// Nor does it fill the memory: values count as well as operations.
	s := &largeStream{}
	o := &original{stream: s, waiting: map[int32][]operations{}}
	large := f.(*recordedFeed)
	large.room = 1 << 20
	if _, err := o.take(large, 99); err == nil || !strings.Contains(err.Error(), "gives other operations") ||
		s.batches > 1 {
		t.Errorf("%v after %d batches", err, s.batches)
	}
	if !slices.Equal(b.Ops, nil) {
		t.Error("operations beside an error")
	}
}
