package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// stage is a run to which something happens.
type stage struct {
	t       *testing.T
	db      *pgx.Conn
	program *os.Process
	line    *line
	// length is of the measurement; a fault begins a second after it.
	length time.Duration
}

// stagedCase is a fault, and what the verdict has to say of it.
type stagedCase struct {
	name  string
	fault func(s *stage)
	// Of closed and open loops: a word that the verdict has, one of several; empty for none.
	closed, open []word
	// params are of the workload, with more than the one statement.
	params string
	// rate is of the open loop, 400 where it is 0; delay is what the network takes.
	rate  int
	delay time.Duration
	// early: the fault begins in the warm-up.
	early bool
}

// word is a cause with a part of its detail, or with the cause "note" a part of a note.
type word struct{ cause, detail string }

const note = "note"

var (
	ofTarget    = []word{{engine.CauseFreezes, "the target did not answer"}, {note, "no operation was answered"}}
	ofGenerator = []word{{engine.CauseFreezes, "the generator itself stood still"}, {engine.CauseSnapshotGap, ""},
		{engine.CauseScheduleLag, ""}, {engine.CauseGeneratorStarved, ""}, {engine.CauseGeneratorCPU, ""}}
	gone = []word{{engine.CauseFailing, ""}}
)

const (
	stagedOne = `statements: [{id: one, sql: "SELECT v, pg_sleep(0.002) FROM {table} WHERE id = :id", weight: 1,
    binds: [{name: id, generator: uniform, min: 1, max: 1000}]}]`
	stagedMix = `statements: [{id: one, sql: "SELECT v, pg_sleep(0.002) FROM {table} WHERE id = :id", weight: 400,
    binds: [{name: id, generator: uniform, min: 1, max: 1000}]}, {id: rare, sql: "SELECT v FROM beside", weight: 1}]`
	stagedLarge = `statements: [{id: one, sql: "SELECT repeat(v, 200000), pg_sleep(0.002) FROM {table} WHERE id = :id", weight: 1,
    binds: [{name: id, generator: uniform, min: 1, max: 1000}]}]`
)

// stagedCases are staged in closed and open loops, of 10 s and of 16 s. What happens to the target of an open loop is in
// its latency, which counts from when an operation was due: there no word is needed, and none may blame the generator.
var stagedCases = []stagedCase{
	{
		name:   "the generator stops often",
		fault:  func(s *stage) { s.repeat(500*time.Millisecond, s.stop(250*time.Millisecond)) },
		closed: ofGenerator,
		open:   ofGenerator,
	},
	{name: "the generator stops for long", fault: func(s *stage) { s.stop(2500 * time.Millisecond)() },
		closed: ofGenerator, open: ofGenerator},
	{
		name:   "the generator gets half of the time",
		fault:  func(s *stage) { s.repeat(60*time.Millisecond, s.stop(60*time.Millisecond)) },
		closed: ofGenerator,
		open:   ofGenerator,
	},
	{name: "backends stop", fault: func(s *stage) { s.repeat(700*time.Millisecond, s.stopBackends(700*time.Millisecond)) },
		closed: ofTarget},
	{name: "a backend hangs from the warm-up on", early: true, fault: func(s *stage) {
		pid := s.backends()[0]
		s.signal(pid, syscall.SIGSTOP)
		time.Sleep(s.length + 2*time.Second)
		s.signal(pid, syscall.SIGCONT)
	}, closed: []word{{engine.CauseConnectionsShort, "of the measurement"}}},
	{name: "the table is locked", fault: func(s *stage) {
		s.repeat(700*time.Millisecond, func() { s.exec("BEGIN; LOCK TABLE judged; SELECT pg_sleep(0.8); COMMIT") })
	}, closed: ofTarget},
	{
		name:   "the table is locked for long",
		fault:  func(s *stage) { s.exec("BEGIN; LOCK TABLE judged; SELECT pg_sleep(4); COMMIT") },
		closed: ofTarget,
	},
	{
		name:   "the network stops",
		fault:  func(s *stage) { s.repeat(700*time.Millisecond, s.line.stop(700*time.Millisecond)) },
		closed: []word{{engine.CauseFreezes, ""}},
	},
	{name: "the table is dropped near the end", fault: func(s *stage) {
		time.Sleep(s.length - 5*time.Second)
		s.exec("DROP TABLE judged")
	}, closed: gone, open: gone},
	{name: "the table is away in between", fault: func(s *stage) {
		s.exec("ALTER TABLE judged RENAME TO away")
		time.Sleep(4 * time.Second)
		s.exec("ALTER TABLE away RENAME TO judged")
	}, closed: gone, open: gone},
	{name: "a rare statement fails in between", params: stagedMix, fault: func(s *stage) {
		s.exec("ALTER TABLE beside RENAME TO away")
		time.Sleep(6 * time.Second)
		s.exec("ALTER TABLE away RENAME TO beside")
	}, closed: []word{{engine.CauseFailing, "rare"}}, open: []word{{engine.CauseFailing, "rare"}}},
	{name: "all processors are taken", fault: func(s *stage) { s.busy(4*runtime.NumCPU(), s.length) },
		closed: append(slices.Clone(ofGenerator), word{note, "processor"}),
		open:   append(slices.Clone(ofGenerator), word{note, "processor"})},
	{name: "more is due than the connections take", rate: 8000, fault: func(*stage) {},
		open: []word{{engine.CausePoolWait, ""}, {engine.CauseDropped, ""}}},
	{name: "nothing", fault: func(*stage) {}},
	{name: "nothing, over a slow network", delay: 5 * time.Millisecond, fault: func(*stage) {}},
	{name: "nothing, with large answers", params: stagedLarge, fault: func(*stage) {}},
}

// TestStagedFaultsAreJudged: what happens to a real table, to the way to it, or to the program while a run is measured is
// found in its verdict, with whose it was; a run to which nothing happens has no word of it.
func TestStagedFaultsAreJudged(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("LOADSTONE_WITNESSES"))
	if err != nil {
		t.Skip("make check-witnesses: what it measures depends on the machine")
	}
	dsn := pgtest.Start(t).NewDatabase(t)
	right, all := 0, 0
	for range rounds {
		for _, length := range []time.Duration{10 * time.Second, 16 * time.Second} {
			for _, c := range stagedCases {
				for _, open := range []bool{false, true} {
					if c.rate > 0 && !open {
						continue
					}
					loop, want := "closed", c.closed
					if open {
						loop, want = "open", c.open
					}
					t.Run(fmt.Sprintf("%s, %s loop, %v", c.name, loop, length), func(t *testing.T) {
						all++
						judge(t, c, open, length, dsn, want)
						if !t.Failed() {
							right++
						}
					})
				}
			}
		}
	}
	t.Logf("%d of %d were judged right", right, all)
}

// judge stages a fault and holds the verdict against what it has to say.
func judge(t *testing.T, c stagedCase, open bool, length time.Duration, dsn string, want []word) {
	const warmup = 2 * time.Second
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	s := &stage{t: t, db: db, line: newLine(t, dsn, c.delay), length: length}
	s.exec(`DROP TABLE IF EXISTS judged, beside, away; CREATE TABLE judged (id int PRIMARY KEY, v text);
		INSERT INTO judged SELECT i, 'x' FROM generate_series(1, 1000) i;
		CREATE TABLE beside (v text); INSERT INTO beside VALUES ('y')`)
	params := c.params
	if params == "" {
		params = stagedOne
	}
	load := "load_mode: CONCURRENCY, concurrent_connections: 8"
	if open {
		load = fmt.Sprintf("load_mode: QPS, target_qps: %d, concurrent_connections: 16", cmp.Or(c.rate, 400))
	}
	p := clitest.NewProgram(t)
	template := p.Write("run.yaml", fmt.Sprintf(`name: judged
target: {connection: {driver: postgres, dsn: %q}, adapter: postgres, table_name: judged}
workload: {plugin: sql, params: {%s}, %s, duration_seconds: %v, warmup_seconds: %v}
`, s.line.dsn, params, load, length.Seconds(), warmup.Seconds()))
	out := p.Path("out.json")
	cmd := exec.CommandContext(
		t.Context(),
		clitest.ProgramFile(t),
		"run",
		template,
		"--data-dir",
		p.Path("data"),
		"--out",
		out,
	)
	cmd.Env = append(os.Environ(), clitest.ProgramEnv+"=1", "LOADSTONE_CALIBRATE=off")
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.program = cmd.Process
	began := func() bool { return len(s.backends()) > 2 }
	clitest.Until(t, clitest.StartTimeout, began, func() string { return text.String() })
	machine := watchMachine()
	if c.early {
		time.Sleep(warmup / 2) // by when all connections have begun
	} else {
		time.Sleep(warmup + time.Second)
	}
	c.fault(s)
	_ = cmd.Wait() // a run whose operations failed has another code
	late := machine()
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v: %s", err, text.String())
	}
	var sum engine.Summary
	if err := json.Unmarshal(content, &sum); err != nil {
		t.Fatal(err)
	}
	v := sum.ValidityDetail
	t.Logf("%d operations, %s: %+v, %q; the machine was late by up to %v, in %.2f %% of the times", sum.Operations,
		v.Verdict, v.Causes, v.Notes, late.worst, 100*late.share)
	if len(want) > 0 && !slices.ContainsFunc(want, func(w word) bool { return w.in(v) }) {
		t.Errorf("%s: none of %v", v.Verdict, want)
	}
	for _, cause := range v.Causes {
		if !slices.ContainsFunc(want, func(w word) bool { return w.cause == cause.Cause }) && !expected(cause, want, late) {
			t.Errorf("a false word: %s, %s", cause.Cause, cause.Detail)
		}
	}
}

// expected reports whether a cause that is not among those wanted is no false word: operations that failed are most of
// all, connections wait while the target stands still, and the generator is late where the machine was.
func expected(cause engine.ValidityCause, want []word, machine lateness) bool {
	switch cause.Cause {
	case engine.CauseErrors:
		return slices.Equal(want, gone)
	case engine.CausePoolWait, engine.CauseDropped:
		return len(want) == 0
	case engine.CauseGCPause, engine.CauseScheduleLag:
		// One moment is enough for them: a collector that stops the world waits for a thread that has no processor, too.
		return machine.worst >= 8*time.Millisecond
	case engine.CauseGeneratorStarved, engine.CauseGeneratorCPU:
		// Operations that fail at once leave neither the target's processors nor the generator's free: they are the same.
		return machine.share >= 0.01 || slices.Equal(want, gone)
	case engine.CauseSnapshotGap:
		return machine.worst >= 500*time.Millisecond
	}
	return false
}

// lateness is how late a thread woke that was to wake every few milliseconds: by how much at most, and which share of the
// times it was late by milliseconds.
type lateness struct {
	worst time.Duration
	share float64
}

// watchMachine looks how late a thread wakes beside the program; the function that it returns stops, and returns the lateness.
func watchMachine() (stopped func() lateness) {
	const beat, late = 5 * time.Millisecond, 2 * time.Millisecond
	stop, end := make(chan struct{}), make(chan lateness, 1)
	go func() {
		l, beats, tardy := lateness{}, 0, 0
		for {
			due := time.Now().Add(beat)
			select {
			case <-stop:
				l.share = float64(tardy) / float64(max(beats, 1))
				end <- l // room: one value is sent
				return
			case <-time.After(beat):
			}
			by := time.Since(due)
			l.worst = max(l.worst, by)
			if beats++; by >= late {
				tardy++
			}
		}
	}()
	return func() lateness { close(stop); return <-end }
}

func (w word) in(v engine.Validity) bool {
	if w.cause == note {
		return slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(strings.ToLower(n), w.detail) })
	}
	return slices.ContainsFunc(v.Causes, func(c engine.ValidityCause) bool {
		return c.Cause == w.cause && strings.Contains(c.Detail, w.detail)
	})
}

// repeat has something happen again and again, until two seconds before the end.
func (s *stage) repeat(every time.Duration, fault func()) {
	for end := time.Now().Add(s.length - 4*time.Second); time.Now().Before(end); time.Sleep(every) {
		fault()
	}
}

func (s *stage) exec(sql string) {
	if _, err := s.db.Exec(context.Background(), sql); err != nil {
		s.t.Error(err)
	}
}

// stop has the program stand still.
func (s *stage) stop(length time.Duration) func() {
	return func() {
		s.signal(s.program.Pid, syscall.SIGSTOP)
		time.Sleep(length)
		s.signal(s.program.Pid, syscall.SIGCONT)
	}
}

func (s *stage) signal(pid int, sig syscall.Signal) {
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Error(err)
	}
}

// backends are those that carry the load.
func (s *stage) backends() []int {
	rows, err := s.db.Query(
		context.Background(),
		"SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(0.002)%' AND "+
			"pid <> pg_backend_pid()",
	)
	if err != nil {
		return nil
	}
	pids, _ := pgx.CollectRows(rows, pgx.RowTo[int])
	return pids
}

// stopBackends has them all stand still.
func (s *stage) stopBackends(length time.Duration) func() {
	pids := s.backends()
	return func() {
		for _, pid := range pids {
			s.signal(pid, syscall.SIGSTOP)
		}
		time.Sleep(length)
		for _, pid := range pids {
			s.signal(pid, syscall.SIGCONT)
		}
	}
}

// busy keeps processors busy for a while.
func (s *stage) busy(loops int, length time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var all sync.WaitGroup
	for range loops {
		all.Go(func() { _ = exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Run() })
	}
	all.Wait()
}

// line is the way from the program to Postgres, which can stop, and take some time.
type line struct {
	dsn   string
	delay time.Duration
	gate  sync.RWMutex
}

func newLine(t *testing.T, dsn string, delay time.Duration) *line {
	t.Helper()
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	at := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: ln.Addr().String(),
		Path: cfg.Database, RawQuery: "sslmode=disable"}
	l := &line{dsn: at.String(), delay: delay}
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
			if err != nil {
				_ = client.Close()
				continue
			}
			go l.carry(client, server)
			go l.carry(server, client)
		}
	}()
	return l
}

// stop has nothing go over the line.
func (l *line) stop(length time.Duration) func() {
	return func() {
		l.gate.Lock()
		time.Sleep(length)
		l.gate.Unlock()
	}
}

func (l *line) carry(to io.WriteCloser, from io.Reader) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		time.Sleep(l.delay)
		l.gate.RLock()
		_, err = to.Write(buf[:n])
		l.gate.RUnlock()
		if err != nil {
			return
		}
	}
}
