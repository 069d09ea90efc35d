package postgres_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/storetest"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	// A key of whoever runs the tests is none of theirs, and tests that run side by side set no variable.
	_ = os.Unsetenv(keyring.KeyEnv)
	goleak.VerifyTestMain(pgtest.M{M: m})
}

// open returns a store on a fresh database, and the database's DSN.
func open(t testing.TB) (*storagepostgres.Store, string) {
	t.Helper()
	return postgrestest.Open(t, postgres.NewDriver(), snowflake.NewDriver())
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Store {
		s, _ := open(t)
		return s
	})
}

// TestALeaseIsAsLongAsTheStoreSays: another server takes a run over as soon as that has passed.
func TestALeaseIsAsLongAsTheStoreSays(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	s.LeaseDuration = 300 * time.Millisecond
	ctx := t.Context()
	if err := s.CreateRun(ctx, engine.Run{RunID: "r", ResultID: "r", Status: engine.StatusPrepared,
		Phase: engine.PhasePreparing, WorkersExpected: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Transition(ctx, store.Transition{RunID: "r", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(ctx, store.Claim{RunID: "r", Owner: "b"}); !errors.Is(err, store.ErrLeaseHeld) {
		t.Errorf("at once: %v", err)
	}
	time.Sleep(400 * time.Millisecond)
	if _, err := s.Claim(ctx, store.Claim{RunID: "r", Owner: "b"}); err != nil {
		t.Errorf("after its lease: %v", err)
	}
}

// TestTables is what this store alone keeps.
func TestTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *storagepostgres.Store)
	}{
		{"RunArtifacts", RunArtifacts}, {"SortedRuns", SortedRuns}, {"Warehouse", warehouse}, {"Matrices", matrices},
		{"MatrixLeases", matrixLeases}, {"ListRuns", listRuns}, {"ListRunsPages", listRunsPages},
		{"Templates", templates}, {"TemplateSecrets", templateSecrets}, {"Rules", Rules}, {"Connections", connections},
		{"BuiltinConnections", builtins}, {"ConnectionInUse", connectionInUse}, {"Plugins", plugins},
		{"UploadedPlugins", uploadedPlugins}, {"PluginLimits", pluginLimits}, {"Admin", admin}, {"Tokens", tokens},
		{"Users", Users}, {"WaysIn", SignIn}, {"LastAdmin", LastAdmin}, {"Roles", Roles}, {"External", External},
		{"Access", Access}, {"Grants", Grants}, {"Audit", Audit}, {"AuditKept", AuditRetention}, {"Marks", Marks},
		{"SavedQueries", Queries}, {"Views", Views}, {"ViewsBound", ViewsBound}, {"ViewsOfTheGone", ViewsOfDeletedUser},
		{"Settings", Settings}, {"Retention", Retention}, {"ListsAreShort", listsAreShort},
		{"WorkerPoints", workerPoints}, {"WorkerSeries", workerSeries},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := open(t)
			c.test(t, s)
		})
	}
}

// The helpers of the suite.
var (
	must, wantError, wantTaken, same = storetest.Must, storetest.WantError, storetest.WantTaken, storetest.Same
	newRun, create, move             = storetest.NewRun, storetest.Create, storetest.Move
	second, noon                     = storetest.Second, storetest.Noon
)

// TestMissingCountsOfEarlierVersions: they stored the problem, and not that counts are missing.
func TestMissingCountsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	create(t, s, "r")
	must(t, s.SaveResult(t.Context(), engine.RunResult{RunID: "r", ResultID: "r",
		Figures: &engine.Figures{Accounting: engine.Accounting{Problems: []string{engine.ProblemCountsMissing}}}}))
	results, err := s.Results(t.Context(), "r")
	must(t, err)
	if len(results) != 1 || !results[0].Figures.CountsMissing {
		t.Errorf("%+v", results)
	}
}

// TestWhatARunWorkerHasNotToldIsNull in the columns, too: SQL does not read a 0 where nobody knows.
func TestWhatARunWorkerHasNotToldIsNull(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	create(t, s, "r")
	must(t, s.SaveResult(t.Context(), engine.RunResult{RunID: "r", ResultID: "r-w", WorkerID: "worker-0",
		Figures: &engine.Figures{Operations: 5, CountsOnly: true}}))
	var operations, reads, failed *int64
	must(
		t,
		connect(
			t,
			dsn,
		).QueryRow(
			t.Context(),
			"SELECT total_operations, read_operations, failed_operations FROM test_results "+
				"WHERE test_id = 'r-w'",
		).Scan(
			&operations,
			&reads,
			&failed,
		),
	)
	if operations == nil || *operations != 5 || reads != nil || failed != nil {
		t.Errorf("%v operations, %v reads, %v failed", operations, reads, failed)
	}
}
