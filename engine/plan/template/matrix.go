package template

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// placeholder stands in the schema's text where the fields of a target belong.
var placeholder = []byte(`"...": {"$comment": "the fields of target, put here when the program starts"}`)

// withTargets writes the fields of a target where the schema has the
// placeholder, so that they are described once and keep their order.
func withTargets(text []byte) []byte {
	var root struct {
		Properties struct {
			Target struct {
				Properties json.RawMessage `json:"properties"`
			} `json:"target"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &root); err != nil {
		panic(fmt.Sprintf("the embedded template schema is wrong: %v", err))
	}
	fields := bytes.TrimSpace(root.Properties.Target.Properties)
	return bytes.Replace(text, placeholder, bytes.TrimSpace(fields[1:len(fields)-1]), 1)
}

// targetsOf are the target, or the targets of the matrix, of a document that is not checked yet.
func targetsOf(root map[string]any) []map[string]any {
	var list []map[string]any
	if target, ok := root["target"].(map[string]any); ok {
		list = append(list, target)
	}
	matrix, _ := root["matrix"].(map[string]any)
	targets, _ := matrix["targets"].([]any)
	for _, t := range targets {
		if target, ok := t.(map[string]any); ok {
			list = append(list, target)
		}
	}
	return list
}

// oneTarget asks for a target or a matrix, and for one of them only.
func oneTarget(root map[string]any) []engine.FieldError {
	switch {
	case root["target"] == nil && root["matrix"] == nil:
		return []engine.FieldError{{Field: "target", Message: "is required",
			Hint: "which table of which database takes the load; or matrix, for several"}}
	case root["target"] != nil && root["matrix"] != nil:
		return []engine.FieldError{{Field: "matrix", Message: "and target cannot both be given",
			Hint: "put the target into matrix.targets, or remove the matrix"}}
	}
	return nil
}

// deriveLabels names the targets that have no label: by their adapter, and by
// their number too when that is not enough.
func deriveLabels(root map[string]any) {
	if root["matrix"] == nil {
		return
	}
	used := map[string]bool{}
	for _, t := range targetsOf(root) {
		if label, ok := t["label"].(string); ok {
			used[label] = true
		}
	}
	for i, t := range targetsOf(root) {
		if t["label"] != nil {
			continue
		}
		adapter, _ := t["adapter"].(string)
		label := adapter
		if r := []rune(label); len(r) > 50 {
			label = string(r[:50])
		}
		if used[label] {
			label = fmt.Sprintf("%s %d", label, i+1)
		}
		used[label] = true
		t["label"] = label
	}
}

// checkMatrix judges the targets against each other.
func checkMatrix(s engine.Scenario, add func(field, message, hint string)) {
	if s.Matrix == nil {
		return
	}
	seen := map[string]int{}
	for i, t := range s.Matrix.Targets {
		if first, ok := seen[t.Label]; ok {
			add(fmt.Sprintf("matrix.targets[%d].label", i), fmt.Sprintf("%q is that of matrix.targets[%d] too", t.Label, first),
				"give each target a label of its own")
		}
		seen[t.Label] = i
		checkHousekeeping(fmt.Sprintf("matrix.targets[%d]", i), t.Target, add)
	}
	if s.Workload.Feed != nil && s.Workload.Feed.CSV != "" &&
		len(s.Workload.Feed.CSV)*len(s.Matrix.Targets) > engine.MaxFeedCSV {
		add("workload.feed.csv", "is kept with each run, which is too much for so many targets",
			"replay a recorded run, or fewer targets")
	}
}
