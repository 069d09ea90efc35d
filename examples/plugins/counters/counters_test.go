package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/trial"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

func openRequest() plugin.OpenRequest {
	var req plugin.OpenRequest
	// A document as the host sends it.
	err := json.Unmarshal([]byte(`{"seed":7,"key_slot":2,"key_slots":4,"params":{"visits":0.5,"new_pages":0.25},"pools":[],
		"tables":[{"name":"pages","physical_name":"pages","key":["page"],"rows":100,"rows_exact":true,"key_min":1,"key_max":100,"dense":true,
		"columns":[{"name":"page","type":"i64","db_type":"bigint"},{"name":"title","type":"text","db_type":"text"},{"name":"visits","type":"i64","db_type":"bigint"}]}]}`), &req)
	if err != nil {
		panic(err)
	}
	return req
}

// TestNatively tests the generator without building a module.
func TestNatively(t *testing.T) {
	p := sdktest.Workload(counters{})
	if err := p.Open(openRequest()); err != nil {
		t.Fatal(err)
	}
	next, counted := int64(103), map[uint16]int{}
	for range 20 {
		ops, err := p.Fill(128)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			counted[op.Statement]++
			key := op.Args[0].I
			if op.Statement != add && (key < 1 || key > 100) {
				t.Fatalf("page %d does not exist", key)
			}
			if op.Statement == add {
				if key != next {
					t.Fatalf("new page %d, slot 2 of 4 has %d", key, next)
				}
				next += 4
			}
		}
	}
	if n := 20 * 128; counted[visit] < n*2/5 || counted[add] < n/6 || counted[read] < n/6 {
		t.Errorf("shares: %v", counted)
	}
}

// TestTheModule builds the module and puts it
// through the conformance suite.
func TestTheModule(t *testing.T) {
	wasm := filepath.Join(t.TempDir(), "counters.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o",
		wasm, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	report, err := trial.Conformance(context.Background(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if !c.Passed {
			t.Errorf("%s: %s", c.Name, c.Message)
		}
	}
	source, err := os.ReadFile("template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if sc, err := template.Parse(source); err != nil || sc.Workload.Plugin != report.Info.Name {
		t.Errorf("the template: %v, plugin %q", err, sc.Workload.Plugin)
	}
}
