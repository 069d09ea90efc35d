package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// TestAComparisonIsWrittenAsCSVAndJSON compares two files, and reads what is written.
func TestAComparisonIsWrittenAsCSVAndJSON(t *testing.T) {
	a, b := writeReport(t, "a", steady(1000, 20)...), writeReport(t, "b", steady(500, 20)...)
	dir := t.TempDir()
	table, document := filepath.Join(dir, "c.csv"), filepath.Join(dir, "c.json")
	var out, errs bytes.Buffer
	if code := run(t.Context(), func() {}, []string{"compare", a, b, "--csv", table, "--json", document}, &out,
		&errs); code != terminal.ExitThresholds {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errs.String())
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	head := "metric unit a b difference low high detectable more_runs verdict reason"
	if err != nil || len(rows) < 6 || strings.Join(rows[0], " ") != head {
		t.Fatalf("%v: %q", err, text)
	}
	verdicts := map[string]string{}
	for _, r := range rows[1:] {
		verdicts[r[0]] = r[9]
	}
	if verdicts["qps"] != "worse" {
		t.Errorf("half the throughput: %v", verdicts)
	}
	if text, err = os.ReadFile(document); err != nil || !json.Valid(text) {
		t.Errorf("%v: %s", err, text)
	}
	for name, args := range map[string][]string{
		"files have no charts":   {a, b, "--html", filepath.Join(dir, "c.html")},
		"a run against itself":   {someID, someID, "--html", filepath.Join(dir, "c.html")},
		"several baselines":      {someID + "," + otherID, someID, "--html", filepath.Join(dir, "c.html")},
		"no number":              {"\x1b[31m\u202e", someID, "--html", filepath.Join(dir, "c.html")},
		"two on standard output": {a, b, "--csv", "-", "--json", "-"},
	} {
		out.Reset()
		errs.Reset()
		code := run(t.Context(), func() {}, append([]string{"compare"}, args...), &out, &errs)
		if code != terminal.ExitUsage || errs.Len() == 0 || strings.ContainsAny(errs.String(), "\x1b\u202e") {
			t.Errorf("%s: exit %d, %q", name, code, errs.String())
		}
		if _, err := os.Stat(filepath.Join(dir, "c.html")); err == nil {
			t.Errorf("%s: a file was written", name)
		}
	}
}

const someID, otherID = "0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002"

// TestAComparisonIsHandedOnAsAFile makes two runs, and the report of their comparison from this machine’s data.
func TestAComparisonIsHandedOnAsAFile(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	template := p.Write("short.yaml", `name: short
target: {connection: playground, adapter: postgres, table_name: compared, prepare: {rows: 100, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 1}}, concurrent_connections: 1, warmup_seconds: 0, duration_seconds: 2}
`)
	var ids []string
	for range 2 {
		code, text, s := p.Run(template, "--disk-reserve", "64", "--allow-writes")
		if s == nil {
			t.Fatalf("exit %d: %s", code, text)
		}
		ids = append(ids, s.RunID)
	}
	check := func(where, file string, code int, text string) {
		t.Helper()
		page, err := os.ReadFile(file)
		if err != nil || code != terminal.ExitPassed || !strings.Contains(text, "qps") ||
			!strings.Contains(string(page), "Comparison of 2 runs") || !strings.Contains(string(page), `id="content"`) {
			t.Errorf("%s: exit %d, %v: %s\n%.300s", where, code, err, text, page)
		}
	}
	file := p.Path("local.html")
	code, text := p.Command("compare", ids[0], ids[1], "--data-dir", p.Path("data"), "--html", file)
	check("this machine", file, code, text)
	code, text = p.Command("compare", ids[0], otherID, "--data-dir", p.Path("data"), "--html", p.Path("none.html"))
	if code != terminal.ExitUsage || !strings.Contains(text, "no run "+otherID) {
		t.Errorf("a run that is not there: exit %d: %s", code, text)
	}
	code, text = p.Command("report", ids[0][:8], "--data-dir", p.Path("data"))
	if code != terminal.ExitUsage || !strings.Contains(text, ids[0][:8]+" is not the id of a run") {
		t.Errorf("the beginning of an id: exit %d: %s", code, text)
	}
	for _, args := range [][]string{{"report", ids[0]}, {"compare", ids[0], ids[1]},
		{"backup", "--out", p.Path("none.backup")}} {
		code, text = p.Command(append(args, "--data-dir", p.Path("nowhere"))...)
		if code != terminal.ExitUsage || !strings.Contains(text, p.Path("nowhere")) || !strings.Contains(text, "--data-dir") {
			t.Errorf("%s where nothing is: exit %d: %s", args[0], code, text)
		}
	}
	if _, err := os.Stat(p.Path("nowhere")); err == nil {
		t.Error("a folder was made by commands that only read")
	}
	lock, err := embedded.Lock(p.Path("data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	code, text = p.Command("report", ids[0], "--data-dir", p.Path("data"))
	if code != terminal.ExitUsage || !strings.Contains(text, "--server URL") {
		t.Errorf("beside a server: exit %d: %s", code, text)
	}
}
