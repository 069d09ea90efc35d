package promql

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Version is that of the columns of an answer.
const Version = 1

const (
	metaVersion  = "loadstone_leaf_version"
	metaWarnings = "warnings"
	metaInfos    = "infos"
	metaSamples  = "samples"
	metaCost     = "spent"
	// MaxPoints is how many points of one series an answer may have, as Prometheus refuses ranges of more steps.
	maxPoints = 1 << 24
)

// row is a series. Points are packed: times as unsigned varints of what each is later than the one before, values as
// eight bytes, least significant first.
type row struct {
	Labels         []byte   `parquet:"labels"`
	FloatTimes     []byte   `parquet:"float_times"`
	Floats         []byte   `parquet:"floats"`
	HistogramTimes []byte   `parquet:"histogram_times"`
	Histograms     [][]byte `parquet:"histograms"`
}

// Write writes an answer as a Parquet file.
func Write(to io.Writer, a LeafResult) error {
	warnings, err := json.Marshal(a.Warnings)
	if err != nil {
		return fmt.Errorf("writing what a leaf came to: %w", err)
	}
	infos, err := json.Marshal(a.Infos)
	if err != nil {
		return fmt.Errorf("writing what a leaf came to: %w", err)
	}
	spent, err := json.Marshal(a.Cost)
	if err != nil {
		return fmt.Errorf("writing what a leaf came to: %w", err)
	}
	w := parquet.NewGenericWriter[row](to, parquet.CreatedBy("loadstone", "", ""),
		parquet.SkipPageBounds("labels"), parquet.SkipPageBounds("float_times"), parquet.SkipPageBounds("floats"),
		parquet.SkipPageBounds("histogram_times"),
		parquet.KeyValueMetadata(metaVersion, strconv.Itoa(Version)),
		parquet.KeyValueMetadata(metaWarnings, string(warnings)),
		parquet.KeyValueMetadata(metaInfos, string(infos)),
		parquet.KeyValueMetadata(metaCost, string(spent)),
		parquet.KeyValueMetadata(metaSamples, strconv.FormatInt(a.Samples, 10)))
	rows := make([]row, 1)
	for i := range a.Series {
		rows[0].set(&a.Series[i])
		if _, err := w.Write(rows); err != nil {
			return fmt.Errorf("writing what a leaf came to: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("writing what a leaf came to: %w", err)
	}
	return nil
}

func (r *row) set(s *promql.Series) {
	r.Labels = appendLabels(r.Labels[:0], s.Metric)
	r.FloatTimes, r.Floats = r.FloatTimes[:0], r.Floats[:0]
	last := int64(0)
	for _, p := range s.Floats {
		r.FloatTimes = binary.AppendVarint(r.FloatTimes, p.T-last)
		r.Floats = binary.LittleEndian.AppendUint64(r.Floats, math.Float64bits(p.F))
		last = p.T
	}
	r.HistogramTimes, r.Histograms = r.HistogramTimes[:0], r.Histograms[:0]
	last = 0
	for _, p := range s.Histograms {
		r.HistogramTimes = binary.AppendVarint(r.HistogramTimes, p.T-last)
		r.Histograms = append(r.Histograms, appendHistogram(nil, p.H))
		last = p.T
	}
}

// separator is in no label: it is not UTF-8.
const separator = "\xff"

func appendLabels(b []byte, l labels.Labels) []byte {
	l.Range(func(l labels.Label) {
		b = append(append(append(append(b, l.Name...), separator...), l.Value...), separator...)
	})
	return b
}

func parseLabels(b []byte) (labels.Labels, error) {
	if len(b) == 0 {
		return labels.EmptyLabels(), nil
	}
	parts := strings.Split(strings.TrimSuffix(string(b), separator), separator)
	if len(parts)%2 != 0 {
		return labels.EmptyLabels(), errors.New("labels cannot be read")
	}
	l := labels.NewScratchBuilder(len(parts) / 2)
	for i := 0; i < len(parts); i += 2 {
		l.Add(parts[i], parts[i+1])
	}
	return l.Labels(), nil
}

// Read reads the answer that a Parquet file of the size has.
func Read(from io.ReaderAt, size int64) (a LeafResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reading what a leaf came to: damaged Parquet data: %v", r)
		}
	}()
	f, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return LeafResult{}, fmt.Errorf("reading what a leaf came to: %w", err)
	}
	meta := func(key string) string { v, _ := f.Lookup(key); return v }
	if meta(metaVersion) != strconv.Itoa(Version) {
		return LeafResult{}, fmt.Errorf("reading what a leaf came to: version %q, not %d", meta(metaVersion), Version)
	}
	if err := errors.Join(json.Unmarshal([]byte(meta(metaWarnings)), &a.Warnings),
		json.Unmarshal([]byte(meta(metaInfos)), &a.Infos), json.Unmarshal([]byte(meta(metaCost)), &a.Cost)); err != nil {
		return LeafResult{}, fmt.Errorf("reading what a leaf came to: %w", err)
	}
	if a.Samples, err = strconv.ParseInt(meta(metaSamples), 10, 64); err != nil {
		return LeafResult{}, fmt.Errorf("reading what a leaf came to: %w", err)
	}
	r := parquet.NewGenericReader[row](f)
	defer func() { err = errors.Join(err, r.Close()) }()
	rows := make([]row, 16)
	for {
		n, readErr := r.Read(rows)
		for i := range rows[:n] {
			s, err := rows[i].series()
			if err != nil {
				return LeafResult{}, fmt.Errorf("reading what a leaf came to: %w", err)
			}
			if k := len(a.Series); k > 0 && labels.Compare(a.Series[k-1].Metric, s.Metric) > 0 {
				return LeafResult{}, fmt.Errorf("reading what a leaf came to: %w", errOrder)
			}
			a.Series = append(a.Series, s)
		}
		if errors.Is(readErr, io.EOF) {
			return a, nil
		}
		if readErr != nil {
			return LeafResult{}, fmt.Errorf("reading what a leaf came to: %w", readErr)
		}
	}
}

var (
	errPoints = errors.New("the points of a series cannot be read")
	errOrder  = errors.New("what a leaf came to is not in the order of labels and time")
)

func (r *row) series() (s promql.Series, err error) {
	if s.Metric, err = parseLabels(r.Labels); err != nil {
		return s, err
	}
	if len(r.Floats)%8 != 0 || len(r.Floats)/8 > maxPoints || len(r.Histograms) > maxPoints {
		return s, errPoints
	}
	if n := len(r.Floats) / 8; n > 0 {
		s.Floats = make([]promql.FPoint, n)
		if err := times(r.FloatTimes, n, func(i int, t int64) {
			s.Floats[i] = promql.FPoint{T: t, F: math.Float64frombits(binary.LittleEndian.Uint64(r.Floats[8*i:]))}
		}); err != nil {
			return s, err
		}
	}
	if n := len(r.Histograms); n > 0 {
		s.Histograms = make([]promql.HPoint, n)
		if err := times(r.HistogramTimes, n, func(i int, t int64) { s.Histograms[i].T = t }); err != nil {
			return s, err
		}
		for i, b := range r.Histograms {
			if s.Histograms[i].H, err = readHistogram(b); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func times(b []byte, n int, fn func(i int, t int64)) error {
	t := int64(0)
	for i := range n {
		d, k := binary.Varint(b)
		if k <= 0 {
			return errPoints
		}
		if i > 0 && d <= 0 {
			return errOrder
		}
		b, t = b[k:], t+d
		fn(i, t)
	}
	if len(b) > 0 {
		return errPoints
	}
	return nil
}

// appendHistogram writes a histogram: reset hint, schema, zero threshold and count, count, sum, and then bounds,
// spans and buckets, each with its length before it.
func appendHistogram(b []byte, h *histogram.FloatHistogram) []byte {
	b = append(b, byte(h.CounterResetHint))
	b = binary.AppendVarint(b, int64(h.Schema))
	for _, v := range []float64{h.ZeroThreshold, h.ZeroCount, h.Count, h.Sum} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	b = appendFloats(b, h.CustomValues)
	b = appendFloats(appendSpans(b, h.PositiveSpans), h.PositiveBuckets)
	return appendFloats(appendSpans(b, h.NegativeSpans), h.NegativeBuckets)
}

func appendFloats(b []byte, values []float64) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func appendSpans(b []byte, spans []histogram.Span) []byte {
	b = binary.AppendUvarint(b, uint64(len(spans)))
	for _, s := range spans {
		b = binary.AppendUvarint(binary.AppendVarint(b, int64(s.Offset)), uint64(s.Length))
	}
	return b
}

var errHistogram = errors.New("a histogram cannot be read")

// cursor reads what appendHistogram wrote; after the first failure it gives zeros.
type cursor struct {
	b      []byte
	failed bool
}

func readHistogram(b []byte) (*histogram.FloatHistogram, error) {
	if len(b) == 0 {
		return nil, errHistogram
	}
	c := &cursor{b: b[1:]}
	h := &histogram.FloatHistogram{CounterResetHint: histogram.CounterResetHint(b[0]), Schema: int32(c.varint())}
	h.ZeroThreshold, h.ZeroCount, h.Count, h.Sum = c.float(), c.float(), c.float(), c.float()
	h.CustomValues = c.floats()
	h.PositiveSpans, h.PositiveBuckets = c.spans(), c.floats()
	h.NegativeSpans, h.NegativeBuckets = c.spans(), c.floats()
	if c.failed || len(c.b) > 0 {
		return nil, errHistogram
	}
	return h, nil
}

func (c *cursor) skip(n int) {
	if n <= 0 || n > len(c.b) {
		c.failed, c.b = true, nil
		return
	}
	c.b = c.b[n:]
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	c.skip(n)
	return v
}

func (c *cursor) length(size int) int {
	v, n := binary.Uvarint(c.b)
	c.skip(n)
	if v > uint64(len(c.b)/size) {
		c.failed = true
		return 0
	}
	return int(v)
}

func (c *cursor) float() float64 {
	if len(c.b) < 8 {
		c.failed, c.b = true, nil
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(c.b))
	c.b = c.b[8:]
	return v
}

func (c *cursor) floats() []float64 {
	n := c.length(8)
	if n == 0 {
		return nil
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = c.float()
	}
	return values
}

func (c *cursor) spans() []histogram.Span {
	n := c.length(2)
	spans := make([]histogram.Span, 0, n)
	for range n {
		s := histogram.Span{Offset: int32(c.varint())}
		v, k := binary.Uvarint(c.b)
		c.skip(k)
		s.Length = uint32(v)
		spans = append(spans, s)
	}
	return slices.Clip(spans)
}
