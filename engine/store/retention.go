package store

import (
	"context"
	"errors"
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

// PendingDeletion is a run whose files are still to be removed from a place.
type PendingDeletion struct {
	RunID string
	// Location is where; empty where that is not known.
	Location string
	// Whole: all of them; else those with executions.
	Whole bool
	// Part is the one file that it is about; empty for the above.
	Part string
	// Bytes is what the executions took.
	Bytes int64
}

// FileLocation is where a server keeps files of runs: a folder or a bucket, and the same for all that share it.
type FileLocation struct {
	ID    string
	Label string // for people, without a secret
}

// LeftPlace is the files of a place that are queued for deletion.
type LeftPlace struct {
	Location string      `json:"place" doc:"Names the place; empty where it is not known."`
	Label    string      `json:"label" doc:"Where that is, in the words of a server that keeps files there."`
	Runs     int         `json:"runs" doc:"Of how many runs files are still to be removed."`
	Since    engine.Time `json:"since" doc:"Since when the first of them is."`
	TriedAt  engine.Time `json:"tried_at" doc:"When the last attempt failed; null where none has."`
	SeenAt   engine.Time `json:"seen_at" doc:"When a server last reached the place; null where none is known to."`
	Problem  string      `json:"problem,omitempty" doc:"Why the last attempt failed; it is tried again."`
}

// ErrExecutionsDeleted refuses a part of a run whose single executions were deleted. What was stored of it is a
// leftover.
var ErrExecutionsDeleted = errors.New("the single executions of the run were deleted")

// Retention lets runs go that nobody needs any more. What a store forgets and what is removed from where the files are
// cannot be one transaction: the store remembers what is left over until it is told that it is gone.
type Retention interface {
	// EndedRuns lists the runs that are over and whose enrichment is, the oldest first, and says what time it is by the
	// store's clock, which judges their ages.
	EndedRuns(ctx context.Context, keepTags []string) (runs []EndedRun, now time.Time, err error)
	// Expire lets a run go that is over, old enough and not pinned, else ErrConflict; all is judged in the transaction
	// that deletes, and whoever makes a pin meanwhile waits, or is waited for. Its files are queued for deletion.
	// ErrNotFound without the run; executions that went before are ErrConflict.
	Expire(ctx context.Context, e Expiry) error
	// RegisterLocation tells that a server keeps files of runs there: what is deleted is queued for each such place.
	RegisterLocation(ctx context.Context, p FileLocation) error
	// QueueDeletion notes that files of a run are to be removed from a place, or one of them.
	QueueDeletion(ctx context.Context, l PendingDeletion) error
	// PendingDeletions lists some of the files of a place that are queued for deletion, and where that is not known, at most so many: first
	// what nobody has tried, then what was tried longest ago.
	PendingDeletions(ctx context.Context, place string, most int) ([]PendingDeletion, error)
	// DeletionFailed tells that files could not be removed, and why.
	DeletionFailed(ctx context.Context, l PendingDeletion, problem string) error
	// DeletionDone tells that files are gone from their place. Repeating it is harmless.
	DeletionDone(ctx context.Context, l PendingDeletion) error
	// DeletionBacklogs sums up what is left over, by place.
	DeletionBacklogs(ctx context.Context) ([]LeftPlace, error)
}

// TooRecentReason is why a run stays that has not ended so long ago.
func TooRecentReason(bound time.Duration) string {
	return "it ended less than " + bound.String() + " ago"
}

// NotExpiredError is the ErrConflict about a run that stays.
func NotExpiredError(why string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict, Message: "The run stays: " + why + "."}
}
