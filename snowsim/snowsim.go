package snowsim

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// Version is what CURRENT_VERSION() answers; a client knows the stand-in by "snowsim".
const Version = "9.38.1 snowsim"

// Default names.
const (
	DefaultAccount   = "snowsim"
	DefaultUser      = "LOADSTONE"
	DefaultRole      = "SYSADMIN"
	DefaultDatabase  = "LOADSTONE"
	DefaultSchema    = "PUBLIC"
	DefaultWarehouse = "LOADSTONE_WH"
)

// catalogConnections is how many Postgres connections the translator has.
const catalogConnections = 8

// User can log in.
type User struct {
	// Name is in upper case.
	Name     string
	Password string
	// PublicKey is the PEM or base64 DER of an RSA key; log-ins by key pair are checked against it.
	PublicKey string
	// Tokens are programmatic access tokens, OAuthTokens access tokens of an
	// authorization server; a value of false is one that has expired.
	Tokens      map[string]bool
	OAuthTokens map[string]bool
	// TokenRoles are the ROLE_RESTRICTION of programmatic access tokens: they sign in with that role alone, and without
	// secondary roles.
	TokenRoles map[string]string
	// OAuthClients are the secrets of clients, by id, to which the stand-in's authorization server gives access tokens.
	OAuthClients map[string]string
	// WorkloadIdentity lets a machine in without a secret.
	WorkloadIdentity Identity
	// NetworkPolicy is one that does not let the user in from here.
	NetworkPolicy bool
	// MFA requires a second factor for log-ins with a password.
	MFA bool
	// Parameters are the user's defaults of session parameters; they go before the account's.
	Parameters map[string]string
	// DefaultRole is what a log-in without a role gets; empty is PUBLIC. DefaultWarehouse and
	// DefaultNamespace, DATABASE or DATABASE.SCHEMA, are empty for none.
	DefaultRole, DefaultWarehouse, DefaultNamespace string
	// NoSecondaryRoles is DEFAULT_SECONDARY_ROLES = (); otherwise it is ('ALL'), as for new users.
	NoSecondaryRoles bool
}

// Options configure the stand-in. The zero value of every field but Postgres is a default.
type Options struct {
	// Postgres is the connection string of the database that statements run on.
	// It belongs to the stand-in alone: clients run SQL in it.
	Postgres string
	// Admin is that of a superuser of the same database, who installs what only
	// superusers may. It is not needed when Postgres's role is one, or after the first time.
	Admin string
	// MaxConnections bounds the Postgres connections of statements; 0 is 64. Sessions take
	// one for a statement, and keep one while they are in a transaction. A few more
	// are the translator's, which looks tables up while statements wait.
	MaxConnections int32
	// Listen is the address; empty is a free port of 127.0.0.1.
	Listen string
	// Account is the account's name; others are refused.
	Account string
	// Parameters are the account's defaults of session parameters, by name.
	Parameters map[string]string
	// Users can log in. The default is DefaultUser with a random password.
	Users []User
	// Roles are added to ACCOUNTADMIN, SYSADMIN and PUBLIC.
	Roles []string
	// Database and Schema are what DSN names.
	Database, Schema string
	// Warehouses exist at start. None makes DefaultWarehouse (standard) and
	// INTERACTIVE_WH (interactive), both X-Small with one cluster.
	Warehouses []warehouse.Spec
	// Model tunes the warehouses.
	Model warehouse.Config
	// TimeScale makes the model's times shorter: 10 is a tenth. Times that
	// a client asks for (timeouts, AUTO_SUSPEND) are left as they are. 0 is 1.
	TimeScale float64
	// History configures the query history. HistoryFile stores it across restarts; empty does not.
	History     history.Options
	HistoryFile string
	// Faults are active from the start; HTTP requests can replace them.
	Faults []Fault
	// Seed decides latencies and faults.
	Seed uint64
	// SessionValidity is how long a session token is good for; 0 is an hour, as on
	// an account. MasterValidity is the master token's; 0 is four hours.
	SessionValidity, MasterValidity time.Duration
	// OAuthValidity is how long access tokens of the authorization server are good for; 0 is ten minutes.
	OAuthValidity time.Duration
	// IdleTransaction is for how long a transaction may hold what others wait for without being used; 0 is five
	// minutes, as on an account.
	IdleTransaction time.Duration
	// AnswerWithin is after what time a statement that still runs is answered with
	// "in progress"; 0 is 45 s, as on an account.
	AnswerWithin time.Duration
	// InlineBytes is how much of a result is in the answer itself, ChunkBytes how
	// long each further chunk is before compression; 0 is 128 kB and 2 MB.
	InlineBytes, ChunkBytes int
	// Results is the form of rows for sessions that do not choose one: "arrow" (also when it is empty), as on an account,
	// or "json".
	Results string
	// Stages is the cloud in whose protocol files are stored: StagesS3 (also when it is empty), StagesAzure, StagesGCS.
	Stages string
	// Denied are privileges that roles do not have.
	Denied []translate.Denied
	// Contract is what the account's edition and region allow; the zero value has everything.
	Contract translate.Contract
	Log      zerolog.Logger
	// plain replaces the translator, for tests of the protocol.
	plain translator
}

// translator turns SQL into plans, and authorizes log-ins.
type translator interface {
	Plan(ctx context.Context, s *translate.Session, sql string, binds []protocol.Bind) (*translate.Plan, error)
	Split(sql string) ([]string, error)
	RoleExists(role string) bool
	MayUse(s *translate.Session, warehouse string) bool
}

func (o *Options) setDefaults() error {
	if strings.TrimSpace(o.Postgres) == "" {
		return errors.New("snowsim: no Postgres to run statements on")
	}
	if o.Stages != "" && !slices.Contains([]string{StagesS3, StagesAzure, StagesGCS}, o.Stages) {
		return fmt.Errorf("snowsim: stages in %q are not known", o.Stages)
	}
	if o.TimeScale < 0 {
		return errors.New("snowsim: TimeScale is negative")
	}
	for _, d := range []struct {
		at  *string
		def string
	}{{&o.Results, "arrow"}, {&o.Stages, StagesS3}, {&o.Account, DefaultAccount}, {&o.Database, DefaultDatabase}, {&o.Schema, DefaultSchema},
		{&o.Listen, "127.0.0.1:0"}} {
		if *d.at == "" {
			*d.at = d.def
		}
	}
	if o.TimeScale == 0 {
		o.TimeScale = 1
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 64
	}
	if o.SessionValidity <= 0 {
		o.SessionValidity = time.Hour
	}
	if o.MasterValidity <= 0 {
		o.MasterValidity = 4 * time.Hour
	}
	if o.OAuthValidity <= 0 {
		o.OAuthValidity = 10 * time.Minute
	}
	if o.IdleTransaction <= 0 {
		o.IdleTransaction = 5 * time.Minute
	}
	if o.AnswerWithin <= 0 {
		o.AnswerWithin = 45 * time.Second
	}
	if o.InlineBytes <= 0 {
		o.InlineBytes = 128 << 10
	}
	if o.ChunkBytes <= 0 {
		o.ChunkBytes = 2 << 20
	}
	if err := checkParameters(o.Parameters); err != nil {
		return err
	}
	for _, u := range o.Users {
		if err := checkParameters(u.Parameters); err != nil {
			return err
		}
	}
	if o.Users == nil {
		o.Users = []User{{Name: DefaultUser, Password: NewPassword()}}
	}
	if o.Warehouses == nil {
		o.Warehouses = []warehouse.Spec{{Name: DefaultWarehouse, AutoResume: true},
			{Name: "INTERACTIVE_WH", Type: warehouse.TypeInteractive, AutoResume: true}}
	}
	return nil
}

// NewPassword returns a random password.
func NewPassword() string {
	var secret [12]byte
	_, _ = rand.Read(secret[:]) // never fails
	return hex.EncodeToString(secret[:])
}

// Server is a running stand-in.
type Server struct {
	opts       Options
	pool       *pgxpool.Pool // of statements
	catalog    *pgxpool.Pool // of the translator
	listener   net.Listener
	http       *http.Server
	translator translator
	account    *account
	history    *history.Store
	journal    *history.Journal // nil without HistoryFile
	faults     *faults
	stages     stageArea
	users      map[string]*user
	log        zerolog.Logger

	ctx     context.Context // ends with Close; jobs run in it
	cancel  context.CancelFunc
	running sync.WaitGroup // jobs and the HTTP server

	// generation grows with every DDL; prepared statements of an older one are forgotten.
	generation atomic.Uint64
	queryIDs   atomic.Uint64
	// transactionIDs goes on from the time of the start.
	transactionIDs atomic.Int64
	salt           uint64
	counts         counters

	mu       sync.Mutex
	sessions map[int64]*session
	tokens   map[string]*session // session tokens, expired ones too
	masters  map[string]*session
	// accessTokens are those that the authorization server gave.
	accessTokens map[string]accessToken
	results      map[string]*job // by query id
	lastID       int64
}

// Stats count what clients did.
type Stats struct {
	Logins   int64 `json:"logins"`
	Sessions int   `json:"sessions"` // open now
	Queries  int64 `json:"queries"`
	Renewals int64 `json:"renewals"`
	// OAuthTokens are the access tokens that the authorization server gave.
	OAuthTokens int64 `json:"oauth_tokens"`
	Aborts      int64 `json:"aborts"`
	Chunks      int64 `json:"chunks"`
	Telemetry   int64 `json:"telemetry"` // requests to the telemetry endpoint
	Repeated    int64 `json:"repeated"`  // requests that found their job already there
	Faults      int64 `json:"faults"`
}

type counters struct {
	logins, queries, renewals, aborts, chunks, telemetry, repeated, oauthTokens atomic.Int64
}

// Start starts a stand-in. ctx bounds the start only; the caller must call Close.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	s := &Server{opts: opts, log: opts.Log, sessions: map[int64]*session{}, tokens: map[string]*session{},
		masters: map[string]*session{}, results: map[string]*job{}, accessTokens: map[string]accessToken{}}
	var err error
	if s.users, err = registerUsers(opts.Users); err != nil {
		return nil, err
	}
	s.stages.cloud = opts.Stages
	s.transactionIDs.Store(time.Now().UnixMilli())
	s.faults = &faults{seed: opts.Seed}
	if err := s.faults.set(opts.Faults); err != nil {
		return nil, err
	}
	s.history = history.New(scaledHistory(opts))
	config, err := pgxpool.ParseConfig(opts.Postgres)
	if err != nil {
		return nil, fmt.Errorf("snowsim: reading the connection string of Postgres: %w", err)
	}
	// From here on something is open: what fails closes it.
	if s.account, err = newAccount(opts); err != nil {
		return nil, err
	}
	if opts.HistoryFile != "" {
		if s.journal, err = history.OpenJournal(opts.HistoryFile, s.history); err != nil {
			s.account.close()
			return nil, fmt.Errorf("snowsim: %w", err)
		}
	}
	config.MaxConns = opts.MaxConnections
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.RuntimeParams["application_name"] = "snowsim"
	config.ConnConfig.RuntimeParams["search_path"] = translate.SearchPath
	config.ConnConfig.RuntimeParams["datestyle"] = "ISO, YMD"
	config.ConnConfig.RuntimeParams["intervalstyle"] = "postgres"
	config.ConnConfig.RuntimeParams["bytea_output"] = "hex"
	config.ConnConfig.RuntimeParams["extra_float_digits"] = "1"
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		// A statement that is cancelled leaves its connection, and its transaction, as it was.
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 5 * time.Second}
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if s.pool, err = pgxpool.NewWithConfig(s.ctx, config); err == nil {
		config = config.Copy()
		config.MaxConns = catalogConnections
		s.catalog, err = pgxpool.NewWithConfig(s.ctx, config)
	}
	if err != nil {
		err = fmt.Errorf("snowsim: connecting to Postgres: %w", err)
	} else {
		err = s.begin(ctx)
	}
	if err != nil {
		s.cancel()
		s.account.close()
		s.closePools()
		if s.journal != nil {
			_ = s.journal.Close()
		}
		return nil, err
	}
	return s, nil
}

func (s *Server) closePools() {
	for _, pool := range []*pgxpool.Pool{s.pool, s.catalog} {
		if pool != nil {
			pool.Close()
		}
	}
}

func (s *Server) begin(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("snowsim: connecting to Postgres: %w", err)
	}
	if err := s.install(ctx); err != nil {
		return err
	}
	var err error
	if s.translator = s.opts.plain; s.translator == nil {
		s.translator, err = translate.New(ctx, s, translate.Options{Denied: s.opts.Denied, Contract: s.opts.Contract})
	}
	if err != nil {
		return fmt.Errorf("snowsim: preparing the translator: %w", err)
	}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	for _, b := range seed {
		s.salt = s.salt<<8 | uint64(b)
	}
	var listen net.ListenConfig
	if s.listener, err = listen.Listen(ctx, "tcp", s.opts.Listen); err != nil {
		return fmt.Errorf("snowsim: listening: %w", err)
	}
	stages, err := s.stages.serve(ctx, s.ctx, s.listener.Addr(), s.faultyStages)
	if err != nil {
		_ = s.listener.Close()
		return err
	}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 30 * time.Second,
		BaseContext: func(net.Listener) context.Context { return s.ctx }}
	s.running.Add(3)
	go func() {
		defer s.running.Done()
		if err := s.stages.server.ServeTLS(stages, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("the stand-in stopped serving stages")
		}
	}()
	go func() {
		defer s.running.Done()
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("the stand-in stopped serving")
		}
	}()
	go func() {
		defer s.running.Done()
		s.sweep()
	}()
	s.log.Debug().Str("address", s.listener.Addr().String()).Msg("the stand-in serves")
	return nil
}

func (s *Server) install(ctx context.Context) error {
	if s.opts.Admin == "" {
		return nil
	}
	conn, err := pgx.Connect(ctx, s.opts.Admin)
	if err != nil {
		return fmt.Errorf("snowsim: connecting to Postgres as a superuser: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := translate.InstallCasts(ctx, conn); err != nil {
		return fmt.Errorf("snowsim: %w", err)
	}
	return nil
}

// Close ends all sessions and statements and stops serving. Closing twice is safe.
func (s *Server) Close() {
	// Under the lock that launch holds: after this no job begins.
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	_ = s.http.Close()
	_ = s.stages.server.Close()
	s.account.close()
	s.running.Wait()
	s.mu.Lock()
	open := make([]*session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		open = append(open, sess)
	}
	s.mu.Unlock()
	for _, sess := range open {
		s.end(sess)
	}
	s.closePools()
	if s.journal != nil {
		if err := s.journal.Close(); err != nil {
			s.log.Warn().Err(err).Msg("the stand-in's query history could not be kept")
		}
	}
}

// Addr is the address that the stand-in listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// StageAuthority is the certificate (PEM) of the storage of stages, for clients to trust; GET /snowsim/ca.pem has it
// too.
func (s *Server) StageAuthority() string { return s.stages.authority }

// DSN is a connection string for the first user, with everything a client needs,
// in gosnowflake's grammar. It holds the password.
func (s *Server) DSN() string {
	u := s.opts.Users[0]
	q := url.Values{"account": {s.opts.Account}, "protocol": {"http"}}
	if len(s.opts.Warehouses) > 0 {
		q.Set("warehouse", s.opts.Warehouses[0].Name)
	}
	q.Set("role", DefaultRole)
	return url.UserPassword(u.Name, u.Password).String() + "@" + s.Addr() + "/" + url.PathEscape(s.opts.Database) + "/" +
		url.PathEscape(s.opts.Schema) + "?" + q.Encode()
}

// SetFaults replaces the faults that happen from now on; none ends them.
func (s *Server) SetFaults(list ...Fault) error { return s.faults.set(list) }

// Stats returns what clients did so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	open := len(s.sessions)
	s.mu.Unlock()
	c := &s.counts
	return Stats{
		Logins:      c.logins.Load(),
		Sessions:    open,
		Queries:     c.queries.Load(),
		Renewals:    c.renewals.Load(),
		OAuthTokens: c.oauthTokens.Load(),
		Aborts:      c.aborts.Load(),
		Chunks:      c.chunks.Load(),
		Telemetry:   c.telemetry.Load(),
		Repeated:    c.repeated.Load(),
		Faults:      s.faults.count(),
	}
}

// Postgres implements translate.Host.
func (s *Server) Postgres() *pgxpool.Pool { return s.catalog }

// Warehouses implements translate.Host.
func (s *Server) Warehouses() translate.Warehouses { return s.account }

// History implements translate.Host.
func (s *Server) History() *history.Store { return s.history }

// Now implements translate.Host.
func (s *Server) Now() time.Time { return time.Now().UTC() }

// Roles implements translate.Host.
func (s *Server) Roles() []string {
	return append([]string{"ACCOUNTADMIN", "SYSADMIN", "PUBLIC"}, s.opts.Roles...)
}

// Database implements translate.Host.
func (s *Server) Database() (database, schema string) { return s.opts.Database, s.opts.Schema }

// newQueryID returns an id in Snowflake's form: unique, and ascending within a second.
func (s *Server) newQueryID() [16]byte {
	n := s.queryIDs.Add(1)
	seconds := uint64(time.Now().Unix())
	high := 0x01c0<<48 | (seconds&0xffffffff)<<16 | n>>48&0xffff
	low := s.salt&0xffff<<48 | n&0xffffffffffff
	var id [16]byte
	for i := range 8 {
		id[i], id[8+i] = byte(high>>(56-8*i)), byte(low>>(56-8*i))
	}
	return id
}

func idText(id [16]byte) string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func scaledHistory(o Options) history.Options {
	h := o.History
	if h.Short == 0 {
		h.Short = 500 * time.Millisecond
	}
	h.Lag, h.AggregateLag = time.Duration(float64(h.Lag)/o.TimeScale), time.Duration(float64(h.AggregateLag)/o.TimeScale)
	if h.Short > 0 {
		h.Short = time.Duration(float64(h.Short) / o.TimeScale)
	}
	return h
}
