// Package coordinator carries statements out over the catalog of streams, and brings continuous queries to the state
// that is desired of them. A statement is accepted when it has been planned and kept, before anything is opened; a
// reconciler then compares what the catalog wants with what runs, and does what is missing. It is woken when the
// catalog changes, and looks by itself besides; it may be ended at any step, and goes on from what the catalog says.
//
// One server owns a query at a time, by a lease and an epoch. Its fragments run in the owner's process and on workers
// of other processes, to which a Runner leads; rows between them go through the owner.
package coordinator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Server is the worker that stands for the servers' own process.
const Server = catalog.Server

// Slots is how many fragments run in it.
const Slots = 2000

// Connectors open what queries read and write in this process.
type Connectors = fragment.Connectors

// ErrUnusable says that a source or sink can not be opened, however often it is tried.
var ErrUnusable = fragment.ErrUnusable

// Options are what a coordinator is made of.
type Options struct {
	Store      catalog.Store
	Connectors Connectors
	// Memory is what queries may hold in this process.
	Memory memory.Limits
	// Runner leads to the workers of other processes; nil where there are none.
	Runner Runner
	// Owner names this server.
	Owner string
	// Tables looks at tables of saved connections; nil where there are none.
	Tables Tables
	// Cluster is nil where there are no nodes.
	Cluster Cluster
	// Sources are statements that are carried out once at the start, where what they create is not there.
	Sources string
	// ReleaseAfter is from when on what a query that ends has on a worker that is lost counts as gone; 0 is the constant
	// of that name.
	ReleaseAfter time.Duration
	// Now is the machine's clock, time.Now where it is not set.
	Now func() time.Time
	// Lease is for how long queries are this server's without a word of it (15 s).
	Lease time.Duration
	Log   zerolog.Logger
}

// Cluster is the nodes as workers of streams.
type Cluster interface {
	Workers() []catalog.Worker
	// HasLoad says whether a worker that drains still bears load, of which it tells.
	HasLoad(host string) bool
	// Removed says whether an operator has taken a worker out.
	Removed(host string) bool
}

// Coordinator is safe for concurrent use.
type Coordinator struct {
	o    Options
	stop context.CancelFunc
	wake chan struct{}
	done sync.WaitGroup

	watches *watchHub
	// sent are the workers as the loop has told the catalog of them last.
	sent SentStates

	mu sync.Mutex
	// running are the deployments of queries, by id.
	running map[int64]*deployment
	// failed are attempts that have ended here, and of which something may be on workers that do not answer, until the
	// next one begins.
	failed map[int64]*deployment
	// away is since when workers are not there, by their names in small letters.
	away map[string]time.Time
	// ended is what became of the rows of queries that ran here and have ended, until they are dropped.
	ended map[int64]Live
	// stays are since when queries are in their states, as far as this server has seen it.
	stays map[int64]stay
	// renewed is when the lease was; term counts how often what runs here was ended since it could not be.
	renewed time.Time
	term    int64
	// renewing holds a token while a lease follows one that was over.
	renewing chan struct{}
}

// defaultLease bounds for how long queries stand still when a server is gone.
const defaultLease = 15 * time.Second

// Open begins to look after queries. Close ends it.
func Open(ctx context.Context, o Options) (*Coordinator, error) {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Coordinator{
		o:        o,
		wake:     make(chan struct{}, 1),
		watches:  newWatching(),
		sent:     SentStates{},
		running:  map[int64]*deployment{},
		failed:   map[int64]*deployment{},
		away:     map[string]time.Time{},
		ended:    map[int64]Live{},
		stays:    map[int64]stay{},
		renewing: make(chan struct{}, 1),
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	if o.Runner == nil {
		c.o.Runner = noRunner{}
	} else {
		c.done.Go(func() { c.sweeping(living) })
	}
	c.done.Go(func() { c.loop(living) })
	c.done.Go(func() { c.listen(living) })
	c.done.Go(func() { c.keepLease(living) })
	return c, nil
}

// prepare adds the worker that stands for the server, and the sources of the product.
func (c *Coordinator) prepare(ctx context.Context) error {
	contents, err := c.o.Store.CatalogContents(ctx)
	if err != nil {
		return fmt.Errorf("reading the catalog of streams: %w", err)
	}
	parsed, err := sql.Parse(c.o.Sources)
	if err != nil {
		return fmt.Errorf("reading the sources of the product: %w", err)
	}
	lacking := catalog.FromContents(contents).MissingCreates(parsed)
	if len(lacking) == 0 && len(contents.Workers) > 0 {
		return nil
	}
	err = c.o.Store.ChangeCatalog(ctx, catalog.Scope{}, func(to *catalog.Catalog) error {
		to.SetDefaultHost(Server, Slots)
		for _, p := range to.MissingCreates(parsed) {
			if _, err := to.Apply(c.o.Sources, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding the sources of the product: %w", err)
	}
	return nil
}

// Close ends all fragments that run here; the catalog stays as it is, and whoever opens it next goes on.
func (c *Coordinator) Close(context.Context) error {
	c.stop()
	c.done.Wait()
	c.abandon()
	return nil
}

// Tables looks at a table of a connection, by its id. A *postgres.MismatchError says that rows can not be written
// there.
type Tables interface {
	Describe(ctx context.Context, connectionID, schema, name string) (postgres.Table, error)
}

// Rights says what the author of statements may do with a saved connection, by name or id.
type Rights interface {
	Grant(ctx context.Context, connection string) catalog.ConnectionGrant
}

// Execute carries statements out as one group: all of them, or none and the error, which is a *sql.Error. What they
// write to is asked first: rights judges the connections, and may be nil where none is written to. A query is accepted
// when it has been planned; by is kept with it. catalog.ErrUnconfirmed asks for the production connections that were
// judged to be confirmed.
func (c *Coordinator) Execute(ctx context.Context, text string, by catalog.Author,
	rights Rights) (results []catalog.Result, err error) {
	parsed, err := sql.Parse(text)
	if err != nil {
		return nil, err
	}
	if len(parsed) == 0 {
		return nil, sql.Errorf(sql.ParserError, text, len(text), "", "there is no statement")
	}
	var unchecked []catalog.TableReference
	all := func(to *catalog.Catalog) error {
		results = nil // it may be asked again
		to.SetAuthor(by, c.o.Now().UTC().Truncate(time.Microsecond))
		to.SetDefaultHost(Server, Slots)
		if unchecked = to.UncheckedTables(parsed); len(unchecked) > 0 {
			return catalog.ErrUnchecked
		}
		var err error
		if results, err = c.applyGroup(ctx, to, text, parsed, by); err != nil {
			return err
		}
		return to.Confirmed()
	}
	if !slices.ContainsFunc(parsed, changes) {
		contents, err := c.o.Store.CatalogContents(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the catalog of streams: %w", err)
		}
		err = all(catalog.FromContents(contents))
		return results, err
	}
	for {
		scope := catalog.ScopeOf(parsed)
		scope.All = scope.All || by.KeepEqual
		err = c.o.Store.ChangeCatalog(ctx, scope, all)
		if err == nil {
			c.wakeLoop()
			return results, nil
		}
		if rights == nil || c.o.Tables == nil || len(unchecked) == 0 || !errors.Is(err, catalog.ErrUnchecked) {
			return nil, err
		}
		// Once, unless somebody puts another sink in the place of one meanwhile.
		for _, ref := range unchecked {
			if err := c.check(ctx, ref, &by, rights); err != nil {
				return nil, err
			}
		}
	}
}

// applyGroup carries statements out within the bounds of the catalog, or does nothing where their author asks for that
// and all is there as they would make it.
func (c *Coordinator) applyGroup(ctx context.Context, to *catalog.Catalog, text string, parsed []sql.Parsed,
	by catalog.Author) (results []catalog.Result, err error) {
	if by.KeepEqual {
		if kept, as := c.unchanged(ctx, to, text, parsed); as {
			return kept, nil
		}
		by.KeepEqual = false
		to.SetAuthor(by, c.o.Now().UTC().Truncate(time.Microsecond))
	}
	err = to.Bound(func() (err error) { results, err = applyAll(ctx, to, text, parsed); return err })
	return results, err
}

// unchanged carries statements out over a copy, where a CREATE of what is there as it would be made is none. It reports
// whether everything is as it was afterwards.
func (c *Coordinator) unchanged(ctx context.Context, of *catalog.Catalog, text string,
	parsed []sql.Parsed) ([]catalog.Result, bool) {
	trial := of.Clone()
	results, err := applyAll(ctx, trial, text, parsed)
	return results, err == nil && reflect.DeepEqual(trial.Contents(), of.Contents())
}

// maxAnswerBytes is how long what statements of a group show may be together.
const maxAnswerBytes = 32 << 20

// applyAll carries all statements out, or returns the error of the first one that cannot be.
func applyAll(ctx context.Context, to *catalog.Catalog, text string, parsed []sql.Parsed) (all []catalog.Result,
	err error) {
	bytes := 0
	for _, p := range parsed {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := to.Apply(text, p)
		if err != nil {
			return nil, err
		}
		for _, row := range r.Rows {
			for _, field := range row {
				bytes += len(field) + 16
			}
		}
		if bytes > maxAnswerBytes {
			return nil, sql.Errorf(sql.InsufficientCapacity, text, p.At, "name what is to be shown, or ask for less at once; "+
				"the bound is fixed",
				"what the statements show takes more than %d MiB", maxAnswerBytes>>20)
		}
		all = append(all, r.Result)
	}
	return all, nil
}

// check adds to by what has to be known of a table that statements write to.
func (c *Coordinator) check(ctx context.Context, ref catalog.TableReference, by *catalog.Author, rights Rights) error {
	grant, known := by.Grant(ref.Connection)
	if !known {
		grant = rights.Grant(ctx, ref.Connection)
		by.Connections = append(by.Connections, grant)
	}
	if by.Checked(ref) {
		return nil
	}
	t := catalog.TableSchema{ConnectionID: grant.ID, Schema: ref.Schema, Name: ref.Table}
	t.Table, t.Err = c.o.Tables.Describe(ctx, grant.ID, ref.Schema, ref.Table)
	by.Tables = append(by.Tables, t)
	return ctx.Err()
}

// StatementText is one of a group.
type StatementText struct {
	Text string
	// Changes: it does more than show something.
	Changes bool
}

// Statements are those of a group; a text that cannot be read is one.
func Statements(text string) []StatementText {
	parsed, err := sql.Parse(text)
	if err != nil || len(parsed) == 0 {
		return []StatementText{{Text: text}}
	}
	list := make([]StatementText, len(parsed))
	for i, p := range parsed {
		list[i] = StatementText{p.Text, changes(p)}
	}
	return list
}

func changes(p sql.Parsed) bool {
	switch p.Statement.(type) {
	case *sql.Get, *sql.Explain:
		return false
	}
	return true
}

// revocation is why a query is suspended, and of which creator that was said.
type revocation struct{ of, why string }

// Recheck asks a judge about each query that is wanted, and suspends those of which it says why, unless another user
// has taken them over meanwhile. The server that owns them ends their fragments. users is asked for the judge when the
// queries are read; an error of the judge leaves a query as it is, and is returned.
func (c *Coordinator) Recheck(
	ctx context.Context,
	users func(context.Context) (judge func(catalog.Query, catalog.Sink) (why string, err error), err error),
) error {
	contents, err := c.o.Store.CatalogContents(ctx)
	if err != nil {
		return fmt.Errorf("reading the catalog of streams: %w", err)
	}
	judge, err := users(ctx)
	if err != nil {
		return err
	}
	all, revoked, failed := catalog.FromContents(contents), map[int64]revocation{}, error(nil)
	for _, q := range contents.Queries {
		if q.Desired != catalog.Running || q.State.Final() {
			continue
		}
		sink, _ := all.Sink(q.Sink)
		why, err := judge(q, sink)
		failed = errors.Join(failed, err)
		if why != "" && err == nil {
			revoked[q.ID] = revocation{q.CreatedByID, why}
			c.o.Log.Warn().Str("query", q.Name).Int64("query_id", q.ID).Str("user_id", q.CreatedByID).Str("reason", why).
				Msg("a continuous query is suspended")
		}
	}
	if len(revoked) == 0 {
		return failed
	}
	err = c.o.Store.ChangeCatalog(ctx, catalog.Scope{All: true}, func(to *catalog.Catalog) error {
		for id, r := range revoked {
			to.Suspend(id, r.of, r.why)
		}
		return nil
	})
	c.wakeLoop()
	return errors.Join(failed, err)
}

// Contents is the catalog as it is now.
func (c *Coordinator) Contents(ctx context.Context) (catalog.Contents, error) {
	return c.o.Store.CatalogContents(ctx)
}
