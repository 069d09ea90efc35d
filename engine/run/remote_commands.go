// This part brings what is wanted of a run from the server that is asked to the one that
// carries it.
//
// The command is noted in the control store. Who carries the run hears of it there, at once by what
// the store tells, and otherwise because it looks several times a second while it carries anything: that the store
// tells is a matter of speed alone, since neither a pooler that passes nothing on nor a dead connection shows. It says
// that it has heard, does what is wanted and answers when that is stored. The one that was asked waits for the
// answer. A STOP that nobody has heard within a second is done by the server that was asked, which takes the run over
// for it: the owner is dead, or stands still, and the epoch of the run keeps it from writing anything more. Another
// command that nobody answers stays noted: who takes the run over does it.

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
	// carryingPollInterval is how often open commands are looked for while something is carried here: several times within
	// hearTimeout, so that an owner that is well hears in time, told or not. commandPollInterval is how often otherwise.
	// It is a prime, so that looks seldom fall together with the whole seconds at which everything else is due.
	carryingPollInterval = 197 * time.Millisecond
	commandPollInterval  = 2 * time.Second
	// listenRetryDelay is the pause before listening that has failed is tried again.
	listenRetryDelay = 5 * time.Second
	// commandStoreTimeout bounds one look at the store.
	commandStoreTimeout = 10 * time.Second
	// commandTimeout is how long an answer is waited for: what the owner of a run takes, when it is well.
	commandTimeout = 5 * time.Second
	// hearTimeout is how long a STOP waits until the owner of its run has heard it. With what taking the run over and
	// telling its nodes takes it is less than 2 s. A store that is slow to note the STOP is slow to its owner, too: it has
	// that much longer, but maxSlowStore at most.
	hearTimeout  = 800 * time.Millisecond
	maxSlowStore = 3 * time.Second
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
	// HearRunCommand notes that a server does a command, if none has said so since it was enqueued last, and returns
	// the one that does. ErrNotFound: it is answered, or its run is deleted.
	HearRunCommand(ctx context.Context, seq int64, server string) (by string, err error)
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
	// carries reports whether this server has the run of a command in its hands.
	carries(w store.RunCommand) bool
	// carriesAny reports whether this server may be asked for anything: it carries some run, or some enrichment.
	carriesAny() bool
	// takeOverToStop makes this server the owner of the run of a STOP that this server alone has heard, and begins to stop
	// it.
	takeOverToStop(ctx context.Context, w store.RunCommand) error
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
	for silent := false; ctx.Err() == nil; {
		begun := time.Now()
		err := r.dispatchOpen(ctx, helpers.Go)
		if err != nil && ctx.Err() == nil && !silent {
			r.opts.Log.Warn().Err(err).Msg("what is wanted of runs cannot be read; it is read again and again")
		}
		silent = err != nil
		r.rest(ctx, begun)
	}
}

// rest returns when open commands have to be looked for again, after the look that began at a time, or when ctx ends.
func (r *RemoteCommands) rest(ctx context.Context, begun time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
			return
		case <-time.After(carryingPollInterval):
			// A run may have begun here since.
			if r.opts.Handler.carriesAny() || time.Since(begun) >= commandPollInterval {
				return
			}
		}
	}
}

// listen has the store tell of new commands.
func (r *RemoteCommands) listen(ctx context.Context) {
	silent := false
	for ctx.Err() == nil {
		err := r.opts.Store.WatchRunCommands(ctx, r.Wake)
		if ctx.Err() == nil && !silent {
			r.opts.Log.Warn().Err(err).Msg("the control store announces no commands for runs; they are polled for")
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
		if w.HeardBy == "" && r.opts.Handler.carries(w) {
			run(func() { r.hear(ctx, w) }) // also when it is under way: who asked again waits to be heard
		}
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

// hear says that a command is done here. Where that is not stored its run is taken over, which is safe.
func (r *RemoteCommands) hear(ctx context.Context, w store.RunCommand) {
	ctx, cancel := context.WithTimeout(ctx, hearTimeout)
	defer cancel()
	if _, err := r.opts.Store.HearRunCommand(ctx, w.Seq, r.opts.Server); err != nil && !errors.Is(err, store.ErrNotFound) {
		r.opts.Log.Debug().Err(err).Str("run_id", w.RunID).Int64("command", w.Seq).Msg("hearing of a command was not stored")
	}
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
	begun := time.Now()
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
	unheard := time.Now().Add(hearTimeout + min(time.Since(begun), maxSlowStore))
	for again := (backoff.Backoff{Min: minAnswerPoll, Max: maxAnswerPoll}); ; {
		w, err := r.opts.Store.RunCommand(waiting, seq)
		switch {
		case err == nil && w.AckedBy != "":
			return nil
		case err != nil && !errors.Is(err, store.ErrUnavailable) && waiting.Err() == nil:
			return fmt.Errorf("reading what is wanted of run %s: %w", runID, err)
		case err == nil && r.mayTakeOver(w) && !time.Now().Before(unheard):
			r.takeOver(waiting, w)
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

// mayTakeOver reports whether a STOP is for nobody else to do: nobody has heard it, or this server has, and could not
// take the run over yet.
func (r *RemoteCommands) mayTakeOver(w store.RunCommand) bool {
	return w.Kind == store.CommandStop &&
		(w.HeardBy == "" || w.HeardBy == r.opts.Server && !r.opts.Handler.carries(w))
}

// takeOver does a STOP that nobody has heard. Where that fails it is tried again, and said in the end that nobody has
// answered.
func (r *RemoteCommands) takeOver(ctx context.Context, w store.RunCommand) {
	by, err := r.opts.Store.HearRunCommand(ctx, w.Seq, r.opts.Server)
	if err == nil && by == r.opts.Server {
		r.opts.Log.Warn().Str("run_id", w.RunID).Int64("command", w.Seq).
			Msg("the owner of a run did not acknowledge its STOP; this server takes the run over and stops it")
		err = r.opts.Handler.takeOverToStop(ctx, w)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
		r.opts.Log.Warn().Err(err).Str("run_id", w.RunID).Int64("command", w.Seq).
			Msg("a run could not be taken over to be stopped; that is tried again while its user waits")
	}
	r.Wake()
}
