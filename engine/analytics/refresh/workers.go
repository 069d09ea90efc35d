package refresh

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Role says what else a process does that refreshes tables.
type Role string

// The roles of workers.
const (
	Server Role = "SERVER"
	Node   Role = "NODE"
)

// Worker is a process that carries refreshes out, as it says itself.
type Worker struct {
	Name   string      `json:"worker_id" doc:"As its claims have it."`
	Role   Role        `json:"role" enum:"SERVER,NODE"`
	Host   string      `json:"host"`
	Kinds  []Kind      `json:"kinds" nullable:"false" doc:"The kinds of tables that it refreshes."`
	Slots  int         `json:"slots" doc:"How many refreshes it carries out at a time."`
	Waits  string      `json:"waits_for" doc:"Why it takes nothing now; empty when it does."`
	SeenAt engine.Time `json:"seen_at"`
}

// WorkerTTL is how long a worker counts that says nothing more.
const WorkerTTL = 30 * time.Second

// Load is how much there is to refresh, as a scaler of workers wants to know it.
type Load struct {
	// Due counts the entries of the queue that are due, and those that are under way.
	Due int
	// OldestSeconds is how long the oldest of those that nobody has claimed has been due.
	OldestSeconds float64
	// OverdueSeconds is how long the oldest entry has been due that is not done: since it was due first, put off, tried
	// again or under way as well.
	OverdueSeconds float64
	// P95Seconds is how long refreshes took, of the newest ones that succeeded; 0 without any.
	P95Seconds float64
	// Failed counts the tables that are left alone until somebody resumes them.
	Failed int
	// IngestLagSeconds is since when the oldest run waits that has ended, changed or gone and was not taken in since.
	IngestLagSeconds float64
}

// DurationSamples is how many of the newest refreshes P95Seconds is of.
const DurationSamples = 500

// MissingWorkers says which of the tables that are there nobody refreshes, and what is to be done; "" when all have a
// worker.
func MissingWorkers(s State) string {
	lacking := func(k Kind) bool {
		return slices.ContainsFunc(s.Tables, func(t Table) bool { return t.Kind == k && t.Status == Active }) &&
			!slices.ContainsFunc(s.Workers, func(w Worker) bool { return slices.Contains(w.Kinds, k) })
	}
	var what []string
	if lacking(Ingest) {
		what = append(what, "takes finished runs in")
	}
	if lacking(SQL) {
		what = append(what, "refreshes tables")
	}
	if len(what) == 0 {
		return ""
	}
	cure := "Start a server with --refresh-workers 1 or more"
	cure += ", or a node with --database-url and --results-database-url"
	if lacking(Ingest) {
		cure += " (and --results s3://… to take runs in)"
	}
	return fmt.Sprintf("Nobody %s. %s.", strings.Join(what, " or "), cure)
}
