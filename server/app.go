// Package server is the web server of Loadstone: the Fiber app with its
// middleware, the life of the process's listener, health, metrics and the
// embedded page. Handlers live in api, authentication in auth, sockets in live.
//
// Limits that fasthttp leaves to its user are set here: a request must have
// arrived whole within ReadTimeout, every handler's context has a deadline (a
// client that hangs up does not cancel it), an ordinary answer must be taken
// within WriteTimeout, and downloads renew that bound with every piece. Sockets
// are not closed by fasthttp's shutdown; the hub does it. BodyLimit does not hold
// where bodies are streamed: bodies.go reads them whole and bounded before a handler
// runs, and only once their sender is known; a stranger's only to sign in.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/retention"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	keeping "github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/server/live"
	"github.com/loadstone-db/loadstone/server/oidc"
	"github.com/loadstone-db/loadstone/server/promapi"
)

// Options are what a server is made of.
type Options struct {
	// Addr is where to listen, "127.0.0.1:8080" when empty. Port 0 takes a free one.
	Addr string
	// SessionIdle ends a browser's session that was not used for so long; 0 keeps it until it expires.
	SessionIdle time.Duration
	// PublicURL is the address under which browsers reach the server, for the
	// sign-in link; empty means the listener's own.
	PublicURL string
	// SecurityContact is whom to tell of a weakness of this server, a URI; "" serves no security.txt.
	SecurityContact string
	// TLS is what the listener speaks TLS with; nil is plain HTTP.
	TLS *tls.Config
	// Proxies are believed their X-Forwarded-* headers.
	Proxies httpx.Proxies
	// Hosts are the names that the server may be asked for by; those of loopback when it is left empty.
	Hosts httpx.Hosts

	// OIDC signs users in by a provider; nil where there is none.
	OIDC *oidc.Options

	Runs    keeping.Runs
	Store   keeping.Store
	Files   keeping.Files
	Plugins keeping.Plugins
	// Drivers tell the secrets of connection strings; of a driver that is not among
	// them, connections are not shown.
	Drivers map[string]target.Driver
	// Matrices runs one workload on several targets; nil where that is not to be had.
	Matrices keeping.Matrices
	// Schedules start runs by themselves; nil where nothing does.
	Schedules keeping.Schedules
	// Tables are the derived tables; nil where there are none.
	Tables keeping.Tables
	// Streams carries statements of the catalog of streams out; nil where there is none.
	Streams keeping.Coordinator
	// Telemetry answers PromQL; nil where there are no segments to ask.
	Telemetry promapi.Telemetry
	// Roster is the nodes with their history; nil where that is not to be had.
	Roster keeping.Nodes
	// Scaling says how many nodes the demand wants; nil where nobody asks.
	Scaling keeping.NodeDemandRuns
	// Destinations are the systems that what happens to runs is sent to.
	Destinations []delivery.NamedSink
	// Notifier tell how runs ended; nil tells nobody.
	Notifier *notify.Notifier
	// Settings are what admins decide; needed with Notices.
	Settings store.Settings
	// Retention deletes runs by themselves; nil where nothing does. It needs Settings.
	Retention *retention.Janitor
	// Prices is the price list; nil where costs are reckoned with the one that is built in.
	Prices *cost.Source
	// NodeAccess decides who is a node; nil where nodes cannot join.
	NodeAccess keeping.NodeAccess
	// Preflight plans a run, with trial by executing what it would write and undoing it; PreflightSample is a value of the
	// type it answers, for the API document.
	Preflight       func(ctx context.Context, s engine.Scenario, trial bool) (any, error)
	PreflightSample any

	// StatementEditor tries statements; nil where that is not to be had.
	StatementEditor keeping.StatementEditor

	// UI holds the built page with index.html at its root; nil or empty shows how to build it.
	UI fs.FS
	// Version is the program's.
	Version string
	// ControlStore is "embedded" or "external".
	ControlStore string
	// Playground tells that the built-in sample database is there.
	Playground bool
	// DataDir is where results are kept; its free space is shown.
	DataDir string
	// Nodes counts the nodes that take new run workers; nil means one.
	Nodes func() int
	// Readiness says whether a run can be created, as far as that is not the control store's; nil: it can.
	Readiness Readiness
	// Collectors are further metrics to show under /metrics.
	Collectors []prometheus.Collector
	Log        zerolog.Logger
	// ShutdownTimeout bounds how long Serve waits for requests and sockets to end (10 s).
	ShutdownTimeout time.Duration
	// ReadTimeout bounds how long a request may take to arrive (15 s).
	ReadTimeout time.Duration
	// UploadTimeout bounds how long an uploaded plugin may take to arrive (60 s).
	UploadTimeout time.Duration
	// PingEvery is how often a socket is pinged, and asked whether it may still be open (20 s).
	PingEvery time.Duration
	// MaxConnections bounds open connections (half of the files that the process may open, at most 16 384).
	MaxConnections int
}

// The limits of the server.
const (
	DefaultAddr    = "127.0.0.1:8080"
	requestTimeout = 30 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 75 * time.Second
	bodyLimit      = keeping.MaxBody // beyond it fasthttp streams, and bodies.go judges
	headerLimit    = 16 << 10
	maxConnections = 16 << 10
)

// Server serves the API, the sockets and the page. Make it with New, bind it
// with Listen, run it with Serve.
type Server struct {
	opts    Options
	app     *fiber.App
	api     *keeping.API
	auth    *auth.Service
	hub     *live.Hub
	metrics *metrics
	started time.Time

	readiness readiness
	watcher   *auth.Watcher

	streams    context.Context
	endStreams context.CancelFunc

	mu       sync.Mutex
	listener net.Listener
	serving  bool
	stopping bool
}

// New builds a server; nothing listens yet.
func New(opts Options) (*Server, error) {
	switch {
	case opts.Runs == nil, opts.Store == nil, opts.Files == nil, opts.Plugins == nil:
		return nil, errors.New("building server: Runs, Store, Files and Plugins are needed")
	}
	if opts.Addr == "" {
		opts.Addr = DefaultAddr
	}
	if opts.Nodes == nil {
		opts.Nodes = func() int { return 1 }
	}
	if opts.ShutdownTimeout <= 0 {
		opts.ShutdownTimeout = 10 * time.Second
	}
	if opts.ReadTimeout <= 0 {
		opts.ReadTimeout = 15 * time.Second
	}
	if opts.UploadTimeout <= 0 {
		opts.UploadTimeout = time.Minute
	}
	if opts.MaxConnections <= 0 {
		opts.MaxConnections = maxConnectionsFor(openFiles())
	}
	s := &Server{opts: opts, started: time.Now()}
	s.streams, s.endStreams = context.WithCancel(context.Background())
	s.auth = auth.New(opts.Store, opts.Log)
	s.auth.SessionIdle = opts.SessionIdle
	s.hub = live.NewHub(live.Options{Source: opts.Runs, PingInterval: opts.PingEvery, Log: opts.Log})
	s.metrics = newMetrics(s)
	page, err := newStatic(opts.UI)
	if err != nil {
		s.endStreams()
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	s.app = fiber.New(fiber.Config{
		AppName: "Loadstone", DisableStartupMessage: true,
		Immutable: true, CaseSensitive: true,
		BodyLimit: bodyLimit, ReadBufferSize: headerLimit, Concurrency: maxConnections,
		ReadTimeout: opts.ReadTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ErrorHandler: s.onError, DisableDefaultContentType: true,
		StreamRequestBody: true, DisablePreParseMultipartForm: true,
	})
	guard := &auth.Guard{Service: s.auth, PublicURL: opts.PublicURL, Public: s.isPublic}
	s.app.Use(
		trimSlashes,
		s.observe,
		s.recoverPanic,
		secureHeaders,
		s.drainBody,
		s.resolveClient,
		s.auditMiddleware,
		guard.Handle,
		s.markAuthenticated,
		s.readBody,
		compress,
	)
	s.app.Get("/healthz", s.healthz)
	s.app.Get("/readyz", s.readyz)
	s.app.Get("/metrics", s.metrics.handler())
	if opts.SecurityContact != "" {
		s.app.Get(securityTextPath, s.securityText)
	}
	s.api = keeping.Register(s.app, keeping.Services{
		Runs:            opts.Runs,
		Store:           opts.Store,
		Files:           opts.Files,
		Plugins:         opts.Plugins,
		Matrices:        opts.Matrices,
		Nodes:           opts.Roster,
		Preflight:       opts.Preflight,
		PreflightSample: opts.PreflightSample,
		Secrets:         target.NewSecrets(opts.Drivers),
		Info:            s.info,
		URL:             s.URL,
		SignInLink:      s.SignInLink,
		Auth:            s.auth,
		Guard:           guard,
		Hub:             s.hub,
		Log:             opts.Log,
		Streams:         s.streams,
		UploadFor:       opts.UploadTimeout,
		Version:         opts.Version,
		Provider:        providerInfo(opts.OIDC),
		RegisterMore:    s.registerHandlers(),
	})
	s.watcher = auth.NewWatcher(s.api.AuditLog(), s.api.Operation, auth.ReadsByPost)
	if opts.Telemetry != nil {
		promapi.Register(s.app, opts.Telemetry, opts.Version, s.longLived())
	}
	s.app.Use(s.fallback(page))
	s.refuseUnknownMethods()
	return s, nil
}

// registerHandlers are those of other packages.
func (s *Server) registerHandlers() []func(*keeping.API) {
	more := []func(*keeping.API){keeping.RegisterUser, keeping.RegisterAuditLog, keeping.RegisterStopAll}
	if s.opts.Schedules != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterSchedules(a, s.opts.Schedules) })
	}
	if s.opts.Tables != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterTable(a, s.opts.Tables) })
	}
	if s.opts.Streams != nil {
		more = append(more, func(a *keeping.API) {
			keeping.RegisterStream(a, s.app, s.opts.Streams, s.longLived())
		})
	}
	if s.opts.NodeAccess != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterNodeAccess(a, s.opts.NodeAccess) })
	}
	if s.opts.Scaling != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterNodeDemand(a, s.opts.Scaling, s.opts.Tables) })
	}
	if s.opts.Notifier != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterNotifications(a, s.opts.Notifier, s.opts.Settings) })
	}
	if k := s.opts.Retention; k != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterRetention(a, k, s.opts.Settings) })
	}
	if p := s.opts.Prices; p != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterPrices(a, p) })
	}
	more = append(
		more,
		func(a *keeping.API) { keeping.RegisterTelemetryExport(a, s.opts.Destinations) },
		keeping.RegisterExecutions,
		keeping.RegisterWhy,
		keeping.RegisterParameters,
		keeping.RegisterLiveControl,
		keeping.RegisterStatementBreakdown,
		func(a *keeping.API) { keeping.RegisterConnectionUsage(a, s.opts.Streams) },
		keeping.RegisterRunViews,
		func(a *keeping.API) {
			maker := keeping.NewReportMaker(s.opts.Runs, s.opts.Store, s.opts.UI, s.opts.Version)
			maker.Kinds = keeping.StatementBreakdownReader(a)
			keeping.RegisterReport(a, s.app, maker, s.opts.Store)
		},
	)
	if s.opts.StatementEditor != nil {
		more = append(more, func(a *keeping.API) { keeping.RegisterStatementEditor(a, s.opts.StatementEditor) })
	}
	if s.opts.OIDC != nil {
		more = append(more, func(a *keeping.API) { oidc.Register(s.app, a, *s.opts.OIDC, s.opts.Log) })
	}
	return more
}

// providerInfo is what the button of a sign-in provider says.
func providerInfo(o *oidc.Options) string {
	if o == nil {
		return ""
	}
	return cmp.Or(o.Name, "single sign-on")
}

// auditMiddleware has what is asked for noted; the watcher is there before anything is served.
func (s *Server) auditMiddleware(c *fiber.Ctx) error { return s.watcher.Handle(c) }

// isPublic tells what an anonymous caller may ask for: the page, which holds no
// data, the probes, and the exchange of a sign-in token. Everything else that is
// ever added under /api, /ws, /metrics and /prometheus needs a caller.
func (s *Server) isPublic(method, path string) bool {
	if keeping.IsPublic(method, path) || s.opts.OIDC != nil && oidc.IsPublic(method, path) {
		return true
	}
	return !strings.HasPrefix(path, "/api") && !strings.HasPrefix(path, "/ws") && !strings.HasPrefix(path, "/metrics") &&
		!strings.HasPrefix(path, promapi.Prefix+"/")
}

// Listen binds the address and returns it, with the port that was taken. Twice is safe.
func (s *Server) Listen() (addr string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.opts.Addr)
		if err != nil {
			return "", fmt.Errorf("listening: %w", err)
		}
		s.listener = &connLimiter{Listener: ln, max: s.opts.MaxConnections}
		if s.opts.TLS != nil {
			s.listener = httpx.Listener(s.listener, s.opts.TLS, s.opts.Hosts)
		}
	}
	return s.listener.Addr().String(), nil
}

// URL is the address to open in a browser; Listen has to have succeeded, or it is what was asked for.
func (s *Server) URL() string {
	if s.opts.PublicURL != "" {
		return strings.TrimRight(s.opts.PublicURL, "/")
	}
	s.mu.Lock()
	addr := s.opts.Addr
	if s.listener != nil {
		addr = s.listener.Addr().String()
	}
	s.mu.Unlock()
	scheme := "http://"
	if s.opts.TLS != nil {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return scheme + addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + net.JoinHostPort(host, port)
}

// SignInLink makes a one-time link that signs its first user in as the first
// admin, who is made if there is none. It is valid for auth.SignInTTL.
func (s *Server) SignInLink(ctx context.Context) (string, error) {
	secret, err := s.auth.CreateSignIn(ctx)
	if err != nil {
		return "", fmt.Errorf("making a sign-in link: %w", err)
	}
	return s.URL() + "/signin?token=" + secret, nil
}

// supervisor judges what goes on for users again when their rights change.
func (s *Server) supervisor() *auth.Supervisor {
	authorizer := auth.Authorizer{Store: s.opts.Store}
	work := []auth.Work{&auth.RunsWork{Authorizer: authorizer, Runs: s.opts.Runs, Log: s.opts.Log},
		&auth.EnrichmentsWork{Authorizer: authorizer, Runs: s.opts.Runs, Log: s.opts.Log}}
	if s.opts.Streams != nil {
		work = append(work, auth.QueriesWork{Authorizer: authorizer, Queries: s.opts.Streams})
	}
	if s.opts.Tables != nil {
		work = append(work, auth.TablesWork{Authorizer: authorizer, Tables: s.opts.Tables},
			auth.LoginsWork{Authorizer: authorizer, Logins: s.opts.Tables})
	}
	if s.opts.Schedules != nil {
		work = append(work, auth.SchedulesWork{Authorizer: authorizer, Schedules: s.opts.Schedules})
	}
	if s.opts.Notifier != nil {
		work = append(work, auth.HooksWork{Authorizer: authorizer, Hooks: s.opts.Notifier})
	}
	return &auth.Supervisor{Store: s.opts.Store, Open: s.auth, Work: work, Log: s.opts.Log}
}

// longLived are answers that go on: as long as the server, their client, and who it is signed in as.
func (s *Server) longLived() httpx.Downloads {
	return httpx.Downloads{Life: s.streams, Log: s.opts.Log, Ends: s.auth.OnRequestEnd}
}

// Operator makes the secret by which the operator of this process, who can read its
// files, makes sign-in links and tokens.
func (s *Server) Operator() string { return s.auth.Operator() }

// SignedIn reports whether any browser has a session.
func (s *Server) SignedIn(ctx context.Context) (bool, error) {
	sessions, err := s.opts.Store.ListTokens(ctx, "", auth.KindSession)
	if err != nil {
		return false, fmt.Errorf("listing sessions: %w", err)
	}
	return len(sessions) > 0, nil
}

// Serve answers requests until ctx ends, then closes sockets, ends downloads and
// waits for handlers, for ShutdownTimeout at most. It binds first if Listen was
// not called. A server serves once; a second call returns an error.
func (s *Server) Serve(ctx context.Context) error {
	if _, err := s.Listen(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.serving || s.stopping {
		s.mu.Unlock()
		return errors.New("serving: the server has been started or closed before")
	}
	s.serving = true
	s.mu.Unlock()

	go keeping.PruneAuditLog(s.streams, s.opts.Store, time.Hour, func(err error) {
		s.opts.Log.Warn().Err(err).Msg("old lines of the audit log could not be removed")
	})
	supervised := make(chan struct{})
	go func() { defer close(supervised); s.supervisor().Run(s.streams) }()
	defer func() { <-supervised }() // it ends with the streams
	scheduling, endScheduling := context.WithCancel(ctx)
	scheduled := make(chan struct{})
	go func() {
		defer close(scheduled)
		if s.opts.Schedules != nil {
			s.opts.Schedules.Run(scheduling, s.api.ScheduleStarter(s.opts.Schedules))
		}
	}()
	defer func() { endScheduling(); <-scheduled }() // also where the listener ends by itself
	failed := make(chan error, 1)
	go func() { failed <- s.app.Listener(s.listener) }()
	select {
	case err := <-failed:
		s.Close()
		if err == nil {
			err = errors.New("the listener ended by itself")
		}
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	err := s.shutdown()
	// A shutdown that came before fasthttp had begun to accept found nothing to close.
	_ = s.listener.Close()
	if lerr := <-failed; err == nil && lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = lerr
	}
	return err
}

// Close frees a server that is not serving any more, or never did. Twice is safe.
func (s *Server) Close() {
	s.mu.Lock()
	s.stopping = true
	ln, serving := s.listener, s.serving
	s.mu.Unlock()
	if ln != nil && !serving {
		_ = ln.Close()
	}
	s.endStreams()
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.ShutdownTimeout)
	defer cancel()
	_ = s.hub.Close(ctx)
}

func (s *Server) shutdown() error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.ShutdownTimeout)
	defer cancel()
	var sockets sync.WaitGroup
	sockets.Go(func() { _ = s.hub.Close(ctx) })
	// Downloads get half of the time to finish; what is left then is cut.
	cut := time.AfterFunc(s.opts.ShutdownTimeout/2, s.endStreams)
	err := s.app.ShutdownWithContext(ctx)
	cut.Stop()
	s.endStreams()
	sockets.Wait()
	if err != nil {
		return fmt.Errorf("shutting down: requests were still open: %w", err)
	}
	return nil
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

func (s *Server) info(context.Context) keeping.Info {
	return keeping.Info{
		Version: s.opts.Version, GoVersion: runtime.Version(), StartedAt: engine.At(s.started),
		DataDirFreeBytes: freeBytes(s.opts.DataDir), ControlStore: s.opts.ControlStore, Playground: s.opts.Playground,
		Nodes: s.opts.Nodes(), ConnectedBrowsers: s.hub.Clients(),
	}
}
