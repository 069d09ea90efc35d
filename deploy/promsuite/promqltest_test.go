package promsuite

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/stats"

	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
)

// severalNodes evaluates each leaf on several nodes, each of which has some of the series of a storage, and carries the
// answers over in files.
type severalNodes struct {
	storage storage.Queryable
	engine  *promql.Engine
	count   uint64
}

func (n severalNodes) Evaluate(ctx context.Context, r *analyticspromql.Request,
	fn func(analyticspromql.WorkStats, analyticspromql.LeafResult) error) error {
	for i, t := range r.Tasks {
		for node := range n.count {
			var file bytes.Buffer
			if err := analyticspromql.Evaluate(
				ctx,
				n.engine,
				some{n.storage, node, n.count},
				t,
				func(a analyticspromql.LeafResult) error {
					return analyticspromql.Write(&file, a)
				},
			); err != nil {
				return err
			}
			a, err := analyticspromql.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
			if err != nil {
				return err
			}
			if err := fn(analyticspromql.WorkStats{Leaf: i}, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// some are the series of a storage that one of several nodes has.
type some struct {
	storage.Queryable
	node, count uint64
}

func (s some) Querier(from, to int64) (storage.Querier, error) {
	q, err := s.Queryable.Querier(from, to)
	return someQuerier{q, s}, err
}

type someQuerier struct {
	storage.Querier
	some
}

func (q someQuerier) Select(ctx context.Context, sorted bool, h *storage.SelectHints,
	m ...*labels.Matcher) storage.SeriesSet {
	return someSeries{q.Querier.Select(ctx, sorted, h, m...), q.some}
}

type someSeries struct {
	storage.SeriesSet
	some
}

func (s someSeries) Next() bool {
	for s.SeriesSet.Next() {
		if s.At().Labels().Hash()%s.count == s.node {
			return true
		}
	}
	return false
}

// engine is ours in the place of Prometheus'.
type engine struct {
	ours  *analyticspromql.Engine
	nodes *promql.Engine
}

func newEngine(o analyticspromql.EngineOptions) engine {
	return engine{analyticspromql.NewEngine(o, 5*time.Minute), o.Engine(5 * time.Minute)}
}

func (e engine) NewInstantQuery(ctx context.Context, q storage.Queryable, _ promql.QueryOpts, text string,
	at time.Time) (promql.Query, error) {
	ours, err := e.ours.Instant(ctx, severalNodes{q, e.nodes, 3}, text, at)
	return query{ours, text}, err
}

func (e engine) NewRangeQuery(ctx context.Context, q storage.Queryable, _ promql.QueryOpts, text string,
	start, end time.Time, step time.Duration) (promql.Query, error) {
	ours, err := e.ours.Range(ctx, severalNodes{q, e.nodes, 3}, text, start, end, step)
	return query{ours, text}, err
}

// query is one of ours as the suite wants it.
type query struct {
	*analyticspromql.Query
	text string
}

func (query) Statement() parser.Statement { return nil }
func (query) Cancel()                     {}
func (q query) String() string            { return q.text }
func (query) Stats() *stats.Statistics {
	return &stats.Statistics{Timers: stats.NewQueryTimers(), Samples: stats.NewQuerySamples(false)}
}

func options() analyticspromql.EngineOptions {
	return analyticspromql.EngineOptions{Parser: parser.NewParser(promqltest.TestParserOpts),
		MaxSamples: promqltest.DefaultMaxSamplesPerQuery,
		Timeout:    100 * time.Second, SubqueryStep: func(int64) int64 { return time.Minute.Milliseconds() }}
}

// exceptions are the commands that are left out, by file: all of it where there are none.
func exceptions(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("testdata/exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		file, command, _ := strings.Cut(line, " ")
		all[file] = append(all[file], command)
	}
	return all
}

// without takes commands out of a file of the suite, with what they expect; lines stay where they were.
func without(t *testing.T, content string, commands []string) string {
	t.Helper()
	lines := strings.Split(content, "\n")
	for _, c := range commands {
		found := false
		for i := range lines {
			if strings.TrimSpace(lines[i]) != c {
				continue
			}
			found, lines[i] = true, ""
			for j := i + 1; j < len(lines) && !isCommand(lines[j]); j++ {
				lines[j] = ""
			}
		}
		if !found {
			t.Errorf("the suite has no command %q: take the exception out", c)
		}
	}
	return strings.Join(lines, "\n")
}

func isCommand(line string) bool {
	return strings.HasPrefix(line, "eval") || strings.HasPrefix(line, "load") || strings.HasPrefix(line, "clear")
}

// TestPrometheusOwnSuite runs every file of the suite of the version that go.mod names, with series spread over three
// nodes and each answer carried over in a file.
func TestPrometheusOwnSuite(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "promql/promqltest/testdata/*.test"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	out := exceptions(t)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			commands, some := out[name]
			if some && commands[0] == "" {
				t.Skip("see testdata/exceptions.txt")
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			promqltest.RunTestWithStorage(t, without(t, string(content), commands), newEngine(options()),
				func(t testing.TB) storage.Storage { return promqltest.NewBuiltinTestStorage(t) })
		})
	}
}
