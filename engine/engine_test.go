package engine

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTerminalStatesNeverChange walks random transitions and checks the
// promises of the state machine on the way.
func TestTerminalStatesNeverChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := StatusPrepared
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			next := rapid.SampledFrom(Statuses()).Draw(t, "next")
			if !at.CanBecome(next) {
				continue
			}
			if at.Terminal() {
				t.Fatalf("terminal %s became %s", at, next)
			}
			if next == StatusPrepared {
				t.Fatalf("%s became PREPARED again", at)
			}
			at = next
		}
	})
	for _, s := range Statuses() {
		if s.Terminal() == s.Live() && s != StatusPrepared {
			t.Errorf("%s is neither live nor terminal, or both", s)
		}
	}
}

func TestStopReasonsEndWhereTheContractSays(t *testing.T) {
	for reason, want := range map[StopReason][2]Status{
		StopDurationElapsed: {StatusStopping, StatusCompleted},
		StopUserRequested:   {StatusCancelling, StatusCancelled},
		StopGuardrail:       {StatusCancelling, StatusFailed},
		StopWorkerFailure:   {StatusCancelling, StatusFailed},
		StopSetupFailure:    {StatusCancelling, StatusFailed},
	} {
		if got := [2]Status{reason.Draining(), reason.Outcome()}; got != want {
			t.Errorf("%s goes through %v, want %v", reason, got, want)
		}
		if !StatusRunning.CanBecome(reason.Draining()) || !reason.Draining().CanBecome(reason.Outcome()) {
			t.Errorf("%s takes a way the state machine does not have", reason)
		}
	}
}

func TestSpread(t *testing.T) {
	if got := Spread(74, 3); got[0] != 25 || got[1] != 25 || got[2] != 24 {
		t.Errorf("Spread(74, 3) = %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		total, n := rapid.IntRange(0, 10_000).Draw(t, "total"), rapid.IntRange(1, 100).Draw(t, "n")
		sum := 0
		shares := Spread(total, n)
		for i, s := range shares {
			sum += s
			if i > 0 && (s > shares[i-1] || shares[0]-s > 1) {
				t.Fatalf("uneven: %v", shares)
			}
		}
		if sum != total {
			t.Fatalf("%v sums to %d, not %d", shares, sum, total)
		}
	})
}

func TestConnectionRefIsANameOrAnObject(t *testing.T) {
	for _, text := range []string{`"playground"`, `{"driver":"postgres","dsn":"postgres://h/d"}`} {
		var c ConnectionRef
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		back, err := json.Marshal(c)
		if err != nil || string(back) != text {
			t.Errorf("%s became %s (%v)", text, back, err)
		}
	}
}

func TestTimeIsUTCWithMilliseconds(t *testing.T) {
	at := time.Date(2026, 1, 23, 12, 15, 30, 123_900_000, time.FixedZone("x", 2*3600))
	text, _ := json.Marshal(At(at))
	if string(text) != `"2026-01-23T10:15:30.123Z"` {
		t.Errorf("got %s", text)
	}
	if zero, _ := json.Marshal(Time{}); string(zero) != "null" {
		t.Errorf("zero is %s", zero)
	}
	var back Time
	if err := json.Unmarshal(text, &back); err != nil || !back.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("read back %v, %v", back, err)
	}
}

func TestAccountingNamesWhatDoesNotAddUp(t *testing.T) {
	a := Accounting{Scheduled: 10, Dropped: 1, Started: 9, Succeeded: 8, Failed: 1, Recorded: 9}
	if a.Check(); !a.Balanced || a.Problems != nil {
		t.Errorf("balanced accounts do not balance: %v", a.Problems)
	}
	a.Recorded--
	if a.Check(); a.Balanced || len(a.Problems) != 1 {
		t.Errorf("a lost record was not noticed: %v", a.Problems)
	}
}

func TestAsErrorKeepsTheCauseAndHidesIt(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1")
	e := AsError(cause)
	if e.Code != CodeInternal || !errors.Is(e, cause) {
		t.Errorf("got %v", e)
	}
	if user := InvalidField("a.b", "is wrong", "do this"); AsError(user) != user {
		t.Error("a user-facing error was wrapped again")
	}
}

func TestAnErrorGivesEachHintOnce(t *testing.T) {
	e := &Error{Message: "It is disabled.", Hint: "Enable it.",
		Fields: []FieldError{{Field: "a", Message: "is off", Hint: "Enable it."},
			{Field: "b", Message: "is odd", Hint: "even it"}}}
	if got, want := e.Error(), "It is disabled.\n  a: is off\n  b: is odd (even it)\n  hint: Enable it."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhatARunWorkerHasNotToldIsNull: of a row of which only what was counted is known the rest is null, and a row whose
// executions were evaluated has it all; both read back as they were.
func TestWhatARunWorkerHasNotToldIsNull(t *testing.T) {
	counted := &Figures{Operations: 5, CountsOnly: true, Accounting: Accounting{Started: 5}}
	whole := &Figures{Operations: 5, Reads: 3, Writes: 2, DurationSeconds: 4, Retries: 1, FinishedLate: 1, CarriedOver: 2,
		DrainSeconds: 0.5, QPS: new(1.0), Errors: ErrorFigures{Count: 1, Rate: new(0.2)}}
	for _, f := range []*Figures{counted, whole, nil} {
		row := RunResult{ResultID: "r-w", RunID: "r", WorkerID: "w", Status: StatusCompleted, Figures: f}
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			TestID  string         `json:"test_id"`
			Figures map[string]any `json:"figures"`
		}
		var back RunResult
		if err := errors.Join(json.Unmarshal(text, &doc), json.Unmarshal(text, &back)); err != nil {
			t.Fatal(err)
		}
		if doc.TestID != "r-w" || !reflect.DeepEqual(back, row) {
			t.Errorf("%+v reads back as %+v", row, back)
		}
		if f == nil {
			continue
		}
		failures, _ := doc.Figures["errors"].(map[string]any)
		for name, v := range map[string]any{"reads": doc.Figures["reads"], "writes": doc.Figures["writes"], "qps": doc.Figures["qps"],
			"duration_seconds": doc.Figures["duration_seconds"], "finished_late": doc.Figures["finished_late"],
			"carried_over": doc.Figures["carried_over"], "drain_seconds": doc.Figures["drain_seconds"],
			"retries": doc.Figures["retries"], "errors.count": failures["count"], "errors.rate": failures["rate"]} {
			if (v == nil) != f.CountsOnly {
				t.Errorf("%s is %v, counts only: %v", name, v, f.CountsOnly)
			}
		}
		if doc.Figures["operations"] != 5.0 {
			t.Errorf("operations are %v", doc.Figures["operations"])
		}
	}
}
