package audit

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// SignInRefused notes that somebody at an address was not signed in. Strangers do that, so not
// each time has a line of its own.
func (t *Trail) SignInRefused(ctx context.Context, address string) {
	if detail, due := t.refused.note(address); due {
		t.Note(ctx, "", "auth.signin_refused", address, detail)
	}
}

// refusalsEvery is how often refused sign-ins are noted in the audit log: strangers
// make them, and must not fill it.
const refusalsEvery = time.Hour

// refusals counts refused sign-ins between two lines of the audit log.
type refusals struct {
	mu    sync.Mutex
	noted time.Time
	since int
	from  map[string]struct{}
}

// maxRefusers bounds the addresses that are told apart.
const maxRefusers = 1000

// note counts a refusal; due tells that it is to be noted, with what came since the last one.
func (r *refusals) note(address string) (detail string, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.noted.IsZero() || now.Sub(r.noted) >= refusalsEvery {
		if r.since > 0 {
			detail = fmt.Sprintf("and %d more from %d addresses since the last such line", r.since, len(r.from))
		}
		r.noted, r.since, r.from = now, 0, nil
		return detail, true
	}
	r.since++
	if r.from == nil {
		r.from = map[string]struct{}{}
	}
	if len(r.from) < maxRefusers {
		r.from[address] = struct{}{}
	}
	return "", false
}
