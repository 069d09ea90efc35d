package postgres_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// pooler starts PgBouncer before a database, and returns the address through it.
func pooler(t *testing.T, dsn, mode string, settings ...string) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if _, err = os.Stat("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("pgbouncer is not installed: deploy/setup.sh pooler installs it")
		}
		bin = "/usr/sbin/pgbouncer"
	}
	server, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	dir, err := os.MkdirTemp("", "loadstone-pooler-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password := ""
	if server.Password != "" {
		password = " password=" + server.Password
	}
	ini := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port "+
		"= %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 3\nserver_round_robin = 1\n",
		server.Host, server.Port, server.User, password, port, mode)
	text += strings.Join(settings, "\n") + "\n"
	if err := os.WriteFile(ini, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "-q", ini)
	cmd.Dir = dir
	if os.Getuid() == 0 {
		// It does not run as root.
		who, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("there is no user postgres, and pgbouncer does not run as root")
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		for _, path := range []string{dir, ini} {
			if err := os.Chown(path, uid, gid); err != nil {
				t.Fatal(err)
			}
		}
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for range 200 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", server.User, address, server.Database)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("pgbouncer does not answer: %s", said.String())
	return ""
}

// followsStatements reports whether the pooler that is installed knows prepared
// statements in transaction mode, as PgBouncer does from 1.21 on.
func followsStatements(t *testing.T) bool {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		bin = "/usr/sbin/pgbouncer"
	}
	said, err := exec.Command(bin, "--version").Output()
	if err != nil {
		t.Skip("pgbouncer is not installed: deploy/setup.sh pooler installs it")
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(said), "PgBouncer %d.%d", &major, &minor); err != nil {
		t.Fatalf("%q: %v", said, err)
	}
	return major > 1 || minor >= 21
}

// TestThroughAPoolerInTransactionMode: more connections than the pooler has
// sessions, statements and transactions, on both paths.
func TestThroughAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	bothPaths(t, func(t *testing.T, d target.Driver) { throughPooler(t, d, nil, "max_prepared_statements = 0") })
}

// TestThroughAPoolerThatFollowsStatements: prepared once for each connection, while the
// pooler gives every transaction another session.
func TestThroughAPoolerThatFollowsStatements(t *testing.T) {
	t.Parallel()
	if !followsStatements(t) {
		t.Skip("the pgbouncer that is installed is older than 1.21")
	}
	bothPaths(t, func(t *testing.T, d target.Driver) { throughPooler(t, d, new(true), "max_prepared_statements = 100") })
}

func throughPooler(t *testing.T, d target.Driver, prepared *bool, settings string) {
	dsn := pgtest.Start(t).NewDatabase(t)
	if !followsStatements(t) {
		settings = "" // which the pooler would refuse
	}
	pooled := pooler(t, dsn, "transaction", settings)
	list := []engine.Statement{{ID: "get", SQL: "SELECT id, v FROM t WHERE id = $1", Columns: []string{"id", "v"},
		Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}},
		{ID: "set", SQL: "UPDATE t SET v = $1 WHERE id = $2",
			Binds: []engine.Bind{{Name: "v", Type: engine.TypeI64}, {Name: "id", Type: engine.TypeI64}}}}
	db, err := d.Open(target.Config{DSN: secret.New(pooled), Session: []string{"SET TIME ZONE 'UTC'"},
		StatementTimeout: 20 * time.Second, Prepared: prepared})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(t.Context(), "CREATE TABLE t (id int PRIMARY KEY, v bigint)",
		"INSERT INTO t SELECT g, 0 FROM generate_series(1, 50) g"); err != nil {
		t.Fatal(err)
	}
	info, err := db.Check(t.Context())
	if err != nil || !info.Pooled || len(info.Notes) != 1 || !strings.Contains(info.Notes[0], "pooler") {
		t.Errorf("%+v, %v", info, err)
	}
	var all sync.WaitGroup
	for worker := range 12 {
		all.Go(func() {
			c, err := db.Connect(t.Context(), list)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			batch := plugin.Batch{Args: []plugin.Value{{Type: engine.TypeI64, I: int64(worker)},
				{Type: engine.TypeI64, I: int64(worker + 1)}}}
			get, set := plugin.Op{Statement: 0, FirstArg: 1, NArgs: 1}, plugin.Op{Statement: 1, NArgs: 2}
			for range 100 {
				for _, o := range []plugin.Op{get, set, op(plugin.StatementBegin), set, get, op(plugin.StatementCommit)} {
					var res target.Result
					if err := c.Exec(t.Context(), &batch, o, &res); err != nil {
						t.Error(err)
						return
					}
					if o.Statement < plugin.StatementBegin && res.Rows != 1 {
						t.Errorf("%d rows", res.Rows)
					}
				}
			}
		})
	}
	all.Wait()
	if rs, err := target.Read(context.Background(), db, "SELECT count(*) FROM t WHERE v > 0", time.Second); err != nil ||
		rs.Rows[0][0] != int64(11) {
		t.Errorf("%v, %v", rs, err)
	}
	if prepared == nil {
		return
	}
	// What the server's sessions know was prepared there, and is used from one operation to the next.
	rs, err := target.Read(context.Background(), db,
		"SELECT count(*), coalesce(sum(generic_plans + custom_plans), 0)::int8 FROM pg_prepared_statements WHERE "+
			"statement LIKE '%FROM t WHERE id%'", time.Second)
	if err != nil || rs.Rows[0][0].(int64) == 0 || rs.Rows[0][1].(int64) < 2 {
		t.Errorf("nothing stays prepared: %v, %v", rs, err)
	}
}

// TestAPoolerIsNamed where it is what does not work.
func TestAPoolerIsNamed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).NewDatabase(t)
	never := ""
	if followsStatements(t) {
		never = "max_prepared_statements = 0"
	}
	pooled := pooler(t, dsn, "transaction", never)
	yes := true
	named := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "pooler") {
			t.Errorf("%s: %v", what, err)
		}
	}
	open := func(cfg target.Config) target.Database {
		db, err := postgres.NewDriver().Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	// Two connections prepare the same names in the sessions that they share.
	db := open(target.Config{DSN: secret.New(pooled), Prepared: &yes})
	var err error
	for range 8 {
		var c target.Conn
		if c, err = db.Connect(t.Context(), statements("SELECT 1", "SELECT 2")); err != nil {
			break
		}
		defer c.Close()
		var res target.Result
		if err = c.Exec(t.Context(), &plugin.Batch{}, op(1), &res); err != nil {
			err = fmt.Errorf("%s", db.Classify(err).Message)
			break
		}
	}
	named("prepared statements", err)
	_, err = open(
		target.Config{DSN: secret.New(pooled), Session: []string{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION " +
			"LEVEL SERIALIZABLE"}},
	).Connect(
		t.Context(),
		statements("SELECT 1"),
	)
	named("an isolation level", err)
	_, err = open(target.Config{DSN: secret.New(pooled + "&search_path=x")}).Check(t.Context())
	named("a startup parameter", err)
	info, err := open(target.Config{DSN: secret.New(dsn)}).Check(t.Context())
	if err != nil || info.Pooled || len(info.Notes) > 0 {
		t.Errorf("without a pooler: %+v, %v", info, err)
	}
	// In session mode statements are prepared where that is asked for.
	session := open(target.Config{DSN: secret.New(pooler(t, dsn, "session")), Prepared: &yes})
	for range 2 {
		c, err := session.Connect(t.Context(), statements("SELECT 1"))
		if err != nil {
			t.Fatal(err)
		}
		var res target.Result
		if err := c.Exec(t.Context(), &plugin.Batch{}, op(0), &res); err != nil {
			t.Error(err)
		}
		_ = c.Close()
	}
}
