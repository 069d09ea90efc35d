package rpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// storeBinding is which control store the servers of a node have. What a node holds for one of them is nothing to
// those of another: they would end its run workers and have its parts deleted, because they know nothing of them.
type storeBinding struct {
	// path is where the store is kept, so that it is known whose the parts are that an earlier process has left;
	// "" keeps it for the life of the process.
	path string
	log  zerolog.Logger

	mu      sync.Mutex
	store   string
	streams int // of servers of the store
	// held asks the node; nil holds nothing.
	held func() bool
	// logged is which servers' processes were told that they are refused, and why.
	logged map[string]string
}

// maxStoreName bounds the name of a store, which is a SHA-256 in hex.
const maxStoreName = 64

func newStoreBinding(path string, log zerolog.Logger) (*storeBinding, error) {
	b := &storeBinding{path: path, log: log, logged: map[string]string{}}
	if path == "" {
		return b, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading whose the node's parts are: %w", err)
	}
	if name := strings.TrimSpace(string(text)); isStore(name) {
		b.store = name
	}
	return b, nil
}

// isStore reports whether a text can be the name of a store.
func isStore(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == maxStoreName
}

// admit lets a stream in, unless the node works for another store; leave follows its end. A server of an earlier
// version says of no store, and is let in as ever.
func (b *storeBinding) admit(open *pb.Open) (leave func(), err error) {
	name := open.GetStore()
	if name == "" {
		return func() {}, nil
	}
	if !isStore(name) {
		return nil, status.Error(codes.InvalidArgument, "the name of the server's control store is none")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if name != b.store {
		if why := b.bound(); why != "" {
			return nil, b.reject(open, why)
		}
		if err := b.persist(name); err != nil {
			b.log.Error().Err(err).Msg("a server is not let in: whose the node is cannot be kept on its disk")
			return nil, status.Error(codes.FailedPrecondition, "the node cannot keep on its disk whose it is: "+err.Error())
		}
		b.store = name
	}
	b.streams++
	delete(b.logged, open.GetServerProcess())
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.streams--
	}), nil
}

// bound is why the node cannot leave its store now, "" when it can. It needs mu.
func (b *storeBinding) bound() string {
	switch {
	case b.store == "":
		return ""
	case b.streams > 0:
		return "one of them has a stream to it"
	case b.held != nil && b.held():
		return "it holds run workers or parts of records for them"
	}
	return ""
}

// reject sends a server away, and says so in the node's log once for each of its processes. It needs mu.
func (b *storeBinding) reject(open *pb.Open, why string) error {
	const hint = "start a node on a data directory of its own for this server, or take this one out of those " +
		"servers' --nodes and let them end and fetch their runs first"
	if process := open.GetServerProcess(); b.logged[process] != why {
		if len(b.logged) >= maxHolders {
			clear(b.logged)
		}
		b.logged[process] = why
		b.log.Error().Str("store", short(open.GetStore())).Str("works_for", short(b.store)).Str("reason", why).
			Str("hint", hint).Msg("a server of another control store is not let in")
	}
	return status.Errorf(codes.PermissionDenied, "control store %s, and this server has %s: %s; %s", short(b.store),
		short(open.GetStore()), why, hint)
}

// short is enough of a store's name to tell it from others.
func short(store string) string { return store[:min(len(store), 12)] }

// persist writes down whose the node is.
func (b *storeBinding) persist(name string) error {
	if b.path == "" {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(b.path), filepath.Base(b.path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), b.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// SetHeld implements protocol.StoreListener.
func (l *Listener) SetHeld(held func() bool) {
	l.binding.mu.Lock()
	defer l.binding.mu.Unlock()
	l.binding.held = held
}
