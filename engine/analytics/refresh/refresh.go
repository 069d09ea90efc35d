// Package refresh decides about derived tables: when they are due, in which order they are
// refreshed, how long the claim of a worker holds, and what becomes of one that fails. It is pure:
// what is known goes in, with the time of the control store's database, and what is to be done comes out.
//
// # The queue
//
// A table is refreshed by whichever worker claims it. There is no leader: every server looks what is due and puts
// it into the queue, which holds one entry at most for each table, so that it does not matter how many do. A claim
// has an epoch, higher than that of every earlier claim of the table, and ends at its expiry, by the clock of
// the database alone. Its holder prolongs it with heartbeats and stops by itself before it can have
// expired. What it writes carries the epoch: once another worker has begun with a higher one, it changes nothing.
//
// # Freshness
//
// A table follows its sources: those of an INGEST table are the runs that have ended, those of an SQL table are
// what its definition reads. It is behind from the first change that it does not have, and is
// refreshed so that it is never behind for longer than its target lag. What changes several times meanwhile is
// refreshed once. The end of a run is an event: what follows runs is refreshed at once then, unless that was just done.
package refresh

import "github.com/loadstone-db/loadstone/engine"

// Kind says where the rows of a table come from.
type Kind string

// The kinds of tables.
const (
	// SQL tables hold the rows of a SELECT.
	SQL Kind = "SQL"
	// Ingest tables hold what the records of runs give; each run is a subtask.
	Ingest Kind = "INGEST"
)

// Mode says how much of a table a refresh replaces.
type Mode string

// The modes of a refresh.
const (
	Full Mode = "FULL"
	// Incremental replaces the partitions that have changed.
	Incremental Mode = "INCREMENTAL"
	// Auto is Incremental where that gives the same rows.
	Auto Mode = "AUTO"
)

// ByRun is the partition of tables whose rows belong to one run each.
const ByRun = "RUN"

// ByDay is the partition of tables whose rows belong to the day, of UTC, on which runs began.
const ByDay = "DAY"

// MaxPartitions is into how many parts a refresh is divided at most.
const MaxPartitions = 64

// Status says whether a table is refreshed.
type Status string

// The statuses of a table.
const (
	Active    Status = "ACTIVE"
	Suspended Status = "SUSPENDED"
	// Failed: its refresh has failed so often that it is left alone until somebody resumes it.
	Failed Status = "FAILED"
)

// Table is a derived table: its definition, and how it stands.
type Table struct {
	Name             string   `json:"name"`
	Kind             Kind     `json:"kind" enum:"SQL,INGEST"`
	Definition       string   `json:"definition" doc:"The SELECT of an SQL table."`
	Description      string   `json:"description"`
	Bundled          bool     `json:"bundled" doc:"It comes with Loadstone, and is neither changed nor dropped."`
	TargetLagSeconds float64  `json:"target_lag_seconds" doc:"How far it may be behind what it reads."`
	Mode             Mode     `json:"refresh_mode" enum:"FULL,INCREMENTAL,AUTO"`
	PartitionBy      string   `json:"partition_by" enum:",RUN,DAY" doc:"RUN: each row belongs to the run of its run_id; DAY: to the runs that began on its day (UTC)."`
	Partitions       int      `json:"partitions" doc:"How many parts a refresh divides its runs or days into, each for any worker; 0 decides by their number."`
	Priority         int      `json:"priority" doc:"The highest is refreshed first."`
	Sources          []string `json:"sources" nullable:"false" doc:"The derived tables that it reads."`
	Status           Status   `json:"status" enum:"ACTIVE,SUSPENDED,FAILED"`
	Version          int64    `json:"version" doc:"Rises with each change of the definition."`
	// ChangedAt is when what it reads changed last, BehindSince the first change that it does not have; of an INGEST table
	// that of a run, which only State knows.
	ChangedAt   engine.Time `json:"changed_at"`
	BehindSince engine.Time `json:"behind_since" doc:"The first change of what it reads that it does not have; null when it has everything, or was never refreshed and nothing has changed since it was defined: see as_of."`
	// AsOf is when its latest refresh began; what had changed until then is in it.
	AsOf        engine.Time `json:"as_of" doc:"When its latest refresh began; null of an SQL table that was never refreshed: there is no table yet, and no lag; and of an INGEST table, which is taken in run by run."`
	NextDue     engine.Time `json:"next_refresh_due"`
	LastSeconds float64     `json:"last_refresh_seconds"`
	// WaitSeconds is how long its refreshes have waited for a worker since they were due: the longest lately, which
	// fades by a tenth with each that waits less.
	WaitSeconds float64   `json:"-"`
	Failures    int       `json:"failures" doc:"How often its refresh has failed since it succeeded; of an INGEST table how many runs have failed too often and are left alone until somebody resumes it."`
	Error       string    `json:"error"`
	Failing     []Failing `json:"failing" nullable:"false" doc:"Runs and parts whose last refresh failed, the newest first, 20 at most."`
	CreatedBy   string    `json:"created_by"`
	// OwnerID is the user whose work its refreshes are; Owner is the user's name. Without an id nobody's rights end it.
	OwnerID   string      `json:"owner_id,omitempty" doc:"The user whose work its refreshes are: who made it, changed its definition last, or resumed it last. It is suspended when that user is locked out, deleted or a viewer. Empty of bundled tables, of those made before there were owners, and for viewers."`
	Owner     string      `json:"owner,omitempty" doc:"The owner's name."`
	Suspended string      `json:"suspended_reason,omitempty" doc:"Why it is suspended after its owner lost the right to refresh it; viewers see no more than that. A user who resumes or changes it becomes its owner."`
	CreatedAt engine.Time `json:"created_at"`
	UpdatedAt engine.Time `json:"updated_at"`
	UpdatedBy string      `json:"updated_by" doc:"The user who changed its definition last."`
}

// Lag is for how many seconds a table is behind what it reads. made is false of one that was never refreshed: there is
// nothing yet that could be behind.
func (t Table) Lag(now engine.Time) (seconds float64, made bool) {
	if t.Kind == SQL && t.AsOf.IsZero() {
		return 0, false
	}
	if t.BehindSince.IsZero() {
		return 0, true
	}
	return max(0, now.Sub(t.BehindSince.Time).Seconds()), true
}

// MaxFailing is how many of a table's failing runs or parts are listed.
const MaxFailing = 20

// Failing is a run or a part of a table whose last refresh failed.
type Failing struct {
	Subtask  string      `json:"subtask" doc:"The id of the run, or the part."`
	Failures int         `json:"failures" doc:"How often in a row."`
	GivenUp  bool        `json:"given_up" doc:"It has failed too often, and is left alone until somebody resumes the table, or the run changes."`
	Error    string      `json:"error"`
	FailedAt engine.Time `json:"failed_at"`
}

// Task is what one claim is about: a table, or a part of it that is refreshed by itself.
type Task struct {
	Table string `json:"dynamic_table"`
	// Subtask is "" for all of the table, else the id of a run, or a part of an SQL table.
	Subtask string `json:"subtask"`
}

// Pending is an entry of the queue.
type Pending struct {
	Task
	Priority int         `json:"priority"`
	Due      engine.Time `json:"next_refresh_due"`
}

// Claim is a worker's right to refresh something.
type Claim struct {
	Task
	Worker      string      `json:"worker_id"`
	Epoch       int64       `json:"epoch"`
	ClaimedAt   engine.Time `json:"claimed_at"`
	HeartbeatAt engine.Time `json:"heartbeat_at"`
	ExpiresAt   engine.Time `json:"expires_at"`
}

// State is what the control store knows of all tables, at its own time.
type State struct {
	Now     engine.Time
	Tables  []Table
	Pending []Pending
	Claims  []Claim
	// Workers are those that have said something lately.
	Workers []Worker
	// Runs are those whose record an INGEST table does not have as it is now: they have ended or changed
	// since, or are gone.
	Runs map[string][]string
}

// Result is what became of a claim.
type Result struct {
	// Error is the sentence of what failed, "" when nothing did.
	Error string
	// Mode and Note say what was replaced, and why so much.
	Mode        Mode
	Note        string
	Rows, Bytes int64
	// Unchanged: the table is what it was, and nobody who reads it needs to look.
	Unchanged bool
	// Gone: there is nothing any more that the subtask stands for, and it is forgotten.
	Gone bool
	// Parts: the table is refreshed in these, each a subtask that is claimed by itself, before all of it is due again.
	Parts []string
	// ReplaceParts: there are no other parts than these any more.
	ReplaceParts bool
}

// Completion is a claim with what became of it.
type Completion struct {
	Claim  Claim
	Result Result
}

// Record is one line of the history of a table.
type Record struct {
	Seq int64 `json:"seq"`
	Task
	Worker     string      `json:"worker_id"`
	Epoch      int64       `json:"epoch"`
	StartedAt  engine.Time `json:"started_at"`
	EndedAt    engine.Time `json:"ended_at"`
	Mode       Mode        `json:"refresh_mode" enum:",FULL,INCREMENTAL"`
	Note       string      `json:"note"`
	Rows       int64       `json:"row_count"`
	Bytes      int64       `json:"byte_count"`
	LagSeconds *float64    `json:"lag_seconds" doc:"How old the oldest change was that it brought in; null when there was none."`
	Error      string      `json:"error"`
}
