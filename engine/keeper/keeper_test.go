package keeper

import (
	"context"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// lost is a store in which another server owns the run.
type lost struct{ store.Runs }

func (lost) SaveTick(context.Context, store.Tick) error { return store.ErrFenced }

func (lost) SaveResult(context.Context, engine.RunResult) error {
	return errors.New("written by a server that the run does not belong to")
}

// TestNothingIsWrittenAfterTheRunIsLost: what waits behind the write that was fenced would
// be written over what the new owner has made of the run.
func TestNothingIsWrittenAfterTheRunIsLost(t *testing.T) {
	k := New(lost{}, "r", 1, zerolog.Nop())
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

// owned is a store that takes what the owner in epoch 7 writes.
type owned struct{ store.Runs }

func (owned) SaveResult(_ context.Context, r engine.RunResult) error { return inSeven(r.Epoch) }

func (owned) SaveArtifact(_ context.Context, epoch int64, _ engine.Artifact) error {
	return inSeven(epoch)
}

func inSeven(epoch int64) error {
	if epoch != 7 {
		return store.ErrFenced
	}
	return nil
}

// TestResultsAreWrittenInTheOwnersEpoch, whatever the rows themselves say.
func TestResultsAreWrittenInTheOwnersEpoch(t *testing.T) {
	k := New(owned{}, "r", 7, zerolog.Nop())
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
