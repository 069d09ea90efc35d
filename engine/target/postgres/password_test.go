package postgres_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestNoPasswordIsNotAWrongOne, on a server that asks by SCRAM and by MD5: the cure differs.
func TestNoPasswordIsNotAWrongOne(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).NewDatabase(t)
	admin, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	rs, err := admin.Query(t.Context(), "SHOW hba_file")
	if err != nil {
		t.Fatal(err)
	}
	path := rs.Rows[0][0].(string)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		// Written in place: the file stays its owner's.
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := admin.Exec(t.Context(), "SELECT pg_reload_conf()"); err != nil {
			t.Fatal(err)
		}
	}
	defer write(string(before))
	write("local all asked_by_scram scram-sha-256\nlocal all asked_by_md5 md5\n" + string(before))
	for role, encryption := range map[string]string{"asked_by_scram": "scram-sha-256", "asked_by_md5": "md5"} {
		if err := admin.Exec(t.Context(), "SET password_encryption = '"+encryption+"'; DROP ROLE IF EXISTS "+role+
			"; CREATE ROLE "+role+" LOGIN PASSWORD 'it''s'"); err != nil {
			t.Fatal(err)
		}
		base := dsn + " user=" + role
		check := func(dsn string) error {
			db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Check(t.Context())
			return err
		}
		// The server reads the file when it gets to it.
		for begin := time.Now(); check(base+` password='it\'s'`) != nil; time.Sleep(20 * time.Millisecond) {
			if time.Since(begin) > 10*time.Second {
				t.Fatalf("%s: the right password: %v", role, check(base+` password='it\'s'`))
			}
		}
		if err := check(base); !engine.HasCode(err, engine.CodeTarget) ||
			!strings.Contains(err.Error(), "asks for a password") || strings.Contains(err.Error(), "is wrong") ||
			!strings.Contains(engine.AsError(err).Hint, "Put it into the connection") {
			t.Errorf("%s without a password: %v", role, err)
		}
		if err := check(base + " password=guessed"); !engine.HasCode(err, engine.CodeTarget) ||
			!strings.Contains(err.Error(), "is wrong") || strings.Contains(err.Error(), "guessed") {
			t.Errorf("%s with a wrong one: %v", role, err)
		}
	}
	if err := admin.Exec(t.Context(), "DROP ROLE asked_by_scram", "DROP ROLE asked_by_md5"); err != nil {
		t.Error(err)
	}
}
