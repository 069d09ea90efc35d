// This part hands a run on to others: as a report, one HTML file that shows its verdict, figures and charts
// without a server or a network, and as a link by which somebody who is not signed in sees that report and nothing
// else.
//
// A report is made of what is stored of a run's seconds and of its summary. No execution is read: that of a run with
// 100 million of them takes as long as any other of its length.

package api

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
)

// ReportRuns know everything that belongs to a run.
type ReportRuns interface {
	Detail(ctx context.Context, runID string) (engine.RunDetail, error)
}

// SeriesStore is what pages show of the seconds of runs.
type SeriesStore interface {
	// Series returns the parent's points in the window, oldest first. Where there are
	// more than Most, each point stands for the seconds of one phase in a stretch of
	// resolution seconds: rates, the median and the mean are their means, P95, P99 and
	// the maximum the highest of any of them, and the rest is that of the last one;
	// the histogram, which would be its own only, is left out. resolution is 1 otherwise.
	Series(ctx context.Context, runID string, w store.Window) (points []engine.Point, resolution float64, err error)
	// WorkerSeries is Series for one run worker, workerID "" all of them;
	// Most counts the points of all together, of which each has 20 at least.
	WorkerSeries(
		ctx context.Context,
		runID, workerID string,
		w store.Window,
	) (points []store.WorkerPoint, resolution float64,
		err error)
	// WarehousePolls returns the polls of a run's warehouse in the window, oldest first. Where
	// there are more than Most, each stands for those of a stretch of resolution seconds: it is
	// the last of them, with the most queries that ran and waited in any. resolution is 5 otherwise.
	WarehousePolls(ctx context.Context, runID string, w store.Window) (polls []engine.WarehousePoint, resolution float64,
		err error)
	// WarehouseSlots returns the run's warehouse in slots of five seconds, oldest first; of more
	// than Most it leaves out evenly, and a slot has the longest queue until the next one.
	WarehouseSlots(ctx context.Context, runID string, w store.Window) ([]engine.WarehouseSlot, error)
}

// ReportStore has the seconds of runs.
type ReportStore interface {
	SeriesStore
	RunNote(ctx context.Context, runID string) (store.RunNote, error)
	ListMarks(ctx context.Context, runID string) ([]engine.Mark, error)
	Logs(ctx context.Context, runID string, afterSeq int64, level engine.LogLevel, limit int) ([]engine.LogEntry, error)
}

// ReportMaker makes reports. It is safe for concurrent use.
type ReportMaker struct {
	Runs    ReportRuns
	Store   ReportStore
	Version string
	// Kinds reads the kinds of runs over time; nil where nobody keeps them.
	Kinds *compare.BreakdownReader
	page  func() (*reportPage, error)
}

// NewReportMaker returns a Maker that draws with the built page, of which ui has the folder report.
func NewReportMaker(runs ReportRuns, s ReportStore, ui fs.FS, version string) *ReportMaker {
	return &ReportMaker{Runs: runs, Store: s, Version: version,
		page: sync.OnceValues(func() (*reportPage, error) { return readPage(ui) })}
}

// Report is the file of a run.
type Report struct {
	RunID, RunName string
	HTML           []byte
	// Final: no later report of the run will say anything else.
	Final bool
}

// maxReportBytes is how many bytes a report has at most, where what is left out for it makes that possible.
const maxReportBytes = 1_450_000

// reportDocument is what a report shows; ui/src/report reads it.
type reportDocument struct {
	Version string           `json:"version"`
	MadeAt  engine.Time      `json:"made_at"`
	Run     engine.RunDetail `json:"run"`
	// Note is what was written about the run.
	Note string `json:"note"`
	// Marks are the moments that users have marked, without who did.
	Marks []engine.Mark `json:"marks"`
	// LeftOut are sentences about what the file has no room for.
	LeftOut           []string            `json:"left_out"`
	ResolutionSeconds float64             `json:"resolution_seconds"`
	Points            []engine.Point      `json:"points"`
	Workers           []store.WorkerPoint `json:"worker_points"`
	// Kinds are null where the run was not taken in yet.
	Kinds     *compare.KindCurves `json:"kinds"`
	Logs      []engine.LogEntry   `json:"logs"`
	Warehouse *warehouseDocument  `json:"warehouse"`
}

type warehouseDocument struct {
	ResolutionSeconds float64                 `json:"resolution_seconds"`
	Points            []engine.WarehousePoint `json:"points"`
	Slots             []engine.WarehouseSlot  `json:"slots"`
}

// reportDetail is how much of a run a report takes in.
type reportDetail struct {
	points, workers, kinds, logs int
	leftOut                      []string
}

// reportDetails are tried one after the other, until the file is small enough.
var reportDetails = []reportDetail{
	{points: 3600, workers: 6000, kinds: 1200, logs: 2000},
	{points: 3600, kinds: 600, logs: 500, leftOut: []string{"the curves of single run workers"}},
	{points: 1800, kinds: 300, logs: 300, leftOut: []string{"single seconds of a long run, and with them the heat map",
		"the curves of single run workers"}},
	{points: 600, kinds: 300, logs: 100, leftOut: []string{"single seconds of a long run, and with them the heat map",
		"the curves of single run workers"}},
}

// Report makes the report of a run that is over. One without figures is ErrConflict in words.
func (m *ReportMaker) Report(ctx context.Context, runID string) (Report, error) {
	p, err := m.page()
	if err != nil {
		return Report{}, err
	}
	d, err := m.Runs.Detail(ctx, runID)
	if err != nil {
		return Report{}, err
	}
	if d.Summary == nil || !d.Status.Terminal() {
		return Report{}, &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict,
			Message: "The run has no figures yet, so there is nothing to report.",
			Hint:    "Its report can be made when it has ended and its figures are computed."}
	}
	r := Report{RunID: runID, RunName: d.RunName, Final: d.Phase == engine.PhaseNone}
	publicRun(&d)
	for _, room := range reportDetails {
		c, err := m.collect(ctx, d, room)
		if err != nil {
			return Report{}, err
		}
		if r.HTML, err = p.write(d.RunName+" · report", c); err != nil {
			return Report{}, err
		}
		if len(r.HTML) <= maxReportBytes {
			break
		}
	}
	return r, nil
}

func (m *ReportMaker) collect(ctx context.Context, d engine.RunDetail, room reportDetail) (*reportDocument, error) {
	c := &reportDocument{Version: m.Version, MadeAt: engine.At(time.Now().UTC()), Run: d, LeftOut: room.leftOut,
		Workers: []store.WorkerPoint{}}
	if c.LeftOut == nil {
		c.LeftOut = []string{}
	}
	note, err := m.Store.RunNote(ctx, d.RunID)
	if err != nil {
		return nil, err
	}
	c.Note = note.Text
	marked, err := m.Store.ListMarks(ctx, d.RunID)
	if err != nil {
		return nil, err
	}
	c.Marks = publicMarks(marked)
	if c.Points, c.ResolutionSeconds, err = m.Store.Series(
		ctx,
		d.RunID,
		store.Window{MaxPoints: room.points},
	); err != nil {
		return nil, err
	}
	if room.workers > 0 && len(d.Workers) > 1 {
		if c.Workers, _, err = m.Store.WorkerSeries(ctx, d.RunID, "", store.Window{MaxPoints: room.workers}); err != nil {
			return nil, err
		}
	}
	if c.Kinds, err = m.kinds(ctx, d.RunID, room.kinds); err != nil {
		return nil, err
	}
	if c.Logs, err = m.Store.Logs(ctx, d.RunID, 0, engine.LogInfo, room.logs+1); err != nil {
		return nil, err
	}
	if len(c.Logs) > room.logs {
		c.Logs = c.Logs[:room.logs]
		c.LeftOut = append(slices.Clone(c.LeftOut), fmt.Sprintf("the log after its first %d lines", room.logs))
	}
	c.Logs = publicLogs(c.Logs)
	if d.Warehouse != nil {
		w := &warehouseDocument{}
		window := store.Window{MaxPoints: 1000}
		if w.Points, w.ResolutionSeconds, err = m.Store.WarehousePolls(ctx, d.RunID, window); err != nil {
			return nil, err
		}
		if w.Slots, err = m.Store.WarehouseSlots(ctx, d.RunID, window); err != nil {
			return nil, err
		}
		c.Warehouse = w
	}
	roundCurves(reflect.ValueOf(c.Points))
	roundCurves(reflect.ValueOf(c.Workers))
	roundCurves(reflect.ValueOf(c.Kinds))
	return c, nil
}

// kinds are those of a run over time, nil where it was not taken in, or measured nothing.
func (m *ReportMaker) kinds(ctx context.Context, runID string, limit int) (*compare.KindCurves, error) {
	if m.Kinds == nil {
		return nil, nil
	}
	c, err := m.Kinds.Curves(ctx, runID, limit)
	if engine.HasCode(err, engine.CodeConflict) {
		return nil, nil
	}
	return &c, err
}

// roundCurves gives the figures of curves the digits that can be seen in a curve: the others are noise, which does not
// compress, and would be half of the file. Exact figures are those of the summary, which keeps all.
func roundCurves(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		if v.CanSet() {
			v.SetFloat(significantDigits(v.Float()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			roundCurves(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			roundCurves(v.Index(i))
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Float64 {
			for _, k := range v.MapKeys() {
				v.SetMapIndex(k, reflect.ValueOf(significantDigits(v.MapIndex(k).Float())).Convert(v.Type().Elem()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				roundCurves(f)
			}
		}
	default:
	}
}

// significantDigits is a number with its five leading digits, so that a second of a day is still one.
func significantDigits(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 5, 64), 64)
	if err != nil {
		return x
	}
	return short
}
