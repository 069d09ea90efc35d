package run

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/admission"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/run/recovery"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
	"github.com/loadstone-db/loadstone/engine/target"
)

// ControlStore is what a service needs of the control store.
type ControlStore interface {
	writer.Store
	query.Store
	finalize.Store
	enrichment.Store
	recovery.Store
	admission.Store
	CommandStore
	// CreateRun inserts run_status (PREPARED, PREPARING) and the parent
	// test_results row, with the plan when known. It seals inline DSNs.
	CreateRun(ctx context.Context, run engine.Run) error
	// DeleteRun removes a terminal or PREPARED run with everything that belongs to it; else ErrConflict. Its files are
	// queued for deletion.
	DeleteRun(ctx context.Context, runID string) error
	// SaveFindMax keeps the state of a search and appends the steps that were
	// judged since. Repeating it is harmless. State.Steps are not kept with it.
	SaveFindMax(ctx context.Context, p store.FindMaxProgress) error
	// SaveWarehouse keeps one poll of a run's warehouse. Repeating it is harmless.
	SaveWarehouse(ctx context.Context, runID string, epoch int64, p engine.WarehousePoint) error
	OpenDSN(ctx context.Context, ref engine.ConnectionRef) (driver string, dsn secret.Secret, err error)
}

// Options are what a service is made of. Nodes lead to the nodes that carry its runs.
type Options struct {
	Store   ControlStore
	Results record.Results
	Plugins plugin.Host
	Drivers target.Drivers
	// Recordings are the runs that can be replayed; nil where there are none.
	Recordings prepare.Recordings
	Nodes      []protocol.Dialer
	// NodeSource finds more of them while the service runs; nil finds none.
	NodeSource nodes.Source
	// Content is what nodes of other processes fetch from this one; nil where there are none.
	Content nodes.Content
	Log     zerolog.Logger
	Version string
	// Watcher is told of each change of a node's state; nil where nobody watches.
	Watcher nodes.Watcher
	// Metrics takes measurements of the nodes, and of the loops of runs where it is a TickMeter; nil takes none.
	Metrics nodes.Meter
	// Own tells the databases of the server's own, in which no connection of a node may land; nil has none.
	Own func() []engine.OwnDatabase
	// Network says which nodes reach a database; nil: every node does.
	Network nodes.Network
	// Traces makes the spans of runs; nil makes none.
	Traces *trace.Tracer
	// WaitForNodes is how long a run may wait that is larger than all nodes; 0 refuses such runs.
	WaitForNodes time.Duration
	// Authorizer is asked before a run begins that has waited; nil lets all begin.
	Authorizer admission.Authorizer
	// MaxLivePerUser is how many live runs one user may have at a time; 0 means no bound.
	MaxLivePerUser int
	// TempDir is a folder for files under construction.
	TempDir string
	// Disk is where files are kept; nil always has room.
	Disk enrichment.Disk
	// ResultsCheck is asked whether results can be stored before a run is taken in; nil: they can.
	ResultsCheck ResultsChecker
	// CopiesLive tells whether runs can be copied to an account while they go on; nil: they cannot.
	CopiesLive func() bool
	// Enrichment says how a history is asked; zero means the default.
	Enrichment enrich.Policy
	// PollInterval is how often the warehouse of a run is asked for; zero means 5 s.
	PollInterval time.Duration
	// Prices is the price list that costs are reckoned with; nil means the default.
	Prices query.PriceList
	// Owner names this server in the leases of its runs, the same over restarts on
	// one data directory; empty is a name of its own for all without one.
	Owner string
	// Shared says that other servers may have the control store too, and take runs over.
	Shared bool
	// Standalone says that the process has its own node only and ends after runs of its own.
	Standalone bool
	// Clock reads the machine's clock, with its monotonic reading; nil means time.Now.
	Clock func() time.Time
	// Calibration is the generator's, for a run's environment; nil when there is none.
	Calibration Calibration
	// Plan prepares the target of a run; nil means prepare.Plan.
	Plan func(context.Context, prepare.Deps, engine.Scenario, func(engine.PrepareProgress)) (*prepare.Prepared, error)
	// Rules begins the rules of a run that this process carries from now on; nil begins none.
	Rules rules.StartFunc
	// Rand is that of nodes.Options.
	Rand func(time.Duration) time.Duration
}

// TickMeter takes how long after its time the second of a run was aggregated and shown.
type TickMeter interface {
	Ticked(runID string, after time.Duration)
}

// Calibration is what the generator was measured to cost and to err by on this machine.
type Calibration interface {
	// Current is nil when nothing was measured.
	Current() *engine.Calibration
}

// defaults are a server that lacks nothing: its disk has room, its prices are the default, and nobody measures it.
type defaults struct{}

func (defaults) CheckSpace(string) error      { return nil }
func (defaults) Prices() cost.Prices          { return cost.Default() }
func (defaults) Ticked(string, time.Duration) {}
