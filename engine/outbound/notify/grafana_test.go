package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func run() engine.Run {
	at := func(seconds int) engine.Time { return engine.At(noon.Add(time.Duration(seconds) * time.Second)) }
	r := engine.Run{RunID: "r-1", RunName: "a \"run\"", Status: engine.StatusCompleted, StartTime: at(0),
		WarmupStartTime: at(2), WarmupEndTime: at(12), MeasurementEndTime: at(72), EndTime: at(75),
		StopReason: engine.StopDurationElapsed}
	r.Scenario.TemplateName = "orders"
	return r
}

// TestARunIsMarked: start, phases and end arrive in Grafana's form, in their order, also where it is away first.
func TestARunIsMarked(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var a notify.Annotation
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &a) != nil || r.URL.Path != "/g/api/annotations" ||
			r.Header.Get("Authorization") != "Bearer secret-token" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		end := int64(0)
		if a.TimeEnd != 0 {
			end = (a.TimeEnd - noon.UnixMilli()) / 1000
		}
		got = append(got, fmt.Sprintf("%d-%d %v %s", (a.Time-noon.UnixMilli())/1000, end, a.Tags[1:], a.Text))
		_, _ = w.Write([]byte(`{"message":"Annotation added","id":1}`))
	}))
	defer s.Close()
	m, err := notify.Open(delivery.Endpoint{URL: secret.New(s.URL + "/g/"), Token: secret.New("secret-token")},
		func(context.Context, string) (engine.Run, error) { return run(), nil }, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range []notify.Milestone{notify.Started, notify.WarmedUp, notify.Ended} {
		m.Record("r-1", is)
	}
	m.Close(t.Context())
	want := []string{`0-0 [run:r-1 template:orders start] Run a "run" has started`,
		`2-12 [run:r-1 template:orders warmup] Warmup of run a "run"`,
		`12-72 [run:r-1 template:orders measurement] Measurement of run a "run"`,
		`0-75 [run:r-1 template:orders run] Run a "run" is COMPLETED: duration_elapsed`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
	if c := m.Counts(); c.Sent != 4 || c.Retries != 1 {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsNotMarked(t *testing.T) {
	t.Parallel()
	unwarmed := run()
	unwarmed.WarmupEndTime = unwarmed.WarmupStartTime
	early := run()
	early.WarmupEndTime, early.MeasurementEndTime = engine.Time{}, engine.Time{}
	never := engine.Run{RunID: "r-2", Status: engine.StatusCancelled}
	for name, c := range map[string]struct {
		run  engine.Run
		is   notify.Milestone
		want int
	}{"no warmup": {unwarmed, notify.WarmedUp, 0}, "without warmup": {unwarmed, notify.Ended, 2},
		"ended in warmup": {early, notify.Ended, 1}, "never started": {never, notify.Ended, 0}} {
		if got := notify.Annotations(c.run, c.is); len(got) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
