// This part is loadstone worker, the command by which a machine becomes a node: who it is to
// servers, and its life from the first listening to the last part that is handed over.

package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// WorkerCommand is loadstone worker.
type WorkerCommand struct {
	Listen    string        `default:"127.0.0.1:9090" placeholder:"HOST:PORT" env:"LOADSTONE_WORKER_LISTEN" help:"Address that servers dial (default: 127.0.0.1:9090)."`
	DataDir   string        `required:"" placeholder:"FOLDER" env:"LOADSTONE_DATA_DIR" help:"Folder of the spool, the node's identity and compiled plugins."`
	Capacity  int           `placeholder:"N" env:"LOADSTONE_WORKER_CAPACITY" help:"Maximum connections across runs (0 = by cores and memory, -1 = unlimited)."`
	Metrics   string        `name:"metrics-listen" placeholder:"HOST:PORT" env:"LOADSTONE_WORKER_METRICS_LISTEN" help:"Address of /metrics, /livez and /readyz over plain HTTP, such as 127.0.0.1:9091 (default: none)."`
	Drain     time.Duration `default:"120s" placeholder:"TIME" help:"How long run workers may continue after SIGTERM (default: 120s); handing over the record takes up to 30s more."`
	Cert      string        `placeholder:"FILE" env:"LOADSTONE_WORKER_CERT" help:"Certificate of the node, PEM."`
	Key       string        `placeholder:"FILE" env:"LOADSTONE_WORKER_KEY" help:"Its private key, PEM."`
	ClientCA  string        `name:"client-ca" placeholder:"FILE" env:"LOADSTONE_WORKER_CLIENT_CA" help:"PEM file of the authority of the servers' certificates; servers must have one then."`
	TokenFile string        `placeholder:"FILE" env:"LOADSTONE_WORKER_TOKEN_FILE" help:"File with the token that servers must present."`

	Spool       wiring.SpoolFlags       `embed:""`
	DiskReserve int64                   `name:"disk-reserve" placeholder:"MB" env:"LOADSTONE_DISK_RESERVE" help:"MB of the disk that recording leaves free, -1 for none (default: the smaller of 5 % and 5 GB, at least 500)."`
	Refresh     wiring.RefreshNodeFlags `embed:""`
	wiring.StreamMemoryFlags
	wiring.TraceFlags
	wiring.TargetFlags

	// ContactLimit is less than it must be in tests only, which have not the time.
	ContactLimit time.Duration `hidden:"" default:"60s" help:"How long load continues without contact to the run's owner, at most 60s."`
	Join         *string       `placeholder:"TOKEN" env:"LOADSTONE_JOIN" help:"Join token of loadstone node token: prefer LOADSTONE_JOIN or --join-file."`
	JoinFile     string        `placeholder:"FILE" env:"LOADSTONE_JOIN_FILE" help:"File with the token."`
	Insecure     bool          `env:"LOADSTONE_WORKER_INSECURE" help:"Accept remote servers without TLS: anybody on the network can read the traffic."`
}

// Run serves until a signal comes, and what is in flight has ended.
func (c *WorkerCommand) Run(e *terminal.Env) error {
	if err := c.checkEmptySecrets(); err != nil {
		return err
	}
	security, err := c.security()
	if err != nil {
		return err
	}
	dir, err := c.makeDataDir()
	if err != nil {
		return err
	}
	if err := c.Spool.Check(dir, c.DiskReserve<<20); err != nil {
		return err
	}
	lock, err := embedded.Lock(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	id, err := nodeID(dir)
	if err != nil {
		return err
	}
	identity, err := c.identity(e, dir, id)
	if err != nil {
		return err
	}
	plugins, _, err := wiring.OpenHost(e.Ctx, cmp.Or(e.PluginCache, wiring.PluginCache(dir)), wiring.StoreFlags{}, e.Log)
	if err != nil {
		return err
	}
	defer func() { _ = plugins.Close(context.Background()) }()
	allowed, err := c.Policy()
	if err != nil {
		return err
	}
	drivers := workerDrivers(allowed)
	fetched := &fetchedPlugins{Host: plugins}
	streams, err := wiring.OpenStreamNode(
		wiring.StreamNodeOptions{ID: id, DataDir: dir, Egress: allowed, Out: e.Stdout, Memory: c.Limits(), Log: e.Log},
	)
	if err != nil {
		return err
	}
	defer streams.Close("the node has ended")
	traces, closeTraces, err := c.ForService("loadstone-worker", e).Open(e.Ctx, id)
	if err != nil {
		return err
	}
	defer closeTraces()
	meters := wiring.NewNodeMetrics(e.Version, traces)
	queries, cache := wiring.OpenQueryWork(id, meters.Node, e.Log)
	node := worker.NewNode(worker.Options{NodeID: id, Version: e.Version, Plugins: fetched, Drivers: drivers,
		Capacity: c.Capacity, ContactLimit: c.ContactLimit, SpoolDir: filepath.Join(dir, "spool"),
		SpoolBytes: c.Spool.Bytes(), Reserve: c.DiskReserve << 20, KeepStored: diskbudget.AcknowledgedFor,
		Meter: meters.Node, Queries: queries, Executions: streams.Executions, Log: e.Log})
	fetched.request = node.RequestPlugin
	meters.Read = node.State
	listener, err := rpc.Listen(e.Ctx,
		rpc.ListenOptions{Address: c.Listen, Security: security, Identity: identity, Version: e.Version,
			Store:   filepath.Join(dir, "node-store"),
			Plugin:  func(ctx context.Context, wasm []byte) error { _, err := plugins.Register(ctx, wasm, false); return err },
			Segment: cache().Put, Fragments: streams.Host,
			Log: e.Log})
	if err != nil {
		node.Close()
		return listenError(c.Listen, err)
	}
	closeMetrics, err := meters.Serve(c.Metrics, node.Ready, e.Log)
	if err != nil {
		node.Close()
		return errors.Join(err, listener.Close())
	}
	defer closeMetrics()
	tables, err := wiring.OpenRefreshNode(c.Refresh, wiring.RefreshNodeOptions{Name: id, DataDir: dir, Node: node,
		Metrics: meters, Log: e.Log})
	if err != nil {
		node.Close()
		return errors.Join(err, listener.Close())
	}
	defer tables.Close()
	announceReady(e, id, dir, listener.Addr().String(), security.TLS != nil || identity != nil,
		identity != nil && identity.Joined())
	// The node outlives the signal: what it carries ends first.
	serving, stop := context.WithCancel(context.WithoutCancel(e.Ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- node.Listen(serving, listener) }() // room: for the one end of it
	select {
	case err := <-served:
		return errors.Join(err, listener.Close())
	case <-e.Ctx.Done():
	}
	e.Forget() // a second signal ends the process at once
	e.Log.Info().Msg("draining: no new work is taken, and what is in flight ends")
	node.Drain()
	listener.Draining()
	tables.Close()
	c.leave(e, node, dir)
	streams.Close("the node is draining") // after the run workers that it tells of
	stop()
	err = errors.Join(<-served, listener.Close())
	e.Log.Info().Msg("the node has ended")
	return err
}

// leave ends the node's service in order, and logs what no server has received.
func (c *WorkerCommand) leave(e *terminal.Env, node *worker.Node, dir string) {
	left := node.Leave(context.Background(), c.Drain)
	if left.None() {
		return
	}
	e.Log.Error().Int("run_workers", left.RunWorkers).Int("ends", left.Ends).Int("parts", left.Parts).
		Str("data_dir", dir).
		Msg("the node ends before servers have everything: the next process on this data directory hands it over")
}

// announceReady says that the node is there.
func announceReady(e *terminal.Env, id, dir, address string, secure, joined bool) {
	e.Log.Info().Str("node_id", id).Str("address", address).Bool("tls", secure).Bool("joined", joined).
		Str("data_dir", dir).Msg("the node waits for servers")
	_, _ = fmt.Fprintf(e.Stdout, "The node %s listens on %s\n", id, address)
}

// makeDataDir makes the data directory.
func (c *WorkerCommand) makeDataDir() (string, error) {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return "", fmt.Errorf("finding the data directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the data directory: %w", err)
	}
	return dir, nil
}

func workerDrivers(p *egress.Policy) map[string]target.Driver {
	drivers := map[string]target.Driver{}
	for _, d := range []target.Driver{postgres.NewStrictDriver(nil, p), wiring.SnowflakeDriver(p)} {
		drivers[d.Name()] = d
	}
	return drivers
}

func listenError(address string, err error) error {
	if errors.Is(err, rpc.ErrPlain) {
		return &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The node would listen on %s without TLS, where others can read what targets' passwords are.",
				address),
			Hint: "Give it --join with a token of `loadstone node token`; or --cert and --key, with --token-file or " +
				"--client-ca; or listen on 127.0.0.1.", Cause: err}
	}
	return terminal.ListenError("--listen", address, err)
}

func (c *WorkerCommand) security() (rpc.Security, error) {
	s := rpc.Security{Plain: c.Insecure}
	var err error
	if s.Token, err = wiring.ReadToken(c.TokenFile); err != nil {
		return s, err
	}
	if c.Cert == "" && c.Key == "" {
		if c.ClientCA != "" {
			return s, engine.InvalidField("--client-ca", "asks for certificates of servers, which come with TLS only",
				"give --cert and --key too")
		}
		return s, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return s, engine.InvalidField("--cert", fmt.Sprintf("cannot be used: %v", err), "give --cert and --key in PEM")
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if c.ClientCA != "" {
		if s.TLS.ClientCAs, err = wiring.ReadPool("--client-ca", c.ClientCA); err != nil {
			return s, err
		}
		s.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if s.Token.IsZero() && c.ClientCA == "" && !c.Insecure {
		return s, &engine.Error{Code: engine.CodeInvalid, Message: "Anybody who reaches the node could use it.",
			Hint: "Give it --token-file or --client-ca."}
	}
	return s, nil
}

// nodeID is the node's name, which stays with its data directory.
func nodeID(dir string) (string, error) {
	path := filepath.Join(dir, "node-id")
	text, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading the node's name: %w", err)
	}
	id := "node-" + uuid.NewString()[:8]
	if name, err := os.Hostname(); err == nil {
		// A host may have a name that a node may not.
		if named := name + "-" + uuid.NewString()[:8]; pki.CheckID(named) == nil {
			id = named
		}
	}
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keeping the node's name: %w", err)
	}
	return id, nil
}

// pluginLimit is how long a server may take to bring a plugin, and pluginAgain how
// often it is asked.
const (
	pluginFetchTimeout  = 60 * time.Second
	pluginRetryInterval = 5 * time.Second
)

// fetchedPlugins are those of the node, and those that a server brings.
type fetchedPlugins struct {
	*host.Host
	request func(sha256 string)
}

// Workload returns a plugin by its hash; one that is not there is asked for.
func (p *fetchedPlugins) Workload(ctx context.Context, sha string) (plugin.Workload, error) {
	if p.Has(sha) {
		return p.Host.Workload(ctx, sha)
	}
	ctx, cancel := context.WithTimeout(ctx, pluginFetchTimeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var requested time.Time
	for !p.Has(sha) {
		if time.Since(requested) > pluginRetryInterval {
			p.request(sha)
			requested = time.Now()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf("The plugin %.12s… did not reach the node.",
				sha),
				Hint: "The server's log says why it could not be brought.", Cause: ctx.Err()}
		}
	}
	return p.Host.Workload(ctx, sha)
}
