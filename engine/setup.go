package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Setup says in words what a run did, as far as two runs must agree in it to be compared.
type Setup struct {
	// Workload is the plugin with a digest of its parameters, Load what drove it.
	Workload string `json:"workload"`
	Load     string `json:"load"`
	// Tables are the target's tables with their rows when the load began.
	Tables map[string]int64 `json:"tables"`
}

// SetupOf is the setup of a run; plan may be nil.
func SetupOf(sc Scenario, plan *Plan) *Setup {
	w := sc.Workload
	s := &Setup{Workload: w.Plugin, Load: w.LoadText(), Tables: map[string]int64{}}
	if len(w.Params) > 0 {
		digest := sha256.Sum256(canonical(w.Params))
		s.Workload += " with parameters " + hex.EncodeToString(digest[:4])
	}
	if plan != nil {
		for _, t := range plan.Tables {
			s.Tables[t.Name] = t.Rows
		}
	}
	return s
}

// canonical is a document in one form, however it was written.
func canonical(doc json.RawMessage) []byte {
	var v any
	if json.Unmarshal(doc, &v) != nil {
		return doc
	}
	out, err := json.Marshal(v)
	if err != nil {
		return doc
	}
	return out
}

// LoadText says what drives the load.
func (w Workload) LoadText() string {
	text := fmt.Sprintf("%d connections", w.ConcurrentConnections)
	switch {
	case w.IsSearch():
		text = "a search for the limit"
	case w.LoadMode == LoadQPS && w.TargetQPS != nil:
		text = fmt.Sprintf("%.6g/s (%s) over %s", *w.TargetQPS, w.Arrival, text)
	case w.LoadMode == LoadQPS:
		text = fmt.Sprintf("a schedule (%s) over %s", w.Arrival, text)
	}
	if w.ThinkTimeMs > 0 {
		text += fmt.Sprintf(", %.6g ms think time", float64(w.ThinkTimeMs))
	}
	if n := len(w.Stages); n > 0 {
		stages, _ := json.Marshal(w.Stages) // plain numbers and words
		digest := sha256.Sum256(stages)
		text += fmt.Sprintf(", %d stages (%s)", n, hex.EncodeToString(digest[:4]))
	}
	return text
}
