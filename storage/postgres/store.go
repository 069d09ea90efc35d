// Package postgres is the control store on Postgres: it implements the whole
// of engine/store. The same SQL serves the embedded server and an external one.
//
// Every method is bounded by its context, and by 30 s when the context has no
// deadline. A server that cannot be reached is store.ErrUnavailable.
package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	targetpostgres "github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// Beside types of other packages that are called the same.
type (
	marksRepo     = MarkStore
	retentionRepo = RetentionStore
)

// Store is the control store: it implements what storetest.Store lists. It is safe for concurrent use.
type Store struct {
	// LeaseDuration is how long runs and matrices stay a server's, store.LeaseDuration where it is 0. It is set before
	// the first call.
	LeaseDuration time.Duration
	// probe has the one connection of Ping, so that calls which wait for theirs do not make the store look dead.
	pool, probe *pgxpool.Pool
	NodeStore
	RefreshQueue
	marksRepo
	SavedQueryStore
	RunArtifacts
	Grants
	retentionRepo
	Settings
	Users
	RunViewStore
	ScheduleStore
	AuditLog
	RunCommandStore
	AdmissionQueue
	*GuessCounts
	streams *CatalogStore
	keys    *keyring.Keyring
	hashes  *hashes
	secrets target.Secrets
}

// Lease implements store.Leases.
func (s *Store) Lease() time.Duration { return cmp.Or(s.LeaseDuration, store.LeaseDuration) }

const (
	// defaultTimeout bounds calls whose context has no deadline.
	defaultTimeout = 30 * time.Second
	// MaxConnections is how many connections a store takes, those of Ping and of WatchRunCommands not counted.
	MaxConnections = 12
)

// Open connects to the control store and checks that its schema is current. The
// drivers tell the secrets of the connections that are saved from what may be
// shown; a connection of a driver that is not among them is not shown at all.
// Errors are *engine.Error where the user can do something.
func Open(ctx context.Context, dsn string, keys *keyring.Keyring, drivers ...target.Driver) (*Store, error) {
	return openStore(ctx, dsn, keys, (*Store).openKeys, drivers)
}

// OpenUnproved is Open for who looks after the keys: they need not be those of the store, nothing is written, and there
// are no tokens and links.
func OpenUnproved(ctx context.Context, dsn string, keys *keyring.Keyring) (*Store, error) {
	return openStore(ctx, dsn, keys, func(s *Store, ctx context.Context) error {
		if err := s.Ping(ctx); err != nil {
			return err
		}
		r, err := s.KeyRotation(ctx)
		if err == nil && keys.Has(r.Sealing) {
			err = keys.Prefer(r.Sealing)
		}
		if err != nil {
			return err
		}
		s.useHashes(&hashes{pool: s.pool})
		return nil
	}, nil)
}

func openStore(ctx context.Context, dsn string, keys *keyring.Keyring, ready func(*Store, context.Context) error,
	drivers []target.Driver) (*Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err := errors.Join(schema.CheckDSN(dsn), err); err != nil {
		return nil, schema.InvalidDSN(err)
	}
	config.MaxConns = MaxConnections
	config.MinConns = 1
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = 30 * time.Second
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	config.ConnConfig.RuntimeParams["application_name"] = "loadstone"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening the control store: %w", dberr.Map(err))
	}
	alone := config.Copy()
	alone.MaxConns, alone.MinConns = 1, 0
	probe, err := pgxpool.NewWithConfig(ctx, alone)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("opening the control store: %w", dberr.Map(err))
	}
	known := map[string]target.Driver{}
	for _, d := range drivers {
		known[d.Name()] = d
	}
	s := &Store{pool: pool, NodeStore: NodeStore{Pool: pool}, RunCommandStore: RunCommandStore{Pool: pool},
		marksRepo: marksRepo{Pool: pool}, RefreshQueue: RefreshQueue{Pool: pool, Limiter: NewClaimLimiter()},
		SavedQueryStore: SavedQueryStore{Pool: pool}, RunArtifacts: RunArtifacts{Pool: pool}, Grants: Grants{Pool: pool},
		Users: Users{Pool: pool}, RunViewStore: RunViewStore{Pool: pool},
		ScheduleStore: ScheduleStore{Pool: pool},
		Settings:      Settings{Pool: pool, Keys: keys},
		retentionRepo: retentionRepo{Pool: pool},
		AuditLog:      AuditLog{Pool: pool}, AdmissionQueue: AdmissionQueue{Pool: pool},
		probe: probe, keys: keys, streams: NewCatalogStore(pool, keys),
		secrets: target.NewSecrets(known)}
	if err := ready(s, ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// openKeys checks the schema, and reads what the keys are for.
func (s *Store) openKeys(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	if s.keys != nil {
		// A server without the key of the others stops here, before it writes anything.
		if err := s.preferSealingKey(ctx); err != nil {
			return err
		}
	}
	hashes, err := newHashes(ctx, s.pool, s.keys)
	if err != nil {
		return err
	}
	s.useHashes(hashes)
	return nil
}

func (s *Store) useHashes(hashes *hashes) {
	s.hashes, s.Users.hashes, s.RunArtifacts.hashes = hashes, hashes, hashes
	s.GuessCounts = &GuessCounts{pool: s.pool, hashes: hashes}
}

// LostKeys are the names of the servers' keys under which tokens and links were hashed, and which are not here: those
// tokens and links do not work.
func (s *Store) LostKeys() []string {
	s.hashes.mu.RLock()
	defer s.hashes.mu.RUnlock()
	return s.hashes.lost
}

// Streams is the catalog of streams.
func (s *Store) Streams() *CatalogStore { return s.streams }

// Close waits for calls that are under way and closes the connections.
func (s *Store) Close() { s.pool.Close(); s.probe.Close() }

// OwnDatabase says what the control store's database is, so that no connection of a user lands there.
func (s *Store) OwnDatabase(ctx context.Context) (own engine.OwnDatabase, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return own, fmt.Errorf("asking the control store what it is: %w", dberr.Map(err))
	}
	defer conn.Release()
	if own, err = targetpostgres.IdentifyOwn(ctx, conn.Conn().PgConn()); err != nil {
		return own, fmt.Errorf("asking the control store what it is: %w", dberr.Map(err))
	}
	return own, nil
}

// resultsIdentity is the setting that holds what the results database is.
const resultsIdentity = "results_database"

// KeepResultsIdentity tells all servers of the store what their results database is.
func (s *Store) KeepResultsIdentity(ctx context.Context, own engine.OwnDatabase) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return s.keepSetting(ctx, resultsIdentity, "what the results database is", own)
}

// keepSetting writes what servers tell each other, unless it is there already. Admins decide nothing of it.
func (s *Store) keepSetting(ctx context.Context, name, what string, value any) error {
	text, err := document(what, value)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `INSERT INTO server_settings AS known (setting_name, setting_value) VALUES ($1, $2)
		ON CONFLICT (setting_name) DO UPDATE SET setting_value = excluded.setting_value, version = known.version + 1,
			updated_at = clock_timestamp() WHERE known.setting_value <> excluded.setting_value`, name, text)
	return dberr.Failed("keeping "+what, err)
}

// ResultsIdentity reads what KeepResultsIdentity has kept, by whichever server; nil where none has.
func (s *Store) ResultsIdentity(ctx context.Context) (*engine.OwnDatabase, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	v, err := s.Setting(ctx, resultsIdentity)
	if err != nil || v.Version == 0 {
		return nil, err
	}
	own := &engine.OwnDatabase{}
	return own, parse("results database", v.Value, own)
}

// resultsConnection is the setting that holds which connection results are taken to.
const resultsConnection = "results_connection"

// KeepResultsConnection tells all servers of the store which connection results are taken to.
func (s *Store) KeepResultsConnection(ctx context.Context, c store.ResultsConnection) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return s.keepSetting(ctx, resultsConnection, "the results connection", c)
}

// ResultsConnection implements api.ConnectionStore.
func (s *Store) ResultsConnection(ctx context.Context) (c store.ResultsConnection, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	v, err := s.Setting(ctx, resultsConnection)
	if err != nil || v.Version == 0 {
		return c, err
	}
	return c, parse("results connection", v.Value, &c)
}

// Ping proves that the store answers and that its schema is current.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := schema.Check(ctx, s.probe); err != nil {
		return err
	}
	var readOnly bool
	if err := s.probe.QueryRow(
		ctx,
		"SELECT current_setting('transaction_read_only')::boolean",
	).Scan(
		&readOnly,
	); err != nil {
		return dberr.Failed("asking the control store", err)
	}
	if readOnly {
		return &engine.Error{
			Code: engine.CodeUnavailable,
			Message: "The control store takes no writes: it is a standby, or " +
				"default_transaction_read_only is on.",
			Hint: "Let --database-url lead to the primary: " +
				"target_session_attrs=read-write chooses it among several hosts.",
		}
	}
	return nil
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultTimeout)
}

// inTx runs f in a transaction; an error rolls it back.
func (s *Store) inTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, f)
}

// newID returns a fresh identifier; version 7 keeps index pages hot.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

// stamp returns the time for SQL; the zero time is NULL.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// instant reads a nullable time.
func instant(t *time.Time) engine.Time {
	if t == nil {
		return engine.Time{}
	}
	return engine.At(*t)
}

// document marshals v for a jsonb column.
func document(what string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The %s cannot be stored: %v.", what, err)}
	}
	return store.CleanJSON(text), nil
}

// optional marshals v unless it is nil; nil is NULL.
func optional[T any](into *[]byte, what string, v *T) (err error) {
	if v != nil {
		*into, err = document(what, v)
	}
	return err
}

// parse reads a jsonb column; NULL leaves v as it is.
func parse(what string, text []byte, v any) error {
	if text == nil {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("reading stored %s: %w", what, err)
	}
	return nil
}

// orNull maps the empty string onto NULL.
func orNull[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
