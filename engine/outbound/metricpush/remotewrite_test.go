package metricpush

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/results/metric"
)

func points(n int) []Point {
	s := &Series{Metric: metric.ByName("loadstone_operations_total"),
		Labels: labels.FromStrings("__name__", "loadstone_operations_total", "run", "r-1")}
	all := make([]Point, n)
	for i := range all {
		all[i] = Point{Series: s, AtMs: int64(i+1) * 1000, Value: float64(i)}
	}
	return all
}

// answers is a receiver that answers by script: a status for each request, the last one again.
type answers struct {
	mu       sync.Mutex
	script   []http.HandlerFunc
	versions []string
	at       []time.Time
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	next := a.script[min(len(a.at), len(a.script)-1)]
	a.versions, a.at = append(a.versions, r.Header.Get(versionHeader)), append(a.at, time.Now())
	a.mu.Unlock()
	next(w, r)
}

func say(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		if code != http.StatusNoContent {
			_, _ = w.Write([]byte("no\n\x00\xff token-of-mine and more"))
		}
	}
}

var wrote = []string{samplesWrittenHeader, "3", histogramsWrittenHeader, "0"}

func TestWhatAnswersMean(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client has gone
		<-r.Context().Done()
	}
	for _, c := range []struct {
		name       string
		script     []http.HandlerFunc
		sent, lost int64
		retries    int64
		versions   string
	}{
		{"taken", []http.HandlerFunc{say(204, wrote...)}, 3, 0, 0, "2.0.0"},
		{"a part taken", []http.HandlerFunc{say(204, samplesWrittenHeader, "2")}, 2, 1, 0, "2.0.0"},
		{"a part is refused", []http.HandlerFunc{say(400, samplesWrittenHeader, "1")}, 1, 2, 0, "2.0.0"},
		{"415", []http.HandlerFunc{say(415), say(204)}, 3, 0, 0, "2.0.0 0.1.0"},
		{"400 of an old receiver", []http.HandlerFunc{say(400), say(200)}, 3, 0, 0, "2.0.0 0.1.0"},
		{"400 whatever comes", []http.HandlerFunc{say(400)}, 0, 3, 0, "2.0.0 0.1.0"},
		{"an old receiver that looks at nothing", []http.HandlerFunc{say(200)}, 3, 0, 0, "2.0.0 0.1.0"},
		{"401", []http.HandlerFunc{say(401)}, 0, 3, 0, "2.0.0"},
		{"elsewhere", []http.HandlerFunc{say(307, "Location", "http://127.0.0.1:1/")}, 0, 3, 0, "2.0.0"},
		{"500", []http.HandlerFunc{say(500), say(503), say(204, wrote...)}, 3, 0, 2, "2.0.0 2.0.0 2.0.0"},
		{"429", []http.HandlerFunc{say(429, "Retry-After", "1"), say(204, wrote...)}, 3, 0, 1, "2.0.0 2.0.0"},
		{"no HTTP", []http.HandlerFunc{garbage, say(204, wrote...)}, 3, 0, 1, "2.0.0 2.0.0"},
		{"nobody answers", []http.HandlerFunc{hang}, 0, 3, 0, "2.0.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := &answers{script: c.script}
			s := httptest.NewServer(a)
			defer s.Close()
			var log bytes.Buffer
			e := delivery.Endpoint{Flag: "--remote-write", URL: secret.New(s.URL + "/push?key=token-of-mine")}
			w, err := openRemoteWrite(e, quick, zerolog.New(&log))
			if err != nil {
				t.Fatal(err)
			}
			w.Take(points(3))
			limit := 5 * time.Second
			if c.name == "nobody answers" {
				limit = 300 * time.Millisecond
			}
			for begun := time.Now(); time.Since(begun) < limit && w.Counts().Waiting > 0; {
				time.Sleep(time.Millisecond)
			}
			ended := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			w.Close(ctx)
			if took := time.Since(ended); took > 2*time.Second {
				t.Errorf("the end took %s", took)
			}
			got := w.Counts()
			lost := int64(0)
			for _, n := range got.Lost {
				lost += n
			}
			if got.Sent != c.sent || lost != c.lost || got.Retries != c.retries || got.Waiting+got.Bytes != 0 {
				t.Errorf("%+v", got)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if v := strings.Join(a.versions, " "); v != c.versions {
				t.Errorf("was sent %s, want %s", v, c.versions)
			}
			if c.name == "429" && a.at[1].Sub(a.at[0]) < time.Second {
				t.Errorf("came again after %s", a.at[1].Sub(a.at[0]))
			}
			if strings.Contains(log.String(), "token-of-mine") {
				t.Errorf("the log has a secret: %s", log.String())
			}
			if (c.lost > 0 || c.retries > 0) && log.Len() == 0 {
				t.Error("the log says nothing")
			}
		})
	}
}

var quick = delivery.Limits{MaxItems: 1000, MaxBytes: 1 << 20, BatchSize: 500, MinBackoff: time.Millisecond,
	MaxBackoff: 5 * time.Millisecond}

func garbage(w http.ResponseWriter, _ *http.Request) {
	c, b, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = b.WriteString("\x00\x01\x02 this is none of it\r\n\r\n")
	_ = b.Flush()
	_ = c.Close()
}

// TestTheFirstVersionIsKept: a receiver of the first version is asked about the second once.
func TestTheFirstVersionIsKept(t *testing.T) {
	a := &answers{script: []http.HandlerFunc{say(415), say(204)}}
	s := httptest.NewServer(a)
	defer s.Close()
	w, err := openRemoteWrite(
		delivery.Endpoint{URL: secret.New(s.URL)},
		delivery.Limits{MaxItems: 100, MaxBytes: 1 << 20, BatchSize: 1},
		zerolog.Nop(),
	)
	if err != nil {
		t.Fatal(err)
	}
	w.Take(points(3))
	w.Close(t.Context())
	if got := fmt.Sprint(a.versions); got != "[2.0.0 0.1.0 0.1.0 0.1.0]" || w.Counts().Sent != 3 {
		t.Errorf("%s, %+v", got, w.Counts())
	}
}
