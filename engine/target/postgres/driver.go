// Package postgres drives PostgreSQL and what speaks its wire protocol.
//
// Preparation goes through a few ordinary pgx connections. A load connection
// is opened by pgconn too (so TLS, SCRAM, service files and every form of
// connection string work), but is then taken over: from there on it speaks through
// package wire, which writes Bind, Execute and Sync of a prepared statement in one
// system call, and counts the rows of the answer and decodes nothing. The hot path
// allocates nothing. Package dsn reads the connection strings.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres/dsn"
)

const (
	defaultConnectTimeout = 10 * time.Second
	// maxName is how long a server takes an application_name to be, in bytes.
	maxName = 63
	// A host that is gone must not keep others from being tried while an outage is measured.
	reconnectTimeout = 2 * time.Second
	// maxColdConnections bounds what Query, Exec and Load open at the same time.
	maxColdConnections = 4
)

// NewDriver returns the driver named "postgres" for one's own connection strings:
// files, PG* environment and ~/.pgpass count as they do for psql. A server takes
// NewStrictDriver.
func NewDriver() target.Driver { return driver{} }

// NewStrictDriver returns the driver named "postgres" for a server or a node, whose connection strings come from others
// than the person who runs it. It connects where the policy lets it; nil lets it connect everywhere. No connection may
// land in one of the databases that own tells when it is opened; a nil own knows none.
func NewStrictDriver(own func() []engine.OwnDatabase, p *egress.Policy) target.Driver {
	return driver{dsn.Reader{Strict: true, Egress: p, Own: own}}
}

// IdentifyOwn says what the database of a connection is, of which the caller says for what the server has it.
func IdentifyOwn(ctx context.Context, c *pgconn.PgConn) (engine.OwnDatabase, error) {
	return dsn.Identify(ctx, c)
}

// driver reads connection strings as the reader in it does.
type driver struct{ dsn.Reader }

func (driver) Name() string { return "postgres" }

// Traits implements target.TraitsProvider.
func (driver) Traits() target.Traits { return target.Traits{Title: "Postgres"} }

// Open checks the connection string without connecting.
func (d driver) Open(cfg target.Config) (target.Database, error) {
	if strings.TrimSpace(cfg.DSN.Reveal()) == "" {
		return nil, dsn.ErrNoAddress
	}
	reading := d.Reader
	if len(cfg.Own) > 0 {
		reading = reading.WithOwn(cfg.Own)
	}
	parsed, err := reading.Read(cfg.DSN.Reveal())
	if err != nil {
		return nil, err
	}
	// connect_timeout is that of connecting alone: who sets it low, to come to the next host soon, has as much time as
	// anybody to prepare statements.
	answer := cfg.ConnectTimeout
	if cfg.ConnectTimeout <= 0 {
		usual := defaultConnectTimeout
		if cfg.Reconnects {
			usual = reconnectTimeout
		}
		cfg.ConnectTimeout = cmp.Or(parsed.ConnectTimeout, usual)
		answer = max(cfg.ConnectTimeout, defaultConnectTimeout)
	}
	if cfg.StatementTimeout < 0 {
		cfg.StatementTimeout = 0
	}
	// It is the limit of each address, as it is to libpq: TCP, TLS and the log-in; a look-up has as long by itself.
	parsed.ConnectTimeout = cfg.ConnectTimeout
	reader := parsed.RuntimeParams[InspectRole]
	delete(parsed.RuntimeParams, InspectRole)
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "loadstone"
	}
	name := cmp.Or(parsed.RuntimeParams["application_name"], cfg.ApplicationName)
	if cfg.RunID != "" {
		// By this the run's own sessions are known among those of the server, whoever else has the connection's name.
		mark := " " + cfg.RunID[:min(len(cfg.RunID), target.RunMarkLength)]
		name = strings.ToValidUTF8(name[:min(len(name), maxName-len(mark))], "") + mark
	}
	parsed.RuntimeParams["application_name"] = name
	return &database{
		cfg:    cfg,
		answer: answer,
		conn:   parsed,
		reader: reader,
		slot:   make(chan struct{}, maxColdConnections),
	}, nil
}

// database is safe for concurrent use.
type database struct {
	cfg  target.Config
	conn dsn.Config
	// answer bounds what is asked of an open connection before it is used: its session statements together, the
	// preparation of all statements, a look whether it is there.
	answer time.Duration
	// reader is the role that Read takes on, "" for the user's own.
	reader   string
	watchdog watchdog

	slot chan struct{}
	mu   sync.Mutex
	idle []idle
	// prepared are the statements of the last connection, see share.
	prepared []prepared
	shut     bool
	// pooler is what is known of a pooler before the server.
	pooler pooler
}

// idle is a cold connection that nobody has, since when.
type idle struct {
	*pgconn.PgConn
	since time.Time
}

// reuseWindow is how long a connection that was given back is taken to be there by who can begin again: looking
// at a target asks one query after the other, and a ping before each is a round trip more.
const reuseWindow = time.Second

var errClosed = errors.New("database is closed")

// dial opens a connection with its session statements run. Its errors are user-facing.
func (d *database) dial(ctx context.Context) (*pgconn.PgConn, error) {
	next := d.conn.Next()
	lookUp := next.LookupFunc
	next.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, d.cfg.ConnectTimeout)
		defer cancel()
		return lookUp(ctx, host)
	}
	if after := next.AfterConnect; after != nil {
		whole := ctx // what is left of the time for all addresses need not be enough for it
		next.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
			ctx, cancel := context.WithTimeout(whole, d.answer)
			defer cancel()
			return after(ctx, c)
		}
	}
	connecting, cancel := context.WithTimeout(ctx, d.dialLimit())
	c, err := pgconn.ConnectConfig(connecting, &next.Config)
	cancel()
	if err != nil {
		return nil, d.explain(err, d.cfg.ConnectTimeout)
	}
	if err := checkEncoding(c, next.RuntimeParams["client_encoding"]); err != nil {
		closeQuietly(c)
		return nil, err
	}
	ctx, cancel = context.WithTimeout(ctx, d.answer)
	defer cancel()
	for _, sql := range d.cfg.Session {
		if err := execAll(ctx, c, sql); err != nil {
			known := cmp.Or(explained(err), d.unanswered(err, d.answer), d.foreign(ctx, c, err))
			closeQuietly(c)
			if known != nil {
				return nil, known
			}
			return nil, &engine.Error{Code: engine.CodeTarget, Cause: err,
				Message: fmt.Sprintf("The session statement %q failed: %s", sql, sentence(err)),
				Hint:    "It runs on every connect; change the adapter's session statements or grant what it needs."}
		}
	}
	return c, nil
}

// checkEncoding refuses a connection that asks for another encoding than UTF-8, in which values are sent and read.
func checkEncoding(c *pgconn.PgConn, asked string) error {
	switch said := c.ParameterStatus("client_encoding"); {
	case asked == "", said == "", said == "UTF8", said == "SQL_ASCII":
		return nil
	}
	return &engine.Error{Code: engine.CodeTarget,
		Message: "The parameter client_encoding of the connection is not supported: Loadstone sends and reads UTF-8, which " +
			"every server converts.", Hint: "Leave client_encoding out."}
}

func execAll(ctx context.Context, c *pgconn.PgConn, sql string) error {
	_, err := c.Exec(ctx, sql).ReadAll()
	return err
}

func closeQuietly(c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// borrow lends a cold connection that is there; give returns it.
func (d *database) borrow(ctx context.Context) (*pgconn.PgConn, error) {
	c, _, err := d.lend(ctx, 0)
	return c, err
}

// lend is borrow where one that was given back less than trusted ago need not be there: sure is false then.
func (d *database) lend(ctx context.Context, trusted time.Duration) (c *pgconn.PgConn, sure bool, err error) {
	select {
	case d.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, false, fmt.Errorf("waiting for a connection: %w", ctx.Err())
	}
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		<-d.slot
		return nil, false, errClosed
	}
	for len(d.idle) > 0 {
		c := d.idle[len(d.idle)-1]
		d.idle = d.idle[:len(d.idle)-1]
		d.mu.Unlock()
		if time.Since(c.since) < trusted {
			return c.PgConn, false, nil
		}
		// The server may have ended an idle session (restart, idle timeout).
		ping, cancel := context.WithTimeout(ctx, d.answer)
		err := c.Ping(ping)
		cancel()
		if err == nil {
			return c.PgConn, true, nil
		}
		closeQuietly(c.PgConn)
		d.mu.Lock()
	}
	d.mu.Unlock()
	if c, err = d.dial(ctx); err != nil {
		<-d.slot
		return nil, false, err
	}
	return c, true, nil
}

func (d *database) give(c *pgconn.PgConn) {
	d.mu.Lock()
	keep := !d.shut && !c.IsClosed() && c.TxStatus() == 'I'
	if keep {
		d.idle = append(d.idle, idle{c, time.Now()})
	}
	d.mu.Unlock()
	if !keep {
		closeQuietly(c)
	}
	<-d.slot
}

// Close ends the idle cold connections; those on loan end when they are given back.
func (d *database) Close() error {
	d.mu.Lock()
	left := d.idle
	d.idle, d.shut = nil, true
	d.mu.Unlock()
	for _, c := range left {
		closeQuietly(c.PgConn)
	}
	return nil
}

// maxAddresses is how many addresses of a name are waited for at most.
const maxAddresses = 8

// connectLimit is how long it may take to come to a host: each address has its time, and the look-up of a name has it
// once more.
func (d *database) connectLimit() time.Duration {
	tries := 0
	for _, address := range d.conn.Addresses() {
		host, _, err := net.SplitHostPort(address)
		if _, notAddress := netip.ParseAddr(host); err == nil && notAddress != nil {
			tries += maxAddresses
		}
		tries++
	}
	return d.cfg.ConnectTimeout * time.Duration(tries)
}

// dialLimit bounds all attempts to connect: addresses have their time with TLS and without where both are tried.
func (d *database) dialLimit() time.Duration {
	modes := (1 + len(d.conn.Fallbacks)) / max(1, len(d.conn.Addresses()))
	return d.connectLimit() * time.Duration(max(1, modes))
}

// CheckLimit implements target.CheckLimiter: the address that answers has some time for the questions.
func (d *database) CheckLimit() time.Duration { return d.connectLimit() + d.answer }

// Check connects once, asks who is there, and times the second round trip.
func (d *database) Check(ctx context.Context) (target.ServerInfo, error) {
	c, err := d.dial(ctx)
	if err != nil {
		return target.ServerInfo{}, err
	}
	defer closeQuietly(c)
	ctx, cancel := context.WithTimeout(ctx, d.answer)
	defer cancel()
	rs, err := query(
		ctx,
		c,
		`SELECT current_setting('server_version'), current_database(), current_user, current_setting('max_connections')::int, pg_backend_pid(), version()`,
		nil,
	)
	if err != nil {
		if known := cmp.Or(d.unanswered(err, d.answer), d.foreign(ctx, c, err)); known != nil {
			return target.ServerInfo{}, known
		}
		return target.ServerInfo{}, d.explain(err, d.answer)
	}
	info := target.ServerInfo{Local: local(c.Conn())}
	if len(rs.Rows) == 1 && shaped(rs, 6) == nil { // else what answers is no Postgres, and nothing is known of it
		row := rs.Rows[0]
		info.Version, _ = row[0].(string)
		info.Database, _ = row[1].(string)
		info.User, _ = row[2].(string)
		if n, ok := row[3].(int64); ok {
			info.MaxConnections = int(n)
		}
		version, _ := row[5].(string)
		if pid, ok := row[4].(int64); ok && d.notePooler(pid, version, c) {
			info.Pooled = true
			// A pooler's clients may be more than the server's connections.
			info.MaxConnections = 0
			note := d.poolerNote()
			if isPGlite(version) {
				note = pgliteNote
			}
			info.Notes = append(info.Notes, note)
		}
	}
	begin := time.Now()
	if err := execAll(ctx, c, "SELECT 1"); err != nil {
		return target.ServerInfo{}, d.explain(err, d.answer)
	}
	info.RoundTrip = time.Since(begin)
	return info, nil
}

func local(c net.Conn) bool {
	switch a := c.RemoteAddr().(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}
