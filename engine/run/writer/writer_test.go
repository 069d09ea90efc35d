package writer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// fencedStore is a store in which another server owns the run.
type fencedStore struct{ Store }

func (fencedStore) SaveTick(context.Context, store.Tick) error { return store.ErrFenced }

func (fencedStore) SaveResult(context.Context, ...engine.RunResult) error {
	return errors.New("written by a server that the run does not belong to")
}

// TestNothingIsWrittenAfterTheRunIsLost: what waits behind the write that was fenced would
// be written over what the new owner has made of the run.
func TestNothingIsWrittenAfterTheRunIsLost(t *testing.T) {
	k := New(fencedStore{}, "r", 1, zerolog.Nop())
	k.SaveTick(&store.Tick{RunID: "r", Epoch: 1})
	behind := k.SaveResults("the verdict so far", []engine.RunResult{{ResultID: "r", RunID: "r"}},
		func() { t.Error("it counts as stored") })
	k.Close()
	k.Run(t.Context())
	<-behind.Done()
	if !errors.Is(behind.Err(), store.ErrFenced) || k.Owns(false) {
		t.Errorf("%v, owned: %t", behind.Err(), k.Owns(false))
	}
}

// epochStore is a store that takes what the owner in epoch 7 writes.
type epochStore struct{ Store }

func (epochStore) SaveResult(_ context.Context, rows ...engine.RunResult) error {
	for _, r := range rows {
		if err := inEpochSeven(r.Epoch); err != nil {
			return err
		}
	}
	return nil
}

func (epochStore) SaveArtifact(_ context.Context, epoch int64, _ engine.Artifact) error {
	return inEpochSeven(epoch)
}

func inEpochSeven(epoch int64) error {
	if epoch != 7 {
		return store.ErrFenced
	}
	return nil
}

// TestResultsAreWrittenInTheOwnersEpoch, whatever the rows themselves say.
func TestResultsAreWrittenInTheOwnersEpoch(t *testing.T) {
	k := New(epochStore{}, "r", 7, zerolog.Nop())
	stored := 0
	writes := []*Write{
		k.SaveResults("the results", []engine.RunResult{{ResultID: "r"}, {ResultID: "w"}}, func() { stored++ }),
		k.SaveArtifact(engine.Artifact{Name: "a"}),
	}
	k.Close()
	k.Run(t.Context())
	for _, w := range writes {
		if w.Err() != nil {
			t.Error(w.Err())
		}
	}
	if stored != 1 {
		t.Errorf("stored %d times", stored)
	}
}

// lateStore is a store that commits a transition only after its caller has seen an error, has looked whether it was
// made, and has begun to make it again.
type lateStore struct {
	*fake.Store
	under []store.Transition
	tried int
}

func (l *lateStore) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	if l.tried++; l.tried == 1 {
		l.under = append(l.under, t)
		return nil, store.ErrUnavailable
	}
	for _, before := range l.under {
		if _, err := l.Store.Transition(ctx, before); err != nil {
			return nil, err
		}
	}
	l.under = nil
	return l.Store.Transition(ctx, t)
}

// TestAnEventIsStoredOnceHoweverLateItsCommit: a change of phase leaves the status as it is, so that nothing but
// the ids of its events tells a second attempt that the first one was committed meanwhile.
func TestAnEventIsStoredOnceHoweverLateItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateStore{Store: fake.New()}
		ctx := t.Context()
		if err := s.CreateRun(ctx, engine.Run{RunID: "r"}); err != nil {
			t.Fatal(err)
		}
		k := New(s, "r", 0, zerolog.Nop())
		w := k.Transition(store.Transition{RunID: "r", Events: []engine.Event{{Type: engine.EventSetPhase},
			{Type: engine.EventSetPhase}}}, []engine.Event{{SequenceID: 1}, {SequenceID: 2}})
		k.Close()
		k.Run(ctx)
		<-w.Done()
		events, err := s.Events(ctx, "r", 0)
		if w.Err() != nil || err != nil || len(events) != 2 || s.tried != 2 {
			t.Errorf("%d events after %d attempts, %v, %v", len(events), s.tried, w.Err(), err)
		}
	})
}
