package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/plan/dryrun"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
	rootserver "github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/oidc"
	"github.com/loadstone-db/loadstone/storage/results"
	"github.com/loadstone-db/loadstone/ui"
)

// The server asks the record for these abilities while it runs, and goes without those that it lacks.
var _ interface {
	api.CSVWriter
	api.ExecutionFinder
	api.ParameterReader
	compare.Segments
} = (*results.Results)(nil)

const defaultListen = "127.0.0.1:8080"

type serveCommand struct {
	Listen   string `placeholder:"HOST:PORT" env:"LOADSTONE_LISTEN" help:"Address of the page and the API (default: ${default_listen}; when that port is taken, a free one)."`
	LiveRuns int    `name:"live-runs" placeholder:"N" default:"8" env:"LOADSTONE_LIVE_RUNS" help:"Maximum live runs of a user; 0 = no limit (default: 8)."`
	RunFirst string `name:"run" placeholder:"TEMPLATE.yaml" help:"Save this template, run it once, and keep serving."`
	HTTPFlags
	SSO OIDCFlags `embed:""`
	wiring.StoreFlags
	wiring.NodeFlags
	wiring.TraceFlags
	wiring.ExportFlags
	wiring.TargetFlags
	wiring.RefreshFlags
	wiring.CalibrateFlag
	wiring.StreamMemoryFlags
	wiring.StreamReleaseFlags
	tables  *wiring.Tables  `kong:"-"`
	streams *wiring.Streams `kong:"-"`
}

func (c *serveCommand) Run(e *terminal.Env) error {
	flags, listen := c.StoreFlags, cmp.Or(c.Listen, defaultListen)
	if flags.DataDir == "" {
		flags.DataDir = wiring.DefaultDataDir()
	}
	var first *initialRun
	if c.RunFirst != "" {
		var err error
		if first, err = readInitialRun(c.RunFirst); err != nil {
			return err
		}
	}
	provider, err := c.SSO.Options()
	if err != nil {
		return err
	}
	door, err := c.Open(listen, flags.DataDir, e.Log)
	if err != nil {
		return err
	}
	if err := terminal.CheckListen("--listen", c.Listen); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	e.Log.Info().Msg("starting: the first time plugins are compiled, which takes some seconds")
	s, err := wiring.Open(e.Ctx, wiring.Options{Store: flags, Nodes: c.NodeFlags, Version: version, Serves: true,
		MaxLiveRuns: c.LiveRuns, Query: c.QueryFlags, Traces: c.ForService("loadstone-server", e), Out: c.ExportFlags,
		Targets: c.TargetFlags, StreamMemory: c.StreamMemoryFlags,
		StreamRelease: c.StreamReleaseFlags, Log: e.Log, Lease: e.Lease, PluginCache: e.PluginCache})
	if err != nil {
		return err
	}
	var once sync.Once
	closeAll := func() (err error) {
		once.Do(func() {
			closing, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			err = s.Close(closing)
		})
		return err
	}
	defer func() { _ = closeAll() }()
	if c.tables, err = s.OpenTables(e.Ctx, c.RefreshFlags); err != nil {
		return err
	}
	if c.streams, err = s.OpenStreams(e.Ctx); err != nil {
		return err
	}
	srv, address, err := c.listen(e, s, door, provider)
	if err != nil {
		return err
	}
	// The server's own life: it ends on the signal, after the progress is told.
	serving := make(chan error, 1)
	// room: one answer, and the channel holds one.
	go func() { serving <- srv.Serve(e.Ctx) }()
	// First: a link makes those before it useless, also one that the operator has just asked for.
	link, how, err := signInURL(e.Ctx, srv, s.DataDir)
	if err != nil {
		return err
	}
	forget, err := door.WriteOperatorFile(s.DataDir, address, srv.Operator())
	if err != nil {
		return err
	}
	defer forget()
	end, err := door.Start(e.Ctx, address)
	if err != nil {
		return err
	}
	defer end()
	e.Log.Info().Str("address", address).Str("data_dir", s.DataDir).Str("control_store", s.ControlStore()).
		Str("results", s.ResultsAt).Msg("serving")
	_, _ = fmt.Fprintf(e.Stdout, "\nLoadstone is ready.\n  Open:  %s\n         (%s)\n\n", terminal.Bold(e.Stdout, link),
		how)
	for _, note := range door.Notes {
		_, _ = fmt.Fprintf(e.Stdout, "  %s\n", note)
	}
	background, endBackground := context.WithCancel(e.Ctx)
	var certifying sync.WaitGroup
	defer func() { endBackground(); certifying.Wait() }()
	switch {
	case c.Calibrate == "off":
	case first != nil:
		s.Certificate.EnsureBeforeRun(e, false)
	default:
		certifying.Go(func() { s.Certificate.EnsureInBackground(background, s.Runs.Busy) })
	}
	if first != nil {
		if err := first.run(e, s, srv.URL()); err != nil {
			_, _ = fmt.Fprintf(e.Stderr, "The first run could not be made: %v\n", err)
		}
		if e.Ctx.Err() == nil {
			_, _ = fmt.Fprintf(e.Stdout, "\nServing on; stop with Ctrl-C.  Open:  %s\n", terminal.Bold(e.Stdout, link))
		}
	}
	err = <-serving
	if closeErr := closeAll(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	return err
}

// signInURL is the address to open, and how to sign in there: the link that does is
// printed as long as nobody has signed in, and later when the operator asks for it.
func signInURL(ctx context.Context, srv *rootserver.Server, dir string) (link, how string, err error) {
	signedIn, err := srv.SignedIn(ctx)
	if err != nil {
		return "", "", err
	}
	if signedIn {
		return srv.URL(), "for a sign-in link: loadstone signin --data-dir " + dir, nil
	}
	if link, err = srv.SignInLink(ctx); err != nil {
		return "", "", fmt.Errorf("making the sign-in link: %w", err)
	}
	return link, "this link signs you in once, within an hour; loadstone signin prints another", nil
}

// listen binds the address; the default one gives way when its port is taken.
func (c *serveCommand) listen(
	e *terminal.Env,
	s *wiring.Services,
	door *HTTPEndpoint,
	provider *oidc.Options,
) (*rootserver.Server,
	string, error) {
	address := c.Listen
	if address == "" {
		address = defaultListen
		if probe, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address); errors.Is(err,
			syscall.EADDRINUSE) {
			s.Log.Info().Str("address", address).Msg("the default port is taken: a free one is used")
			address = "127.0.0.1:0"
		} else if err == nil {
			_ = probe.Close()
		}
	}
	options := rootserver.Options{
		Addr:            address,
		PublicURL:       door.PublicURL,
		SessionIdle:     c.SessionIdle,
		SecurityContact: c.SecurityContact,
		OIDC:            provider,
		TLS:             door.TLS,
		Proxies:         door.Proxies,
		Hosts:           door.Hosts,
		Runs:            s.Runs,
		Matrices:        s.Matrices,
		Roster:          s.Roster,
		Nodes:           func() int { return acceptingNodes(s.Roster.Nodes()) },
		Readiness:       s.Runs,
		NodeAccess:      s.Members,
		Scaling:         s.Runs.Admission(),
		Destinations:    s.Destinations(),
		Store:           s.Store,
		Files:           s.Results,
		Plugins:         s.Plugins,
		Drivers:         s.Drivers,
		Preflight: func(ctx context.Context, scenario engine.Scenario, trial bool) (any, error) {
			return s.Runs.Preflight(ctx, scenario, trial)
		},
		PreflightSample: enginerun.Preflight{},
		StatementEditor: &dryrun.Runner{Deps: prepare.Deps{Plugins: s.Plugins, Drivers: s.Drivers,
			Connections: s.Store}},
		UI:           ui.Dist(),
		Version:      version,
		ControlStore: s.ControlStore(),
		Playground:   s.Embedded != nil,
		DataDir:      s.DataDir,
		PingEvery:    e.PingInterval,
		Log:          s.Log,
	}
	options.Retention, options.Prices = s.OpenRetention(), s.Prices()
	options.Collectors = s.Collectors()
	if c.streams != nil {
		options.Streams = c.streams
	}
	if c.tables != nil {
		options.Tables, options.Telemetry = c.tables, c.tables.Telemetry()
	}
	var srv *rootserver.Server
	options.Notifier, options.Settings = s.OpenNotifications(func() string {
		if srv == nil { // a run that ends while the server starts
			return door.PublicURL
		}
		return srv.URL()
	}), s.Store
	options.Schedules = s.OpenSchedules()
	var err error
	srv, err = rootserver.New(options)
	if err != nil {
		return nil, "", err
	}
	bound, err := srv.Listen()
	if err != nil {
		return nil, "", terminal.ListenError("--listen", address, err)
	}
	return srv, bound, nil
}

// acceptingNodes counts the nodes that take new run workers.
func acceptingNodes(nodes []nodes.NodeInfo) (n int) {
	for _, v := range nodes {
		if v.AcceptingWork {
			n++
		}
	}
	return n
}

// initialRun is the template of serve --run.
type initialRun struct {
	scenario engine.Scenario
	source   string
}

func readInitialRun(path string) (*initialRun, error) {
	source, err := terminal.ReadBounded("The template", path, maxTemplate)
	if err != nil {
		return nil, err
	}
	scenario, err := template.Parse(source)
	if err != nil {
		return nil, err
	}
	return &initialRun{scenario: scenario, source: string(source)}, nil
}

// run saves the template (once), makes a run of it and shows it to the end.
func (f *initialRun) run(e *terminal.Env, s *wiring.Services, base string) error {
	saved, err := s.Store.TemplateByName(e.Ctx, f.scenario.Name)
	if errors.Is(err, store.ErrNotFound) {
		saved, err = s.Store.CreateTemplate(e.Ctx, store.Template{
			Name: f.scenario.Name, Description: f.scenario.Description, Config: f.scenario, Source: f.source, CreatedBy: "serve",
		})
	}
	if err != nil {
		return fmt.Errorf("saving the template: %w", err)
	}
	scenario := f.scenario
	scenario.TemplateID, scenario.TemplateName = saved.TemplateID, saved.Name
	if scenario.Matrix != nil {
		return f.matrix(e, s, base, scenario)
	}
	run, err := s.Runs.Create(e.Ctx, scenario, engine.Actor{Name: "serve"})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Stdout, "Running %q once. Live on the page:  %s/runs/%s\n\n", f.scenario.Name, base, run.RunID)
	summary, err := follow(e, s, run.RunID, false, func(ctx context.Context) error {
		_, err := s.Runs.Start(ctx, run.RunID, "serve")
		return err
	})
	if err != nil {
		return err
	}
	return report.Summary(e.Stdout, summary)
}

// matrix runs a template with several targets once, and shows it to the end.
func (f *initialRun) matrix(e *terminal.Env, s *wiring.Services, base string, scenario engine.Scenario) error {
	m, err := s.Matrices.Create(e.Ctx, scenario, engine.Actor{Name: "serve"})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Stdout, "Running %q once, on %d targets. Live on the page:  %s/matrix/%s\n\n", f.scenario.Name,
		len(m.Runs), base, m.MatrixID)
	if _, err := s.Matrices.Start(context.WithoutCancel(e.Ctx), m.MatrixID, "serve"); err != nil {
		return err
	}
	where := localMatrix{s, m.MatrixID}
	if err := (&runCommand{}).followMatrix(e, where); err != nil {
		return err
	}
	result, err := where.report(context.WithoutCancel(e.Ctx))
	if err != nil {
		return err
	}
	return report.Matrix(e.Stdout, result)
}
