package report

import (
	"fmt"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
)

// File is what run --out writes: the summary, and what a comparison needs.
type File struct {
	*engine.Summary
	Seconds []engine.MeasuredSecond `json:"seconds,omitempty"`
	// Enrichment is what the target's history knew when the file was written; nil where there is none.
	Enrichment *engine.Enrichment `json:"enrichment,omitempty"`
}

// FileOf is the file of a run, which may have no summary yet.
func FileOf(s *engine.Summary, seconds []engine.MeasuredSecond) File {
	if s == nil {
		s = &engine.Summary{}
	}
	return File{Summary: s, Seconds: seconds}
}

// maxReport is the most that a report is read of: the seconds of a week are a tenth of it.
const maxReport = 1 << 30

// Read reads what run --out left in a file.
func Read(path string) (File, error) {
	fail := func(format string, args ...any) (File, error) {
		return File{}, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The file %s ", path) + fmt.Sprintf(format, args...) + ".",
			Hint:    "give a file that `loadstone run --out` wrote"}
	}
	text, err := terminal.ReadBounded("The report", path, maxReport)
	if err != nil {
		return File{}, err
	}
	r := File{Summary: &engine.Summary{}}
	if err := jsonx.Read(text, &r); err != nil {
		return fail("is not a summary: %v", err)
	}
	if err := jsonx.CheckDuplicateKeys(text, "tags"); err != nil {
		return fail("is not a summary: %v", err)
	}
	r.Upgrade()
	if r.RunID == "" {
		return fail("is not a summary of a run")
	}
	for i, s := range r.Seconds {
		if s.Operations < 0 || s.CarriedOver < 0 || s.Errors < 0 || s.Errors > s.Operations {
			return fail("is damaged: second %d has %d operations and %d errors", i+1, s.Operations, s.Errors)
		}
	}
	return r, nil
}
