package finalize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
)

// stepRecorder notes the steps of storing a part, and fails one of them.
type stepRecorder struct {
	writer.Store
	mu   sync.Mutex
	done []string
	fail string
	err  error // what failing says; errStep without it
}

func (*stepRecorder) WarehouseChanges(context.Context, string) ([]engine.WarehousePoint, error) {
	return nil, nil
}

var errStep = errors.New("not today")

func (s *stepRecorder) step(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, name)
	if s.fail == name {
		return cmp.Or(s.err, errStep)
	}
	return nil
}

// keptResults are the results.
type keptResults struct {
	record.Results
	s *stepRecorder
}

func (k keptResults) Put(_ context.Context, _ engine.Artifact, from record.Source) error {
	if _, ok := from.(nodes.Part); !ok {
		return errors.New("the source is not the part of the node")
	}
	return k.s.step("stored")
}

func (s *stepRecorder) SaveArtifact(context.Context, int64, engine.Artifact) error {
	return s.step("indexed")
}
func (s *stepRecorder) ID() string { return "node" }

func (s *stepRecorder) Send(m protocol.ToNode) error {
	if _, ok := m.(protocol.ArtifactAck); ok {
		return s.step("acknowledged")
	}
	return nil
}

// TestNothingIsAcknowledgedBeforeItIsSafe: stored, then indexed, then acknowledged; what fails ends it
// before that, and the part announced again is taken as at first.
func TestNothingIsAcknowledgedBeforeItIsSafe(t *testing.T) {
	for fail, want := range map[string][]string{
		"":        {"stored", "indexed", "acknowledged"},
		"stored":  {"stored"},
		"indexed": {"stored", "indexed"},
	} {
		s := &stepRecorder{fail: fail}
		k := writer.New(s, "r", 1, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { k.Run(ctx) })
		svc := New(Options{Store: s, Results: keptResults{s: s}, Log: zerolog.Nop()})
		part := nodes.Part{WorkReady: protocoltest.Announcement([]byte("x")), Node: s}
		if err := svc.StorePart(ctx, k, part); (err == nil) != (fail == "") {
			t.Errorf("failing %q: %v", fail, err)
		}
		if !slices.Equal(slices.Compact(s.done), want) { // the keeper tries again
			t.Errorf("failing %q: %v", fail, s.done)
		}
		s.done, s.fail = nil, ""
		if err := svc.StorePart(
			ctx,
			k,
			part,
		); err != nil ||
			!slices.Equal(s.done, []string{"stored", "indexed", "acknowledged"}) {
			t.Errorf("announced again after %q: %v, %v", fail, s.done, err)
		}
		k.Close()
		cancel()
		wait.Wait()
	}
}

// TestAPartOfDeletedExecutionsIsAcknowledged: it is wanted no more, and the node may delete its own.
func TestAPartOfDeletedExecutionsIsAcknowledged(t *testing.T) {
	s := &stepRecorder{fail: "indexed", err: fmt.Errorf("saving artifact: %w", store.ErrExecutionsDeleted)}
	k := writer.New(s, "r", 1, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { k.Run(ctx) })
	svc := New(Options{Store: s, Results: keptResults{s: s}, Log: zerolog.Nop()})
	part := nodes.Part{WorkReady: protocoltest.Announcement([]byte("x")), Node: s}
	if err := svc.StorePart(
		ctx,
		k,
		part,
	); err != nil ||
		!slices.Equal(s.done, []string{"stored", "indexed", "acknowledged"}) {
		t.Errorf("%v, %v", s.done, err)
	}
	k.Close()
	cancel()
	wait.Wait()
}

// concurrentResults are results that take as long as the slowest of those that are put at once, and count them.
type concurrentResults struct {
	record.Results
	mu        sync.Mutex
	now, peak int
	bad       string
}

func (c *concurrentResults) Put(ctx context.Context, a engine.Artifact, _ record.Source) error {
	c.mu.Lock()
	c.now++
	c.peak = max(c.peak, c.now)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	took := time.Second
	if a.Name < "part-04" {
		took = 10 * time.Second // those behind them are there sooner
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.Name == c.bad {
		return errStep
	}
	return nil
}

// orderRecorder are the names of parts as they are indexed, and as they are acknowledged.
type orderRecorder struct {
	writer.Store
	mu                    sync.Mutex
	indexed, acknowledged []string
}

func (*orderRecorder) WarehouseChanges(context.Context, string) ([]engine.WarehousePoint, error) {
	return nil, nil
}

func (o *orderRecorder) SaveArtifact(_ context.Context, _ int64, a engine.Artifact) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.indexed = append(o.indexed, a.Name)
	return nil
}

func (o *orderRecorder) ID() string { return "node" }

func (o *orderRecorder) Send(m protocol.ToNode) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a, ok := m.(protocol.ArtifactAck); ok {
		o.acknowledged = append(o.acknowledged, a.Name)
	}
	return nil
}

// TestPartsAreFetchedBesideEachOther: so many at a time and no more, indexed and acknowledged in their order; one that
// cannot be stored keeps no other from it, and an end of the process ends all.
func TestPartsAreFetchedBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, c := &orderRecorder{}, &concurrentResults{bad: "part-07"}
		k := writer.New(o, "r", 1, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { k.Run(ctx) })
		svc := New(Options{Store: o, Results: c, Log: zerolog.Nop()})
		var parts []nodes.Part
		var want []string
		for i := range 24 {
			p := nodes.Part{WorkReady: protocoltest.Announcement([]byte("x")), Node: o}
			p.Artifact.Name = fmt.Sprintf("part-%02d", i)
			parts = append(parts, p)
			if p.Artifact.Name != c.bad {
				want = append(want, p.Artifact.Name)
			}
		}
		began := time.Now()
		errs := svc.storeParts(ctx, k, parts)
		if took := time.Since(began); took > 15*time.Second || c.peak != maxConcurrentFetches {
			t.Errorf("%v for all, %d at a time", took, c.peak)
		}
		for i, err := range errs {
			if (err != nil) != (parts[i].Artifact.Name == c.bad) {
				t.Errorf("%s: %v", parts[i].Artifact.Name, err)
			}
		}
		if !slices.Equal(o.indexed, want) || !slices.Equal(o.acknowledged, want) {
			t.Errorf("indexed %v, acknowledged %v", o.indexed, o.acknowledged)
		}
		time.AfterFunc(500*time.Millisecond, cancel)
		began = time.Now()
		if errs = svc.storeParts(ctx, k, parts); slices.Contains(errs, nil) || time.Since(began) > time.Second {
			t.Errorf("%v after the process was to end: %v", time.Since(began), errs)
		}
		wait.Wait()
	})
}
