package connector

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

var alertColumns = []column.Column{{Name: "runId", Type: column.Type{Kind: column.Text}},
	{Name: "p99", Type: column.Type{Kind: column.Float, Bits: 64}}}

func alertRows(runs ...string) *column.Batch {
	b := &column.Batch{}
	b.Reset(alertColumns)
	for i, run := range runs {
		b.Cols[0].AppendText([]byte(run))
		b.Cols[1].AppendFloat(float64(200 + i))
		b.N++
	}
	return b
}

// TestARuleTellsOfEachRunOnce: the row that stopped a run is kept, and not told again with the next window.
func TestARuleTellsOfEachRunOnce(t *testing.T) {
	t.Parallel()
	var alerts Alerts
	broken := errors.New("the store is away")
	stop := func(_ context.Context, run, sentence string) error {
		if run == "r2" {
			return broken
		}
		if want := "Rule triggered: slow: runId r1, p99 200"; sentence != want {
			t.Errorf("the reason is %q", sentence)
		}
		return nil
	}
	sink := NewGuardrail(t.Context(), "slow", Config{}, alertColumns, stop, alerts.For(7, "slow", Guardrail))
	if err := sink.Write(alertRows("r1", "r1")); err != nil {
		t.Fatal(err)
	}
	if err := sink.Write(alertRows("r1", "r2")); !errors.Is(err, broken) {
		t.Fatalf("it failed with %v", err)
	}
	list := alerts.List()
	if len(list) != 2 || list[1].RunID != "r1" || list[1].Row != "runId r1, p99 200" || list[1].Failure != "" ||
		list[1].QueryID != 7 || list[1].Query != "slow" || list[1].Type != Guardrail || list[1].At.IsZero() ||
		list[0].RunID != "r2" || list[0].Failure != broken.Error() {
		t.Errorf("%+v", list)
	}
}

// TestAWebhookTellsWhatItPosted: and what it could not post. The oldest alerts are forgotten.
func TestAWebhookTellsWhatItPosted(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusOK)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	defer s.Close()
	policy, err := egress.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	var alerts Alerts
	sink, err := NewWebhook(t.Context(), secret.New(s.URL+"/canary"), alertColumns, policy,
		alerts.For(1, "busy", Webhook))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sink.Close() }()
	for range maxAlerts + 5 {
		if err := sink.Write(alertRows("r1", "r2")); err != nil {
			t.Fatal(err)
		}
	}
	status.Store(http.StatusBadRequest)
	if err := sink.Write(alertRows("r3")); err == nil {
		t.Fatal("a refusal is none")
	}
	list := alerts.List()
	if len(list) != maxAlerts || list[0].Failure == "" || strings.Contains(list[0].Failure, "canary") ||
		list[1].Rows != 2 || list[1].Row != "runId r1, p99 200" || list[1].Failure != "" {
		t.Errorf("%d alerts, the last two %+v", len(list), list[:2])
	}
}

// TestARunThatHasEndedWasNotStoppedByARule: the rows of a rule come to nothing then, which is no failure of the query,
// and its alert says so.
func TestARunThatHasEndedWasNotStoppedByARule(t *testing.T) {
	t.Parallel()
	var alerts Alerts
	asked := 0
	sink := NewGuardrail(t.Context(), "slow", Config{}, alertColumns, func(context.Context, string, string) error {
		asked++
		return ErrEnded
	}, alerts.For(7, "slow", Guardrail))
	for range 2 {
		if err := sink.Write(alertRows("r1")); err != nil {
			t.Fatal(err)
		}
	}
	if list := alerts.List(); asked != 1 || len(list) != 1 || list[0].Failure != ErrEnded.Error() {
		t.Errorf("asked %d times, %+v", asked, list)
	}
}
