package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// farm is nodes in this process, each with its own identity, listener, streams and spool.
type farm struct {
	nodes []*farmed
}

// farmed is one of them.
type farmed struct {
	id       string
	listener *rpc.Listener
	way      *proxy // between servers and it, nil where they dial it straight
	spool    string
}

// address is where servers dial it.
func (n *farmed) address() string {
	if n.way != nil {
		return n.way.address()
	}
	return n.listener.Addr().String()
}

// farmOptions say what the nodes are.
type farmOptions struct {
	nodes int
	token string
	// proxied puts a network between servers and nodes that can be broken.
	proxied bool
	// budget bounds the spool of each, in bytes; 0 is no bound.
	budget int64
	// node is what they have in common; names, folders and capacity are filled in.
	node worker.Options
}

// joined makes nodes that join a server, and says how long joining took.
func (b *bench) joined(ctx context.Context, s *server, o farmOptions) (*farm, time.Duration, error) {
	var err error
	if o.token, err = s.token(ctx, o.nodes); err != nil {
		return nil, 0, err
	}
	f, err := b.farm(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	took, err := s.addNodes(ctx, f.addresses())
	return f, took, err
}

// farm starts nodes that join by a token. They end with the benchmark.
func (b *bench) farm(ctx context.Context, o farmOptions) (*farm, error) {
	token, err := pki.ParseToken(o.token)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.dir, "farm-")
	if err != nil {
		return nil, err
	}
	f := &farm{nodes: make([]*farmed, o.nodes)}
	serving, end := context.WithCancel(ctx)
	var served sync.WaitGroup
	b.onClose(func() {
		end()
		for _, n := range f.nodes {
			if n == nil {
				continue
			}
			served.Go(func() {
				if n.way != nil {
					n.way.close()
				}
				_ = n.listener.Close()
			})
		}
		served.Wait()
	})
	for i := range f.nodes {
		n := &farmed{id: fmt.Sprintf("farm-%04d", i)}
		own := filepath.Join(dir, n.id)
		n.spool = filepath.Join(own, "spool")
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, err
		}
		identity, err := pki.OpenIdentity(pki.IdentityOptions{Dir: own, ID: n.id, Token: &token})
		if err != nil {
			return nil, err
		}
		opts := o.node
		opts.NodeID, opts.Version, opts.SpoolDir, opts.SpoolBytes = n.id, "bench", n.spool, -1
		if o.budget > 0 {
			opts.SpoolBytes = o.budget
		}
		opts.Reserve, opts.Log = -1, zerolog.Nop()
		host := opts.Plugins
		if n.listener, err = rpc.Listen(serving, rpc.ListenOptions{Address: "127.0.0.1:0",
			Identity: identity, Log: zerolog.Nop(), Plugin: func(ctx context.Context, wasm []byte) error {
				if r, ok := host.(registrar); ok {
					return r.register(ctx, wasm)
				}
				return errors.New("simulated nodes take no plugins")
			}}); err != nil {
			return nil, err
		}
		f.nodes[i] = n
		if o.proxied {
			if n.way, err = newProxy(serving, n.listener.Addr().String()); err != nil {
				return nil, err
			}
		}
		node := worker.NewNode(opts)
		served.Go(func() { _ = node.Listen(serving, n.listener) })
	}
	return f, nil
}

// registrar takes plugins that servers bring.
type registrar interface {
	register(ctx context.Context, wasm []byte) error
}

// addresses are where servers dial the nodes.
func (f *farm) addresses() []string {
	out := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		out[i] = n.address()
	}
	return out
}
