package postgres_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestPastedCertificatesInAHandshake signs in to a real Postgres that knows its users
// by their certificates, as a server's users may: with the PEM texts and no file.
func TestPastedCertificatesInAHandshake(t *testing.T) {
	secure := pgtest.StartTLS(t)
	cert, key := secure.Authority.Issue(t, pgtest.Identity{Name: secure.User})
	dsn := func(mode, root, cert, key string) string {
		q := url.Values{"sslmode": {mode}}
		for name, value := range map[string]string{"sslrootcert": root, "sslcert": cert, "sslkey": key} {
			if value != "" {
				q.Set(name, value)
			}
		}
		return "postgres://" + secure.User + "@" + secure.Host + "/" + secure.User + "?" + q.Encode()
	}
	driver := postgres.NewStrictDriver(nil, nil)
	root := secure.Authority.PEM
	for _, mode := range []string{"require", "verify-ca", "verify-full"} {
		db, err := driver.Open(target.Config{DSN: secret.New(dsn(mode, root, cert, key)), ConnectTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		c, err := db.Connect(t.Context(),
			[]engine.Statement{{ID: "who", SQL: "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE " +
				"pid = pg_backend_pid() AND ssl AND client_dn LIKE '%CN=ada' AND usename = $1",
				Binds: []engine.Bind{{Type: engine.TypeText}}}})
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		var res target.Result
		b, op := targettest.Batch(0, secure.User)
		if err := c.Exec(t.Context(), b, op, &res); err != nil || res.Rows != 1 {
			t.Errorf("%s: %d rows, %v", mode, res.Rows, err)
		}
		c.Close()
		_ = db.Close()
	}

	// With a password besides, Postgres says of a wrong name in the certificate that the password is wrong.
	both := func(password, cert, key string) string {
		return strings.NewReplacer("ada@", "ada:"+password+"@", "/ada?", "/twofold?").Replace(
			dsn("verify-full", root, cert, key))
	}
	admin, err := pgx.Connect(t.Context(), secure.Admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"ALTER ROLE ada PASSWORD 'ada'", "CREATE DATABASE twofold"} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	_ = admin.Close(t.Context())
	db, err := driver.Open(target.Config{DSN: secret.New(both("ada", cert, key)), ConnectTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Check(t.Context()); err != nil {
		t.Errorf("a password and a certificate: %v", err)
	}
	_ = db.Close()

	stranger := pgtest.NewAuthority(t)
	theirs, theirKey := stranger.Issue(t, pgtest.Identity{Name: secure.User})
	old, oldKey := secure.Authority.Issue(t, pgtest.Identity{Name: secure.User, Expired: true})
	grace, graceKey := secure.Authority.Issue(t, pgtest.Identity{Name: "grace"})
	block, _ := pem.Decode([]byte(key))
	//nolint:staticcheck // what openssl writes
	locked, err := x509.EncryptPEMBlock(strings.NewReader(strings.Repeat("r", 64)), "EC PRIVATE KEY", block.Bytes,
		[]byte("pass"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dsn, want string }{
		"the root of another": {dsn("verify-full", stranger.PEM, cert, key),
			"signed by an authority that is not trusted here"},
		"another host": {strings.Replace(dsn("verify-full", root, cert, key), secure.Host, "localhost.invalid",
			1), "localhost.invalid"},
		"no certificate":              {dsn("verify-full", root, "", ""), "asks for a client certificate"},
		"a certificate of a stranger": {dsn("verify-full", root, theirs, theirKey), "refuses the client certificate"},
		"one that has expired": {dsn("verify-full", root, old, oldKey),
			"The client certificate of the connection has expired, on 20"},
		"one of another user": {dsn("verify-full", root, grace, graceKey),
			`does not let user "ada" in: the client certificate is for "grace"`},
		"one of another user, and a password": {both("ada", grace, graceKey), `and this one is for "grace"`},
		"a wrong password, and one's own":     {both("wrong", cert, key), `The password for user "ada" is wrong`},
		"no root, and the machine's do not know the server": {dsn("verify-full", "", cert, key),
			"Give the authority's certificate as sslrootcert: the PEM text"},
		"the key of another": {dsn("verify-full", root, cert, theirKey), "does not belong to the certificate"},
		"an encrypted key": {dsn("verify-full", root, cert, string(pem.EncodeToMemory(locked))),
			"it is encrypted; paste it without its passphrase"},
		"an encrypted key, PKCS 8": {dsn("verify-full", root, cert,
			strings.ReplaceAll(key, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY")),
			"it is encrypted; paste it without its passphrase"},
		"half a certificate": {dsn("verify-full", root, cert[:len(cert)/2], key),
			"The parameter sslcert cannot be used: there is no whole certificate"},
		"the two exchanged":     {dsn("verify-full", root, key, cert), "exchanged"},
		"a key in place of one": {dsn("verify-full", key, cert, key), "there is no certificate in it"},
	} {
		db, err := driver.Open(target.Config{DSN: secret.New(c.dsn), ConnectTimeout: 5 * time.Second})
		if err == nil {
			_, err = db.Check(t.Context())
			_ = db.Close()
		}
		// What the server says of a certificate is lost when its reset overtakes it.
		lost := err != nil && strings.Contains(err.Error(), "does not take a certificate") &&
			strings.Contains(c.want, "refuses")
		if err == nil || !lost && !strings.Contains(err.Error(), c.want) || !engine.HasCode(err, engine.CodeTarget) {
			t.Errorf("%s: %v\nwant %q, %v", name, err, c.want, errors.Unwrap(err))
		} else if strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:") ||
			strings.Contains(err.Error(), "asn1") {
			t.Errorf("%s: in the words of Go: %v", name, err)
		}
	}
}
