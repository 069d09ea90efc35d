package connector

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

func allowed(t *testing.T, list ...string) *egress.Policy {
	t.Helper()
	p, err := egress.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// opened is a sink that posts to an address, which is tried for so long.
func opened(t *testing.T, to string, p *egress.Policy, patience time.Duration, tell AlertFunc) *webhook {
	t.Helper()
	sink, err := NewWebhook(t.Context(), secret.New(to), alertColumns, p, tell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	w := sink.(*webhook)
	w.retryTimeout = patience
	return w
}

// TestAFailureKeepsTheAddressToItself: readers of a query see why rows could not be posted, and to which host, but not
// what is behind it.
func TestAFailureKeepsTheAddressToItself(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	_ = listener.Close()
	for name, list := range map[string]string{"nobody listens": "127.0.0.1", "refused": "192.0.2.1"} {
		t.Run(name, func(t *testing.T) {
			w := opened(t, "http://"+host+"/services/canary?token=canary", allowed(t, list), 0, nil)
			err = w.Write(alertRows("r"))
			if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), host) {
				t.Errorf("it failed with %v", err)
			}
		})
	}
	if _, err := NewWebhook(t.Context(), secret.New(""), nil, nil, nil); !errors.Is(err, ErrSealed) {
		t.Errorf("without its address it gave %v", err)
	}
	_, err = NewWebhook(t.Context(), secret.New("http://metadata.google.internal/"), nil, nil, nil)
	var e *sql.Error
	if !errors.As(err, &e) || e.Kind != sql.InvalidConfig {
		t.Errorf("the name of a cloud's metadata gave %v", err)
	}
}

// sinkPeer is an address that does with each connection what it is told to, and counts them.
func sinkPeer(t *testing.T, do func(net.Conn)) (at string, count func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	var group sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			n++
			mu.Unlock()
			group.Go(func() { defer func() { _ = c.Close() }(); do(c) })
		}
	})
	return "http://" + l.Addr().String(), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// says reads a request and answers with a text, then with more for as long as there is some.
func says(head string, more func(io.Writer) error) func(net.Conn) {
	return func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, head)
		for more != nil && more(c) == nil {
		}
	}
}

// TestAddressesThatBehaveBadly: what another attempt may cure is tried again, and for so long only; what it does not
// cure is not. Who waits is told each time. An answer without an end is not read to it.
func TestAddressesThatBehaveBadly(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\n"
	nobody, _ := sinkPeer(t, func(net.Conn) {})
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	long := strings.Repeat("a", 4096)
	for name, c := range map[string]struct {
		do       func(net.Conn)
		at       string
		attempts int
		want     string
	}{
		"500": {do: says("HTTP/1.1 500 x\r\nContent-Length: 4\r\n\r\nbusy", nil), attempts: 3, want: "answers 500"},
		"429": {do: says("HTTP/1.1 429 x\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n", nil), attempts: 2,
			want: "answers 429"},
		"400": {do: says("HTTP/1.1 400 x\r\nContent-Length: 0\r\n\r\n", nil), attempts: 1, want: "answers 400"},
		"a redirect": {do: says("HTTP/1.1 307 x\r\nLocation: "+nobody+"\r\nContent-Length: 0\r\n\r\n", nil),
			attempts: 1, want: "redirects (307), and redirects are not followed"},
		"no connection": {at: "http://" + gone.Addr().String(), attempts: 3, want: "connection refused"},
		"reset": {do: func(c net.Conn) {
			_, _ = c.Read(make([]byte, 100))
			_ = c.(*net.TCPConn).SetLinger(0)
		}, attempts: 3, want: "connection reset by peer"},
		"no HTTP": {do: says("SSH-2.0-OpenSSH_9.2\r\n", nil), attempts: 3, want: "does not answer in HTTP"},
		"endless header": {do: says(head, func(w io.Writer) error {
			_, err := io.WriteString(w, "X-A: "+long+"\r\n")
			return err
		}), attempts: 3, want: "does not answer in HTTP"},
		"endless body": {do: says(head+"\r\n", func(w io.Writer) error { _, err := io.WriteString(w, long); return err }),
			attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			at, count := c.at, func() int { return 0 }
			if at == "" {
				at, count = sinkPeer(t, c.do)
			}
			const patience = 1200 * time.Millisecond
			var told []Alert
			w := opened(t, at+"/canary", allowed(t, "127.0.0.1"), patience, func(a Alert) { told = append(told, a) })
			begun := time.Now()
			err := w.Write(alertRows("r1", "r2"))
			took := time.Since(begun)
			var e *sql.Error
			switch {
			case c.want == "":
				if err != nil || len(told) != 1 || told[0].Failure != "" || told[0].Rows != 2 {
					t.Errorf("%v, %+v", err, told)
				}
				return
			case !errors.As(err, &e) || e.Kind != sql.NetworkError || !strings.Contains(e.Message, c.want) ||
				!strings.HasPrefix(e.Message, "2 rows could not be posted") || strings.Contains(e.Message, "canary"):
				t.Errorf("it failed with %v", err)
			}
			// Each attempt but the last is told of. On a busy machine the one after 0.5 s comes as late as the last.
			if n := len(told); n > c.attempts || n < min(c.attempts, 2) ||
				slices.IndexFunc(told, func(a Alert) bool { return !a.Retrying }) != n-1 ||
				told[n-1].Failure == "" || c.at == "" && count() != n {
				t.Errorf("%d connections, told %+v", count(), told)
			}
			if took > patience+5*time.Second || (c.attempts > 1) != (took >= patience) {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestAttemptsAreSpaced: at once, after pauses that double or that the address asks for, and at the end of the time.
func TestAttemptsAreSpaced(t *testing.T) {
	t.Parallel()
	busy := delivery.Outcome{Err: errors.New("busy"), Retry: true}
	for name, c := range map[string]struct {
		answers []delivery.Outcome // the last one for all further attempts
		want    []time.Duration
		fails   bool
	}{
		"busy": {[]delivery.Outcome{busy}, []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond,
			2 * time.Second}, true},
		"asks for more than there is": {[]delivery.Outcome{{Err: busy.Err, Retry: true, RetryAfter: time.Hour}},
			[]time.Duration{0, 2 * time.Second}, true},
		"asks for a second": {[]delivery.Outcome{{Err: busy.Err, Retry: true, RetryAfter: time.Second}, busy},
			[]time.Duration{0, time.Second, 2 * time.Second}, true},
		"no cure": {[]delivery.Outcome{{Err: busy.Err}}, []time.Duration{0}, true},
		"cured":   {[]delivery.Outcome{busy, {}}, []time.Duration{0, 500 * time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &webhook{ctx: t.Context(), retryTimeout: 2 * time.Second}
				var at []time.Duration
				reported, begun := 0, time.Now()
				attempts, err := w.retried(func() delivery.Outcome {
					at = append(at, time.Since(begun))
					return c.answers[min(len(at), len(c.answers))-1]
				}, func(error) { reported++ })
				if !slices.Equal(at, c.want) || attempts != len(at) || reported != len(at)-1 || (err != nil) != c.fails {
					t.Errorf("attempts at %v, want %v; %d of %d reported, %v", at, c.want, reported, attempts, err)
				}
			})
		})
	}
}

// TestRowsKeepTheirNameWhenTheyAreTriedAgain: so that who has taken them knows them.
func TestRowsKeepTheirNameWhenTheyAreTriedAgain(t *testing.T) {
	t.Parallel()
	var names []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names = append(names, r.Header.Get(deliveryHeader))
		if len(names) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer s.Close()
	var troubles SinkProblems
	var alerts Alerts
	w := opened(t, s.URL, allowed(t, "127.0.0.1"), time.Minute, troubles.Wrap(7, func(a Alert) {
		if _, waits := troubles.Get(7); waits {
			t.Error("it waits though its rows were taken")
		}
		alerts.For(7, "q", Webhook)(a)
	}))
	done := make(chan error, 1) // room: for the one answer
	go func() { done <- errors.Join(w.Write(alertRows("r1")), w.Write(alertRows("r2"))) }()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if one, waits := troubles.Get(7); waits {
			if one.Attempts != 1 || !strings.Contains(one.Message, "502") || time.Since(one.Since) > time.Minute {
				t.Errorf("%+v", one)
			}
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal("nobody is told that it waits")
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 || names[0] != names[1] || names[1] == names[2] || names[0] == "" {
		t.Errorf("%q", names)
	}
	if list := alerts.List(); len(list) != 2 || list[1].Failure != "" {
		t.Errorf("%+v", list)
	}
}

// TestAStopWaitsForNoAddress: whether it does not answer, or is to be tried again later.
func TestAStopWaitsForNoAddress(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	hangs, _ := sinkPeer(t, func(net.Conn) { <-hang })
	t.Cleanup(func() { close(hang) }) // before the address waits for it
	later, _ := sinkPeer(t, says("HTTP/1.1 503 x\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n", nil))
	for name, at := range map[string]string{"hangs": hangs, "later": later} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			sink, err := NewWebhook(ctx, secret.New(at), alertColumns, allowed(t, "127.0.0.1"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sink.Close() }()
			time.AfterFunc(300*time.Millisecond, stop)
			begun := time.Now()
			if err := sink.Write(alertRows("r")); err == nil || time.Since(begun) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
		})
	}
}

// TestANameThatLeadsWhereNobodyIsSent is refused at once, whatever is allowed. The address is one of this machine that
// the list does not have, and it listens: what is always refused is judged at the same place.
func TestANameThatLeadsWhereNobodyIsSent(t *testing.T) {
	reached := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer s.Close()
	egresstest.StubDNS(t, netip.MustParseAddr("127.0.0.1"))
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	to := "http://hooks.example.com:" + at.Port() + "/canary"
	w := opened(t, to, allowed(t, "10.0.0.0/8"), time.Minute, nil)
	begun := time.Now()
	if err := w.Write(
		alertRows("r"),
	); !errors.Is(err, egress.ErrRefused) || reached ||
		time.Since(begun) > 5*time.Second ||
		strings.Contains(err.Error(), "canary") {
		t.Errorf("%v after %v, reached %t", err, time.Since(begun), reached)
	}
	w = opened(t, to, allowed(t, "hooks.example.com"), time.Minute, nil)
	if err := w.Write(alertRows("r")); err != nil || !reached {
		t.Errorf("what is allowed is not reached: %v", err)
	}
}
