// Package lease keeps what a server owns in the control store (runs, matrices) its own,
// and takes over what another server no longer renews.
//
// A lease is a time in the store, compared with the store's clock alone. Who owns
// something renews it every few seconds; when the lease has expired anybody may take
// the thing over. An expired lease must be seen in two looks, and after an
// outage of the store nothing is taken over for a while: all leases have expired then, and their owners come first.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// storeTimeout bounds one look at the store.
const storeTimeout = 10 * time.Second

// takeoverGrace is for how long nothing is taken over after a look that failed, or took longer than looks are apart:
// the store hung for others too, and an owner's own look may be under way for limit before the next one renews.
func (w Manager[T]) takeoverGrace() time.Duration {
	return max(storeTimeout/2, 5*w.Interval()) + w.Interval()
}

// Leases are those of one kind of thing.
type Leases[T any] interface {
	// Renew prolongs the leases of what this process has in its hands.
	Renew(ctx context.Context) error
	// Expired lists what has an owner whose lease has expired, and is not in this process's hands.
	Expired(ctx context.Context) ([]T, error)
	// ID tells the things apart.
	ID(one T) string
	// TakeOver takes one of them for this process. That another one was faster is no error.
	TakeOver(ctx context.Context, one T) error
}

// Manager renews the leases of one kind of thing, and takes over what has none.
type Manager[T any] struct {
	Leases Leases[T]
	// Kind names the things in the log of the process: "runs".
	Kind string
	// Lease is how long a lease is.
	Lease time.Duration
	Log   zerolog.Logger
	// RenewsOnly: this process takes nothing over.
	RenewsOnly bool
}

// Interval is how often leases are renewed and expired ones are looked for, 2 s for one of 15 s: what nobody renews is
// taken over at most twice as long after its lease has expired.
func (w Manager[T]) Interval() time.Duration { return w.Lease * 2 / 15 }

// Run renews and looks until ctx ends. An error is logged, and what it is about has to be seen
// expired in two looks again.
func (w Manager[T]) Run(ctx context.Context) {
	ticker := time.NewTicker(w.Interval())
	defer ticker.Stop()
	var seen map[string]bool
	var trouble time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		began := time.Now()
		var err error
		seen, err = w.poll(ctx, seen, began.Sub(trouble) > w.takeoverGrace())
		if seen == nil && !w.RenewsOnly || time.Since(began) > w.Interval() {
			trouble = time.Now()
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Str("leases_of", w.Kind).Msg("leases could not be renewed or read")
		}
	}
}

// poll renews and looks once. It takes over what was seen expired in the look before, when it may,
// and returns what was seen expired in this one; nil when the store did not answer.
func (w Manager[T]) poll(ctx context.Context, before map[string]bool, may bool) (now map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := w.Leases.Renew(ctx); err != nil || w.RenewsOnly {
		return nil, err
	}
	expired, err := w.Leases.Expired(ctx)
	if err != nil {
		return nil, err
	}
	now = map[string]bool{}
	var errs []error // one that cannot be taken over holds up no other
	for _, one := range expired {
		id := w.Leases.ID(one)
		if !before[id] || !may {
			now[id] = true
			continue
		}
		if err := w.Leases.TakeOver(ctx, one); err != nil {
			errs = append(errs, fmt.Errorf("taking %s over: %w", id, err))
		}
	}
	return now, errors.Join(errs...)
}
