package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/schedule"
	"github.com/loadstone-db/loadstone/server"
	"github.com/rs/zerolog"
)

// TestShutdownWaitsForHandlers lets one request be in flight when the server stops.
func TestShutdownWaitsForHandlers(t *testing.T) {
	t.Parallel()
	b := start(t)
	release := make(chan struct{})
	b.store.mu.Lock()
	b.store.block = release
	b.store.mu.Unlock()
	answered := make(chan int, 1)
	go func() {
		req, _ := http.NewRequest(http.MethodGet, b.base+"/api/templates", nil)
		req.Header.Set("Authorization", "Bearer "+b.token)
		res, err := b.client.Do(req)
		if err != nil {
			answered <- 0
			return
		}
		_ = res.Body.Close()
		answered <- res.StatusCode
	}()
	time.Sleep(100 * time.Millisecond) // the request is in its handler
	stopped := make(chan error, 1)
	go func() { stopped <- b.stop() }()
	time.Sleep(200 * time.Millisecond)
	close(release)
	if status := <-answered; status != 200 {
		t.Errorf("the request in flight got %d", status)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	b.srv.Close() // twice is safe
	if err := b.srv.Serve(t.Context()); err == nil {
		t.Error("a server served twice")
	}
}

func TestListenRefusesATakenPort(t *testing.T) {
	t.Parallel()
	b := start(t)
	other, err := server.New(server.Options{Addr: strings.TrimPrefix(b.base, "http://"), Runs: b.runs, Store: b.store,
		Files: b.files, Plugins: plugins{}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Listen(); err == nil || engine.AsError(err).Hint == "" {
		t.Errorf("listening: %v", err)
	}
}

// TestEndBeforeTheStart ends the context before the listener accepts anything.
func TestEndBeforeTheStart(t *testing.T) {
	t.Parallel()
	b := start(t)
	for range 20 {
		srv, err := server.New(server.Options{Addr: "127.0.0.1:0", Runs: b.runs, Store: b.store, Files: b.files,
			Plugins: plugins{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := srv.Serve(ctx); err != nil {
			t.Fatalf("serving: %v", err)
		}
	}
}

// TestAListenerThatEnds has Serve return, though schedules and the supervisor go on until then.
func TestAListenerThatEnds(t *testing.T) {
	t.Parallel()
	b := start(t)
	srv, err := server.New(server.Options{Addr: "127.0.0.1:0", Runs: b.runs, Store: b.store, Files: b.files,
		Plugins: plugins{}, Schedules: schedule.New(schedule.Options{Store: b.store, Owner: "another", Log: zerolog.Nop()})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(t.Context()) }()
	if err := srv.CloseListener(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-served:
		if err == nil {
			t.Error("it served without a listener")
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on without a listener")
	}
}
