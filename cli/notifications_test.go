package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
)

// TestRunsAreTold: a run whose threshold does not hold, on the real program, to a webhook.
func TestRunsAreTold(t *testing.T) {
	t.Parallel()
	message := make(chan notify.Notice, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var v notify.Notice
		if err := json.Unmarshal(body, &v); err != nil || r.Header.Get("X-Loadstone-Signature") !=
			notify.Sign("secret-word", r.Header.Get("X-Loadstone-Timestamp"), body) {
			t.Errorf("%s, %v", body, r.Header)
		}
		message <- v
	}))
	defer receiver.Close()
	s := clitest.NewProgram(t).Serve()
	hook := `{"version":0,"hooks":[{"name":"ci","kind":"webhook","url":"` + receiver.URL +
		`","secret":"secret-word","events":["regressed"]}]}`
	if status, body := s.Send("PUT", "/api/v1/notifications", hook); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	source := "name: told\ntarget: {connection: playground, table_name: orders, prepare: {rows: 1000, if_exists: use}}\n" +
		"workload: {plugin: mix, concurrent_connections: 2, duration_seconds: 2, warmup_seconds: 0}\n" +
		"thresholds: [\"qps > 100000000\"]\n"
	in, err := json.Marshal(map[string]any{"source": source, "start": true})
	if err != nil {
		t.Fatal(err)
	}
	status, body := s.Send("POST", "/api/runs", string(in))
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	select {
	case v := <-message:
		if v.Event != notify.Regressed || v.Status != engine.StatusCompleted || v.QPS == nil || *v.QPS <= 0 ||
			v.ErrorRate == nil || v.Simulated ||
			v.Passed == nil || *v.Passed || v.RunName != "told" || v.URL != s.Base+"/runs/"+v.RunID {
			t.Errorf("%+v", v)
		}
	case <-time.After(clitest.StartTimeout):
		t.Fatal("nobody was told")
	}
	s.Stop()
}
