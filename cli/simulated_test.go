package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// ofStandIn is a summary with a cost, of a stand-in, an emulator or neither.
func ofStandIn(simulated, emulated bool) *engine.Summary {
	s := summary()
	s.CancellationReason = nil
	s.Simulated, s.Emulated = simulated, emulated
	s.Verdict = s.VerdictText()
	million := 0.5
	s.Cost = &engine.Cost{Warehouse: "WH", WarehouseType: "STANDARD", WarehouseSize: "X-Small", Clusters: 1,
		CreditsPerHour: 1, Credits: 0.0056, CreditPrice: 3,
		Currency: "USD", Price: 0.0167, PricePerMillion: &million, PriceList: "list"}
	return s
}

// seconds is a measurement that is long enough to be compared.
func seconds(n int) (list []engine.MeasuredSecond) {
	h := histogram.New()
	for i := range 100 {
		h.Record(int64(i+1) * int64(time.Millisecond))
	}
	for range n {
		list = append(list, engine.MeasuredSecond{Operations: 100, Latency: h.Data()})
	}
	return list
}

// TestSimulatedAgainstRealIsSaidFirst drives the command compare on files.
func TestSimulatedAgainstRealIsSaidFirst(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, s *engine.Summary) string {
		s.RunID = name
		text, err := json.Marshal(report.File{Summary: s, Seconds: seconds(30)})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	real, model, emulator := write("real", ofStandIn(false, false)), write("model", ofStandIn(true, false)),
		write("emulator", ofStandIn(true, true))
	other, model2 := write("other", ofStandIn(false, false)), write("model2", ofStandIn(true, false))
	for _, c := range []struct{ a, b, first, head, inA, inB string }{
		{real, model, "The figures of A are real, those of B simulated", "B (simulated)", "", "simulated"},
		{emulator, real, "The figures of A are emulated, those of B real", "A (emulated)", "emulated", ""},
		{model, model2 + "," + real, "The figures of A are simulated, those of B partly a stand-in's", "B (mixed)",
			"simulated", "mixed"},
		{model, model2, "All these figures are simulated", "A (simulated)", "simulated", "simulated"},
		{real, other, "metric", "A ", "", ""},
	} {
		out := filepath.Join(dir, "out.json")
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), func() {}, []string{"compare", c.a, c.b, "--out", out}, &stdout,
			&stderr); code != terminal.ExitPassed {
			t.Fatalf("%s against %s: exit %d\n%s", c.b, c.a, code, stderr.String())
		}
		if text := strings.TrimLeft(stdout.String(), " "); !strings.HasPrefix(text, c.first) ||
			!strings.Contains(text, c.head) {
			t.Errorf("it begins otherwise than %q, or lacks %q:\n%s", c.first, c.head, text)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var got compare.Comparison
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		simulated := c.inA != "" || c.inB != ""
		if got.StandIn != (compare.StandIn{A: c.inA, B: c.inB}) || got.Simulated != simulated || simulated &&
			!strings.HasPrefix(got.Notes[0], c.first) {
			t.Errorf("--out holds %+v %v %q", got.StandIn, got.Simulated, got.Notes)
		}
	}
}
