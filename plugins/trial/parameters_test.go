package trial

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/plugins/host"
)

// TestConformanceKnowsParameters: a plugin may count on its defaults, and one that
// requires parameters is asked for operations only with them.
func TestConformanceKnowsParameters(t *testing.T) {
	wasm := plugintest.Guest{
		Manifest: `{"kind":"workload","name":"x","parameters":{"type":"object","required":["mode"],"properties":{"mode":{"enum":["a"]}}},
		"statements":[{"id":"a","sql":"SELECT 1"}]}`,
		Batch: []byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0},
	}.Build()
	for _, c := range []struct {
		params         string
		passed, stream bool
	}{{"", true, false}, {`{"mode":"a"}`, true, true}, {`{"mode":"b"}`, false, false}, {`[]`, false, false}} {
		r, err := conformance(context.Background(), host.Options{CacheDir: cacheDir}, wasm, json.RawMessage(c.params), true)
		if err != nil {
			t.Fatal(err)
		}
		stream := false
		for _, check := range r.Checks {
			stream = stream || check.Name == "stream" && !check.Skipped
			if requested := strings.Contains(check.Message, "--params"); check.Skipped && requested != (c.params == "") {
				t.Errorf("params %s: %s", c.params, check.Message)
			}
		}
		if r.Passed != c.passed || stream != c.stream {
			t.Errorf("params %s: passed %v, stream tried %v: %+v", c.params, r.Passed, stream, r.Checks)
		}
	}
}
