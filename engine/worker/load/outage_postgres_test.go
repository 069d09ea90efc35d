package load_test

import (
	"os"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestARestartOfPostgresIsAnOutage: a real server is killed under the load and recovers by itself; every connection is
// back, with its statements, and who answers says that it was started anew.
func TestARestartOfPostgresIsAnOutage(t *testing.T) {
	if os.Getenv("LOADSTONE_CHECK") == "" {
		t.Skip("make check: a recovery of under a second in which nothing was in flight is not found (issue 45)")
	}
	onEach(t, func(t *testing.T, io engine.IOEngine) {
		server := pgtest.StartCrashable(t, nil)
		dsn := server.DSN("postgres")
		database, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
		if err != nil {
			t.Fatal(err)
		}
		defer database.Close()
		identify := database.(target.Identifier)
		before, err := identify.Identity(t.Context())
		if err != nil || before.Role != "primary" || before.System == "" || before.Timeline != 1 {
			t.Fatalf("%+v, %v", before, err)
		}
		run := startOutageRun(t, io, dsn, outageRate, 8)
		time.Sleep(2 * time.Second)
		server.Crash()
		var after engine.ServerIdentity
		for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if after, err = identify.Identity(t.Context()); err == nil && !after.StartedAt.Equal(before.StartedAt.Time) {
				break
			}
		}
		time.Sleep(3 * time.Second)
		found := run.outages(t)
		if len(found) != 1 || found[0].ToTheEnd || found[0].Failed > 16 || found[0].DownSeconds > 60 {
			t.Fatalf("%+v", found)
		}
		if changed := before.Changes(after); changed != "the server was started anew" || after.System != before.System {
			t.Errorf("%q: %+v, before %+v", changed, after, before)
		}
		t.Log(found[0].Text())
	})
}
