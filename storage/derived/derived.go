// Package derived is the results database: the roll-ups of runs, the derived tables made of them, and the readers who
// query both. It stands apart from the control store, in a database of its own, so that nobody who reads results
// can reach what Loadstone is controlled with.
//
// # Who may what
//
// The owner writes; Loadstone alone has its login. A reader's login sees the schemas rollup and tables and writes
// nothing. What users write, definitions of tables and queries, runs in sessions of the reader, never of the owner:
// their rows come to Loadstone and go into the table through it, so that no SQL of theirs is ever executed with more
// rights.
//
// # Stale writers
//
// Every write names the epoch of its claim. Who begins with an epoch raises the fence of its task to it, and who
// commits holds that fence locked: a write with a lower epoch than the fence's changes nothing.
// A writer that stands still in the middle of a transaction loses it when the server ends the idle session.
package derived

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	targetpostgres "github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// Limits bound what a reader's statement may take.
type Limits struct {
	// Statement is how long it may run.
	Statement time.Duration
	// Rows and Bytes are how many it may return, Value how many bytes a value may have.
	Rows, Bytes, Value int64
	// WorkMemory is what a sort or a hash table of it has in memory, as Postgres writes sizes.
	WorkMemory string
	// Parallel is how many workers of Postgres help with a part of it.
	Parallel int
}

// Settings are what a database lets its users take.
type Settings struct {
	// Definition bounds a refresh of a table by its SQL, Query a query, and Preview a look at a definition before it is a
	// table's.
	Definition, Query, Preview Limits
	// Sessions bound the sessions of readers from outside, whatever they have set.
	Sessions SessionLimits
	// QueriesPerUser is how many queries of a user are executed at a time, by all servers.
	QueriesPerUser int
	// RowsInMemory is how many bytes of rows are kept in memory, and need no table to be gathered in.
	RowsInMemory int
	// PartitionsPerPart is how many partitions a part of a table has at least: a division costs a claim and a table for
	// each part.
	PartitionsPerPart int
	// MaxIdleInTransaction is how long a writer may stand still in a transaction: it loses it before its claim can have
	// expired.
	MaxIdleInTransaction time.Duration
}

// DefaultSettings are those of a database that was opened.
func DefaultSettings() Settings {
	return Settings{
		Definition: Limits{Statement: 5 * time.Minute, Rows: 5_000_000, Bytes: 2 << 30, Value: maxMessage, WorkMemory: "32MB",
			Parallel: 2},
		Query:   Limits{Statement: 25 * time.Second, Rows: 100_000, Bytes: 64 << 20, Value: 8 << 20, WorkMemory: "8MB"},
		Preview: Limits{Statement: 2 * time.Second, Rows: 50, Bytes: 4 << 20, Value: 4 << 20, WorkMemory: "8MB"},
		Sessions: SessionLimits{Login: 30 * time.Second, IdleInTransaction: time.Minute, Idle: 15 * time.Minute,
			Grace: 5 * time.Second, QueryMemory: 64 << 20, DefinitionMemory: 160 << 20, AllMemory: 400 << 20},
		QueriesPerUser: query.DefaultPlaceLimits().PerUser,
		RowsInMemory:   1 << 20, PartitionsPerPart: 64, MaxIdleInTransaction: refresh.SelfStop(refresh.ClaimTTL) * 2 / 3}
}

// maxColumns is how many columns a derived table has at most.
const maxColumns = 500

// Database is the results database. It is safe for concurrent use.
type Database struct {
	// Settings but the last may be changed while nothing else is asked of the database.
	Settings Settings
	owner    *pgxpool.Pool
	// reader executes definitions, console queries. Both are sessions of the reader's, emptied after each use.
	reader, console *pgxpool.Pool
	// checks is one session of the reader's, in which nothing of users is executed: looking at the reader's rights waits
	// for no query of theirs.
	checks     *pgxpool.Pool
	readerRole string
	// ended says why the supervisor has ended sessions, by their process ids.
	ended   sync.Map
	serving serving
	// stepHook is asked at each step of taking executions in; nil but in tests.
	stepHook func(step string) error
}

// Open connects as the owner and as the reader, and brings the schema up to date. What somebody has to change is an
// error of the field that names the database or the role; of one that is away it is store.ErrUnavailable.
func Open(ctx context.Context, ownerDSN, readerDSN string) (*Database, error) {
	return OpenWith(ctx, ownerDSN, readerDSN, DefaultSettings())
}

// OpenWith is Open of a database with other settings.
func OpenWith(ctx context.Context, ownerDSN, readerDSN string, s Settings) (*Database, error) {
	owner, err := pool(ctx, ownerFlag, ownerDSN, 6, map[string]string{"search_path": "tables, rollup",
		"idle_in_transaction_session_timeout": fmt.Sprintf("%dms", s.MaxIdleInTransaction.Milliseconds()),
		"lock_timeout":                        "30s"})
	if err != nil {
		return nil, err
	}
	d := &Database{Settings: s, owner: owner, serving: serving{turn: make(chan struct{}, 1)}}
	if d.reader, err = readerPool(ctx, readerDSN, "loadstone", 6, s.Sessions.DefinitionMemory); err == nil {
		d.console, err = readerPool(ctx, readerDSN, consoleName, 6, s.Sessions.QueryMemory)
	}
	if err == nil {
		d.checks, err = readerPool(ctx, readerDSN, consoleName, 1, s.Sessions.QueryMemory)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	d.readerRole = d.reader.Config().ConnConfig.User
	for _, step := range []func(context.Context) error{d.checkOwner, d.checkReader, d.apply, d.checkSame} {
		if err := step(ctx); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// poolConfig is a pool of so many connections.
func poolConfig(flag, dsn string, limit int32, params map[string]string) (*pgxpool.Config, error) {
	config, err := parseURL(flag, dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MaxConnIdleTime = limit, time.Minute
	config.ConnConfig.RuntimeParams["application_name"] = "loadstone"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	for name, value := range params {
		config.ConnConfig.RuntimeParams[name] = value
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	return config, nil
}

func pool(ctx context.Context, flag, dsn string, limit int32, params map[string]string) (*pgxpool.Pool, error) {
	config, err := poolConfig(flag, dsn, limit, params)
	if err != nil {
		return nil, err
	}
	p, err := pgxpool.NewWithConfig(ctx, config)
	return p, wrapError("opening the results database", err)
}

// consoleName is what sessions of the console are called while nobody has them.
var consoleName = strings.TrimSpace(query.SessionPrefix)

// maxMessage is how long a row may be that Postgres sends to a reader.
const maxMessage = 32 << 20

// resetTimeout is how long a session may take to be emptied.
const resetTimeout = 5 * time.Second

// readerPool is a pool of sessions of the reader, in which SQL of users is executed: each has the limits of a reader,
// so much memory where the server is on this machine, and keeps nothing of one user for the next.
// Between users it has the name of the pool again.
func readerPool(ctx context.Context, dsn, name string, limit int32, memory uint64) (*pgxpool.Pool, error) {
	params := resultsrole.ReaderLimits.Settings()
	params["application_name"] = name
	// What is a text and what a name is judged before a statement is sent, by this.
	params["standard_conforming_strings"] = "on"
	config, err := poolConfig(readerFlag, dsn, limit, params)
	if err != nil {
		return nil, err
	}
	// A session that is emptied has no prepared statements.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.PgConn().Frontend().SetMaxBodyLen(maxMessage)
		boundMemory(conn.PgConn(), memory)
		return nil
	}
	config.AfterRelease = func(conn *pgx.Conn) bool {
		ctx, cancel := context.WithTimeout(context.Background(), resetTimeout)
		defer cancel()
		_, err := conn.Exec(ctx, "DISCARD ALL", pgx.QueryExecModeSimpleProtocol)
		return err == nil
	}
	p, err := pgxpool.NewWithConfig(ctx, config)
	return p, wrapError("opening the results database", err)
}

// Identify says what the database is, so that no connection of a user lands there. It asks as the owner, and needs
// neither a reader nor a schema.
func Identify(ctx context.Context, owner string) (own engine.OwnDatabase, err error) {
	config, err := poolConfig(ownerFlag, owner, 1, nil)
	if err != nil {
		return own, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return own, wrapError("asking the results database", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	own, err = targetpostgres.IdentifyOwn(ctx, conn.PgConn())
	return own, wrapError("asking the results database what it is", err)
}

// Close closes the connections.
func (d *Database) Close() {
	for _, p := range []*pgxpool.Pool{d.checks, d.console, d.reader, d.owner} {
		if p != nil {
			p.Close()
		}
	}
}

// schemaLock is the key of the advisory lock under which the schema changes.
const schemaLock = 0x72657375 // "resu"

// apply brings the schema up to date for the reader. Where it is already nothing is locked: a worker that stands still
// in a transaction must not hold up a server that starts.
func (d *Database) apply(ctx context.Context) error {
	sum := sha256.New()
	for _, f := range sql.Results() {
		_, _ = fmt.Fprintf(sum, "%q %q\n", f.Name, f.Text)
	}
	want := hex.EncodeToString(sum.Sum(nil))
	var there bool
	err := d.owner.QueryRow(
		ctx,
		`SELECT to_regclass('staging.applied') IS NOT NULL AND to_regnamespace('tables') IS NOT NULL
		AND to_regnamespace('rollup') IS NOT NULL`,
	).Scan(
		&there,
	)
	if err == nil && there {
		err = d.owner.QueryRow(ctx, `SELECT EXISTS (SELECT FROM staging.applied
			WHERE reader_role = $1 AND schema_sha256 = $2)`, d.readerRole, want).Scan(&there)
	}
	if err != nil || there {
		return wrapError("applying the schema of the results database", err)
	}
	role := pgx.Identifier{d.readerRole}.Sanitize()
	err = pgx.BeginFunc(ctx, d.owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", schemaLock); err != nil {
			return err
		}
		for _, f := range sql.Results() {
			if _, err := tx.Exec(ctx, f.Text, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		for _, grant := range []string{"GRANT USAGE ON SCHEMA rollup, tables TO " + role,
			"GRANT SELECT ON ALL TABLES IN SCHEMA rollup, tables TO " + role,
			"ALTER DEFAULT PRIVILEGES IN SCHEMA rollup, tables GRANT SELECT ON TABLES TO " + role} {
			if _, err := tx.Exec(ctx, grant); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS staging.applied (reader_role text PRIMARY KEY,
			schema_sha256 text NOT NULL)`); err != nil {
			return err
		}
		// Another version may have been there before, for other readers.
		_, err := tx.Exec(ctx, `WITH others AS (DELETE FROM staging.applied WHERE schema_sha256 <> $2 AND reader_role <> $1)
			INSERT INTO staging.applied VALUES ($1, $2)
			ON CONFLICT (reader_role) DO UPDATE SET schema_sha256 = excluded.schema_sha256`, d.readerRole, want)
		return err
	})
	var message *pgconn.PgError
	if errors.As(err, &message) && message.Code == "42704" {
		return invalidURL(readerFlag, err, "names a role of another server than "+ownerFlag+": "+message.Message,
			"name the same database, as its reader")
	}
	if errors.As(err, &message) && (message.Code == "42501" || message.Code == codeTooOld) {
		return connectError(ownerFlag, err)
	}
	return wrapError("applying the schema of the results database", err)
}

// sourceError is an error of what is taken in, and none of the database.
type sourceError struct{ error }

func (u *sourceError) Unwrap() error { return u.error }

// wrapError adds what was being done; a database that is away, or where somebody else holds what is needed, is
// store.ErrUnavailable.
func wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	var connecting *pgconn.ConnectError
	var record *sourceError
	if errors.As(err, &record) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	var broken *net.OpError
	if errors.As(err, &connecting) || errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || pgconn.SafeToRetry(err) ||
		errors.As(err, &refused) && (refused.Code[:2] == "57" && refused.Code != "57014" ||
			refused.Code[:2] == "53" || refused.Code == "55P03" || refused.Code[:2] == "08") {
		return fmt.Errorf("%s: %w", doing, unavailableError(err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Begin raises the fence of a claim's task to its epoch: lower ones write nothing from now on.
func (d *Database) Begin(ctx context.Context, c refresh.Claim) error {
	tag, err := d.owner.Exec(ctx, `INSERT INTO staging.fences AS f (dynamic_table, subtask, epoch) VALUES ($1, $2, $3)
		ON CONFLICT (dynamic_table, subtask) DO UPDATE SET epoch = excluded.epoch WHERE f.epoch <= excluded.epoch`,
		c.Table, c.Subtask, c.Epoch)
	if err == nil && tag.RowsAffected() == 0 {
		return claimLostError(c)
	}
	return wrapError("beginning a refresh", err)
}

// OpenRaisingEpochs is Open, and raises the epochs of claims above the highest that has written there: a control store
// that was made anew or restored counts from 1, and what it claims would write nothing.
func OpenRaisingEpochs(ctx context.Context, owner, reader string,
	raise func(ctx context.Context, above int64) (raised bool, err error)) (*Database, error) {
	d, err := Open(ctx, owner, reader)
	if err != nil {
		return nil, err
	}
	var epoch int64
	err = d.owner.QueryRow(ctx, "SELECT coalesce(max(epoch), 0) FROM staging.fences").Scan(&epoch)
	if err = wrapError("asking the results database", err); err == nil {
		_, err = raise(ctx, epoch)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func claimLostError(c refresh.Claim) error {
	return fmt.Errorf("writing %s %s at epoch %d: %w", c.Table, c.Subtask, c.Epoch, store.ErrClaimLost)
}

// withFence runs f in a transaction of the owner that holds the fence of the claim. prove is called before it commits.
func (d *Database) withFence(ctx context.Context, c refresh.Claim, prove func(context.Context) error,
	f func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.owner, func(tx pgx.Tx) error {
		var epoch int64
		err := tx.QueryRow(ctx, "SELECT epoch FROM staging.fences WHERE dynamic_table = $1 AND subtask = $2 FOR UPDATE",
			c.Table, c.Subtask).Scan(&epoch)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && epoch != c.Epoch {
			return claimLostError(c)
		}
		if err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		if err := prove(ctx); err != nil {
			return err
		}
		return d.reachStep(stepProved)
	})
}
