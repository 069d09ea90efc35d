package histogram_test

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// drawData draws distributions as run workers send them, and such as nobody should.
func drawData(t *rapid.T) *engine.HistogramData {
	if rapid.Bool().Draw(t, "recorded") {
		h := histogram.New()
		for _, ns := range rapid.SliceOf(rapid.Int64Range(-5, math.MaxInt64)).Draw(t, "values") {
			h.Record(ns)
		}
		return h.Downscale(rapid.IntRange(0, histogram.Schema).Draw(t, "schema"))
	}
	all := rapid.Int64()
	count := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 300), all)
	return &engine.HistogramData{Schema: rapid.IntRange(-2, 9).Draw(t, "schema"), Offset: rapid.Int().Draw(t, "offset"),
		Counts: rapid.SliceOfN(count, 0, 4500).Draw(t, "counts"), Sum: all.Draw(t, "sum"), Min: all.Draw(t, "min"),
		Max: all.Draw(t, "max")}
}

// TestWhatIsPackedIsMergedAsBefore: a packed distribution makes of any other what it makes unpacked, is refused where
// that is, and comes back as it was.
func TestWhatIsPackedIsMergedAsBefore(t *testing.T) {
	var u histogram.Unpacker
	rapid.Check(t, func(t *rapid.T) {
		d, first := drawData(t), drawData(t)
		p := histogram.Pack(d)
		plain, packed := histogram.New(), histogram.New()
		_, _ = plain.MergeData(first), packed.MergeData(first)
		want, got := plain.MergeData(d), packed.MergeData(u.Unpack(p))
		if (want == nil) != (got == nil) || !reflect.DeepEqual(plain, packed) {
			t.Fatalf("%v and %v", want, got)
		}
		const most = 63<<histogram.Schema + 2
		back := histogram.Unpack(p)
		if len(d.Counts) > most {
			d.Counts = d.Counts[:most]
		}
		if !reflect.DeepEqual(back, d) {
			t.Fatalf("%+v came back as %+v", d, back)
		}
	})
	if histogram.Pack(nil) != nil || u.Unpack(nil) != nil {
		t.Error("nothing became something")
	}
}

// TestAPackedDistributionIsSmall: a second of ten operations, and a phase of ten thousand.
func TestAPackedDistributionIsSmall(t *testing.T) {
	for values, most := range map[int]int{10: 600, 10_000: 800} {
		h := histogram.New()
		for i := range values {
			h.Record(int64(1e6 * math.Exp(2*math.Sin(float64(i)*1.7))))
		}
		p := histogram.Pack(h.Data())
		if n := cap(p.Counts); n > most {
			t.Errorf("%d values take %d bytes of counts, unpacked %d", values, n, 8*len(h.Data().Counts))
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	h := histogram.New()
	for i := range 400 {
		h.Record(int64(1e6 * math.Exp(2*math.Sin(float64(i)*1.7))))
	}
	p := histogram.Pack(h.Data())
	var u histogram.Unpacker
	b.ReportAllocs()
	for b.Loop() {
		u.Unpack(p)
	}
}
