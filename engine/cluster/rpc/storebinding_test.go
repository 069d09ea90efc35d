package rpc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// sharedNode is a node that servers of several control stores know the address of.
type sharedNode struct {
	t    *testing.T
	l    *Listener
	held atomic.Bool
	log  *lines
	// sessions are of all servers, so that each stream is the latest.
	sessions atomic.Int64
}

// lines are a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newSharedNode(t *testing.T, path string) *sharedNode {
	t.Helper()
	s := &sharedNode{t: t, log: &lines{}}
	l, err := Listen(t.Context(), ListenOptions{Address: "127.0.0.1:0", Store: path, Log: zerolog.New(s.log)})
	if err != nil {
		t.Fatal(err)
	}
	s.l = l
	l.SetHeld(s.held.Load)
	t.Cleanup(func() { _ = l.Close() })
	return s
}

// dial opens a stream as a server of a store, "" for one that names none, and takes it in on the node. What it
// returns ends it, when the node has noticed.
func (s *sharedNode) dial(store, process string) (end func(), err error) {
	s.t.Helper()
	o := DialOptions{Address: s.l.Addr().String(), Process: process, Sessions: &s.sessions}
	if store != "" {
		o.Store = func(context.Context) (string, error) { return strings.Repeat(store, 64), nil }
	}
	d, err := NewDialer(o)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	server, err := d.Dial(ctx)
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	node, err := s.l.Accept(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	var once sync.Once
	end = func() {
		once.Do(func() {
			_, _, _ = server.Close(), node.Close(), d.Close()
			s.l.mu.Lock()
			gone := s.l.held[process].gone
			s.l.mu.Unlock()
			<-gone
		})
	}
	s.t.Cleanup(end)
	return end, nil
}

func (s *sharedNode) refused(store, process, why string) {
	s.t.Helper()
	end, err := s.dial(store, process)
	if err == nil {
		end()
		s.t.Fatalf("a server of store %s is let in", store)
	}
	if !errors.Is(err, protocol.ErrOtherStore) {
		s.t.Fatalf("the refusal is %v", err)
	}
	for _, part := range []string{why, "data directory of its own", strings.Repeat(store, 12)} {
		if !strings.Contains(err.Error(), part) {
			s.t.Errorf("%v does not say %q", err, part)
		}
	}
}

func (s *sharedNode) admitted(store, process string) (end func()) {
	s.t.Helper()
	end, err := s.dial(store, process)
	if err != nil {
		s.t.Fatalf("a server of store %s is refused: %v", store, err)
	}
	return end
}

// TestANodeWorksForOneControlStoreAtATime: what it holds for one is nothing to the servers of another, which would
// end its run workers and have it delete its parts.
func TestANodeWorksForOneControlStoreAtATime(t *testing.T) {
	t.Parallel()
	s := newSharedNode(t, filepath.Join(t.TempDir(), "node-store"))
	first := s.admitted("a", "a-1")
	second := s.admitted("a", "a-2") // another server of the same store
	old := s.admitted("", "old")     // of an earlier version, which may be of either
	first()
	s.refused("b", "b-1", "has a stream to it")
	s.refused("b", "b-1", "has a stream to it")
	if n := strings.Count(s.log.String(), "not let in"); n != 1 {
		t.Errorf("the node says it %d times:\n%s", n, s.log)
	}
	s.held.Store(true)
	second()
	s.refused("b", "b-1", "holds run workers or parts")
	s.admitted("a", "a-1")() // as the same process comes back
	s.held.Store(false)
	b := s.admitted("b", "b-1")
	s.refused("a", "a-2", "has a stream to it")
	b()
	s.admitted("a", "a-2")()
	old()
}

// TestANodeThatStartsAgainKnowsWhoseItsPartsAre, because its disk says so; where that cannot be written, nobody new
// is let in.
func TestANodeThatStartsAgainKnowsWhoseItsPartsAre(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "node-store")
	before := newSharedNode(t, path)
	before.admitted("a", "a-1")()
	_ = before.l.Close()
	after := newSharedNode(t, path)
	after.held.Store(true)
	after.refused("b", "b-1", "holds run workers or parts")
	after.admitted("a", "a-1")()
	after.held.Store(false)
	after.admitted("b", "b-1")()
	if text, err := os.ReadFile(path); err != nil || string(text) != strings.Repeat("b", 64)+"\n" {
		t.Errorf("the disk says %q, %v", text, err)
	}

	nowhere := newSharedNode(t, filepath.Join(t.TempDir(), "gone", "node-store"))
	if _, err := nowhere.dial("a", "a-1"); err == nil || errors.Is(err, protocol.ErrOtherStore) ||
		!strings.Contains(err.Error(), "keep on its disk") {
		t.Errorf("a node that cannot keep whose it is says %v", err)
	}
}

// TestAStoreHasAName: what a server says of its store is not believed to be short or harmless.
func TestAStoreHasAName(t *testing.T) {
	t.Parallel()
	s := newSharedNode(t, "")
	for _, name := range []string{"x", strings.Repeat("g", 64), strings.Repeat("a", 65), "../../etc"} {
		d, err := NewDialer(DialOptions{Address: s.l.Addr().String(), Process: "p",
			Store: func(context.Context) (string, error) { return name, nil }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "is none") {
			t.Errorf("%q: %v", name, err)
		}
		_ = d.Close()
	}
}
