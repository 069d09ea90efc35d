package server_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	apibinds "github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/storage/results"
)

const keptName = "Ann <b>Smith</b> \x1b[2J\u202e\x00"

// withBinds is a server with a run whose two run workers have kept parameters.
func withBinds(t *testing.T, mode string) (*bench, string) {
	t.Helper()
	kept, err := results.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(o *server.Options) { o.Files = kept })
	b.makePlayground()
	s := scenario("kept")
	s["workload"].(map[string]any)["binds"] = mode
	run := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": s}).want(t, 201))
	for _, w := range []string{"worker-0", "worker-1"} {
		k := params.New(mode, []engine.Statement{{ID: "lookup"}, {ID: "insert"}}, 2)
		batch := &plugin.Batch{Data: []byte(keptName), Args: []plugin.Value{
			{Type: engine.TypeText, Len: uint32(len(keptName))}, {Type: engine.TypeI64, I: 4711}, {}}}
		for i := range 30 {
			r := engine.Execution{Seq: uint32(i), Statement: uint16(i % 2), Success: i%3 != 0, Elapsed: int64(i) * 1e6}
			if k.Wants(&r) {
				k.Record(&r, engine.ExecutionError{Class: engine.ErrClassConstraint, Code: "23505",
					Message: "Key (id)=(4711) already exists."}, batch, []plugin.Op{{Statement: r.Statement, NArgs: 3}})
			}
		}
		dir := t.TempDir()
		all, _ := k.Samples(w)
		of := params.FileInfo{RunID: run.RunID, ResultID: w, WorkerID: w, Name: params.FreeName(dir, w)}
		a, err := params.Write(dir, of, all, 5, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.Put(context.Background(), a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
			t.Fatal(err)
		}
		if err := b.store.SaveArtifact(context.Background(), 0, a); err != nil {
			t.Fatal(err)
		}
	}
	return b, run.RunID
}

// TestValuesAreShownToWhoMayAndAsks: nobody else sees one, by no address, and each look is noted.
func TestValuesAreShownToWhoMayAndAsks(t *testing.T) {
	t.Parallel()
	b, id := withBinds(t, params.Plain)
	path := "/api/v1/runs/" + id + "/binds"
	_, viewer := b.join("vera", store.RoleViewer)
	_, operator := b.join("otto", store.RoleOperator)
	for _, who := range [][]string{viewer, operator, nil} {
		a := b.do("GET", path, nil, who...)
		if masked := read[apibinds.KeptBinds](t, a); masked.Total != 60 || masked.Values || masked.Mode != params.Plain {
			t.Errorf("%d are told, values %v of %s", masked.Total, masked.Values, masked.Mode)
		}
		if text := string(a.body); strings.Contains(text, "Smith") || strings.Contains(text, "4711") {
			t.Errorf("a value is told: %s", text)
		}
	}
	b.do("POST", path, "{}", viewer...).problem(t, http.StatusForbidden, engine.CodeForbidden)
	lines := func() int {
		found, err := b.store.ListAudit(t.Context(), store.AuditFilter{Action: "binds.show", Outcome: store.OutcomeDone,
			Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := lines(); n != 0 {
		t.Errorf("%d looks are noted before there was one", n)
	}
	one := read[apibinds.KeptBinds](t, b.do("POST", path+"?worker=worker-1&connection=0&seq=29", "{}", operator...))
	if len(one.Executions) != 1 || one.Executions[0].Seq != 29 || !one.Values {
		t.Fatalf("%+v", one)
	}
	v := one.Executions[0].Calls[0].Values
	if *v[0].Text != keptName || *v[1].Text != "4711" || v[2].Type != "null" || v[2].Text != nil {
		t.Errorf("%q %q %+v", *v[0].Text, *v[1].Text, v[2])
	}
	if n := lines(); n != 1 {
		t.Errorf("%d looks are noted", n)
	}
	for _, a := range b.do("GET", "/api/runs/"+id+"/artifacts", nil).artifacts(t) {
		b.do("GET", "/api/runs/"+id+"/executions?part="+a.Name, nil, operator...).problem(t, http.StatusNotFound,
			engine.CodeNotFound)
	}
	b.do("GET", "/api/runs/"+id+"/executions", nil, operator...).problem(t, http.StatusNotFound, engine.CodeNotFound)
}

// artifacts are those of an answer.
func (a answer) artifacts(t *testing.T) []engine.Artifact {
	t.Helper()
	return decode[struct {
		Artifacts []engine.Artifact `json:"artifacts"`
	}](t, a.want(t, http.StatusOK)).Artifacts
}

// TestParametersAreFiltered: by each word that there is, and what is no such word is refused.
func TestParametersAreFiltered(t *testing.T) {
	t.Parallel()
	b, id := withBinds(t, params.Masked)
	path := "/api/v1/runs/" + id + "/binds"
	for query, want := range map[string]int{"": 60, "why=failed": 20, "why=slow": 40, "statement=insert": 30,
		"error_class=constraint": 20, "error_code=23505&statement=lookup": 10, "error_code=1": 0, "inside=yes": 0,
		"inside=no": 60, "worker=worker-1&seq=1": 1, "connection=0": 60, "connection=1": 0, "worker=x": 0} {
		if got := read[apibinds.KeptBinds](t, b.do("GET", path+"?"+query, nil)); got.Total != want ||
			len(got.Executions) != want || got.LeftOut != 10 {
			t.Errorf("%q: %d and %d, want %d; %d left out of both run workers", query, got.Total, len(got.Executions), want,
				got.LeftOut)
		}
	}
	for _, query := range []string{"why=lost", "connection=x", "seq=-2", "inside=maybe", "statements=x",
		"statement=" + strings.Repeat("x", 201)} {
		if a := b.do("GET", path+"?"+query, nil); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", query, a.StatusCode, a.body)
		}
	}
	b.do("GET", "/api/v1/runs/nobody/binds", nil).problem(t, http.StatusNotFound, engine.CodeNotFound)
	b.do("POST", "/api/v1/runs/nobody/binds", "{}").problem(t, http.StatusNotFound, engine.CodeNotFound)
	b.do("POST", path, "{}").problem(t, http.StatusConflict, engine.CodeConflict)
}
