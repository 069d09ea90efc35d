package threshold

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func TestJudgeTheAnswerOfASearch(t *testing.T) {
	connections, rate := 48, 1200.0
	overConnections := &engine.FindMaxResult{Found: true, MaxConnections: &connections, QPS: new(31000.0)}
	overRate := &engine.FindMaxResult{Found: true, MaxQPSTarget: &rate, QPS: new(1190.0)}
	for _, c := range []struct {
		text   string
		search *engine.FindMaxResult
		passed bool
	}{
		{"max_connections >= 48", overConnections, true},
		{"max_connections > 48", overConnections, false},
		{"max_qps > 30000", overConnections, true},
		{"max_qps == 1200", overRate, true},
		{"max_connections > 0", overRate, false},
		{"max_connections < 100", nil, false},
		{"max_qps < 100", &engine.FindMaxResult{}, false},
	} {
		if got := Evaluate([]string{c.text}, &engine.Figures{}, c.search)[0]; got.Passed != c.passed {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
	if _, err := Parse("INSERT.max_qps > 1"); err == nil {
		t.Error("a search has no kinds")
	}
}
