package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The outcomes of what was asked for.
const (
	OutcomeDone    = "done"
	OutcomeRefused = "refused"
	OutcomeFailed  = "failed"
)

// AuditEntry is one line of the audit log. Its names are those of the time: users and tokens may be gone.
type AuditEntry struct {
	AuditID   int64       `json:"audit_id" doc:"Rises with each line."`
	At        engine.Time `json:"at"`
	UserID    string      `json:"user_id,omitempty"`
	UserName  string      `json:"user_name,omitempty" doc:"The user's name at the time; empty for strangers and for the server itself."`
	Address   string      `json:"address,omitempty" doc:"Where the request came from, as far as proxies are trusted."`
	TokenID   string      `json:"token_id,omitempty" doc:"The API token or the session."`
	TokenName string      `json:"token_name,omitempty"`
	Action    string      `json:"action" doc:"run.start, connection.delete, auth.signin …"`
	Object    string      `json:"object" doc:"The id or the name of what it was done to."`
	Detail    string      `json:"detail,omitempty"`
	Outcome   string      `json:"outcome" enum:"done,refused,failed"`
}

// AuditFilter selects lines; empty fields select all.
type AuditFilter struct {
	User    string // the id, or a part of the name in any case
	Action  string // the whole, or its beginning up to a dot: "run" is every run.…
	Object  string // a part of the object or the detail, in any case
	Outcome string
	Since   time.Time
	Until   time.Time // lines at this time and later are left out
	Before  int64     // only lines with a smaller id; 0 means the newest
	Limit   int       // ≤ 0 means 50
}

// Matches reports whether the filter selects a line.
func (f AuditFilter) Matches(e AuditEntry) bool {
	part := func(text, in string) bool { return strings.Contains(strings.ToLower(in), strings.ToLower(text)) }
	return (f.User == "" || f.User == e.UserID || part(f.User, e.UserName)) &&
		(f.Action == "" || f.Action == e.Action || strings.HasPrefix(e.Action, f.Action+".")) &&
		(f.Object == "" || part(f.Object, e.Object) || part(f.Object, e.Detail)) &&
		(f.Outcome == "" || f.Outcome == e.Outcome) && (f.Before == 0 || e.AuditID < f.Before) &&
		(f.Since.IsZero() || !e.At.Before(f.Since)) && (f.Until.IsZero() || e.At.Before(f.Until))
}

// Audit keeps who did what. Nothing in it is ever changed, and only what is older than AuditDays is ever removed.
type Audit interface {
	// AppendAudit writes a line. Without an outcome it is done; without a time it is now.
	AppendAudit(ctx context.Context, e AuditEntry) error
	// ListAudit returns lines, the newest first.
	ListAudit(ctx context.Context, f AuditFilter) ([]AuditEntry, error)
	// AuditDays is for how many days lines are kept; 0 means for ever.
	AuditDays(ctx context.Context) (int, error)
	// SetAuditRetention says for how many days lines are kept, 0 or MinAuditDays at least, in place of was where that is
	// not nil: another is ErrConflict. It returns how many it were before.
	SetAuditRetention(ctx context.Context, days int, was *int) (before int, err error)
	// PruneAudit removes what is older, so many lines at most, and returns how many it were.
	PruneAudit(ctx context.Context, most int) (int, error)
}

// MinAuditDays is the shortest time for which lines are kept: whoever becomes an admin removes nothing of late.
const MinAuditDays = 30

// CheckAuditDays refuses a time for which no log is kept.
func CheckAuditDays(days int) error {
	if days != 0 && days < MinAuditDays {
		return engine.InvalidField("keep_days", "is too short", "0 keeps lines for ever; 30 is the least otherwise")
	}
	return nil
}

// AuditDaysChangedError refuses to say anew for how long lines are kept when it was said since by somebody else: was is
// what was seen, nil when that was not told.
func AuditDaysChangedError(was *int, before int) error {
	if was == nil || *was == before {
		return nil
	}
	kept := "for ever"
	if before != 0 {
		kept = fmt.Sprintf("for %d days", before)
	}
	return concurrentChangeError("How long the audit log is kept was changed by somebody else, after you had opened it: "+
		"it is kept "+kept+" now.", "is no longer what holds")
}
