package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func beginReal(t *testing.T, dir string) *Postgres {
	t.Helper()
	pg, err := Start(t.Context(),
		Options{DataDir: dir, Log: zerolog.New(zerolog.NewTestWriter(t)), Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, pg) })
	return pg
}

// checkPasswordRequired holds that nobody is the superuser, or a guest but the playground, by being who runs the
// process.
func checkPasswordRequired(t *testing.T, pg *Postgres) {
	t.Helper()
	bare := pg.place
	bare.password = ""
	for _, role := range []string{superuser, SnowsimDatabase} {
		for _, database := range []string{ControlDatabase, "postgres", PlaygroundDatabase, SnowsimDatabase} {
			for _, dsn := range []string{bare.dsn(database, role), bare.dsn(database, role) + " password=wrong"} {
				if _, err := query(t, dsn, "SELECT current_user::text"); err == nil || !strings.Contains(err.Error(), "28P01") &&
					!strings.Contains(err.Error(), "28000") && !strings.Contains(err.Error(), "password") {
					t.Errorf("%s: %v", dsn, err)
				}
			}
		}
	}
	if got, err := query(t, bare.dsn(PlaygroundDatabase, PlaygroundDatabase), "SELECT current_user::text"); err != nil ||
		got != PlaygroundDatabase {
		t.Errorf("the playground is opened as %q, %v", got, err)
	}
	if strings.Contains(pg.DSN(PlaygroundDatabase), "password") {
		t.Error("the playground's connection holds a password")
	}
	for _, dsn := range []string{pg.DSN(ControlDatabase), pg.AdminDSN(SnowsimDatabase), pg.DSN(SnowsimDatabase)} {
		if _, err := query(t, dsn, "SELECT 'in'"); err != nil {
			t.Error(err)
		}
	}
	if got, err := query(t, pg.DSN(ControlDatabase),
		"SELECT left(rolpassword, 13) FROM pg_authid WHERE rolname = 'loadstone'"); err != nil || got != "SCRAM-SHA-256" {
		t.Errorf("the password is kept as %q, %v", got, err)
	}
	info, err := os.Stat(filepath.Join(pg.place.data, "postgres.secret"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v, %v", info, err)
	}
	log, err := os.ReadFile(pg.place.log)
	if err != nil || strings.Contains(string(log), pg.place.password) {
		t.Errorf("the log holds the password, or: %v", err)
	}
}

func TestTheControlStoreTakesItsPasswordOnly(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	pg := beginReal(t, dir)
	checkPasswordRequired(t, pg)
	first := pg.place.password
	end(t, pg)
	second := beginReal(t, dir)
	if second.place.password != first {
		t.Error("the password changed with a restart")
	}
	checkPasswordRequired(t, second)
	end(t, second)
	// A secret that was lost is made anew, and the data stays.
	if err := os.Remove(filepath.Join(dir, "postgres.secret")); err != nil {
		t.Fatal(err)
	}
	lost := beginReal(t, dir)
	if lost.place.password == first {
		t.Error("the lost password came back")
	}
	checkPasswordRequired(t, lost)
}

// TestADataDirectoryWithoutPasswordIsUpgraded starts on a cluster as earlier versions left it.
func TestADataDirectoryWithoutPasswordIsUpgraded(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	old := begin(t, dir)
	if _, err := query(t, old.DSN(ControlDatabase), "CREATE TABLE kept AS SELECT 'kept' AS x"); err != nil &&
		!strings.Contains(err.Error(), "no rows") {
		t.Fatal(err)
	}
	end(t, old)
	pg := beginReal(t, dir)
	checkPasswordRequired(t, pg)
	if got, err := query(t, pg.DSN(ControlDatabase), "SELECT x FROM kept"); err != nil || got != "kept" {
		t.Errorf("the data is %q, %v", got, err)
	}
}
