package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
	"github.com/loadstone-db/loadstone/storage/backup"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// feeds know which queries have had their sinks opened. One whose sink is named bad is never started.
type feeds struct {
	hub    system.Hub
	mu     sync.Mutex
	opened []string
}

func (f *feeds) Source(_ context.Context, s catalog.PhysicalSource, columns []column.Column) (connector.Source, error) {
	return f.hub.Open(s.Config.String("SOURCE.STREAM"), columns), nil
}

func (f *feeds) Sink(
	_ context.Context,
	q catalog.Query,
	s catalog.Sink,
	columns []column.Column,
) (connector.Sink, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, q.Name)
	if s.Name == "bad" {
		return nil, coordinator.ErrUnusable
	}
	return connector.OpenSink(
		connector.Print,
		connector.Config{"SINK.INPUT_FORMAT": "CSV"},
		columns,
		nil,
		new(strings.Builder),
	)
}

// looksAfter is a server's share in continuous queries.
func looksAfter(t *testing.T, s *postgres.Store, f *feeds) *coordinator.Coordinator {
	t.Helper()
	c, err := coordinator.Open(t.Context(), coordinator.Options{Store: s.Streams(), Connectors: f, Owner: "server-1",
		Sources: system.Sources})
	must(t, err)
	return c
}

func execute(t *testing.T, c *coordinator.Coordinator, sql string) {
	t.Helper()
	_, err := c.Execute(t.Context(), sql, catalog.Author{Name: "ada"}, nil)
	must(t, err)
}

// until waits for the state of a query.
func until(t *testing.T, c *coordinator.Coordinator, name string, want catalog.State) catalog.Query {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		contents, err := c.Contents(t.Context())
		must(t, err)
		i := slices.IndexFunc(contents.Queries, func(q catalog.Query) bool { return q.Name == name })
		if i >= 0 && contents.Queries[i].State == want {
			return contents.Queries[i]
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not %s: %+v", name, want, contents.Queries)
		}
	}
}

// TestContinuousQueriesRest: a restored server stops no run and tells nobody, until somebody creates the queries again.
func TestContinuousQueriesRest(t *testing.T) {
	from, to := filledPlace(t), newPlace(t)
	s := open(t, from.dsn, from.key)
	f := &feeds{}
	c := looksAfter(t, s, f)
	const slow = "CREATE QUERY slow AS SELECT runId, p99Ms FROM worker_statistics WHERE p99Ms > 200 INTO stop_run"
	execute(t, c, "CREATE SINK stop_run TYPE GUARDRAIL; CREATE SINK bad TYPE PRINT; "+slow+`;
		CREATE QUERY busy AS SELECT runId, event FROM run_events INTO stop_run;
		CREATE QUERY wrong AS SELECT runId FROM run_events INTO bad`)
	until(t, c, "slow", catalog.Running)
	until(t, c, "busy", catalog.Running)
	failure := until(t, c, "wrong", catalog.Failed).Failure
	path := filepath.Join(t.TempDir(), "b")
	write(t, from.dsn, path, backup.Options{})
	must(t, c.Close(t.Context()))
	s.Close()

	b, err := backup.Open(path)
	must(t, err)
	defer b.Close()
	must(t, b.Restore(t.Context(), to.dsn, backup.RestoreOptions{}))
	if !slices.Equal(b.Stopped, []string{"busy", "slow"}) {
		t.Errorf("said to be stopped: %v", b.Stopped)
	}
	s = open(t, to.dsn, from.key)
	defer s.Close()
	f = &feeds{}
	c = looksAfter(t, s, f)
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	// What is created now runs after a look at all of them.
	execute(t, c, "CREATE QUERY fresh AS SELECT runId FROM run_events INTO stop_run")
	until(t, c, "fresh", catalog.Running)
	if q := until(t, c, "slow", catalog.Stopped); q.Desired != catalog.Stopped || q.Owner == "" ||
		!strings.Contains(q.Statement, "p99Ms > 200") || !strings.Contains(q.Failure, "backup") {
		t.Errorf("the restored query: %+v", q)
	}
	if q := until(t, c, "wrong", catalog.Failed); q.Failure != failure {
		t.Errorf("the one that had failed: %+v", q)
	}
	var refused *sql.Error
	if _, err := c.Execute(t.Context(), slow, catalog.Author{Name: "ada"}, nil); !errors.As(err, &refused) ||
		refused.Kind != sql.AlreadyExists || !strings.Contains(refused.Hint, "DROP it first") {
		t.Errorf("its name is taken: %v", err)
	}
	execute(t, c, "DROP QUERY slow; "+slow)
	until(t, c, "slow", catalog.Running)
	until(t, c, "busy", catalog.Stopped)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.opened, []string{"fresh", "slow"}) {
		t.Errorf("what ran: %v", f.opened)
	}
}

// TestOlderThanStreams: a backup that has nothing of the catalog of streams makes a store on which queries run.
func TestOlderThanStreams(t *testing.T) {
	from, to := filledPlace(t), newPlace(t)
	path := filepath.Join(t.TempDir(), "b")
	write(t, from.dsn, path, backup.Options{})
	whole, err := os.ReadFile(path)
	must(t, err)
	older := edited(t, whole, func(name string, content []byte) []byte {
		if name != "manifest.json" {
			return content
		}
		var m backup.Manifest
		must(t, json.Unmarshal(content, &m))
		all := len(m.Tables)
		m.Tables = slices.DeleteFunc(m.Tables, func(t backup.Table) bool {
			return slices.Contains([]string{"catalog_revision", "workers", "network_links", "logical_sources",
				"physical_sources", "sinks", "query_owners", "queries", "query_physical_sources", "query_sinks",
				"query_fragments"}, t.Name)
		})
		if len(m.Tables) != all-11 {
			t.Errorf("%d of %d tables are left", len(m.Tables), all)
		}
		text, err := json.Marshal(m)
		must(t, err)
		return text
	})
	must(t, os.WriteFile(path, older, 0o600))
	b, err := backup.Open(path)
	must(t, err)
	defer b.Close()
	must(t, b.Restore(t.Context(), to.dsn, backup.RestoreOptions{}))
	s := open(t, to.dsn, from.key)
	defer s.Close()
	c := looksAfter(t, s, &feeds{})
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	execute(t, c, "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId FROM run_events INTO s")
	until(t, c, "q", catalog.Running)
}
