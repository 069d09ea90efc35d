// Package wiring puts the parts of one process together by hand: control store, plugins, drivers,
// node and orchestrator, for a server as for a run of the command line.
package wiring

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	clusternodes "github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/outbound/otlp"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/system"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/replay"
	"github.com/loadstone-db/loadstone/plugins/bundled"
	pluginshost "github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/library"
	"github.com/loadstone-db/loadstone/plugins/quarantine"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/objects/s3store"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
	"github.com/loadstone-db/loadstone/storage/results"
)

// StoreFlags say where state is kept; serve and run share them.
type StoreFlags struct {
	DatabaseFlags
	DataDir     string   `placeholder:"DIR" env:"LOADSTONE_DATA_DIR" help:"Directory of executions, keys and the embedded Postgres (default: the system's data directory)."`
	DiskReserve int64    `name:"disk-reserve" placeholder:"MB" env:"LOADSTONE_DISK_RESERVE" help:"MB of the disk that recording leaves free, -1 for none (default: the smaller of 5 % and 5 GB, at least 500)."`
	Results     string   `placeholder:"DIR|s3://BUCKET/PREFIX" env:"LOADSTONE_RESULTS" help:"Where executions are stored: a folder, or s3://BUCKET/PREFIX?endpoint=URL&region=REGION with credentials from the environment (default: results in the data directory)."`
	Prices      string   `placeholder:"FILE" env:"LOADSTONE_PRICES" help:"Price list for costs (default: the one saved under Settings, else prices.yaml in the data directory, else the built-in one)."`
	Plugin      []string `placeholder:"FILE" sep:"none" env:"LOADSTONE_PLUGINS" help:"Load this plugin (.wasm) as well as the bundled ones. Repeatable."`

	ResultsCache int64 `name:"results-cache" placeholder:"MB" env:"LOADSTONE_RESULTS_CACHE" help:"MB of S3 results cached in the data directory, -1 for none (default: 2048)."`

	PluginMemory  int64 `name:"plugin-memory" placeholder:"MB" env:"LOADSTONE_PLUGIN_MEMORY" help:"MB for all instances of one plugin, -1 for no limit (default: an eighth of the memory, at least 256)."`
	PluginsMemory int64 `name:"plugins-memory" placeholder:"MB" env:"LOADSTONE_PLUGINS_MEMORY" help:"MB for the instances of all plugins, -1 for no limit (default: a quarter of the memory, at least 512)."`
}

// Options say how the parts are put together.
type Options struct {
	Store StoreFlags
	// Nodes are those that a server has besides its own.
	Nodes NodeFlags
	// Version is this program's.
	Version string
	// Query says where people read results, besides through the server.
	Query QueryFlags
	// Serves is set where connections come from others than who started the process.
	Serves bool
	// MaxLiveRuns is how many live runs one user may have, which a server bounds; 0 means no bound.
	MaxLiveRuns int
	// Traces says where spans are sent; zero is nowhere.
	Traces Tracing
	// Targets are the addresses that may be reached on others' word.
	Targets TargetFlags
	// StreamMemory is what continuous queries and rules may hold.
	StreamMemory StreamMemoryFlags
	// StreamRelease says when a lost node has nothing of a continuous query any more.
	StreamRelease StreamReleaseFlags
	// Out says where metrics of live runs are sent.
	Out ExportFlags
	Log zerolog.Logger
	// Lease is how long runs and matrices stay this server's without a sign of life; 0 is the store's own.
	Lease time.Duration
	// PluginCache is the folder of compiled plugins; empty is that of the data directory.
	PluginCache string
	// Enrichment says how a history is asked; zero means the default.
	Enrichment enrich.Policy
}

// Services are the parts of one process, wired together.
type Services struct {
	DataDir string
	// reserve is what recording leaves free, in bytes, as record.Reserve takes it.
	reserve int64
	// owner names the data directory in the leases of its runs.
	owner    string
	options  Options
	Embedded *embedded.Postgres // nil with an external control store
	Store    *storagepostgres.Store
	// hub has the continuous queries that read what the product tells.
	hub *system.Hub
	// streamMemory is what they, and rules, may hold.
	streamMemory memory.Limits
	// recorded tells that, and rules of runs, what run workers of this process record.
	recorded *executions.Fanout
	// watched is the same for the orchestrator.
	watched *observedStore
	Results *results.Results
	// ResultsAt says where they are, without secrets.
	ResultsAt string
	host      *pluginshost.Host
	// modules are the plugins that are not in the store, by hash.
	modules map[string]func() ([]byte, error)
	Plugins *library.Library
	Runs    *run.Service
	// Members decide who is a node.
	Members  *pki.Members
	Matrices *matrix.Service
	// Roster is the nodes as operators see them.
	Roster *clusternodes.Admin
	// localNode is the node in this process, nil without one.
	localNode *worker.Node
	// Metrics takes what happens between the server and its nodes.
	Metrics *metrics.Server
	// localMetrics takes what happens on that node, nil without one.
	localMetrics *metrics.Node
	// series reads those of runs in this process, from tables once they are open.
	series *promql.Evaluator
	tables atomic.Pointer[Tables]
	// liveExport: runs that ask for it are copied to the results connection while they go on.
	liveExport atomic.Bool
	// collectors are metrics of what this process has, and others may not.
	collectors []prometheus.Collector
	// reachable is what may be reached on others' word, and own are databases that nobody reaches on it.
	reachable *egress.Policy
	own       ownDatabases
	// traces sends spans; nil sends none.
	traces  *otlp.Sender
	Drivers map[string]target.Driver
	// relational reads connection strings of Postgres as its driver does.
	relational DSNReader
	prices     *cost.Source
	// Certificate is the generator's accuracy on this machine.
	Certificate *Certificate
	closers     []func(context.Context) error
	Log         zerolog.Logger
}

// onClose runs f at Close; what was opened last is closed first.
func (s *Services) onClose(f func(context.Context) error) { s.closers = append(s.closers, f) }

// Close stops what was opened, in reverse; live runs are stopped first.
func (s *Services) Close(ctx context.Context) error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i](ctx))
	}
	s.closers = nil
	return errors.Join(errs...)
}

// Open opens everything that serve and a local run need. On an error what was opened is closed.
func Open(ctx context.Context, o Options) (_ *Services, err error) {
	flags := o.Store
	url, err := flags.URL()
	if err != nil {
		return nil, err
	}
	dir, err := MakeDataDir(flags.DataDir)
	if err != nil {
		return nil, err
	}
	allowed, err := o.Targets.Policy()
	if err != nil {
		return nil, err
	}
	if err := o.Nodes.Spool.Check(dir, flags.DiskReserve<<20); err != nil {
		return nil, err
	}
	s := &Services{DataDir: dir, reachable: allowed, options: o, Log: o.Log, Drivers: map[string]target.Driver{},
		hub: &system.Hub{Node: protocol.OwnNode}, recorded: &executions.Fanout{},
		streamMemory: o.StreamMemory.Limits()}
	s.recorded.Listen("", s.hub.Observers()) // for as long as the process lives
	s.reserve = flags.DiskReserve << 20
	defer func() {
		if err != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
			defer cancel()
			_ = s.Close(closing)
			if ctx.Err() != nil {
				// Whatever else failed failed because of it.
				err = &engine.Error{Code: engine.CodeUnavailable, Message: "Interrupted while starting.", Cause: err}
			}
		}
	}()
	s.Certificate = OpenCertificate(dir, o.Version, o.Log)
	if s.prices, err = cost.Open(flags.Prices, dir, o.Log); err != nil {
		return nil, err
	}
	keys, err := keyring.Open(filepath.Join(dir, keyring.FileName))
	if err != nil {
		return nil, err
	}
	if s.owner, err = ownerOf(dir); err != nil {
		return nil, err
	}
	// Plugins compile while Postgres starts: both take about a second.
	loaded := make(chan error, 1)
	go func() { loaded <- s.openPlugins(ctx, flags) }() // room: for the one answer
	storeErr := s.openStore(ctx, url, keys)
	if err := errors.Join(storeErr, <-loaded); err != nil {
		return nil, err
	}
	if s.host != nil {
		s.onClose(s.host.Close)
	}
	traces, close, err := o.Traces.Open(ctx, s.owner)
	if err != nil {
		return nil, err
	}
	s.traces = traces
	s.onClose(func(context.Context) error { close(); return nil })
	if err := s.openResults(ctx, flags); err != nil {
		return nil, err
	}
	if err := s.openRuns(ctx, o.Nodes); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Services) openStore(ctx context.Context, url string, keys *keyring.Keyring) (err error) {
	var builtin []store.Connection
	listen, err := s.options.Query.listen(url != "")
	if err != nil {
		return err
	}
	if url != "" {
		// Parts in progress and leases belong to one process, wherever the store is.
		lock, err := embedded.Lock(s.DataDir)
		if err != nil {
			return err
		}
		s.onClose(func(context.Context) error { return lock.Close() })
		if err := s.checkSchema(ctx, url); err != nil {
			return err
		}
	} else {
		s.Embedded, err = embedded.Start(ctx, embedded.Options{DataDir: s.DataDir, Listen: listen, Log: s.Log})
		if err != nil {
			return err
		}
		s.onClose(func(ctx context.Context) error { return s.Embedded.Stop(ctx) })
		url = s.Embedded.DSN(embedded.ControlDatabase)
		builtin = append(builtin, store.Connection{
			Name:   "playground",
			Driver: "postgres",
			FullDSN: secret.New(
				s.Embedded.DSN(embedded.PlaygroundDatabase),
			),
			Description: "Sample database that comes with Loadstone",
		})
		builtin = append(builtin, standIns...)
		// The embedded Postgres belongs to the server: there the schema is applied on start.
		if err := schema.Repair(ctx, url); err != nil {
			return err
		}
	}
	s.openDrivers()
	s.Store, err = storagepostgres.Open(ctx, url, keys, slices.Collect(maps.Values(s.Drivers))...)
	if err != nil {
		return err
	}
	if lost := s.Store.LostKeys(); len(lost) > 0 {
		s.Log.Error().Strs("missing_keys", lost).Strs("keys", keys.IDs()).Msg("this server lacks an earlier key of the " +
			"control store: secrets that were saved under it cannot be read, and its sessions, tokens and links do not " +
			"work; add the key to " + keyring.FileName + " or " + keyring.PreviousKeyEnv + ", or enter the secrets again")
	}
	s.Store.LeaseDuration = s.options.Lease
	s.onClose(func(context.Context) error { s.Store.Close(); return nil })
	// Before anything is sealed, so that a rotation waits for this server too.
	if err := s.announceKeys(ctx); err != nil {
		return err
	}
	s.sealPools(ctx)
	if err := s.openOwn(ctx); err != nil {
		return err
	}
	s.prices.UseStore(s.Store)
	for _, c := range builtin {
		if err := s.Store.EnsureBuiltin(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// sealPools seals in the background what earlier versions have left in plain.
func (s *Services) sealPools(ctx context.Context) {
	sealing, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err := s.Store.SealPools(sealing)
		switch {
		case err != nil && sealing.Err() == nil:
			s.Log.Warn().Err(err).Msg("sampled rows of earlier runs could not be sealed; the next start tries again")
		case n > 0:
			s.Log.Info().Int("runs", n).Msg("sampled rows of earlier runs were sealed")
		}
	}()
	s.onClose(func(context.Context) error { stop(); <-done; return nil })
}

// checkSchema looks at every table before anything is written: a column that is missing
// would otherwise show in the middle of a run.
func (s *Services) checkSchema(ctx context.Context, url string) error {
	err := schema.Compare(ctx, url)
	if engine.HasCode(err, engine.CodeForbidden) {
		s.Log.Warn().Err(err).Msg("the schema's version is current; its tables are not compared, because the database " +
			"user may not do that")
		return nil
	}
	return err
}

// openDrivers makes the drivers. On a server others than its operator write connection strings.
func (s *Services) openDrivers() {
	relational := postgres.NewDriver()
	if s.options.Serves {
		if s.Embedded != nil {
			s.own.set(controlStore, s.sealed(engine.OwnDatabase{}))
		}
		relational = postgres.NewStrictDriver(s.own.all, s.reachable)
	}
	s.relational, _ = relational.(DSNReader)
	for _, driver := range []target.Driver{relational, s.openSnowflake()} {
		s.Drivers[driver.Name()] = driver
	}
}

// sealed adds to what identifies the control store that it is the embedded one, of which only the playground is open.
func (s *Services) sealed(own engine.OwnDatabase) engine.OwnDatabase {
	own.Sealed, own.Socket, own.Guests = true, s.Embedded.SocketDir(), []string{embedded.PlaygroundDatabase}
	return own
}

// openOwn asks what the control store is before anything is dialled on others' word. Who starts a run of the command
// line connects where they like.
func (s *Services) openOwn(ctx context.Context) error {
	if !s.options.Serves {
		return nil
	}
	err := s.own.keep(ctx, controlStore, func(ctx context.Context) (engine.OwnDatabase, error) {
		own, err := s.Store.OwnDatabase(ctx)
		if err == nil && s.Embedded != nil {
			own = s.sealed(own)
		}
		return own, err
	})
	if err == nil {
		err = s.own.learn(ctx, s.Store.ResultsIdentity)
	}
	if err != nil {
		return err
	}
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	followed := make(chan struct{})
	go func() { defer close(followed); s.own.follow(following, s.Store.ResultsIdentity, s.Log) }()
	s.onClose(func(context.Context) error { cancel(); <-followed; return nil })
	return nil
}

// memoryBound is a limit in bytes that a flag gives in MB: 0 leaves it to a share of the
// memory, at least so many MB, and below 0 there is none.
func memoryBound(flag, share, minimum int64) int64 {
	switch {
	case flag > 0:
		return flag << 20
	case flag < 0:
		return 0
	}
	return max(share, minimum<<20)
}

// PluginCache is the folder of compiled plugins of a data directory.
func PluginCache(dataDir string) string { return filepath.Join(dataDir, "wasm-cache") }

// openPlugins registers the bundled plugins, and the user's own after them.
func (s *Services) openPlugins(ctx context.Context, flags StoreFlags) (err error) {
	s.host, s.modules, err = OpenHost(ctx, cmp.Or(s.options.PluginCache, PluginCache(s.DataDir)), flags, s.Log)
	return err
}

// OpenHost opens a host that keeps what it compiles in the folder cache, with the bundled plugins and those of the
// flags; modules are all of them by hash, for nodes that do not have them.
func OpenHost(ctx context.Context, cache string, flags StoreFlags, log zerolog.Logger) (
	_ *pluginshost.Host, modules map[string]func() ([]byte, error), err error) {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, nil, fmt.Errorf("making the plugin cache: %w", err)
	}
	h, err := pluginshost.New(ctx, pluginshost.Options{CacheDir: cache, Program: pluginshost.Program(), Log: log,
		PluginMemory:  memoryBound(flags.PluginMemory, host.Memory()/8, 256),
		PluginsMemory: memoryBound(flags.PluginsMemory, host.Memory()/4, 512)})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = h.Close(context.WithoutCancel(ctx))
		}
	}()
	embedded, err := bundled.Modules()
	if err != nil {
		return nil, nil, err
	}
	infos, err := bundled.Infos()
	if err != nil {
		return nil, nil, err
	}
	modules = map[string]func() ([]byte, error){}
	for name, module := range embedded {
		// What is known need not be compiled before it is used.
		if info, ok := infos[name]; ok && h.Enlist(module, info, true) == nil {
			modules[info.SHA256] = module
			continue
		}
		wasm, err := module()
		if err != nil {
			return nil, nil, err
		}
		info, err := h.Register(ctx, wasm, true)
		if err != nil {
			return nil, nil, fmt.Errorf("loading the bundled plugin %s: %w", name, err)
		}
		modules[info.SHA256] = module
	}
	for _, path := range flags.Plugin {
		wasm, err := terminal.ReadPlugin(path)
		if err != nil {
			return nil, nil, err
		}
		info, err := h.Register(ctx, wasm, false)
		if err != nil {
			return nil, nil, terminal.PluginError(path, err)
		}
		modules[info.SHA256] = func() ([]byte, error) { return wasm, nil }
		log.Info().Str("plugin", info.Name).Str("sha256", info.SHA256).Str("file", path).Msg("plugin loaded")
	}
	return h, modules, nil
}

// openRuns starts the in-process node and the orchestrator. The node outlives
// ctx: runs are stopped by Close, not by the signal that asks for it.
func (s *Services) openRuns(ctx context.Context, nodes NodeFlags) error {
	infos, err := s.host.List(ctx)
	if err != nil {
		return fmt.Errorf("listing the plugins: %w", err)
	}
	for _, info := range infos {
		// What the command line names is there for this process only.
		if !s.host.Bundled(info.SHA256) {
			continue
		}
		if err := s.Store.SavePlugin(ctx, pluginRow(info)); err != nil {
			return fmt.Errorf("registering plugin %s: %w", info.Name, err)
		}
	}
	guard, err := quarantine.New(quarantine.Options{Log: s.Log})
	if err != nil {
		return fmt.Errorf("preparing quarantine: %w", err)
	}
	s.Plugins, err = library.Open(ctx,
		library.Options{
			Host:        s.host,
			Store:       s.Store,
			Dir:         filepath.Join(s.DataDir, "plugins"),
			Quarantine:  guard.Examine,
			Unavailable: snowflakeUnavailable,
			CheckSpace:  func() error { return s.checkDiskSpace("Nothing can be uploaded now") },
			Log:         s.Log,
		})
	if err != nil {
		return fmt.Errorf("opening the plugins: %w", err)
	}
	recordings := &replay.Recordings{Store: s.Store, Executions: s.Results, Plugins: s.Plugins.ByHash()}
	s.openMembers(ctx)
	fixed, own, source, err := s.openNodes(nodes)
	if err != nil {
		return err
	}
	s.openSeries()
	if own != nil {
		s.openLocalNode(ctx, nodes, own, recordings)
	}
	s.Metrics = metrics.NewServer(s.traces.Tracer())
	s.Roster = clusternodes.NewAdmin(clusternodes.AdminOptions{Store: s.Store, Server: s.owner, Log: s.Log})
	s.watched = &observedStore{ControlStore: s.Store, streams: s.hub}
	// Closed after the runs, whose end is told too.
	if err := s.openTelemetryExport(s.options.Out); err != nil {
		return err
	}
	server := runServer{s}
	s.Runs = run.New(run.Options{
		Store: s.watched, Results: s.Results, Plugins: s.Plugins, Drivers: s.Drivers,
		Recordings: recordings, Nodes: fixed, NodeSource: source,
		Content: server, Log: s.Log, Version: s.options.Version,
		TempDir:        filepath.Join(s.DataDir, "scratch"),
		Prices:         s.prices,
		Enrichment:     s.options.Enrichment,
		Owner:          s.owner,
		Shared:         s.Embedded == nil,
		Standalone:     !s.options.Serves,
		MaxLivePerUser: s.options.MaxLiveRuns, WaitForNodes: nodes.WaitForNodes,
		Authorizer:  server,
		Calibration: s.Certificate,
		Disk:        server, ResultsCheck: server,
		CopiesLive: server.CopiesLive,
		Watcher:    s.Roster,
		Metrics:    s.Metrics,
		Network:    server,
		Own:        s.own.all,
		Traces:     s.traces.Tracer(),
		Rules: OpenRules(RuleOptions{Egress: s.reachable, Open: s.Store.OpenURL, Executions: s.recorded,
			Account: s.hub.CPUAccount(), Memory: s.streamMemory, Log: s.Log,
			Fragments: func(id string) protocol.FragmentRunner { return s.Runs.Nodes().Fragments(id) }}),
	})
	s.startRoster(ctx)
	if err := s.Runs.Open(ctx); err != nil {
		return fmt.Errorf("recovering the runs: %w", err)
	}
	s.onClose(s.Runs.Close)
	s.Matrices = matrix.New(matrix.Options{Store: s.Store, Runs: s.Runs, Log: s.Log, Owner: s.owner,
		Authorizer: server, TakesOver: s.options.Serves})
	// Closed before the runs, whose end would otherwise start the next ones.
	s.onClose(s.Matrices.Close)
	if err := s.Matrices.Open(ctx); err != nil {
		return err
	}
	return nil
}

// The loops of runs are measured too.
var _ run.TickMeter = (*metrics.Server)(nil)

// runServer is this server as its runs and their nodes see it.
type runServer struct{ s *Services }

// ReadPlugin reads a plugin that a node wants.
func (r runServer) ReadPlugin(ctx context.Context, sha256 string) ([]byte, error) {
	return r.s.module(ctx, sha256)
}

// Segment opens a segment that a node wants.
func (r runServer) Segment(ctx context.Context, runID, name string) (io.ReadCloser, int64, error) {
	return r.s.Results.SegmentContent(ctx, runID, name)
}

// Authorize is an error when a run that begins now is not for the user any more who started it, or its matrix, before.
func (r runServer) Authorize(ctx context.Context, runID string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return auth.Authorizer{Store: r.s.Store}.RecheckStart(ctx, runID)
}

// CheckSpace is an error while the data directory's disk is down to the reserve.
func (r runServer) CheckSpace(stopped string) error { return r.s.checkDiskSpace(stopped) }

// CheckResults is an error while results cannot be stored: their folder takes no files, or its disk is down to the
// reserve.
func (r runServer) CheckResults() error {
	if s3store.IsAddress(r.s.ResultsAt) {
		return nil
	}
	if err := r.s.Results.CheckWritable(); err != nil {
		return err
	}
	dir := r.s.ResultsAt
	return record.CheckDiskSpace(dir, record.Reserve(dir, r.s.reserve), "No run is created")
}

// checkDiskSpace is an error while the data directory's disk is down to the reserve.
func (s *Services) checkDiskSpace(stopped string) error {
	return record.CheckDiskSpace(s.DataDir, record.Reserve(s.DataDir, s.reserve), stopped)
}

// ControlStore says where the control store is: embedded or external.
func (s *Services) ControlStore() string {
	if s.Embedded != nil {
		return "embedded"
	}
	return "external"
}

// pluginRow is the register's entry of a bundled plugin.
func pluginRow(info plugin.Info) store.Plugin {
	manifest, err := json.Marshal(info.Manifest)
	if err != nil {
		manifest = []byte("{}")
	}
	return store.Plugin{PluginRef: info.PluginRef, Bundled: true, Enabled: true, SizeBytes: info.SizeBytes,
		Manifest: manifest}
}

// EnrichmentOf looks at a run of this process.
func (s *Services) EnrichmentOf(ctx context.Context, runID string) (engine.Enrichment, error) {
	d, err := s.Runs.Detail(ctx, runID)
	if err != nil {
		return engine.Enrichment{}, fmt.Errorf("reading the enrichment of run %s: %w", runID, err)
	}
	return d.Enrichment, nil
}

// Reachability says who reaches a database: the server's own sample database listens on a socket in its
// data directory, and its stand-in opens in this process, under an address that is made up.
func (r runServer) Reachability(dsn secret.Secret) clusternodes.Reachability {
	switch {
	case isStandIn(dsn.Reveal()):
		return clusternodes.FromServerOnly
	case r.s.Embedded != nil && dsn.Reveal() == r.s.Embedded.DSN(embedded.PlaygroundDatabase):
		return clusternodes.FromSameMachine
	}
	return clusternodes.FromAnyNode
}

// Collectors are the metrics of the process.
func (s *Services) Collectors() []prometheus.Collector {
	all := append([]prometheus.Collector{s.Metrics, metrics.NewNodes(s.Roster.Nodes), s.Runs.Admission()}, s.collectors...)
	if s.localMetrics != nil {
		all = append(all, s.localMetrics)
	}
	if s.traces != nil {
		all = append(all, s.traces)
	}
	return all
}
