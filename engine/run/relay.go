// This part brings what is wanted of a run from the server that is asked to the one that
// carries it.
//
// The wish is noted in the control store. Who carries the run hears of it there, at once by what
// the store tells, and by looking again and again while nothing is told; it does what is wanted
// and answers when that is stored. The one that was asked waits for the answer. A wish that nobody
// answers stays noted: who takes the run over does it.

package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	// lookEvery is how often open wishes are looked for, told of or not.
	lookEvery = 2 * time.Second
	// listenAgain is the pause before listening that has failed is tried again.
	listenAgain = 5 * time.Second
	// storeLimit bounds one look at the store.
	storeLimit = 10 * time.Second
	// commandPatience is how long an answer is waited for: what the owner of a run takes, when it is well.
	commandPatience = 5 * time.Second
	// Between two looks for an answer.
	firstLook = 10 * time.Millisecond
	mostLook  = 200 * time.Millisecond
)

// CommandOptions are what a relay is made of; all of them are needed.
type CommandOptions struct {
	Store store.RunWishes
	// Server names this server.
	Server string
	Log    zerolog.Logger
	// Handler does what is wanted.
	Handler remoteHandler
}

// remoteHandler does what is wanted of a run that this server carries. It reports whether that is stored,
// or that there is nothing to do any more; otherwise it is asked again.
type remoteHandler interface {
	handleRemoteCommand(ctx context.Context, w store.RunWish) (done bool, err error)
}

// Relay is the server's end of it. Its methods are safe for concurrent use.
type Relay struct {
	opts CommandOptions
	wake chan struct{}

	mu sync.Mutex
	// doing are the wishes under way here.
	doing map[int64]bool
}

// NewCommand returns a relay; nothing is read or written before Keep and Ask.
func NewCommand(opts CommandOptions) *Relay {
	return &Relay{opts: opts, wake: make(chan struct{}, 1), doing: map[int64]bool{}}
}

// Look has the relay look for open wishes now, as when a run was taken over.
func (r *Relay) Look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Keep does what is wanted of this server's runs, until ctx ends.
func (r *Relay) Keep(ctx context.Context) {
	var helpers sync.WaitGroup
	defer helpers.Wait()
	helpers.Go(func() { r.listen(ctx) })
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	silent := false
	for {
		err := r.look(ctx, helpers.Go)
		if err != nil && ctx.Err() == nil && !silent {
			r.opts.Log.Warn().Err(err).Msg("what is wanted of runs cannot be read; it is read again and again")
		}
		silent = err != nil
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-ticker.C:
		}
	}
}

// listen has the store tell of new wishes.
func (r *Relay) listen(ctx context.Context) {
	silent := false
	for ctx.Err() == nil {
		err := r.opts.Store.HearRunWishes(ctx, r.Look)
		if ctx.Err() == nil && !silent {
			r.opts.Log.Warn().Err(err).Msg("nothing is told of what is wanted of runs; it is looked for every two seconds")
			silent = true
		}
		select {
		case <-time.After(listenAgain):
		case <-ctx.Done():
		}
	}
}

// look begins what is wanted and not under way, each in a goroutine of its own.
func (r *Relay) look(ctx context.Context, run func(func())) error {
	limited, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	wishes, err := r.opts.Store.OpenRunWishes(limited)
	if err != nil {
		return fmt.Errorf("reading what is wanted of runs: %w", err)
	}
	for _, w := range wishes {
		r.mu.Lock()
		busy := r.doing[w.Seq]
		r.doing[w.Seq] = true
		r.mu.Unlock()
		if busy {
			continue
		}
		run(func() {
			r.do(ctx, w)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.doing, w.Seq)
		})
	}
	return nil
}

// do does one wish and answers it.
func (r *Relay) do(ctx context.Context, w store.RunWish) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	done, err := r.opts.Handler.handleRemoteCommand(ctx, w)
	if done && err == nil {
		err = r.opts.Store.AnswerRunWish(ctx, w.Seq, r.opts.Server)
	}
	if err != nil && ctx.Err() == nil {
		r.opts.Log.Warn().Err(err).Str("run_id", w.RunID).Int64("wish", w.Seq).Str("kind", string(w.Kind)).
			Msg("what is wanted of a run could not be done; it is tried again")
	}
}

// Ask notes what is wanted of a run and waits until the server that carries it has done it. When
// that does not answer, the wish stays noted, and the error says so.
func (r *Relay) Ask(ctx context.Context, runID string, kind store.RunWishKind, by string) error {
	seq, err := r.opts.Store.AskOfRun(ctx, store.RunWish{RunID: runID, Kind: kind, By: by, Server: r.opts.Server})
	if err != nil {
		return fmt.Errorf("noting what is wanted of run %s: %w", runID, err)
	}
	r.Look() // it may be carried here by now
	waiting, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	for pause := firstLook; ; pause = min(2*pause, mostLook) {
		w, err := r.opts.Store.RunWish(waiting, seq)
		switch {
		case err == nil && w.AnsweredBy != "":
			return nil
		case err != nil && !errors.Is(err, store.ErrUnavailable) && waiting.Err() == nil:
			return fmt.Errorf("reading what is wanted of run %s: %w", runID, err)
		}
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("waiting for the server that carries run %s: %w", runID, err)
			}
			return &engine.Error{Code: engine.CodeUnavailable,
				Message: fmt.Sprintf("The server that carries the run has not answered within %.0f s.", commandPatience.Seconds()),
				Hint: "nothing has to be done again: what you want is noted, and is done as soon as that server answers, " +
					"or another one takes the run over; look at the run in half a minute"}
		}
	}
}
