// This part brings what is wanted of a run from the server that is asked to the one that
// carries it.
//
// The command is noted in the control store. Who carries the run hears of it there, at once by what
// the store tells, and by looking again and again while nothing is told; it does what is wanted
// and answers when that is stored. The one that was asked waits for the answer. A command that nobody
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
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	// commandPollInterval is how often open commands are looked for, told of or not.
	commandPollInterval = 2 * time.Second
	// listenRetryDelay is the pause before listening that has failed is tried again.
	listenRetryDelay = 5 * time.Second
	// commandStoreTimeout bounds one look at the store.
	commandStoreTimeout = 10 * time.Second
	// commandTimeout is how long an answer is waited for: what the owner of a run takes, when it is well.
	commandTimeout = 5 * time.Second
	// Between two looks for an answer.
	minAnswerPoll = 10 * time.Millisecond
	maxAnswerPoll = 200 * time.Millisecond
)

// CommandStore brings what is wanted of a run from the server that is asked to the one that carries
// it, or that takes it over.
type CommandStore interface {
	// EnqueueRunCommand notes a command and returns its Seq; the same that is noted already and not
	// answered is that one. ErrNotFound: there is no such run.
	EnqueueRunCommand(ctx context.Context, w store.RunCommand) (seq int64, err error)
	// RunCommand reads one; ErrNotFound when its run is deleted.
	RunCommand(ctx context.Context, seq int64) (store.RunCommand, error)
	// PendingRunCommands returns those that nobody has answered, oldest first.
	PendingRunCommands(ctx context.Context) ([]store.RunCommand, error)
	// AckRunCommand notes that a command is done. Repeating it is harmless; the first answer stays.
	AckRunCommand(ctx context.Context, seq int64, server string) error
	// WatchRunCommands calls heard as soon as it listens, and whenever a command has been noted since.
	// It returns when ctx ends, or listening has failed.
	WatchRunCommands(ctx context.Context, heard func()) error
}

// RemoteCommandOptions are what a relay is made of; all of them are needed.
type RemoteCommandOptions struct {
	Store CommandStore
	// Server names this server.
	Server string
	Log    zerolog.Logger
	// Handler does what is wanted.
	Handler remoteHandler
}

// remoteHandler does what is wanted of a run that this server carries. It reports whether that is stored,
// or that there is nothing to do any more; otherwise it is asked again.
type remoteHandler interface {
	handleRemoteCommand(ctx context.Context, w store.RunCommand) (done bool, err error)
}

// RemoteCommands is the server's end of it. Its methods are safe for concurrent use.
type RemoteCommands struct {
	opts RemoteCommandOptions
	wake chan struct{}

	mu sync.Mutex
	// inFlight are the commands under way here.
	inFlight map[int64]bool
}

// NewRemoteCommands returns a relay; nothing is read or written before Run and Request.
func NewRemoteCommands(opts RemoteCommandOptions) *RemoteCommands {
	return &RemoteCommands{opts: opts, wake: make(chan struct{}, 1), inFlight: map[int64]bool{}}
}

// Wake has the relay look for open commands now, as when a run was taken over.
func (r *RemoteCommands) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run does what is wanted of this server's runs, until ctx ends.
func (r *RemoteCommands) Run(ctx context.Context) {
	var helpers sync.WaitGroup
	defer helpers.Wait()
	helpers.Go(func() { r.listen(ctx) })
	ticker := time.NewTicker(commandPollInterval)
	defer ticker.Stop()
	silent := false
	for {
		err := r.dispatchOpen(ctx, helpers.Go)
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

// listen has the store tell of new commands.
func (r *RemoteCommands) listen(ctx context.Context) {
	silent := false
	for ctx.Err() == nil {
		err := r.opts.Store.WatchRunCommands(ctx, r.Wake)
		if ctx.Err() == nil && !silent {
			r.opts.Log.Warn().Err(err).Msg("nothing is told of what is wanted of runs; it is looked for every two seconds")
			silent = true
		}
		select {
		case <-time.After(listenRetryDelay):
		case <-ctx.Done():
		}
	}
}

// dispatchOpen begins what is wanted and not under way, each in a goroutine of its own.
func (r *RemoteCommands) dispatchOpen(ctx context.Context, run func(func())) error {
	limited, cancel := context.WithTimeout(ctx, commandStoreTimeout)
	defer cancel()
	commands, err := r.opts.Store.PendingRunCommands(limited)
	if err != nil {
		return fmt.Errorf("reading what is wanted of runs: %w", err)
	}
	for _, w := range commands {
		r.mu.Lock()
		busy := r.inFlight[w.Seq]
		r.inFlight[w.Seq] = true
		r.mu.Unlock()
		if busy {
			continue
		}
		run(func() {
			r.handle(ctx, w)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.inFlight, w.Seq)
		})
	}
	return nil
}

// handle does one command and answers it.
func (r *RemoteCommands) handle(ctx context.Context, w store.RunCommand) {
	ctx, cancel := context.WithTimeout(ctx, commandStoreTimeout)
	defer cancel()
	done, err := r.opts.Handler.handleRemoteCommand(ctx, w)
	if done && err == nil {
		err = r.opts.Store.AckRunCommand(ctx, w.Seq, r.opts.Server)
	}
	if err != nil && ctx.Err() == nil {
		r.opts.Log.Warn().Err(err).Str("run_id", w.RunID).Int64("command", w.Seq).Str("kind", string(w.Kind)).
			Msg("what is wanted of a run could not be done; it is tried again")
	}
}

// Request notes what is wanted of a run and waits until the server that carries it has done it. When
// that does not answer, the command stays noted, and the error says so.
func (r *RemoteCommands) Request(ctx context.Context, runID string, kind store.RunCommandKind, by string) error {
	seq, err := r.opts.Store.EnqueueRunCommand(
		ctx,
		store.RunCommand{RunID: runID, Kind: kind, By: by, Server: r.opts.Server},
	)
	if err != nil {
		return fmt.Errorf("noting what is wanted of run %s: %w", runID, err)
	}
	r.Wake() // it may be carried here by now
	waiting, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	for again := (backoff.Backoff{Min: minAnswerPoll, Max: maxAnswerPoll}); ; {
		w, err := r.opts.Store.RunCommand(waiting, seq)
		switch {
		case err == nil && w.AckedBy != "":
			return nil
		case err != nil && !errors.Is(err, store.ErrUnavailable) && waiting.Err() == nil:
			return fmt.Errorf("reading what is wanted of run %s: %w", runID, err)
		}
		if !again.Wait(waiting) {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("waiting for the server that carries run %s: %w", runID, err)
			}
			return &engine.Error{Code: engine.CodeUnavailable,
				Message: fmt.Sprintf("The server that carries the run has not answered within %.0f s.", commandTimeout.Seconds()),
				Hint: "nothing has to be done again: what you want is noted, and is done as soon as that server answers, " +
					"or another one takes the run over; look at the run in half a minute"}
		}
	}
}
