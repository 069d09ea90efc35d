package store

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Pin is why a run stays, whatever its age; empty for one that may go.
type Pin string

// The pins, in the order in which they are named.
const (
	PinBaseline Pin = "baseline" // of a template
	PinNote     Pin = "note"     // somebody has written about it
	PinShare    Pin = "share"    // a link to its report has not expired
	PinReplay   Pin = "replay"   // a template, or a run that is not over, replays it
	PinMatrix   Pin = "matrix"   // its matrix goes on
	PinTag      Pin = "tag"      // it has one of the tags that keep runs
)

// AnyTag among the tags that keep runs stands for all.
const AnyTag = "*"

// EndedRun is a run that is over, with what its single executions take.
type EndedRun struct {
	RunID   string
	RunName string
	EndedAt engine.Time // when it was cancelled, for one that never began
	Pin     Pin
	Parts   int   // stored parts with executions
	Bytes   int64 // and what they take
}

// Expiry lets a run go: Whole, or its single executions alone.
type Expiry struct {
	RunID string
	Whole bool
	// By is who, or what: it is shown with the run.
	By string
	// KeepTags are the tags that keep runs.
	KeepTags []string
	// OlderThan is how long ago the run has to have ended, by the store's clock: that of who asks may be wrong.
	OlderThan time.Duration
	// Line goes into the audit log with the deletion, or neither does; one without an Action is none.
	Line AuditEntry
}

// Leftover is a run whose files are still to be removed.
type Leftover struct {
	RunID string
	// Whole: all of them; else those with executions.
	Whole bool
}

// Retention lets runs go that nobody needs any more. What a store forgets and what is removed from where the files are
// cannot be one transaction: the store remembers what is left over until it is told that it is gone.
type Retention interface {
	// EndedRuns lists the runs that are over and whose enrichment is, the oldest first, and says what time it is by the
	// store's clock, which judges their ages.
	EndedRuns(ctx context.Context, keepTags []string) (runs []EndedRun, now time.Time, err error)
	// Expire lets a run go that is over, old enough and not pinned, else ErrConflict; all is judged in the transaction
	// that deletes, and whoever makes a pin meanwhile waits, or is waited for. Its files are a leftover from then on.
	// ErrNotFound without the run; executions that went before are ErrConflict.
	Expire(ctx context.Context, e Expiry) error
	// Leftovers lists some of what is left over, at most so many.
	Leftovers(ctx context.Context, most int) ([]Leftover, error)
	// Cleared tells that the files of a leftover are gone. Repeating it is harmless.
	Cleared(ctx context.Context, l Leftover) error
}

// TooYoung is why a run stays that has not ended so long ago.
func TooYoung(bound time.Duration) string { return "it ended less than " + bound.String() + " ago" }

// NotExpired is the ErrConflict about a run that stays.
func NotExpired(why string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict, Message: "The run stays: " + why + "."}
}
