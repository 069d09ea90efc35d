package wiring

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
)

// nodeDialer leads to a node of another process.
type nodeDialer interface {
	protocol.Dialer
	Recheck()
	Close() error
}

// nodeDialers makes them: by the servers' own authority, or as the operator's flags say.
type nodeDialers struct {
	security rpc.Security
	// members is nil where the operator's certificates, token or leave to do without decide.
	members *pki.Members
	// store names the control store to nodes.
	store            func(context.Context) (string, error)
	version, process string
	sessions         atomic.Int64

	mu   sync.Mutex
	open map[*trackedDialer]bool
}

// trackedDialer is a way until it is closed.
type trackedDialer struct {
	nodeDialer
	dialers *nodeDialers
	address string
}

// Address is where it leads.
func (k *trackedDialer) Address() string { return k.address }

// Close ends it.
func (k *trackedDialer) Close() error {
	k.dialers.mu.Lock()
	delete(k.dialers.open, k)
	k.dialers.mu.Unlock()
	return k.nodeDialer.Close()
}

// security is how the flags want nodes dialled; own means by the servers' own authority.
func (f NodeFlags) security() (s rpc.Security, own bool, err error) {
	s.Plain = f.NodesInsecure
	if s.Token, err = ReadToken(f.NodesTokenFile); err != nil {
		return s, false, err
	}
	if f.NodesCA == "" && f.NodesCert == "" {
		if f.NodesName != "" {
			return s, false, engine.InvalidField("--nodes-name", "is compared with certificates, and there are none",
				"give --nodes-ca too")
		}
		return s, s.Token.IsZero() && !s.Plain, nil
	}
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.NodesName}
	if f.NodesCA != "" {
		if s.TLS.RootCAs, err = ReadPool("--nodes-ca", f.NodesCA); err != nil {
			return s, false, err
		}
	}
	if f.NodesCert != "" {
		pair, err := tls.LoadX509KeyPair(f.NodesCert, f.NodesKey)
		if err != nil {
			return s, false, engine.InvalidField("--nodes-cert", fmt.Sprintf("cannot be used: %v", err),
				"give --nodes-cert and --nodes-key in PEM")
		}
		s.TLS.Certificates = []tls.Certificate{pair}
	}
	return s, false, nil
}

// openDialers prepares to dial nodes as the flags say.
func (s *Services) openDialers(flags NodeFlags) (*nodeDialers, error) {
	security, own, err := flags.security()
	if err != nil {
		return nil, err
	}
	w := &nodeDialers{security: security, version: s.options.Version, process: uuid.NewString(), store: s.Members.Store,
		open: map[*trackedDialer]bool{}}
	if own {
		w.members = s.Members
		s.Members.Watch(w.recheck)
	}
	s.onClose(func(context.Context) error { return w.close() })
	return w, nil
}

// dial prepares the way to an address.
func (w *nodeDialers) dial(address string) (protocol.Dialer, error) {
	o := rpc.DialOptions{Address: address, Security: w.security, Version: w.version, Process: w.process,
		Store: w.store, Sessions: &w.sessions}
	var made nodeDialer
	var err error
	switch {
	case w.members == nil:
		made, err = rpc.NewDialer(o)
	case isLoopback(address):
		// It may listen without TLS, as a node does that was given no token.
		o.Trust, o.Joined = w.members, w.members
		made, err = rpc.NewDualDialer(o)
	default:
		o.Trust = w.members
		made, err = rpc.NewDialer(o)
	}
	if errors.Is(err, rpc.ErrPlain) {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The node %s is not on this machine, and would be dialled without TLS.", address),
			Hint: "Start it with --join and a token of loadstone node token, and leave --nodes-token-file out; or give " +
				"--nodes-ca too; on a network that you trust, --nodes-insecure.", Cause: err}
	}
	if err != nil {
		return nil, err
	}
	k := &trackedDialer{made, w, address}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[k] = true
	return k, nil
}

// isLoopback reports whether an address is a loopback one.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (w *nodeDialers) all() (all []*trackedDialer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.open {
		all = append(all, k)
	}
	return all
}

// recheck ends the streams of nodes that were revoked.
func (w *nodeDialers) recheck() {
	for _, k := range w.all() {
		k.Recheck()
	}
}

func (w *nodeDialers) close() error {
	var errs []error
	for _, k := range w.all() {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

// openNodes prepares the ways to the nodes, the server's own among them, and what finds others.
func (s *Services) openNodes(flags NodeFlags) ([]protocol.Dialer, *protocol.Memory, nodes.Source, error) {
	w, err := s.openDialers(flags)
	if err != nil {
		return nil, nil, nil, err
	}
	var fixed []protocol.Dialer
	var positions []nodes.AddressProvider
	seen := map[string]bool{}
	for _, text := range flags.Nodes {
		if nodes.IsDNS(text) {
			name, err := nodes.ParseDNS(text)
			if err != nil {
				return nil, nil, nil, engine.InvalidField("--nodes", fmt.Sprintf("%q is no name in DNS", text), err.Error())
			}
			positions = append(positions, name)
			continue
		}
		address, err := pki.CheckAddress("--nodes", text)
		if err == nil {
			err = pki.CheckHost("--nodes", address)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		if seen[address] {
			continue
		}
		seen[address] = true
		d, err := w.dial(address)
		if err != nil {
			return nil, nil, nil, err
		}
		fixed = append(fixed, d)
	}
	if s.options.Serves {
		positions = append(positions, s.catalog(seen))
	}
	var source nodes.Source
	if len(positions) > 0 {
		source = nodes.NewDiscovery(nodes.DiscoveryOptions{Providers: positions, Dial: w.dial, Log: s.Log})
	}
	// A run of the command line has no other nodes than its own.
	if flags.LocalCapacity == 0 && s.options.Serves {
		return fixed, nil, source, nil
	}
	own := protocol.NewMemory()
	return append(fixed, own), own, source, nil
}

// catalog are the addresses of the catalog that the flags do not name.
func (s *Services) catalog(named map[string]bool) nodes.AddressCatalog {
	return func(ctx context.Context) ([]string, error) {
		all, err := s.Members.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		var addresses []string
		for _, a := range all {
			if !named[a.Address] {
				addresses = append(addresses, a.Address)
			}
		}
		return addresses, nil
	}
}

// openMembers begins to ask which nodes were revoked.
func (s *Services) openMembers(ctx context.Context) {
	s.Members = pki.NewMembers(pki.MembersOptions{Store: s.Store, Server: s.owner, Log: s.Log})
	if !s.options.Serves {
		return
	}
	keeping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() { defer close(kept); s.Members.Run(keeping) }()
	s.onClose(func(context.Context) error { cancel(); <-kept; return nil })
}
