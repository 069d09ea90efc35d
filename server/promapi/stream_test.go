package promapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/server/promapi"
)

// listen serves an app on a real socket.
func listen(t *testing.T, app *fiber.App) (base string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(l) }()
	t.Cleanup(func() {
		_ = app.Shutdown()
		<-served
	})
	return "http://" + l.Addr().String() + promapi.Prefix + "/api/v1"
}

// held is a catalog that answers when it is let go, or its context ends.
type held struct {
	catalog
	begun, ended chan struct{}
	let          chan struct{}
}

func (h held) Segments(ctx context.Context, from, to int64) ([]promql.Segment, error) {
	h.begun <- struct{}{}
	select {
	case <-ctx.Done():
		h.ended <- struct{}{}
		return nil, ctx.Err()
	case <-h.let:
		return h.catalog.Segments(ctx, from, to)
	}
}

func holding(t *testing.T) (held, string) {
	t.Helper()
	h := held{begun: make(chan struct{}, 1000), ended: make(chan struct{}, 1000), let: make(chan struct{})}
	o := promql.DefaultOptions()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	promapi.Register(app, local(h, promql.NewEvaluator(h.Read, o, 1<<20), o), "1",
		httpx.Downloads{Life: t.Context()})
	return h, listen(t, app)
}

// TestAClientThatGoesAwayEndsItsQuery: both kinds of answers; the next request of a connection is not disturbed.
func TestAClientThatGoesAwayEndsItsQuery(t *testing.T) {
	h, base := holding(t)
	for _, path := range []string{"/query?query=a", "/query_events?query=a", "/query?query=a&timeout=1h"} {
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			var wait sync.WaitGroup
			wait.Go(func() {
				if res, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			})
			<-h.begun
			begin := time.Now()
			cancel()
			select {
			case <-h.ended:
			case <-time.After(time.Minute):
				t.Fatalf("%s goes on", path)
			}
			t.Logf("%s ended after %v", path, time.Since(begin))
			wait.Wait()
		}
	}
	close(h.let)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for range 20 {
		res, err := client.Get(base + "/query?query=a")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v", res.StatusCode, err)
		}
		<-h.begun
	}
}

// TestTooManyQueries: those beyond the ones that are evaluated and wait are refused with the limit; who waits and gives
// up leaves its place; and everybody else is answered.
func TestTooManyQueries(t *testing.T) {
	h, base := holding(t)
	var wait sync.WaitGroup
	answers := make(chan string, 1000)
	ask := func(query string) {
		res, err := http.Get(base + "/query?query=" + query)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer func() { _ = res.Body.Close() }()
		b, _ := io.ReadAll(res.Body)
		answers <- fmt.Sprint(res.StatusCode, " ", string(b))
	}
	const all = 300 // 256 wait
	for range all {
		wait.Go(func() { ask("a") })
	}
	refused := 0
	for range all - 256 - max(4, 2*runtime.GOMAXPROCS(0)) {
		text := <-answers
		if !strings.HasPrefix(text, "503 ") || !strings.Contains(text, "256 wait") {
			t.Fatalf("refused with %s", text)
		}
		refused++
	}
	close(h.let)
	wait.Wait()
	close(answers)
	answered := 0
	for text := range answers {
		switch {
		case strings.HasPrefix(text, "200 "):
			answered++
		case strings.HasPrefix(text, "503 ") && strings.Contains(text, "256 wait"):
			refused++ // one place is kept for who has asked for little
		}
	}
	if answered+refused != all || answered < 256+max(4, 2*runtime.GOMAXPROCS(0))-1 {
		t.Errorf("%d answered, %d refused of %d", answered, refused, all)
	}
}

type event struct{ name, data string }

func read(t *testing.T, from io.Reader) (all []event) {
	t.Helper()
	var e event
	for lines := bufio.NewScanner(from); lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			all, e = append(all, e), event{}
		}
	}
	return all
}

// TestEventsOfAQuery: the plan, each piece, an answer of the first alone, and the whole answer, which is that of
// query_range; an error is the last event.
func TestEventsOfAQuery(t *testing.T) {
	base := listen(t, app(t, nil))
	const q = "?query=sum(rate(loadstone_operations_total[5s]))%2Bcount(loadstone_latency_seconds)" +
		"&start=1795348800&end=1795348840&step=5"
	res, err := http.Get(base + "/query_events" + q)
	if err != nil {
		t.Fatal(err)
	}
	events := read(t, res.Body)
	_ = res.Body.Close()
	names := map[string]int{}
	for _, e := range events {
		names[e.name]++
	}
	last := events[len(events)-1]
	if res.Header.Get("Content-Type") != "text/event-stream" || events[0].name != "plan" || last.name != "result" ||
		names["progress"] < 2 || names["partial"] < 1 || strings.Count(events[0].data, `"expr"`) != 2 {
		t.Errorf("%s: %v", res.Header.Get("Content-Type"), names)
	}
	whole, err := http.Get(base + "/query_range" + q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = whole.Body.Close() }()
	var a struct{ Data struct{ Result any } }
	var b struct{ Result any }
	if err := json.NewDecoder(whole.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(last.data), &b); err != nil || fmt.Sprint(a.Data.Result) != fmt.Sprint(b.Result) {
		t.Errorf("%v: %v is not %v", err, b.Result, a.Data.Result)
	}
	const many = "?query=loadstone_operations_total%2Bon()loadstone_operations_total&time=1795348830"
	res, err = http.Get(base + "/query_events" + many)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if events := read(t, res.Body); len(events) < 2 || events[len(events)-1].name != "error" ||
		!strings.Contains(events[len(events)-1].data, `"execution"`) {
		t.Errorf("%v", events)
	}
	if res, err = http.Get(base + "/query_events?query=sum("); err != nil || res.StatusCode != http.StatusBadRequest {
		t.Fatal(err)
	}
	_ = res.Body.Close()
}
