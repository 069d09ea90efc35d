package wiring

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/control/controlrpc"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// NodeFlags say which nodes a server has besides its own, and how it reaches them.
type NodeFlags struct {
	Nodes          []string `name:"nodes" placeholder:"HOST:PORT,..." env:"LOADSTONE_NODES" help:"Nodes that carry load (loadstone worker), besides the server's own."`
	LocalCapacity  int      `name:"local-capacity" default:"-1" placeholder:"N" env:"LOADSTONE_LOCAL_CAPACITY" help:"Most connections of the server's own node; 0 to have none, -1 is what cores and memory suggest (default: -1)."`
	NodesCA        string   `name:"nodes-ca" placeholder:"FILE" env:"LOADSTONE_NODES_CA" help:"Who signs the certificates of nodes, PEM: they are dialled with TLS."`
	NodesCert      string   `name:"nodes-cert" placeholder:"FILE" env:"LOADSTONE_NODES_CERT" help:"Certificate of the server for nodes that ask for one, PEM."`
	NodesKey       string   `name:"nodes-key" placeholder:"FILE" env:"LOADSTONE_NODES_KEY" help:"Its private key, PEM."`
	NodesTokenFile string   `name:"nodes-token-file" placeholder:"FILE" env:"LOADSTONE_NODES_TOKEN_FILE" help:"File with the token that nodes ask for."`
	NodesInsecure  bool     `name:"nodes-insecure" env:"LOADSTONE_NODES_INSECURE" help:"Dial nodes without TLS also beyond this machine: anybody on the way reads targets' passwords."`
}

// dialers lead to the nodes of the flags.
func (f NodeFlags) dialers(version string) ([]*controlrpc.Dialer, error) {
	s := controlrpc.Security{Plain: f.NodesInsecure}
	var err error
	if s.Token, err = ReadToken(f.NodesTokenFile); err != nil {
		return nil, err
	}
	if f.NodesCA != "" || f.NodesCert != "" {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if f.NodesCA != "" {
			if s.TLS.RootCAs, err = ReadPool("--nodes-ca", f.NodesCA); err != nil {
				return nil, err
			}
		}
		if f.NodesCert != "" {
			pair, err := tls.LoadX509KeyPair(f.NodesCert, f.NodesKey)
			if err != nil {
				return nil, engine.InvalidField("--nodes-cert", fmt.Sprintf("cannot be used: %v", err),
					"give --nodes-cert and --nodes-key in PEM")
			}
			s.TLS.Certificates = []tls.Certificate{pair}
		}
	}
	var all []*controlrpc.Dialer
	seen, process := map[string]bool{}, uuid.NewString()
	for _, address := range f.Nodes {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, engine.InvalidField("--nodes", fmt.Sprintf("%q is no address", address),
				"write host:port, several with commas")
		}
		if seen[address] {
			continue
		}
		seen[address] = true
		d, err := controlrpc.NewDialer(controlrpc.DialOptions{Address: address, Security: s, Version: version,
			Process: process})
		if errors.Is(err, controlrpc.ErrPlain) {
			return nil, &engine.Error{Code: engine.CodeInvalid,
				Message: fmt.Sprintf("The node %s is not on this machine, and would be dialled without TLS.", address),
				Hint: "Give --nodes-ca, with --nodes-token-file or --nodes-cert; on a network that you trust, " +
					"--nodes-insecure.", Cause: err}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// openNodes prepares the ways to the nodes, the server's own among them.
func (s *Services) openNodes(flags NodeFlags) ([]control.Dialer, *control.Memory, error) {
	var ways []control.Dialer
	remote, err := flags.dialers(s.options.Version)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range remote {
		s.onClose(func(context.Context) error { return d.Close() })
		ways = append(ways, d)
	}
	if flags.LocalCapacity == 0 && len(remote) > 0 {
		return ways, nil, nil
	}
	own := control.NewMemory()
	return append(ways, own), own, nil
}

// openOwnNode starts the node in this process. It outlives ctx: runs are stopped by
// Close, not by the signal that asks for it.
func (s *Services) openOwnNode(ctx context.Context, capacity int, way *control.Memory, recordings worker.Recordings) {
	// The flag's -1 is the default, and a node without a bound is none that a flag asks for.
	node := worker.NewNode(worker.Options{
		NodeID: control.OwnNode, Plugins: s.Plugins.ByHash(), Drivers: s.Drivers, Capacity: max(capacity, 0),
		SpoolDir: filepath.Join(s.DataDir, "spool"), Reserve: s.reserve, Recordings: recordings, Log: s.Log,
	})
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- node.Listen(background, way) }()
	s.onClose(func(context.Context) error {
		cancel()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("stopping the node: %w", err)
		}
		return nil
	})
}

// keepRoster has what operators want of nodes done, before the first of them is dialled, and
// their history written. It ends after the runs.
func (s *Services) keepRoster(ctx context.Context) {
	keeping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() { defer close(kept); s.Roster.Keep(keeping, s.Runs.Fleet()) }()
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
func ReadToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", engine.InvalidField("token file", fmt.Sprintf("cannot be read: %v", err),
			"name a file with the token in it")
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 {
		return "", engine.InvalidField("token file", fmt.Sprintf("holds a token of %d characters", len(token)),
			"use 16 or more, such as: openssl rand -hex 32")
	}
	return token, nil
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
