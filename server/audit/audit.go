// Package audit keeps the trail of who did what on a server: written at once where the store
// answers, and later where it does not, for a line that cannot be written undoes nothing.
package audit

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Trail writes lines of the audit log. It is safe for concurrent use.
type Trail struct {
	store store.Audit
	log   zerolog.Logger
	// life ends with the server; lines that wait for the store are given up then.
	life    context.Context
	waiting atomic.Int64 // lines that wait for the store
	refused refusals
}

// New returns a trail whose lines wait for the store until life ends.
func New(life context.Context, s store.Audit, log zerolog.Logger) *Trail {
	return &Trail{store: s, log: log, life: life}
}

// Note notes who did what. A log that cannot be written does not undo what was done.
func (t *Trail) Note(ctx context.Context, userID, action, object, detail string) {
	entry := store.AuditEntry{At: engine.At(time.Now()), UserID: userID, Action: action, Object: object, Detail: detail}
	soon, cancel := context.WithTimeout(ctx, promptLimit)
	err := t.store.AppendAudit(soon, entry)
	cancel()
	if (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) && t.later(entry) {
		return
	}
	if err != nil {
		t.log.Error().Err(err).Str("action", action).Str("object", object).Str("user_id", userID).
			Msg("could not write the audit log")
	}
}

const (
	// promptLimit is how long an answer waits for its line in the audit log; a stop waits
	// for other things too when the store hangs.
	promptLimit = 500 * time.Millisecond
	// laterLimit bounds a later attempt.
	laterLimit = 2 * time.Second
	// mostWaiting is how many lines wait for a store that is away.
	mostWaiting = 100
)

// later writes a line when the store is back; false when too many wait already.
func (t *Trail) later(entry store.AuditEntry) bool {
	if t.waiting.Add(1) > mostWaiting {
		t.waiting.Add(-1)
		return false
	}
	go func() {
		defer t.waiting.Add(-1)
		for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
			select {
			case <-t.life.Done():
				t.log.Error().Str("action", entry.Action).Str("object", entry.Object).Str("user_id", entry.UserID).
					Msg("could not write the audit log before the end")
				return
			case <-time.After(pause):
			}
			ctx, cancel := context.WithTimeout(t.life, laterLimit)
			err := t.store.AppendAudit(ctx, entry)
			cancel()
			if err == nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				return
			}
		}
	}()
	return true
}
