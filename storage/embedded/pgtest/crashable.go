package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/storage/embedded"
)

// CrashableServer is a cluster of a test's own that can be killed, and started again. Every role may sign in over its
// socket, whatever its password, and from this machine over TCP where its settings have listen_addresses.
type CrashableServer struct {
	t    testing.TB
	dir  string
	pg   *embedded.Postgres
	more map[string]string
}

// StartCrashable starts a cluster with these settings, which is stopped when the test ends. Postgres takes it for another
// one than that of Start, and for the same as all of StartCrashable: they are copies.
func StartCrashable(t testing.TB, settings map[string]string) *CrashableServer {
	t.Helper()
	return startCrashable(t, settings, crashable.Copy)
}

// StartAnother is StartCrashable for a cluster that is no copy, and so has a system identifier of its own.
func StartAnother(t testing.TB, settings map[string]string) *CrashableServer {
	t.Helper()
	return startCrashable(t, settings, func(string) error { return nil })
}

func startCrashable(t testing.TB, settings map[string]string, fill func(dir string) error) *CrashableServer {
	t.Helper()
	dir, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := fill(dir); err != nil {
		t.Fatal(err)
	}
	hba := filepath.Join(dir, "open-hba.conf")
	if err := os.WriteFile(hba, []byte("local all all trust\nhost all all samehost trust\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &CrashableServer{t: t, dir: dir, more: map[string]string{"shared_buffers": "16MB", "hba_file": hba}}
	for k, v := range settings {
		c.more[k] = v
	}
	c.Start()
	t.Cleanup(func() { c.Stop() })
	return c
}

// Start starts the cluster that was stopped.
func (c *CrashableServer) Start() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	if c.pg, err = embedded.Start(ctx, embedded.Options{DataDir: c.dir, Log: zerolog.Nop(), Throwaway: true,
		Settings: c.more}); err != nil {
		c.t.Fatal(err)
	}
}

// Crash kills the server without letting it finish anything; it is started again, and recovers, by itself.
func (c *CrashableServer) Crash() {
	c.t.Helper()
	// One that is down already is not there to be killed.
	if err := syscall.Kill(c.pg.PID(), syscall.SIGQUIT); err != nil && !errors.Is(err, syscall.ESRCH) {
		c.t.Error(err)
	}
}

// Stop stops the cluster, which stays stopped. Repeating it is harmless.
func (c *CrashableServer) Stop() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.pg.Stop(ctx); err != nil {
		c.t.Error(err)
	}
}

// DSN is the connection string of a database as the superuser.
func (c *CrashableServer) DSN(database string) string { return c.pg.DSN(database) }
