package outcome

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/control/controltest"
	"github.com/loadstone-db/loadstone/engine/fleet"
	"github.com/loadstone-db/loadstone/engine/keeper"
	"github.com/loadstone-db/loadstone/engine/store"
)

// steps notes the steps of storing a part, and fails one of them.
type steps struct {
	store.Runs
	mu   sync.Mutex
	done []string
	fail string
}

var errStep = errors.New("not today")

func (s *steps) step(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, name)
	if s.fail == name {
		return errStep
	}
	return nil
}

// kept are the results.
type kept struct {
	store.Results
	s *steps
}

func (k kept) Put(_ context.Context, _ engine.Artifact, from artifact.Source) error {
	if _, ok := from.(fleet.Part); !ok {
		return errors.New("the source is not the part of the node")
	}
	return k.s.step("stored")
}

func (s *steps) SaveArtifact(context.Context, int64, engine.Artifact) error { return s.step("indexed") }
func (s *steps) ID() string                                                 { return "node" }

func (s *steps) Send(m control.ToNode) error {
	if _, ok := m.(control.ArtifactAck); ok {
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
		s := &steps{fail: fail}
		k := keeper.New(s, "r", 1, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { k.Run(ctx) })
		svc := New(Options{Store: s, Results: kept{s: s}, Log: zerolog.Nop()})
		part := fleet.Part{WorkReady: controltest.Announced([]byte("x")), Node: s}
		if err := svc.Keep(ctx, k, part); (err == nil) != (fail == "") {
			t.Errorf("failing %q: %v", fail, err)
		}
		if !slices.Equal(slices.Compact(s.done), want) { // the keeper tries again
			t.Errorf("failing %q: %v", fail, s.done)
		}
		s.done, s.fail = nil, ""
		if err := svc.Keep(ctx, k, part); err != nil || !slices.Equal(s.done, []string{"stored", "indexed", "acknowledged"}) {
			t.Errorf("announced again after %q: %v, %v", fail, s.done, err)
		}
		k.Close()
		cancel()
		wait.Wait()
	}
}
