package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sysbenchOutput = `Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.075 |*                                        10
       0.168 |**************************************** 80
       0.811 |                                         10
SQL statistics:
    queries performed:
        read:                            248346
    transactions:                        248346 (82772.06 per sec.)
    queries:                             248347 (82777.06 per sec.)
`

func TestSysbenchOutput(t *testing.T) {
	p50, p99, err := sysbenchHistogram(sysbenchOutput)
	if err != nil || p50 != 0.168 || p99 != 0.811 {
		t.Fatalf("p50 %v, p99 %v, %v", p50, p99, err)
	}
	ops, err1 := figure(sysbenchOutput, sysbenchOps)
	tps, err2 := figure(sysbenchOutput, sysbenchTPS)
	if err1 != nil || err2 != nil || ops != 248347 || tps != 82777.06 {
		t.Fatalf("%v queries, %v TPS, %v %v", ops, tps, err1, err2)
	}
	if _, _, err := sysbenchHistogram("no such thing"); err == nil {
		t.Fatal("a histogram from nothing")
	}
}

func TestPgbenchLog(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sample.1":   "0 1 100 0 1790000000 1\n1 1 300 0 1790000000 2\n",
		"sample.1.1": "8 1 200 0 1790000000 3\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ms, err := pgbenchLog(dir)
	if err != nil || len(ms) != 3 || quantile(ms, 0.5) != 0.2 || quantile(ms, 1) != 0.3 {
		t.Fatalf("%v, %v", ms, err)
	}
}

func TestCPUBetween(t *testing.T) {
	t0 := time.Unix(1_790_000_000, 0)
	s := series{{t0, 0, machine{}}, {t0.Add(time.Second), 200 * time.Millisecond, machine{busy: 1}},
		{t0.Add(2 * time.Second), 1200 * time.Millisecond, machine{busy: 3}}}
	for _, c := range []struct {
		from, to, want time.Duration
		busy           float64
	}{
		{0, 2 * time.Second, 1200 * time.Millisecond, 3},
		{500 * time.Millisecond, 1500 * time.Millisecond, 600 * time.Millisecond, 1.5},
		{-time.Second, 9 * time.Second, 1200 * time.Millisecond, 3},
	} {
		if got, used := s.between(t0.Add(c.from), t0.Add(c.to)); got != c.want || used.busy != c.busy {
			t.Errorf("%v–%v: %v and %v, want %v and %v", c.from, c.to, got, used.busy, c.want, c.busy)
		}
	}
}

func TestTable(t *testing.T) {
	clients := []client{{name: "pgbench"}, {name: "loadstone"}}
	got := table(clients, map[string][]sample{
		"pgbench": {{tps: 100, p50: 0.1, p99: 0.2, cpu: 10, whole: 20}, {tps: 200, p50: 0.1, p99: 0.2, cpu: 12, whole: 24},
			{tps: 300, p50: 0.1, p99: 0.2, cpu: 11, whole: 22}},
		"loadstone": {{tps: 90, p50: 0.1, p99: 0.3, cpu: 9, whole: 18}, {tps: 220, p50: 0.2, p99: 0.3, cpu: 9, whole: 18},
			{tps: 240, p50: 0.3, p99: 0.3, cpu: 8, whole: 16}},
	}, "pgbench")
	for _, line := range []string{
		"| pgbench | 200 (100–300) | 0.100 | 0.200 | 11.00 (10.00–12.00) | 22.00 (20.00–24.00) | 1.00 (1.00–1.00) | 1.00 " +
			"(1.00–1.00) |",
		"| loadstone | 220 (90–240) | 0.200 | 0.300 | 9.00 (8.00–9.00) | 18.00 (16.00–18.00) | 0.90 (0.80–1.10) | 0.75 " +
			"(0.73–0.90) |",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}

func TestDisturbed(t *testing.T) {
	clients := []client{{name: "steady"}, {name: "noisy"}}
	got := disturbed(clients, map[string][]sample{"steady": {{tps: 100}, {tps: 120}}, "noisy": {{tps: 100}, {tps: 200}}})
	if !strings.Contains(got, "noisy ranged from 100 to 200") || strings.Contains(got, "steady") {
		t.Fatalf("%q", got)
	}
}

func TestParseMachine(t *testing.T) {
	before := parseMachine("cpu  100 0 50 1000 10 0 5 5 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nctxt 1000\n")
	after := parseMachine("cpu  200 0 150 1050 10 0 5 55 0 0\nintr 7\nctxt 4000\n")
	got := after.since(before).rest(500*time.Millisecond, 1000)
	want := rest{serverCPU: 1500, switches: 3, idlePct: 50. / 3, stolenPct: 50. / 3}
	if math.Abs(got.serverCPU-want.serverCPU) > 1e-6 || got.switches != want.switches ||
		math.Abs(got.idlePct-want.idlePct) > 1e-6 || math.Abs(got.stolenPct-want.stolenPct) > 1e-6 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if (machine{}).rest(time.Second, 1) != (rest{}) {
		t.Error("figures without a machine")
	}
}

func TestOthers(t *testing.T) {
	before := account{machine{busy: 10, idle: 10}, 4 * time.Second}
	after := account{machine{busy: 17, idle: 13}, 9 * time.Second}
	if got := after.others(before); got != 0.2 {
		t.Errorf("others took %v of the machine, want 0.2", got)
	}
}
