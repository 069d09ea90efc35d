// This part keeps the trail of who did what on a server: written at once where the store
// answers, and later where it does not, for a line that cannot be written undoes nothing.

package auth

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/store"
)

// AuditLog writes lines of the audit log. It is safe for concurrent use.
type AuditLog struct {
	store store.Audit
	log   zerolog.Logger
	// life ends with the server; lines that wait for the store are given up then.
	life    context.Context
	pending atomic.Int64 // lines that wait for the store
	refused failureCounter
	// statements bounds the lines of statements of each user.
	statements statementCounter
}

// NewAuditLog returns a trail whose lines wait for the store until life ends.
func NewAuditLog(life context.Context, s store.Audit, log zerolog.Logger) *AuditLog {
	return &AuditLog{store: s, log: log, life: life,
		statements: statementCounter{limiter: NewLimiter(60, 2*time.Second), left: map[string]int{}}}
}

// Record notes who did what. A log that cannot be written does not undo what was done. Where from and by which token is
// the request's; userID is who signs in, of somebody who was not signed in before.
func (t *AuditLog) Record(ctx context.Context, userID, action, object, detail string) {
	t.write(ctx, store.AuditEntry{UserID: userID, Action: action, Object: object, Detail: detail})
}

// maxTextLength bounds the texts of a line: callers make them up.
const maxTextLength = 1000

func (t *AuditLog) write(ctx context.Context, entry store.AuditEntry) {
	if m, ok := ctx.Value(markKey{}).(*mark); ok {
		m.noted.Store(true)
	}
	entry.At, entry.Address = engine.At(time.Now()), PeerOf(ctx).IP
	entry.Object, entry.Detail = truncate(entry.Object), truncate(entry.Detail)
	if id, ok := IdentityOf(ctx); ok {
		entry.UserID, entry.UserName = id.User.UserID, id.User.Name
		entry.TokenID, entry.TokenName = id.Token.TokenID, id.Token.Name
	} else if entry.UserID != "" {
		entry.UserName = entry.Object // who signs in is what it is about
	}
	soon, cancel := context.WithTimeout(ctx, writeTimeout)
	err := t.store.AppendAudit(soon, entry)
	cancel()
	action, object, userID := entry.Action, entry.Object, entry.UserID
	if (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) && t.retryLater(entry) {
		return
	}
	if err != nil {
		t.log.Error().Err(err).Str("action", action).Str("object", object).Str("user_id", userID).
			Msg("could not write the audit log")
	}
}

// truncate bounds a text, at a whole character.
func truncate(text string) string {
	if len(text) <= maxTextLength {
		return text
	}
	return strings.ToValidUTF8(text[:maxTextLength], "") + "…"
}

const (
	// writeTimeout is how long an answer waits for its line in the audit log; a stop waits
	// for other things too when the store hangs.
	writeTimeout = 500 * time.Millisecond
	// retryTimeout bounds a later attempt.
	retryTimeout = 2 * time.Second
	// maxPending is how many lines wait for a store that is away.
	maxPending = 100
)

// retryLater writes a line when the store is back; false when too many wait already.
func (t *AuditLog) retryLater(entry store.AuditEntry) bool {
	if t.pending.Add(1) > maxPending {
		t.pending.Add(-1)
		return false
	}
	go func() {
		defer t.pending.Add(-1)
		again := backoff.Backoff{Min: time.Second, Max: 10 * time.Second}
		for {
			if !again.Wait(t.life) {
				t.log.Error().Str("action", entry.Action).Str("object", entry.Object).Str("user_id", entry.UserID).
					Msg("could not write the audit log before the end")
				return
			}
			ctx, cancel := context.WithTimeout(t.life, retryTimeout)
			err := t.store.AppendAudit(ctx, entry)
			cancel()
			if err == nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				return
			}
		}
	}()
	return true
}
