package embedded_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// certified is a cluster that listens with a certificate of an authority, and how a login connects.
func certified(t *testing.T, ca *pgtest.Authority) (pg *embedded.Postgres, login *url.URL) {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadstone-embedded-") // as root, Postgres cannot enter t.TempDir
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cert, key := ca.Issue(t, pgtest.Identity{Name: "results", Address: "127.0.0.1"})
	files := map[string]string{"cert.pem": cert, "key.pem": key}
	_, files["other.pem"] = ca.Issue(t, pgtest.Identity{Name: "another", Address: "127.0.0.1"})
	files["text.pem"] = "no key"
	for name, text := range files {
		files[name] = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(files[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(key string) error {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := free.Addr().(*net.TCPAddr).Port
		if err := free.Close(); err != nil {
			t.Fatal(err)
		}
		pg, err = embedded.Start(t.Context(), embedded.Options{DataDir: dir, Log: zerolog.Nop(), Listen: &embedded.Listen{
			Host: "127.0.0.1", Port: port, Cert: files["cert.pem"], Key: files[key]},
			Settings: map[string]string{"fsync": "off", "tcp_user_timeout": "1s"}})
		return err
	}
	for _, wrong := range []string{"other.pem", "text.pem"} {
		if err := start(wrong); !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), wrong) {
			t.Errorf("with %s: %v", wrong, err)
		}
	}
	// Somebody else may take the port before Postgres does.
	for range 20 {
		if err = start("key.pem"); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	dsn, err := pg.AddReader(t.Context(), "grafana", "", false)
	if err != nil {
		t.Fatal(err)
	}
	if login, err = url.Parse(dsn); err != nil || login.Query().Get("sslmode") != "require" {
		t.Fatalf("the connection string is %.12s…, %v", dsn, err)
	}
	return pg, login
}

// TestQueryListenWithACertificate: a client that checks the server's certificate gets in; without TLS, with another
// authority, another host or another password nobody does. Neither many connections nor one that never reads what it
// asked for holds anybody else up.
func TestQueryListenWithACertificate(t *testing.T) {
	t.Parallel()
	ca := pgtest.NewAuthority(t)
	pg, login := certified(t, ca)
	ctx := t.Context()
	connect := func(mode, host, authority string, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
		t.Helper()
		u := *login
		u.Host = net.JoinHostPort(host, u.Port())
		query := url.Values{"sslmode": {mode}}
		if authority != "" {
			file := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(file, []byte(authority), 0o600); err != nil {
				t.Fatal(err)
			}
			query.Set("sslrootcert", file)
		}
		u.RawQuery = query.Encode()
		config, err := pgx.ParseConfig(u.String())
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(config)
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
		}
		return conn, err
	}
	conn, err := connect("verify-full", "127.0.0.1", ca.PEM, nil)
	if err != nil {
		t.Fatal(err)
	}
	var message string
	if err := conn.QueryRow(ctx, "SELECT current_user || ' ' || version FROM pg_stat_ssl WHERE pid = pg_backend_pid()").
		Scan(
			&message); err != nil || message != "query_grafana TLSv1.3" {
		t.Errorf("connected as %q, %v", message, err)
	}
	wrong := func(c *pgx.ConnConfig) { c.Password = "wrong" }
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	if _, err := connect("verify-full", "127.0.0.1", pgtest.NewAuthority(t).PEM, nil); !errors.As(err, &unknown) {
		t.Errorf("with another authority: %v", err)
	}
	if _, err := connect("verify-full", "localhost", ca.PEM, nil); !errors.As(err, &host) {
		t.Errorf("by a name that the certificate is not for: %v", err)
	}
	for about, code := range map[string]string{"disable": "28000", "require": "28P01"} {
		change := wrong
		if about == "disable" {
			change = nil // not even with the right password
		}
		var refused *pgconn.PgError
		if _, err := connect(about, "127.0.0.1", "", change); !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("sslmode %s: %v, want %s", about, err, code)
		}
	}
	admin, err := pgx.Connect(ctx, pg.AdminDSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.Background()) }()
	var kept string
	if err := admin.QueryRow(ctx, "SELECT left(rolpassword, 14) FROM pg_authid WHERE rolname = 'query_grafana'").Scan(
		&kept); err != nil || kept != "SCRAM-SHA-256$" {
		t.Errorf("the password is kept as %q, %v", kept, err)
	}

	// One login has so many connections, and then a refusal; nobody else has fewer.
	more := 0
	for ; more < 40 && err == nil; more++ {
		_, err = connect("require", "127.0.0.1", "", nil)
	}
	var refused *pgconn.PgError
	if more != resultsrole.LoginLimits.Connections || !errors.As(err, &refused) || refused.Code != "53300" {
		t.Errorf("%d more connections, then %v", more, err)
	}
	var limit int
	if err := admin.QueryRow(ctx, `SELECT current_setting('max_connections')::int - datconnlimit FROM pg_database
		WHERE datname = 'results' AND datconnlimit > 0`).Scan(&limit); err != nil || limit < 100 {
		t.Errorf("the results database leaves %d connections, %v", limit, err)
	}
	// The session of a client that reads nothing ends, and what it holds with it.
	large := "SELECT repeat('x', 10000) FROM generate_series(1, 1000000)"
	pid := conn.PgConn().PID()
	conn.PgConn().Frontend().SendQuery(&pgproto3.Query{String: large})
	if err := conn.PgConn().Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var there bool
		if err := admin.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid).Scan(
			&there); err != nil {
			t.Fatal(err)
		}
		if !there {
			t.Logf("gone after %v", time.Since(began).Round(time.Millisecond))
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("a client that reads nothing keeps its session")
		}
	}
}
