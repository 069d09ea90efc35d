package snowsim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// account runs the model of the warehouses in real time and wakes the
// statements that the model starts.
type account struct {
	mu      sync.Mutex
	model   *warehouse.Model
	waiting map[warehouse.ID]chan warehouse.Event
	timer   *time.Timer
	closed  bool
	// spent are the warehouses whose resource monitor has used up its quota.
	spent map[string]bool
}

// ExhaustQuota suspends a warehouse as a resource monitor does at its limit; until it is called with false nothing
// resumes the warehouse.
func (s *Server) ExhaustQuota(name string, spent bool) {
	a := s.account
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent[name] = spent
	if spent {
		_ = a.model.Suspend(time.Now(), name) // one that is suspended already stays so
		a.advance()
	}
}

// overQuota is 090073.
func (a *account) overQuota(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.spent[name] {
		return nil
	}
	return &protocol.Error{Code: "090073", State: "22000", Message: "Warehouse '" + name +
		"' cannot be resumed because resource monitor 'LIMIT' has exceeded its quota."}
}

func newAccount(o Options) (*account, error) {
	config := o.Model
	config.Seed, config.TimeScale = o.Seed, o.TimeScale
	a := &account{model: warehouse.New(config), waiting: map[warehouse.ID]chan warehouse.Event{},
		spent: map[string]bool{}}
	for _, spec := range o.Warehouses {
		if spec.Owner == "" {
			spec.Owner = DefaultRole
		}
		if err := a.model.Create(time.Now(), spec); err != nil {
			return nil, errors.Join(errors.New("snowsim: the warehouse "+spec.Name), err)
		}
	}
	a.timer = time.AfterFunc(time.Hour, a.tick)
	a.tick()
	return a, nil
}

func (a *account) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.timer.Stop()
}

// tick advances the model to the present.
func (a *account) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance()
}

// advance delivers the model's events. The caller holds mu.
func (a *account) advance() {
	if a.closed {
		return
	}
	now := time.Now()
	for _, e := range a.model.Advance(now) {
		if c := a.waiting[e.ID]; c != nil {
			delete(a.waiting, e.ID)
			c <- e
		}
	}
	next := time.Hour
	if at, any := a.model.Next(); any {
		next = max(at.Sub(now), 0)
	}
	a.timer.Reset(next)
}

// slot is a statement's place on a warehouse.
type slot struct {
	warehouse.Event
	account *account
}

// release frees the statement's place on its warehouse.
func (g *slot) release() {
	if g.account == nil {
		return
	}
	g.account.mu.Lock()
	defer g.account.mu.Unlock()
	g.account.model.Finish(time.Now(), g.ID)
	g.account.advance()
}

// acquire waits until a warehouse starts a statement. open reports that its transaction has begun.
func (a *account) acquire(ctx context.Context, name string, work warehouse.Work, open bool) (*slot, error) {
	if work.Table == warehouse.None {
		return &slot{}, nil
	}
	if err := a.overQuota(name); err != nil {
		return nil, err
	}
	submit := a.model.Submit
	if open {
		submit = a.model.SubmitOpen
	}
	a.mu.Lock()
	id, err := submit(time.Now(), name, work)
	if err != nil {
		a.mu.Unlock()
		return nil, modelError(err, name)
	}
	// One element: advance never waits.
	c := make(chan warehouse.Event, 1)
	a.waiting[id] = c
	a.advance()
	a.mu.Unlock()
	var e warehouse.Event
	select {
	case e = <-c:
	case <-ctx.Done():
		a.mu.Lock()
		delete(a.waiting, id)
		a.model.Finish(time.Now(), id)
		a.advance()
		a.mu.Unlock()
		return nil, context.Cause(ctx)
	}
	if e.Err != nil {
		return nil, modelError(e.Err, name)
	}
	return &slot{Event: e, account: a}, nil
}

// modelError turns an error of the model into Snowflake's.
func modelError(err error, name string) error {
	switch {
	case errors.Is(err, warehouse.ErrSuspended), errors.Is(err, warehouse.ErrUnknown):
		return &protocol.Error{Code: protocol.CodeNoWarehouse, State: "57P03",
			Message: "No active warehouse selected in the current session.  Select an active warehouse with the 'use " +
				"warehouse' command.\n", Cause: err}
	case errors.Is(err, warehouse.ErrQueueTimeout):
		return &protocol.Error{Code: protocol.CodeQueueTimeout, State: "57014",
			Message: "Statement was queued for longer than STATEMENT_QUEUED_TIMEOUT_IN_SECONDS, and was canceled.", Cause: err}
	case errors.Is(err, warehouse.ErrInteractive):
		return protocol.Unsupported("a statement that writes on the interactive warehouse %s, which only reads", name)
	}
	return err
}

// List implements translate.Warehouses.
func (a *account) List() []warehouse.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance()
	list := a.model.List()
	slices.SortFunc(list, func(x, y warehouse.State) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// Get implements translate.Warehouses.
func (a *account) Get(name string) (warehouse.State, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance()
	return a.model.Get(name)
}

// change runs one change of the model.
func (a *account) change(name string, do func(now time.Time) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance()
	err := do(time.Now())
	a.advance()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, warehouse.ErrUnknown):
		return protocol.DoesNotExist("Warehouse", name)
	case errors.Is(err, warehouse.ErrExists):
		return protocol.CompilationError("002002", "42710", "Object '%s' already exists.", name)
	case errors.Is(err, warehouse.ErrState):
		return &protocol.Error{
			Code:  "090064",
			State: "22000",
			Message: "Invalid state. Warehouse '" + name + "' " + err.Error() +
				".",
			Cause: err,
		}
	}
	return protocol.CompilationError("001008", "22023", "invalid value: %s", err.Error())
}

// Create implements translate.Warehouses.
func (a *account) Create(spec warehouse.Spec) error {
	return a.change(spec.Name, func(now time.Time) error { return a.model.Create(now, spec) })
}

// Alter implements translate.Warehouses.
func (a *account) Alter(name string, change func(*warehouse.Spec) error) error {
	return a.change(name, func(now time.Time) error {
		state, found := a.model.Get(name)
		if !found {
			return warehouse.ErrUnknown
		}
		spec := state.Spec
		spec.Tables = slices.Clone(spec.Tables)
		if err := change(&spec); err != nil {
			return err
		}
		return a.model.Alter(now, name, spec)
	})
}

// Drop implements translate.Warehouses.
func (a *account) Drop(name string) error {
	return a.change(name, func(now time.Time) error { return a.model.Drop(now, name) })
}

// Resume implements translate.Warehouses.
func (a *account) Resume(name string) error {
	if err := a.overQuota(name); err != nil {
		return err
	}
	return a.change(name, func(now time.Time) error { return a.model.Resume(now, name) })
}

// Suspend implements translate.Warehouses.
func (a *account) Suspend(name string) error {
	return a.change(name, func(now time.Time) error { return a.model.Suspend(now, name) })
}

// checkInteractive refuses what an interactive warehouse does not execute: CREATE TABLE, and
// queries of tables that were not added to it.
func (a *account) checkInteractive(name string, p *translate.Plan) error {
	house, found := a.Get(name)
	if !found || house.Type != warehouse.TypeInteractive {
		return nil
	}
	if p.Creates {
		return protocol.Unsupported("CREATE TABLE on the interactive warehouse %s", name)
	}
	if p.Work.Table == warehouse.None {
		return nil
	}
	for _, table := range p.Tables {
		if !slices.Contains(house.Tables, table) {
			return &protocol.Error{Code: protocol.CodeNotAttached, State: "0A000",
				Message: fmt.Sprintf("Table '%s' is not attached to the interactive warehouse '%s'. "+
					"Add it with ALTER WAREHOUSE %s ADD TABLES (%s).", table, name, name, table)}
		}
	}
	return nil
}

// fallback is the warehouse that repeats a statement which timed out on an interactive one;
// empty when there is none, or when the session's own limit ended it.
func (a *account) fallback(view *translate.Session, p *translate.Plan, err error) string {
	var late *protocol.Error
	if !errors.As(err, &late) || late.Code != protocol.CodeTimeout || p.Type != protocol.Select {
		return ""
	}
	house, found := a.Get(view.Warehouse)
	own, failed := strconv.ParseFloat(strings.TrimSpace(view.Parameters["STATEMENT_TIMEOUT_IN_SECONDS"]), 64)
	if !found || house.Type != warehouse.TypeInteractive || failed == nil && own > 0 &&
		own <= house.StatementTimeout.Seconds() {
		return ""
	}
	return house.Fallback
}
