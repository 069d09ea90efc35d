package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// maxGrowthBytes is how much memory a process may take for others that do not behave.
const maxGrowthBytes = 64 << 20

// checkMemoryBounded checks now and then that a process takes no more memory than it did, until the time is over.
func checkMemoryBounded(t *testing.T, what string, p *clitest.Process, lasts time.Duration) {
	t.Helper()
	before := residentBytes(t, p)
	limit := before
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(min(500*time.Millisecond, time.Until(end))) {
		limit = max(limit, residentBytes(t, p))
	}
	t.Logf("%s had %d MB, and %d at most", what, before>>20, limit>>20)
	if limit > before+maxGrowthBytes {
		t.Errorf("%s grew from %d to %d MB", what, before>>20, limit>>20)
	}
}

// TestANodeThatStopsReading: what a server has to say to it fills the buffers of the kernel and waits no longer
// than the limits say. The run goes on without it; it stops by itself, and is a node again when it reads.
func TestANodeThatStopsReading(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	d := newDelayedCluster(t, nil, nil)
	d.awaitNodes(0, 2)
	var run engine.Run
	d.proxies[0].Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: unread\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: %d, concurrent_connections: 8, duration_seconds: 130, "+
		"warmup_seconds: 0}\nscaling: {mode: BOUNDED, min_workers: 2, max_workers: 4, per_worker_capacity: 4}\n", d.load,
		delayRate)}, &run)
	d.proxies[0].AwaitLoad(run.RunID)
	time.Sleep(3 * time.Second)
	at := time.Now()
	d.proxy.stop(outbound)
	checkMemoryBounded(t, "the server of a node that does not read", d.servers[0], protocol.ContactTimeout+5*time.Second)
	d.proxy.read(outbound)
	d.awaitNodes(0, 2)
	if states := fmt.Sprint(d.nodeStates(0, nameOf(t, d.slow), at)); !strings.Contains(states, "UNREACHABLE") {
		t.Errorf("the node was %s", states)
	}
	got := d.proxies[0].AwaitEnd(run.RunID, d.servers[0])
	var due []int64
	for _, w := range recordedOperations(t, run.RunID, d.results, d.fast, d.slow) {
		due = append(due, w.due...)
	}
	limit := maxPerSecond(due)
	// Who does not read has no contact; others have its half later.
	alone, from := 0, at.Add(protocol.ContactTimeout+time.Second)
	for _, ns := range due {
		if started := time.Unix(0, ns).Sub(from); started >= 0 && started < 3*time.Second {
			alone++
		}
	}
	if alone == 0 || alone > 3*delayRate*3/4 {
		t.Errorf("%d operations in the 3 s before it reads again, and half of %d are those of who reads", alone, 3*delayRate)
	}
	t.Logf("%s, %s; at most %d due in a second; %+v", got.Status, got.Summary.Validity, limit, got.Summary.Accounting)
	if got.Status != engine.StatusCompleted || limit > delayRate+delayRate/50 {
		t.Errorf("%s (%v), at most %d due in a second", got.Status, got.CancellationReason, limit)
	}
	a := got.Summary.Accounting
	if !a.Balanced && (got.Summary.Validity != engine.VerdictDegraded || len(a.Problems) == 0) {
		t.Errorf("%s, %+v", got.Summary.Validity, a)
	}
	if t.Failed() {
		t.Logf("server:\n%s\nnode:\n%s", d.servers[0].Out.String(), d.slow.Out.String())
	}
}

// TestClientsThatStopReading: 64 that ask a server for the record of a run and 64 that ask a node for its parts, and 32
// pages that follow a run, none of which reads what comes. The run goes on, and nobody holds memory for them.
func TestClientsThatStopReading(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	p := newNodePair(t, []string{t.TempDir(), t.TempDir()})
	target := pgtest.Start(t).NewDatabase(t)
	// A record that is larger than what the kernel holds between two who speak.
	var first engine.Run
	p.session.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: large\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, concurrent_connections: 4, duration_seconds: 15, warmup_seconds: 0}\nscaling: "+
		"{mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", target)}, &first)
	if d := p.session.AwaitEnd(first.RunID, p.served); d.Status != engine.StatusCompleted {
		t.Fatalf("%s (%v)", d.Status, d.CancellationReason)
	} else {
		t.Logf("%d operations are recorded", d.Summary.Operations)
	}
	var ask []string // requests that are sent, and their answers not read
	names, _ := filepath.Glob(filepath.Join(p.dir, "results", first.RunID, "executions-*.parquet"))
	if len(names) == 0 {
		t.Fatal("there is no part")
	}
	host := strings.TrimPrefix(p.session.Base, "http://")
	for i := range 64 {
		part, err := record.OpenPart(names[i%len(names)])
		if err != nil {
			t.Fatal(err)
		}
		a := part.Artifact()
		_ = part.Close()
		ask = append(ask, host+" /api/runs/"+first.RunID+"/executions?format=csv")
		ask = append(ask, p.nodes[i%2].Address+" "+protocol.PartsPath+protocol.PartWorkID(a))
	}
	answered := map[string]int{}
	for _, a := range ask {
		address, path, _ := strings.Cut(a, " ")
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s: %s\r\n\r\n", path, p.session.Header[0],
			p.session.Header[1])
		status := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, status); err != nil {
			t.Fatal(err)
		}
		who := "node"
		if address == host {
			who = "server"
		}
		answered[who+strings.TrimPrefix(string(status), "HTTP/1.1")]++
	}
	run := p.begin(target, 75)
	// A server has few downloads at a time (api.NewReportMaker says how many), and says so to others.
	t.Logf("answers: %v", answered)
	if answered["server 200"] == 0 || answered["server 200"] > 4 ||
		answered["server 200"]+answered["server 429"] != 64 || answered["node 200"] < 32 {
		t.Errorf("answers: %v", answered)
	}
	for range 32 {
		p.session.Watch(run.RunID)
	}
	var watching sync.WaitGroup
	watching.Go(func() { checkMemoryBounded(t, "the node", p.nodes[0].Process, time.Minute) })
	watching.Go(func() { checkMemoryBounded(t, "the server", p.served, time.Minute) })
	watching.Wait()
	d := p.session.AwaitEnd(run.RunID, p.served)
	a := d.Summary.Accounting
	t.Logf("%s, %.1f/s, %+v", d.Status, *d.Summary.QPS, a)
	if d.Status != engine.StatusCompleted || !a.Balanced || a.Recorded != a.Started || a.Scheduled < 200*75*95/100 {
		t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, a)
	}
}

// attacker does to an address what nobody should, again and again until its context ends, and counts how often it
// was cut off.
type attacker struct {
	address string
	headers [][2]string

	mu  sync.Mutex
	cut map[string]int
}

func (a *attacker) countOutcome(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut[what]++
}

// frames opens a connection of HTTP/2 and writes frames until it is cut.
func (a *attacker) frames(ctx context.Context, what string, write func(f *http2.Framer, n uint32) error) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", a.address)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		end := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, http2.ClientPreface)
		go func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() }()
		f := http2.NewFramer(conn, nil)
		err = f.WriteSettings()
		for n := uint32(0); err == nil; n++ {
			err = write(f, n)
		}
		if ctx.Err() == nil {
			a.countOutcome(what)
		}
		end()
		_ = conn.Close()
		time.Sleep(20 * time.Millisecond)
	}
}

func (a *attacker) pings(ctx context.Context) {
	a.frames(ctx, "pings", func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{1}) })
}

// resets opens calls and gives each up at once.
func (a *attacker) resets(ctx context.Context) {
	var fields bytes.Buffer
	e := hpack.NewEncoder(&fields)
	e.SetMaxDynamicTableSize(0)
	for _, h := range a.headers {
		_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	a.frames(ctx, "resets", func(f *http2.Framer, n uint32) error {
		if n > 1<<20 {
			return io.EOF
		}
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: fields.Bytes(), EndHeaders: true})
		if err == nil {
			err = f.WriteRSTStream(2*n+1, http2.ErrCodeCancel)
		}
		return err
	})
}

// large sends a message of 100 MB, with a token or none.
func (a *attacker) large(ctx context.Context, token string) {
	huge := &pb.ToNode{Message: &pb.ToNode_Open{Open: &pb.Open{ServerProcess: strings.Repeat("x", 100<<20)}}}
	for ctx.Err() == nil {
		conn, err := grpc.NewClient("passthrough:///"+a.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return
		}
		call := ctx
		if token != "" {
			call = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		s, err := pb.NewNodeServiceClient(conn).Control(call)
		if err == nil {
			_ = s.Send(huge)
			_, err = s.Recv()
		}
		if err != nil && ctx.Err() == nil {
			a.countOutcome("large")
		}
		_ = conn.Close()
		time.Sleep(500 * time.Millisecond)
	}
}

// TestFloodsOnANodesPort: pings, calls that are given up at once, messages of 100 MB of strangers and of who knows the
// token, and connections that say nothing. Each is cut or refused; the run of the server goes on, in bounded memory.
func TestFloodsOnANodesPort(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes a minute; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	const secret, seconds, rate = "a secret that others do not know", 40, 50
	dir, file := reachable(t), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	n := clitest.StartNode(t, t.TempDir(), "", "--token-file", file)
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir, "--nodes",
		n.Address,
		"--nodes-token-file", file, "--local-capacity", "0")
	session, _, _ := operatorOf(t, dir, served).SignIn()
	clitest.Until(t, clitest.StartTimeout, func() bool { return acceptsWork(session) }, served.Out.String)
	var run engine.Run
	session.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: flooded\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: %d, concurrent_connections: 4, duration_seconds: %d, "+
		"warmup_seconds: 0}\n", pgtest.Start(t).NewDatabase(t), rate, seconds)}, &run)
	session.AwaitLoad(run.RunID)
	time.Sleep(3 * time.Second)
	a := &attacker{address: n.Address, cut: map[string]int{}, headers: [][2]string{{":method", http.MethodPost},
		{":scheme", "http"}, {":authority", "x"}, {":path", "/loadstone.control.v1.NodeService/Control"},
		{"content-type", "application/grpc"}, {"te", "trailers"}}}
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	var attack sync.WaitGroup
	for range 2 {
		attack.Go(func() { a.pings(ctx) })
		attack.Go(func() { a.resets(ctx) })
	}
	attack.Go(func() { a.large(ctx, "") })
	attack.Go(func() { a.large(ctx, secret) })
	for range 300 {
		if c, err := net.Dial("tcp", n.Address); err == nil {
			defer c.Close()
		}
	}
	checkMemoryBounded(t, "the node", n.Process, 25*time.Second)
	attack.Wait()
	d := session.AwaitEnd(run.RunID, served)
	t.Logf("cut or refused: %v; %s, %.1f/s, %+v", a.cut, d.Status, *d.Summary.QPS, d.Summary.Accounting)
	if c := d.Summary.Accounting; d.Status != engine.StatusCompleted || !c.Balanced || c.Recorded != c.Started ||
		c.Scheduled < rate*seconds*95/100 {
		t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, c)
	}
	// Each time one comes back it is cut soon; a node that bears a flood cuts hardly anybody.
	if a.cut["pings"] < 10 || a.cut["resets"] < 10 || a.cut["large"] == 0 {
		t.Errorf("cut or refused: %v", a.cut)
	}
	if text := served.Out.String(); strings.Contains(text, `"state":"UNREACHABLE"`) {
		t.Errorf("the node was unreachable meanwhile:\n%s", text)
	}
}
