package warehouse

import "time"

// Table is the type of the table that a statement is about.
type Table uint8

// Table types. None is a statement that needs no warehouse.
const (
	None Table = iota
	Standard
	Hybrid
	Interactive
)

// String returns the type's name in lower case.
func (t Table) String() string {
	return [...]string{"none", "standard", "hybrid", "interactive"}[t]
}

// Op is the kind of work.
type Op uint8

// Kinds of work.
const (
	// Lookup reads rows by key: an index of a hybrid table, pruning elsewhere.
	Lookup Op = iota
	// Scan reads a range or everything.
	Scan
	// Write changes a few rows.
	Write
	// Load writes many rows at once.
	Load
)

// Work is the load that a statement puts on a warehouse.
type Work struct {
	Table Table
	Op    Op
}

// Types of warehouses.
const (
	TypeStandard    = "STANDARD"
	TypeInteractive = "INTERACTIVE"
)

// Scaling policies.
const (
	PolicyStandard = "STANDARD"
	PolicyEconomy  = "ECONOMY"
)

// Spec is what CREATE and ALTER WAREHOUSE say.
type Spec struct {
	Name string
	// Type is TypeStandard or TypeInteractive.
	Type string
	// Size is the name that SHOW WAREHOUSES uses: "X-Small", "Small", … "6X-Large".
	Size          string
	MinClusters   int
	MaxClusters   int
	ScalingPolicy string
	// AutoSuspend is the idle time after which the warehouse suspends itself; 0 is never.
	AutoSuspend time.Duration
	AutoResume  bool
	// MaxConcurrency is MAX_CONCURRENCY_LEVEL: the slots of one cluster.
	MaxConcurrency int
	// QueuedTimeout is STATEMENT_QUEUED_TIMEOUT_IN_SECONDS, StatementTimeout is
	// STATEMENT_TIMEOUT_IN_SECONDS; 0 is none.
	QueuedTimeout    time.Duration
	StatementTimeout time.Duration
	// Suspended creates the warehouse suspended (INITIALLY_SUSPENDED).
	Suspended bool
	// Generation of a standard warehouse, "1" or "2".
	Generation string
	// Fallback names the standard warehouse that executes again what an interactive
	// one ends for its time.
	Fallback string
	// Tables are the tables that were added to an interactive warehouse.
	Tables  []string
	Comment string
	Owner   string
}

// Status is the state in SHOW WAREHOUSES.
type Status string

// The states of a warehouse.
const (
	Started    Status = "STARTED"
	Starting   Status = "STARTING"
	Resuming   Status = "RESUMING"
	Suspended  Status = "SUSPENDED"
	Suspending Status = "SUSPENDING"
)

// State is a warehouse at one moment.
type State struct {
	Spec
	Status          Status
	StartedClusters int
	// Running and Queued count statements.
	Running, Queued int
	CreatedOn       time.Time
	ResumedOn       time.Time
	UpdatedOn       time.Time
}
