package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Comparer compares runs.
type Comparer interface {
	Compare(ctx context.Context, a, b []string, o compare.Options) (compare.Comparison, error)
}

// MaxCompared is how many runs the report of a comparison holds: so many have a colour of their own.
const MaxCompared = 8

// comparisonDocument is what the report of a comparison shows; ui/src/report reads it.
type comparisonDocument struct {
	Version      string      `json:"version"`
	MadeAt       engine.Time `json:"made_at"`
	TolerancePct float64     `json:"tolerance_pct"`
	LeftOut      []string    `json:"left_out"`
	// Compared are the runs, of which the first is what the others are held against.
	Compared []comparedRun `json:"compared"`
}

type comparedRun struct {
	Run               engine.RunDetail `json:"run"`
	ResolutionSeconds float64          `json:"resolution_seconds"`
	Points            []engine.Point   `json:"points"`
	// Against is null for the first run, Parts also where runs were not taken in yet.
	Against *compare.Comparison     `json:"against"`
	Parts   *compare.PartComparison `json:"parts"`
}

// Comparison makes the report of a comparison: the runs after the first, each held against the first. All of them are
// over and have figures.
func (m *ReportMaker) Comparison(ctx context.Context, ids []string, tolerancePct float64) (Report, error) {
	p, err := m.page()
	if err != nil {
		return Report{}, err
	}
	comparer, ok := m.Runs.(Comparer)
	if !ok {
		return Report{}, &engine.Error{Code: engine.CodeUnsupported, Message: "This server does not compare runs."}
	}
	if err := CheckComparable("runs", ids); err != nil {
		return Report{}, err
	}
	c := comparisonDocument{
		Version:      m.Version,
		MadeAt:       engine.At(time.Now().UTC()),
		TolerancePct: tolerancePct,
		LeftOut:      []string{},
	}
	o := compare.Defaults()
	o.TolerancePct = tolerancePct
	for i, id := range ids {
		one, err := m.comparedRun(ctx, comparer, ids[0], id, o)
		if err != nil {
			return Report{}, NotFoundAs(err, "run", ids[i])
		}
		c.Compared = append(c.Compared, one)
	}
	r := Report{RunID: ids[0], RunName: "comparison", Final: true}
	for _, points := range []int{3600, 3600 / len(ids), 600, 200} {
		c.LeftOut = []string{}
		for i := range c.Compared {
			one := &c.Compared[i]
			if one.Points, one.ResolutionSeconds, err = m.Store.Series(ctx, one.Run.RunID,
				store.Window{MaxPoints: points}); err != nil {
				return Report{}, err
			}
			roundCurves(reflect.ValueOf(one.Points))
			if one.ResolutionSeconds > 1 && len(c.LeftOut) == 0 {
				c.LeftOut = []string{"single seconds of long runs, and with them heat maps"}
			}
		}
		if r.HTML, err = p.write("Comparison of "+fmt.Sprint(len(ids))+" runs", c); err != nil {
			return Report{}, err
		}
		if len(r.HTML) <= maxReportBytes {
			break
		}
	}
	return r, nil
}

// CheckComparable refuses what is no comparison; field is what named the runs.
func CheckComparable(field string, ids []string) error {
	if len(ids) < 2 || len(ids) > MaxCompared {
		return engine.InvalidField(field, fmt.Sprintf("names %d runs", len(ids)),
			fmt.Sprintf("name 2 to %d runs, the one to hold the others against first", MaxCompared))
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return engine.InvalidField(field, fmt.Sprintf("names the run %.40s twice", id), "name each run once")
		}
	}
	return nil
}

// comparedRun is a run of a comparison without its points.
func (m *ReportMaker) comparedRun(
	ctx context.Context,
	comparer Comparer,
	first, id string,
	o compare.Options,
) (one comparedRun,
	err error) {
	if one.Run, err = m.Runs.Detail(ctx, id); err != nil {
		return one, err
	}
	if one.Run.Summary == nil || !one.Run.Status.Terminal() {
		return one, &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict,
			Message: fmt.Sprintf("Run %s has no figures yet, so there is nothing to compare.", id),
			Hint:    "A comparison can be handed on when all of its runs have ended."}
	}
	publicRun(&one.Run)
	// What a comparison does not show would be most of the file.
	one.Run.Workers, one.Run.Summary.Slowest = []engine.RunResult{}, []engine.SlowExecution{}
	if id == first {
		return one, nil
	}
	c, err := comparer.Compare(ctx, []string{first}, []string{id}, o)
	if err != nil {
		return one, err
	}
	one.Against = &c
	if m.Kinds == nil {
		return one, nil
	}
	parts, err := m.Kinds.Compare(ctx, []string{first}, []string{id}, o)
	if err == nil {
		one.Parts = &parts
	} else if !engine.HasCode(err, engine.CodeConflict) {
		return one, err
	}
	return one, nil
}

type comparedInput struct {
	Runs         []string `query:"runs" required:"true" minItems:"2" maxItems:"8" doc:"Run ids, comma separated; the others are compared with the first."`
	TolerancePct float64  `query:"tolerance_pct" minimum:"0" maximum:"1000" default:"5" doc:"The least difference that matters, in percent."`
}

func (h *reportHandlers) registerComparisons() {
	a := h.a
	o := NewOperation(
		http.MethodGet,
		"/api/v1/compare/report",
		"compare-report",
		reportTag,
		"A comparison of runs, one HTML file",
		http.StatusNotFound,
		http.StatusConflict,
		http.StatusTooManyRequests,
	)
	o.Description = "Figures with intervals, kinds, statements and charts of 2 to 8 runs that are over. The file loads " +
		"nothing from a network and sends nothing."
	Attachment(&o, "The comparison.", fiber.MIMETextHTML)
	Handle(a, o, Throttled(a, func(ctx context.Context, in *comparedInput) (*reportFile, error) {
		r, err := h.maker.Comparison(ctx, in.Runs, in.TolerancePct)
		if err != nil {
			return nil, err
		}
		return &reportFile{ContentType: fiber.MIMETextHTMLCharsetUTF8, CacheControl: "private, no-store", Body: r.HTML,
			Disposition: `attachment; filename="` + FileName(r) + `"`}, nil
	}))
}
