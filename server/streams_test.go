package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// streaming is a coordinator over memory; what its queries read stays quiet.
type streaming struct {
	*coordinator.Coordinator
	hub system.Hub
}

func (s *streaming) Source(
	_ context.Context,
	p catalog.PhysicalSource,
	columns []column.Column,
) (connector.Source, error) {
	return s.hub.Open(p.Config.String("SOURCE.STREAM"), columns), nil
}

func (s *streaming) Sink(context.Context, catalog.Query, catalog.Sink, []column.Column) (connector.Sink, error) {
	return nothing{}, nil
}

func (s *streaming) Alerts() []connector.Alert {
	return []connector.Alert{{Query: "q", Type: connector.Guardrail, RunID: "r", Row: "p99 250", Rows: 1}}
}

func (s *streaming) Trouble(int64) (connector.SinkProblem, bool) {
	return connector.SinkProblem{Since: time.Unix(1, 0), Attempts: 3, Message: "nobody answers"}, true
}

func (s *streaming) Output(int64) []string { return []string{"1,2"} }

type nothing struct{}

func (nothing) Write(*column.Batch) error { return nil }
func (nothing) Close() error              { return nil }

func newStreaming(t *testing.T) *streaming {
	s := &streaming{}
	var err error
	if s.Coordinator, err = coordinator.Open(t.Context(), coordinator.Options{Store: &catalogtest.Store{}, Connectors: s,
		Owner: "test", Sources: system.Sources}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// TestStatementsOverHTTP: a group is carried out, and what is wrong with one has a place.
func TestStatementsOverHTTP(t *testing.T) {
	t.Parallel()
	b := start(t)
	execute := func(sql string) answer {
		return b.do("POST", "/api/v1/streams/statements", map[string]any{"sql": sql})
	}
	type results struct {
		Results []struct {
			Done string
			Rows [][]string
		}
	}
	made := decode[results](t, execute(`CREATE SINK s TYPE PRINT;
		CREATE QUERY q AS SELECT runId FROM run_events INTO s; SHOW SINKS`).want(t, 200))
	if len(made.Results) != 3 || made.Results[1].Done != "accepted the query q" || len(made.Results[2].Rows) != 1 {
		t.Errorf("%+v", made)
	}
	for sql, want := range map[string]struct {
		status       int
		code         engine.Code
		kind         string
		line, column int
	}{
		"CREATE SINK\nx TIPE PRINT":                   {422, engine.CodeInvalid, "ParserError", 2, 3},
		"CREATE SINK s TYPE PRINT":                    {409, engine.CodeConflict, "AlreadyExists", 1, 13},
		"GET SINKS nobody":                            {404, engine.CodeNotFound, "DoesNotExist", 1, 11},
		"DROP SINK s":                                 {409, engine.CodeConflict, "ReferencedQueryExists", 1, 11},
		"SELECT runIt FROM run_events INTO s":         {422, engine.CodeInvalid, "BinderError", 1, 8},
		"WATCH SELECT name FROM queries":              {422, engine.CodeInvalid, "BinderError", 1, 1},
		"CREATE SINK z TYPE PRINT; DROP SINK s":       {409, engine.CodeConflict, "ReferencedQueryExists", 1, 37},
		"SELECT runId FROM run_events INTO s; SELECT": {422, engine.CodeInvalid, "ParserError", 1, 44},
	} {
		p := execute(sql).problem(t, want.status, want.code)
		if !strings.HasPrefix(p.Detail, want.kind+": ") || len(p.Errors) != 1 || p.Errors[0].Field != "sql" ||
			p.Errors[0].Line != want.line || p.Errors[0].Column != want.column {
			t.Errorf("%s: %+v", sql, p)
		}
	}
	b.do("POST", "/api/v1/streams/statements", map[string]any{"sql": "GET SINKS", "more": 1}).problem(t, 422,
		engine.CodeInvalid)
	shown := decode[struct {
		Queries []struct {
			Name, Statement string
			Sources         []int64
		}
		Sources []struct{ Name string }
		Sinks   []struct{ Name string }
		Alerts  []struct{ Query, Type, Row string }
		Workers []struct {
			Used int64 `json:"used_slots"`
		}
	}](t, b.do("GET", "/api/v1/streams", nil).want(t, 200))
	if len(shown.Queries) != 1 || shown.Queries[0].Name != "q" || len(shown.Sinks) != 1 || len(shown.Sources) != 8 ||
		len(shown.Alerts) != 1 || shown.Alerts[0].Row != "p99 250" || len(shown.Queries[0].Sources) != 1 ||
		len(shown.Workers) != 1 || shown.Workers[0].Used != 1 {
		t.Errorf("%+v", shown)
	}
	if !strings.Contains(strings.Join(b.store.actions(), " "), "stream.statement") {
		t.Errorf("nothing is in the audit log: %v", b.store.actions())
	}
}
