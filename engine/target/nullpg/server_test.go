package nullpg_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, address string, o nullpg.Options) *nullpg.Server {
	t.Helper()
	s, err := nullpg.Listen(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestAnIndependentClient: pgx itself connects, prepares, executes and queries, over TCP and a unix socket.
func TestAnIndependentClient(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", filepath.Join(t.TempDir(), ".s.PGSQL.7777")} {
		s := start(t, address, nullpg.Options{})
		conn, err := pgx.Connect(t.Context(), s.DSN())
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for range 3 {
			if err := conn.QueryRow(t.Context(), "SELECT v FROM t WHERE id = $1 AND w = $2", 1, 2).Scan(&n); err != nil ||
				n != 1 {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if _, err := conn.Exec(t.Context(), "SET x = 1"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestTheLoadPath: the driver that the engine uses runs on it.
func TestTheLoadPath(t *testing.T) {
	s := start(t, "127.0.0.1:0", nullpg.Options{})
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(s.DSN())})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	list := []engine.Statement{{ID: "get", Kind: engine.KindPointLookup, SQL: "SELECT v FROM t WHERE id = $1",
		Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}}}
	conn, err := db.Connect(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	b := &plugin.Batch{Args: []plugin.Value{{Type: engine.TypeI64, I: 5}}}
	for range 100 {
		var res target.Result
		if err := conn.Exec(t.Context(), b, plugin.Op{Statement: 0, NArgs: 1}, &res); err != nil || res.Rows != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
}

// TestTheModel: with two servers of 20 ms, eight at once take four service times, and STATS knows.
func TestTheModel(t *testing.T) {
	s := start(t, "127.0.0.1:0", nullpg.Options{Latency: 20 * time.Millisecond, Servers: 2, Stats: true})
	var wg sync.WaitGroup
	begin := time.Now()
	for range 8 {
		wg.Go(func() {
			conn, err := pgx.Connect(t.Context(), s.DSN()+"&default_query_exec_mode=exec")
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
			var n int64
			if err := conn.QueryRow(t.Context(), "SELECT 1").Scan(&n); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begin); took < 80*time.Millisecond {
		t.Errorf("8 executions on 2 servers of 20 ms took %v", took)
	}
	conn, err := pgx.Connect(t.Context(), s.DSN()+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var text string
	if err := conn.QueryRow(t.Context(), "STATS").Scan(&text); err != nil {
		t.Fatal(err)
	}
	var data engine.HistogramData
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	h, err := histogram.FromData(&data)
	if err != nil || h.Count() != 8 || h.Min() < int64(20*time.Millisecond) {
		t.Errorf("%d executions of %d to %d ns, %v", h.Count(), h.Min(), h.Max(), err)
	}
}

func TestAFreeze(t *testing.T) {
	s := start(t, "127.0.0.1:0", nullpg.Options{})
	conn, err := pgx.Connect(t.Context(), s.DSN()+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "FREEZE 150"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var n int64
	if err := conn.QueryRow(t.Context(), "SELECT 1").Scan(&n); err != nil || time.Since(begin) < 140*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	if _, err := conn.Exec(t.Context(), "FREEZE soon"); err == nil {
		t.Error("FREEZE takes a word")
	}
}

// TestGarbage: whatever is sent, the target closes the connection or answers, and lives.
func TestGarbage(t *testing.T) {
	s := start(t, "127.0.0.1:0", nullpg.Options{})
	hello := func(version uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), version)
	}
	for i, message := range [][]byte{{1, 2, 3}, {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 4}, hello(80877102),
		append(hello(196608), 'P', 0, 0, 0, 1), append(hello(196608), 'B', 0, 0, 0, 5, 0, 'S', 0, 0, 0, 4),
		append(hello(196608), 'z', 0, 0, 0, 4, 'S', 0, 0, 0, 4)} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(message)
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("message %d: %v", i, fmt.Errorf("the connection stays: %w", err))
		}
		_ = c.Close()
	}
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
}

// TestPieces: a client that sends a byte at a time, or much before it reads anything, gets every answer.
func TestPieces(t *testing.T) {
	const many = 60_000 // answers: more than a socket holds
	s := start(t, "127.0.0.1:0", nullpg.Options{})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	hello := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 196608)
	query := append([]byte{'Q', 0, 0, 0, 13}, "SELECT 1\x00"...)
	for _, b := range append(hello, query...) {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(bytes.Repeat(query, many))
		sent <- err
	}()
	time.Sleep(200 * time.Millisecond) // the target's answers have nowhere to go
	answers := 0
	var head [5]byte
	r := bufio.NewReader(c)
	for answers < many+2 { // the startup's too
		if _, err := io.ReadFull(r, head[:]); err != nil {
			t.Fatal(answers, err)
		}
		if _, err := r.Discard(int(binary.BigEndian.Uint32(head[1:])) - 4); err != nil {
			t.Fatal(answers, err)
		}
		if head[0] == 'Z' {
			answers++
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestAClientThatReadsNothing is not read either, so that its answers take no memory, and holds up nobody.
func TestAClientThatReadsNothing(t *testing.T) {
	s := start(t, "127.0.0.1:0", nullpg.Options{})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 196608)); err != nil {
		t.Fatal(err)
	}
	const bound = 64 << 20 // far above what the sockets hold
	query := bytes.Repeat(append([]byte{'Q', 0, 0, 0, 13}, "SELECT 1\x00"...), 10_000)
	written := 0
	for written < bound {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := c.Write(query)
		written += n
		if err != nil {
			break
		}
	}
	if written >= bound {
		t.Errorf("the target took %d bytes", written)
	}
	for range 8 { // on each of the loops
		conn, err := pgx.Connect(t.Context(), s.DSN())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close(t.Context())
	}
	_ = c.Close()
}

// TestTheSpread: latencies are uniform around the middle.
func TestTheSpread(t *testing.T) {
	var sum, squares float64
	const n = 1000
	for i := range n {
		u := 2*nullpg.Fraction(uint64(i)) - 1
		sum, squares = sum+u, squares+u*u
	}
	if mean, variance := sum/n, squares/n; math.Abs(mean) > 0.01 || math.Abs(variance-1.0/3) > 0.01 {
		t.Errorf("mean %.4f, variance %.4f", mean, variance)
	}
}
