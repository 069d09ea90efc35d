// Package store has the types and errors of the control store: everything that
// must survive the server. storage/postgres keeps it; the interfaces stand beside
// their consumers, and storetest is the suite of what fake keeps too.
//
// Their methods take a context with a deadline, are safe for concurrent use, and
// return the sentinel errors below, wrapped. Times are set by the store's own
// clock unless the caller gives them.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// The sentinel errors of the contract.
var (
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the row's state, or a unique name, forbids the change.
	ErrConflict = errors.New("conflict")
	// ErrFenced: the caller's owner epoch is no longer the run's.
	ErrFenced = errors.New("fenced: another server owns the run")
	// ErrLeaseHeld: another owner's lease has not expired.
	ErrLeaseHeld = errors.New("another server holds the run")
	// ErrDamaged: what is stored is not what was given to be stored.
	ErrDamaged = errors.New("damaged")
	// ErrUnavailable: the store cannot be reached now; the call may be repeated.
	ErrUnavailable = errors.New("control store unavailable")
	// ErrClaimLost: the claim on a refresh has expired, or another worker has one with a higher epoch.
	ErrClaimLost = errors.New("the claim on the refresh is lost")
	// ErrNoCapacity: the nodes have no room for all that was asked for, or others wait for it before.
	ErrNoCapacity = errors.New("no room on the nodes")
	// ErrInUse: something else refers to the row.
	ErrInUse = errors.New("in use")
)

// IsTransient reports whether an error is of the way to what is stored, and says nothing about it: what keeps it is
// away, or it was removed a moment ago. The call may be repeated.
func IsTransient(err error) bool {
	var file *fs.PathError
	return errors.Is(err, ErrUnavailable) || engine.HasCode(err, engine.CodeUnavailable) || errors.Is(err, ErrNotFound) ||
		errors.As(err, &file)
}

// NameTaken is the ErrConflict about a name that another row has; it tells the user which field to change.
func NameTaken(what, name string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("There is a %s called %q already.", what, name), Hint: "Choose another name.",
		Fields: []engine.FieldError{{Field: "name", Message: "is taken", Hint: "choose another name"}}}
}

// Page selects a part of a list. Limit ≤ 0 means 50; Cursor is opaque, "" the first page.
type Page struct {
	Limit  int
	Cursor string
}

// RunFilter selects runs; empty fields select all.
type RunFilter struct {
	Statuses   []engine.Status
	TemplateID string
	// ConnectionID is that of the saved connection that a run loads.
	ConnectionID string
	Search       string // substring of the run's name, case-insensitive
	Since        time.Time
	Until        time.Time
	Tag          map[string]string
	// LatestOfTemplate selects the newest run of each template.
	LatestOfTemplate bool
	// Passed selects runs that passed, or of whose thresholds one failed; nil all.
	Passed *bool
	// Sort is what the list is in the order of, newest first without it; the runs that have no such figure come last.
	Sort RunSort
	// Ascending begins with the least.
	Ascending bool
	Page
}

// RunSort is a column of a list of runs.
type RunSort string

// The columns that a list of runs can be in the order of.
const (
	SortCreated    RunSort = ""
	SortName       RunSort = "name"
	SortThroughput RunSort = "qps"
	SortP50        RunSort = "p50_ms"
	SortP95        RunSort = "p95_ms"
	SortP99        RunSort = "p99_ms"
	SortErrorRate  RunSort = "error_rate"
	SortOperations RunSort = "total_ops"
	SortLength     RunSort = "length"
	SortEnded      RunSort = "ended"
	SortStatus     RunSort = "status"
	SortValidity   RunSort = "validity"
	SortStartedBy  RunSort = "created_by"
	SortConnected  RunSort = "connections"
)

// RunRow is a run as a list shows it.
type RunRow struct {
	engine.Run
	QPS       *float64 `json:"qps"`
	P50Ms     *float64 `json:"p50_ms"`
	P95Ms     *float64 `json:"p95_ms"`
	P99Ms     *float64 `json:"p99_ms"`
	ErrorRate *float64 `json:"error_rate"`
	// MeasuredSeconds is how long the measurement took whose figures these are.
	MeasuredSeconds *float64        `json:"measured_seconds"`
	Verdict         *engine.Verdict `json:"validity"`
	Passed          *bool           `json:"passed"`
	// FailedThresholds is how many of the run's thresholds were not met: a run without any has not passed
	// either when nothing of it succeeded.
	FailedThresholds int `json:"failed_thresholds"`
	// Simulated: the figures are those of a stand-in.
	Simulated bool `json:"simulated"`
	Emulated  bool `json:"emulated"`
}

// RunList is one page of runs, newest first.
type RunList struct {
	Runs       []RunRow `json:"runs"`
	NextCursor string   `json:"next_cursor,omitempty"`
	Total      int64    `json:"total"`
}

// LeaseDuration is how long a run or matrix stays its owner's without a sign of life, by the clock of the database,
// where a store has no other Lease. SaveTick and RenewLeases give such a sign.
const LeaseDuration = 15 * time.Second

// Leases says how long what a server owns stays its own.
type Leases interface {
	// Lease is LeaseDuration, or what the store was opened with.
	Lease() time.Duration
}

// Claim asks for a run.
type Claim struct {
	RunID string
	// Owner is who asks, the same over restarts on one data directory.
	Owner string
	// Reclaim also takes what Owner holds itself: an earlier process of its has
	// ended. Without it only a lease that has expired is taken over.
	Reclaim bool
	// Command is a STOP that its owner has not heard of, and that Owner has: it takes the run over although its lease goes
	// on. 0 is none.
	Command int64
}

// Transition is a conditional change of a run, made in one transaction with its events.
type Transition struct {
	RunID string
	// Epoch must equal the run's owner epoch, else ErrFenced. 0 skips the check (stop before start).
	Epoch int64
	// Owner takes the run for this owner, with a lease; empty leaves it.
	Owner string
	// Admission must be there for the run's workers and is taken, else ErrNoCapacity; nil asks for none.
	Admission *Admission
	// From lists the statuses the change is allowed from; another one is ErrConflict.
	From []engine.Status
	// To is the new status; empty leaves it.
	To engine.Status
	// Phase is the new phase; nil leaves it.
	Phase *engine.Phase
	// The non-zero times are written.
	StartTime, WarmupStartTime, WarmupEndTime, MeasurementEndTime, EndTime time.Time
	StopReason                                                             engine.StopReason
	CancellationReason                                                     string
	// WorkerTargets are the targets that change; those of other run workers stay as they are.
	WorkerTargets map[string]engine.WorkerTarget
	// WorkersExpected is how many run workers the run has from now on; 0 leaves it.
	WorkersExpected int
	// Rules are how the rules stand from now on; nil leaves them. That a rule has triggered is kept with the stop.
	Rules []engine.RuleState
	// Events are appended in order; the store fills RunID, SequenceID and CreatedAt, and EventID where it is empty.
	// When one of them is there already by its EventID, nothing is changed: ErrConflict.
	Events []engine.Event
	// Logs are appended to the run's log, in order; the store fills RunID and Seq. They are for runs that nobody
	// carries: who does numbers its lines itself, and stores them by SaveTick.
	Logs []engine.LogEntry
}

// WorkerRow is one row of worker_heartbeats.
type WorkerRow struct {
	RunID         string
	WorkerID      string
	WorkerGroupID int
	NodeID        string
	ResultID      string
	Status        engine.WorkerStatus
	Phase         engine.Phase
	LastHeartbeat time.Time
	Error         string
}

// Tick is what the orchestrator persists each second, in one transaction.
type Tick struct {
	RunID     string
	Epoch     int64
	Workers   []WorkerRow
	Snapshots []engine.WorkerSnapshot // stored without histograms
	Point     *engine.Point
	Logs      []engine.LogEntry // with their Seq, assigned by the caller
	// FindMax is the state of the run's search now, nil without one; its steps are not kept with it.
	FindMax *engine.FindMaxState
	// Rules are those of the run as they stand; nil leaves them.
	Rules []engine.RuleState
	// The roll-up in run_status.
	TotalOps, ErrorCount                               int64
	CurrentQPS                                         float64
	WorkersRegistered, WorkersActive, WorkersCompleted int
}

// Size estimates in bytes what the rows of run workers take while they wait, and their distributions by kind.
func (t *Tick) Size() (rows, kinds int) {
	const row = 256
	rows = row * len(t.Workers)
	for i := range t.Snapshots {
		r, k := sizeOf(&t.Snapshots[i])
		rows, kinds = rows+r, kinds+k
	}
	return rows, kinds
}

// sizeOf is what a snapshot takes, and apart from that its distributions by kind.
func sizeOf(s *engine.WorkerSnapshot) (rest, kinds int) {
	const fixed, entry = 1024, 64
	rest = fixed + entry*(len(s.ByKind)+len(s.ByClass)+len(s.TickByKind))
	for _, h := range []*engine.PackedHistogram{s.TickLatency, s.PhaseLatency, s.TickService, s.PhaseService, s.TickLag} {
		rest += packedSize(h)
	}
	for _, h := range s.KindLatency {
		kinds += packedSize(h)
	}
	return rest, kinds
}

func packedSize(h *engine.PackedHistogram) int {
	if h == nil {
		return 0
	}
	const fixed = 80
	return fixed + cap(h.Counts)
}

// FindMaxProgress is what is new of a search.
type FindMaxProgress struct {
	RunID string
	Epoch int64
	State engine.FindMaxState
	Steps []engine.FindMaxStep
}

// WorkerPoint is one row of worker_metrics_snapshots.
type WorkerPoint struct {
	Timestamp         engine.Time  `json:"timestamp"`
	ElapsedSeconds    float64      `json:"elapsed_seconds"`
	WorkerID          string       `json:"worker_id"`
	Phase             engine.Phase `json:"phase"`
	QPS               float64      `json:"qps"`
	P50LatencyMs      *float64     `json:"p50_latency_ms"`
	P95LatencyMs      *float64     `json:"p95_latency_ms"`
	P99LatencyMs      *float64     `json:"p99_latency_ms"`
	TotalQueries      int64        `json:"total_queries"`
	ErrorCount        int64        `json:"error_count"`
	ActiveConnections int          `json:"active_connections"`
	TargetConnections int          `json:"target_connections"`
}

// Template is a saved scenario.
type Template struct {
	TemplateID  string          `json:"template_id"`
	Name        string          `json:"name"` // unique
	Description string          `json:"description,omitempty"`
	Config      engine.Scenario `json:"config"`
	// Source is the YAML as the user wrote it, comments included; may be empty.
	Source  string `json:"source,omitempty"`
	Version int64  `json:"version"` // rises with each save; updates name the one they edited
	// Access says whose it is, and who may use it.
	Access    Access      `json:"access"`
	CreatedBy string      `json:"created_by,omitempty"`
	CreatedAt engine.Time `json:"created_at"`
	UpdatedAt engine.Time `json:"updated_at"`
	// Editor is who changes it, on the way into the store: schedules of others are suspended then. Without an id, all are.
	Editor engine.Actor `json:"-"`
}

// Connection is a saved connection.
type Connection struct {
	ConnectionID string `json:"connection_id"`
	Name         string `json:"name"` // unique
	Driver       string `json:"driver"`
	// DSN has its password replaced by ***.
	DSN string `json:"dsn"`
	// FullDSN is the DSN with its password, on the way into the store; without it DSN is. The store returns none.
	FullDSN     secret.Secret `json:"-"`
	Description string        `json:"description,omitempty"`
	Builtin     bool          `json:"builtin"` // the playground; cannot be edited or deleted
	// Production asks whoever starts a run against it to type its name.
	Production bool `json:"production"`
	// Access says whose it is, and who may use it.
	Access Access `json:"access"`
	// Version rises with each change.
	Version   int64       `json:"version"`
	CreatedAt engine.Time `json:"created_at"`
	UpdatedAt engine.Time `json:"updated_at"`
}

// AddressToSave is the DSN that is saved, with the password where it was given.
func (c Connection) AddressToSave() string { return cmp.Or(c.FullDSN.Reveal(), c.DSN) }

// Plugin is a row of the register of plugins.
type Plugin struct {
	engine.PluginRef
	Bundled   bool   `json:"bundled"`
	Enabled   bool   `json:"enabled"`
	SizeBytes int64  `json:"size_bytes"`
	Manifest  []byte `json:"-"` // JSON as the plugin gave it
	// Inspection is what inspecting the file told besides the manifest, as JSON; empty for a bundled one.
	Inspection []byte      `json:"-"`
	UploadedBy string      `json:"uploaded_by,omitempty"`
	EnabledBy  string      `json:"enabled_by,omitempty"` // who enabled it last
	EnabledAt  engine.Time `json:"enabled_at"`           // when, last; zero: never
	CreatedAt  engine.Time `json:"created_at"`
}

// PluginLimits bound what uploads may fill; zero is no limit.
type PluginLimits struct {
	Versions int   // versions of one name
	Files    int   // uploaded files altogether
	Bytes    int64 // and their bytes
}

// PluginUpload is what AddPlugin did.
type PluginUpload struct {
	Plugin
	// Created is false when the same bytes were there already.
	Created bool
	// Replaced is the hash of the never-enabled upload of the same version whose place it took, or "".
	Replaced string
}
