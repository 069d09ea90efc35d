package bundled_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// triedIn are the findings of the trial.
func triedIn(f *prepare.Preflight) []prepare.CheckResult {
	return slices.DeleteFunc(slices.Clone(f.Checks), func(c prepare.CheckResult) bool { return c.Name != "trial" })
}

// TestATrialWaitsForNobody: a row that somebody holds, a statement that does not end, and a user who has gone all end
// the trial, and leave nothing behind on the server.
func TestATrialWaitsForNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE held (id int PRIMARY KEY, note text)`,
		`INSERT INTO held SELECT g, 'x' FROM generate_series(1, 20) g`,
		`CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(300); RETURN NEW; END $$`)
	sc := b.asking("mix", "held", `{"weights":{"UPDATE":1}}`, nil)
	sc.Target.AllowWrites = true
	busy := `SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database()
		AND application_name = 'loadstone trial' AND state <> 'idle'`
	noted := func(what, why string) {
		t.Helper()
		began := time.Now()
		f := b.look(sc)
		if found := triedIn(f); !f.OK || len(found) != 1 || found[0].Outcome != prepare.CheckWarning ||
			!strings.Contains(found[0].Message, why) {
			t.Errorf("%s: %+v", what, found)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: it took %v", what, took)
		}
	}

	// Another session holds the rows until it is told to end.
	other, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(b.dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	ctx, release := context.WithTimeout(t.Context(), 2*time.Minute)
	released := make(chan struct{})
	go func() {
		defer close(released)
		_, _ = other.Query(ctx, "SELECT pg_sleep(300) FROM (SELECT id FROM held FOR UPDATE) x LIMIT 1")
	}()
	for !strings.Contains(b.value("SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND "+
		"datname = current_database()").(string), "1") {
		time.Sleep(5 * time.Millisecond)
	}
	noted("a held row", "lock timeout")
	release()
	<-released

	b.exec(`CREATE TRIGGER linger BEFORE UPDATE ON held FOR EACH ROW EXECUTE FUNCTION linger()`)
	noted("a statement without end", "5s")

	gone, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := prepare.Inspect(gone, b.deps(), sc, true)
		ended <- err
	}()
	for b.value(busy) == "0" {
		time.Sleep(5 * time.Millisecond)
	}
	left := time.Now()
	leave()
	if err := <-ended; err == nil {
		t.Error("a preflight that was left ended well")
	}
	if took := time.Since(left); took > 4*time.Second {
		t.Errorf("the trial went on for %v", took)
	}
	for deadline := time.Now().Add(30 * time.Second); b.value(busy) != "0"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server still executes what was tried")
		}
	}
}

// plainer is Postgres without what it is told to lack: statements that begin so cannot be prepared.
type plainer struct {
	target.Driver
	lacks []string
}

type plainerDatabase struct {
	target.Database
	lacks []string
}

func (d plainer) Open(cfg target.Config) (target.Database, error) {
	db, err := d.Driver.Open(cfg)
	return plainerDatabase{db, d.lacks}, err
}

func (d plainerDatabase) LockLimit(limit time.Duration) string {
	return d.Database.(target.LockLimiter).LockLimit(limit)
}

func (d plainerDatabase) Connect(ctx context.Context, statements []engine.Statement) (target.Conn, error) {
	for _, s := range statements {
		for _, begins := range d.lacks {
			if strings.HasPrefix(s.SQL, begins) {
				return nil, &engine.Error{Code: engine.CodeTarget, Message: "Statement " + s.ID + " cannot be prepared."}
			}
		}
	}
	return d.Database.Connect(ctx, statements)
}

// TestATrialDoesWithoutWhatAServerLacks: what it adds to the statements of a run refuses no run.
func TestATrialDoesWithoutWhatAServerLacks(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE plain (id int PRIMARY KEY, note text)`,
		`INSERT INTO plain SELECT g, 'x' FROM generate_series(1, 20) g`)
	sc := b.asking("mix", "plain", `{"weights":{"UPDATE":1}}`, nil)
	sc.Target.AllowWrites = true
	for _, lacks := range [][]string{nil, {"SET CONSTRAINTS"}, {"SET CONSTRAINTS", "SET LOCAL"}} {
		deps := b.deps()
		deps.Drivers = map[string]target.Driver{"postgres": plainer{postgres.NewDriver(), lacks}}
		f, err := prepare.Inspect(t.Context(), deps, sc, true)
		if err != nil {
			t.Fatal(err)
		}
		found := triedIn(f)
		if !f.OK || len(found) != min(len(lacks), 1)+1 || found[len(found)-1].Outcome != prepare.CheckOK {
			t.Errorf("without %v: %+v", lacks, f.Checks)
		}
		if len(lacks) > 0 && !strings.Contains(found[0].Message, "deferred constraints") {
			t.Errorf("without %v: %+v", lacks, found[0])
		}
	}
}

// TestATrialSaysWhatItDidNotSee: a statement that met no row, one that was never drawn, and those behind a connection
// that was lost are named, each with what helps.
func TestATrialSaysWhatItDidNotSee(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE kept (id int PRIMARY KEY, note text)`,
		`INSERT INTO kept SELECT g, 'x' FROM generate_series(1, 20) g`,
		`CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`,
		`CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
	look := func(params string, want ...string) {
		t.Helper()
		sc := b.asking("mix", "kept", params, nil)
		sc.Target.AllowWrites = true
		f := b.look(sc)
		var said []string
		for _, c := range triedIn(f) {
			said = append(said, c.Outcome+": "+c.Message+" -> "+c.Fix)
		}
		text := strings.Join(said, "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", params, w, text)
			}
		}
		if !f.OK || strings.Contains(text, "nobody holds locks") {
			t.Errorf("%s: %v\n%s", params, f.OK, text)
		}
	}
	look(`{"weights":{"UPDATE":1}}`, "ok: The database takes update", "sequences advanced")
	look(`{"weights":{"UPDATE":0.001,"INSERT":1000}}`, "warning: Not tried before the load: update.", "takes insert")
	b.exec(`CREATE TRIGGER nothing BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION nothing()`)
	look(`{"weights":{"UPDATE":1}}`, "warning: The statement update met no row in any of the 20 operations")
	b.exec(`CREATE TRIGGER leave BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION leave()`)
	look(`{"weights":{"UPDATE":1,"INSERT":1}}`, "insert could not be tried", "see why the database ended the connection")
	b.exec(`CREATE TRIGGER aleave BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION leave()`)
	look(`{"weights":{"UPDATE":1,"INSERT":1}}`, "because the connection was lost: ")
}
