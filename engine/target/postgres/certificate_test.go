package postgres_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

// TestAnUnreadableCertificateIsCalledThat: whatever else the connection string holds, the word "port" for instance.
func TestAnUnreadableCertificateIsCalledThat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "transport.pem")
	if err := os.WriteFile(empty, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "sslmode-port-service.pem")
	for dsn, want := range map[string]string{
		"host=h port=5432 user=u password=s3cr3t sslmode=verify-full sslrootcert=" +
			missing: "the certificate of sslrootcert, " + missing + ", cannot be read: no such file",
		"postgres://u:s3cr3t@h:5432/transport?sslmode=verify-ca&sslrootcert=" +
			missing: "the certificate of sslrootcert",
		"postgres://u:s3cr3t@h/d?sslmode=verify-ca&sslrootcert=" + empty: "holds no certificate",
		"postgres://u:s3cr3t@h:5432/d?sslmode=require&sslkey=" + missing + "&sslcert=" + empty: "the key of sslkey, " +
			missing,
		"postgres://u:s3cr3t@h:5432/d?sslmode=require&sslkey=" + empty + "&sslcert=" +
			missing: "the file of sslkey holds no key",
		"postgres://u:s3cr3t@h:5432/d?sslmode=require&sslcert=" + empty +
			"&sslkey=": "sslcert and sslkey are given both, or neither",
		"host=h port=x user=u password=s3cr3t":       "its port is not a number",
		"postgres://u:s3cr3t@h:5432/d?sslmode=maybe": "its sslmode is none of",
	} {
		_, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
		var e *engine.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v, want %q", dsn, err, want)
			continue
		}
		if strings.Contains(e.Error(), "s3cr3t") {
			t.Errorf("%s: the password is shown: %v", dsn, e)
		}
	}
}
