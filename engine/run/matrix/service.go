package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Runs is the orchestrator as a matrix needs it.
type Runs interface {
	CreateMember(ctx context.Context, s engine.Scenario, by engine.Actor, place engine.MatrixMember) (engine.Run, error)
	Start(ctx context.Context, runID, by string) (engine.Run, error)
	Stop(ctx context.Context, runID, by string) (engine.Run, error)
	// Cancel ends a run that has not begun, with the reason.
	Cancel(ctx context.Context, runID string, stop engine.StopReason, sentence string) error
	Delete(ctx context.Context, runID, by string) error
	Detail(ctx context.Context, runID string) (engine.RunDetail, error)
	Compare(ctx context.Context, a, b []string, o compare.Options) (compare.Comparison, error)
}

// Store keeps what runs of one workload on several targets have in common. The runs name their matrix.
type Store interface {
	Leases
	CreateMatrix(ctx context.Context, m engine.MatrixRun) error
	Matrix(ctx context.Context, matrixID string) (engine.MatrixRun, error)
	// ListMatrices returns the newest first, at most limit.
	ListMatrices(ctx context.Context, limit int) ([]engine.MatrixRun, error)
	// MatrixRuns returns the matrix's runs by their index.
	MatrixRuns(ctx context.Context, matrixID string) ([]store.RunRow, error)
	// DeleteMatrix removes the row, not its runs; ErrConflict while it is live.
	DeleteMatrix(ctx context.Context, matrixID string) error
}

// Leases say which server carries a matrix.
type Leases interface {
	store.Leases
	// LiveMatrices are those in RUNNING or CANCELLING.
	LiveMatrices(ctx context.Context) ([]engine.MatrixRun, error)
	// ExpiredMatrices are the LiveMatrices whose lease has expired.
	ExpiredMatrices(ctx context.Context) ([]engine.MatrixRun, error)
	// ClaimMatrix takes a matrix that is not over when its lease has expired, when
	// nobody ever held it, or with reclaim when it is the owner's already; ErrLeaseHeld
	// when another owner's lease goes on, ErrConflict when it is over.
	ClaimMatrix(ctx context.Context, matrixID, owner string, reclaim bool) error
	// RenewMatrices prolongs an owner's leases and returns those of the named
	// matrices that it still holds, as they stand.
	RenewMatrices(ctx context.Context, owner string, matrixIDs []string) ([]engine.MatrixRun, error)
	TransitionMatrix(ctx context.Context, move store.MatrixTransition) error
}

// Options are what a service is made of.
type Options struct {
	Store Store
	Runs  Runs
	Log   zerolog.Logger
	// Owner names this process in the leases of its matrices, as it does in those of runs.
	Owner string
	// Authorizer is asked before each run; nil lets all begin.
	Authorizer Authorizer
	// TakesOver: matrices of owners that stopped responding are gone on with. A
	// process that ends after a run of its own leaves them to servers.
	TakesOver bool
}

// Authorizer says whether a matrix is still for whoever has started it.
type Authorizer interface {
	// Authorize is an error with CodeForbidden when the next run of a matrix is not for whoever started that any more: it
	// is cancelled then. Another error has it asked again.
	Authorize(ctx context.Context, runID string) error
}

// Service runs matrices. Its methods are safe for concurrent use; errors that
// users may see are *engine.Error.
type Service struct {
	opts     Options
	lifetime context.Context
	end      context.CancelFunc
	routines sync.WaitGroup

	mu     sync.Mutex
	active map[string]*activeMatrix
}

// activeMatrix is a matrix whose runs are being made by this process.
type activeMatrix struct {
	stop context.CancelFunc // asks for the end; the run under way is drained
	// abandon ends it here and leaves everything as it is: another process goes on.
	abandon context.CancelFunc
	done    chan struct{}
	// renewed is when the lease was last seen to hold.
	renewed atomic.Pointer[time.Time]
}

// State is a matrix with its runs, as GET /api/matrices/{id} answers it.
type State struct {
	engine.MatrixRun
	Runs []store.RunRow `json:"runs"`
}

// pollInterval is how often a run under way is looked at.
const pollInterval = 200 * time.Millisecond

// New returns a service; nothing happens before Open.
func New(opts Options) *Service {
	if opts.Owner == "" {
		opts.Owner = "local"
	}
	s := &Service{opts: opts, active: map[string]*activeMatrix{}}
	s.lifetime, s.end = context.WithCancel(context.Background())
	return s
}

// Open goes on with the matrices that an earlier process of this owner left. Those
// of others stay theirs until their leases have expired, see leases.
func (s *Service) Open(ctx context.Context) error {
	list, err := s.opts.Store.LiveMatrices(ctx)
	if err != nil {
		return fmt.Errorf("listing the matrices under way: %w", err)
	}
	for _, m := range list {
		if m.Owner != "" && m.Owner != s.opts.Owner {
			continue
		}
		if err := s.adopt(ctx, m, true); err != nil && !isLost(err) {
			return fmt.Errorf("going on with matrix %s: %w", m.MatrixID, err)
		}
	}
	s.routines.Go(func() { s.leases().Run(s.lifetime) })
	return nil
}

// Close leaves the matrices where they are and waits for what is under way
// here. Their runs are the orchestrator's to end.
func (s *Service) Close(context.Context) error {
	s.end()
	s.routines.Wait()
	return nil
}

// Create makes a PREPARED run for each target of a valid scenario with a matrix.
// When one cannot be made there is none.
func (s *Service) Create(ctx context.Context, sc engine.Scenario, by engine.Actor) (State, error) {
	if sc.Matrix == nil {
		return State{}, engine.InvalidField("matrix", "is required", "name the targets, or make a run: POST /api/runs")
	}
	m := engine.MatrixRun{MatrixID: uuid.NewString(), Name: sc.Name, TemplateID: sc.TemplateID,
		StopOnFailure: sc.Matrix.StopOnFailure, CreatedBy: by.Name}
	for _, t := range sc.Matrix.Targets {
		m.Labels = append(m.Labels, t.Label)
	}
	if err := s.opts.Store.CreateMatrix(ctx, m); err != nil {
		return State{}, storeError(err)
	}
	var made []string
	for i, one := range sc.Expand() {
		run, err := s.opts.Runs.CreateMember(ctx, one, by,
			engine.MatrixMember{MatrixID: m.MatrixID, MatrixIndex: i, MatrixLabel: m.Labels[i]})
		if err != nil {
			undo := context.WithoutCancel(ctx)
			for _, id := range made {
				_ = s.opts.Runs.Delete(undo, id, by.Name)
			}
			_ = s.opts.Store.DeleteMatrix(undo, m.MatrixID)
			return State{}, targetError(err, i, m.Labels[i])
		}
		made = append(made, run.RunID)
	}
	return s.Get(ctx, m.MatrixID)
}

// targetError says which target an error is about.
func targetError(err error, index int, label string) error {
	var e *engine.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	out.Message = fmt.Sprintf("Target %q: %s", label, e.Message)
	out.Fields = slices.Clone(e.Fields)
	for i, f := range out.Fields {
		out.Fields[i].Field = engine.MatrixField(index, f.Field)
	}
	return &out
}

// Get returns a matrix with its runs.
func (s *Service) Get(ctx context.Context, matrixID string) (State, error) {
	m, err := s.opts.Store.Matrix(ctx, matrixID)
	if err != nil {
		return State{}, storeError(err)
	}
	runs, err := s.opts.Store.MatrixRuns(ctx, matrixID)
	if err != nil {
		return State{}, storeError(err)
	}
	if runs == nil {
		runs = []store.RunRow{}
	}
	s.waiting(ctx, m, runs)
	return State{MatrixRun: m, Runs: runs}, nil
}

// waiting adds what the next run of a matrix under way waits for.
func (s *Service) waiting(ctx context.Context, m engine.MatrixRun, runs []store.RunRow) {
	next := slices.IndexFunc(runs, func(r store.RunRow) bool { return !r.Status.Terminal() })
	if m.Status != engine.StatusRunning || next < 0 || runs[next].Status != engine.StatusPrepared {
		return
	}
	if d, err := s.opts.Runs.Detail(ctx, runs[next].RunID); err == nil {
		runs[next].Waiting = d.Waiting
	}
}

// List returns the newest matrices, without their runs.
func (s *Service) List(ctx context.Context, limit int) ([]engine.MatrixRun, error) {
	list, err := s.opts.Store.ListMatrices(ctx, limit)
	return list, storeError(err)
}

// Start begins the runs of a PREPARED matrix, one after another. Another status is a conflict.
func (s *Service) Start(ctx context.Context, matrixID, by string) (State, error) {
	m, err := s.opts.Store.Matrix(ctx, matrixID)
	if err != nil {
		return State{}, storeError(err)
	}
	if s.lifetime.Err() != nil {
		return State{}, &engine.Error{Code: engine.CodeUnavailable, Message: "The server is shutting down."}
	}
	err = s.opts.Store.TransitionMatrix(ctx,
		store.MatrixTransition{MatrixID: matrixID, From: []engine.Status{engine.StatusPrepared}, To: engine.StatusRunning,
			At: time.Now(), Owner: s.opts.Owner})
	if errors.Is(err, store.ErrConflict) {
		return State{}, &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The matrix is %s already.", m.Status),
			Hint: "create another one of the template"}
	}
	if err != nil {
		return State{}, storeError(err)
	}
	s.runMatrix(m, by)
	return s.Get(ctx, matrixID)
}

// Stop cancels what has not run and drains the run under way, also when another
// server makes the runs.
func (s *Service) Stop(ctx context.Context, matrixID, by string) (State, error) {
	state, err := s.Get(ctx, matrixID)
	if err != nil {
		return State{}, err
	}
	if state.Status.Terminal() {
		return State{}, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("The matrix is %s; there is nothing to stop.", state.Status)}
	}
	err = s.opts.Store.TransitionMatrix(ctx,
		store.MatrixTransition{MatrixID: matrixID, From: []engine.Status{engine.StatusPrepared, engine.StatusRunning},
			To: engine.StatusCancelling})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return State{}, storeError(err)
	}
	s.mu.Lock()
	g := s.active[matrixID]
	s.mu.Unlock()
	if g != nil {
		g.stop()
	} else if err := s.adopt(ctx, state.MatrixRun, true); err != nil && !isLost(err) {
		// The server whose matrix it is reads the decision when it renews its lease.
		return State{}, storeError(err)
	}
	return s.Get(ctx, matrixID)
}

// Halt ends the matrices that are carried on here, also while the store is away: they start no further run, and what
// was decided is stored when the store is back. It returns their ids.
func (s *Service) Halt() (matrixIDs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, g := range s.active {
		g.stop()
		matrixIDs = append(matrixIDs, id)
	}
	return matrixIDs
}

// Delete removes a matrix that is not live, with its runs.
func (s *Service) Delete(ctx context.Context, matrixID, by string) error {
	state, err := s.Get(ctx, matrixID)
	if err != nil {
		return err
	}
	if state.Status == engine.StatusRunning || state.Status == engine.StatusCancelling {
		return &engine.Error{Code: engine.CodeConflict, Message: "The matrix is under way.",
			Hint: "stop it, and delete it when it has ended"}
	}
	for _, r := range state.Runs {
		if err := s.opts.Runs.Delete(ctx, r.RunID, by); err != nil && !engine.HasCode(err, engine.CodeNotFound) {
			return err
		}
	}
	return storeError(s.opts.Store.DeleteMatrix(ctx, matrixID))
}

// Wait returns a matrix that is over, with the figures of its runs.
func (s *Service) Wait(ctx context.Context, matrixID string) (State, error) {
	for {
		s.mu.Lock()
		g := s.active[matrixID]
		s.mu.Unlock()
		if g == nil {
			state, err := s.Get(ctx, matrixID)
			if err != nil || state.Status.Terminal() {
				return state, err
			}
			return state, &engine.Error{Code: engine.CodeConflict,
				Message: fmt.Sprintf("The matrix is %s, and nobody here carries it on.", state.Status)}
		}
		select {
		case <-g.done:
		case <-ctx.Done():
			return State{}, ctx.Err()
		}
	}
}

// storeError gives errors of the control store a sentence.
func storeError(err error) error {
	var e *engine.Error
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.Is(err, store.ErrUnavailable):
		return &engine.Error{Code: engine.CodeUnavailable, Message: "The control store cannot be reached now.",
			Hint: "try again in a moment", Cause: err}
	case errors.Is(err, store.ErrConflict):
		return &engine.Error{Code: engine.CodeConflict, Message: "The matrix has changed meanwhile.",
			Hint: "look at it again", Cause: err}
	case errors.Is(err, store.ErrNotFound):
		return &engine.Error{Code: engine.CodeNotFound, Message: "There is no such matrix.", Hint: "it may have been deleted",
			Cause: err}
	}
	return err
}
