package scaling

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

func ptr[T any](v T) *T { return &v }

func going(mode engine.LoadMode) State {
	s := State{Started: true, Connections: 8, Workers: 2, Elapsed: 12 * time.Second}
	s.Scenario.Workload = engine.Workload{LoadMode: mode, ConcurrentConnections: 8}
	s.Scenario.Scaling = engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 10}
	if mode == engine.LoadQPS {
		s.Scenario.Workload.TargetQPS = ptr(100.0)
	}
	return s
}

func TestDecide(t *testing.T) {
	c, err := Decide(going(engine.LoadQPS), LoadRequest{TargetQPS: ptr(250.5)}, "ada")
	if err != nil || *c.Workload.TargetQPS != 250.5 || c.Connections != 8 || *c.Event.Data.OldQPS != 100 ||
		*c.Event.Data.TargetQPS != 250.5 || c.Event.Data.InitiatedBy != "ada" || c.Event.Type != engine.EventLoadChanged {
		t.Errorf("%+v, %v", c, err)
	}
	if got := c.Note.String(); !strings.Contains(got, "from 100/s to 250.5/s at 12 s by ada.") {
		t.Error(got)
	}
	c, err = Decide(going(engine.LoadConcurrency), LoadRequest{Connections: ptr(20)}, "ada")
	if err != nil || c.Connections != 20 || c.Workload.ConcurrentConnections != 20 || *c.Event.Data.OldConnections != 8 {
		t.Errorf("%+v, %v", c, err)
	}
	if c.Note.User != "ada" {
		t.Errorf("%+v", c.Note)
	}
	c.Note.User = ""
	if got := c.Note.String(); !strings.HasSuffix(got, " from 8 to 20 at 12 s.") {
		t.Error(got)
	}
	was := going(engine.LoadQPS).Scenario.Workload
	if w, changed := EffectiveWorkload(was, []engine.Event{{Type: engine.EventStart}, {Type: engine.EventLoadChanged,
		Data: engine.EventData{TargetQPS: ptr(7.0)}}}); !changed || *w.TargetQPS != 7 || *was.TargetQPS != 100 {
		t.Errorf("%+v", w)
	}
}

func TestWhatCannotBeChanged(t *testing.T) {
	with := func(mode engine.LoadMode, change func(*State)) State {
		s := going(mode)
		change(&s)
		return s
	}
	rate, connections := LoadRequest{TargetQPS: ptr(5.0)}, LoadRequest{Connections: ptr(5)}
	for name, c := range map[string]struct {
		s     State
		to    LoadRequest
		field string
	}{
		"nothing":       {going(engine.LoadQPS), LoadRequest{}, "target_qps"},
		"both":          {going(engine.LoadQPS), LoadRequest{ptr(5.0), ptr(5)}, "target_qps"},
		"zero":          {going(engine.LoadQPS), LoadRequest{TargetQPS: ptr(0.0)}, "target_qps"},
		"too much":      {going(engine.LoadQPS), LoadRequest{TargetQPS: ptr(1e9)}, "target_qps"},
		"closed loop":   {going(engine.LoadConcurrency), rate, "target_qps"},
		"open loop":     {going(engine.LoadQPS), connections, "connections"},
		"none":          {going(engine.LoadConcurrency), LoadRequest{Connections: ptr(0)}, "connections"},
		"over capacity": {going(engine.LoadConcurrency), LoadRequest{Connections: ptr(21)}, "connections"},
		"over the target's": {with(engine.LoadConcurrency, func(s *State) { s.MaxConnections = 25 }),
			LoadRequest{Connections: ptr(16)}, "connections"},
		"the same":    {going(engine.LoadQPS), LoadRequest{TargetQPS: ptr(100.0)}, ""},
		"not started": {with(engine.LoadQPS, func(s *State) { s.Started = false }), rate, ""},
		"stopping":    {with(engine.LoadQPS, func(s *State) { s.Stopping = true }), rate, ""},
		"joining":     {with(engine.LoadQPS, func(s *State) { s.Joining = true }), rate, ""},
		"search":      {going(engine.LoadFindMax), connections, ""},
		"stages": {with(engine.LoadQPS, func(s *State) { s.Scenario.Workload.Stages = []engine.Stage{{}} }),
			rate, ""},
		"paced": {with(engine.LoadQPS, func(s *State) { s.Scenario.Workload.Arrival = engine.ArrivalWorkload }), rate, ""},
	} {
		_, err := Decide(c.s, c.to, "ada")
		code := engine.CodeConflict
		if c.field != "" {
			code = engine.CodeInvalid
		}
		if !engine.HasCode(err, code) || c.field != "" && !strings.Contains(engine.ErrorText(err), c.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheMeanRateKnowsOfChanges: each rate counts for as long as it held within the measurement.
func TestTheMeanRateKnowsOfChanges(t *testing.T) {
	w := going(engine.LoadQPS).Scenario.Workload // 100/s
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(second int, rate float64) engine.Event {
		return engine.Event{Type: engine.EventLoadChanged, Data: engine.EventData{TargetQPS: &rate},
			CreatedAt: engine.At(noon.Add(time.Duration(second) * time.Second))}
	}
	for name, c := range map[string]struct {
		events []engine.Event
		want   float64
	}{
		"none":            {[]engine.Event{{Type: engine.EventStart, CreatedAt: engine.At(noon)}}, 100},
		"half way":        {[]engine.Event{at(20, 300)}, 200},
		"twice":           {[]engine.Event{at(10, 300), at(30, 500)}, (100*10 + 300*20 + 500*10) / 40.0},
		"in the warm-up":  {[]engine.Event{at(-3, 300)}, 300},
		"after the end":   {[]engine.Event{at(50, 300)}, 100},
		"there and back":  {[]engine.Event{at(-2, 700), at(20, 100)}, 400},
		"twice in warmup": {[]engine.Event{at(-2, 700), at(-1, 50)}, 50},
	} {
		if got := MeanRate(w, c.events, noon, noon.Add(40*time.Second)); got != c.want {
			t.Errorf("%s: %g and not %g", name, got, c.want)
		}
	}
	if got := MeanRate(going(engine.LoadConcurrency).Scenario.Workload, nil, noon, noon.Add(time.Second)); got != 0 {
		t.Errorf("a closed loop has the rate %g", got)
	}
}

// TestPartsOfAMeasurementHaveOneLoadEach: they follow each other without a gap, from its begin to its end.
func TestPartsOfAMeasurementHaveOneLoadEach(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	rate := func(second int, to float64) engine.Event {
		return engine.Event{Type: engine.EventLoadChanged, Data: engine.EventData{TargetQPS: &to},
			CreatedAt: engine.At(noon.Add(time.Duration(second) * time.Second))}
	}
	connections := func(second, to int) engine.Event {
		e := rate(second, 0)
		e.Data = engine.EventData{TargetConnections: &to}
		return e
	}
	many := make([]engine.Event, MaxParts)
	for i := range many {
		many[i] = rate(1+i%35, float64(i))
	}
	for name, c := range map[string]struct {
		mode   engine.LoadMode
		events []engine.Event
		want   string
	}{
		"none":           {engine.LoadQPS, []engine.Event{{Type: engine.EventStop, CreatedAt: engine.At(noon)}}, ""},
		"once":           {engine.LoadQPS, []engine.Event{rate(20, 300)}, "0-20: 100, 20-40: 300, "},
		"in the warm-up": {engine.LoadQPS, []engine.Event{rate(-3, 300), rate(0, 200)}, ""},
		"before and in":  {engine.LoadQPS, []engine.Event{rate(-3, 300), rate(9, 200)}, "0-9: 300, 9-40: 200, "},
		"after the end":  {engine.LoadQPS, []engine.Event{rate(10, 5), rate(40, 7), rate(50, 8)}, "0-10: 100, 10-40: 5, "},
		"closed loop": {engine.LoadConcurrency, []engine.Event{connections(10, 4), connections(10, 6), connections(30, 1)},
			"0-10: 8, 10-30: 6, 30-40: 1, "},
	} {
		got := ""
		for _, p := range Parts(going(c.mode).Scenario.Workload, c.events, noon, noon.Add(40*time.Second)) {
			got += fmt.Sprintf("%g-%g: %g, ", p.From.Sub(noon).Seconds(), p.To.Sub(noon).Seconds(), p.Load)
		}
		if got != c.want {
			t.Errorf("%s: %q and not %q", name, got, c.want)
		}
	}
}
