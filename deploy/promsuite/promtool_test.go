package promsuite_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// named is what promtool says about a metric that has the name by which rules of autoscalers know it.
const named = "loadstone_pending_refresh_count non-histogram and non-summary metrics should not have " +
	"\"_count\" suffix\n"

// TestPromtoolAsClient: promtool of the same module version, named by LOADSTONE_PROMTOOL, asks a server with a token,
// and finds nothing to say about the metrics of a server and of a node.
func TestPromtoolAsClient(t *testing.T) {
	tool := os.Getenv("LOADSTONE_PROMTOOL")
	if tool == "" {
		t.Skip("LOADSTONE_PROMTOOL names no promtool")
	}
	n := launch(t, t.TempDir(), nil, "worker", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
	p := serve(t, folder(t), nil, "--run", written(t))
	config := func(token string) string {
		name := filepath.Join(t.TempDir(), "token.yaml")
		if err := os.WriteFile(name, []byte("authorization: {credentials: "+token+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	run := func(stdin string, args ...string) (said string, err error) {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
		err = cmd.Run()
		return out.String(), err
	}
	mine := config(p.token)
	query := func(args ...string) string {
		t.Helper()
		said, err := run("", append([]string{"query", args[0], "--http.config.file=" + mine}, args[1:]...)...)
		if err != nil {
			t.Fatalf("promtool query %v: %v: %s", args, err, said)
		}
		return said
	}
	time.Sleep(6 * time.Second) // the last seconds come
	at, address := time.Now(), p.base+"/prometheus"
	const text = `sum by (kind) (max_over_time(loadstone_operations_total[10m]))`
	here := p.ask(text, at)
	found := regexp.MustCompile(`\{kind="(\w+)"\} => (\S+) @`).FindAllStringSubmatch(
		query("instant", "--time="+at.Format(time.RFC3339Nano), address, text), -1)
	if len(here) != 2 || len(found) != 2 {
		t.Fatalf("%v here, %v by promtool", here, found)
	}
	for _, one := range found {
		if v, err := strconv.ParseFloat(one[2], 64); err != nil || v != here[one[1]] || v < 100 {
			t.Errorf("%s: %s by promtool, %g here", one[1], one[2], here[one[1]])
		}
	}
	ranged := query("range", fmt.Sprintf("--start=%d", at.Add(-2*time.Minute).Unix()), fmt.Sprintf("--end=%d", at.Unix()),
		"--step=1s", address, `sum(loadstone_operations_total{phase="measurement"})`)
	if n := strings.Count(ranged, " @["); n < 8 || n > 14 {
		t.Errorf("%d samples of ten seconds: %s", n, ranged)
	}
	series := query("series", "--match=loadstone_latency_seconds", address)
	if n := strings.Count(series, `__name__="loadstone_latency_seconds"`); n != 4 {
		t.Errorf("%d series of two kinds and phases: %s", n, series)
	}
	if kinds := query("labels", address, "kind"); kinds != "POINT_LOOKUP\nUPDATE\n" {
		t.Errorf("kinds: %q", kinds)
	}
	quantile := query("instant", "--time="+at.Format(time.RFC3339Nano), address,
		`histogram_quantile(0.5, sum(last_over_time(loadstone_latency_seconds[10m])))`)
	value := regexp.MustCompile(`=> (\S+) @`).FindStringSubmatch(quantile)
	if value == nil {
		t.Fatal(quantile)
	}
	if v, err := strconv.ParseFloat(value[1], 64); err != nil || math.IsNaN(v) || v <= 0 || v > 1 {
		t.Errorf("the median is %s", quantile)
	}
	for what, c := range map[string]struct{ file, text, says string }{
		"a token that is none": {config("lst_nobody"), text, "401"},
		"a wrong expression":   {mine, `sum(rate(x[5m])`, "unclosed left parenthesis"},
		"too many steps":       {mine, `max_over_time(vector(1)[31y:1s])`, "may have 100000"},
	} {
		if said, err := run("", "query", "instant", "--http.config.file="+c.file, address, c.text); err == nil ||
			!strings.Contains(said, c.says) {
			t.Errorf("%s: %v: %s", what, err, said)
		}
	}
	var metrics string
	p.get("/metrics", &metrics)
	listens := regexp.MustCompile(`"address":"([^"]+)".*the node's metrics are served`)
	n.await("its metrics", func() bool { return listens.MatchString(n.said()) })
	of := map[string]string{"the server": metrics,
		"the node": fetch(t, "http://"+listens.FindStringSubmatch(n.said())[1]+"/metrics")}
	for who, metrics := range of {
		said, err := run(metrics, "check", "metrics")
		if rest := strings.ReplaceAll(said, named, ""); rest != "" || said == "" && err != nil {
			t.Errorf("metrics of %s: %v: %s", who, err, rest)
		}
		if strings.Count(metrics, "# TYPE loadstone_") < 10 {
			t.Errorf("%s has few metrics: %s", who, metrics)
		}
	}
	if said, err := run("# TYPE latency_milliseconds gauge\nlatency_milliseconds 1\n", "check", "metrics"); err == nil {
		t.Errorf("promtool says nothing about a wrong unit: %s", said)
	}
}
