package host

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

const oneTable = `"tables":[{"name":"t","columns":["id","text"],"types":["i64","text"],"key":"id"}]`

func TestBindsAreCompleted(t *testing.T) {
	id, note := engine.Bind{Name: "id", Type: "i64", Column: "id"}, engine.Bind{Name: "text", Type: "text", Column: "text"}
	for _, c := range []struct {
		name, statement string
		want            []engine.Bind
	}{
		{"columns alone", `{"kind":"UPDATE","table":"t","columns":["text"],"binds":["text","id"]}`, []engine.Bind{note, id}},
		{"a type alone with SQL", `{"kind":"POINT_LOOKUP","table":"t","binds":["i64"],"sql":{"postgres":"SELECT $1"}}`,
			[]engine.Bind{{Name: "p1", Type: "i64"}}},
		{"types alone of a lookup", `{"kind":"POINT_LOOKUP","binds":["i64"]}`,
			[]engine.Bind{{Name: "p1", Type: "i64", Column: "id"}}},
		{"types alone of a scan", `{"kind":"RANGE_SCAN","binds":["i64","i64"]}`,
			[]engine.Bind{{Name: "p1", Type: "i64", Column: "id"}, {Name: "p2", Type: "i64"}}},
		{"types alone of an update", `{"kind":"UPDATE","columns":["text"],"binds":[{"type":"text"},{"type":"i64"}]}`,
			[]engine.Bind{{Name: "p1", Type: "text", Column: "text"}, {Name: "p2", Type: "i64", Column: "id"}}},
		{"types alone of an insert", `{"kind":"INSERT","binds":["i64",{"type":"TEXT"}]}`,
			[]engine.Bind{{Name: "p1", Type: "i64", Column: "id"}, {Name: "p2", Type: "text", Column: "text"}}},
		{"a column without its type", `{"kind":"POINT_LOOKUP","table":"t","binds":[{"column":"id"}]}`, []engine.Bind{id}},
		{"a name that is a column", `{"kind":"DELETE","table":"t","binds":[{"name":"id","type":"i64"}]}`, []engine.Bind{id}},
	} {
		m, err := parseManifest([]byte(`{"kind":"workload","name":"x",` + oneTable + `,"statements":[` + c.statement + `]}` +
			"\x00"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := m.Statements[0].Binds; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestNoControlCharactersInNamesAndSQL(t *testing.T) {
	for _, members := range []string{
		`"tables":[{"name":"t\u001b[2J","columns":["id i64"]}]`,
		`"tables":[{"name":"t","columns":[{"name":"id\u0000","type":"i64"}]}]`,
		`"tables":[{"name":"t","columns":[{"name":"id","type":"i64","db_type":{"postgres":"int\u0007"}}]}]`,
		`"statements":[{"id":"a","sql":{"postgres":"SELECT 1 /* \u0000 */"}}]`,
		`"statements":[{"id":"a","sql":{"postgres\u001b":"SELECT 1"}}]`,
		`"statements":[{"id":"a","sql":"SELECT 1 \u202e"}]`,
		`"statements":[{"id":"a","table":"t\u001b","sql":"SELECT 1"}]`,
		`"statements":[{"id":"a","sql":"SELECT 1","binds":[{"name":"\u001b","type":"i64"}]}]`,
		`"statements":[{"id":"a","sql":"SELECT 1","columns":["\u001b"]}]`,
		`"dialect":"\u001b"`,
	} {
		if _, err := parseManifest([]byte(`{"kind":"workload","name":"x",` + members + `}`)); err == nil ||
			!strings.Contains(err.Error(), "control characters") {
			t.Errorf("%s: %v", members, err)
		}
	}
	if _, err := parseManifest([]byte(
		`{"kind":"workload","name":"x","statements":[{"id":"a","sql":"SELECT\n\t1 -- <b>"}]}`)); err != nil {
		t.Errorf("SQL of two lines: %v", err)
	}
}

// TestConformanceKnowsParameters: a plugin may count on its defaults, and one that
// requires parameters is asked for operations only with them.
func TestConformanceKnowsParameters(t *testing.T) {
	wasm := plugintest.Guest{Manifest: `{"kind":"workload","name":"x","parameters":{"type":"object","required":["mode"],"properties":{"mode":{"enum":["a"]}}},
		"statements":[{"id":"a","sql":"SELECT 1"}]}`, Batch: []byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}}.Build()
	for _, c := range []struct {
		params         string
		passed, stream bool
	}{{"", true, false}, {`{"mode":"a"}`, true, true}, {`{"mode":"b"}`, false, false}, {`[]`, false, false}} {
		r, err := conformance(context.Background(), Options{CacheDir: cacheDir}, wasm, json.RawMessage(c.params), true)
		if err != nil {
			t.Fatal(err)
		}
		stream := false
		for _, check := range r.Checks {
			stream = stream || check.Name == "stream" && !check.Skipped
		}
		if r.Passed != c.passed || stream != c.stream {
			t.Errorf("params %s: passed %v, stream tried %v: %+v", c.params, r.Passed, stream, r.Checks)
		}
	}
}

// TestAnAdapterMaySayNothing: an empty answer is an empty document.
func TestAnAdapterMaySayNothing(t *testing.T) {
	ctx := context.Background()
	h := newHost(t, Options{})
	wasm := plugintest.Guest{Manifest: `{"kind":"adapter","name":"a","driver":"postgres"}`, Answer: " ",
		Code: map[string][]byte{"ls_call": plugintest.I64(0)}}.Build()
	info, err := h.Register(ctx, wasm, false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.Adapter(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := a.Call(ctx, map[string]string{"op": "session"}, &answer); err != nil {
		t.Error(err)
	}
}
