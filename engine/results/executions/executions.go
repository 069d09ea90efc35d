// Package executions says how single executions of a run are looked for, page by page, and how those that failed
// are told in groups. storage/results carries it out on the recorded parts.
package executions

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Sort is the order of what is found.
type Sort string

// By when executions ended, or by how long they took.
const (
	ByTime    Sort = "time"
	ByLatency Sort = "latency"
)

// Outcome is how an execution ended.
type Outcome string

// A transaction that was rolled back as the workload wanted has succeeded, too.
const (
	Succeeded  Outcome = "succeeded"
	Failed     Outcome = "failed"
	RolledBack Outcome = "rolled_back"
)

// Query says which executions are wanted. What is empty does not narrow; of several values of a field one is enough.
type Query struct {
	Kinds      []engine.Kind
	Statements []string
	Workers    []string
	Classes    []string
	// Codes and Messages are exact.
	Codes    []string
	Messages []string
	Outcome  Outcome
	// Phase is WARMUP or MEASUREMENT.
	Phase engine.Phase
	// From and Until bound when executions ended, as charts count them: from From on and before Until.
	From, Until time.Time
	// OverMs and UptoMs bound the latency like the cell of a heat map: above OverMs, UptoMs at most; 0 is no bound.
	OverMs, UptoMs float64
	// InTransactions also wants the statements inside transactions, which are no executions of their own.
	InTransactions bool

	Sort      Sort
	Ascending bool
	Limit     int
	// After is the place of the last execution that was shown; nil begins.
	After *Position
}

// MaxPageSize bounds Query.Limit.
const MaxPageSize = 500

// Position is where an execution is: what it is sorted by (ns), and its row in the record, which tells apart
// those that are equal in that.
type Position struct {
	Value int64  `json:"v"`
	Part  string `json:"p"`
	Group int    `json:"g"`
	Row   int    `json:"r"`
}

// Cursor writes a place as text that belongs to the query's order.
func (q *Query) Cursor(p Position) string {
	b, err := json.Marshal(cursor{p, q.Sort, q.Ascending})
	if err != nil {
		return "" // it has no fields that could fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

type cursor struct {
	Position
	Sort      Sort `json:"s"`
	Ascending bool `json:"a"`
}

// Resume takes a cursor; "" begins. One of another order is refused.
func (q *Query) Resume(text string) error {
	q.After = nil
	if text == "" {
		return nil
	}
	bad := engine.InvalidField("cursor", "is not the next_cursor of a page in this order",
		"leave it out to begin, and keep sort and order while reading on")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return bad
	}
	var c cursor
	if json.Unmarshal(b, &c) != nil || c.Sort != q.Sort || c.Ascending != q.Ascending || c.Group < 0 || c.Row < 0 {
		return bad
	}
	q.After = &c.Position
	return nil
}

// Validate refuses what cannot be looked for, and names the field.
func (q *Query) Validate() error {
	switch {
	case q.Limit < 1 || q.Limit > MaxPageSize:
		return engine.InvalidField("limit", fmt.Sprintf("%d is not between 1 and %d", q.Limit, MaxPageSize), "")
	case !slices.Contains([]Sort{ByTime, ByLatency}, q.Sort):
		return engine.InvalidField("sort", fmt.Sprintf("%q is not a column to sort by", q.Sort), "time or latency")
	case !q.From.IsZero() && !q.Until.IsZero() && !q.From.Before(q.Until):
		return engine.InvalidField("until", "is not after from", "an execution ended from from on, and before until")
	case invalidMs(q.OverMs):
		return engine.InvalidField("over_ms", "is not a latency", "milliseconds, 0 or more")
	case invalidMs(q.UptoMs):
		return engine.InvalidField("upto_ms", "is not a latency", "milliseconds, 0 or more")
	case q.UptoMs > 0 && q.UptoMs <= q.OverMs:
		return engine.InvalidField("upto_ms", "is not more than over_ms", "latencies are above over_ms, and upto_ms at most")
	}
	return nil
}

func invalidMs(ms float64) bool { return ms < 0 || math.IsNaN(ms) || math.IsInf(ms, 0) }

// Execution is a row of the record.
type Execution struct {
	WorkerID     string       `json:"worker_id"`
	ConnectionID uint32       `json:"connection_id"`
	Seq          uint32       `json:"seq" doc:"The number of the execution on its connection, from 0."`
	Position     int32        `json:"position" doc:"0 for an execution; statements inside a transaction are numbered from 1."`
	Step         int32        `json:"step" doc:"Of a search, from 1; else 0."`
	Phase        engine.Phase `json:"phase" enum:"WARMUP,MEASUREMENT"`
	Kind         engine.Kind  `json:"kind"`
	StatementID  string       `json:"statement_id"`
	DueAt        engine.Time  `json:"due_at"`
	StartedAt    engine.Time  `json:"started_at"`
	EndedAt      engine.Time  `json:"ended_at" doc:"The instant by which charts count it."`
	AppElapsedMs float64      `json:"app_elapsed_ms" doc:"The latency; at a rate from when it was due."`
	LagMs        float64      `json:"schedule_lag_ms"`
	WaitMs       float64      `json:"pool_wait_ms"`
	DecodeMs     float64      `json:"decode_ms"`
	Rows         int32        `json:"rows"`
	Success      bool         `json:"success"`
	RolledBack   bool         `json:"rolled_back"`
	ErrorClass   string       `json:"error_class"`
	ErrorCode    string       `json:"error_code"`
	ErrorMessage string       `json:"error_message"`
	Retries      int32        `json:"retries"`
	QueryID      string       `json:"server_query_id"`
}

// ExecutionPage is a part of what was found.
type ExecutionPage struct {
	Executions []Execution `json:"executions" nullable:"false"`
	NextCursor string      `json:"next_cursor" doc:"Give it as cursor to read on; empty after the last."`
	// Record says what was looked through.
	Record RecordRead `json:"record"`
}

// RecordRead is how much of a run is recorded where it can be read.
type RecordRead struct {
	PartsCount      int   `json:"parts_count"`
	ExecutionsCount int64 `json:"rows_count" doc:"Rows of the parts, statements inside transactions and the warm-up included."`
	Complete        bool  `json:"complete" doc:"False during the run, until its record has been fetched, and when a part of it is lost."`
	// ReadCount is how many rows had to be read for the answer; row groups without a match are passed over.
	ReadCount int64   `json:"rows_read_count"`
	ElapsedMs float64 `json:"elapsed_ms"`
}

// FailureExample is a message of a failure.
type FailureExample struct {
	Message string `json:"message"`
	Count   int64  `json:"count"`
}

// Failure is what failed alike: one error of one statement.
type Failure struct {
	ErrorClass    string           `json:"error_class"`
	ErrorCode     string           `json:"error_code"`
	Kind          engine.Kind      `json:"kind"`
	StatementID   string           `json:"statement_id"`
	SQL           string           `json:"sql" doc:"The statement's text; empty for a transaction, whose statements have theirs."`
	InTransaction bool             `json:"inside_transaction" doc:"A statement inside a transaction, which is no execution of its own."`
	Count         int64            `json:"count"`
	WarmupCount   int64            `json:"warmup_count" doc:"Those of count that were in the warm-up, and in no figure."`
	WorkerCount   int              `json:"worker_count"`
	FirstAt       engine.Time      `json:"first_at"`
	LastAt        engine.Time      `json:"last_at"`
	SlowestMs     float64          `json:"slowest_ms"`
	Examples      []FailureExample `json:"examples" nullable:"false" doc:"The most frequent messages."`
	Messages      int              `json:"messages_count" doc:"How many different messages there are; of more than 1000 the rest is one."`
}

// Failures is what failed in a run.
type Failures struct {
	Failures []Failure  `json:"failures" nullable:"false" doc:"The most frequent first, 200 at most."`
	Total    int        `json:"total_count" doc:"How many groups there are."`
	Record   RecordRead `json:"record"`
}

// MaxFailures bounds Failures.Failures, MaxExamples the examples of each, and MaxMessages how many messages are told
// apart.
const (
	MaxFailures = 200
	MaxExamples = 5
	MaxMessages = 1000
)
