package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
)

// RecordSignInFailure notes that somebody was not signed in, as a user when it is one: what was typed may be a
// password, and is not kept. Strangers do that, so when there are many not each has a line of its own.
func (t *AuditLog) RecordSignInFailure(ctx context.Context, address, user string) {
	if detail, due := t.refused.note(address); due {
		t.write(ctx, store.AuditEntry{Action: "auth.signin", Object: user, Detail: detail, Outcome: store.OutcomeRefused})
	}
}

// Strangers make refused sign-ins, and must not fill the log: so many of an hour have a line, and then one more.
const (
	failureWindow   = time.Hour
	maxFailureLines = 100
)

// failureCounter counts refused sign-ins between two lines of the audit log.
type failureCounter struct {
	mu    sync.Mutex
	began time.Time
	lines int
	since int
	from  map[string]struct{}
}

// maxFailureAddresses bounds the addresses that are told apart.
const maxFailureAddresses = 1000

// note counts a refusal; due tells that it is to be noted, with what came since the last one.
func (r *failureCounter) note(address string) (detail string, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.began.IsZero() || now.Sub(r.began) >= failureWindow {
		if r.since > 0 {
			detail = fmt.Sprintf("and %d more from %d addresses since the last such line", r.since, len(r.from))
		}
		r.began, r.lines, r.since, r.from = now, 0, 0, nil
	}
	if r.lines++; r.lines <= maxFailureLines {
		return detail, true
	}
	r.since++
	if r.from == nil {
		r.from = map[string]struct{}{}
	}
	if len(r.from) < maxFailureAddresses {
		r.from[address] = struct{}{}
	}
	return "", false
}
