package wiring

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/storage/objects/s3store"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
	"github.com/loadstone-db/loadstone/storage/results"
)

// RefreshNodeFlags let a node refresh derived tables, when they name the databases.
type RefreshNodeFlags struct {
	DatabaseFlags
	ResultsFlags
	RefreshWorkers int      `name:"refresh-workers" default:"2" placeholder:"N" env:"LOADSTONE_REFRESH_WORKERS" help:"With --database-url and --results-database-url: concurrent refreshes of this node (default: 2)."`
	Results        string   `placeholder:"s3://BUCKET/PREFIX" env:"LOADSTONE_RESULTS" help:"The servers' --results; with it the node also ingests finished runs."`
	Prices         string   `placeholder:"FILE" env:"LOADSTONE_PRICES" help:"The servers' --prices, unless the list is saved under Settings."`
	Ingest         []string `name:"ingest" enum:"executions" placeholder:"WHAT" env:"LOADSTONE_INGEST" help:"The servers' --ingest."`
}

// RefreshNode refreshes derived tables on a node, once its databases can be reached.
type RefreshNode struct {
	flags         RefreshNodeFlags
	url           string
	owner, reader string
	prices        *cost.Source
	options       RefreshNodeOptions
	cancel        context.CancelFunc
	ended         chan struct{}
}

// RefreshNodeOptions say on which node.
type RefreshNodeOptions struct {
	// Name is the node's, in claims.
	Name    string
	DataDir string
	Node    *worker.Node
	Metrics *NodeMetrics
	Log     zerolog.Logger
}

// OpenRefreshNode begins to refresh tables where the flags name databases; else it is nil. A database that is away does
// not keep the node from carrying load.
func OpenRefreshNode(f RefreshNodeFlags, o RefreshNodeOptions) (*RefreshNode, error) {
	url, err := f.URL()
	if err != nil {
		return nil, err
	}
	owner, reader, err := f.urls()
	if err != nil {
		return nil, err
	}
	switch {
	case f.RefreshWorkers < 0 || f.RefreshWorkers > 64:
		return nil, engine.InvalidField("--refresh-workers", "is out of range", "0 to 64")
	case owner != "" && url == "":
		return nil, engine.InvalidField("--database-url", "is missing beside --results-database-url",
			"name the servers' control store, which says what is to be refreshed")
	case url != "" && owner == "":
		o.Log.Info().Msg("this node refreshes no tables: --results-database-url names their database")
		return nil, nil
	case url == "" || f.RefreshWorkers == 0:
		return nil, nil
	}
	r := &RefreshNode{flags: f, url: url, owner: owner, reader: reader, options: o, ended: make(chan struct{})}
	if r.prices, err = cost.Open(f.Prices, o.DataDir, o.Log); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go r.openAndRun(ctx)
	return r, nil
}

// Close gives claims back and returns when that is done.
func (r *RefreshNode) Close() {
	if r != nil {
		r.cancel()
		<-r.ended
	}
}

// reopenDelay is how soon a control store that could not be opened is tried again.
const reopenDelay = 5 * time.Second

// openAndRun opens the control store, as soon as that can be done, and refreshes until ctx ends.
func (r *RefreshNode) openAndRun(ctx context.Context) {
	defer close(r.ended)
	var last string
	for {
		err := r.run(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			r.options.Log.Warn().Err(err).Msg("this node refreshes no tables yet; it tries again")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reopenDelay):
		}
	}
}

// run refreshes until ctx ends; an error is of opening.
func (r *RefreshNode) run(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := schema.Compare(opening, r.url); err != nil && !engine.HasCode(err, engine.CodeForbidden) {
		return err
	}
	store, err := postgres.Open(opening, r.url, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	c := &refreshers{store: store, own: r.options.Node, traces: r.options.Metrics.traces.Tracer(),
		urls: func(context.Context) (string, string, error) { return r.owner, r.reader, nil }}
	defer c.close()
	// What is wrong with it is wrong here: it would fail every table that this node claims.
	db, err := c.database(opening)
	if err != nil {
		return err
	}
	if _, err := db.CheckReader(opening); err != nil {
		return err
	}
	kinds := []refresh.Kind{refresh.SQL}
	record, err := r.record(opening)
	if err != nil {
		return err
	}
	if record != nil {
		kinds = append(kinds, refresh.Ingest)
		c.ingest = newIngest(store, record, r.flags.Ingest, r.runs(store, record).Detail)
	}
	cancel()
	refreshers := refresh.Start(refresh.Options{Store: store, Work: c.work, Workers: r.flags.RefreshWorkers, Kinds: kinds,
		Name: r.options.Name, Role: refresh.Node, Host: hostname(), Busy: r.busyReason, Log: r.options.Log})
	r.options.Node.SetGiveWay(refreshers.AwaitYield)
	r.options.Metrics.Refreshes(store.RefreshLoad)
	r.options.Log.Info().Int("workers", r.flags.RefreshWorkers).Bool("takes_runs_in", record != nil).
		Msg("this node refreshes derived tables")
	<-ctx.Done()
	r.options.Metrics.Refreshes(nil)
	refreshers.Close()
	return nil
}

// busyReason says why nothing should be refreshed here now.
func (r *RefreshNode) busyReason() string {
	if why := BusyReason(r.options.Node)(); why != "" {
		return why
	}
	if !r.options.Node.Ready() {
		return "the node is drained"
	}
	return ""
}

// record is where the parts of runs are, nil where only the servers know: a folder is on their machines.
func (r *RefreshNode) record(ctx context.Context) (*results.Results, error) {
	if !s3store.IsAddress(r.flags.Results) {
		return nil, nil
	}
	address, err := s3store.ParseAddress(r.flags.Results)
	if err != nil {
		return nil, err
	}
	dir := r.options.DataDir
	kept, err := s3store.Open(ctx, address, s3store.Options{Log: r.options.Log,
		CacheDir: filepath.Join(dir, "results-cache"), CacheBytes: defaultResultsCache << 20,
		FreeSpace: func() error { return record.CheckDiskSpace(dir, record.Reserve(dir, 0), "Nothing is cached") }})
	if err != nil {
		return nil, fmt.Errorf("opening the record of runs: %w", err)
	}
	return results.New(kept), nil
}

// runs reads runs that are over; nothing is live here.
func (r *RefreshNode) runs(store *postgres.Store, record *results.Results) *query.Reader {
	r.prices.UseStore(store)
	return query.New(query.Options{Store: store, Results: record, Prices: r.prices,
		Enrichments: enrichment.New(enrichment.Options{Store: store, Results: record})})
}
