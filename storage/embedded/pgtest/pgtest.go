// Package pgtest gives tests a real Postgres: one throw-away cluster per test
// binary, started when the first test asks for it, and one fresh database per test.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/rs/zerolog"
)

// Server is the cluster of this test binary.
type Server struct {
	pg  *embedded.Postgres
	dir string

	filling sync.Mutex
	filled  bool // whether the model of NewFilled is there
	targets sync.Once
}

var (
	mu      sync.Mutex
	running *Server
	failure error
	serial  atomic.Int64
)

// Runner is *testing.M, or whatever runs tests in its place.
type Runner interface{ Run() int }

// Main runs the tests and stops the cluster, whether they passed or not. Use it
// in TestMain: os.Exit(pgtest.Main(m)).
func Main(m Runner) int {
	defer stop()
	return m.Run()
}

// M makes Main usable where a *testing.M is expected, as in
// goleak.VerifyTestMain(pgtest.M{M: m}).
type M struct{ M Runner }

// Run runs the tests and stops the cluster.
func (m M) Run() int { return Main(m.M) }

// Start returns the cluster, started when there is none. A machine without
// Postgres fails the test with the command that installs it.
func Start(t testing.TB) *Server {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if running == nil && failure == nil {
		running, failure = start()
	}
	if failure != nil {
		t.Fatalf("starting Postgres for tests: %v", failure)
	}
	return running
}

const prefix = "loadstone-pgtest-"

func start() (*Server, error) {
	sweep()
	dir, err := newFolder()
	if err != nil {
		return nil, err
	}
	if err := throwaway.Copy(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: dir, Log: zerolog.Nop(), Throwaway: true,
		Settings: map[string]string{"shared_buffers": "32MB", "max_wal_size": "256MB", "autovacuum": "off"}})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &Server{pg: pg, dir: dir}, nil
}

// newFolder makes one that Postgres may enter. Not t.TempDir: as root, Postgres runs as a user who cannot enter it.
func newFolder() (string, error) {
	dir, err := os.MkdirTemp(baseDir(), prefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", errors.Join(fmt.Errorf("opening the folder: %w", err), os.RemoveAll(dir))
	}
	return dir, nil
}

// baseDir is a file system in memory where there is one with room: a database is made there in a quarter of the time.
func baseDir() string {
	const dir, enough = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &fs) != nil ||
		fs.Bavail*uint64(fs.Bsize) < enough {
		return os.TempDir()
	}
	return dir
}

// sweep removes the folders of test binaries that were killed.
func sweep() {
	old, _ := filepath.Glob(filepath.Join(baseDir(), prefix+"*"))
	for _, dir := range old {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		pid, err := strconv.Atoi(text)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			// Another user's folder stays; it is not ours to remove.
			_ = os.RemoveAll(dir)
		}
	}
}

func stop() {
	mu.Lock()
	defer mu.Unlock()
	err := removeModels()
	if running != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, running.pg.Stop(ctx), os.RemoveAll(running.dir))
		running = nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
	}
}

// DSN returns the connection string of a database: "playground" as its owner,
// every other as superuser.
func (s *Server) DSN(database string) string { return s.pg.DSN(database) }

// Results makes the results database, one for all tests of the binary, and returns how owner and reader connect.
func (s *Server) Results(t testing.TB) (owner, reader string) {
	t.Helper()
	owner, reader, err := s.pg.Results(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return owner, reader
}

// NewDatabase makes an empty database and returns its DSN; it is dropped, with
// the connections to it, when the test ends.
func (s *Server) NewDatabase(t testing.TB) (dsn string) {
	t.Helper()
	return s.newDatabase(t, "")
}

// targetRole owns the databases of NewTarget.
const targetRole = "target"

// NewTarget makes an empty database that belongs to a plain role, and returns how that role connects: as users of a
// server have to whose control store is in this cluster too.
func (s *Server) NewTarget(t testing.TB) (dsn string) {
	t.Helper()
	s.targets.Do(func() { s.admitTarget(t) })
	return targetDSN(s.newDatabase(t, " OWNER "+targetRole))
}

// admitTarget makes the role of targets, and lets it in.
func (s *Server) admitTarget(t testing.TB) {
	t.Helper()
	s.exec(t, "CREATE ROLE "+targetRole+" LOGIN")
	conn, err := pgx.Connect(context.Background(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var path string
	if err := conn.QueryRow(context.Background(), "SHOW hba_file").Scan(&path); err != nil {
		t.Fatal(err)
	}
	hba, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = hba.WriteString("local all " + targetRole + " trust\n")
	if err := errors.Join(err, hba.Close()); err != nil {
		t.Fatal(err)
	}
	s.exec(t, "SELECT pg_reload_conf()")
	// The postmaster reads it in its own time.
	for range 500 {
		as, err := pgx.Connect(context.Background(), targetDSN(s.DSN("postgres")))
		if err == nil {
			_ = as.Close(context.Background())
			return
		}
		// Past pg_hba.conf it may still have no right to that database.
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "42501" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the role is not let in")
}

// targetDSN is a connection string of the superuser as that of the role of targets.
func targetDSN(dsn string) string {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		panic(err) // it is this package's own
	}
	return strings.Replace(dsn, " user="+config.User+" ", " user="+targetRole+" ", 1)
}

func (s *Server) newDatabase(t testing.TB, from string) (dsn string) {
	t.Helper()
	name := "test_" + strconv.FormatInt(serial.Add(1), 10)
	s.exec(t, "CREATE DATABASE "+name+from)
	t.Cleanup(func() { s.exec(t, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return s.DSN(name)
}

// templateDatabase is the database that those of NewFilled are copies of.
const templateDatabase = "test_model"

// NewFilled makes a database as fill leaves one, which is called once in a test binary: a copy takes a fraction of what
// a schema takes to be applied. It is dropped when the test ends.
func (s *Server) NewFilled(t testing.TB, fill func(ctx context.Context, dsn string) error) (dsn string) {
	t.Helper()
	s.filling.Lock()
	defer s.filling.Unlock()
	if !s.filled {
		s.exec(t, "DROP DATABASE IF EXISTS "+templateDatabase)
		s.exec(t, "CREATE DATABASE "+templateDatabase)
		if err := fill(context.Background(), s.DSN(templateDatabase)); err != nil {
			t.Fatal(err)
		}
		s.filled = true
	}
	return s.newDatabase(t, " TEMPLATE "+templateDatabase+" STRATEGY FILE_COPY")
}

func (s *Server) exec(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		t.Errorf("connecting to the test cluster: %v", err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}
