package snowflake

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/target"
)

const (
	// A log-in takes a second or two, and longer when it meets others.
	defaultConnectTimeout = 30 * time.Second
	// defaultRequestTimeout bounds one request: Snowflake answers each within 45 s,
	// with the result or with "in progress".
	defaultRequestTimeout = 5 * time.Minute
	// maxColdConnections bounds what Query, Exec and Load open at the same time.
	maxColdConnections = 4
	// coldRetries is how often gosnowflake repeats what preparation asks for; load is never repeated.
	coldRetries = 3
)

// NewDriver returns the driver named "snowflake".
func NewDriver() target.Driver { return snowflakeDriver{} }

// NewDriverWithPolicy is NewDriver, which connects where the policy lets it.
func NewDriverWithPolicy(p *egress.Policy) target.Driver { return snowflakeDriver{egress: p} }

type snowflakeDriver struct {
	dsnReader
	// report, if any, is told every host that is asked for something.
	report func(host string)
	// egress judges the addresses that are dialled; nil judges none.
	egress *egress.Policy
	// observe, if any, is told every statement.
	observe func(sql string, err error)
}

func (snowflakeDriver) Name() string { return "snowflake" }

// Traits implements target.TraitsProvider.
func (snowflakeDriver) Traits() target.Traits {
	return target.Traits{Title: "Snowflake", History: true, Warehouses: true}
}

// Open checks the connection string without connecting.
func (d snowflakeDriver) Open(cfg target.Config) (target.Database, error) {
	if err := silence(); err != nil {
		return nil, fmt.Errorf("silencing gosnowflake: %w", err)
	}
	s, err := parseDSN(cfg.DSN.Reveal())
	if err != nil {
		return nil, err
	}
	if cfg.Warehouse != "" {
		if err := checkIdentifier("warehouse", cfg.Warehouse); err != nil {
			return nil, err
		}
		s.Warehouse = cfg.Warehouse
	}
	for _, sql := range cfg.Session {
		if transfersFiles(sql) {
			return nil, errFileTransfer
		}
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = defaultConnectTimeout
	}
	if s.LoginTimeout > 0 {
		cfg.ConnectTimeout = s.LoginTimeout
	}
	if s.ClientTimeout <= 0 {
		s.ClientTimeout = defaultRequestTimeout
	}
	cfg.StatementTimeout = max(cfg.StatementTimeout, 0)
	db := &database{cfg: cfg, settings: s, transport: newTransport(s, d.egress),
		slot:      make(chan struct{}, maxColdConnections),
		described: map[string]*description{}, houses: map[session]string{}, gone: make(chan struct{})}
	db.transport.report = d.report
	db.observe = d.observe
	db.tokens = s.tokens(d.egress)
	return db, nil
}

// database is safe for concurrent use.
type database struct {
	cfg       target.Config
	settings  *accountSettings
	transport *transport
	tokens    *tokenSource // nil where the connection holds what it signs in with
	observe   func(sql string, err error)

	slot chan struct{}
	mu   sync.Mutex
	idle []session
	// house is the latest USE WAREHOUSE that was executed, empty for the warehouse of the log-in; houses is that of
	// each cold session that is open.
	house  string
	houses map[session]string
	shut   bool
	// open counts sessions; leaving those of them that are being closed in the
	// background. gone is closed when Close need not wait for them any more.
	open, leaving int
	gone          chan struct{}

	// uploads are under way, or coming to their end after nobody waits for them any more.
	uploads sync.WaitGroup

	describing sync.Mutex
	described  map[string]*description // by statement text
}

var errClosed = errors.New("database is closed")

// session is one of gosnowflake's connections.
type session interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	QueryArrowStream(ctx context.Context, query string, bindings ...driver.NamedValue) (sf.ArrowStreamLoader, error)
}

// tag is the QUERY_TAG of all sessions, by which a run is found in the account's history.
func (d *database) tag() string {
	b, _ := json.Marshal(struct { // strings always marshal
		App    string `json:"app"`
		RunID  string `json:"run_id,omitempty"`
		Worker string `json:"worker,omitempty"`
	}{"loadstone", d.cfg.RunID, d.cfg.WorkerID})
	return string(b)
}

// config is what gosnowflake is given. It is complete: nothing of it comes from files or the environment, but for
// identities of clouds in the sign-ins that are by them. token is that of the log-in, if it has one.
func (d *database) config(retries int, token string) sf.Config {
	s := d.settings
	params := map[string]string{
		// Nothing is told to Snowflake about this client but what the log-in says.
		"CLIENT_TELEMETRY_ENABLED": "false",
		// Array binds travel in the request, never through a stage; see load.go.
		"CLIENT_STAGE_ARRAY_BINDING_THRESHOLD": "0",
		"CLIENT_PREFETCH_THREADS":              strconv.Itoa(fetchConcurrency),
	}
	for _, p := range d.sessionParameters() {
		params[p.name] = p.value
	}
	pointers := make(map[string]*string, len(params))
	for name, value := range params {
		pointers[name] = &value
	}
	cfg := sf.Config{
		Account: s.Account, User: s.User, Password: s.Password, Database: s.Database, Schema: s.Schema,
		Warehouse: s.Warehouse, Role: s.Role,
		Protocol: d.transport.scheme, Host: s.Host, Port: s.Port, Authenticator: s.Authenticator,
		Token: cmp.Or(token, s.Token), PrivateKey: s.Key,
		WorkloadIdentityProvider: s.IdentityProvider, WorkloadIdentityEntraResource: s.EntraResource,
		Params: pointers, Application: "loadstone", Transporter: d.transport,
		ValidateDefaultParameters: sf.ConfigBoolTrue, IncludeRetryReason: sf.ConfigBoolTrue,
		ClientRequestMfaToken: sf.ConfigBoolFalse, ClientStoreTemporaryCredential: sf.ConfigBoolFalse,
		MaxRetryCount: retries,
	}
	// gosnowflake means to name its time limits anew one day, and has no others yet.
	cfg.LoginTimeout, cfg.JWTClientTimeout = d.cfg.ConnectTimeout, d.cfg.ConnectTimeout //nolint:staticcheck // see above
	cfg.RequestTimeout, cfg.ClientTimeout = s.ClientTimeout, s.ClientTimeout            //nolint:staticcheck // see above
	if retries == 0 && d.cfg.StatementTimeout > 0 {
		// The statement timeout bounds each request already, and two timers for it are one too many.
		cfg.ClientTimeout = 0 //nolint:staticcheck // see above
	}
	cfg.JWTExpireTimeout = time.Minute //nolint:staticcheck // see above
	return cfg
}

// dial opens a session with its session statements run, another one where it ends before they have. Its errors are
// user-facing.
func (d *database) dial(ctx context.Context, retries int) (session, error) {
	s, err := d.dialOnce(ctx, retries)
	if sessionEnded(err) {
		return d.dialOnce(ctx, retries)
	}
	return s, err
}

func (d *database) dialOnce(ctx context.Context, retries int) (session, error) {
	d.mu.Lock()
	d.open++
	d.mu.Unlock()
	opened := false
	defer func() {
		if !opened {
			d.forget()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, d.cfg.ConnectTimeout)
	defer cancel()
	c, err := d.logIn(ctx, retries)
	if err != nil {
		return nil, d.explain(err)
	}
	s, ok := c.(session)
	if !ok {
		return nil, fmt.Errorf("gosnowflake's connection is a %T, which cannot stream", c)
	}
	if err := d.takeSession(ctx, s); err != nil {
		_ = s.Close()
		return nil, err
	}
	for _, sql := range d.cfg.Session {
		if _, err := s.ExecContext(ctx, sql, nil); err != nil {
			_ = s.Close()
			return nil, &engine.Error{Code: engine.CodeTarget, Cause: err,
				Message: fmt.Sprintf("The session statement %q failed: %s", sql, sentence(err)),
				Hint:    "It runs on every connect; change the adapter's session statements or grant what it needs."}
		}
	}
	opened = true
	if d.observe != nil {
		return &observedSession{s, d.observe}, nil
	}
	return s, nil
}

// logIn signs in, once more with a new token where the account does not take the one at hand.
func (d *database) logIn(ctx context.Context, retries int) (driver.Conn, error) {
	if p := d.settings.IdentityProvider; p != "" {
		if err := identityAllowed(p, os.Getenv); err != nil {
			return nil, err
		}
		if d.settings.Plain {
			if err := standInMayAsk(os.Getenv); err != nil {
				return nil, err
			}
		}
	}
	if d.tokens == nil {
		return sf.SnowflakeDriver{}.OpenWithConfig(ctx, d.config(retries, ""))
	}
	for try := 0; ; try++ {
		token, err := d.tokens.get(ctx)
		if err != nil {
			return nil, err
		}
		c, err := sf.SnowflakeDriver{}.OpenWithConfig(ctx, d.config(retries, token))
		var refused *sf.SnowflakeError
		if err == nil || try > 0 || !errors.As(err, &refused) || classOf(refused) != engine.ErrClassAuth {
			return c, err
		}
		d.tokens.forget(token)
	}
}

// hangUp closes a session that dial opened.
func (d *database) hangUp(s session) {
	_ = s.Close() // the account forgets a session that could not be closed
	d.forget()
}

// leave closes a session in the background: its time is nobody's operation.
func (d *database) leave(s session) {
	d.mu.Lock()
	d.leaving++
	d.mu.Unlock()
	go func() {
		d.hangUp(s)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.leaving--; d.leaving == 0 && d.shut {
			close(d.gone)
			d.gone = make(chan struct{})
		}
	}()
}

// forget notes that a session has ended. The last one after Close takes the idle TCP connections along.
func (d *database) forget() {
	d.mu.Lock()
	d.open--
	last := d.shut && d.open == 0
	d.mu.Unlock()
	if last {
		d.transport.closeIdle()
	}
}

// borrow lends a cold session, a new one where fresh is asked for; give returns it.
func (d *database) borrow(ctx context.Context, fresh bool) (session, error) {
	select {
	case d.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a connection: %w", ctx.Err())
	}
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		<-d.slot
		return nil, errClosed
	}
	if n := len(d.idle); n > 0 && !fresh {
		s := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		err := d.onHouse(ctx, s)
		if err == nil {
			return s, nil
		}
		d.give(s, errors.Join(err, errHouse))
		if !sessionEnded(err) {
			return nil, err
		}
		return d.borrow(ctx, true)
	}
	d.mu.Unlock()
	s, err := d.dial(ctx, coldRetries)
	if err != nil {
		<-d.slot
		return nil, err
	}
	if err := d.onHouse(ctx, s); err != nil {
		d.give(s, errors.Join(err, errHouse))
		return nil, err
	}
	return s, nil
}

// onHouse has a cold session use the warehouse that the latest USE WAREHOUSE named: which session executed it is
// nothing that its author knows, and one that was lost takes its warehouse along.
func (d *database) onHouse(ctx context.Context, s session) error {
	d.mu.Lock()
	use := d.house
	same := d.houses[s] == use
	d.mu.Unlock()
	if same {
		return nil
	}
	if _, err := s.ExecContext(ctx, use, nil); err != nil {
		return d.refused(use, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.houses[s] = use
	return nil
}

// useHouse notes that a cold session has executed USE WAREHOUSE.
func (d *database) useHouse(s session, use string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.house = use
	d.houses[s] = use
}

// errHouse marks a session that could not be brought onto its warehouse, and is of no use.
var errHouse = errors.New("the session is on another warehouse")

// houseless is an error after which nobody knows which warehouse the session is on.
type houseless struct{ error }

// Unwrap marks it with errHouse.
func (e houseless) Unwrap() []error { return []error{e.error, errHouse} }

// usesWarehouse finds USE WAREHOUSE.
var usesWarehouse = regexp.MustCompile(`(?i)^\s*USE\s+WAREHOUSE\s`)

func (d *database) give(s session, err error) {
	d.mu.Lock()
	keep := !d.shut && !breaksSession(err)
	if keep = keep && !errors.Is(err, errHouse); keep {
		d.idle = append(d.idle, s)
	} else {
		delete(d.houses, s)
	}
	d.mu.Unlock()
	if !keep {
		d.hangUp(s)
	}
	<-d.slot
}

// Close ends the idle cold sessions, and waits for load connections that are
// being closed, and for a while for uploads. Sessions on loan end when they are given back.
func (d *database) Close() error {
	d.mu.Lock()
	idle, leaving, gone := d.idle, d.leaving, d.gone
	d.idle, d.shut = nil, true
	d.mu.Unlock()
	ended := make(chan struct{})
	go func() { d.uploads.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
	}
	for _, s := range idle {
		d.hangUp(s)
	}
	if leaving > 0 {
		<-gone // each is bounded by farewell
	}
	d.transport.closeIdle()
	return nil
}

// withSession runs f on a cold session. When the session turns out to have ended
// before f could do anything, f runs once more on a new one.
func (d *database) withSession(ctx context.Context, f func(s session) error) error {
	for try := 0; ; try++ {
		s, err := d.borrow(ctx, try > 0)
		if err != nil {
			return err
		}
		err = f(s)
		d.give(s, err)
		if try > 0 || !sessionEnded(err) {
			return err
		}
	}
}

// Exec runs SQL texts one after the other, each on its own.
func (d *database) Exec(ctx context.Context, texts ...string) error {
	for _, sql := range texts {
		if transfersFiles(sql) {
			return errFileTransfer
		}
		if err := d.withSession(ctx, func(s session) error {
			_, err := s.ExecContext(ctx, sql, nil)
			if usesWarehouse.MatchString(sql) {
				if err != nil {
					return houseless{err} // the account may have executed it all the same
				}
				d.useHouse(s, sql)
			}
			return err
		}); err != nil {
			return d.refused(sql, err)
		}
	}
	return nil
}

// userError wraps an error for preparation, which shows it as it is.
func (d *database) userError(what string, err error) error {
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Query runs one SQL text with arguments and returns all rows.
func (d *database) Query(ctx context.Context, sql string, args ...any) (*target.ResultSet, error) {
	if transfersFiles(sql) {
		return nil, errFileTransfer
	}
	values := make([]driver.NamedValue, 0, len(args))
	var mode bindMode
	for i, a := range args {
		var err error
		if values, err = mode.appendArgument(values, a); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	var rs *target.ResultSet
	err := d.withSession(ctx, func(s session) (err error) {
		rs, err = query(ctx, s, sql, values)
		return err
	})
	if err != nil {
		return nil, d.userError("querying", err)
	}
	return rs, nil
}

// rowSize is about what a row, and each value of it, takes besides its text.
const rowSize = 24

func query(ctx context.Context, s session, sql string, values []driver.NamedValue) (*target.ResultSet, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // so that parts of the result that nobody reads are not fetched
	rows, err := s.QueryContext(ctx, sql, values)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // what it leaves is not fetched
	types, err := columnTypes(rows)
	if err != nil {
		return nil, err
	}
	rs := &target.ResultSet{Columns: rows.Columns(), Rows: [][]any{}}
	raw := make([]driver.Value, len(rs.Columns))
	size := 0
	for {
		if err := rows.Next(raw); errors.Is(err, io.EOF) {
			return rs, nil
		} else if err != nil {
			return nil, err
		}
		row := make([]any, len(raw))
		size += rowSize
		for i, v := range raw {
			var n int
			row[i], n = types[i].value(v)
			size += rowSize + n
		}
		if size > target.MaxResult {
			return nil, target.ErrTooLarge
		}
		rs.Rows = append(rs.Rows, row)
	}
}

// Check connects once, asks who is there, and times the second round trip.
func (d *database) Check(ctx context.Context) (target.ServerInfo, error) {
	s, err := d.dial(ctx, 0)
	if err != nil {
		return target.ServerInfo{}, err
	}
	defer d.hangUp(s)
	ctx, cancel := context.WithTimeout(ctx, d.cfg.ConnectTimeout)
	defer cancel()
	who, emulated, err := serverIdentity(ctx, s)
	if err != nil {
		return target.ServerInfo{}, d.explain(err)
	}
	info := target.ServerInfo{Local: isLoopback(d.settings.Host), Notes: []string{}}
	var warehouse, role string
	for i, to := range []*string{&info.Version, &info.Database, &info.User, &warehouse, &role} {
		*to = who[i]
	}
	info.Simulated, info.Emulated = emulated || strings.Contains(info.Version, "snowsim"), emulated
	if emulated {
		if info.Lacks, err = missingAbilities(ctx, s); err != nil {
			return target.ServerInfo{}, d.explain(err)
		}
		info.Notes = append(info.Notes, emulatorNote(info.Lacks))
	}
	if info.Database == "" {
		info.Database = "account " + d.settings.Account
		info.Notes = append(info.Notes,
			"No database is selected: name one in the connection, or tables by database and schema.")
	}
	begin := time.Now()
	if _, err := query(ctx, s, "SELECT 1", nil); err != nil {
		return target.ServerInfo{}, d.explain(err)
	}
	info.RoundTrip = time.Since(begin)
	if !slices.Contains(info.Lacks, target.LacksWarehouses) {
		info.Notes = append(info.Notes, warehouseNotes(ctx, s, warehouse, role)...)
	}
	return info, nil
}

// warehouseNotes says what is remarkable about the session's warehouse. A
// suspended one is no failure: preflight resumes it.
func warehouseNotes(ctx context.Context, s session, warehouse, role string) []string {
	if warehouse == "" {
		return []string{"No warehouse is selected. Name one in the connection or the template: queries on tables need one."}
	}
	rs, err := query(ctx, s, "SHOW WAREHOUSES", nil)
	if err != nil {
		return []string{fmt.Sprintf("The role %s cannot see the warehouse %s: %s Grant it with GRANT USAGE, MONITOR ON "+
			"WAREHOUSE %s TO ROLE %s.", role, warehouse, sentence(err), warehouse, role)}
	}
	at := map[string]int{}
	for i, name := range rs.Columns {
		at[strings.ToLower(name)] = i
	}
	text := func(row []any, column string) string {
		i, ok := at[column]
		if !ok {
			return ""
		}
		return fmt.Sprint(row[i])
	}
	for _, row := range rs.Rows {
		if !strings.EqualFold(text(row, "name"), warehouse) || !strings.EqualFold(text(row, "state"), "SUSPENDED") {
			continue
		}
		if strings.EqualFold(text(row, "auto_resume"), "false") {
			return []string{fmt.Sprintf("The warehouse %s is suspended and does not resume by itself. ALTER WAREHOUSE %s "+
				"RESUME starts it; it costs credits while it runs.", warehouse, warehouse)}
		}
		return []string{fmt.Sprintf("The warehouse %s is suspended; the first query resumes it, and it costs credits from "+
			"then on.", warehouse)}
	}
	return nil
}
