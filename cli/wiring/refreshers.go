package wiring

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/results"
)

// ResultsFlags name the results database, where it is not the embedded one.
type ResultsFlags struct {
	ResultsDatabase     string `name:"results-database-url" placeholder:"URL" env:"LOADSTONE_RESULTS_DATABASE_URL" help:"With --database-url: the results database, as its owner. Not the control store's; without it there are no derived tables."`
	ResultsDatabaseFile string `name:"results-database-url-file" placeholder:"FILE" env:"LOADSTONE_RESULTS_DATABASE_URL_FILE" help:"File with the URL."`
	ResultsReaderURL    string `name:"results-reader-url" placeholder:"URL" env:"LOADSTONE_RESULTS_READER_URL" help:"The results database as a role that may only connect: definitions and queries run as that role."`
	ResultsReaderFile   string `name:"results-reader-url-file" placeholder:"FILE" env:"LOADSTONE_RESULTS_READER_URL_FILE" help:"File with the URL."`
}

// urls are both, or none.
func (f ResultsFlags) urls() (owner, reader string, err error) {
	if owner, err = terminal.SecretFlag("--results-database-url", f.ResultsDatabase, f.ResultsDatabaseFile); err != nil {
		return "", "", err
	}
	if reader, err = terminal.SecretFlag("--results-reader-url", f.ResultsReaderURL, f.ResultsReaderFile); err != nil {
		return "", "", err
	}
	switch {
	case owner != "" && reader == "":
		return "", "", engine.InvalidField("--results-reader-url", "is missing beside --results-database-url",
			"name the same database as a role that may only connect to it")
	case owner == "" && reader != "":
		return "", "", engine.InvalidField("--results-database-url", "is missing beside --results-reader-url",
			"name the same database as its owner")
	}
	return owner, reader, nil
}

// refreshers refreshes what claims are about, in a server or on a node.
type refreshers struct {
	store *postgres.Store
	// own is the node in the same process, if any.
	own *worker.Node
	// traces makes spans of refreshes; nil makes none.
	traces *trace.Tracer
	// urls are those of the results database.
	urls func(ctx context.Context) (owner, reader string, err error)
	// ingest takes runs in, but for where they go; nil where that is not done.
	ingest *ingest.Ingest
	// export takes them to the results connection; nil where there is none.
	export func(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (refresh.Result, error)

	// identify finds out what the results database is, before it is opened: it is to be known also where that fails.
	// nil does not.
	identify func(context.Context) error

	mu   sync.Mutex
	open *derived.Database
}

func newIngest(s *postgres.Store, r *results.Results, also []string,
	detail func(ctx context.Context, runID string) (engine.RunDetail, error)) *ingest.Ingest {
	return &ingest.Ingest{Store: s, Record: r, Detail: detail, Executions: slices.Contains(also, "executions")}
}

// database opens the results database, once.
func (c *refreshers) database(ctx context.Context) (*derived.Database, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil {
		return c.open, nil
	}
	owner, reader, err := c.urls(ctx)
	if err != nil {
		return nil, err
	}
	if c.identify != nil {
		if err := c.identify(ctx); err != nil {
			return nil, err
		}
	}
	open, err := derived.OpenRaisingEpochs(ctx, owner, reader, c.store.RaiseRefreshEpochs)
	if err != nil {
		return nil, err
	}
	c.open = open
	return open, nil
}

func (c *refreshers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil {
		c.open.Close()
	}
}

// work refreshes what a claim is about.
func (c *refreshers) work(ctx context.Context, claim refresh.Claim, prove func(context.Context) error) (refresh.Result,
	error) {
	begin := time.Now()
	result, err := c.refresh(ctx, claim, prove)
	run := ""
	if claim.Table == ingest.Table || claim.Table == snowflakeexport.Table {
		run = claim.Subtask
	}
	metrics.Refreshed(c.traces, claim, run, time.Since(begin), err)
	return result, err
}

func (c *refreshers) refresh(
	ctx context.Context,
	claim refresh.Claim,
	prove func(context.Context) error,
) (refresh.Result,
	error) {
	if claim.Table == snowflakeexport.Table {
		if c.export == nil {
			// Others have one: to them it is left.
			return refresh.Result{}, fmt.Errorf("this process has no --results-connection: %w", store.ErrUnavailable)
		}
		return c.export(ctx, claim, prove)
	}
	db, err := c.database(ctx)
	if err != nil {
		return refresh.Result{}, err
	}
	if claim.Table == ingest.Table {
		in := *c.ingest
		in.Target, in.Cores = db, ingestCores(c.own)
		r, err := in.Run(ctx, claim, prove)
		if err == nil && !r.Unchanged {
			// Its segment is another one than that which was taken to the account, if any was.
			_, err = c.store.TakeInAgain(ctx, snowflakeexport.Table, []string{claim.Subtask})
		}
		return r, err
	}
	table, err := c.store.DynamicTable(ctx, claim.Table)
	if err != nil {
		return refresh.Result{}, err
	}
	return db.Materialize(ctx, table, claim, prove)
}
