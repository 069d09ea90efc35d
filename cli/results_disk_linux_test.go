package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// TestAFullResultsDatabase: the disk that has the files of the results database is full. Runs go on and end, the
// control store takes what it is given, readers see what was there, and whoever asks hears why nothing is new. When
// there is room again everything is taken in, once.
func TestAFullResultsDatabase(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("starts a Postgres and a server, and waits until they have tried; make soak sets " + clitest.Soak)
	}
	disk := smallDisk(t, 160)
	shared := pgtest.Start(t)
	in := &ingestCluster{t: t, load: shared.NewTarget(t), control: postgrestest.NewControl(t), pgDir: reachable(t)}
	var err error
	in.pg, err = embedded.Start(t.Context(), embedded.Options{DataDir: in.pgDir, Log: zerolog.Nop(), Throwaway: true})
	if err == nil {
		t.Cleanup(func() { _ = in.pg.Stop(context.Background()) })
		in.owner, in.reader, err = in.pg.Results(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(disk, "results")
	owner, err := os.Stat(filepath.Join(in.pgDir, "run"))
	if err == nil {
		err = os.Mkdir(files, 0o700)
	}
	if err == nil {
		stat := owner.Sys().(*syscall.Stat_t)
		err = os.Chown(files, int(stat.Uid), int(stat.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	admin, err := pgx.Connect(t.Context(), in.pg.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	for _, sql := range []string{"CREATE TABLESPACE small LOCATION '" + files + "'",
		"ALTER DATABASE results SET TABLESPACE small"} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	in.serve(s3test.Server{}, "--results", t.TempDir(), "--refresh-workers", "2")
	first, n := in.run()
	in.await("taken in", nil, func() bool { return in.ingestedRuns(first.RunID) && in.settledQueue() })
	in.checkIngested("with room", first.RunID, n)

	in.await("fresh", nil, func() bool {
		return count(t, in.results, "SELECT count(*) FROM tables.run_summary") == 1 && in.settledQueue()
	})

	other := &diskFiller{t: t, path: filepath.Join(disk, "stranger")}
	t.Cleanup(other.remove)
	full := make(chan struct{})
	filled := make(chan struct{})
	go func() { // what is dropped there leaves room
		defer close(filled)
		for {
			other.fill()
			select {
			case <-full:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	second, seconds := in.run() // it ends as ever
	var list struct {
		Tables  []refresh.Table
		Workers []refresh.Worker
	}
	in.await("told", nil, func() bool {
		in.netProxyTo.Do(http.MethodGet, "/api/v1/tables", nil, &list)
		return len(list.Workers) == 1 && strings.Contains(list.Workers[0].Waits, "disk of the results database is full")
	})
	t.Logf("whoever asks hears: %s", list.Workers[0].Waits)
	for _, table := range list.Tables {
		if table.Failures > 0 || table.Status != refresh.Active {
			t.Errorf("a full disk is taken for a failure of %s: %s, %s", table.Name, table.Status, table.Error)
		}
	}
	in.checkNoStaging("on a full disk")
	readers := in.pool(in.reader)
	rows := func(sql string) int64 {
		t.Helper()
		return count(t, readers, sql)
	}
	for sql, want := range map[string]int64{"SELECT count(*) FROM rollup.runs WHERE NOT provisional": 1,
		"SELECT count(*) FROM tables.run_summary":                   1,
		"SELECT count(*) FROM rollup.executions WHERE position = 0": n} {
		if got := rows(sql); got != want {
			t.Errorf("on a full disk readers see %d of %d: %s", got, want, sql)
		}
	}
	third, thirds := in.run() // the control store goes on
	close(full)
	<-filled
	other.remove()
	began := time.Now()
	for _, d := range []engine.RunDetail{second, third} {
		in.await("taken in", nil, func() bool { return in.ingestedRuns(d.RunID) })
	}
	in.await("fresh", nil, func() bool { return rows("SELECT count(*) FROM tables.run_summary") == 3 })
	t.Logf("%v after there was room all of it is there", time.Since(began).Round(time.Second))
	in.checkIngested("second", second.RunID, seconds)
	in.checkIngested("third", third.RunID, thirds)
	in.await("told that it works again", nil, func() bool {
		in.netProxyTo.Do(http.MethodGet, "/api/v1/tables", nil, &list)
		return len(list.Workers) == 1 && list.Workers[0].Waits == ""
	})
}
