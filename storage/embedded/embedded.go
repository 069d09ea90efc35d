package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
)

// Options say where a cluster is and what to tell about it.
type Options struct {
	// DataDir is the caller's data directory; it is made when absent.
	DataDir string
	Log     zerolog.Logger
	// Settings are added to postgresql.conf and win over Loadstone's own.
	Settings map[string]string
	// Throwaway trades durability for speed, for tests: nothing is synced to disk,
	// and whoever runs the process is the superuser without a password.
	Throwaway bool
	// Listen has Postgres listen on TCP, for logins that read results; nil is for no TCP.
	Listen *Listen
}

// Postgres is a supervised local Postgres. Its methods are safe for concurrent use.
type Postgres struct {
	place   layout
	install install
	id      identity
	log     zerolog.Logger
	lock    *os.File

	stop     chan struct{} // closed by Stop
	stopOnce sync.Once
	done     chan struct{}   // closed when the supervisor has left
	deadline context.Context // how long Stop waits; set before stop is closed
	stopErr  error           // set before done is closed

	mu    sync.Mutex
	child *postmaster

	making sync.Mutex // the results database and its logins: Postgres changes no role twice at a time
}

// Start finds the binaries, makes the cluster with its databases unless they
// exist, and returns when it serves. Errors are *engine.Error where the user
// can do something. ctx bounds the start only; the caller must call Stop.
func Start(ctx context.Context, opts Options) (*Postgres, error) {
	id, err := identify()
	if err != nil {
		return nil, err
	}
	p, err := locate(opts.DataDir, id)
	if err != nil {
		return nil, err
	}
	if opts.Listen != nil {
		p.listen, p.port = opts.Listen, opts.Listen.Port
	}
	lock, err := p.lock()
	if err != nil {
		return nil, err
	}
	pg := &Postgres{place: p, id: id, log: opts.Log, lock: lock,
		stop: make(chan struct{}), done: make(chan struct{})}
	if err := pg.open(ctx, opts); err != nil {
		lock.Close()
		return nil, err
	}
	go pg.supervise()
	return pg, nil
}

func (pg *Postgres) open(ctx context.Context, opts Options) error {
	p := pg.place
	if p.relocated {
		pg.log.Info().Str("data_dir", p.data).Str("postgres_dir", p.home).Str("user", pg.id.name).
			Msg("the user that runs Postgres cannot reach the data directory; its files are elsewhere")
	}
	major, err := p.major()
	if err != nil {
		return err
	}
	if pg.install, err = findMajor(major); err != nil {
		return err
	}
	if err := p.name(pg.id); err != nil {
		return err
	}
	orphans, err := sweep(ctx, p.cluster)
	if err != nil {
		return err
	}
	if orphans > 0 {
		pg.log.Warn().Int("processes", orphans).Msg("stopped a Postgres that an earlier Loadstone left behind")
	}
	if !opts.Throwaway {
		if p.password, err = p.secret(); err != nil {
			return err
		}
		pg.place = p
	}
	fresh, err := p.create(ctx, pg.install, pg.id, !opts.Throwaway)
	if err != nil {
		return err
	}
	extra := map[string]string{}
	if opts.Throwaway {
		extra["fsync"], extra["synchronous_commit"], extra["full_page_writes"] = "off", "off", "off"
	}
	if err := p.listenSettings(pg.id, extra); err != nil {
		return err
	}
	for name, value := range opts.Settings {
		extra[name] = value
	}
	if err := p.configure(pg.id, extra); err != nil {
		return err
	}
	if fresh && p.password != "" {
		if err := p.setPassword(ctx, pg.install, pg.id); err != nil {
			return err
		}
	}
	child, err := pg.begin(ctx)
	if errors.Is(err, errPassword) {
		pg.log.Info().Msg("the embedded Postgres gets a new password")
		if err = p.setPassword(ctx, pg.install, pg.id); err == nil {
			child, err = pg.begin(ctx)
		}
	}
	if err != nil {
		return err
	}
	if err := pg.ensureDatabases(ctx); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return errors.Join(err, child.stop(stopCtx))
	}
	pg.child = child
	return nil
}

// begin starts a postmaster and waits until it serves. A refusal because of a
// lock is repeated: the former owner may be on its way out.
func (pg *Postgres) begin(ctx context.Context) (*postmaster, error) {
	again := backoff.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}
	for attempt := 1; ; attempt++ {
		from := logSize(pg.place.log)
		if from > maxLog {
			from = 0 // launch starts a new log
		}
		if err := pg.place.clearLocks(); err != nil {
			return nil, err
		}
		child, err := launch(pg.place, pg.install, pg.id)
		if err != nil {
			return nil, err
		}
		if err = child.ready(ctx, pg.place, from); err == nil {
			pg.log.Debug().Int("pid", child.pid).Str("version", pg.install.version).Str("socket_dir", pg.place.socket).
				Msg("Postgres is ready")
			return child, nil
		}
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		_ = child.stop(stopCtx)
		cancel()
		if !errors.Is(err, errLocked) || attempt == 8 {
			return nil, err
		}
		pg.log.Warn().Err(err).Int("attempt", attempt).Msg("Postgres refused to start; trying again")
		if !again.Wait(ctx) {
			return nil, err
		}
		if _, err := sweep(ctx, pg.place.cluster); err != nil {
			return nil, err
		}
	}
}

// ensureDatabases makes the databases and roles that are missing, also in a cluster of an earlier version.
func (pg *Postgres) ensureDatabases(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, pg.place.dsn("postgres", superuser))
	if err != nil {
		return fmt.Errorf("connecting to the new cluster: %w", err)
	}
	defer closeConn(conn)
	var control bool
	var missing, strangers []string
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1),
		ARRAY(SELECT g FROM unnest($2::text[]) AS g WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = g)),
		ARRAY(SELECT g FROM unnest($2::text[]) AS g WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = g))`,
		ControlDatabase, guestDatabases).Scan(&control, &missing, &strangers)
	if err != nil {
		return fmt.Errorf("looking for the databases: %w", err)
	}
	var todo []string
	for _, guest := range strangers {
		todo = append(todo, "CREATE ROLE "+guest+" LOGIN")
	}
	if !control {
		todo = append(todo, "CREATE DATABASE loadstone")
	}
	for _, guest := range missing {
		// Whoever may run SQL in one of them must not reach another one.
		todo = append(todo, "CREATE DATABASE "+guest+" OWNER "+guest, "REVOKE CONNECT ON DATABASE "+guest+" FROM PUBLIC")
	}
	if len(todo) > 0 {
		todo = append(todo, "REVOKE CONNECT ON DATABASE loadstone FROM PUBLIC",
			"REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
	}
	if pg.place.password != "" {
		todo = append(todo, "ALTER ROLE "+SnowsimDatabase+" PASSWORD '"+pg.place.password+"'")
	}
	for _, sql := range todo {
		if _, err := conn.Exec(ctx, sql); err != nil {
			// The statement may hold the password; the error's text does not.
			return fmt.Errorf("making the databases: %w", err)
		}
	}
	return nil
}

// closeConn closes a connection; nothing depends on a polite goodbye.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// supervise restarts a postmaster that ends without being asked to.
func (pg *Postgres) supervise() {
	defer close(pg.done)
	defer pg.lock.Close()
	again := backoff.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Second}
	for {
		child := pg.current()
		born := time.Now()
		select {
		case <-pg.stop:
			pg.stopErr = child.stop(pg.deadline)
			return
		case <-child.exited:
		}
		if time.Since(born) > time.Minute {
			again.Reset()
		}
		pg.log.Error().Err(child.err).Int("pid", child.pid).Msg("Postgres ended unexpectedly; starting it again")
		for {
			next, err := pg.restart()
			if err == nil {
				pg.mu.Lock()
				pg.child = next
				pg.mu.Unlock()
				pg.log.Info().Int("pid", next.pid).Msg("Postgres is back")
				break
			}
			pause := again.Next()
			pg.log.Error().Err(err).Dur("pause", pause).Msg("Postgres does not start")
			select {
			case <-pg.stop:
				return
			case <-time.After(pause):
			}
		}
	}
}

// restart makes one attempt, which Stop interrupts.
func (pg *Postgres) restart() (*postmaster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	attempt := make(chan struct{})
	defer close(attempt)
	go func() {
		select {
		case <-pg.stop:
			cancel()
		case <-attempt:
		}
	}()
	if _, err := sweep(ctx, pg.place.cluster); err != nil {
		return nil, err
	}
	return pg.begin(ctx)
}

func (pg *Postgres) current() *postmaster {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	return pg.child
}

// Stop shuts Postgres down (fast: sessions are ended, nothing is lost) and
// returns when it is gone. When ctx ends first it is shut down the hard way,
// which is an error but loses nothing committed. Stopping twice is safe.
func (pg *Postgres) Stop(ctx context.Context) error {
	pg.stopOnce.Do(func() {
		pg.deadline = ctx
		close(pg.stop)
	})
	<-pg.done
	return pg.stopErr
}

// DSN returns the connection string of a database on the unix socket. The
// playground and the stand-in's database are opened as their owners, every other
// database as the superuser. Only the playground's holds no secret.
func (pg *Postgres) DSN(database string) string {
	if slices.Contains(guestDatabases, database) {
		return pg.place.dsn(database, database)
	}
	return pg.place.dsn(database, superuser)
}

// AdminDSN is DSN for the superuser, also of a database that DSN opens as its owner.
func (pg *Postgres) AdminDSN(database string) string { return pg.place.dsn(database, superuser) }

// PID returns the postmaster's process id; it changes with a restart.
func (pg *Postgres) PID() int { return pg.current().pid }

// SocketDir returns the folder of the unix socket.
func (pg *Postgres) SocketDir() string { return pg.place.socket }

// Dir returns the folder that holds the cluster and its log: DataDir, unless
// the user that runs Postgres cannot reach it.
func (pg *Postgres) Dir() string { return pg.place.home }

// Version returns the version of the binaries, "15.18".
func (pg *Postgres) Version() string { return pg.install.version }
