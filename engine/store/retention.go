package store

import (
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

// TooRecentReason is why a run stays that has not ended so long ago.
func TooRecentReason(bound time.Duration) string {
	return "it ended less than " + bound.String() + " ago"
}

// NotExpiredError is the ErrConflict about a run that stays.
func NotExpiredError(why string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict, Message: "The run stays: " + why + "."}
}
