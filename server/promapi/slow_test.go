package promapi_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/server/promapi"
)

// TestClientsThatReadAByteASecond: more of them than queries are evaluated at once, each with an answer of megabytes.
// Others are answered meanwhile; those who are slow lose their connection after the server's time for a write, and
// leave nothing behind.
func TestClientsThatReadAByteASecond(t *testing.T) {
	runs, err := twoRuns()
	if err != nil {
		t.Fatal(err)
	}
	c, o := catalog{Catalog: runs}, promql.DefaultOptions()
	app := fiber.New(fiber.Config{DisableStartupMessage: true, WriteTimeout: 3 * time.Second})
	promapi.Register(app, local(c, promql.NewEvaluator(c.Read, o, 64<<20), o), "1", httpx.Downloads{Life: t.Context()})
	base := listen(t, app)
	address, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var large []string
	for i := range 5 {
		large = append(
			large,
			fmt.Sprintf(`label_replace({__name__=~"loadstone_.+",__name__!~".*_seconds"},"x","%d","","")`, i),
		)
	}
	q := url.Values{"query": {strings.Join(large, " or ")}, "step": {"0.05"},
		"start": {fmt.Sprint(promqltest.Noon.Unix())}, "end": {fmt.Sprint(promqltest.Noon.Unix() + 400)}}.Encode()
	get := func(path string) (size int64) {
		t.Helper()
		res, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if size, err = io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, res.Status, err)
		}
		return size
	}
	whole := get("/query_range?" + q)
	if whole < 8<<20 {
		t.Fatalf("an answer of %d bytes fits into the buffers of a connection", whole)
	}
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	var slow []net.Conn
	for i := range max(4, 2*runtime.GOMAXPROCS(0)) + 2 {
		path := "/query_range"
		if i%2 == 1 && os.Getenv("LOADSTONE_SOAK") != "" { // a piece of events may take half a minute
			path = "/query_events"
		}
		conn, err := net.Dial("tcp", address.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s%s?%s HTTP/1.1\r\nHost: x\r\n\r\n", address.Path, path, q); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	one := make([]byte, 1)
	for range 3 {
		for _, conn := range slow {
			if _, err := io.ReadFull(conn, one); err != nil {
				t.Fatalf("a slow client had nothing: %v", err)
			}
		}
		begin := time.Now()
		get("/query?query=1")
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("beside slow clients a query took %v", took)
		}
		time.Sleep(time.Second)
	}
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(40 * time.Second); runtime.NumGoroutine() > before; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
