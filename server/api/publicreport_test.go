package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/results/findings"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
)

// canary stands for what is of nobody's concern who is sent a report.
const canary = "kanari-7f3a"

// told is a store whose run and log are given.
type told struct {
	api.ReportStore
	d    engine.RunDetail
	logs []engine.LogEntry
}

func (s told) Detail(context.Context, string) (engine.RunDetail, error) { return s.d, nil }

func (s told) RunNote(context.Context, string) (store.RunNote, error) { return store.RunNote{}, nil }

func (s told) ListMarks(context.Context, string) ([]engine.Mark, error) {
	return []engine.Mark{{MarkID: "m", Text: "index <b>created</b>", MadeBy: canary, ChangedBy: canary}}, nil
}

func (s told) Series(context.Context, string, store.Window) ([]engine.Point, float64, error) {
	return nil, 1, nil
}

func (s told) WorkerSeries(context.Context, string, string, store.Window) ([]store.WorkerPoint, float64, error) {
	return nil, 1, nil
}

func (s told) WarehousePolls(context.Context, string, store.Window) ([]engine.WarehousePoint, float64, error) {
	return nil, 1, nil
}

func (s told) WarehouseSlots(context.Context, string, store.Window) ([]engine.WarehouseSlot, error) {
	return nil, nil
}

func (s told) Logs(context.Context, string, int64, engine.LogLevel, int) ([]engine.LogEntry, error) {
	return s.logs, nil
}

func (s told) Compare(_ context.Context, a, b []string, o compare.Options) (compare.Comparison, error) {
	if !slices.Equal(a, []string{"r"}) || !slices.Equal(b, []string{"other"}) || o.TolerancePct != 7 {
		return compare.Comparison{}, fmt.Errorf("%v is compared with %v, %+v", b, a, o)
	}
	remote := *s.d.Summary
	remote.Environment.Hostname = canary + "-too"
	return compare.Comparison{Notes: compare.Notes([]engine.Summary{*s.d.Summary}, []engine.Summary{remote})}, nil
}

// full is a run with a canary wherever a value, a person or a machine may be.
func full() told {
	quoted := `Key (email)=(` + canary + `) of '` + canary + `' exists`
	params := json.RawMessage(`{"x":"` + canary + `"}`)
	minimum := int64(4711471147)
	plan := &engine.Plan{Driver: "postgres", Session: []string{"SET x = '" + canary + "'"},
		Restore: []string{"SET y = '" + canary + "'"},
		Pools:   []engine.Pool{{Table: "t", Columns: []string{"email"}, Rows: [][]any{{canary}}}},
		Tables: []engine.Table{{Name: "t", PhysicalName: "public.orders", Columns: []engine.Column{{Name: "email"}},
			KeyMin: &minimum, KeyMax: &minimum, DenseMax: &minimum}},
		Statements: []engine.Statement{{ID: "s", SQL: "SELECT a FROM t WHERE b = '" + canary + "' AND c = $1"}}}
	figures := engine.Figures{Operations: 7,
		Errors: engine.ErrorFigures{Top: []engine.ErrorGroup{{Count: 1,
			ExecutionError: engine.ExecutionError{Class: "constraint", Message: quoted}}}},
		Slowest: []engine.SlowExecution{{ErrorMessage: quoted}},
		Findings: []engine.Finding{{Rule: findings.RuleLock, Text: "The session " + canary + " held it.",
			Who: &engine.FindingSession{Session: canary, User: canary, Statement: canary}},
			{Rule: findings.RuleNotPermitted, Text: canary + " may not see it."}},
		Outages: []engine.Outage{{Number: 1, DownSeconds: 2, Before: server("primary"), After: server("standby")},
			{Number: 2, ToTheEnd: true}}}
	rate := 801.5
	changed := engine.Note{Code: engine.NoteRateChanged, Live: true, Old: 400, New: 801.5, Seconds: 21, User: canary}
	fewer := engine.Note{Code: engine.NoteConnectionsChanged, Old: 4711, New: 12, Seconds: 30, User: canary}
	started := engine.Note{Code: engine.NoteRunStarted, User: canary}
	validity := engine.Validity{Verdict: engine.VerdictValid, Causes: []engine.ValidityCause{{Detail: quoted},
		engine.NewCause(engine.CauseLostWorker, engine.Note{Code: engine.AboutLostWorker, Worker: "w", Text: quoted},
			time.Time{}, time.Time{})}}
	validity.SetNotes([]engine.Note{engine.TextNote(quoted), changed})
	environment := engine.Environment{Hostname: canary, Calibration: &engine.Calibration{MachineFingerprint: canary}}
	late := engine.Enrichment{Reason: quoted, Notes: []string{quoted}}
	words := quoted
	d := engine.RunDetail{
		Run: engine.Run{RunID: "r", RunName: "orders", Status: engine.StatusCompleted, CreatedBy: canary,
			CancellationReason: &words, Waiting: &engine.Waiting{Reason: canary}, Scenario: engine.Scenario{Name: "orders",
				Target:   engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: canary}, Params: params},
				Matrix:   &engine.Matrix{Targets: []engine.MatrixTarget{{Target: engine.Target{Params: params}}}},
				Workload: engine.Workload{Params: params, Feed: &engine.Feed{CSV: canary}}}},
		Summary: &engine.Summary{RunID: "r", Status: engine.StatusCompleted, CancellationReason: &words,
			ValidityDetail: validity, Figures: figures, Environment: environment},
		Plan: plan, Artifacts: []engine.Artifact{{Name: canary}}, Enrichment: late,
		Events: []engine.Event{{Data: engine.EventData{Detail: canary, InitiatedBy: canary, Reason: canary}}},
		LoadChanges: []engine.Event{{Type: engine.EventLoadChanged,
			Data: engine.EventData{InitiatedBy: canary, Detail: canary, TargetQPS: &rate}}},
		Warehouse: &engine.Warehouse{Error: quoted},
		Workers: []engine.RunResult{{WorkerID: "w", Plan: plan, Figures: &figures, Validity: &validity,
			Environment: &environment, Enrichment: &late, FailureReason: quoted}}}
	return told{
		nil,
		d,
		[]engine.LogEntry{
			{Level: engine.LogInfo, Message: "16 connections are open: " + quoted, Details: params},
			{
				Level:   engine.LogInfo,
				Message: "The target is the primary at " + canary + ":5432, version 17.4, started at 1999-09-09",
			},
			{Level: engine.LogInfo, Message: "After an outage another server answers: the primary at " + canary + ":5432"},
			{Level: engine.LogInfo, Message: "What the server does is not observed. dial tcp " + canary + ": refused"},
			noted(engine.LogInfo, engine.Note{Code: engine.NoteTargetServer, Text: "The target is the primary, version 17.4",
				Address: canary + ":5432", At: server("").StartedAt}),
			noted(engine.LogInfo, started),
			noted(engine.LogWarning, changed),
			noted(engine.LogWarning, fewer),
			{Level: engine.LogError, Message: quoted + " at 4711471147", Details: params},
		},
	}
}

// server is one whose address, cluster and start are nobody's concern.
func server(role string) *engine.ServerIdentity {
	return &engine.ServerIdentity{Address: canary + ":4711471147", Role: role, Version: "17.4", System: canary,
		Timeline: 4711471147, StartedAt: engine.At(time.Date(1999, 9, 9, 9, 9, 9, 0, time.UTC))}
}

// noted is a line of the log as the run's loop writes a note.
func noted(level engine.LogLevel, n engine.Note) engine.LogEntry {
	details, _ := json.Marshal(map[string]any{"note": n, "elapsed_seconds": 1})
	return engine.LogEntry{Level: level, Message: n.String(), Details: details}
}

// pages are what reports are made of.
var pages = fstest.MapFS{"report/report.js": {Data: []byte("1")}, "report/report.css": {Data: []byte("a{}")}}

// harmless looks for what is private in all that a report holds, and for what it is to hold.
func harmless(t *testing.T, r api.Report, shown ...string) {
	t.Helper()
	m := regexp.MustCompile(`id="content">([^<]*)<`).FindSubmatch(r.HTML)
	if m == nil {
		t.Fatalf("no content in %.300s", r.HTML)
	}
	zipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[1])))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{canary, "4711471147"} {
		for rest := string(content); strings.Contains(rest, secret); {
			at := strings.Index(rest, secret)
			t.Errorf("%s is in the report: …%s", secret, rest[max(0, at-80):at+len(secret)])
			rest = rest[at+len(secret):]
		}
	}
	for _, text := range shown {
		if !strings.Contains(string(content), text) {
			t.Errorf("%q is not in the report", text)
		}
	}
}

// TestAReportHoldsNoValues looks for what is private in all that a report holds, and sees that it is still there for
// those who may see it.
func TestAReportHoldsNoValues(t *testing.T) {
	t.Parallel()
	s, untouched := full(), full()
	r, err := api.NewReportMaker(s, s, pages, "1").Report(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	harmless(t, r, "16 connections are open", "public.orders", "AND c = $1", `"operations":7`, `"email"`,
		`index \u003cb\u003ecreated`, `"target_qps":801.5`, "from 400/s to 801.5/s at 21 s.",
		"from 4711 to 12 at 30 s.")
	if !reflect.DeepEqual(s.d, untouched.d) || !reflect.DeepEqual(s.logs, untouched.logs) {
		t.Error("the run itself was changed")
	}
}

// TestAReportOfAnEarlierVersionNamesNobody: its sentences have no codes, and some of them a user.
func TestAReportOfAnEarlierVersionNamesNobody(t *testing.T) {
	t.Parallel()
	s := full()
	v := &s.d.Summary.ValidityDetail
	v.NoteDetails = nil
	s.d.Workers[0].Validity.NoteDetails = nil
	for i := range s.logs {
		s.logs[i].Details = nil
	}
	r, err := api.NewReportMaker(s, s, pages, "1").Report(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	harmless(t, r, `"operations":7`, "The log is left out")
	s.d.LoadChanges = nil
	v.Notes, v.LiveNotes = []string{"There was no warm-up."}, nil
	s.d.Workers[0].Validity = v
	if r, err = api.NewReportMaker(s, s, pages, "1").Report(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	harmless(t, r, "There was no warm-up.")
}

// TestAComparisonHoldsNoValues of any of its runs, nor the name of the machines that its notes tell apart.
func TestAComparisonHoldsNoValues(t *testing.T) {
	t.Parallel()
	s, untouched := full(), full()
	r, err := api.NewReportMaker(s, s, pages, "1").Comparison(t.Context(), []string{"r", "other"}, 7)
	if err != nil {
		t.Fatal(err)
	}
	harmless(t, r, `"tolerance_pct":7`, "public.orders", "AND c = $1", `"operations":7`, `"target_qps":801.5`,
		"The runs differ in their machine of the generator.")
	if !reflect.DeepEqual(s.d, untouched.d) {
		t.Error("the run itself was changed")
	}
}
