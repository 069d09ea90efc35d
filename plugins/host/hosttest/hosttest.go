// Package hosttest gives tests a plugin host with the bundled plugins. The race
// detector makes the Wasm compiler about ten times slower, so the host is made
// once for each test binary and its compiled code is kept between them.
package hosttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/plugins/bundled"
	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/host"
)

// sharedHost is a host of the test binary.
type sharedHost struct {
	once sync.Once
	host *host.Host
	err  error
}

var registered, enlisted sharedHost

func (s *sharedHost) get(tb testing.TB, fill func(*host.Host) error) *host.Host {
	tb.Helper()
	s.once.Do(func() {
		if s.err = bundledtest.Compile(bundledtest.CacheDir()); s.err != nil {
			return
		}
		s.host, s.err = host.New(context.Background(), host.Options{CacheDir: bundledtest.CacheDir(), Log: zerolog.Nop()})
		if s.err == nil {
			s.err = fill(s.host)
		}
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.host
}

// Bundled returns the test binary's host, in which each plugin has been read, compiled and asked who it
// is. Close it in TestMain, with Close.
func Bundled(tb testing.TB) *host.Host {
	tb.Helper()
	return registered.get(tb, register)
}

// Enlisted returns a host of the test binary that makes a plugin ready when it is first asked for, as the
// program does: under the race detector each takes more than a second. Close it in TestMain, with Close.
func Enlisted(tb testing.TB) *host.Host {
	tb.Helper()
	return enlisted.get(tb, enlist)
}

// Close closes the hosts that tests asked for.
func Close() {
	for _, s := range []*sharedHost{&registered, &enlisted} {
		if s.host != nil {
			_ = s.host.Close(context.Background()) // the process ends
		}
	}
}

func enlist(h *host.Host) error {
	modules, err := bundled.Modules()
	if err != nil {
		return err //nolint:wrapcheck // it says what is missing
	}
	infos, err := bundled.Infos()
	if err != nil {
		return err //nolint:wrapcheck // it says what is missing
	}
	for name, module := range modules {
		if err := h.Enlist(module, infos[name], true); err != nil {
			return fmt.Errorf("enlisting %s: %w", name, err)
		}
	}
	return nil
}

func register(h *host.Host) error {
	files, err := bundledtest.Files()
	if err != nil {
		return err
	}
	for name, wasm := range files {
		if _, err := h.Register(context.Background(), wasm, true); err != nil {
			return fmt.Errorf("registering %s: %w", name, err)
		}
	}
	return nil
}
