package wiring

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// NodeFlags say which nodes a server has besides its own, and how it reaches them.
type NodeFlags struct {
	Nodes          []string      `name:"nodes" placeholder:"HOST:PORT,..." env:"LOADSTONE_NODES" help:"Nodes to dial, besides the server's own and the catalog's: addresses, or DNS names (dns:///workers.example:9090, or dns:///_control._tcp.example for SRV records)."`
	LocalCapacity  int           `name:"local-capacity" default:"-1" placeholder:"N" env:"LOADSTONE_LOCAL_CAPACITY" help:"Maximum connections of the server's own node; 0 = none, -1 = by cores and memory (default: -1)."`
	WaitForNodes   time.Duration `name:"wait-for-nodes" placeholder:"DURATION" env:"LOADSTONE_WAIT_FOR_NODES" help:"How long a run that is larger than all nodes may wait for more of them; 0 refuses it (default: 0)."`
	NodesCA        string        `name:"nodes-ca" placeholder:"FILE" env:"LOADSTONE_NODES_CA" help:"PEM file of the authority of the nodes' certificates, instead of the servers' own."`
	NodesCert      string        `name:"nodes-cert" placeholder:"FILE" env:"LOADSTONE_NODES_CERT" help:"Client certificate of the server, PEM."`
	NodesKey       string        `name:"nodes-key" placeholder:"FILE" env:"LOADSTONE_NODES_KEY" help:"Its private key, PEM."`
	NodesName      string        `name:"nodes-name" placeholder:"NAME" env:"LOADSTONE_NODES_NAME" help:"Name in the nodes' certificates, if they are dialled by other addresses (with --nodes-ca)."`
	NodesTokenFile string        `name:"nodes-token-file" placeholder:"FILE" env:"LOADSTONE_NODES_TOKEN_FILE" help:"File with the nodes' token."`
	NodesInsecure  bool          `name:"nodes-insecure" env:"LOADSTONE_NODES_INSECURE" help:"Dial remote nodes without TLS: anybody on the network can read targets' passwords."`

	Spool SpoolFlags `embed:""`
}

// SpoolFlags bound what a node keeps of records on its disk.
type SpoolFlags struct {
	SpoolBudget int64 `name:"spool-budget" placeholder:"MB" env:"LOADSTONE_SPOOL_BUDGET" help:"MB of a node's disk for parts that no server has stored yet; -1 = no limit (default: half of the free space)."`
}

// Bytes is the budget as a node takes it.
func (f SpoolFlags) Bytes() int64 {
	if f.SpoolBudget < 0 {
		return -1
	}
	return f.SpoolBudget << 20
}

// minSpoolMB is the smallest budget: a part and its neighbours.
const minSpoolMB = 64

// Check is an error where the budget cannot be kept on the disk of a data directory, of which reserve bytes stay free.
func (f SpoolFlags) Check(dataDir string, reserve int64) error {
	if f.SpoolBudget <= 0 {
		return nil
	}
	refuse := func(why, hint string) error {
		return engine.InvalidField("--spool-budget", fmt.Sprintf("%d MB cannot be kept: %s", f.SpoolBudget, why), hint)
	}
	if f.SpoolBudget < minSpoolMB {
		return refuse(fmt.Sprintf("a part of a record and its neighbours take %d MB", minSpoolMB),
			fmt.Sprintf("give at least %d, or leave it out for half of what is free", minSpoolMB))
	}
	free, size, ok := record.Space(dataDir)
	if !ok {
		return nil
	}
	reserve = record.Reserve(dataDir, reserve)
	most, what := free, "free"
	if spool := filepath.Join(dataDir, "spool"); !emptyFolder(spool) {
		most, what = size, "in size" // what a process before has left has to be handed over first
	}
	if most -= reserve; f.Bytes() > most {
		return refuse(fmt.Sprintf("the disk of %s has %d MB %s, of which %d MB stay free (--disk-reserve)", dataDir,
			(most+reserve)>>20, what, reserve>>20),
			fmt.Sprintf("give at most %d, or put --data-dir on a larger disk", max(most>>20, 0)))
	}
	return nil
}

func emptyFolder(dir string) bool {
	found, err := os.ReadDir(dir)
	return err != nil || len(found) == 0
}

// openLocalNode starts the node in this process. It outlives ctx: runs are stopped by
// Close, not by the signal that asks for it.
func (s *Services) openLocalNode(ctx context.Context, flags NodeFlags, route *protocol.Memory,
	recordings worker.Recordings) {
	s.localMetrics = metrics.NewNode(s.traces.Tracer(), func() worker.NodeState { return s.localNode.State() })
	// The flag's -1 is the default, and a node without a bound is none that a flag asks for.
	node := worker.NewNode(worker.Options{
		NodeID: protocol.OwnNode, Plugins: s.Plugins.ByHash(), Drivers: s.Drivers, Capacity: max(flags.LocalCapacity, 0),
		SpoolDir: filepath.Join(s.DataDir, "spool"), SpoolBytes: flags.Spool.Bytes(), Reserve: s.reserve,
		Recordings: recordings, Meter: s.localMetrics, Queries: s.serveQueryWork(), Executions: s.recorded, Log: s.Log,
	})
	s.localNode = node
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- node.Listen(background, route) }() // room: for the one end of it
	s.onClose(func(context.Context) error {
		cancel()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("stopping the node: %w", err)
		}
		return nil
	})
}

// startRoster has what operators want of nodes done, before the first of them is dialled, and
// their history written. It ends after the runs.
func (s *Services) startRoster(ctx context.Context) {
	keeping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() { defer close(kept); s.Roster.Run(keeping, s.Runs.Nodes()) }()
	s.onClose(func(context.Context) error { cancel(); <-kept; return nil })
}

// module reads a plugin that a node wants.
func (s *Services) module(ctx context.Context, sha string) ([]byte, error) {
	if read := s.modules[sha]; read != nil {
		return read()
	}
	return s.Plugins.Module(ctx, sha)
}

// ReadToken reads a token from a file; without one there is none.
func ReadToken(path string) (none secret.Secret, err error) {
	if path == "" {
		return none, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return none, engine.InvalidField("token file", fmt.Sprintf("cannot be read: %v", err),
			"name a file with the token in it")
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 {
		return none, engine.InvalidField("token file", fmt.Sprintf("holds a token of %d characters", len(token)),
			"use 16 or more, such as: openssl rand -hex 32")
	}
	return secret.New(token), nil
}

// ReadPool reads certificates from a file that a flag names.
func ReadPool(flag, path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, engine.InvalidField(flag, fmt.Sprintf("cannot be read: %v", err), "name a file with certificates in PEM")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, engine.InvalidField(flag, "holds no certificate", "name a file with certificates in PEM")
	}
	return pool, nil
}
