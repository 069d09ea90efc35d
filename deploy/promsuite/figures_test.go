package promsuite

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
)

// heavy are queries that each touch over a million samples of 100 runs of an hour.
var heavy = []string{
	`sum(rate(loadstone_operations_total[1m]))`,
	`sum by (kind) (rate(loadstone_operations_total[1m]))`,
	`sum by (run) (rate(loadstone_operations_total[5m]))`,
	`count by (template) (sum by (run) (rate(loadstone_operations_total[1m])) > 4.9)`,
	`sum(rate(loadstone_failed_operations_total[1m])) / sum(rate(loadstone_operations_total[1m]))`,
	`max by (template) (increase(loadstone_rows_total[5m]))`,
	`avg by (template, kind) (rate(loadstone_operations_total[2m]))`,
	`sum by (run) (max_over_time(loadstone_statement_operations_total[1m]))`,
	`quantile by (kind) (0.9, rate(loadstone_operations_total[1m]))`,
	`sum(rate(loadstone_statement_operations_total[1m])) by (statement)`,
	`count(rate(loadstone_worker_operations_total[1m]) > 1)`,
	`stddev by (kind) (rate(loadstone_operations_total[1m]))`,
}

// light are queries of one run.
var light = []string{
	`sum(rate(loadstone_operations_total{run="r-7"}[1m]))`,
	`sum by (kind) (rate(loadstone_operations_total{run="r-3"}[1m]))`,
	`loadstone_warehouse_queued_queries{run="r-2"}`,
}

// latencies are those of histograms, of ten runs.
var latencies = []string{
	`histogram_quantile(0.99, sum by (kind) (rate(loadstone_latency_seconds{run=~"r-."}[1m])))`,
	`histogram_quantile(0.5, sum(rate(loadstone_statement_latency_seconds{run=~"r-."}[1m])))`,
}

const rounds = 12

// stand is a server in this process, with two nodes that are processes of the program.
type stand struct {
	runs  promqltest.Catalog
	ours  *promql.Telemetry
	nodes []*exec.Cmd
}

type quiet struct{}

func (quiet) Receive(string, nodes.Node, protocol.FromNode) bool { return false }
func (quiet) UnknownWorker(nodes.Node, protocol.WorkerState)     {}
func (quiet) OwnedRuns(bool) []protocol.OwnedRun                 { return nil }
func (quiet) PartQuarantined(protocol.QuarantinedPart)           {}

// newStand skips a test that does not know over how many runs of an hour, LOADSTONE_RUNS, and with which program,
// LOADSTONE_PROGRAM.
func newStand(t *testing.T) *stand {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("LOADSTONE_RUNS"))
	program := os.Getenv("LOADSTONE_PROGRAM")
	if err != nil || program == "" {
		t.Skip("LOADSTONE_RUNS says over how many runs of an hour, LOADSTONE_PROGRAM which program is asked")
	}
	runs, err := promqltest.HourRuns(n)
	if err != nil {
		t.Fatal(err)
	}
	return newStandOf(t, program, runs)
}

// segments are what the nodes fetch; they ask for no plugin.
type segments struct{ promqltest.Catalog }

func (segments) ReadPlugin(context.Context, string) ([]byte, error) { return nil, fs.ErrNotExist }

func (s segments) Segment(ctx context.Context, runID, name string) (io.ReadCloser, int64, error) {
	return s.Content(ctx, runID, name)
}

// newStandOf has nodes of a program that have read nothing yet.
func newStandOf(t *testing.T, program string, runs promqltest.Catalog) *stand {
	t.Helper()
	s := &stand{runs: runs}
	var dialers []protocol.Dialer
	for i := range 2 {
		dir := t.TempDir()
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "worker", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"))
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = log.Close() })
		s.nodes = append(s.nodes, cmd)
		var at []byte
		for begin := time.Now(); at == nil; time.Sleep(20 * time.Millisecond) {
			said, _ := os.ReadFile(log.Name())
			if found := regexp.MustCompile(` listens on (\S+)\n`).FindSubmatch(said); found != nil {
				at = found[1]
			} else if time.Since(begin) > time.Minute {
				t.Fatalf("node %d does not listen: %s", i, said)
			}
		}
		d, err := rpc.NewDialer(rpc.DialOptions{Address: string(at), Process: "server", Version: "dev"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		dialers = append(dialers, d)
	}
	f := nodes.New(nodes.Options{Log: zerolog.Nop(), Version: "dev", Dialers: dialers, Content: segments{s.runs}})
	life, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	if err := f.Open(t.Context(), life, func(fn func()) { all.Go(fn) }, quiet{}); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); f.QueryNodes() < 2; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("%d nodes take work", f.QueryNodes())
		}
	}
	o := promql.DefaultOptions()
	own := promql.NewEvaluator(s.runs.Read, o, 64<<20)
	s.ours = promql.NewTelemetry(
		s.runs,
		promql.Dispatcher{Catalog: s.runs, Nodes: f, Own: own, Log: zerolog.Nop()},
		own,
		o,
	)
	return s
}

// peak is how much memory a process has had at most, in MB.
func peak(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text); found != nil {
		kb, _ := strconv.Atoi(string(found[1]))
		return kb >> 10
	}
	return 0
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return string(bytes.TrimSpace(text))
}

// tally is what a kind of query took.
type tally struct {
	ours, theirs, first, ratio []float64
	pieces, preferred          int
	segments, hits             int
}

func at(all []float64, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Clone(all)
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func (a tally) String() string {
	times := fmt.Sprintf("ours P50 %.0f, P95 %.0f, most %.0f ms; TSDB P50 %.0f, P95 %.0f, most %.0f ms", at(a.ours, .5),
		at(a.ours, .95), at(a.ours, 1), at(a.theirs, .5), at(a.theirs, .95), at(a.theirs, 1))
	ratios := fmt.Sprintf("ours/TSDB of a pair P50 %.2f, P95 %.2f; of the P95s %.2f", at(a.ratio, .5), at(a.ratio, .95),
		at(a.ours, .95)/at(a.theirs, .95))
	return fmt.Sprintf("%s; %s; first piece P50 %.0f, P95 %.0f ms; preferred %d of %d pieces, in memory %d of %d segments",
		times, ratios, at(a.first, .5), at(a.first, .95), a.preferred, a.pieces, a.hits, a.segments)
}

// TestFigures is no test: it asks the same of two nodes and of Prometheus' engine over its TSDB with the same samples,
// in turns, and prints what each took.
func TestFigures(t *testing.T) {
	s := newStand(t)
	db := teststorage.New(t)
	begin := time.Now()
	some := labels.MustNewMatcher(labels.MatchNotRegexp, labels.MetricName, ".*latency_seconds")
	samples := fillWith(t, db, s.runs, some)
	samples += fillWith(t, db, s.runs[:min(10, len(s.runs))],
		labels.MustNewMatcher(labels.MatchRegexp, labels.MetricName, ".*latency_seconds"))
	fmt.Printf("%d runs, %d samples in a TSDB after %v; load %s; %d processors\n", len(s.runs), samples,
		time.Since(begin).Round(time.Second), load(), runtime.GOMAXPROCS(0))
	theirs := promql.DefaultOptions().Engine(5 * time.Minute)
	from, to, step := promqltest.Noon, promqltest.Noon.Add(time.Hour), 15*time.Second
	for _, kind := range []struct {
		name    string
		queries []string
		from    time.Time
	}{{"heavy", heavy, from}, {"light", light, to.Add(-10 * time.Minute)}, {"latency", latencies, from}} {
		var all tally
		of := map[string]*tally{}
		for round := range rounds + 1 {
			if len(all.ours) > 0 && kind.name == "latency" && round > 3 {
				break
			}
			for _, text := range kind.queries {
				begin := time.Now()
				q, err := s.ours.Range(t.Context(), text, kind.from, to, step)
				if err != nil {
					t.Fatal(err)
				}
				a := q.Exec(t.Context())
				mine := time.Since(begin)
				begin = time.Now()
				p, err := theirs.NewRangeQuery(t.Context(), db, nil, text, kind.from, to, step)
				if err != nil {
					t.Fatal(err)
				}
				b := p.Exec(t.Context())
				other := time.Since(begin)
				if a.Err != nil || b.Err != nil {
					t.Fatal(text, a.Err, b.Err)
				}
				if round == 0 { // nothing is warm
					if what := promqltest.Diff(a, b); what != "" {
						t.Errorf("%s: %s", text, what)
					}
					m, _ := b.Matrix()
					var touched int64
					for _, piece := range q.Stats() {
						touched += piece.Samples
					}
					fmt.Printf("%-90s %9d samples in windows, %6d points; cold %.0f ms\n", text, touched,
						m.TotalSamples(), promql.Milliseconds(mine))
				} else {
					if of[text] == nil {
						of[text] = &tally{}
					}
					for _, c := range []*tally{&all, of[text]} {
						c.ours = append(c.ours, promql.Milliseconds(mine))
						c.theirs = append(c.theirs, promql.Milliseconds(other))
						c.ratio = append(c.ratio, float64(mine)/float64(other))
						c.first = append(c.first, q.Stages().FirstMs)
						for _, piece := range q.Stats() {
							c.pieces, c.segments, c.hits = c.pieces+1, c.segments+piece.Segments, c.hits+piece.Hits
							if piece.Preferred {
								c.preferred++
							}
						}
					}
				}
				q.Close()
				p.Close()
			}
		}
		for _, text := range kind.queries {
			fmt.Printf("  %-90s %v\n", text, of[text])
		}
		fmt.Printf("%s: %v; load %s\n", kind.name, all, load())
	}
	for _, n := range s.nodes {
		fmt.Printf("a node's memory: at most %d MB\n", peak(n.Process.Pid))
	}
}

// TestFirstQuery is no test: it asks the same of nodes that have nothing, of several programs in turns, and prints what
// the first query took. LOADSTONE_PROGRAMS are their paths, with a colon between them.
func TestFirstQuery(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("LOADSTONE_RUNS"))
	programs := filepath.SplitList(os.Getenv("LOADSTONE_PROGRAMS"))
	if err != nil || len(programs) == 0 {
		t.Skip("LOADSTONE_RUNS says over how many runs of an hour, LOADSTONE_PROGRAMS which programs are asked")
	}
	runs, err := promqltest.HourRuns(n)
	if err != nil {
		t.Fatal(err)
	}
	took := map[string][]float64{}
	for range 5 {
		for _, program := range programs {
			t.Run(program, func(t *testing.T) {
				s := newStandOf(t, program, runs)
				for _, text := range []string{heavy[0], heavy[1]} {
					begin := time.Now()
					q, err := s.ours.Range(t.Context(), text, promqltest.Noon, promqltest.Noon.Add(time.Hour), 15*time.Second)
					if err != nil {
						t.Fatal(err)
					}
					defer q.Close()
					if r := q.Exec(t.Context()); r.Err != nil {
						t.Fatal(r.Err)
					}
					which := program + ", first"
					if text != heavy[0] {
						which = program + ", second"
					}
					took[which] = append(took[which], promql.Milliseconds(time.Since(begin)))
				}
			})
		}
	}
	for _, which := range slices.Sorted(maps.Keys(took)) {
		fmt.Printf("%s: median %.0f, least %.0f, most %.0f ms; load %s\n", which, at(took[which], .5), at(took[which], 0),
			at(took[which], 1), load())
	}
}

// TestManyAtOnce is no test: it asks fifty queries at once, and prints how much memory that takes.
func TestManyAtOnce(t *testing.T) {
	s := newStand(t)
	from, to, step := promqltest.Noon, promqltest.Noon.Add(time.Hour), 15*time.Second
	for _, text := range heavy {
		if q, err := s.ours.Range(t.Context(), text, from, to, step); err != nil || q.Exec(t.Context()).Err != nil {
			t.Fatal(text, err)
		}
	}
	before := peak(os.Getpid())
	var all sync.WaitGroup
	begin := time.Now()
	for i := range 50 {
		all.Go(func() {
			q, err := s.ours.Range(t.Context(), heavy[i%len(heavy)], from, to, step)
			if err != nil {
				t.Error(err)
				return
			}
			defer q.Close()
			if r := q.Exec(t.Context()); r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
	all.Wait()
	fmt.Printf("50 queries at once took %v; load %s; the server's memory %d MB before, with the runs, and %d MB after\n",
		time.Since(begin), load(), before, peak(os.Getpid()))
	for _, n := range s.nodes {
		fmt.Printf("a node's memory: at most %d MB\n", peak(n.Process.Pid))
	}
}
