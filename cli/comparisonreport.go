package cli

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/api"
)

// ComparisonReport is the report of a comparison: one HTML file, with charts.
type ComparisonReport struct {
	// File is where it is written; empty for no report.
	File string
	// Tolerance is the least difference that matters, in percent.
	Tolerance float64
	wiring.StoreFlags
	runIDs []string
}

// SetRuns names the runs: one that the others, with commas between, are held against. What cannot be compared with
// charts is refused.
func (t *ComparisonReport) SetRuns(a, b string) error {
	if t.File == "" {
		return nil
	}
	t.runIDs = strings.Split(a+","+b, ",")
	for i, id := range t.runIDs {
		if t.runIDs[i] = strings.TrimSpace(id); uuid.Validate(t.runIDs[i]) != nil {
			return engine.InvalidField("--html", fmt.Sprintf("%.80q is not the id of a run, and a file has no charts", id),
				"name runs by their ids, or write --json or --csv instead")
		}
	}
	if strings.Contains(a, ",") {
		return engine.InvalidField("--html", "the report holds others against one run, and A names several",
			"name one run as A and up to 7 as B")
	}
	return api.CheckComparable("--html", t.runIDs)
}

// Write makes the report and writes it: of this machine's data directory, which is not open then, where read is nil.
func (t *ComparisonReport) Write(e *terminal.Env, read ServerGet) error {
	if t.File == "" {
		return nil
	}
	page, err := t.page(e, read)
	if err != nil {
		return err
	}
	return e.Write(t.File, func(w io.Writer) error { _, err := w.Write(page); return err })
}

func (t *ComparisonReport) page(e *terminal.Env, read ServerGet) ([]byte, error) {
	if read != nil {
		q := url.Values{"runs": {strings.Join(t.runIDs, ",")}, "tolerance_pct": {fmt.Sprint(t.Tolerance)}}
		return read(e.Ctx, "/api/v1/compare/report?"+q.Encode())
	}
	r, err := makeLocalReport(e, t.StoreFlags, func(m *api.ReportMaker) (api.Report, error) {
		return m.Comparison(e.Ctx, t.runIDs, t.Tolerance)
	})
	return r.HTML, err
}
