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

	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest/precompiled"
)

var shared struct {
	once sync.Once
	host *host.Host
	err  error
}

// Bundled returns the test binary's host. Close it in TestMain, with Close.
func Bundled(tb testing.TB) *host.Host {
	tb.Helper()
	shared.once.Do(func() { shared.host, shared.err = open() })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.host
}

// Close closes the host if a test asked for it.
func Close() {
	if shared.host != nil {
		_ = shared.host.Close(context.Background()) // the process ends
	}
}

func open() (*host.Host, error) {
	files, err := bundledtest.Files()
	if err != nil {
		return nil, err
	}
	if err := precompiled.Bundled(precompiled.CacheDir()); err != nil {
		return nil, err
	}
	h, err := host.New(context.Background(), host.Options{CacheDir: precompiled.CacheDir(), Log: zerolog.Nop()})
	if err != nil {
		return nil, err
	}
	for name, wasm := range files {
		if _, err := h.Register(context.Background(), wasm, true); err != nil {
			return nil, fmt.Errorf("registering %s: %w", name, err)
		}
	}
	return h, nil
}
