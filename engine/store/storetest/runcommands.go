package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

func runCommands(t *testing.T, s Store) {
	ctx := t.Context()
	Must(t, s.CreateRun(ctx, NewRun("r1")))
	Must(t, s.CreateRun(ctx, NewRun("r2")))
	heard := make(chan struct{}, 100)
	listening, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.WatchRunCommands(listening, func() { heard <- struct{}{} }) }()
	wait := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case err := <-ended:
			t.Fatalf("%s: listening has ended: %v", what, err)
		case <-time.After(time.Minute):
			t.Fatalf("%s was not heard", what)
		}
	}
	wait("the beginning")
	first, err := s.EnqueueRunCommand(
		ctx,
		store.RunCommand{RunID: "r1", Kind: store.CommandStop, By: "a\x00da", Server: "s1"},
	)
	Must(t, err)
	wait("the first command")
	again, err := s.EnqueueRunCommand(ctx, store.RunCommand{RunID: "r1", Kind: store.CommandStop, By: "bob", Server: "s2"})
	Must(t, err)
	other, err := s.EnqueueRunCommand(
		ctx,
		store.RunCommand{RunID: "r1", Kind: store.CommandStopEnrichment, By: "ada", Server: "s1"},
	)
	Must(t, err)
	second, err := s.EnqueueRunCommand(
		ctx,
		store.RunCommand{RunID: "r2", Kind: store.CommandStop, By: "ada", Server: "s1"},
	)
	Must(t, err)
	if again != first || other <= first || second <= other {
		t.Errorf("numbered %d, again %d, %d, %d", first, again, other, second)
	}
	open, err := s.PendingRunCommands(ctx)
	Must(t, err)
	if len(open) != 3 || open[0].Seq != first || open[0].By != "ada" || open[0].Server != "s1" || open[0].RunID != "r1" ||
		open[0].Kind != store.CommandStop || open[0].EnqueuedAt.IsZero() || open[2].Seq != second {
		t.Errorf("open are %+v", open)
	}
	commandsHeard(t, s, first)
	Must(t, s.AckRunCommand(ctx, first, "s3"))
	Must(t, s.AckRunCommand(ctx, first, "s4"))
	w, err := s.RunCommand(ctx, first)
	Must(t, err)
	if w.AckedBy != "s3" {
		t.Errorf("answered by %q", w.AckedBy)
	}
	// What is answered can be asked again.
	anew, err := s.EnqueueRunCommand(ctx, store.RunCommand{RunID: "r1", Kind: store.CommandStop, By: "ada", Server: "s1"})
	Must(t, err)
	if anew <= second {
		t.Errorf("%d after %d", anew, second)
	}
	nobody := store.RunCommand{RunID: "nobody", Kind: store.CommandStop}
	if _, err := s.EnqueueRunCommand(ctx, nobody); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of a run that is not there: %v", err)
	}
	// They go with their run.
	Must(t, s.DeleteRun(ctx, "r2"))
	if _, err := s.RunCommand(ctx, second); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of a run that was deleted: %v", err)
	}
	stop()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("listening ends without a reason")
		}
	case <-time.After(time.Minute):
		t.Error("listening does not end")
	}
}

// commandsHeard: the first server that says so does a command, until it is enqueued again. With a STOP that it is the
// first to have heard of it takes the run over before its lease has expired, and with nothing else.
func commandsHeard(t *testing.T, s Store, stop int64) {
	t.Helper()
	ctx := t.Context()
	heard := func(server, want string) {
		t.Helper()
		by, err := s.HearRunCommand(ctx, stop, server)
		Must(t, err)
		if w, err := s.RunCommand(ctx, stop); err != nil || by != want || w.HeardBy != want {
			t.Errorf("heard by %q, %q: %v", by, w.HeardBy, err)
		}
	}
	claim := func(owner string, command int64) error {
		_, err := s.Claim(ctx, store.Claim{RunID: "r1", Owner: owner, Command: command})
		return err
	}
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: "s0"})
	Must(t, err)
	WantError(t, claim("s5", stop), store.ErrLeaseHeld) // nobody has heard it
	heard("s4", "s4")
	heard("s5", "s4")
	WantError(t, claim("s5", stop), store.ErrLeaseHeld) // another one does it
	WantError(t, claim("s4", 0), store.ErrLeaseHeld)
	before, err := s.Run(ctx, "r1")
	Must(t, err)
	Must(t, claim("s4", stop))
	if after, err := s.Run(ctx, "r1"); err != nil || after.Owner != "s4" || after.OwnerEpoch != before.OwnerEpoch+1 {
		t.Errorf("taken over: %+v, %v", after, err)
	}
	_, err = s.EnqueueRunCommand(ctx, store.RunCommand{RunID: "r1", Kind: store.CommandStop, By: "bob", Server: "s5"})
	Must(t, err)
	heard("s5", "s5")
	if _, err := s.HearRunCommand(ctx, -1, "s5"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of a command that is not there: %v", err)
	}
}
