package prepare

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// recordedStatement is a statement of a recorded run as the parameters of replay hold it.
type recordedStatement struct {
	ID          string         `json:"id"`
	SQL         string         `json:"sql"`
	Kind        engine.Kind    `json:"kind"`
	Writes      bool           `json:"writes"`
	Columns     []string       `json:"columns,omitempty"`
	Transaction string         `json:"transaction,omitempty"`
	Recorded    bool           `json:"recorded"`
	Dialect     string         `json:"dialect"` // of SQL
	Binds       []recordedBind `json:"binds"`
}

type recordedBind struct {
	Name string           `json:"name"`
	Type engine.ValueType `json:"type"`
}

// withRecorded puts the statements of the run that is replayed among the parameters.
func withRecorded(ctx context.Context, deps Deps, w engine.Workload) (json.RawMessage, error) {
	if w.Feed == nil || w.Feed.Run == "" {
		return w.Params, nil
	}
	const field = "workload.feed.run"
	if deps.Recordings == nil {
		return nil, engine.InvalidField(field, "recorded runs cannot be read here", "")
	}
	plan, err := deps.Recordings.Recorded(ctx, w.Feed.Run)
	if err != nil {
		return nil, err
	}
	params := map[string]any{}
	if len(w.Params) > 0 {
		if err := json.Unmarshal(w.Params, &params); err != nil || params == nil {
			return nil, engine.InvalidField(paramsField, "must be an object", "write the parameters as name: value")
		}
	}
	if params["statements"] != nil {
		return nil, engine.InvalidField(paramsField+".statements", "is given, and the recorded run brings its own",
			"leave it out")
	}
	list := make([]recordedStatement, 0, len(plan.Statements))
	for _, s := range plan.Statements {
		out := recordedStatement{ID: s.ID, SQL: s.SQL, Kind: s.Kind, Writes: s.Writes, Columns: s.Columns,
			Transaction: s.Transaction, Recorded: true, Dialect: plan.Driver, Binds: []recordedBind{}}
		for i, b := range s.Binds {
			name := b.Name
			if name == "" {
				name = fmt.Sprintf("p%d", i+1)
			}
			out.Binds = append(out.Binds, recordedBind{Name: name, Type: b.Type})
		}
		list = append(list, out)
	}
	params["statements"] = list
	return json.Marshal(params)
}
