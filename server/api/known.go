package api

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

// known remembers who has signed in from where. What was before the process began it takes from the audit log, with
// the first name that is asked for. The zero value knows nobody.
type known struct {
	// read adds those of the audit log, and tells whether there was an answer; nil where there is none to be had.
	read func(ctx context.Context, add func(name, address string)) bool

	mu    sync.Mutex
	pairs map[string]struct{}
	// asked is when the audit log was asked last; it is asked until it has answered.
	asked    time.Time
	answered bool
}

const (
	// mostKnown bounds what is remembered; past it everything is forgotten, which slows down who is guessed at and no
	// more.
	mostKnown = 10_000
	// askAgain is after how long a log that has not answered is asked again, and askFor how long an answer may take.
	askAgain = time.Minute
	askFor   = time.Second
	// mostRead is how many sign-ins are read.
	mostRead = 500
)

func (k *known) add(name, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pairs == nil || len(k.pairs) >= mostKnown {
		k.pairs = map[string]struct{}{}
	}
	k.pairs[name+" "+address] = struct{}{}
}

// account is what attempts are counted for: the user, or the user at this address where it has signed in before.
// Names hold no spaces.
func (k *known) account(ctx context.Context, name, address string) (account string, before bool) {
	k.recall(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, before := k.pairs[name+" "+address]; before {
		return name + " " + address, true
	}
	return name, false
}

// recall asks the audit log, where that is still to be done. Others do not wait for it.
func (k *known) recall(ctx context.Context) {
	k.mu.Lock()
	due := k.read != nil && !k.answered && (k.asked.IsZero() || time.Since(k.asked) >= askAgain)
	if due {
		k.asked = time.Now()
	}
	k.mu.Unlock()
	if !due {
		return
	}
	soon, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	answered := k.read(soon, k.add)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answered = answered
}

// signedIn reads from the audit log who has signed in from where.
func (h *userHandlers) signedIn(ctx context.Context, add func(name, address string)) bool {
	lines, err := h.a.Store.ListAudit(ctx, store.AuditFilter{Action: "auth.signin", Outcome: store.OutcomeDone,
		Limit: mostRead})
	for _, l := range lines {
		if l.UserName != "" && l.Address != "" {
			add(strings.ToLower(l.UserName), auth.Network(l.Address))
		}
	}
	return err == nil
}
