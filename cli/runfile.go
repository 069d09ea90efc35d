package cli

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/engine"
)

// RunFile is what a server has of a run, as `loadstone run --out` writes it.
func RunFile(ctx context.Context, read ServerGet, id string) (report.File, error) {
	path := "/api/runs/" + url.PathEscape(id)
	var s engine.Summary
	var list struct {
		Seconds []engine.MeasuredSecond `json:"seconds"`
	}
	for name, into := range map[string]any{"/summary": &s, "/seconds": &list} {
		text, err := read(ctx, path+name)
		if err != nil {
			return report.File{}, RunNotFound(id, err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			return report.File{}, &engine.Error{Code: engine.CodeUnavailable,
				Message: "The server answered with something else than a run.",
				Hint:    "is this the address of a Loadstone server, of this version?", Cause: err}
		}
	}
	s.Upgrade() // the server may be older
	return report.FileOf(&s, list.Seconds), nil
}
