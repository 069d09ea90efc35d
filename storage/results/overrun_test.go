package results

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestWhatWasBegunAfterTheMeasurementIsInNoFigure where it is of a run worker that no STOP reached: the figures are those
// of a record without it, but for the account. What others began while the STOP was on its way counts.
func TestWhatWasBegunAfterTheMeasurementIsInNoFigure(t *testing.T) {
	window := engine.Window{From: after(0), To: after(10_000)}
	figures := func(cutOff int) *engine.Figures {
		t.Helper()
		f := open(t)
		put(t, f, "worker-0", steady(0, 10_300, 0)) // 300 while the STOP was on its way
		late := steady(0, cutOff, 1)
		for i := range late {
			if late[i].DueAt > window.To.UnixNano() {
				late[i].Elapsed, late[i].Success, late[i].Kind = 500e6, i%2 == 0, engine.KindUpdate
			}
		}
		put(t, f, "worker-1", late)
		fig, err := f.FiguresIn(context.Background(), "run", "", window)
		if err != nil {
			t.Fatal(err)
		}
		if n := int64(10_300 + cutOff); fig.Accounting.Recorded != n {
			t.Errorf("%d recorded, want %d", fig.Accounting.Recorded, n)
		}
		// Those of worker-0 are in one row group with what it began late.
		if fig.CarriedOver != 0 || *fig.QPS != float64(fig.Operations-fig.FinishedLate)/10 {
			t.Errorf("%d carried over of %d, %g/s", fig.CarriedOver, fig.Operations, *fig.QPS)
		}
		fig.Accounting = engine.Accounting{}
		return fig
	}
	want, got := figures(10_001), figures(55_000)
	if got.Overran != 44_999 || want.Overran != 0 || want.Operations != 20_301 {
		t.Errorf("%d overran of %d operations, %d of %d", got.Overran, got.Operations, want.Overran, want.Operations)
	}
	if got.Overran = 0; !reflect.DeepEqual(got, want) {
		t.Errorf("with what was begun afterwards\n%+v, without\n%+v", got, want)
	}
	if late := figures(int((10*time.Second + overrun/2).Milliseconds())); late.Overran != 0 || late.Operations != 20_800 {
		t.Errorf("%d operations, %d overran", late.Operations, late.Overran)
	}
}
