package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/outbound/otlp"
	"github.com/loadstone-db/loadstone/engine/run/admission"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/server"
)

const metricsPage = "../docs/reference/metrics.md"

// described are the metrics that a part of docs/reference/metrics.md lists.
func described(t *testing.T, heading string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", metricsPage, heading)
	}
	section, _, _ = strings.Cut(section, "\n##")
	for _, m := range regexp.MustCompile("(?m)^- `(loadstone_\\w+)").FindAllStringSubmatch(section, -1) {
		names = append(names, m[1])
	}
	return names
}

var helpLine = regexp.MustCompile(`(?m)^# HELP (loadstone_\w+) (.*)\n# TYPE \w+ (\w+)$`)

// listed are the metrics of an answer of /metrics as items of a list, but for those that another list has.
func listed(text, other string) string {
	var items []string
	for _, m := range helpLine.FindAllStringSubmatch(text, -1) {
		if strings.Contains(other, m[0]) {
			continue
		}
		kind := map[string]string{"histogram": " (histogram)"}[m[3]]
		items = append(items, fmt.Sprintf("- `%s`%s: %s\n", m[1], kind, strings.ReplaceAll(m[2], `\\`, `\`)))
	}
	slices.Sort(items)
	return strings.Join(slices.Compact(items), "")
}

// writeMetrics holds the page of metrics against what a server and a node export.
func writeMetrics(t *testing.T, ofServer, ofNode string) {
	t.Helper()
	want := `# Metrics

Made from the program (` + "`go test ./server -run TestTheMetricsAreListed -update`" + `). ` +
		`Names in ` + "`_total`" + ` are counters, others gauges, unless said otherwise. No label is a run, a node or a worker: ids are in the logs. [Monitor](../operate/monitor.md) says how to read them.

` + "```text\ncurl -H \"Authorization: Bearer $LOADSTONE_TOKEN\" http://127.0.0.1:8080/metrics\n```" + `

## On a server

` + listed(ofServer, "") + `
## On a node

A server with a node of its own has these too. A node also has ` + "`loadstone_build_info`, `loadstone_trace_spans_total`" + `,
and where it [refreshes tables](../operate/configure.md#refresh-workers) the metrics of refreshes.

` + listed(ofNode, ofServer)
	if *updateDocument {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(metricsPage)
	if err != nil || string(have) != want {
		t.Errorf("%s is not what is exported: run the test with -update (%v)", metricsPage, err)
	}
}

// noNodes is a fleet without any.
type noNodes struct{}

func (noNodes) Nodes() []nodes.NodeInfo { return nil }

func (noNodes) Capacity() nodes.Capacity { return nodes.Capacity{} }

// TestTheMetricsAreListed, on a server and on a node, both ways. No label
// names what there is no end of.
func TestTheMetricsAreListed(t *testing.T) {
	t.Parallel()
	traces, err := otlp.Open(t.Context(), otlp.Options{Endpoint: "http://127.0.0.1:1", Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close(t.Context())
	b := start(t, func(o *server.Options) {
		o.Collectors = []prometheus.Collector{metrics.NewServer(nil), traces,
			metrics.NewCache(func() metrics.CacheState { return metrics.CacheState{} }),
			metrics.NewExport(map[string]func() delivery.Counts{"otlp": func() delivery.Counts {
				return delivery.Counts{Lost: map[string]int64{delivery.LostRejected: 3}}
			}}, func() (written, dropped int64) { return 0, 4 }),
			metrics.NewLive(func() (written, dropped int64) { return 5, 6 }),
			metrics.NewNodes(func() []nodes.NodeInfo { return nil }),
			admission.New(admission.Options{Nodes: noNodes{}})}
		o.Tables = noTables{}
	})
	b.do("GET", "/api/info", nil).want(t, 200) // a metric by route has its first
	text := string(b.do("GET", "/metrics", nil).want(t, 200).body)
	for _, label := range []string{"run_id", "work_id", "worker_id", "node_id", "query_id"} {
		if strings.Contains(text, label+"=") {
			t.Errorf("%s is a label", label)
		}
	}
	for _, figure := range []string{"loadstone_pending_refresh_count 7", "loadstone_refresh_backlog_seconds 8",
		"loadstone_refresh_overdue_seconds 10", "loadstone_refresh_duration_p95_seconds 9",
		"loadstone_failed_tables 3", "loadstone_ingest_lag_seconds 11",
		"loadstone_live_seconds_written_total 5", "loadstone_live_seconds_dropped_total 6",
		"loadstone_out_seconds_dropped_total 4", `loadstone_out_lost_total{destination="otlp",reason="refused"} 3`} {
		if !strings.Contains(text, figure+"\n") {
			t.Errorf("%s is not there", figure)
		}
	}
	if !strings.Contains(text, `loadstone_nodes_by_state{state="UNREACHABLE"} 0`) {
		t.Error("a state without nodes has no figure")
	}
	node := metrics.NewNode(nil, func() worker.NodeState { return worker.NodeState{RunWorkers: 3} })
	registry := prometheus.NewRegistry()
	registry.MustRegister(node, traces, metrics.NewRefreshes(noTables{}.Load))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var ofNode strings.Builder
	for _, f := range families {
		kind := strings.ToLower(f.GetType().String())
		fmt.Fprintf(&ofNode, "# HELP %s %s\n# TYPE %s %s\n", f.GetName(), f.GetHelp(), f.GetName(), kind)
	}
	build := regexp.MustCompile(`(?m)^# (HELP|TYPE) loadstone_build_info .*\n`) // the program's own, beside them
	ofNode.WriteString(strings.Join(build.FindAllString(text, -1), ""))
	writeMetrics(t, text, ofNode.String())
}

// TestTheDashboardAndTheRulesNameWhatIsExported: a panel of a metric that does not exist stays empty for ever.
func TestTheDashboardAndTheRulesNameWhatIsExported(t *testing.T) {
	t.Parallel()
	known := append(described(t, "## On a server"), described(t, "## On a node")...)
	seen := 0
	for _, file := range []string{"dashboard.json", "alerts.yaml", "alerts_test.yaml"} {
		text, err := os.ReadFile("../deploy/observability/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`loadstone_[a-z0-9_]+`).FindAllString(string(text), -1) {
			seen++
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !slices.Contains(known, name) && !slices.Contains(known, base) {
				t.Errorf("%s names %s, which nobody exports", file, name)
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d names were found", seen)
	}
}

// TestScalersAskForWhatThereIs: the chart's objects for KEDA and the HPA scale by fields of GET /api/v1/scaling and by
// metrics of /metrics that a server has. By others they would scale nothing, without a word.
func TestScalersAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Tables, o.Scaling = noTables{}, demand{} })
	text := string(b.do("GET", "/metrics", nil).want(t, 200).body)
	var fields map[string]any
	if err := json.Unmarshal(b.do("GET", "/api/v1/scaling", nil).want(t, 200).body, &fields); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../deploy/helm/loadstone/templates/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	keda, hpa := 0, 0
	for _, file := range files {
		template, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`valueLocation: *(\S+)`).FindAllStringSubmatch(string(template), -1) {
			keda++
			if value, is := fields[m[1]].(float64); !is {
				t.Errorf("%s: KEDA scales by %s of /api/v1/scaling, which is %v there", file, m[1], value)
			}
		}
		for _, m := range regexp.MustCompile(`metric: *\{name: *([^},\s]+)`).FindAllStringSubmatch(string(template), -1) {
			hpa++
			if !strings.Contains(text, "\n"+m[1]+" ") {
				t.Errorf("%s: the HPA scales by %s, which /metrics does not have", file, m[1])
			}
		}
	}
	if keda < 2 || hpa < 1 {
		t.Errorf("%d fields and %d metrics were found", keda, hpa)
	}
}
