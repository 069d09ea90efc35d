package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// RefreshFlags say who keeps derived tables fresh, and where they are.
type RefreshFlags struct {
	RefreshWorkers    int      `name:"refresh-workers" default:"2" placeholder:"N" env:"LOADSTONE_REFRESH_WORKERS" help:"Concurrent refreshes and ingestions of this server; 0 leaves them to others (default: 2)."`
	Ingest            []string `name:"ingest" enum:"executions" placeholder:"WHAT" env:"LOADSTONE_INGEST" help:"Also ingest single executions, as the table executions. The same on all servers."`
	ResultsConnection string   `name:"results-connection" placeholder:"NAME" env:"LOADSTONE_RESULTS_CONNECTION" help:"Export finished runs to this saved Snowflake connection: executions, results, seconds and logs, into the tables that loadstone schema apply --snowflake makes. The same on all servers."`
	ResultsFlags
	QueryFlags
}

// Tables are the derived tables of one process: the database that holds them, opened when it is first needed.
type Tables struct {
	s          *Services
	refreshers *refreshers
	// places are those in which the SQL of users is executed.
	places *query.Places
	// pendingExports: something could not be written to the results connection that runs should have there.
	pendingExports atomic.Bool
}

// OpenTables registers the bundled tables and begins to keep tables fresh. It is nil where there is no such database.
func (s *Services) OpenTables(ctx context.Context, flags RefreshFlags) (*Tables, error) {
	if flags.RefreshWorkers < 0 || flags.RefreshWorkers > 64 {
		return nil, engine.InvalidField("--refresh-workers", "is out of range", "0 to 64")
	}
	owner, reader, err := flags.urls()
	if err != nil {
		return nil, err
	}
	if s.Embedded != nil && owner != "" {
		return nil, engine.InvalidField("--results-database-url", "needs --database-url",
			"the embedded Postgres has a results database of its own")
	}
	if s.Embedded == nil && owner == "" {
		s.Log.Info().Msg("there are no derived tables: --results-database-url and --results-reader-url name their database")
		return nil, nil
	}
	t := &Tables{
		s:      s,
		places: query.NewPlaces(query.DefaultPlaceLimits()),
		refreshers: &refreshers{store: s.Store, own: s.localNode, traces: s.traces.Tracer(),
			ingest: newIngest(s.Store, s.Results, flags.Ingest, s.Runs.Detail),
			urls: func(ctx context.Context) (string, string, error) {
				if s.Embedded == nil {
					return owner, reader, nil
				}
				ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				return s.Embedded.Results(ctx)
			}},
	}
	if s.Embedded == nil {
		t.refreshers.identify = func(ctx context.Context) error { return s.keepResults(ctx, owner) }
	}
	if err := t.checkExternal(ctx); err != nil {
		return nil, err
	}
	if err := t.register(ctx, flags.ResultsConnection); err != nil {
		return nil, err
	}
	s.onClose(func(context.Context) error { t.refreshers.close(); return nil })
	t.supervise(ctx)
	t.startLive()
	t.renewSegments()
	s.tables.Store(t)
	worker := refresh.Start(refresh.Options{Store: s.Store, Work: t.refreshers.work, Workers: flags.RefreshWorkers,
		Name: s.owner, Role: refresh.Server, Host: hostname(), Busy: BusyReason(s.localNode), Log: s.Log})
	s.onClose(func(context.Context) error { worker.Close(); return nil })
	if s.localNode != nil {
		s.localNode.SetGiveWay(worker.AwaitYield)
	}
	return t, nil
}

// keepResults asks an external results database what it is, by its owner's login alone, and tells the other servers of
// the store: some may have no way to it, and yet dial for users.
func (s *Services) keepResults(ctx context.Context, owner string) error {
	return s.own.keep(ctx, resultsDatabase, func(ctx context.Context) (engine.OwnDatabase, error) {
		own, err := derived.Identify(ctx, owner)
		if err != nil {
			return own, err
		}
		if err := s.Store.KeepResultsIdentity(ctx, own); err != nil {
			s.Log.Warn().Err(
				err,
			).Msg(
				"the identity of the results database could not be stored for other servers; the server retries",
			)
		}
		return own, nil
	})
}

// superviseRetry is how often a results database is tried that cannot be opened.
const superviseRetry = 5 * time.Second

// supervise watches the sessions of those who read results, as soon as the database is there, and says in the log what
// its reader may do too much.
func (t *Tables) supervise(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it ends with the server, not with its start
	done := make(chan struct{})
	t.s.onClose(func(context.Context) error { cancel(); <-done; return nil })
	go func() {
		defer close(done)
		db, err := t.Database(ctx)
		for err != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(superviseRetry):
			}
			db, err = t.Database(ctx)
		}
		tolerated, err := db.CheckReader(ctx)
		if engine.HasCode(err, engine.CodeConflict) {
			e := engine.AsError(err)
			t.s.Log.Error().Str("hint", e.Hint).Msg("queries and definitions are refused: " + e.Message)
		}
		if len(tolerated) > 0 {
			t.s.Log.Warn().Strs("rights", tolerated).Msg("the reader of the results database may do more than it has to; " +
				"queries that do it are refused, and `loadstone schema apply --results` takes the rights away")
		}
		_ = db.Supervise(ctx, derived.Supervision{Own: t.s.Embedded != nil, Log: t.s.Log})
	}()
}

// checkExternal opens a results database that is not Loadstone's own, so that a server does not start with one that
// can never be used. One that is away may come.
func (t *Tables) checkExternal(ctx context.Context) error {
	if t.s.Embedded != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err := t.Database(ctx)
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.s.Log.Warn().Err(err).Msg("the results database is away; runs are taken in when it is there")
		return nil
	}
	return err
}

// Database opens the results database, once.
func (t *Tables) Database(ctx context.Context) (*derived.Database, error) {
	return t.refreshers.database(ctx)
}

// register makes the bundled tables, and brings those of an earlier version up to date.
func (t *Tables) register(ctx context.Context, connection string) error {
	state, err := t.s.Store.RefreshState(ctx, 1)
	if err != nil {
		return err
	}
	if err := t.startExport(ctx, state.Tables, connection); err != nil {
		return err
	}
	tables := derived.Bundled()
	if connection != "" {
		tables = append(tables, exportTable())
	}
	for _, table := range tables {
		i := slices.IndexFunc(state.Tables, func(known refresh.Table) bool { return known.Name == table.Name })
		switch {
		case i < 0:
			_, err = t.s.Store.CreateDynamicTable(ctx, table)
		case !state.Tables[i].Bundled:
			t.s.Log.Warn().Str("dynamic_table", table.Name).
				Msg("a table of a user's has the name of a bundled one, which is left out")
		case state.Tables[i].Definition != table.Definition || state.Tables[i].Description != table.Description:
			table.Version = state.Tables[i].Version
			_, err = t.s.Store.UpdateDynamicTable(ctx, table)
		}
		// Another server may have been faster.
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// Query implements query.Querier.
func (t *Tables) Query(ctx context.Context, sql string, rows int) (query.Answer, error) {
	begin := time.Now()
	db, err := t.Database(ctx)
	var answer query.Answer
	if err == nil {
		err = t.execute(ctx, db, db.CheckQueries, func() error { answer, err = db.Query(ctx, sql, rows); return err })
	}
	t.s.Metrics.Queried(query.ID(ctx), time.Since(begin), err)
	return answer, err
}

// execute has f execute SQL of a user's in one of the user's places, once the tables are there that it reads and check
// says that it may begin.
func (t *Tables) execute(ctx context.Context, db *derived.Database, check func(context.Context) error,
	f func() error) error {
	return refresh.AwaitBuilt(ctx, t.State, func() error {
		leave, err := t.places.AcquireChecked(ctx, func() (func(), error) { return t.place(ctx, db) }, check)
		if err != nil {
			return err
		}
		defer leave()
		return f()
	})
}

func unchecked(context.Context) error { return nil }

// place waits for a place of the user's.
func (t *Tables) place(ctx context.Context, db *derived.Database) (leave func(), err error) {
	if leave := t.places.TryAcquire(query.Caller(ctx)); leave != nil {
		return leave, nil
	}
	waiting, done, err := db.Waits(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return t.places.Acquire(waiting, query.Caller(ctx))
}

// Cancel ends a query that another server executes.
func (t *Tables) Cancel(ctx context.Context, caller, id string) error {
	db, err := t.Database(ctx)
	if err != nil {
		return err
	}
	return db.Cancel(ctx, query.SessionOf(caller, id))
}

// State reads the tables, what is waiting and what is under way.
func (t *Tables) State(ctx context.Context) (refresh.State, error) {
	return t.s.Store.RefreshState(ctx, 1)
}

// Load is how much there is to refresh.
func (t *Tables) Load(ctx context.Context) (refresh.Load, error) { return t.s.Store.RefreshLoad(ctx) }

// History reads what became of a table's refreshes.
func (t *Tables) History(ctx context.Context, name string, limit int) ([]refresh.Record, error) {
	if _, err := t.s.Store.DynamicTable(ctx, name); err != nil {
		return nil, err
	}
	return t.s.Store.RefreshHistory(ctx, name, limit)
}

// Create makes a table of a user's.
func (t *Tables) Create(ctx context.Context, table refresh.Table) (refresh.Table, error) {
	table.Kind = refresh.SQL
	if err := refresh.Check(table); err != nil {
		return table, err
	}
	if err := t.inspect(ctx, &table); err != nil {
		return table, err
	}
	return t.s.Store.CreateDynamicTable(ctx, table)
}

// inspect finds out what a definition reads, and refuses what could not be refreshed.
func (t *Tables) inspect(ctx context.Context, table *refresh.Table) (err error) {
	if table.Definition, err = derived.NormalizeDefinition(table.Definition); err != nil {
		return err
	}
	db, err := t.Database(ctx)
	if err != nil {
		return err
	}
	err = t.execute(ctx, db, unchecked, func() error {
		table.Sources, err = db.Inspect(ctx, table.Definition, ingest.Table)
		return err
	})
	if err != nil {
		return err
	}
	return db.CheckMode(ctx, *table)
}

// Update changes a table of a user's.
func (t *Tables) Update(ctx context.Context, table refresh.Table) (refresh.Table, error) {
	now, err := t.userTable(ctx, table.Name, "It can be suspended; a table of your own can read it.")
	if err != nil {
		return table, err
	}
	table.Kind = now.Kind
	if err := refresh.Check(table); err != nil {
		return table, err
	}
	if err := t.inspect(ctx, &table); err != nil {
		return table, err
	}
	return t.s.Store.UpdateDynamicTable(ctx, table)
}

// Preview shows what a definition would give.
func (t *Tables) Preview(ctx context.Context, table refresh.Table) (p query.Preview, err error) {
	if table.Definition, err = derived.NormalizeDefinition(table.Definition); err != nil {
		return p, err
	}
	db, err := t.Database(ctx)
	if err != nil {
		return p, err
	}
	err = t.execute(ctx, db, unchecked, func() error {
		p, err = db.Preview(ctx, table.Definition, ingest.Table)
		return err
	})
	if err == nil && slices.Contains(p.Sources, table.Name) {
		err = refresh.ReadsItself(table.Name)
	}
	return p, err
}

// Catalog lists what can be read.
func (t *Tables) Catalog(ctx context.Context) ([]query.Relation, error) {
	db, err := t.Database(ctx)
	if err != nil {
		return nil, err
	}
	return db.Catalog(ctx)
}

// RunExport reads what has become of a run in the results database and in the account.
func (t *Tables) RunExport(ctx context.Context, runID string) (query.RunExport, error) {
	db, err := t.Database(ctx)
	if err != nil {
		return query.RunExport{}, err
	}
	return db.RunExport(ctx, runID)
}

// SavedQueries lists the queries that users keep.
func (t *Tables) SavedQueries(ctx context.Context) ([]query.SavedQuery, error) {
	return t.s.Store.SavedQueries(ctx)
}

// SaveQuery keeps one.
func (t *Tables) SaveQuery(ctx context.Context, q query.SavedQuery) (query.SavedQuery, error) {
	return t.s.Store.SaveQuery(ctx, q)
}

// DeleteSavedQuery forgets one.
func (t *Tables) DeleteSavedQuery(ctx context.Context, name string) error {
	return t.s.Store.DeleteSavedQuery(ctx, name)
}

// userTable is a table of a user's; those that come with Loadstone stay as they are.
func (t *Tables) userTable(ctx context.Context, name, instead string) (refresh.Table, error) {
	table, err := t.s.Store.DynamicTable(ctx, name)
	if err == nil && table.Bundled {
		err = &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict,
			Message: fmt.Sprintf("The table %q comes with Loadstone.", name), Hint: instead}
	}
	return table, err
}

// Drop removes a table of a user's; ErrInUse names those that read it. What is left of one whose drop came no further
// than the control store is removed, too.
func (t *Tables) Drop(ctx context.Context, name string) error {
	_, err := t.userTable(ctx, name, "It can be suspended.")
	gone := errors.Is(err, store.ErrNotFound)
	if err != nil && !gone {
		return err
	}
	db, opened := t.Database(ctx)
	if opened != nil {
		return opened
	}
	if gone {
		if left, checked := db.HasTable(ctx, name); checked != nil || !left {
			return errors.Join(checked, err)
		}
		return db.Drop(ctx, name)
	}
	// A refresh that is under way has lost its claim then, and writes nothing.
	if err := t.s.Store.DropDynamicTable(ctx, name); err != nil {
		return err
	}
	return db.Drop(ctx, name)
}

// Recheck asks a judge about each table that has an owner, and suspends those of which it says why. users is asked for
// the judge when the tables are read.
func (t *Tables) Recheck(
	ctx context.Context,
	users func(context.Context) (judge func(refresh.Table) (why string), err error),
) error {
	owned, err := t.s.Store.OwnedTables(ctx)
	if err != nil {
		return fmt.Errorf("checking derived tables: %w", err)
	}
	judge, err := users(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, table := range owned {
		why := judge(table)
		if why == "" {
			continue
		}
		t.s.Log.Warn().Str("dynamic_table", table.Name).Str("reason", why).
			Msg("a derived table is suspended: its owner has no right to it any more")
		failed = append(failed, t.s.Store.RevokeDynamicTable(ctx, table.Name, table.OwnerID, why))
	}
	return errors.Join(failed...)
}

// Do refreshes, suspends or resumes a table; who resumes one is its owner from then on.
func (t *Tables) Do(ctx context.Context, name, verb string, by store.User) (refresh.Table, error) {
	var err error
	switch verb {
	case "suspend":
		err = t.s.Store.SetDynamicTableStatus(ctx, name, refresh.Suspended)
	case "resume":
		err = t.s.Store.ResumeDynamicTable(ctx, name, by.UserID, by.Name)
	default:
		err = t.s.Store.RequestRefresh(ctx, name)
	}
	if err != nil {
		return refresh.Table{}, err
	}
	return t.s.Store.DynamicTable(ctx, name)
}

// AddReader makes a login of a user's in the embedded Postgres; an external one's administrator makes logins there.
func (t *Tables) AddReader(ctx context.Context, name string, renew bool, by store.User) (string, error) {
	if t.s.Embedded == nil {
		return "", externalLoginsError()
	}
	// The reader's rights are granted when the database is opened.
	if _, err := t.Database(ctx); err != nil {
		return "", err
	}
	return t.s.Embedded.AddReader(ctx, name, by.UserID, renew)
}

// Readers lists the logins.
func (t *Tables) Readers(ctx context.Context) ([]query.Login, error) {
	if t.s.Embedded == nil {
		return nil, externalLoginsError()
	}
	readers, err := t.s.Embedded.Readers(ctx)
	logins := make([]query.Login, len(readers))
	for i, r := range readers {
		logins[i] = query.Login(r)
	}
	return logins, err
}

// RecheckReaders asks a judge about the owner of each login, and suspends those of which it says why. users is asked
// for the judge when the logins are read.
func (t *Tables) RecheckReaders(
	ctx context.Context,
	users func(context.Context) (judge func(ownerID string) (why string), err error),
) error {
	if t.s.Embedded == nil {
		return nil
	}
	readers, err := t.s.Embedded.Readers(ctx)
	if err != nil {
		return err
	}
	judge, err := users(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, r := range readers {
		if r.OwnerID == "" {
			continue // from before logins had owners
		}
		why := judge(r.OwnerID)
		if why == "" {
			continue
		}
		changed, err := t.s.Embedded.SuspendReader(ctx, r.Name, r.OwnerID)
		if failed = append(failed, err); changed {
			t.s.Log.Warn().Str("login", r.Name).Str("user_id", r.OwnerID).Str("reason", why).
				Msg("a login to the results database is suspended: its owner has no right to it any more")
		}
	}
	return errors.Join(failed...)
}

// RemoveReader removes it.
func (t *Tables) RemoveReader(ctx context.Context, name string) error {
	if t.s.Embedded == nil {
		return externalLoginsError()
	}
	return t.s.Embedded.RemoveReader(ctx, name)
}

func externalLoginsError() error {
	return &engine.Error{Code: engine.CodeConflict, Message: "The results database is not Loadstone's own.",
		Hint: "Its administrator makes logins: members of the role of --results-reader-url."}
}
