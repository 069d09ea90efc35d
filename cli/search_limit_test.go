package cli

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax/findmaxtest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

const (
	// searchesEnv asks for the searches: a number of repetitions of each.
	searchesEnv = "LOADSTONE_SEARCHES"
	// slottedEnv makes the test binary the proxy of a search: the kind of target, its size, its rate, and the database.
	slottedEnv = "LOADSTONE_TEST_SLOTTED"
)

// searched is a search and its target: how much work is in it at its limit, and what it serves in a second there. What
// an operation takes is long beside what a thread may be late by: in a search over the rate what was due in a moment
// in which the generator stood still comes at once, and too much at once is what a cliff and hysteresis answer to.
type searched struct {
	unit        engine.FindMaxUnit
	size        int
	perSecond   float64
	connections int
	levels      string
}

// searches are both kinds of search, each from a quarter or a fifth of the limit on.
var searches = []searched{
	{unit: engine.FindMaxConnections, size: 40, perSecond: 800, connections: 10,
		levels: "start_concurrency: 10, concurrency_increment: 10, max_concurrency: 160"},
	{unit: engine.FindMaxRate, size: 160, perSecond: 400, connections: 240,
		levels: "unit: rate, start_rate: 80, rate_increment: 80, max_rate: 4000"},
}

const (
	// searchStep is for how many seconds a step measures.
	searchStep = 5
	// searchHurry is how many times as fast as in virtual time the noise of a target changes: a step sees as much of it
	// as one of half a minute.
	searchHurry = 6
)

// limit is what a search has to find.
func (s searched) limit(kind string) float64 {
	if s.unit == engine.FindMaxConnections {
		return float64(s.size)
	}
	slow := s.perSecond / searchHurry
	return searchHurry * findmaxtest.RateLimit(findmaxtest.Kinds()[kind](s.size, slow, rand.New(rand.NewPCG(1, 1))), slow,
		searchStep*searchHurry)
}

// TestTheSearchFindsARealLimit: the program searches for the limit of Postgres behind a proxy in a process of its own,
// whose slots and service times are known. Each answer is within 5 % of it; with two busy loops beside it there may be
// none.
func TestTheSearchFindsARealLimit(t *testing.T) {
	asked := os.Getenv(searchesEnv)
	if asked == "" {
		t.Skip("make check-search: it takes minutes for each kind of target and of search")
	}
	repetitions, err := strconv.Atoi(asked)
	if err != nil || repetitions < 1 {
		t.Fatalf("%s is %q, and not how often to search", searchesEnv, asked)
	}
	dsn := pgtest.Start(t).NewTarget(t)
	for _, beside := range []int{0, 2} {
		for _, kind := range slices.Sorted(maps.Keys(findmaxtest.Kinds())) {
			for _, s := range searches {
				t.Run(fmt.Sprintf("%s, %s, %d busy", kind, s.unit, beside), func(t *testing.T) {
					for range beside {
						startBusyLoop(t)
					}
					right, none := 0, 0
					for range repetitions {
						switch judgeSearch(t, s, kind, dsn) {
						case searchRight:
							right++
						case searchNone:
							none++
						}
					}
					t.Logf("%d of %d right, %d without an answer", right, repetitions, none)
					if right+none < repetitions || beside == 0 && none > 0 {
						t.Errorf("%d of %d right, %d without an answer", right, repetitions, none)
					}
				})
			}
		}
	}
}

// What a search has found.
const (
	searchWrong = iota
	searchRight
	searchNone
)

// judgeSearch makes a search, and holds its answer against the limit.
func judgeSearch(t *testing.T, s searched, kind, dsn string) int {
	t.Helper()
	began, limit := time.Now(), s.limit(kind)
	r := searchBehind(t, s, startSlotted(t, s, kind, dsn), kind)
	level, found := r.Level()
	t.Logf("%.4g of %.4g, confirmed %v, %d steps, %d late, %.0f s: %s", level, limit, r.Confirmed, r.Steps, r.LateSteps,
		time.Since(began).Seconds(), r.Reason)
	switch {
	case !found:
	case math.Abs(level-limit) <= 0.05*limit:
		return searchRight
	}
	for _, x := range r.History {
		t.Logf(
			"  %d %s %v: %.1f/s P95 %s %s %s",
			x.StepNumber,
			x.Stage,
			x.Level(),
			x.QPS,
			numberOf(x.P95LatencyMs),
			x.Outcome,
			x.StopReason,
		)
	}
	if !found {
		return searchNone
	}
	return searchWrong
}

func numberOf(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *v)
}

// searchBehind has the program search for the limit of the database at an address.
func searchBehind(t *testing.T, s searched, dsn, kind string) *engine.FindMaxResult {
	t.Helper()
	arrival := engine.ArrivalConstant
	if findmaxtest.Kinds()[kind](1, 1, nil).Random {
		arrival = engine.ArrivalPoisson
	}
	p := clitest.NewProgram(t)
	out := p.Path("out.json")
	cmd := exec.CommandContext(t.Context(), clitest.ProgramFile(t), "run", p.Write("limit.yaml", fmt.Sprintf(`name: limit
target: {connection: {driver: postgres, dsn: %q}, adapter: postgres, table_name: limits, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 100}}, load_mode: FIND_MAX_CONCURRENCY, concurrent_connections: %d,
  arrival: %s, warmup_seconds: 2}
scaling: {mode: FIXED, worker_count: 1, per_worker_capacity: 300}
find_max: {enabled: true, %s, step_duration_seconds: %d, qps_stability_pct: 5, latency_stability_pct: 20,
  max_error_rate_pct: 1}
`, dsn, s.connections, arrival, s.levels, searchStep)), "--data-dir", p.Path("data"), "--out", out)
	cmd.Env = append(os.Environ(), clitest.ProgramEnv+"=1", "LOADSTONE_CALIBRATE=off")
	text, _ := cmd.CombinedOutput() // a search without an answer has another code
	if os.Getenv("LOADSTONE_SEARCH_LOG") != "" {
		t.Logf("%s", text)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var sum engine.Summary
	if err := json.Unmarshal(content, &sum); err != nil || sum.FindMax == nil {
		t.Fatalf("%v: %s", err, text)
	}
	return sum.FindMax
}

// startBusyLoop keeps a processor busy until the test is over.
func startBusyLoop(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// startSlotted starts the proxy and returns where the database is behind it.
func startSlotted(t *testing.T, s searched, kind, dsn string) string {
	t.Helper()
	// The target is not to be starved with what searches for its limit. Who may not ask for that has a worse one.
	cmd := exec.CommandContext(context.Background(), "nice", "-n", "-20", os.Args[0], "-test.run=^TestSlottedProxy$",
		"-test.timeout=0")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%g|%s", slottedEnv, kind, s.size, s.perSecond, dsn))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the proxy has ended: %v", err)
		}
		if at, is := strings.CutPrefix(line, "proxy at "); is {
			return strings.TrimSpace(at)
		}
	}
}

// TestSlottedProxy is the proxy, in a process of its own. It ends with its standard input.
func TestSlottedProxy(t *testing.T) {
	parts := strings.SplitN(os.Getenv(slottedEnv), "|", 4)
	if len(parts) != 4 {
		t.Skip("it is started by TestTheSearchFindsARealLimit")
	}
	size, err := strconv.Atoi(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	perSecond, err := strconv.ParseFloat(parts[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pgconn.ParseConfig(parts[3])
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	target := findmaxtest.Kinds()[parts[0]](size, perSecond, rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)))
	s := &slotted{target: target, began: time.Now(), slots: make(chan struct{}, target.Slots), network: network,
		upstream: address}
	go s.accept(ln)
	at := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: ln.Addr().String(),
		Path: cfg.Database, RawQuery: "sslmode=disable"}
	fmt.Printf("proxy at %s\n", at.String())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// slotted is a proxy before Postgres: an execution waits for a slot, and has it for its service time.
type slotted struct {
	slots             chan struct{}
	network, upstream string
	began             time.Time

	mu     sync.Mutex
	target *findmaxtest.Target
	inside int
}

func (s *slotted) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			server, err := (&net.Dialer{}).DialContext(context.Background(), s.network, s.upstream)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			_ = s.serve(c, server) // a client that leaves is the ordinary end
		}()
	}
}

// serve passes requests on one after the other, each with all of its answer.
func (s *slotted) serve(client, server net.Conn) error {
	from, to := bufio.NewReader(client), bufio.NewReader(server)
	first, err := message(from, false)
	if err != nil {
		return err
	}
	if _, err := server.Write(first); err != nil {
		return err
	}
	if err := s.authenticate(from, to, client, server); err != nil {
		return err
	}
	for {
		request, executes, err := request(from)
		if err != nil {
			return err
		}
		leave := func() {}
		if executes {
			leave = s.enter()
		}
		if _, err := server.Write(request); err != nil {
			leave()
			return err
		}
		answer, err := answer(to)
		leave()
		if err != nil {
			return err
		}
		if _, err := client.Write(answer); err != nil {
			return err
		}
	}
}

// enter waits for a slot; the function that it returns waits for the rest of the service time, and gives it back.
func (s *slotted) enter() func() {
	s.mu.Lock()
	s.inside++
	s.mu.Unlock()
	s.slots <- struct{}{}
	begun := time.Now()
	s.mu.Lock()
	takes := time.Duration(s.target.Service(searchHurry*begun.Sub(s.began).Seconds(), s.inside) * float64(time.Second))
	s.mu.Unlock()
	return func() {
		time.Sleep(time.Until(begun.Add(takes)))
		s.mu.Lock()
		s.inside--
		s.mu.Unlock()
		<-s.slots
	}
}

// authenticate passes on what is said until the server is ready.
func (s *slotted) authenticate(from, to *bufio.Reader, client, server net.Conn) error {
	for {
		m, err := message(to, true)
		if err != nil {
			return err
		}
		if _, err := client.Write(m); err != nil {
			return err
		}
		switch {
		case m[0] == 'Z':
			return nil
		case m[0] != 'R' || len(m) < 9:
		default:
			// 0 is done, 12 the last word of SASL: neither is answered.
			if kind := binary.BigEndian.Uint32(m[5:]); kind == 0 || kind == 12 {
				continue
			}
			reply, err := message(from, true)
			if err != nil {
				return err
			}
			if _, err := server.Write(reply); err != nil {
				return err
			}
		}
	}
}

// request is all up to a message that is answered with ReadyForQuery, and whether something is executed with it.
func request(from *bufio.Reader) (all []byte, executes bool, err error) {
	for {
		m, err := message(from, true)
		if err != nil {
			return nil, false, err
		}
		all = append(all, m...)
		switch m[0] {
		case 'X':
			return nil, false, io.EOF
		case 'E':
			executes = true
		case 'Q', 'c', 'f': // the last two end a COPY
			return all, false, nil
		case 'S':
			return all, executes, nil
		}
	}
}

// answer is all up to ReadyForQuery, or to where the server waits for data.
func answer(to *bufio.Reader) (all []byte, err error) {
	for {
		m, err := message(to, true)
		if err != nil {
			return nil, err
		}
		if all = append(all, m...); m[0] == 'Z' || m[0] == 'G' {
			return all, nil
		}
	}
}

// message is one of the protocol, with its kind if it has one.
func message(r *bufio.Reader, kind bool) ([]byte, error) {
	head := 4
	if kind {
		head = 5
	}
	m := make([]byte, head)
	if _, err := io.ReadFull(r, m); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(m[head-4:])) - 4
	if n < 0 || n > 1<<24 {
		return nil, errors.New("no message of the protocol")
	}
	m = append(m, make([]byte, n)...)
	_, err := io.ReadFull(r, m[head:])
	return m, err
}
