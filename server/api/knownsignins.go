package api

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

// knownSignIns remembers who has signed in from where. What was before the process began it takes from the audit log,
// with the first name that is asked for. The zero value knows nobody.
type knownSignIns struct {
	// readAudit adds those of the audit log, and tells whether there was an answer; nil where there is none to be had.
	readAudit func(ctx context.Context, add func(name, address string)) bool

	mu    sync.Mutex
	pairs map[string]struct{}
	// lastAttempt is when the audit log was asked last; it is asked until it has answered.
	lastAttempt time.Time
	loaded      bool
}

const (
	// maxKnownSignIns bounds what is remembered; past it everything is forgotten, which slows down who is guessed at and
	// no more.
	maxKnownSignIns = 10_000
	// auditRetryDelay is after how long a log that has not answered is asked again, and askFor how long an answer may
	// take.
	auditRetryDelay = time.Minute
	auditTimeout    = time.Second
	// maxSignInsRead is how many sign-ins are read.
	maxSignInsRead = 500
)

func (k *knownSignIns) add(name, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pairs == nil || len(k.pairs) >= maxKnownSignIns {
		k.pairs = map[string]struct{}{}
	}
	k.pairs[name+" "+address] = struct{}{}
}

// account is what attempts are counted for: the user, or the user at this address where it has signed in before.
// Names hold no spaces.
func (k *knownSignIns) account(ctx context.Context, name, address string) (account string, before bool) {
	k.loadFromAudit(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, before := k.pairs[name+" "+address]; before {
		return name + " " + address, true
	}
	return name, false
}

// loadFromAudit asks the audit log, where that is still to be done. Others do not wait for it.
func (k *knownSignIns) loadFromAudit(ctx context.Context) {
	k.mu.Lock()
	due := k.readAudit != nil && !k.loaded && (k.lastAttempt.IsZero() || time.Since(k.lastAttempt) >= auditRetryDelay)
	if due {
		k.lastAttempt = time.Now()
	}
	k.mu.Unlock()
	if !due {
		return
	}
	soon, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	answered := k.readAudit(soon, k.add)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded = answered
}

// readSignIns reads from the audit log who has signed in from where.
func (h *userHandlers) readSignIns(ctx context.Context, add func(name, address string)) bool {
	lines, err := h.a.Store.ListAudit(ctx, store.AuditFilter{Action: "auth.signin", Outcome: store.OutcomeDone,
		Limit: maxSignInsRead})
	for _, l := range lines {
		if l.UserName != "" && l.Address != "" {
			add(strings.ToLower(l.UserName), auth.Network(l.Address))
		}
	}
	return err == nil
}
